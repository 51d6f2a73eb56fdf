"""Sizes as Python ints: functions that are traced for the shapes of the call at hand.

1. A function is first traced for all shapes, with symbolic sizes.  Where Python needs a number (`range(n)`, `if n`),
   `known_shape` raises `NeedsShapes`, which ends this run and those of all functions around it.
2. Whoever knows the shapes of the arguments, a call with data or a function that is traced for known shapes itself,
   has the function traced again for these: `PythonFunction.callee` with shapes.  It is from then on, once per shapes.
3. In such a run sizes are symbolic as before; a number that is asked for is computed from the types of what the trace
   has so far, which a `TypeLookup` finds by a probe (`shapes_in_traces`).
4. What is printed of a Rep shows sizes as numbers in both kinds of runs (`shapes_in_sight`), a size itself only in one
   for known shapes: a text that is made of it stays as it is in all calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from typing import Protocol, cast

from ..core.errors import InternalError, NNKitError, StagingError
from ..core.lazy_dataclass import dataclass
from ..core.location import HasLocation
from ..core.types import Shape
from .called import called_by
from .expression import Callee, Expression, Shapes, Trace
from .location import current_location, with_location
from .tracing import active_traces


class TypeLookup(Protocol):
    """Finds the types of values while their function is run for known shapes."""

    def shapes_of(self, values: Sequence[Expression]) -> Shapes | None:
        """The shapes of the tensors in values, from left to right; None if they are not known."""
        ...


@dataclass(frozen=True)
class ShapeRequest:
    """A size that Python needs as a number: which, what for, and at which line."""

    size: str
    what: str
    location: HasLocation | None

    @property
    def place(self) -> str:
        """The line, with its file and number."""
        place = self.location.resolve() if self.location else None
        return place.excerpt().splitlines()[0] if place else ""

    def error(self, reason: str, help: str) -> NNKitError:
        """The error that says why there is no number."""
        error: NNKitError = with_location(
            StagingError(f"{self.what} needs the size {self.size} as a number{reason}"),
            self.location,
            help,
        )
        return error


class NeedsShapes(BaseException):
    """Ends the run of a function that needs sizes as numbers, to begin again with shapes.

    No `Exception`, as a user's program may catch these.
    """

    def __init__(self, request: ShapeRequest) -> None:
        super().__init__(request)
        self.request = request


def known_shape(tensor: Expression, size: str, what: str) -> Shape:
    """The shape of a tensor in the call at hand, of which Python needs `size`, for `what`.

    Raises: NeedsShapes in a function that is traced for all shapes; StagingError if that has to be so, or no call has
    this shape.
    """
    return shapes_at_hand([tensor], ShapeRequest(size, what, current_location()))[0]


def shapes_at_hand(values: Sequence[Expression], request: ShapeRequest) -> Shapes:
    """The shapes of the tensors in values.  Raises: as `known_shape`."""
    functions = [trace for trace in active_traces() if trace.origin is not None]
    for trace in functions:
        if trace.types is None and getattr(trace.origin, "is_symbolic", False):
            raise request.error(
                f', and {trace.name} is staged with shapes="symbolic"',
                "repeat with `fori`, go along an axis with `map`, choose with `cond` or `select`; without "
                'shapes="symbolic" it is traced for each shapes',
            )
    lookup: TypeLookup | None = functions[-1].types if functions else type_lookup(Trace("", ()), ())
    found = None if lookup is None else lookup.shapes_of(values)
    if found is not None:
        return found
    if any(trace.types is None for trace in functions):
        raise NeedsShapes(request)
    raise request.error(
        ", which is not known: it is that of a recursive call, or of a function that is over",
        "take the size of an argument, or annotate the result of the recursion with dimensions that have names, as an "
        "argument has them",
    )


def shapes_in_sight(values: Sequence[Expression]) -> Shapes | None:
    """The shapes of the tensors in values in the call at hand, to be shown; None where they are not known.

    Unlike `shapes_at_hand` it has nothing traced again, and never fails.
    """
    functions = [trace for trace in active_traces() if trace.origin is not None]
    before = [trace.types for trace in functions]
    lookup: TypeLookup | None = None
    try:
        for trace in functions:
            if trace.types is None and (shapes := _shapes_of_call(trace, lookup)) is not None:
                trace.types = type_lookup(trace, shapes)
            lookup = trace.types or lookup
        if not functions:
            lookup = type_lookup(Trace("", ()), ())
        return None if lookup is None else lookup.shapes_of(values)
    except (NNKitError, NeedsShapes):
        return None
    finally:
        for trace, types in zip(functions, before, strict=True):
            trace.types = types


def is_traced_for_shapes() -> bool:
    """Whether the function that is being traced is for known shapes: sizes are the same numbers in all of its calls."""
    functions = [trace for trace in active_traces() if trace.origin is not None]
    return bool(functions) and functions[-1].types is not None


def _shapes_of_call(trace: Trace, around: TypeLookup | None) -> Shapes | None:
    """The shapes of the arguments that `trace` is run for; `around` knows the values of the functions around it."""
    given = trace.at_hand
    if given is None or not any(isinstance(one, Expression) for one in given):
        return cast("Shapes | None", given)
    arguments = cast("tuple[Expression, ...]", given)[: len(trace.inputs)]
    if [one.type for one in arguments] != [one.type for one in trace.inputs] or around is None:
        return None
    return around.shapes_of(arguments)


@singledispatch
def type_lookup(trace: object, shapes: Shapes) -> TypeLookup:
    """What finds types in a trace, where the tensors in its arguments have these shapes."""
    raise InternalError(f"{trace} has no types")


def notes_of_shapes(root: Callee) -> list[str]:
    """A line for each function that `root` calls, or is, and that is traced once per shapes: at which line, and why."""
    notes: dict[str, None] = {}
    seen: set[Callee] = set()
    pending = [root]
    while pending:
        callee = pending.pop()
        if callee in seen:
            continue
        seen.add(callee)
        needs = getattr(callee.origin, "needs", {}).get(callee.parameters)
        if callee.shapes is not None and not callee.is_wrapper and needs is not None:
            notes[
                f"{callee.name} is traced for each shapes: {needs.what} needs {needs.size}  {needs.place}"
            ] = None
        pending += called_by(callee)
    return list(notes)
