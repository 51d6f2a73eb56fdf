"""Matrix products by kernels and by the BLAS, in turns on one thread: `python -m benchmarks.products`.

Each row is one form of product with what follows it: by kernels, by kernels with that in loops of its own, and by
the BLAS (`NNKIT_DISABLE=kernels`).  Seconds are those of the thread; GF/s are thousand millions of operations a second.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import nnkit as nk
from nnkit import Rep, Tensor1D, Tensor2D, f32
from nnkit.core.schedule.switches import VARIABLE

from .report import OURS, Row, header, seconds, table
from .timing import Batch, alternate, batch, other_load

Matrix = Tensor2D[f32]


def plain(a: Rep[Matrix], b: Rep[Matrix]) -> Rep[Matrix]:
    return a @ b


def turned(a: Rep[Matrix], b: Rep[Matrix]) -> Rep[Matrix]:
    return a @ b.transpose()


def layer(a: Rep[Matrix], b: Rep[Matrix], bias: Rep[Tensor1D[f32]]) -> Rep[Matrix]:
    return nk.relu(a @ b + bias)


def update(a: Rep[Matrix], b: Rep[Matrix], w: Rep[Matrix]) -> Rep[Matrix]:
    return w - 0.1 * (a.transpose() @ b)


Case = tuple[str, Callable[..., Rep[Matrix]], tuple[int, int, int]]
CASES: Sequence[Case] = (
    *(("a · b", plain, (n, n, n)) for n in (32, 64, 128, 256, 384)),
    *(("a · bᵀ", turned, (n, n, n)) for n in (64, 256)),
    ("relu(a · b + c)", layer, (64, 784, 256)),
    ("relu(a · b + c)", layer, (64, 256, 128)),
    ("a · bᵀ", turned, (64, 128, 256)),
    ("w - 0.1 · aᵀ · b", update, (784, 64, 256)),
    ("w - 0.1 · aᵀ · b", update, (256, 64, 128)),
)
"""What is computed, and rows, products in each sum, and columns."""

WAYS: Mapping[str, str] = {OURS: "", "no epilogues": "epilogues", "BLAS": "kernels"}
"""What is disabled in each."""


def arguments(f: Callable[..., Rep[Matrix]], m: int, k: int, n: int) -> list[Any]:
    """Random ones, as the function takes them."""
    random = np.random.default_rng(0)
    shapes: list[tuple[int, ...]] = [
        (k, m) if f is update else (m, k),
        (n, k) if f is turned else (k, n),
    ]
    shapes += [(n,)] if f is layer else [(m, n)] if f is update else []
    arrays = [random.standard_normal(shape).astype(np.float32) for shape in shapes]
    return [Tensor1D(array) if array.ndim == 1 else Tensor2D(array) for array in arrays]


def measured(case: Case, rounds: int) -> Row:
    """Seconds of each way."""
    title, f, (m, k, n) = case
    given = arguments(f, m, k, n)
    calls: dict[str, Batch] = {}
    for way, disabled in WAYS.items():
        os.environ[VARIABLE] = disabled
        staged = nk.staged(f)
        staged(*given)
        calls[way] = partial(batch, partial(staged, *given), clock=time.thread_time)
    os.environ[VARIABLE] = ""
    found = alternate(calls, rounds, 5)
    rate = 2 * m * k * n / found[OURS].median / 1e9
    return Row(f"{title}, {m} x {k} x {n}: {rate:.0f} GF/s", dict(found), seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    rounds: int = parser.parse_args().rounds
    print(header("python -m benchmarks.products", rounds, other_load()))
    print(table([measured(case, rounds) for case in CASES], list(WAYS), {}))


if __name__ == "__main__":
    main()
