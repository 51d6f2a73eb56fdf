"""The classical method of Runge and Kutta for y' = tanh(a·y), three states: `python -m benchmarks.runge_kutta`.

1. Calls: 1,000 steps as a loop, forward and with the gradient by a and y, beside JAX's jit, in turns on one core.
2. Compiling, from the source to the first result, in a process of its own each: 120 steps with gradient unrolled in
   Python and as a loop; and chains of 10 to 10,000 steps, unrolled, with the time of one call.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

import nnkit as nk
from nnkit import Rep, Scalar, Tensor1D, Tensor2D, f64

from .asymptotics import WEIGHTS
from .report import Row, header, seconds, table
from .timing import alternate, batch, other_load

Matrix = Tensor2D[f64]
Vector = Tensor1D[f64]
Number = Scalar[f64]
STEP = 0.01
STEPS = 1_000
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


def in_jax(*, gradient: bool) -> Callable[[], Any]:
    import jax  # noqa: PLC0415  # only where it is installed

    jax.config.update("jax_enable_x64", True)
    jnp = jax.numpy

    def one(_: Any, pair: Any) -> Any:
        a, y = pair
        k1 = jnp.tanh(a @ y)
        k2 = jnp.tanh(a @ (y + STEP / 2 * k1))
        k3 = jnp.tanh(a @ (y + STEP / 2 * k2))
        k4 = jnp.tanh(a @ (y + STEP * k3))
        return a, y + STEP / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    def f(a: Any, y: Any) -> Any:
        return jax.lax.fori_loop(0, STEPS, one, (a, y))[1].sum()

    call = jax.jit(jax.value_and_grad(f, (0, 1)) if gradient else f)
    arguments = jnp.asarray(WEIGHTS), jnp.ones(3)
    return lambda: jax.block_until_ready(call(*arguments))


def calls(rounds: int) -> str:
    """The table of the first part."""
    f, absent = looped(STEPS), dict[str, str]()
    rows: list[Row] = []
    for title, function in (("forward", f), ("gradient", nk.gradient_dynamic(of=f, wrt=(0, 1)))):
        contestants: dict[str, Callable[[], Any]] = {
            "NNKit": partial(function, WEIGHTS, np.ones(3))
        }
        if find_spec("jax"):
            contestants["JAX jit"] = in_jax(gradient=title == "gradient")
        else:
            absent["jax"] = "it is not installed"
        batches = {name: partial(batch, call) for name, call in contestants.items()}
        rows.append(Row(f"{title}, {STEPS} steps", alternate(batches, rounds, 0), seconds))
    return table(rows, ["NNKit", "JAX jit"], absent)


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
    parser.add_argument("--rounds", type=int, default=10, help="batches per contestant, default 10")
    parser.add_argument("--most", type=int, default=1_000, help="the longest chain, default 1000")
    parser.add_argument(
        "--one", nargs=2, metavar=("KIND", "STEPS"), help="compile this and no more"
    )
    options = parser.parse_args(arguments)
    if options.one:
        print(compile_one(options.one[0], int(options.one[1])))
        return
    busy = other_load()
    command = " ".join(["python -m benchmarks.runge_kutta", *arguments])
    print(header(command, options.rounds, busy), calls(options.rounds), "", sep="\n")
    print(compiling(options.most))


if __name__ == "__main__":
    main(sys.argv[1:])
