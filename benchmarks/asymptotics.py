"""How gradients grow with programs: `python -m benchmarks.asymptotics [KIND …] [--most N]`.

    calls        a chain of functions, each of which calls the one before
    unrolled     as many calls of a function, a step of a Runge-Kutta method for tanh(a·y)
    product      x · (x · (x · …)), one instruction a factor
    norm         x[i] / |x| summed in a loop over i: the norm is computed once, forward and backward
    rows         rows of a matrix read in a loop, one an iteration
    rows-late    the same, where the number of iterations is an argument
    updates      a mutable array whose elements are written in a loop, each made of the one before
    steps        Euler's method for tanh(a·y), three states
    while        the same in a `while_loop`
    saved        Euler's method for tanh(w·y), elements of a hundred by themselves, whose states are all saved
    every-sqrt   the same, with the states of every √n-th step saved
    binomial     the same, with at most eight states saved
    recursion    xⁿ by a function that calls itself n times
    order        derivatives of order n of tanh(x)·x
    taylor       coefficient n of the Taylor series of tanh(x)·x

Each size runs in a process of its own.  A row has the instructions of the gradient after differentiation, the seconds
from the source to the first result, the median of calls of the function and of its gradient in µs, and by how many MiB
the process grew at its largest, compiler and code included.  The exponents are those of instructions and of calls of
the gradient, from the last size but one to the last: 1 is linear.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np

import nnkit as nk
from nnkit import Rep, Scalar, Tensor1D, Tensor2D, f64, i32, i64
from nnkit.core.ir.surgery import walk
from nnkit.core.text import parse_module

from . import problems

Number = Scalar[f64]
Count = Scalar[i64]
Row = Tensor1D[f64]
Matrix = Tensor2D[f64]

REPEATS: Final = 5
"""Calls whose median counts: enough to leave out an interruption, few enough for calls of a second."""


@dataclass(frozen=True)
class Measured:
    """What a gradient of one size takes: instructions, seconds, µs a call of f and of its gradient, MiB."""

    size: int
    instructions: int
    compile: float
    forward: float
    gradient: float
    mebibytes: float


WEIGHTS: Final = np.array(problems.WEIGHTS)
"""Of Euler's steps."""

Problem = tuple[Any, Any, tuple[Any, ...]]
"""A function, its derivative, and arguments for both."""


def calls(size: int) -> Problem:
    """sin(… sin(x) · x …) · x, a function a level."""

    def link(before: Any) -> Any:
        return nk.staged(_named(lambda x: nk.sin(before(x)) * x))

    f: Any = nk.staged(_named(lambda x: nk.sin(x)))
    for _ in range(size):
        f = link(f)
    return f, nk.gradient_dynamic(of=f, wrt=(0,)), (f64(0.7),)


