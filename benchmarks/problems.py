"""What is computed: the inputs of every problem, the same for every library.

A problem is a name and NumPy arrays.  Each `workloads_*` module has a `BUILD` that maps the kind of a problem to a
function from these arrays to a call without arguments; the call does the work once, waits for it, and returns
its results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from .gradbench import inputs

Array = npt.NDArray[Any]
Arrays = dict[str, Array]
LAYERS: Final = (784, 256, 128, 10)
RATE: Final = 0.01
HEADS: Final = 4
STEPS: Final = 1_000
"""Of the Runge-Kutta method."""
STEP: Final = 0.01
WEIGHTS: Final = ((0.1, 0.5, -0.3), (-0.5, 0.1, 0.2), (0.3, -0.2, 0.1))
"""Of y' = tanh(a·y): any value that neither overflows nor dies out does."""
BLOCK: Final = (*"qkvo", "scale1", "offset1", "scale2", "offset2", "w1", "b1", "w2", "b2")
"""The parameters of a block of a transformer, in the order of their gradient."""
TWO_THREADS: Final = ", two threads"
"""The end of the title of a row whose row on one thread is called the same without."""
CALL: Final = 20.0
"""Operations that exp, tanh and their like count as, for the share of what the machine can do."""


@dataclass(frozen=True)
class Work:
    """What a program has to do, however it is written.

    Units: operations count a multiply-add as two, a call of exp or tanh as `CALL`; bytes are those of arguments read
    and results written, each once.
    """

    operations: float
    read: float
    written: float = 0.0
    type: str = "f32"


@dataclass(frozen=True)
class Problem:
    """A thing to compute, on inputs that `make` draws."""

    name: str
    title: str
    make: Callable[[np.random.Generator], Arrays]
    work: Work
    """What no implementation can do without."""
    kind: str = ""
    """Its name in `BUILD`; the problem's own name unless said otherwise."""
    group: str = "table"
    target: float | None = None
    """What ours ÷ the best other is to be at most."""
    tolerance: float = 2e-4
    """By how much results may differ, as a share of the largest of theirs; that of f32 after long sums."""
    threads: int = 1
    rate: bool = False
    """Whether it is shown in operations a second."""
    quick: bool = True
    """Whether it is measured unless all are asked for."""
    without: Mapping[str, str] = field(default_factory=dict[str, str])
    """Who takes no part, and why."""

    def arrays(self) -> Arrays:
        """The inputs: the same each time."""
        return self.make(np.random.default_rng(0))


def small(rng: np.random.Generator) -> Arrays:
    return {"x": normal(rng, 1)}


def affine(rng: np.random.Generator) -> Arrays:
    return {
        "x": normal(rng, 1, 784),
        "w": normal(rng, 784, 10) / np.float32(28),
        "b": normal(rng, 1, 10),
    }


def forward(rng: np.random.Generator) -> Arrays:
    return {"x": normal(rng, 1, LAYERS[0]), **weights(rng, LAYERS)}


def step(layers: tuple[int, ...], batch: int) -> Callable[[np.random.Generator], Arrays]:
    def make(rng: np.random.Generator) -> Arrays:
        labels = rng.integers(0, layers[-1], batch)
        return {"x": normal(rng, batch, layers[0]), "labels": labels, **weights(rng, layers)}

    return make


def gelu(count: int) -> Callable[[np.random.Generator], Arrays]:
    return lambda rng: {"x": normal(rng, count)}


def softmax(rows: int, classes: int) -> Callable[[np.random.Generator], Arrays]:
    return lambda rng: {"x": normal(rng, rows, classes), "labels": rng.integers(0, classes, rows)}


def attention(batch: int, length: int, width: int) -> Callable[[np.random.Generator], Arrays]:
    def make(rng: np.random.Generator) -> Arrays:
        scale = np.float32(width**-0.5)
        return {"x": normal(rng, batch, length, width)} | {
            name: normal(rng, width, width) * scale for name in ("q", "k", "v", "o")
        }

    return make


def block(batch: int, length: int, width: int) -> Callable[[np.random.Generator], Arrays]:
    """Attention, and a perceptron four times as wide, each after a normalization of layers."""

    def make(rng: np.random.Generator) -> Arrays:
        drawn = attention(batch, length, width)(rng)
        for k in (1, 2):
            drawn |= {
                f"scale{k}": 1 + normal(rng, width) / 10,
                f"offset{k}": normal(rng, width) / 10,
            }
        wide = 4 * width
        drawn["w1"] = normal(rng, width, wide) * np.float32(width**-0.5)
        drawn["w2"] = normal(rng, wide, width) * np.float32(wide**-0.5)
        return drawn | {"b1": normal(rng, wide) / 10, "b2": normal(rng, width) / 10}

    return make


def layer(
    batch: int, length: int, width: int, wide: int
) -> Callable[[np.random.Generator], Arrays]:
    """Of a batch of sequences."""

    def make(rng: np.random.Generator) -> Arrays:
        return {
            "x": normal(rng, batch, length, width),
            "w": normal(rng, width, wide) * np.float32(width**-0.5),
            "b": normal(rng, wide) / 10,
        }

    return make


