"""Compare peak bytes with JAX: `python -m benchmarks.memory [--only WORD …] [--output FILE]`.

Bytes that a call needs besides its arguments, as both compilers say: of ours `memory_analysis(…).peak_bytes`, of JAX's
the outputs without aliases, and temporaries. What JAX's products and convolutions allocate while they run is not
counted there; what ours pack is counted here.

A program is written once, over either library; those with a gradient are differentiated by all arguments.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np

import nnkit as nk

OURS: Final[Any] = nk
JAX: Final[Any] = SimpleNamespace(**vars(jnp), softmax=jax.nn.softmax, fori=jax.lax.fori_loop)


@dataclass(frozen=True)
class Program:
    """A function of a library and of tensors of these shapes, or its gradient by all of them."""

    title: str
    function: Callable[..., Any]
    shapes: Sequence[tuple[int, ...]]
    is_gradient: bool = False
    donated: int | None = None


def perceptron(xp: Any, x: Any, *weights: Any) -> Any:
    for w in weights[:-1]:
        x = xp.tanh(x @ w)
    return x @ weights[-1]


def training_step(xp: Any, w: Any, x: Any) -> Any:
    """Of one layer, by hand: the gradient of the squared error of tanh(x · w)."""
    y = xp.tanh(x @ w)
    return w - 0.01 * (x.transpose(1, 0) @ ((y - 1.0) * (1.0 - y * y)))


def attention(xp: Any, q: Any, k: Any, v: Any) -> Any:
    return xp.softmax(q @ k.transpose(0, 2, 1), axis=2) @ v


def cross_entropy(xp: Any, x: Any, y: Any) -> Any:
    return -xp.sum(y * xp.log(xp.softmax(x, axis=1)))


def normalized(xp: Any, x: Any, w: Any) -> Any:
    y = x @ w
    c = y - xp.mean(y, axis=1, keepdims=True)
    return c / xp.sqrt(xp.mean(c * c, axis=1, keepdims=True))


def recurrence(xp: Any, x: Any, w: Any, u: Any, h: Any) -> Any:
    """50 rounds, of which each multiplies a matrix of the input and the state."""
    return xp.fori(0, 50, lambda t, h: xp.tanh(x[t] @ w + h @ u), h)


def k_means(xp: Any, x: Any, centres: Any) -> Any:
    """Squared distances of 1000 points to the nearest of 25 centres."""
    apart = x.reshape(1000, 1, 8) - centres.reshape(1, 25, 8)
    return xp.sum(xp.min(xp.sum(apart * apart, axis=2), axis=1))


def runge_kutta(xp: Any, a: Any, y: Any) -> Any:
    def step(_: Any, y: Any) -> Any:
        k1 = xp.tanh(a @ y)
        k2 = xp.tanh(a @ (y + 0.005 * k1))
        k3 = xp.tanh(a @ (y + 0.005 * k2))
        k4 = xp.tanh(a @ (y + 0.01 * k3))
        return y + (0.01 / 6) * (k1 + 2.0 * k2 + 2.0 * k3 + k4)

    return xp.fori(0, 1000, step, y)


def sines(xp: Any, x: Any) -> Any:
    for _ in range(40):
        x = xp.sin(x) * 1.1 + x
    return x


def sums_of_rows(xp: Any, x: Any) -> Any:
    for _ in range(40):
        x = xp.tanh(x) * 1.1 + xp.sum(x, axis=1, keepdims=True)
    return x


def heat(xp: Any, x: Any) -> Any:
    def step(_: Any, x: Any) -> Any:
        around = xp.roll(x, 1, 0) + xp.roll(x, -1, 0) + xp.roll(x, 1, 1) + xp.roll(x, -1, 1)
        return x + 0.1 * (around - 4.0 * x)

    return xp.fori(0, 100, step, x)


def power_iteration(xp: Any, a: Any, v: Any) -> Any:
    def step(_: Any, v: Any) -> Any:
        w = a @ v
        return w / xp.sqrt(xp.sum(w * w))

    return xp.fori(0, 20, step, v)


def turned(xp: Any, x: Any) -> Any:
    return (xp.tanh(x.transpose(1, 0)) @ x).transpose(1, 0) + x


def joined(xp: Any, x: Any, y: Any) -> Any:
    both = xp.concat([xp.sin(x), y * 2.0], axis=0)
    return xp.concat([both, both + 1.0], axis=1)


LAYERS: Final = ((64, 784), (784, 256), (256, 128), (128, 10))
DEEP: Final = ((128, 256), *[(256, 256)] * 4)
HEADS: Final = [(4, 1024, 64)] * 3
PROGRAMS: Final = (
    Program("perceptron 784-256-128-10, batch 64, gradient", perceptron, LAYERS, True),
    Program("4 layers of 256, batch 128", perceptron, DEEP),
    Program("4 layers of 256, batch 128, gradient", perceptron, DEEP, True),
    Program("step of a layer of 784 x 256", training_step, [(784, 256), (64, 784)]),
    Program("the same, weights donated", training_step, [(784, 256), (64, 784)], donated=0),
    Program("attention, 4 x 1024 x 64", attention, HEADS),
    Program("attention, gradient", attention, HEADS, True),
    Program("cross-entropy, 1024 x 1000, gradient", cross_entropy, [(1024, 1000)] * 2, True),
    Program("product and layer norm, 4096 x 64 x 512", normalized, [(4096, 64), (64, 512)]),
    Program(
        "recurrence, 50 steps of 16 x 64, gradient",
        recurrence,
        [(50, 16, 64), (64, 64), (64, 64), (16, 64)],
        True,
    ),
    Program("k-means, 1000 x 8, 25 centres, gradient", k_means, [(1000, 8), (25, 8)], True),
    Program("1,000 steps of Runge-Kutta, 64 states", runge_kutta, [(64, 64), (64,)]),
    Program("Runge-Kutta, gradient", runge_kutta, [(64, 64), (64,)], True),
    Program("40 times sin(x) · 1.1 + x, 512 x 512", sines, [(512, 512)]),
    Program("40 times sin(x) · 1.1 + x, gradient", sines, [(512, 512)], True),
    Program("40 times tanh(x) · 1.1 + Σx of rows", sums_of_rows, [(512, 512)]),
    Program("100 steps of heat by roll, 256 x 256", heat, [(256, 256)]),
    Program("power iteration, 256 x 256", power_iteration, [(256, 256), (256,)]),
    Program("(tanh(xᵀ) · x)ᵀ + x, 512 x 512", turned, [(512, 512)]),
    Program("concatenations, 512 x 256", joined, [(512, 256)] * 2),
)


def bytes_of_ours(program: Program, arguments: Sequence[Any]) -> int:
    """What NNKit says a call needs besides its arguments."""
    compute = partial(program.function, OURS)
    # a staged function has as many parameters as it says
    by_count: dict[int, Any] = {
        1: lambda a: compute(a),
        2: lambda a, b: compute(a, b),
        3: lambda a, b, c: compute(a, b, c),
        4: lambda a, b, c, d: compute(a, b, c, d),
        5: lambda a, b, c, d, e: compute(a, b, c, d, e),
    }
    function: Any = nk.fn(*map(_type_of, arguments))(by_count[len(arguments)])
    if program.is_gradient:
        function = nk.gradient(of=function, wrt=tuple(range(len(arguments))))
    if program.donated is not None:
        function = nk.donate(function, program.donated)
    found: int = function.memory_analysis(*arguments).peak_bytes
    return found


def bytes_of_jax(program: Program, arguments: Sequence[Any]) -> int:
    """The same of JAX."""

    def function(*tensors: Any) -> Any:
        return program.function(JAX, *tensors)

    whole: Callable[..., Any] = function
    if program.is_gradient:
        numbers = tuple(range(len(arguments)))
        whole = jax.grad(lambda *tensors: function(*tensors).sum(), argnums=numbers)
    donated = () if program.donated is None else (program.donated,)
    found: Any = jax.jit(whole, donate_argnums=donated).lower(*arguments).compile()
    stats = found.memory_analysis()
    total: int = stats.output_size_in_bytes - stats.alias_size_in_bytes + stats.temp_size_in_bytes
    return total


def _type_of(argument: Any) -> Any:
    ranks: Any = (nk.Scalar, nk.Tensor1D, nk.Tensor2D, nk.Tensor3D)
    return ranks[argument.ndim][nk.f32]


def table(programs: Sequence[Program]) -> str:
    """The page."""
    rows = ["| | NNKit | JAX | ratio |", "|---|---:|---:|---:|"]
    for program in programs:
        arguments = [np.ones(shape, np.float32) for shape in program.shapes]
        ours, theirs = bytes_of_ours(program, arguments), bytes_of_jax(program, arguments)
        rows.append(f"| {program.title} | {ours:,} | {theirs:,} | {ours / max(theirs, 1):.2f} |")
    return "\n".join(rows) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__)
    parser.add_argument("--only", nargs="+", default=[""], metavar="WORD", help="in titles")
    parser.add_argument("--output", type=Path, help="also write the page to this file")
    options = parser.parse_args()
    chosen = [one for one in PROGRAMS if any(word in one.title for word in options.only)]
    said = f"Bytes that a call needs besides its arguments, f32; JAX {jax.__version__} on a CPU."
    page = f"# Peak memory\n\n{said} `python -m benchmarks.memory`\n\n{table(chosen)}"
    print(page)
    if options.output:
        options.output.write_text(page)


if __name__ == "__main__":
    main()
