"""What compiled code depends on besides its arguments, so that it is compiled anew when that is redefined.

Tracing records what each function reads (`staging.reads`): globals, attributes of modules, variables of enclosing
functions.  Of all functions that went into a program, this is what is watched: in native code, by a guard in front of
each call, which hands on to Python what does not match; and by Python, wherever a call comes this way.

A gradient is of the function it was given, as Python objects are.  When that function's name is given to another
definition of it, as when a cell is run again, a call of the gradient is an error, unless the old one has a name still.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import FunctionType
from typing import Any

from .core.errors import NNKitError
from .core.lazy_dataclass import dataclass
from .introspection import location_of
from .staging.expression import BatchCallee, Callee, DerivativeCallee, Trace
from .staging.halves import HalfCallee
from .staging.primitive import staging_error
from .staging.read_places import MISSING, ReadVariable, are_same
from .staging.reads import RECORDED, Reads
from .staging.staged_functions import PythonFunction, Stageable, is_staged_function
from .static_parameters import unwrapped


@dataclass(eq=False, slots=True)
class SourceDefinition:
    """A staged function that another one is made of, and the global variable that it is named after."""

    made: str
    function: Any
    """A Python function; as a field of that type, checkers would take it for a method."""
    held: object
    """What the variable held when it was looked at last."""

    def look(self) -> None:
        """Raises: StagingError if the variable holds another definition of it by now, and no other holds this one."""
        now = self.function.__globals__.get(self.function.__name__)
        if now is self.held:
            return
        again = _wrapped(now)
        if (
            isinstance(again, FunctionType)
            and _is_redefined(self.function, again)
            and not self._is_named()
        ):
            raise _redefined(self.made, self.function, again)
        self.held = now

    def _is_named(self) -> bool:
        """Whether a variable holds the function: it is meant to be kept.  Notebooks keep what cells show as `_1`."""
        return any(
            not name.startswith("_")
            and is_staged_function(value)
            and not getattr(value, "is_variant", True)  # as `donate(f)` is
            and _wrapped(value) is self.function
            for name, value in list(self.function.__globals__.items())
        )


def _wrapped(function: object) -> object:
    return getattr(function, "__wrapped__", None)


def _is_redefined(one: FunctionType, other: FunctionType) -> bool:
    """Whether the functions are written differently: one that a loop defines again and again is not."""
    return one.__qualname__ == other.__qualname__ and one.__code__ != other.__code__


def _redefined(made: str, one: FunctionType, other: FunctionType) -> NNKitError:
    places = [location.resolve() for location in map(location_of, (one, other)) if location]
    then, now = (f" at {place.label}" if place else "" for place in places)
    name = one.__name__
    return staging_error(
        f"{made} is made of {name} as it was defined{then}, and {name} has been defined anew{now}",
        f"make {made} anew, of {name} as it is now; or keep the old one under another name, `old_{name} = {name}`, "
        "before it is defined anew",
    )


@dataclass(eq=False)
class Watched:
    """The variables that a program depends on."""

    reads: Reads
    definitions: Sequence[SourceDefinition] = ()
    guard: Any = None
    """That of native code, which is made there."""
    before: Watched | None = None
    """What programs depend on that were compiled when less was known."""

    def have_changed(self) -> bool:
        """Whether one of them is another one now; if not, native code looks for them where they are now."""
        if self.reads.have_changed() or (self.before is not None and self.before.have_changed()):
            return True
        for definition in self.definitions:
            definition.look()
        return self.guard is not None and not self.guard.update(self.variables(), MISSING)

    def covers(self, other: Watched) -> bool:
        """Whether all that another program depends on is among these, and held the same when it was traced."""
        held = {one.key: one.value for one in self.reads.slots}
        return all(
            one.key in held and are_same(one.value, held[one.key]) for one in other.reads.slots
        )

    def variables(self) -> Sequence[tuple[Any, Any, object]]:
        """Holder, name and value of each."""
        return [
            *((slot.holder, slot.name, slot.value) for slot in self.reads.slots),
            *(
                (one.function.__globals__, one.function.__name__, one.held)
                for one in self.definitions
            ),
        ]


def watched_by(callee: Callee, stageable: Stageable, *, is_variant: bool = False) -> Watched:
    """What a program depends on that calls `callee` of `stageable`; `is_variant`: of another staged function for it."""
    slots: dict[tuple[int, object], ReadVariable] = {}
    for function in functions_of(callee, stageable):
        for slot in function.reads.slots if function.reads is not None else ():
            slots.setdefault(slot.key, slot)
    made = f"donate({stageable.name})" if is_variant else stageable.name
    definitions = [*_definitions(callee, made, None if is_variant else stageable)]
    for definition in definitions:
        definition.look()
    return Watched(RECORDED.add(Reads([*slots.values()])), definitions)


def _definitions(callee: Callee, made: str, itself: Stageable | None) -> Iterator[SourceDefinition]:
    """The staged functions with names that a program of `callee` was made of, but for `itself`."""
    pending: list[object] = [callee]
    while pending:
        one = pending.pop()
        match one:
            case DerivativeCallee() | BatchCallee():
                pending.append(one.primal)
            case Trace():
                pending.append(one.origin)
            case PythonFunction() if one.is_wrapper:
                pending += [trace for used in one.traces.values() for trace in used.used]
            case PythonFunction() if one is not itself:
                function = unwrapped(one.function)
                if (
                    isinstance(function, FunctionType)
                    and function.__name__ == function.__qualname__
                ):
                    held = function.__globals__.get(function.__name__)
                    found: object = getattr(held, "__wrapped__", None)
                    if found is not None:
                        yield SourceDefinition(made, function, held if found is function else None)
            case _:
                pass


def functions_of(callee: Callee, stageable: Stageable) -> Sequence[PythonFunction]:
    """All functions that were traced for it, and rules of their derivatives."""
    found: dict[PythonFunction, None] = {}
    pending: list[object] = [callee, stageable]
    while pending:
        one = pending.pop()
        match one:
            case DerivativeCallee() | BatchCallee():
                pending.append(one.primal)
            case HalfCallee():
                pending += one.functions
            case Trace():
                pending += (one.origin, *one.used)
            case PythonFunction() if one not in found:
                found[one] = None
                rules = one.rules
                pending += (rules.jvp, rules.vjp, rules.saving, *one.traces.values())
            case _:
                pass
    return [*found]