def _named(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """With the types of a function of one number."""

    def f(x: Rep[Number]) -> Rep[Number]:
        result: Rep[Number] = function(x)
        return result

    return f


def unrolled(size: int) -> Problem:
    @nk.staged
    def step(a: Rep[Matrix], y: Rep[Row]) -> Rep[Row]:
        k1 = nk.tanh(a @ y)
        k2 = nk.tanh(a @ (y + 0.005 * k1))
        k3 = nk.tanh(a @ (y + 0.005 * k2))
        k4 = nk.tanh(a @ (y + 0.01 * k3))
        return y + 0.01 / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    @nk.staged
    def f(a: Rep[Matrix], y: Rep[Row]) -> Rep[Number]:
        for _ in range(size):
            y = step(a, y)
        return y.sum()

    return f, nk.gradient(of=f, wrt=(0, 1)), (WEIGHTS, np.ones(3))


def product(size: int) -> Problem:
    @nk.staged
    def f(x: Rep[Number]) -> Rep[Number]:
        y = x
        for _ in range(size):
            y = x * y
        return y

    return f, nk.gradient(of=f, wrt=0), (f64(0.9999),)


def norm(size: int) -> Problem:
    @nk.staged
    def f(x: Rep[Row]) -> Rep[Number]:
        return nk.fori(0, size, lambda i, c: c + nk.sin(x[i] / nk.norm(x)), nk.const(f64(0.0)))

    return f, nk.gradient(of=f, wrt=0), (np.linspace(0, 1, size),)


def rows(size: int) -> Problem:
    @nk.staged
    def f(x: Rep[Matrix]) -> Rep[Number]:
        return nk.fori(0, size, lambda i, c: c + nk.sin(x[i]).sum() * c, nk.const(f64(1.0)))

    return f, nk.gradient(of=f, wrt=0), (np.full((size, 4), 1e-6),)


def rows_late(size: int) -> Problem:
    @nk.staged
    def f(x: Rep[Matrix], n: Rep[Count]) -> Rep[Number]:
        return nk.fori(0, n, lambda i, c: c + nk.sin(x[i]).sum() * c, nk.const(f64(1.0)))

    return f, nk.gradient(of=f, wrt=0), (np.full((size, 4), 1e-6), i64(size))


def updates(size: int) -> Problem:
    @nk.staged
    def f(x: Rep[Row], n: Rep[Count]) -> Rep[Number]:
        r = nk.ref(x)

        def body(i: Rep[Scalar[i32]], c: Rep[Number]) -> Rep[Number]:
            r[i] += nk.sin(r[i - 1])
            return c * r[i]

        c = nk.fori(1, n, body, nk.const(f64(1.0)))
        return r.value.sum() + c

    return f, nk.gradient(of=f, wrt=0), (np.full(size, 0.5), i64(size))


def _step(a: Rep[Matrix], y: Rep[Row]) -> Rep[Row]:
    return y + 0.01 * nk.tanh(a @ y)


def steps(size: int) -> Problem:
    @nk.staged
    def f(a: Rep[Matrix], y: Rep[Row]) -> Rep[Number]:
        return nk.fori(0, size, lambda _, y: _step(a, y), y).sum()

    return f, nk.gradient(of=f, wrt=(0, 1)), (WEIGHTS, np.ones(3))


def while_steps(size: int) -> Problem:
    @nk.staged
    def f(a: Rep[Matrix], y: Rep[Row], n: Rep[Count]) -> Rep[Number]:
        start = nk.const(i64(0)), y
        return nk.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, _step(a, c[1])), start)[
            1
        ].sum()

    return f, nk.gradient(of=f, wrt=(0, 1)), (WEIGHTS, np.ones(3), i64(size))


SLOTS: Final = 8
"""Of `binomial`: enough for 10⁵ steps to be computed few times again, far fewer than `every-sqrt` saves."""


def scheduled(schedule: nk.LoopSchedule | None) -> Callable[[int], Problem]:
    def problem(size: int) -> Problem:
        @nk.staged
        def f(w: Rep[Row], y: Rep[Row]) -> Rep[Number]:
            def step(_: Rep[Scalar[i32]], y: Rep[Row]) -> Rep[Row]:
                return y + 0.01 * nk.tanh(w * y)

            return nk.fori(0, size, step, y, checkpoint=schedule).sum()

        # Positive weights: with others, states decay to subnormal numbers, which are slow.
        return f, nk.gradient(of=f, wrt=(0, 1)), (np.linspace(0.1, 1, 100), np.ones(100))

    return problem


def recursion(size: int) -> Problem:
    @nk.staged
    def power(x: Rep[Number], n: Rep[Count]) -> Rep[Number]:
        return nk.cond(n == 0, lambda: x * 0 + 1, lambda: x * power(x, n - 1))

    return power, nk.gradient(of=power, wrt=0), (f64(0.9999), i64(size))


def order(size: int) -> Problem:
    @nk.staged
    def f(x: Rep[Number]) -> Rep[Number]:
        return nk.tanh(x) * x

    derivative: Any = f
    for _ in range(size):
        derivative = nk.gradient(of=derivative, wrt=0)
    return f, derivative, (f64(0.3),)


def taylor(size: int) -> Problem:
    @nk.staged
    def f(x: Rep[Number]) -> Rep[Number]:
        return nk.tanh(x) * x

    @nk.staged
    def last(x: Rep[Number]) -> Rep[Number]:
        series: Any = nk.taylor(of=f, order=size, wrt=0)(x, nk.const(f64(1.0)))
        coefficient: Rep[Number] = series[size]
        return coefficient

    return f, last, (f64(0.3),)


