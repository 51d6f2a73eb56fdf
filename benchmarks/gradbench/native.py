"""The problems as loops in C++ with derivatives by hand (`cpp/`), compiled by g++ and called through ctypes."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np

from . import ba
from .protocol import Json

SOURCES = Path(__file__).parent / "cpp"
FLAGS = ("-O3", "-march=native", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC")
FAST = "-ffast-math"
"""What lets g++ use vectors for exp and tanh, and reorder sums."""
Array = np.ndarray[Any, Any]
Call = Callable[[], list[Array]]


@cache
def library(name: str, *flags: str) -> ctypes.CDLL:
    """The compiled source.  Raises: OSError, CalledProcessError where there is no g++."""
    made = Path(mkdtemp(prefix="gradbench-")) / f"{name}.so"
    command = ["g++", *FLAGS, *flags, str(SOURCES / f"{name}.cpp"), "-o", str(made)]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(made))


def build(module: str, function: str, given: Json, *flags: str) -> Call:
    """A call that gives the results as arrays, which the next call overwrites."""
    entry = getattr(library(module, *flags), function)
    arguments, results = BUILD[module](function, given)
    passed = [_argument(value) for value in (*arguments, *results)]
    if results:
        entry.restype = None

        def fill() -> list[Array]:
            entry(*passed)
            return results

        return fill
    entry.restype = ctypes.c_double
    return lambda: [np.array(entry(*passed))]


def _argument(value: Any) -> Any:
    """Arrays are given by their addresses; who calls keeps them."""
    if isinstance(value, np.ndarray):
        return value.ctypes.data_as(ctypes.c_void_p)
    return ctypes.c_double(value) if isinstance(value, float) else ctypes.c_int64(value)


def arrays(given: Json, *names: str) -> list[Array]:
    return [np.array(given[name], np.float64) for name in names]


def lse(function: str, given: Json) -> tuple[list[Any], list[Array]]:
    (x,) = arrays(given, "x")
    return [x.size, x], [np.empty_like(x)] if function == "gradient" else []


def gmm(function: str, given: Json) -> tuple[list[Any], list[Array]]:
    parameters = arrays(given, "alpha", "mu", "q", "l")
    sizes, prior = [given[name] for name in "ndk"], [float(given[name]) for name in ("gamma", "m")]
    results = [np.empty_like(each) for each in parameters] if function == "jacobian" else []
    return [*sizes, *prior, *parameters, *arrays(given, "x")], results


def lstm(function: str, given: Json) -> tuple[list[Any], list[Array]]:
    data = arrays(given, "main_params", "extra_params", "state", "sequence")
    main, extra, state, sequence = data
    results = [np.empty_like(main), np.empty_like(extra)] if function == "jacobian" else []
    return [len(state) // 2, *sequence.shape, *data], results


def kmeans(function: str, given: Json) -> tuple[list[Any], list[Array]]:
    points, centroids = arrays(given, "points", "centroids")
    results = [np.empty_like(centroids)] if function == "dir" else []
    return [len(points), *centroids.shape, points, centroids], results


def adjustment(function: str, given: Json) -> tuple[list[Any], list[Array]]:
    """The same arrays as for our own."""
    n, m, p = (given[name] for name in "nmp")
    shared = scene_of(given)
    if function == "objective":
        return [p, *shared], [np.empty((p, 2)), np.empty(p)]
    where = [np.empty(31 * p, np.int64), np.empty(3 * p + 1, np.int64)]
    return [p, n, m, *shared], [np.empty(31 * p), *where]


def scene_of(given: Json) -> list[Array]:
    """Cameras, points, weights, features, and which camera and point each observation has."""
    (s,) = ba.prepare(given)
    floats = s.cameras.numpy(), s.points.numpy(), s.weights.numpy(), s.features.numpy()
    return [*floats, s.camera.numpy(), s.point.numpy()]


BUILD = {"lse": lse, "gmm": gmm, "lstm": lstm, "kmeans": kmeans, "ba": adjustment}
