"""Calls between compiled code and what lies around it in this process: C functions, and functions of Python.

    int32_t NAME(const T *input…, T *output…)

is the C interface of both.  An exception cannot pass through compiled code: a function of Python that raises returns 1,
so that the program stops, and whoever called the program raises what was kept, on the same thread (`take_raised`).
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .errors import DTypeError, ShapeError, TrapError
from .types import Array, FunctionType, TensorType, written


class _Raised(threading.local):
    """What a function of Python raised that compiled code of this thread called."""

    error: BaseException | None = None


_raised = _Raised()


def take_raised() -> BaseException | None:
    """The exception that stopped the program, which is forgotten here; None when it was no exception."""
    error, _raised.error = _raised.error, None
    return error


def guarded(function: Callable[[], object]) -> int:
    """Run `function`: 0, or 1 when it raised something, which is kept."""
    try:
        function()
    except BaseException as error:
        _raised.error = error
        return 1
    return 0


def tensor_at(address: int, type: TensorType) -> Array:
    """The tensor in the memory at an address, in its storage type (bf16 as bits)."""
    memory = memoryview((ctypes.c_char * type.bytes).from_address(address))
    return np.ndarray(type.shape, type.dtype.storage, memory)


def loaded(address: int, type: TensorType) -> Array:
    """The same to compute with (bf16 as f32); not to be kept, nor written."""
    stored = tensor_at(address, type)
    stored.flags.writeable = False
    return type.dtype.load(stored)


def c_function(function: Callable[..., Any], name: str, type: FunctionType) -> Any:
    """A function of Python on arrays, as C calls it while the result is referenced.

    It returns an array of the result's shape and element type, or a tuple of them; numbers for scalars.
    """
    parameters, results = tensors(type.parameters), tensors(type.results)

    def run(*addresses: int) -> None:
        given = [loaded(a, t) for a, t in zip(addresses, parameters, strict=False)]
        made = function(*(x.copy() for x in given))
        parts: Sequence[Any] = (made,) if len(results) == 1 else made
        if not isinstance(parts, (tuple, list)) or len(parts) != len(results):
            raise ShapeError(f"{name} returns {len(results)} arrays, not {made!r}")
        for address, wanted, part in zip(addresses[len(parameters) :], results, parts, strict=True):
            tensor_at(address, wanted)[...] = wanted.dtype.store(_fitting(part, wanted, name))

    def call(*addresses: int) -> int:
        return guarded(lambda: run(*addresses))

    pointers = [ctypes.c_void_p] * (len(parameters) + len(results))
    return ctypes.CFUNCTYPE(ctypes.c_int32, *pointers)(call)


def call_c(address: int, name: str, type: FunctionType, arguments: Sequence[Any]) -> list[Array]:
    """The results of the C function at an address, of arrays to compute with.

    Raises: TrapError when it returns another code than 0, or what a function of Python has raised.
    """
    parameters, results = tensors(type.parameters), tensors(type.results)
    given = [
        np.array(t.dtype.store(np.asarray(x)), order="C")
        for t, x in zip(parameters, arguments, strict=True)
    ]
    made = [np.zeros(t.shape, t.dtype.storage) for t in results]
    pointers = [ctypes.c_void_p(x.ctypes.data) for x in (*given, *made)]
    _raised.error = None
    code = ctypes.PYFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * len(pointers))(address)(*pointers)
    if code:
        raise take_raised() or TrapError(failed_with(name, code))
    return [t.dtype.load(x) for t, x in zip(results, made, strict=True)]


def failed_with(name: str, code: int) -> str:
    """What is said of a function that has failed."""
    return f"the extern function {written('@', name)} failed with the code {code}"


def tensors(types: Sequence[object]) -> list[TensorType]:
    """Those types, which are all of tensors.  Raises: DTypeError."""
    found = [type for type in types if isinstance(type, TensorType)]
    if len(found) != len(types):
        raise DTypeError("a function of C is given tensors, and gives tensors")
    return found


def _fitting(part: Any, wanted: TensorType, name: str) -> Array:
    """What a function of Python returned, as a tensor of that type."""
    array = np.asarray(part)
    if array.shape != wanted.shape:
        raise ShapeError(
            f"{name} returned an array of shape {list(array.shape)} for a {wanted.words}"
        )
    is_number = isinstance(part, bool | int | float)
    if array.dtype != wanted.dtype.numpy and not is_number:
        raise DTypeError(f"{name} returned an array of {array.dtype} for a {wanted.words}")
    return array.astype(wanted.dtype.numpy)
