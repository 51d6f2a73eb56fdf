"""Finds the BLAS that NumPy has loaded, so that there is no second copy and no second thread pool.

1. threadpoolctl lists the libraries in the process; those with a C interface by one of the known spellings are tried.
   Where it cannot (it reads their paths as UTF-8, which a locale need not have), the system's list is read.
2. `…64_` functions take 64-bit integers.  For plain names the library is asked, or it is taken to be 32-bit.
3. A product of 2 x 2 matrices decides whether the functions do what their names say.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import re
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from ...core.lazy_dataclass import dataclass
from ...core.signal_handlers import pass_on

FUNCTIONS: Final = ("sgemm", "dgemm")
# `CBLAS_LAYOUT` and `CBLAS_TRANSPOSE` of cblas.h
ROW_MAJOR: Final = 101
PLAIN: Final = 111
TRANSPOSED: Final = 112

# Those of the OpenBLAS in NumPy's wheels first, then those of distributions.  A suffix says that integers have 64 bits;
# without one the library has to be asked.
_SPELLINGS: Final = (
    ("scipy_cblas_", "64_"),
    ("cblas_", "64_"),
    ("cblas_", "_64"),
    ("scipy_cblas_", ""),
    ("cblas_", ""),
)


@dataclass(frozen=True)
class Blas:
    """Addresses of the C interface by function (`sgemm`), and the width of its integers."""

    addresses: MappingProxyType[str, int]
    integer_bits: int


@cache
def find_blas() -> Blas | None:
    """The BLAS of this process; None when there is none that works."""
    for path in libraries():
        found = _functions_of(path)
        if found is not None:
            return found
    return None


def libraries() -> list[str]:
    """The paths of the libraries that may be a BLAS."""
    try:
        known = _threadpoolctl().threadpool_info()
    except Exception as error:  # whatever it stumbles over, matrix products must not
        pass_on(error)
        return _mapped_libraries()
    return [str(library["filepath"]) for library in known if library.get("user_api") == "blas"]


def _threadpoolctl() -> Any:
    """The module.  As it is imported it sets a variable of the environment, which children inherit: it is put back."""
    was = os.environ.get(_SET_BY_THREADPOOLCTL)
    module = importlib.import_module("threadpoolctl")
    if was is None:
        os.environ.pop(_SET_BY_THREADPOOLCTL, None)
    return module


_SET_BY_THREADPOOLCTL: Final = "KMP_DUPLICATE_LIB_OK"


def _mapped_libraries() -> list[str]:
    """Those with the name of a BLAS among the files that Linux says are mapped; elsewhere none."""
    try:
        lines = _MAPS.read_bytes().splitlines()
    except OSError:
        return []
    files = dict.fromkeys(line.split(maxsplit=5)[5] for line in lines if line.count(b"/"))
    named = [file for file in files if _NAMED_AS_BLAS.search(file.rpartition(b"/")[2])]
    return [*map(os.fsdecode, named)]


_MAPS: Final = Path("/proc/self/maps")
_NAMED_AS_BLAS: Final = re.compile(rb"(blas|blis|mkl_rt).*\.so")


def _functions_of(path: str) -> Blas | None:
    try:
        library = ctypes.CDLL(path)
    except (OSError, ValueError):  # not there, or no name of a file in this locale
        return None
    for prefix, suffix in _SPELLINGS:
        functions = {name: getattr(library, f"{prefix}{name}{suffix}", None) for name in FUNCTIONS}
        if all(functions.values()):
            bits = 64 if "64" in suffix or is_wide(library) else 32
            if all(_multiplies(functions[name], name, bits) for name in ("sgemm", "dgemm")):
                addresses = {name: _address(function) for name, function in functions.items()}
                return Blas(MappingProxyType(addresses), bits)
    return None


def is_wide(library: ctypes.CDLL) -> bool:
    """Whether an OpenBLAS without a suffix says that its integers have 64 bits."""
    config = getattr(library, "openblas_get_config", None)
    if config is None:
        return False
    config.restype = ctypes.c_char_p
    described: bytes = config() or b""
    return b"USE64BITINT" in described


def _multiplies(function: Any, name: str, bits: int) -> bool:
    """Whether the product of two small matrices comes out right."""
    dtype = np.float32 if name[0] == "s" else np.float64
    number = ctypes.c_float if name[0] == "s" else ctypes.c_double
    integer = ctypes.c_int64 if bits == 64 else ctypes.c_int32
    x, y = np.array([[1, 2], [3, 4]], dtype), np.array([[5, 6], [7, 8]], dtype)
    z = np.zeros((2, 2), dtype)
    two = integer(2)
    call = ctypes.CFUNCTYPE(
        None, *[ctypes.c_int] * 3, *[integer] * 3, number, ctypes.c_void_p, integer,
        ctypes.c_void_p, integer, number, ctypes.c_void_p, integer,
    )(_address(function))  # fmt: skip
    call(
        ROW_MAJOR, PLAIN, TRANSPOSED, two, two, two, number(1), x.ctypes.data, two, y.ctypes.data, two,
        number(0), z.ctypes.data, two,
    )  # fmt: skip
    return z.tolist() == [[17, 23], [39, 53]]


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0
