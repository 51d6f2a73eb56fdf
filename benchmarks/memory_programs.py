"""The programs whose memory is compared with JAX's, each written once, over either library.

Those with a gradient are differentiated by all arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float32]
Shapes = Sequence[tuple[int, ...]]


@dataclass(frozen=True)
class Program:
    """A function of a library and of tensors of these shapes, or its gradient by all of them.

    With `large` ones, its resident memory is measured, too.
    """

    title: str
    function: Callable[..., Any]
    shapes: Shapes
    is_gradient: bool = False
    donated: int | None = None
    large: Shapes = ()

    @property
    def name(self) -> str:
        """The title, without its shapes."""
        first, *others = self.title.split(", ")
        return ", ".join([first, *(part for part in others if not any(map(str.isdigit, part)))])


def arguments_of(shapes: Shapes) -> list[Array]:
    """Tensors of these shapes."""
    return [np.ones(shape, np.float32) for shape in shapes]


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


def lstm(xp: Any, x: Any, w: Any, u: Any, h: Any) -> Any:
    """50 rounds with four gates; what is remembered begins as the state does."""
    width = h.shape[1]

    def step(t: Any, state: Any) -> Any:
        h, c = state
        z = x[t] @ w + h @ u
        gates = [z[:, k * width : (k + 1) * width] for k in range(4)]
        entry, forget, exit = (0.5 * xp.tanh(0.5 * gate) + 0.5 for gate in gates[:3])
        c = forget * c + entry * xp.tanh(gates[3])
        return exit * xp.tanh(c), c

    return xp.fori(0, 50, step, (h, h))[0]


def k_means(xp: Any, x: Any, centres: Any) -> Any:
    """Squared distances of points to the nearest of the centres."""
    (points, _), (count, _) = x.shape, centres.shape
    apart = x.reshape(points, 1, 8) - centres.reshape(1, count, 8)
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
WIDE: Final = ((1024, 3136), (3136, 1024), (1024, 512), (512, 10))
DEEP: Final = ((128, 256), *[(256, 256)] * 4)
DEEPER: Final = ((1024, 1024), *[(1024, 1024)] * 4)
LAYER: Final = ((784, 256), (64, 784))
LARGE_LAYER: Final = ((3136, 1024), (512, 3136))
HEADS: Final = ((4, 1024, 64),) * 3
LONG: Final = ((4, 2048, 64),) * 3
STATES: Final = ((50, 16, 64), (64, 64), (64, 64), (16, 64))
MANY_STATES: Final = ((50, 64, 512), (512, 512), (512, 512), (64, 512))
SQUARE: Final = ((512, 512),)
LARGE: Final = ((2048, 2048),)

PROGRAMS: Final = (
    Program("perceptron 784-256-128-10, batch 64, gradient", perceptron, LAYERS, True, large=WIDE),
    Program("4 layers of 256, batch 128", perceptron, DEEP, large=DEEPER),
    Program("4 layers of 256, batch 128, gradient", perceptron, DEEP, True, large=DEEPER),
    Program("step of a layer of 784 x 256", training_step, LAYER, large=LARGE_LAYER),
    Program("the same, weights donated", training_step, LAYER, donated=0, large=LARGE_LAYER),
    Program("attention, 4 x 1024 x 64", attention, HEADS, large=LONG),
    Program("attention, gradient", attention, HEADS, True, large=LONG),
    Program(
        "cross-entropy, 1024 x 1000, gradient",
        cross_entropy,
        ((1024, 1000),) * 2,
        True,
        large=((4096, 2000),) * 2,
    ),
    Program(
        "product and layer norm, 4096 x 64 x 512",
        normalized,
        ((4096, 64), (64, 512)),
        large=((8192, 512), (512, 1024)),
    ),
    Program(
        "recurrence, 50 steps of 16 x 64, gradient", recurrence, STATES, True, large=MANY_STATES
    ),
    Program(
        "LSTM, 50 steps of 16 x 64, gradient",
        lstm,
        ((50, 16, 64), (64, 256), (64, 256), (16, 64)),
        True,
        large=((50, 64, 256), (256, 1024), (256, 1024), (64, 256)),
    ),
    Program(
        "k-means, 1000 x 8, 25 centres, gradient",
        k_means,
        ((1000, 8), (25, 8)),
        True,
        large=((20_000, 8), (25, 8)),
    ),
    Program("1,000 steps of Runge-Kutta, 64 states", runge_kutta, ((64, 64), (64,))),
    Program("Runge-Kutta, gradient", runge_kutta, ((64, 64), (64,)), True),
    Program("40 times sin(x) · 1.1 + x, 512 x 512", sines, SQUARE, large=LARGE),
    Program("40 times sin(x) · 1.1 + x, gradient", sines, SQUARE, True, large=LARGE),
    Program("40 times tanh(x) · 1.1 + Σx of rows", sums_of_rows, SQUARE, large=LARGE),
    Program("100 steps of heat by roll, 256 x 256", heat, ((256, 256),), large=LARGE),
    Program("power iteration, 256 x 256", power_iteration, ((256, 256), (256,))),
    Program("(tanh(xᵀ) · x)ᵀ + x, 512 x 512", turned, SQUARE, large=LARGE),
    Program("concatenations, 512 x 256", joined, ((512, 256),) * 2, large=LARGE * 2),
)
