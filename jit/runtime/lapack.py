"""Finds the LAPACK that NumPy has loaded, which most often lies in the library of its BLAS.

1. Of the libraries that may be a BLAS (`libraries`), and those that NumPy calls itself, the first is taken that
   has every routine by one of the known spellings.  They have the interface of Fortran: every argument is an address.
2. `…64_` routines take 64-bit integers.  For plain names the library is asked, or it is taken to be 32-bit.
3. The factor of a 2 x 2 matrix decides whether they do what their names say.
"""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from ...core.lazy_dataclass import dataclass
from .libraries import is_wide, libraries

ROUTINES: Final = ("potrf", "getrf", "getrs", "trtrs", "geqrf", "orgqr", "syevd", "gesdd")

# That of NumPy's wheels first, then those of distributions and of Apple.  A 64 says that integers have 64 bits.
_SPELLINGS: Final = ("scipy_{}_64_", "{}_64_", "{}64_", "{}$NEWLAPACK$ILP64", "scipy_{}_", "{}_")


@dataclass(frozen=True)
class Lapack:
    """Addresses by routine (`dpotrf`), and the width of the integers."""

    addresses: MappingProxyType[str, int]
    integer_bits: int


@cache
def find_lapack() -> Lapack | None:
    """The LAPACK of this process; None when there is none that works."""
    for path in (*libraries(), *_extensions()):
        found = _routines_of(path)
        if found is not None:
            return found
    return None


def _extensions() -> list[str]:
    """NumPy's module that calls the LAPACK: looked up in it, a symbol is that of the library it is linked to."""
    return [*map(str, Path(np.linalg.__file__).parent.glob("_umath_linalg*"))]


def _routines_of(path: str) -> Lapack | None:
    try:
        library = ctypes.CDLL(path)
    except (OSError, ValueError):  # not there, or no name of a file in this locale
        return None
    names = [letter + routine for letter in "sd" for routine in ROUTINES]
    for spelling in _SPELLINGS:
        routines = {name: getattr(library, spelling.format(name), None) for name in names}
        if all(routines.values()):
            bits = 64 if "64" in spelling or is_wide(library) else 32
            if all(_factors(routines[name], name, bits) for name in ("spotrf", "dpotrf")):
                addresses = {name: _address(routine) for name, routine in routines.items()}
                return Lapack(MappingProxyType(addresses), bits)
    return None


def _factors(routine: Any, name: str, bits: int) -> bool:
    """Whether the Cholesky factor of a small matrix comes out right."""
    x = np.array([[4, 2], [2, 5]], np.float32 if name[0] == "s" else np.float64)
    integer = ctypes.c_int64 if bits == 64 else ctypes.c_int32
    order, info = integer(2), integer(-1)
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 5, ctypes.c_size_t)(_address(routine))
    two = ctypes.byref(order)
    call(
        ctypes.cast(ctypes.c_char_p(b"U"), ctypes.c_void_p), ctypes.cast(two, ctypes.c_void_p), x.ctypes.data,
        ctypes.cast(two, ctypes.c_void_p), ctypes.cast(ctypes.byref(info), ctypes.c_void_p), 1,
    )  # fmt: skip
    return info.value == 0 and np.tril(x).tolist() == [[2, 0], [1, 2]]


def _address(routine: Any) -> int:
    return ctypes.cast(routine, ctypes.c_void_p).value or 0
