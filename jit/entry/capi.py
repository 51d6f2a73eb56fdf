"""The addresses, in this process, of the C functions that a native entry calls."""

import ctypes
import importlib
import os
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from .layout import pointer_at

# positions in the table of NumPy's C API, which NumPy promises not to change (numpy/_core/code_generators/numpy_api.py)
TABLE_VERSION: Final = 0
TABLE_ARRAY_TYPE: Final = 2
TABLE_DTYPE_TYPE: Final = 3
TABLE_NEW: Final = 93
TABLE_VERSIONS: Final = (0x1000009, 0x2000000)
"""`NPY_ABI_VERSION` of NumPy 1 and 2."""


PROCESS_FUNCTIONS: Final = (
    "PyErr_NoMemory",
    "PyErr_SetString",
    "PyLong_FromLongLong",
    "PyObject_Vectorcall",
    "PyTuple_New",
    "PyType_GenericAlloc",
    "Py_DecRef",
    "Py_IncRef",
)
"""What the entry calls of CPython; of NumPy it calls `PyArray_New` alone."""


@cache
def symbols() -> Mapping[str, int]:
    """The addresses of the C functions that an entry calls."""
    found = {name: _address(ctypes.pythonapi[name]) for name in PROCESS_FUNCTIONS}
    found["PyArray_New"] = pointer_at(numpy_table() + 8 * TABLE_NEW)
    return MappingProxyType({**found, COMPARE: _address(_c_library().memcmp)})


COMPARE: Final = "nnkit_compare_bytes"
"""memcmp, under a name that LLVM takes for nothing else: it knows that one, and may call another in its place."""


def _c_library() -> ctypes.CDLL:
    return ctypes.cdll.msvcrt if os.name == "nt" else ctypes.CDLL(None)


def numpy_table() -> int:
    """The address of NumPy's table of C functions."""
    core = "numpy._core" if int(np.__version__.split(".")[0]) >= 2 else "numpy.core"
    capsule = importlib.import_module(f"{core}._multiarray_umath")._ARRAY_API  # the documented name
    prototype = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
    address = prototype(("PyCapsule_GetPointer", ctypes.pythonapi))(capsule, None)
    assert isinstance(address, int)
    return address


def _address(function: Any) -> int:
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address is not None
    return address
