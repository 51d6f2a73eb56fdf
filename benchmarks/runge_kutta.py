"""Compiling the method of Runge and Kutta for y' = tanh(a·y), three states: `python -m benchmarks.runge_kutta`.

From the source to the first result, in a process of its own each: 120 steps with gradient unrolled in Python and as a
loop; and chains of 10 to 10,000 steps, unrolled, with the time of one call.  How long 1,000 steps as a loop take,
beside other libraries, is a row of `python -m benchmarks`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

import nnkit as nk
from nnkit import Rep, Scalar, Tensor1D, Tensor2D, f64

from .asymptotics import WEIGHTS
from .problems import STEP
from .report import header
from .timing import batch, other_load

Matrix = Tensor2D[f64]
Vector = Tensor1D[f64]
Number = Scalar[f64]
UNROLLED = 120
CHAINS = (10, 100, 1_000, 10_000)


@nk.staged
def step(a: Rep[Matrix], y: Rep[Vector]) -> Rep[Vector]:
    k1 = nk.tanh(a @ y)
    k2 = nk.tanh(a @ (y + STEP / 2 * k1))
    k3 = nk.tanh(a @ (y + STEP / 2 * k2))
    k4 = nk.tanh(a @ (y + STEP * k3))
    return y + STEP / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def looped(count: int) -> Any:
    @nk.staged
    def f(a: Rep[Matrix], y: Rep[Vector]) -> Rep[Number]:
        return nk.fori(0, count, lambda _, y: step(a, y), y).sum()

    return f


def unrolled(count: int) -> Any:
    @nk.staged
    def f(a: Rep[Matrix], y: Rep[Vector]) -> Rep[Number]:
        for _ in range(count):
            y = step(a, y)
        return y.sum()

    return f


def compiling(most: int) -> str:
    """The table of the second part."""
    cases = [("loop", UNROLLED), ("unrolled", UNROLLED)]
    cases += [("unrolled", count) for count in CHAINS if count <= most]
    lines = ["| steps, with gradient | seconds to the first result | µs a call |", "|---|---|---|"]
    for kind, count in cases:
        command = [sys.executable, "-m", "benchmarks.runge_kutta", "--one", kind, str(count)]
        found = subprocess.run(command, check=True, capture_output=True, text=True)
        lines.append(f"| {count}, {kind} | {found.stdout.strip()} |")
    return "\n".join(lines)


def compile_one(kind: str, count: int) -> str:
    gradient = nk.gradient_dynamic(of=(looped if kind == "loop" else unrolled)(count), wrt=(0, 1))
    warm = nk.gradient_dynamic(of=looped(1), wrt=(0, 1))
    warm(WEIGHTS, np.ones(3))  # the compiler is loaded, and LLVM is awake
    begin = time.perf_counter()
    gradient(WEIGHTS, np.ones(3))
    first = time.perf_counter() - begin
    call = partial(gradient, WEIGHTS, np.ones(3))
    return f"{first:.2f} | {min(batch(call, 10) for _ in range(5)) * 1e6:.1f}"


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.runge_kutta", description=__doc__)
    parser.add_argument("--most", type=int, default=1_000, help="the longest chain, default 1000")
    parser.add_argument(
        "--one", nargs=2, metavar=("KIND", "STEPS"), help="compile this and no more"
    )
    options = parser.parse_args(arguments)
    if options.one:
        print(compile_one(options.one[0], int(options.one[1])))
        return
    command = " ".join(["python -m benchmarks.runge_kutta", *arguments])
    print(header(command, 1, other_load()), compiling(options.most), sep="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
