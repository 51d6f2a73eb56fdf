"""What docs/generate_accuracy.py takes for the truth: functions in quad precision, and of all floats in double.

They are C, compiled here by gcc and loaded: `accuracy_oracle.c` and `accuracy_of_floats.c`.
"""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

HERE: Final = Path(__file__).parent
ODD: Final = ("sin", "tan", "asin", "atan", "sinh", "tanh", "asinh", "atanh", "erf", "cbrt")
EVEN: Final = ("cos", "cosh", "sinc")
OF_OTHER_NAMES: Final = ("exp", "expm1", "log", "sinh", "cosh", "erfc", "lgamma")
"""In `accuracy_of_floats.c` they have an underscore behind, as libm has them too."""


@dataclass(frozen=True)
class Way:
    """Where a loop of compiled code is, `f(operands, results, count)`, and which way before it gives the same bits."""

    address: int
    same: int = -1


def _load(source: str, *flags: str) -> ctypes.CDLL:
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "oracle.so"
        command = ["gcc", "-shared", "-fPIC", str(HERE / source), "-o", str(library)]
        subprocess.run([*command, *flags], check=True)
        return ctypes.CDLL(str(library))


def _address(array: Array | None) -> ctypes.c_void_p | None:
    return None if array is None else ctypes.c_void_p(array.ctypes.data)


class QuadOracle:
    """Quad precision, for samples: it takes microseconds for each."""

    def __init__(self) -> None:
        self._library = _load("accuracy_oracle.c", "-O2", "-lquadmath")

    def evaluate(self, name: str, *operands: Array) -> Array:
        """Quads, as 16 bytes each."""
        arrays = [np.ascontiguousarray(operand, np.float64) for operand in operands]
        exact = np.empty(16 * arrays[0].size, np.uint8)
        second = arrays[1] if len(arrays) > 1 else arrays[0]
        found = self._library.evaluate(
            name.encode(), ctypes.c_long(arrays[0].size), *map(_address, (arrays[0], second, exact))
        )
        if found != 0:
            raise LookupError(f"{name} is not in accuracy_oracle.c")
        return exact

    def parts(self, exact: Array) -> tuple[Array, Array]:
        """Quads as sums of two doubles."""
        size = exact.size // 16
        high, low = np.empty(size), np.empty(size)
        self._library.parts(ctypes.c_long(size), *map(_address, (exact, high, low)))
        return high, low

    def distances(self, exact: Array, result: Array, slack: Array | None) -> Array:
        """Errors as `tests.accuracy.ulps` has them."""
        info = np.finfo(result.dtype)
        wide = np.ascontiguousarray(result, np.float64)
        out = np.empty(result.size)
        self._library.distances(
            ctypes.c_long(result.size),
            _address(exact),
            _address(wide),
            _address(slack),
            int(info.nmant) + 1,
            int(info.minexp) + 1,
            int(info.maxexp),
            _address(out),
        )
        return out


class DoubleOracle:
    """Double precision by vectors, for all floats: it takes nanoseconds for each, and needs x86-64 and glibc 2.35."""

    def __init__(self) -> None:
        self._library = _load(
            "accuracy_of_floats.c",
            *("-O3", "-march=native", "-mprefer-vector-width=512"),
            *("-fno-math-errno", "-fopenmp-simd", "-lmvec", "-lm"),
        )

    def examine(self, name: str, ways: Sequence[Way], floats: range) -> list[tuple[float, float]]:
        """The largest error of each way, and where, at the floats of such bits and their negatives.

        Of a way that must be the `same` as one before it: in how many floats it differs.
        """
        addresses = (ctypes.c_void_p * len(ways))(*(way.address for way in ways))
        same = (ctypes.c_int * len(ways))(*(way.same for way in ways))
        greatest, places = (ctypes.c_double * len(ways))(), (ctypes.c_float * len(ways))()
        parity = -1 if name in ODD else 1 if name in EVEN else 0
        for_c = f"{name}_" if name in OF_OTHER_NAMES else name
        first, count = ctypes.c_uint32(floats.start), ctypes.c_long(len(floats))
        arguments = (first, count, len(ways), addresses, same, greatest, places)
        if self._library.examine(for_c.encode(), parity, *arguments):
            raise LookupError(f"{name} is not in accuracy_of_floats.c")
        return list(zip(greatest, places, strict=True))
