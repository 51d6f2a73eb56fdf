"""What compiled code calls to print: shows the values of a `print`."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from typing import Any, Final

from ...core.host_calls import guarded, loaded
from ..emit.sites import PrintSite

_PRINTS: Final = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int64, ctypes.c_void_p)


def print_function(sites: Sequence[PrintSite]) -> Any:
    """The function that prints for a program with these `sites`, to be called from C while it is referenced."""

    def write(number: int, operands: int) -> None:
        site = sites[number]
        addresses = (ctypes.c_void_p * len(site.types)).from_address(operands)
        values = [loaded(at, type) for at, type in zip(addresses, site.types, strict=True)]
        sys.stdout.write(site.op.text(values))

    def call(number: int, operands: int) -> int:
        return guarded(lambda: write(number, operands))

    return _PRINTS(call)
