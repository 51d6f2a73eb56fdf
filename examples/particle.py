"""Steer a charged particle: a gradient inside of a `while_loop`, differentiated twice from outside.

The force is the gradient of a potential.  Steps of Euler's method move the particle until it falls on the
axis, where its place is to be 0.  Newton's method moves one of two charges until it is: the first and
second derivative of the flight, which takes another number of steps for each place of the charge.

The problem is after J. M. Siskind and B. A. Pearlmutter, "Using polyvariant union-free flow analysis to
compile a higher-order functional-programming language with a first-class derivative operator" (2008).
"""

import sys
from pathlib import Path

import numpy as np
from curves import Array, draw_curves

import nnkit as nk
from nnkit import Bool, Rep, Scalar, Tensor1D, f64

HERE = Path(__file__).parent
STEP = 0.1

Number = Scalar[f64]
Vector = Tensor1D[f64]
Flight = tuple[Rep[Vector], Rep[Vector]]


@nk.staged
def potential(x: Rep[Vector], w: Rep[Number]) -> Rep[Number]:
    """Of charges at (10, 10 - w) and (10, 0)."""
    first = nk.square(x[0] - 10) + nk.square(x[1] - (10 - w))
    second = nk.square(x[0] - 10) + nk.square(x[1])
    return 1 / nk.sqrt(first) + 1 / nk.sqrt(second)


force = nk.gradient(of=potential, wrt=0)


@nk.staged
def miss(w: Rep[Number], start: Rep[Vector], speed: Rep[Vector]) -> Rep[Number]:
    """The square of where the particle falls on the axis."""

    def above(flight: Flight) -> Rep[Bool]:
        return flight[0][1] + STEP * flight[1][1] > 0

    def step(flight: Flight) -> Flight:
        x, v = flight
        return x + STEP * v, v - STEP * force(x, w)

    x, v = nk.while_loop(above, step, (start, speed))
    return nk.square(x[0] - x[1] / v[1] * v[0])  # the last step is a part of one


slope = nk.gradient(of=miss, wrt=0)
curvature = nk.gradient(of=slope, wrt=0)


def path(w: float) -> tuple[Array, Array]:
    """The places of the particle, one a step, to draw them."""
    x: Array = np.array([0.0, 8.0])
    v: Array = np.array([0.75, 0.0])
    places = [x]
    while x[1] > 0:
        pull = force(Tensor1D(x, f64), f64(w)).numpy()
        x, v = x + STEP * v, v - STEP * pull
        places.append(x)
    return np.array([p[0] for p in places]), np.array([p[1] for p in places])


def main() -> None:
    launch = Tensor1D([0.0, 8.0], f64), Tensor1D([0.75, 0.0], f64)
    w, missed = 0.0, np.inf
    paths: dict[str, tuple[Array, Array]] = {}
    for k in range(6):
        point = f64(w), *launch
        missed = float(miss(*point)) ** 0.5
        print(f"{k}: the charge at {w:.12f} misses by {missed:.2e}")
        paths[f"w = {w:.4f}"] = path(w)
        w -= float(slope(*point)) / float(curvature(*point))
    draw_curves(HERE / "out/particle.png", "Paths of the particle", paths, {})
    sys.exit(0 if missed < 1e-9 else "it still misses")


if __name__ == "__main__":
    main()
