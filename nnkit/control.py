"""Choices, loops and recursion as expressions: what Python's `if`, `while` and `for` cannot be on a Rep.

The functions given are run once, while staging, and only what they make of their arguments is kept.  What they
return, and what a loop carries, is a Rep or a tuple of Reps; its type stays the same.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NoReturn

from .callables import StagedFunction, staged
from .conversion import annotated
from .core.errors import NNKitError, ShapeError
from .core.ir import Builder, Value
from .core.ir.loop_schedules import LoopSchedule
from .introspection import hints_of, location_of, name_of, parameters_of
from .reps import const, tup
from .staging import control_flow
from .staging.carry import NO_CARRY
from .staging.primitive import rank_error, shape_dependent, staging_error, tensor_of
from .staging.rep import Rep
from .staging.scheduled_loops import scheduled
from .staging.spec import CallableSpec, Spec
from .staging.staged_functions import PythonFunction, is_function
from .staging.tracebacks import end_at_user


def cond(pred: Any, then: Callable[[], Any], orelse: Callable[[], Any], /) -> Any:
    """What `then()` returns where `pred` is true, else what `orelse()` does; the other one is not run.

    Both return a Rep, or a tuple of Reps, of the same types and shapes; or nothing, if they are run for what they do to
    refs, or for an effect.  `select` chooses element by element.  A Python bool chooses while staging.
    """
    return control_flow.if_else(pred, then, orelse)


def while_loop(
    test: Callable[..., Any],
    body: Callable[..., Any],
    /,
    init: Any = NO_CARRY,
    *,
    checkpoint: LoopSchedule | None = None,
) -> Any:
    """`x = init`, then `x = body(x)` for as long as `test(x)` is true: the last x.

    Without `init`, `body()` is run for what it does to refs, or for an effect, as long as `test()` is true.
    `checkpoint` says which x reverse mode saves, `every_sqrt()` or `binomial(slots)`; without, it saves all it uses.
    """
    return scheduled("while_loop", checkpoint, lambda: control_flow.while_loop(test, body, init))


def fori(
    lo: Any,
    hi: Any,
    body: Callable[..., Any],
    /,
    init: Any = NO_CARRY,
    *,
    checkpoint: LoopSchedule | None = None,
) -> Any:
    """`x = init`, then `x = body(i, x)` for every i from `lo` up to `hi`, which is not included: the last x.

    Without `init`, `body(i)` is run for what it does to refs, or for an effect.

    The bounds are ints, or integer scalars known when it runs; i is an i32.  `checkpoint` is that of `while_loop`.
    """
    return scheduled("fori", checkpoint, lambda: control_flow.for_loop(lo, hi, body, init))


def zip(a: Any, b: Any, /) -> Rep:
    """Two tensors as one sequence of pairs: `map`, `fold` and `scan` of it take both elements as a tuple.

    Their leading extents are the same.
    """
    both = tuple(one.expression for one in _sequences(a, b))
    checked = (
        shape_dependent("zip", partial(_zipped, which), both, tensor_of(both[which], "zip"))
        for which in (0, 1)
    )
    return tup(*map(Rep, checked))


def zip_with(a: Any, b: Any, fn: Callable[[Any, Any], Any], /) -> Rep:
    """`fn` of the elements of two tensors along their leading axes, stacked."""
    return Rep(control_flow.map_pairs("zip_with", tup(*_sequences(a, b)), fn))


def _sequences(a: Any, b: Any) -> tuple[Rep, Rep]:
    """Both as tensors with a leading axis."""
    x, y = const(a), const(b)
    for one in (x, y):
        if tensor_of(one.expression, "zip").rank == 0:
            raise rank_error("zip goes along the leading axis, and a scalar has none")
    return x, y


def _zipped(which: int, _: Builder, *both: Value) -> Value:
    """One of two tensors, of as many elements along their leading axes."""
    x, y = (value.tensor for value in both)
    if x.shape[0] != y.shape[0]:
        raise ShapeError(
            f"cannot zip {x.words} and {y.words}: leading extents {x.shape[0]} and {y.shape[0]} differ"
        )
    return both[which]


def fix(f: Callable[[Any], Any], /) -> StagedFunction:
    """The function that `f` makes of itself: `fix(lambda fac: fn(Int)(lambda n: …n * fac(n - 1)…))`.

    `f` takes the function that it returns.  Its annotations, if it has any, say what that takes and returns.
    Raises: StagingError when `f` returns no function, or calls it while making it.
    """
    try:
        return _fixed(f, sys._getframe(1).f_locals)
    except NNKitError as error:
        end_at_user(error)
        raise


def _fixed(f: Callable[[Any], Any], scope: Mapping[str, Any]) -> StagedFunction:
    names = parameters_of(f)
    if len(names) != 1:
        raise staging_error(
            f"fix takes a function of one parameter, not of {len(names)}",
            "the parameter is the function itself: `lambda fac: lambda n: ...`",
        )
    name = name_of(f)

    def too_early(*_: object, **__: object) -> NoReturn:
        raise staging_error(
            f"{name} calls the function that it is to return, before there is one",
            "call it inside the function that is returned",
        )

    hints = hints_of(f, scope)
    itself = StagedFunction(PythonFunction(too_early, name, (), (), None, location_of(f)))
    itself._entry = too_early
    made = f(itself)
    if not is_function(made) or made is itself:
        shown = "what it is given" if made is itself else "no function"
        raise staging_error(
            f"fix takes a function that returns a function, and {name} returns {shown}"
        )
    itself.replace_with(
        _of(staged(made), name, annotated(hints.get(names[0]) or hints.get("return")))
    )
    return itself


def _of(made: StagedFunction, name: str, declared: Spec | None) -> PythonFunction:
    """The same function under another name, with the types that are declared of it."""
    inner = made.stageable
    types, result = made.declared, None
    if isinstance(inner, PythonFunction):
        result = inner.declared_result
    if isinstance(declared, CallableSpec) and len(declared.parameters) == len(types):
        types, result = declared.parameters, declared.result or result
    function = inner.function if isinstance(inner, PythonFunction) else made
    return PythonFunction(function, name, inner.parameter_names, types, result, inner.location)