KINDS: Final[Mapping[str, tuple[Callable[[int], Problem], Sequence[int]]]] = {
    "calls": (calls, (10, 100, 1_000)),
    "unrolled": (unrolled, (10, 30, 120, 1_000)),
    "product": (product, (10, 100, 1_000, 10_000)),
    "norm": (norm, (100, 1_000, 10_000, 100_000)),
    "rows": (rows, (100, 1_000, 10_000, 100_000)),
    "rows-late": (rows_late, (100, 1_000, 10_000, 100_000)),
    "updates": (updates, (100, 1_000, 10_000, 100_000)),
    "steps": (steps, (100, 1_000, 10_000, 100_000)),
    "while": (while_steps, (100, 1_000, 10_000, 100_000)),
    "saved": (scheduled(None), (100, 1_000, 10_000, 100_000)),
    "every-sqrt": (scheduled(nk.every_sqrt()), (100, 1_000, 10_000, 100_000)),
    "binomial": (scheduled(nk.binomial(SLOTS)), (100, 1_000, 10_000, 100_000)),
    "recursion": (recursion, (10, 100, 1_000, 10_000)),
    "order": (order, (1, 2, 3, 4, 5, 6)),
    "taylor": (taylor, (1, 2, 4, 8, 16, 32)),
}


def instructions(derivative: Any, arguments: Sequence[Any]) -> int:
    """How many there are in all functions, after differentiation."""
    module = parse_module(derivative.ir(*arguments, stage="optimizable"))
    bodies = (function.body for function in module.functions.values())
    return sum(1 for body in bodies if body is not None for _ in walk(body))


def measure(kind: str, size: int) -> Measured:
    """What a gradient of that size takes, in this process; not what the compiler is for itself."""
    smallest = KINDS["order"][0](1)
    _median(smallest[1], smallest[2])
    before = _peak()
    begin = time.perf_counter()
    f, derivative, arguments = KINDS[kind][0](size)
    derivative(*arguments)
    compiled = time.perf_counter() - begin
    gradient = _median(derivative, arguments)
    grown = _peak() - before
    forward = _median(f, arguments)
    return Measured(size, instructions(derivative, arguments), compiled, forward, gradient, grown)


def _median(function: Any, arguments: Sequence[Any]) -> float:
    """The median of calls, in µs, the first left out."""
    function(*arguments)
    times: list[float] = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        function(*arguments)
        times.append(time.perf_counter() - begin)
    return statistics.median(times) * 1e6


def _peak() -> float:
    """The most memory that this process had, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def in_a_process(kind: str, size: int) -> Measured:
    """`measure`, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.asymptotics", kind, "--size", str(size)]
    finished = subprocess.run(command, capture_output=True, text=True, check=True)
    return Measured(**json.loads(finished.stdout))


def exponent(row: Sequence[Measured], what: Callable[[Measured], float]) -> float:
    """How it grows from the last size but one to the last; not a number for a single size."""
    if len(row) < 2:
        return math.nan
    *_, small, large = row
    return math.log(what(large) / what(small)) / math.log(large.size / small.size)


def table(kind: str, row: Sequence[Measured]) -> str:
    """One line a size, in Markdown, and the exponents."""
    lines = [
        f"| {kind} | instructions | to the first result, s | f, µs | gradient, µs | peak, MiB |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for one in row:
        times = f"{one.compile:.2f} | {one.forward:,.1f} | {one.gradient:,.1f}"
        lines.append(f"| {one.size:,} | {one.instructions:,} | {times} | {one.mebibytes:,.0f} |")
    count, called = exponent(row, lambda o: o.instructions), exponent(row, lambda o: o.gradient)
    lines.append(f"| exponent | {count:.2f} | | | {called:.2f} | |")
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.asymptotics", description=__doc__)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help="what to measure; else all")
    parser.add_argument("--most", type=int, help="the largest size")
    parser.add_argument("--size", type=int, help="measure one kind here, and print JSON")
    options = parser.parse_args(arguments)
    kinds: list[str] = options.kinds or list(KINDS)
    for kind in kinds:
        if kind not in KINDS:
            parser.error(f"no kind {kind!r}; there are {', '.join(KINDS)}")
    if options.size is not None:
        print(json.dumps(asdict(measure(kinds[0], options.size))))
        return
    for kind in kinds:
        sizes = [size for size in KINDS[kind][1] if options.most is None or size <= options.most]
        print(table(kind, [in_a_process(kind, size) for size in sizes]), flush=True)
        print(flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
