"""What compiled code calls to print: shows the values of a `print`, and keeps what Python raises meanwhile.

An exception cannot pass through compiled code.  So the function returns 1, the program stops, and whoever called the
program raises the exception that was kept, on the same thread (`take_raised`).
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from ...core.types import Array, TensorType
from ..emit.steps import PrintSite

_PRINTS: Final = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int64, ctypes.c_void_p)


class _Raised(threading.local):
    """What a function of Python raised that compiled code of this thread called."""

    error: BaseException | None = None


_raised = _Raised()


def take_raised() -> BaseException:
    """The exception that stopped the program, which is forgotten here."""
    error, _raised.error = _raised.error, None
    assert error is not None
    return error


def guarded(function: Callable[[], object]) -> int:
    """Run `function`: 0, or 1 when it raised something, which is kept."""
    try:
        function()
    except BaseException as error:
        _raised.error = error
        return 1
    return 0


def print_function(sites: Sequence[PrintSite]) -> Any:
    """The function that prints for a program with these `sites`, to be called from C while it is referenced."""

    def write(number: int, operands: int) -> None:
        site = sites[number]
        addresses = (ctypes.c_void_p * len(site.types)).from_address(operands)
        values = [
            tensor_at(address, type) for address, type in zip(addresses, site.types, strict=True)
        ]
        sys.stdout.write(site.op.text(values))

    return _PRINTS(lambda number, operands: guarded(lambda: write(number, operands)))


def tensor_at(address: int, type: TensorType) -> Array:
    """The tensor in the memory at an address, to compute with (bf16 as f32); not to be kept, nor written."""
    memory = memoryview((ctypes.c_char * type.bytes).from_address(address))
    stored: Array = np.ndarray(type.shape, type.dtype.storage, memory)
    stored.flags.writeable = False
    return type.dtype.load(stored)
