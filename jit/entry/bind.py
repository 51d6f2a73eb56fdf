"""Turn the address of a compiled entry into a Python callable that owns all it needs."""

import ctypes
import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from types import BuiltinFunctionType, MethodType
from typing import Final, cast

from ...core.ir import ALIGNMENT
from ...core.types import Array
from .fallback import PythonEntry, python_entry
from .selftest import is_supported
from .signature import Signature
from .state import FALLBACK, KEPT, POOL, State

_FASTCALL: Final = 0x0080
"""`METH_FASTCALL` of CPython's methodobject.h."""
_KEYWORDS: Final = 0x0002
"""`METH_KEYWORDS`."""


class _MethodDefinition(ctypes.Structure):
    """PyMethodDef: what CPython knows of a C function."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("documentation", ctypes.c_char_p),
    )


def bind(
    address: int,
    *,
    signature: Signature,
    arena: int,
    fallback: Callable[..., object],
    explain: Callable[[int, int, int], object],
    keep_alive: object,
    name: str = "program",
    native: bool | None = None,
    private_arena: int | None = None,
    markers: Sequence[object] = (),
) -> Callable[..., object]:
    """The compiled program as a Python callable.

    `address` is that of the function which `entry_text` names, for the same signature; `keep_alive`
    owns its code and the memory at `arena`, of at least 16 bytes, aligned to 64. `fallback` is
    called with the same arguments whenever they are not exactly what the signature says, and its
    result or exception is the call's. When the kernel returns k > 0, `explain(k, first, second)`
    gets the first two words of the arena and raises. `private_arena` is what `entry_text` was given; such an
    arena is zeros at first. `markers` are what the wrappers in each donated argument hold after a call.
    """
    _check_memory(arena, explain)
    if not (is_supported() if native is None else native):
        return python_entry(
            address,
            signature=signature,
            arena=arena,
            fallback=fallback,
            explain=explain,
            keep_alive=keep_alive,
            private_arena=private_arena,
            markers=markers,
        )
    definition = _MethodDefinition(name.encode(), address, _FASTCALL | _KEYWORDS, None)
    state = State.of(signature).pack(
        fallback=fallback,
        explain=explain,
        arena=arena,
        outputs=len(signature.outputs),
        kept=(definition, (keep_alive, signature.guard)),
        markers=markers,
        guard=signature.guard,
    )
    made = _new_function()(ctypes.addressof(definition), state, None)
    return cast(Callable[..., object], made)


def rebind(
    function: Callable[..., object], fallback: Callable[..., object]
) -> Callable[..., object]:
    """The program of a callable made by `bind`, with another fallback: code and memory are shared."""
    if not isinstance(function, BuiltinFunctionType):
        entry = cast(PythonEntry, cast(MethodType, function).__self__)
        return replace(entry, fallback=fallback).call
    state = cast(tuple[object, ...], function.__self__)
    definition, _ = cast(tuple[_MethodDefinition, object], state[KEPT])
    changed = (*state[:FALLBACK], fallback, *state[FALLBACK + 1 :])
    return cast(Callable[..., object], _new_function()(ctypes.addressof(definition), changed, None))


def drop_kept_results(function: Callable[..., object]) -> None:
    """Free the arrays that a callable made by `bind` keeps for its next results."""
    if isinstance(function, BuiltinFunctionType):
        state = cast(tuple[Array, ...], function.__self__)
        state[POOL].fill(None)


def _check_memory(arena: int, explain: Callable[[int, int, int], object]) -> None:
    if arena <= 0 or arena % ALIGNMENT:
        raise ValueError(f"the arena at {arena:#x} is not aligned to {ALIGNMENT} bytes")
    try:
        inspect.signature(explain).bind(0, 0, 0)
    except TypeError as error:  # now, and not only when a check has already failed
        raise TypeError(f"explain must take three arguments: {error}") from None


@cache
def _new_function() -> Callable[[int, object, None], object]:
    """PyCFunction_NewEx."""
    prototype = ctypes.PYFUNCTYPE(
        ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p
    )
    return prototype(("PyCFunction_NewEx", ctypes.pythonapi))
