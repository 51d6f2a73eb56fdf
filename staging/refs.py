"""Mutable arrays of a staged function: `ref = nk.ref(x)`, `ref[i]`, `ref[i] = …`, `ref[i] += …`.

A ref is a variable of the program that is being staged, and exists only then: what it holds is an expression, and
writing to it makes it hold another one.  The IR has no refs; what a body changes becomes what it yields.

1. In the body of a loop, a ref from outside is a parameter from where it is first used; the loop carries it.
2. In a branch, it holds what it held outside; the choice has a result for what a branch has changed.
3. A body knows what its refs hold (`TracedBody.refs`), so one that is given up leaves all as it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import GenericAlias
from typing import Any, ClassVar, NoReturn, cast

from ..core.ir.loop_schedules import schedule_of
from ..core.lazy_dataclass import dataclass
from ..core.ops import Update
from . import primitive
from .at import index_expression, value_beside
from .expression import (
    Expression,
    ForLoop,
    IfElse,
    Parameter,
    StructuredOperation,
    Trace,
    TracedBody,
    WhileLoop,
    free_expressions,
)
from .location import current_location
from .number_help import typed_number
from .primitive import dtype_error, staging_error
from .rep_base import RepBase, constant_of, is_number, rep_of
from .spec import TensorSpec
from .tracebacks import public_methods
from .tracing import active_traces
from .updates import read, updated


@public_methods
class Ref:
    """A mutable array of a staged function; `ref[key]` reads a part, `ref[key] = value` writes it.

    `ref[...]` and `ref.value` are the whole array.  Raises: StagingError when it is used outside of the function, or
    the body, that made it.
    """

    __slots__ = ("_home", "_spec", "_value")
    __class_getitem__: ClassVar[Any] = cast("Any", classmethod(GenericAlias))

    def __init__(self, value: Expression, home: Trace) -> None:
        self._spec = primitive.tensor_of(value, "ref")
        self._value = value
        self._home = home

    def __getitem__(self, key: Any, /) -> Any:
        return rep_of(read(held_by(self), key, index_expression))

    def __setitem__(self, key: Any, value: Any, /) -> None:
        old = held_by(self)
        new = value_beside(old, value)
        _hold(self, updated(old, key, new, Update.SET, index_expression))

    @property
    def value(self) -> Any:
        """What it holds."""
        return rep_of(held_by(self))

    @value.setter
    def value(self, value: Any) -> None:
        self[...] = value

    @property
    def spec(self) -> TensorSpec:
        """Rank and element type, which never change."""
        return self._spec

    @property
    def home(self) -> Trace:
        """The function or body that made it."""
        return self._home

    def __delitem__(self, key: object, /) -> NoReturn:
        raise staging_error("elements of a ref cannot be deleted", "write other ones")

    def __iadd__(self, other: object) -> NoReturn:
        raise staging_error("a ref is no value", "`ref[...] += x` changes what it holds")

    __isub__ = __imul__ = __itruediv__ = __iadd__

    def __bool__(self) -> NoReturn:
        raise staging_error("a ref has no truth value", "compare what it holds, `ref.value`")

    def __iter__(self) -> NoReturn:
        raise staging_error("a ref cannot be iterated", "iterate over what it holds, `ref.value`")

    def __repr__(self) -> str:
        return f"<ref of {self._spec.words}>"


@constant_of.register
def _constant_of(value: Ref) -> NoReturn:
    raise staging_error(
        "a ref is no value",
        "what it holds is `ref.value`; a body may use a ref from outside as it is",
    )


@dataclass(eq=False)
class HeldValue:
    """What a ref from outside holds in a body: at first, and now."""

    first: Expression
    now: Expression

    @property
    def is_changed(self) -> bool:
        return self.now is not self.first


def ref(x: Any, /) -> Ref:
    """A mutable array that holds `x` at first."""
    traces = active_traces()
    if not traces:
        raise staging_error(
            "a ref is made inside of a staged function", "NumPy's arrays are mutable outside"
        )
    if isinstance(x, Ref):
        raise staging_error("a ref of a ref", "copy what it holds, `ref(other.value)`")
    if isinstance(x, RepBase):
        return Ref(x.expression, traces[-1])
    if is_number(x):
        raise dtype_error(
            f"a ref cannot hold the Python number {x!r}, which has no element type of its own",
            typed_number(x, None),
        )
    return Ref(constant_of(x), traces[-1])


def held_by(held: Ref) -> Expression:
    """What a ref holds at this place of the program."""
    traces = active_traces()
    if held.home not in traces:
        raise staging_error(
            f"a ref of {held.home.name} is used outside of it: it means nothing after that",
            "make it outside, where all that use it see it; return what it holds, `ref.value`",
        )
    value = held._value  # of its own module
    for trace in traces[traces.index(held.home) + 1 :]:
        value = _entered(held, trace, value).now
    return value


def _entered(held: Ref, trace: Trace, outside: Expression) -> HeldValue:
    """What a ref holds in `trace`, inside of what it holds `outside`."""
    if not isinstance(trace, TracedBody):
        if schedule_of(trace.attributes):
            raise staging_error(
                f"a ref of {held.home.name} is used in a {trace.name} with checkpoint=, of which it is no carry",
                "carry what it holds, `ref.value`, and write what the loop gives to it",
            )
        raise staging_error(
            f"a ref of {held.home.name} is used in {trace.name}, which is a function of its own",
            "pass what it holds, `ref.value`, as an argument, and return what it is to hold",
        )
    known = trace.refs.get(held)
    if known is None:
        first = outside
        if not trace.is_branch:
            first = Expression(Parameter(-1, "ref"), (), held.spec, current_location(), trace)
            trace.starts[first] = outside
        known = trace.refs[held] = HeldValue(first, first)
    return known


def _hold(held: Ref, value: Expression) -> None:
    held_by(held)
    innermost = active_traces()[-1]
    if innermost is held.home:
        held._value = value  # of its own module
    else:
        assert isinstance(innermost, TracedBody)
        innermost.refs[held].now = value


@dataclass(frozen=True)
class ThreadedRefs:
    """A choice or loop with `refs` among its results, from number `at` on; a loop carries them from `starts` on."""

    operation: StructuredOperation
    at: int
    refs: tuple[Ref, ...]
    starts: tuple[Expression, ...]

    @property
    def specs(self) -> tuple[TensorSpec, ...]:
        """Of the results for them."""
        return tuple(held.spec for held in self.refs)

    @property
    def is_changed(self) -> bool:
        """Whether a body changes any."""
        return any(
            value.is_changed for body in self.operation.bodies for value in body.refs.values()
        )

    def hold(self, results: Sequence[Expression]) -> None:
        """Have the refs that a body has changed hold these results."""
        for held, result in zip(self.refs, results, strict=True):
            if any(
                held in body.refs and body.refs[held].is_changed for body in self.operation.bodies
            ):
                _hold(held, result)


def thread_refs(operation: StructuredOperation, results: int) -> ThreadedRefs:
    """The operation, of so many results, with the refs that its bodies use among what flows through it."""
    match operation:
        case IfElse():
            return _thread_choice(operation, results)
        case WhileLoop():
            changed = [held for held, value in operation.test.refs.items() if value.is_changed]
            if changed:
                raise staging_error(
                    "the condition of while_loop changes a ref", "change it in the body"
                )
            return _thread_loop(operation, operation.carried)
        case ForLoop():
            if operation.what in _UNORDERED and any(
                v.is_changed for v in operation.step.refs.values()
            ):
                raise staging_error(
                    f"the function of {operation.what} changes a ref: elements have no order there",
                    "`scan` and `fori` go from the first to the last",
                )
            return _thread_loop(operation, operation.carried)


_UNORDERED = ("map", "filter", "zip_with")


def _thread_choice(operation: IfElse, results: int) -> ThreadedRefs:
    used = dict.fromkeys(held for body in operation.bodies for held in body.refs)
    changed = tuple(
        held
        for held in used
        if any(held in body.refs and body.refs[held].is_changed for body in operation.bodies)
    )
    for body in operation.bodies:
        given = [body.refs[held].now if held in body.refs else held_by(held) for held in changed]
        body.outputs = (*body.outputs, *given)
        body.captures = free_expressions([*body.effects, *body.outputs], body)
    return ThreadedRefs(operation, results, changed, ())


def _thread_loop(operation: WhileLoop | ForLoop, carried: int) -> ThreadedRefs:
    used = tuple(dict.fromkeys(held for body in operation.bodies for held in body.refs))
    starts = tuple(map(held_by, used))
    for body in operation.bodies:
        values = [_entered(held, body, start) for held, start in zip(used, starts, strict=True)]
        for value in values:
            index = len(body.inputs)
            value.first.operation = Parameter(index, f"ref_{index}")
            body.inputs = (*body.inputs, value.first)
            body.parameters = (*body.parameters, value.first.type)
            body.parameter_names = (*body.parameter_names, f"ref_{index}")
        if body is operation.step:
            given = (value.now for value in values)
            body.outputs = (*body.outputs[:carried], *given, *body.outputs[carried:])
        body.captures = free_expressions([*body.effects, *body.outputs], body)
    threaded = replace(operation, carried=carried + len(used))
    return ThreadedRefs(threaded, carried, used, starts)
