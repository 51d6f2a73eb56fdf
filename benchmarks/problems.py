"""What is computed: the inputs of every problem, the same for every library.

A problem is a name and NumPy arrays.  Each `workloads_*` module has a `BUILD` that maps the name to a
function from these arrays to a call without arguments; the call does the work once, waits for it, and returns
its results.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float32] | npt.NDArray[np.int64]
Arrays = dict[str, Array]
LAYERS = (784, 256, 128, 10)
RATE = 0.01


@dataclass(frozen=True)
class Problem:
    """A thing to compute, on inputs that `make` draws."""

    name: str
    title: str
    make: Callable[[np.random.Generator], Arrays]

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
    return {"x": normal(rng, 1, LAYERS[0]), **weights(rng)}


def step(rng: np.random.Generator) -> Arrays:
    labels = rng.integers(0, LAYERS[-1], 64)
    return {"x": normal(rng, 64, LAYERS[0]), "labels": labels, **weights(rng)}


def gelu(rng: np.random.Generator) -> Arrays:
    return {"x": normal(rng, 2**20)}


def softmax(rng: np.random.Generator) -> Arrays:
    return {"x": normal(rng, 1024, 1000), "labels": rng.integers(0, 1000, 1024)}


def weights(rng: np.random.Generator) -> Arrays:
    """w1, b1, w2, b2, w3, b3 of an MLP of `LAYERS`."""
    drawn: Arrays = {}
    for k, (fan_in, fan_out) in enumerate(pairwise(LAYERS), 1):
        drawn[f"w{k}"] = normal(rng, fan_in, fan_out) * np.float32((2 / fan_in) ** 0.5)
        drawn[f"b{k}"] = normal(rng, fan_out) * np.float32(0.1)
    return drawn


def normal(rng: np.random.Generator, *shape: int) -> npt.NDArray[np.float32]:
    return rng.standard_normal(shape, np.float32)


PROBLEMS = (
    Problem("call", "x + 1 on one number: the cost of a call", small),
    Problem("affine", "tanh(x·w + b), x 1×784, w 784×10", affine),
    Problem("forward", "forward of an MLP 784-256-128-10, batch 1", forward),
    Problem("step", "training step of this MLP (relu, cross-entropy, SGD), batch 64", step),
    Problem("gelu", "value and gradient of Σ gelu(x), 2²⁰ numbers", gelu),
    Problem("softmax", "gradient of softmax cross-entropy, 1024×1000", softmax),
)
