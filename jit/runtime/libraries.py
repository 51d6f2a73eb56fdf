"""Finds the libraries with a BLAS and a LAPACK that NumPy has loaded, so that there is no second copy of them.

threadpoolctl lists the libraries in the process.  Where it cannot (it reads their paths as UTF-8, which a locale need
not have), the system's list is read.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import re
from pathlib import Path
from typing import Any, Final

from ...core.signal_handlers import pass_on


def libraries() -> list[str]:
    """The paths of the libraries that may have a LAPACK: those that are a BLAS."""
    try:
        known = _threadpoolctl().threadpool_info()
    except Exception as error:  # whatever it stumbles over, functions of matrices must not
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


def is_wide(library: ctypes.CDLL) -> bool:
    """Whether an OpenBLAS without a suffix says that its integers have 64 bits."""
    config = getattr(library, "openblas_get_config", None)
    if config is None:
        return False
    config.restype = ctypes.c_char_p
    described: bytes = config() or b""
    return b"USE64BITINT" in described
