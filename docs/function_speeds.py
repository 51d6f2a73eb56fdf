"""Nanoseconds an element of the elementwise functions, of 8,192 elements that lie in the caches."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from nnkit.jit.emit.math import FUNCTIONS as EMIT
from nnkit.jit.emit.writer import ScalarName
from nnkit.jit.llvm import host_machine
from tests.accuracy import FUNCTIONS
from tests.jit.emit.compiled import loop_over_arrays

SIZE: Final = 8192
ROUNDS: Final = 32
"""Of the loop in a call, so that neither the call counts nor fetching what others have driven from the caches."""
REPEATS: Final = 60
"""Of every function, one after the other, so that what else runs falls on all; the tenth percentile counts."""
TYPES: Final[dict[str, tuple[ScalarName, type[np.floating[Any]]]]] = {
    "f32": ("float", np.float32),
    "f64": ("double", np.float64),
}
DOMAINS: Final = {
    "asin": (-1.0, 1.0),
    "acos": (-1.0, 1.0),
    "atanh": (-1.0, 1.0),
    "acosh": (1.0, 10.0),
    **dict.fromkeys(
        ("sqrt", "rsqrt", "log", "power", "lgamma", "digamma", "trigamma"), (0.1, 10.0)
    ),
    "log1p": (-0.9, 10.0),
    "erfc": (-5.0, 5.0),
}
"""Where operands are taken from, uniformly; of others from (−10, 10)."""


def measure_speeds(names: tuple[str, ...] = tuple(FUNCTIONS)) -> dict[str, dict[str, float]]:
    """Of each function, and first of a loop that copies, by element type."""
    runs: dict[tuple[str, str], Callable[[], None]] = {}
    for name in ("copy", *names):
        for type in TYPES:
            runs[name, type] = _prepared(name, type)
    times: dict[tuple[str, str], list[float]] = {key: [] for key in runs}
    for _ in range(REPEATS):
        for key, run in runs.items():
            before = time.perf_counter()
            run()
            times[key].append(time.perf_counter() - before)
    best = {key: float(np.quantile(found, 0.1)) / (SIZE * ROUNDS) for key, found in times.items()}
    return {
        name: {type: round(best[name, type] * 1e9, 3) for type in TYPES}
        for name in ("copy", *names)
    }


def _prepared(name: str, type: str) -> Callable[[], None]:
    scalar, dtype = TYPES[type]
    random = np.random.default_rng(1)
    count = 1 if name == "copy" else FUNCTIONS[name].operands
    domain = DOMAINS.get(name, (-10.0, 10.0))
    arrays = [random.uniform(*domain, SIZE).astype(dtype) for _ in range(count)]
    arrays.append(np.zeros(SIZE, dtype))
    emit = EMIT.get(name, lambda w, x: x)
    lanes = host_machine().vector_bytes // dtype().itemsize
    native = loop_over_arrays(emit, scalar, lanes, operands=count, rounds=ROUNDS)

    def run(addresses: tuple[int, ...] = tuple(a.ctypes.data for a in arrays)) -> None:
        native(*addresses, arrays[-1].size)

    return run
