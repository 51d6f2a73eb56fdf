"""What nests read and write beside whole tensors, in turns on one thread: `python -m benchmarks.accesses`.

Edges of pads, rolls, stencils and concatenations, rows and columns.  Each argument lies alone between pages that are
not mapped, so that an address outside of it is one.  Rows are compiled once as they are, and once for each switch.
"""

from __future__ import annotations

import argparse
import ctypes
import mmap
import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

import nnkit as nk
from nnkit import Rep, Scalar, Tensor1D, Tensor2D, f64
from nnkit.core.schedule.switches import VARIABLE

from .report import OURS, Row, header, seconds, table
from .timing import Batch, alternate, batch, other_load

Vector = Tensor1D[f64]
Matrix = Tensor2D[f64]

_APART = 1 << 22
"""Bytes before and behind an argument that are not mapped: more than the tensors here have."""


def differences(x: Rep[Vector]) -> Rep[Scalar[f64]]:
    return nk.square(x[4:] - 4.0 * x[3:-1] + 6.0 * x[2:-2] - 4.0 * x[1:-3] + x[:-4]).sum()


def rolled(x: Rep[Vector]) -> Rep[Scalar[f64]]:
    return nk.square(nk.roll(x, 1) - 2.0 * x + nk.roll(x, -1)).sum()


def laplacian(u: Rep[Matrix]) -> Rep[Scalar[f64]]:
    around = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
    return nk.square(around - 4.0 * u[1:-1, 1:-1]).sum()


def with_ends(x: Rep[Vector], low: Rep[Vector], high: Rep[Vector]) -> Rep[Scalar[f64]]:
    return nk.square(nk.concat([x, high]) - nk.concat([low, x])).sum()


def twice(x: Rep[Vector]) -> Rep[Vector]:
    return nk.concat([x, 2.0 * x]) + 1.0


Case = tuple[str, Callable[[], Any], Sequence[tuple[int, ...]]]
CASES: Sequence[Case] = (
    ("gradient of fourth differences", lambda: nk.gradient(of=nk.staged(differences), wrt=0), [(100_000,)]),
    ("gradient of rolls", lambda: nk.gradient(of=nk.staged(rolled), wrt=0), [(100_000,)]),
    ("gradient of a Laplacian", lambda: nk.gradient(of=nk.staged(laplacian), wrt=0), [(300, 300)]),
    (
        "gradient of differences with both ends",
        lambda: nk.gradient(of=nk.staged(with_ends), wrt=(0, 1, 2)),
        [(100_000,), (2,), (2,)],
    ),
    ("x beside 2x, plus 1", lambda: nk.staged(twice), [(100_000,)]),
)  # fmt: skip
"""What is computed, what stages it, and the shapes of its arguments."""

WAYS: Mapping[str, str] = {OURS: "", "no cuts": "cuts"}
"""What is disabled in each."""


def apart(array: np.ndarray[Any, np.dtype[np.float64]]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The same numbers, alone in memory."""
    size = -(-array.nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
    memory = mmap.mmap(-1, size + 2 * _APART)
    first = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for hidden in (first, first + _APART + size):
        ctypes.CDLL(None).mprotect(ctypes.c_void_p(hidden), ctypes.c_size_t(_APART), 0)
    found = np.frombuffer(memory, np.float64, array.size, _APART).reshape(array.shape)
    found[...] = array
    return found


def measured(case: Case, rounds: int) -> Row:
    """Seconds of each way."""
    title, stage, shapes = case
    random = np.random.default_rng(0)
    arrays = [apart(random.standard_normal(shape)) for shape in shapes]
    given = [Tensor1D(array) if array.ndim == 1 else Tensor2D(array) for array in arrays]
    calls: dict[str, Batch] = {}
    for way, disabled in WAYS.items():
        os.environ[VARIABLE] = disabled
        staged = stage()
        staged(*given)
        calls[way] = partial(batch, partial(staged, *given), clock=time.thread_time)
    os.environ[VARIABLE] = ""
    found = alternate(calls, rounds, 5)
    return Row(title, dict(found), seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    rounds: int = parser.parse_args().rounds
    print(header("python -m benchmarks.accesses", rounds, other_load()))
    print(table([measured(case, rounds) for case in CASES], list(WAYS), {}))


if __name__ == "__main__":
    main()