def line(n: int) -> Callable[[np.random.Generator], Arrays]:
    return lambda rng: {"x": normal(rng, n), "y": normal(rng, n)}


def square(n: int) -> Callable[[np.random.Generator], Arrays]:
    return lambda rng: {"x": normal(rng, n, n)}


def product(n: int) -> Callable[[np.random.Generator], Arrays]:
    return lambda rng: {"a": normal(rng, n, n), "b": normal(rng, n, n)}


def runge_kutta(rng: np.random.Generator) -> Arrays:
    return {"a": np.array(WEIGHTS), "y": np.ones(3)}


def mixture(n: int, d: int, k: int) -> Callable[[np.random.Generator], Arrays]:
    """GradBench's: factors of the precisions, exp(q) on their diagonals and l below."""

    def make(rng: np.random.Generator) -> Arrays:
        given = inputs.gmm(d, k, n)
        return {name: np.array(given[name]) for name in ("alpha", "mu", "q", "l", "x")}

    return make


def lstm(layers: int, characters: int) -> Callable[[np.random.Generator], Arrays]:
    """GradBench's: layers of 14 with diagonal weights."""

    def make(rng: np.random.Generator) -> Arrays:
        return {name: np.array(given) for name, given in inputs.lstm(layers, characters).items()}

    return make


def weights(rng: np.random.Generator, layers: tuple[int, ...]) -> Arrays:
    """w1, b1, w2, b2 … of an MLP."""
    drawn: Arrays = {}
    for k, (fan_in, fan_out) in enumerate(pairwise(layers), 1):
        drawn[f"w{k}"] = normal(rng, fan_in, fan_out) * np.float32((2 / fan_in) ** 0.5)
        drawn[f"b{k}"] = normal(rng, fan_out) * np.float32(0.1)
    return drawn


def names_of_layers(data: Arrays) -> list[str]:
    """Those that `weights` has drawn, in order."""
    count = sum(name.startswith("w") for name in data)
    return [f"{letter}{k}" for k in range(1, count + 1) for letter in "wb"]


def normal(rng: np.random.Generator, *shape: int) -> npt.NDArray[np.float32]:
    return rng.standard_normal(shape, np.float32)


def work_of_step(layers: tuple[int, ...], batch: int) -> Work:
    """Three products for each weight, but none by the first layer's input; weights are read and written."""
    products = [fan_in * fan_out for fan_in, fan_out in pairwise(layers)]
    operations = 2.0 * batch * (3 * sum(products) - products[0])
    return Work(operations, 4.0 * (sum(products) + batch * layers[0]), 4.0 * sum(products))


def work_of_attention(batch: int, length: int, width: int, *, wide: int = 0) -> Work:
    """Four projections, two products of places with places, and a perceptron `wide` units wide."""
    places = batch * length
    parameters = 4 * width**2 + 2 * width * wide
    pairs = 4.0 * places * length * width
    exponentials = CALL * batch * HEADS * length**2 + CALL * places * wide
    operations = 3 * (2.0 * places * parameters + pairs) + exponentials
    return Work(operations, 4.0 * (parameters + places * width), 4.0 * (parameters))


def work_of_mixture(n: int, d: int, k: int) -> Work:
    """A triangular product of each component with each point, and two more backward."""
    operations = 3 * (n * k * d * (d + 1.0)) + CALL * n * k
    return Work(operations, 8.0 * (n * d + k * d * (d + 3) / 2), 4.0 * k * d * (d + 3), "f64")


STAGE: Final = 3 * (2 * 3 + CALL + 4)
"""Operations of one of the four stages of a step; the gradient takes that again, and twice for its derivatives."""
SAME: Final = {"PyTorch compile": "it is the same library call as eager"}
UNROLLED: Final = {"PyTorch compile": "it would unroll the steps"}


def _product(n: int, threads: int = 1) -> Problem:
    two = TWO_THREADS * (threads == 2)
    return Problem(
        f"product-{n}" + "-threads" * (threads == 2),
        f"product {n}×{n}, f32{two}",
        product(n),
        Work(2.0 * n**3, 8.0 * n**2, 4.0 * n**2),
        kind="product",
        group="products",
        target=1.0,
        threads=threads,
        rate=True,
        without=SAME,
    )


def _perceptron(wide: int, deep: int, batch: int, *, quick: bool = False) -> Problem:
    layers = (wide,) * deep + (10,)
    return Problem(
        f"perceptron-{wide}-{deep}-{batch}",
        f"training step of a perceptron {wide} wide, {deep} deep, batch {batch:,}",
        step(layers, batch),
        work_of_step(layers, batch),
        kind="step",
        group="larger",
        target=0.9,
        quick=quick,
        tolerance=1e-3,
    )


