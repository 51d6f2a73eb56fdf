"""`debug_nans`: finds the line that makes a NaN or an infinity, in a function or in its derivative."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from .callables import StagedFunction
from .calls_with_out import copy_to
from .core.evaluate import evaluate
from .core.evaluate.non_finite import NonFiniteOrigins
from .core.types import Array, TensorType
from .staging.rep import Rep
from .staging.spec import Spec, StructSpec, TupleSpec
from .staging.staged_functions import FunctionResult
from .staging.tracebacks import public
from .staging.tracing import current_trace
from .structs import Struct, assemble
from .tensors import AnyTensor, wrap


class _Debugging(threading.local):
    """How many `debug_nans` the code of this thread is inside of."""

    depth: int = 0


_debugging = _Debugging()


@contextmanager
def debug_nans() -> Generator[None]:
    """Calls of staged functions find out where a NaN or infinity among their results comes from.

    Inside, on this thread, functions that are called with data are run by the reference evaluator, instruction by
    instruction: some 1,000 times slower than compiled code.  A result that is not finite, of a function, a gradient or
    anything else, raises a `NonFiniteError`: it names the first op whose operands were finite while its result was
    not, or the op whose derivative it was, with the user's line.  What arguments bring along, and what does not come
    to a result, is no error.

    >>> import numpy as np, nnkit as nk
    >>> slope = nk.gradient(of=nk.fn(nk.Scalar[nk.f64])(nk.sqrt), wrt=0)
    >>> with nk.debug_nans():
    ...     slope(np.float64(4.0))
    Tensor0D(0.25, f64)
    """
    _intercept(1)
    _debugging.depth += 1
    try:
        yield
    finally:
        _debugging.depth -= 1
        _intercept(-1)


_CALL: Any = vars(StagedFunction)["__call__"]
_GET_ITEM = StagedFunction.__getitem__
_users = 0
"""How many `debug_nans` there are on all threads: while there are none, calls are not slower."""
_lock = threading.Lock()


def _intercept(change: int) -> None:
    """One `debug_nans` more, or less."""
    global _users  # what is counted is a class's methods, of which there are one
    with _lock:
        _users += change
        # for everybody, so that calls cost nothing more where nobody looks
        setattr(StagedFunction, "__call__", _call if _users else _CALL)  # noqa: B010  # mypy lets no method be assigned
        setattr(StagedFunction, "__getitem__", _get_item if _users else _GET_ITEM)  # noqa: B010  # the same


@public
def _call(function: StagedFunction, *arguments: Any, **keywords: Any) -> Any:
    is_data = [*keywords] in ([], ["out"]) and not any(isinstance(one, Rep) for one in arguments)
    if _debugging.depth and is_data and current_trace() is None:
        try:
            made = _debugged(function, arguments)
            return copy_to(function.stageable.name, keywords["out"], made) if keywords else made
        except FunctionResult:
            pass  # it gives a function, which will be called with the rest
    return function._entry(*arguments, **keywords)


def _get_item(function: StagedFunction, key: Any, /) -> Any:
    return _call(function, *key) if type(key) is tuple else _call(function, key)


def _debugged(function: StagedFunction, arguments: Sequence[Any]) -> Any:
    """The result of a call with data.  Raises: NonFiniteError."""
    specialization, values = function.specialized(arguments)
    module, entry = specialization.module("optimizable")
    origins = NonFiniteOrigins()
    given = [leaf for value in values for leaf in _leaves(value)]
    found = evaluate(module, entry.name, *given, observe=origins.observe)
    types = [type for type in entry.type.results if isinstance(type, TensorType)]
    results = [found] if len(types) == 1 else [*found]
    origins.check(results)
    stored = (type.dtype.store(data) for type, data in zip(types, results, strict=True))
    return _built(specialization.callee.result, stored)


def _leaves(value: Any) -> Iterator[Array]:
    """The arrays that a concrete value is made of, to compute with."""
    if isinstance(value, AnyTensor):
        yield np.asarray(value)
        return
    for part in value._fields if isinstance(value, Struct) else value:
        yield from _leaves(part)


def _built(spec: Spec, stored: Iterator[Array]) -> Any:
    """The concrete value of these arrays."""
    match spec:
        case TupleSpec(elements):
            return tuple(_built(element, stored) for element in elements)
        case StructSpec(cls, named):
            return assemble(cls, [_built(element, stored) for _, element in named])
        case _:
            return wrap(np.array(next(stored), order="C"))
