"""How everything grows: `python -m benchmarks.scale [KIND …] [--most N] [--output FILE]`.

    operations   a chain of elementwise functions and sums of rows, so many instructions, on 8 × 64 numbers
    numbers      the gradient of so many sines of numbers, each of the one before
    elements     value and gradient of Σ tanh(x)·x, of so many numbers
    layers       value and gradient of a perceptron 64 wide, batch 32, of so many layers
    steps        the gradient of so many steps of Euler's method for tanh(a·y) in a loop
    threads      a product 1024×1024 and tanh of 2²⁴ numbers, on so many threads

Each size runs in a process of its own, on one core unless it is threads that grow.  A row has the seconds from the
source to the first result, after another program was compiled, the kilobytes of machine code, and the shortest of
several calls in µs; seconds are CPU seconds of the process, but of a clock where threads grow.  Exponents are those of
each from the last size but one to the last: 1 is linear.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

import nnkit as nk
from nnkit import Rep, Scalar, Tensor1D, Tensor2D, f32
from nnkit.jit.llvm import host_engine

from . import problems
from .asymptotics import steps
from .report import header
from .timing import batch, other_load
from .worker import confined
from .workloads_nnkit import model, parameters

Matrix = Tensor2D[f32]
Vector = Tensor1D[f32]
Number = Scalar[f32]
Case = tuple[Any, tuple[Any, ...]]
"""A compiled function and its arguments."""

CALLS: Final = 5
"""Whose shortest counts, but no more than take `PATIENCE` seconds."""
PATIENCE: Final = 2.0
SHORT: Final = 1e-3
"""Seconds that calls are repeated for, so that they can be measured."""
WIDTH, BATCH = 64, 32
OF_A_STEP: Final = 5
"""Instructions that `operations` adds at once."""


@dataclass(frozen=True)
class Measured:
    """Of one size: seconds to the first result, bytes of code, seconds of a call."""

    size: int
    compile: float
    code: float
    call: float


def operations(size: int) -> Case:
    @nk.staged
    def f(x: Rep[Matrix]) -> Rep[Matrix]:
        y = x
        for k in range(max(1, size // OF_A_STEP)):
            y = nk.tanh(y) * x + 0.5
            if k % 10 == 9:
                y = y - y.mean(axis=1, keepdims=True)
        return y

    return f, (Tensor2D(np.full((8, 64), 0.5, np.float32)),)


def numbers(size: int) -> Case:
    @nk.staged
    def f(x: Rep[Vector]) -> Rep[Number]:
        y = x[0]
        for k in range(size):
            y = nk.sin(y) * x[k % 8] + y
        return y

    return nk.gradient(of=f, wrt=0), (Tensor1D(np.full(8, 0.5, np.float32)),)


def elements(size: int) -> Case:
    @nk.staged
    def f(x: Rep[Vector]) -> Rep[Number]:
        return (nk.tanh(x) * x).sum()

    return nk.value_and_gradient(of=f, wrt=0), (Tensor1D(np.full(size, 0.5, np.float32)),)


def layers(size: int) -> Case:
    _, loss = model()
    random = np.random.default_rng(0)
    data = problems.step((WIDTH,) * (size + 1), BATCH)(random)
    x, labels = Tensor2D(data["x"], f32), Tensor1D(data["labels"])
    return nk.value_and_gradient(of=loss, wrt=0), (parameters(data), x, labels)


def time_steps(size: int) -> Case:
    _, derivative, arguments = steps(size)
    return derivative, arguments


def product(size: int) -> Case:
    @nk.staged
    def f(a: Rep[Matrix], b: Rep[Matrix]) -> Rep[Matrix]:
        return a @ b

    data = problems.product(1024)(np.random.default_rng(0))
    return f, (Tensor2D(data["a"], f32), Tensor2D(data["b"], f32))


def elementwise(size: int) -> Case:
    @nk.staged
    def f(x: Rep[Vector]) -> Rep[Vector]:
        return nk.tanh(x)

    return f, (Tensor1D(np.full(2**24, 0.5, np.float32)),)


KINDS: Final[Mapping[str, tuple[Callable[[int], Case], Sequence[int]]]] = {
    "operations": (operations, (10, 100, 1_000, 10_000)),
    "numbers": (numbers, (10, 100, 300, 1_000, 3_000)),
    "elements": (elements, tuple(10**k for k in range(9))),
    "layers": (layers, (1, 2, 5, 10, 20, 50, 100, 200)),
    "steps": (time_steps, tuple(10**k for k in range(6))),
    "product, threads": (product, (1, 2)),
    "tanh, threads": (elementwise, (1, 2)),
}
"""What grows, and its sizes."""
THREADS: Final = "threads"
MOST: Final = {"compile": 1.15, "code": 1.1, "call": 1.15}
"""Exponents above which something grows faster than it should; noise reaches the last digit."""


def measure(kind: str, size: int) -> Measured:
    """In this process."""
    warm, given = elements(10)
    warm(*given)  # the compiler is loaded, and LLVM is awake
    clock = time.perf_counter if THREADS in kind else time.process_time
    begin = clock()
    function, arguments = KINDS[kind][0](size)
    function(*arguments)
    compiled = clock() - begin
    code = len(host_engine().object_code(function.llvm(*arguments)))
    once = batch(partial(function, *arguments), 1, clock=clock)
    count = max(1, round(SHORT / max(once, 1e-7)))
    found: list[float] = []
    while len(found) < CALLS and sum(found) * count < PATIENCE:
        found.append(batch(partial(function, *arguments), count, clock=clock))
    return Measured(size, compiled, code, min(found))


def in_a_process(kind: str, size: int) -> Measured:
    """In a new one, on as many cores as threads are asked for."""
    command = [sys.executable, "-m", "benchmarks.scale", kind, "--size", str(size)]
    with confined(size if THREADS in kind else 1):
        finished = subprocess.run(command, capture_output=True, text=True, check=True)
    return Measured(**json.loads(finished.stdout))


def exponent(row: Sequence[Measured], what: str) -> float:
    """How it grows from the last size but one to the last; not a number for a single size."""
    if len(row) < 2:
        return math.nan
    *_, small, large = row
    growth = getattr(large, what) / getattr(small, what)
    return math.log(growth) / math.log(large.size / small.size)


def table(kind: str, row: Sequence[Measured]) -> str:
    """One line a size, in Markdown, and the exponents, or for threads how many times as fast more are."""
    lines = [
        f"| {kind} | to the first result, s | machine code, kB | a call, µs |",
        "|---|---:|---:|---:|",
    ]
    for one in row:
        times = f"{one.compile:.3f} | {one.code / 1e3:,.1f} | {one.call * 1e6:,.2f}"
        lines.append(f"| {one.size:,} | {times} |")
    if THREADS in kind:
        return "\n".join([*lines, f"| faster | | | {row[0].call / row[-1].call:.2f} |"])
    exponents = {what: exponent(row, what) for what in MOST}
    shown = [f"{found:.2f}" + "!" * (found > MOST[what]) for what, found in exponents.items()]
    return "\n".join([*lines, f"| exponent | {' | '.join(shown)} |"])


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help="what to measure; else all")
    parser.add_argument("--most", type=int, help="the largest size")
    parser.add_argument("--size", type=int, help="measure one kind here, and print JSON")
    parser.add_argument("--output", type=Path, help="also write the tables to this file")
    options = parser.parse_args(arguments)
    kinds: list[str] = options.kinds or list(KINDS)
    for kind in kinds:
        if kind not in KINDS:
            parser.error(f"no kind {kind!r}; there are {', '.join(KINDS)}")
    if options.size is not None:
        print(json.dumps(asdict(measure(kinds[0], options.size))))
        return
    command = " ".join(["python -m benchmarks.scale", *arguments])
    parts = [header(command, CALLS, other_load(), clock="CPU seconds but for threads")]
    print(parts[0])
    for kind in kinds:
        sizes = [size for size in KINDS[kind][1] if options.most is None or size <= options.most]
        parts.append(table(kind, [in_a_process(kind, size) for size in sizes]))
        print(parts[-1], end="\n\n", flush=True)
    if options.output:
        options.output.write_text("# How everything grows\n\n" + "\n\n".join(parts) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