def _block(batch: int, length: int, width: int, *, quick: bool = False) -> Problem:
    return Problem(
        f"block-{batch}-{length}-{width}",
        f"gradient of a transformer block, {batch}×{length}×{width}, {HEADS} heads",
        block(batch, length, width),
        work_of_attention(batch, length, width, wide=4 * width),
        kind="block",
        group="larger",
        target=0.9,
        quick=quick,
        tolerance=1e-3,
    )


def _layer(batch: int, length: int, width: int, wide: int) -> Problem:
    rows = float(batch * length)
    inputs, results = 4.0 * (rows * width + (width + 1) * wide), 4.0 * rows * wide
    return Problem(
        "layer",
        f"gelu(x·w + b), {batch}×{length}×{width} times {width}×{wide}",
        layer(batch, length, width, wide),
        Work(rows * wide * (2.0 * width + CALL + 10.0), inputs, results),
        group="larger",
        target=0.9,
    )


WEIGHT_BYTES: Final = 4.0 * sum(fan_in * fan_out for fan_in, fan_out in pairwise(LAYERS))

TABLE: Final = (
    Problem("call", "x + 1 on one number: the cost of a call", small, Work(1, 4, 4)),
    Problem(
        "affine",
        "tanh(x·w + b), 1×784·784×10, the call included",
        affine,
        Work(2.0 * 7840, 4.0 * (7840 + 784)),
        target=0.12,
    ),
    Problem(
        "forward",
        "MLP 784-256-128-10 forward, batch 1",
        forward,
        Work(WEIGHT_BYTES / 2, WEIGHT_BYTES),
        target=0.40,
    ),
    Problem(
        "step",
        "its training step, batch 64 (log-softmax, SGD)",
        step(LAYERS, 64),
        work_of_step(LAYERS, 64),
        target=0.60,
    ),
    Problem(
        "gelu",
        "value and gradient of Σ gelu (tanh form), 2²⁰ f32",
        gelu(2**20),
        Work((CALL + 15.0) * 2**20, 4.0 * 2**20, 4.0 * 2**20),
        target=0.25,
    ),
    Problem(
        "softmax",
        "softmax cross-entropy value and gradient, 1024×1000",
        softmax(1024, 1000),
        Work((CALL + 5.0) * 1024 * 1000, 4096.0 * 1000, 4096.0 * 1000),
        target=0.40,
    ),
    Problem(
        "attention",
        f"attention block gradient (8×64×128, {HEADS} heads)",
        attention(8, 64, 128),
        work_of_attention(8, 64, 128),
        target=0.60,
    ),
    Problem(
        "runge-kutta",
        "1,000 RK4 steps of tanh(A·y), 3 states, f64, gradient",
        runge_kutta,
        Work(STEPS * 4 * STAGE * 3, 96.0, 96.0, "f64"),
        target=0.10,
        tolerance=1e-9,
        without=UNROLLED,
    ),
    Problem(
        "mixture",
        "GMM log-likelihood gradient, n 1000, d 32, k 25, f64",
        mixture(1000, 32, 25),
        work_of_mixture(1000, 32, 25),
        target=0.35,
        tolerance=1e-9,
    ),
)
"""The rows whose geometric mean counts, but for the first."""

PRODUCTS: Final = (
    *(_product(n) for n in (64, 128, 256, 512, 1024)),
    *(_product(n, 2) for n in (256, 512, 1024)),
)

MEMORY: Final = (
    Problem(
        "line",
        "1.5 x + y, 2²³ f32",
        line(2**23),
        Work(2.0 * 2**23, 8.0 * 2**23, 4.0 * 2**23),
        group="memory",
        target=1.0,
    ),
    Problem(
        "symmetric",
        "(x + xᵀ) / 2, 2048×2048 f32",
        square(2048),
        Work(2.0 * 2**22, 4.0 * 2**22, 4.0 * 2**22),
        group="memory",
        target=1.0,
    ),
)
"""Little is computed of much memory."""

LARGER: Final = (
    _layer(8, 128, 128, 512),
    _block(8, 64, 128, quick=True),
    _block(8, 128, 256),
    _block(8, 256, 256, quick=True),
    _perceptron(256, 8, 1024),
    _perceptron(512, 4, 32, quick=True),
    _perceptron(1024, 4, 256, quick=True),
    _perceptron(2048, 2, 1024),
    _perceptron(4096, 2, 128),
    _perceptron(4096, 8, 32),
)

PROBLEMS: Final = (*TABLE, *PRODUCTS, *LARGER, *MEMORY)

ABLATED: Final = (
    *PROBLEMS,
    Problem(
        "lstm",
        "gradient of an LSTM, 6 layers of 14, 8,192 steps, f64",
        lstm(6, 8192),
        Work(6.0 * 8192 * 14 * (5 * CALL + 50), 8.0 * 8192 * 14, 8.0 * 15 * 56, "f64"),
        group="gradbench",
        tolerance=1e-9,
    ),
)
"""What the ablation measures: GradBench's rows have a program that keeps much of a loop for the way back, too."""
