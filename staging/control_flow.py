"""Structured control flow: traces each branch and loop body once, as a region of an `if`, `while` or `for`.

1. A body is run on symbolic arguments, as a staged function is (`_run`).  What it makes stands inside the
   instruction, what it uses from outside is captured.
2. Ranks and element types of what branches return, or of a carry and its next value, are compared here;
   shapes when they are known (`specialize_control_flow`).
3. The instruction has as many results as a branch has parts, or as a loop carries and stacks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.errors import NNKitError
from ..core.ir import Builder, Value
from ..core.ops import Gather
from ..core.ops.literal import constant
from ..core.ops.nest import Bounds
from ..core.types import BOOL, I32, I64
from . import primitive
from .aggregates import element_of
from .carry import (
    NO_CARRY,
    Carry,
    UntypedNumberError,
    call_function,
    carry_of,
    carry_or_number_of,
    conform,
    kind,
    with_article,
)
from .expression import (
    Expression,
    ForLoop,
    IfElse,
    MakeAggregate,
    Parameter,
    Result,
    StructuredOperation,
    TracedBody,
    UnknownResult,
    WhileLoop,
    free_expressions,
)
from .extents import Condition, Extent
from .location import current_location
from .primitive import dtype_error, is_index, rank_error, staging_error
from .recursion import UnknownResultError, outermost, wait_for
from .refs import thread_refs
from .rep_base import RepBase, is_number, rep_of
from .spec import Spec, TensorSpec, TupleSpec, is_tuple
from .tracing import check_alive, keep, make, tracing

_INDEX = TensorSpec(0, I64)
_TRUTH = TensorSpec(0, BOOL)
_LARGEST_INDEX = (1 << 31) - 1
"""The index of `fori` is an i32."""


def if_else(condition: object, then: Any, otherwise: Any) -> Any:
    """An `if`: the results of `then` or `otherwise`, which may be none if they change a ref or have an effect.

    A Python bool chooses while staging, and the other one is not traced.
    Raises: RankError, DTypeError when they return values of different types, or the condition is no boolean
    scalar.
    """
    if isinstance(condition, bool):
        return _chosen(*(("first", then) if condition else ("second", otherwise)))
    asked = _condition(condition)
    branches: list[tuple[TracedBody, Carry]] = []
    unknown: list[UnknownResultError] = []
    numbers: list[UntypedNumberError] = []
    for place, function in (("first", then), ("second", otherwise)):
        try:
            branches.append(_branch(f"the {place} branch of cond", function))
        except UnknownResultError as error:
            unknown.append(error)
        except UntypedNumberError as error:
            numbers.append(error)
    if numbers:
        raise numbers[0].beside(branches[0][1].spec if branches else None) from None
    if not branches:
        raise outermost(unknown)
    if unknown:
        wait_for(unknown[0].trace, assume=True)
        return _unknown(branches[0][1])
    (first, one), (second, other) = branches
    for place, carry in (("first", one), ("second", other)):
        if carry is NO_CARRY and one is not other:
            carry_of(None, f"the {place} branch of cond returns")
    if not one.like(other):
        raise one.mismatch(
            other,
            f"the branches of cond return {with_article(one.words)} and {with_article(other.words)}",
        )
    return _results(one, _nested(IfElse(first, second), [asked], one.specs))


def while_loop(test: Any, step: Any, init: object, *, what: str = "while_loop") -> Any:
    """A `while`: the carried values once `test` is false; `step` computes the next ones; `what` the user called."""
    start = NO_CARRY if init is NO_CARRY else carry_of(init, f"{what} carries")
    name = f"the condition of {what}"
    asked, answer = _run(
        name,
        start.specs,
        lambda parts: call_function(test, _carried(start, parts), name),
        may_be_skipped=False,
        starts=start.parts,
    )
    if answer.specs != (_TRUTH,):
        raise _no_truth(f"{what} goes on by", answer.words, answer.specs)
    try:
        body = _step(what, start, lambda parts: _carried(start, parts), step)
    except UnknownResultError as error:
        return _unknown_of(error, start)
    operation = WhileLoop(asked, body, len(start.parts), what)
    return _results(start, _nested(operation, start.parts, start.specs))


def for_loop(lower: object, upper: object, step: Any, init: object) -> Any:
    """A `for` over `lower` … `upper` − 1: the carried values after the last iteration."""
    bounds = [_bound(lower), _bound(upper)]
    beside = next((bound.spec for bound in (upper, lower) if isinstance(bound, RepBase)), None)
    like = None if isinstance(init, float) else beside
    start = NO_CARRY if init is NO_CARRY else carry_of(init, "fori carries", like)

    def arguments(parts: Sequence[Expression]) -> tuple[Any, ...]:
        return rep_of(primitive.cast(parts[0], I32)), *_carried(start, parts[1:])

    try:
        body = _step("fori", start, arguments, step, first=(_INDEX,))
    except UnknownResultError as error:
        return _unknown_of(error, start)
    operation = ForLoop(body, len(start.parts), 0, "fori")
    return _results(start, _nested(operation, [*bounds, *start.parts], start.specs))


def fold(xs: RepBase, init: object, step: Any) -> Any:
    """A `for` over the elements along the leading axis: the carried values after the last iteration."""
    over = _rows("fold", xs)
    start = carry_of(init, "fold carries", _scalar_of(over))

    def arguments(parts: Sequence[Expression]) -> tuple[Any, ...]:
        return start.of(parts[1:]), rep_of(_row(xs.expression, over, parts[0]))

    try:
        body = _step("fold", start, arguments, step, first=(_INDEX,))
    except UnknownResultError as error:
        return _unknown_of(error, start)
    operation = ForLoop(body, len(start.parts), len(over), "fold")
    return start.of(_nested(operation, [*over, *start.parts], start.specs))


def scan(xs: RepBase, init: object, step: Any) -> tuple[Any, Expression]:
    """As `fold`, of a step that returns the next carry and a tensor; these are stacked."""
    over = _rows("scan", xs)
    start = carry_of(init, "scan carries", _scalar_of(over))
    name = "the body of scan"

    def run(parts: Sequence[Expression]) -> Any:
        element = rep_of(_row(xs.expression, over, parts[0]))
        returned = call_function(step, (start.of(parts[1:]), element), name)
        pair = conform(returned, (None, None))
        if not is_tuple(pair) or len(pair) != 2:
            raise staging_error(
                f"{name} returns the next carry and an element, not {returned!r}",
                "for example `return carry, carry`",
            )
        following = _following("scan", start, conform(pair[0], start.shape))
        stacked = carry_of(pair[1], f"{name} gives as an element", _scalar_of(over))
        _stacked_spec("scan", stacked)
        return tuple(rep_of(part) for part in (*following.parts, *stacked.parts))

    body, given = _run(name, (_INDEX, *start.specs), run, starts=start.parts)
    operation = ForLoop(body, len(start.parts), len(over), "scan")
    results = _nested(
        operation, [*over, *start.parts], (*start.specs, _lifted("scan", given.specs[-1]))
    )
    return start.of(results[:-1]), results[-1]


def map_rows(what: str, xs: RepBase, function: Any) -> Expression:
    """The results of `function` for every element along the leading axis, stacked."""
    over = _rows(what, xs)
    name = f"the function of {what}"
    body, given = _run(
        name,
        (_INDEX,),
        lambda parts: call_function(function, (rep_of(_row(xs.expression, over, parts[0])),), name),
        like=_scalar_of(over),
    )
    operation = ForLoop(body, 0, len(over), what)
    return _nested(operation, over, (_stacked_spec(what, given),))[0]


def map_pairs(what: str, pair: RepBase, function: Any) -> Expression:
    """As `map_rows` of a tuple of tensors, of a function that takes their elements one by one."""
    over = _rows(what, pair)
    name = f"the function of {what}"

    def run(parts: Sequence[Expression]) -> Any:
        rows = (rep_of(_row(one, [one], parts[0])) for one in over)
        return call_function(function, tuple(rows), name)

    body, given = _run(name, (_INDEX,), run, like=_scalar_of(over))
    return _nested(ForLoop(body, 0, len(over), what), over, (_stacked_spec(what, given),))[0]


def _run(
    name: str,
    specs: tuple[Spec, ...],
    run: Callable[[Sequence[Expression]], Any],
    *,
    may_be_skipped: bool = True,
    like: Spec | None = None,
    starts: Sequence[Expression] = (),
) -> tuple[TracedBody, Carry]:
    """Trace `run` on symbolic arguments as a body; its results may be Python numbers of the type of `like`.

    The last arguments are `starts` at first.
    """
    return _run_with(
        name,
        specs,
        run,
        lambda made, what: carry_of(made, what, like),
        may_be_skipped,
        starts=starts,
    )


def _run_with(
    name: str,
    specs: tuple[Spec, ...],
    run: Callable[[Sequence[Expression]], Any],
    returned: Callable[[Any, str], Carry],
    may_be_skipped: bool,
    *,
    is_branch: bool = False,
    starts: Sequence[Expression] = (),
) -> tuple[TracedBody, Carry]:
    place = current_location()
    names = tuple(f"carry_{k}" if spec is not _INDEX else "index" for k, spec in enumerate(specs))
    body = TracedBody(
        name,
        specs,
        location=place,
        parameter_names=names,
        may_be_skipped=may_be_skipped,
        is_branch=is_branch,
    )
    with tracing(body):
        body.inputs = tuple(
            Expression(Parameter(k, names[k]), (), spec, place, body)
            for k, spec in enumerate(specs)
        )
        carried = body.inputs[len(specs) - len(starts) :]
        body.starts.update(zip(carried, starts, strict=True))
        carry = returned(run(body.inputs), f"{name} returns")
        check_alive(carry.parts, current_location())
        body.outputs = carry.parts
    body.captures = free_expressions([*body.effects, *body.outputs], body)
    return body, carry


def _chosen(place: str, function: Any) -> Any:
    """What a branch returns that is the only one."""
    name = f"the {place} branch of cond"
    made = call_function(function, (), name)
    carry = NO_CARRY if made is None else carry_of(made, f"{name} returns")
    return _results(carry, carry.parts)


def _branch(name: str, function: Any) -> tuple[TracedBody, Carry]:
    """Raises: PythonNumber when a number is returned, as the other branch may tell of what type."""

    def returned(made: Any, what: str) -> Carry:
        return NO_CARRY if made is None else carry_or_number_of(made, what)

    return _run_with(
        name,
        (),
        lambda _: call_function(function, (), name),
        returned,
        may_be_skipped=True,
        is_branch=True,
    )


def _step(
    what: str,
    start: Carry,
    arguments: Callable[[Sequence[Expression]], tuple[Any, ...]],
    step: Any,
    first: tuple[Spec, ...] = (),
) -> TracedBody:
    """Trace the body of a loop, which returns the next carried values."""
    name = f"the body of {what}"

    def run_without(parts: Sequence[Expression]) -> None:
        returned = call_function(step, arguments(parts), name)
        if returned is not None:
            raise staging_error(
                f"{name} returns {kind(returned)}, and there is nothing that {what} carries",
                f"pass what {what} carries at first as its last argument",
            )

    if start is NO_CARRY:
        return _run_with(name, first, run_without, lambda _, __: NO_CARRY, may_be_skipped=True)[0]

    def run(parts: Sequence[Expression]) -> Any:
        returned = call_function(step, arguments(parts), name)
        following = _following(what, start, conform(returned, start.shape))
        return start.of(following.parts)

    body, _ = _run(name, (*first, *start.specs), run, starts=start.parts)
    return body


def _carried(start: Carry, parts: Sequence[Expression]) -> tuple[Any, ...]:
    """The argument of a body for what is carried, if anything is."""
    return () if start is NO_CARRY else (start.of(parts),)


def _results(start: Carry, results: Sequence[Expression]) -> Any:
    """What a choice or loop gives: nothing if it carries nothing."""
    return None if start is NO_CARRY else start.of(results)


def _following(what: str, start: Carry, returned: object) -> Carry:
    """The next carried values. Raises: RankError, DTypeError when a type differs from that of the initial value."""
    following = carry_of(returned, f"the body of {what} returns", start.spec)
    if not start.like(following):
        raise start.mismatch(
            following,
            f"{what} carries {with_article(start.words)} and its body returns "
            f"{with_article(following.words)}",
            of_loop=True,
        )
    return following


def _nested(
    operation: StructuredOperation, operands: Sequence[Expression], specs: tuple[Spec, ...]
) -> list[Expression]:
    """Emit the control-flow node; refs follow what it carries, captured expressions its operands."""
    threaded = thread_refs(operation, len(specs))
    has_effects = any(body.effects for body in operation.bodies)
    if not specs and not threaded.is_changed and not has_effects:
        what = "a choice that gives" if isinstance(operation, IfElse) else "a loop that carries"
        raise staging_error(
            f"{what} nothing changes no ref, and has no effect",
            f"{'return' if isinstance(operation, IfElse) else 'carry'} a value, or write to a ref",
        )
    operation, at, count = threaded.operation, threaded.at, len(threaded.refs)
    captured = dict.fromkeys(one for body in operation.bodies for one in body.captures)
    specs = (*specs[:at], *threaded.specs, *specs[at:])
    node = make(operation, (*operands, *threaded.starts, *captured), TupleSpec(specs))
    for body in operation.bodies:
        body.site = node
    if has_effects:
        keep(node)
    results = [make(Result(k), (node,), spec) for k, spec in enumerate(specs)]
    threaded.hold(results[at : at + count])
    return [*results[:at], *results[at + count :]]


def _unknown(carry: Carry) -> Any:
    return _results(carry, [make(UnknownResult(), (), spec) for spec in carry.specs])


def _unknown_of(error: UnknownResultError, carry: Carry) -> Any:
    """The carried types are known from the initial values, although the body calls an unfinished function."""
    wait_for(error.trace, assume=True)
    return _unknown(carry)


def _rows(what: str, xs: RepBase) -> list[Expression]:
    """The tensors that a loop iterates over: one, or the elements of a tuple."""
    whole = xs.expression
    if isinstance(whole.type, TupleSpec) and whole.type.elements:
        over = [element_of(whole, k) for k in range(len(whole.type.elements))]
    else:
        over = [whole]
    for one in over:
        if primitive.tensor_of(one, what).rank == 0:
            raise rank_error(f"{what} goes along the leading axis, and a {one.type.words} has none")
    return over


def _scalar_of(over: Sequence[Expression]) -> Spec | None:
    """The element type for a Python number beside elements of these tensors; None if they have several."""
    dtypes = {primitive.tensor_of(one, "an element").dtype for one in over}
    return TensorSpec(0, dtypes.pop()) if len(dtypes) == 1 else None


def _row(whole: Expression, over: Sequence[Expression], index: Expression) -> Expression:
    """The element at `index`: of every tensor, if there are several."""
    rows = [_element(one, index) for one in over]
    if not isinstance(whole.type, TupleSpec):
        return rows[0]
    spec = TupleSpec(tuple(row.type for row in rows))
    return make(MakeAggregate(spec), rows, spec)


def _element(x: Expression, index: Expression) -> Expression:
    """`x[index]` of an index that is inside; of an empty axis something that is never used."""
    spec = primitive.tensor_of(x, "an element")

    def build(b: Builder, value: Value, i: Value) -> Value:
        if value.tensor.shape[0] == 0:
            return constant(b, value.tensor.with_shape(value.tensor.shape[1:]), 0)
        return b.emit(Gather(0, Bounds.INSIDE), value, i)

    return primitive.shape_dependent(
        "element", build, (x, index), TensorSpec(spec.rank - 1, spec.dtype)
    )


def _stacked_spec(what: str, given: Carry) -> Spec:
    """The type of stacked elements.  Raises: StagingError when they are not one tensor each."""
    if len(given.parts) != 1 or not isinstance(given.specs[0], TensorSpec):
        raise staging_error(
            f"{what} stacks tensors, not {with_article(given.words)}", f"use {what} once for each"
        )
    return _lifted(what, given.specs[0])


def _lifted(what: str, spec: Spec) -> Spec:
    assert isinstance(spec, TensorSpec), what
    return TensorSpec(primitive.checked_rank(spec.rank + 1), spec.dtype)


def _condition(condition: object) -> Expression:
    if isinstance(condition, Condition):
        return primitive.literal(condition, BOOL)
    carry = carry_of(condition, "cond decides by")
    if carry.specs != (_TRUTH,):
        raise _no_truth("cond decides by", carry.words, carry.specs)
    return carry.parts[0]


def _no_truth(what: str, words: str, specs: Sequence[Spec]) -> NNKitError:
    error = f"{what} a boolean scalar, not {with_article(words)}"
    spec = specs[0]
    if len(specs) == 1 and isinstance(spec, TensorSpec) and spec.dtype is BOOL:
        return rank_error(
            error,
            "reduce it, `.all()` or `.any()`; `select(condition, a, b)` chooses element by element",
        )
    return dtype_error(error, "compare, for example `x > 0.0`")


def _bound(bound: object) -> Expression:
    """A bound of fori as i64; the index is an i32."""
    if isinstance(bound, Extent):
        return primitive.literal(bound, I64)
    if is_index(bound):
        number = int(bound)  # type: ignore[call-overload]  # is_index says it is an integer
        if abs(number) > _LARGEST_INDEX:
            raise dtype_error(f"fori counts in i32: {number} is out of range")
        return primitive.literal(number, I64)
    if is_number(bound):
        raise dtype_error(
            f"fori counts from an integer to another one, not {bound!r}",
            f"`int({bound})`, and `//` divides integers",
        )
    carry = carry_of(bound, "fori counts from or to")
    spec = carry.specs[0]
    if len(carry.parts) != 1 or not isinstance(spec, TensorSpec) or not spec.dtype.is_integer:
        raise dtype_error(
            f"fori counts from an integer to another one, not {with_article(carry.words)}",
            "`n.cast(i32)` counts by a float; an int or `x.shape[0]` needs no Rep",
        )
    if spec.rank:
        raise rank_error(
            f"fori counts from a scalar to another one, not {with_article(carry.words)}",
            "one of its elements, `n[0]`, or how many there are, `len(n)`: `n.shape[0]`",
        )
    return primitive.cast(carry.parts[0], I64)
