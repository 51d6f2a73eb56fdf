"""Fit a differential equation to what was measured: foxes and hares, by Lotka and Volterra.

A Runge-Kutta method of order four takes 2,000 steps.  Of them all, a gradient takes one sweep forward and one backward
through the `scan` over the steps, compiled once: some 0.15 ms.
"""

import sys
from pathlib import Path

import numpy as np
from curves import Array, draw_curves

import nnkit as nk
from nnkit import Rep, Scalar, Tensor1D, Tensor2D, f64

HERE = Path(__file__).parent
STEPS, EVERY, STEP = (
    2000,
    40,
    0.01,
)  # steps, from one measurement to the next, length of a step in years
TRUTH: Array = np.array([1.1, 0.4, 0.4, 0.1])
GUESS: Array = np.array([0.8, 0.3, 0.6, 0.15])
NOISE = 0.05

Vector = Tensor1D[f64]
Matrix = Tensor2D[f64]


@nk.staged
def speed(rates: Rep[Vector], y: Rep[Vector]) -> Rep[Vector]:
    hares, foxes = y[0], y[1]
    eaten = hares * foxes
    return nk.stack([rates[0] * hares - rates[1] * eaten, rates[3] * eaten - rates[2] * foxes])


@nk.staged
def step(rates: Rep[Vector], y: Rep[Vector]) -> Rep[Vector]:
    k1 = speed(rates, y)
    k2 = speed(rates, y + STEP / 2 * k1)
    k3 = speed(rates, y + STEP / 2 * k2)
    k4 = speed(rates, y + STEP * k3)
    return y + STEP / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


@nk.staged
def solve(rates: Rep[Vector], start: Rep[Vector]) -> Rep[Matrix]:
    """Hares and foxes after each step."""

    def one(y: Rep[Vector], _: Rep[Scalar[nk.i64]]) -> tuple[Rep[Vector], Rep[Vector]]:
        y = step(rates, y)
        return y, y

    return nk.arange(STEPS, nk.i64).scan(start, one)[1].tensor()


@nk.staged
def loss(logs: Rep[Vector], start: Rep[Vector], seen: Rep[Matrix]) -> Rep[Scalar[f64]]:
    """Half the squared error of the logarithms, by logarithms of the rates, so that these stay positive."""
    found = solve(nk.exp(logs), start)[EVERY - 1 :: EVERY]
    return nk.square(nk.log(found) - nk.log(seen)).sum() / 2


slope = nk.gradient(of=loss, wrt=0)
curvature = nk.hessian(of=loss, wrt=0)


def main() -> None:
    start = Tensor1D([10.0, 5.0], f64)
    clean: Array = solve(Tensor1D(TRUTH, f64), start).numpy()
    times: Array = np.linspace(STEP, STEPS * STEP, STEPS)
    rng = np.random.default_rng(0)
    errors: Array = rng.normal(scale=NOISE, size=(STEPS // EVERY, 2))
    measured: Array = clean[EVERY - 1 :: EVERY] * np.exp(errors)
    seen = Tensor2D(measured, f64)
    logs: Array = np.log(GUESS)
    damping = 10.0
    best = float(loss(Tensor1D(logs, f64), start, seen))
    for k in range(12):  # Newton's method, damped until it goes down
        point = Tensor1D(logs, f64), start, seen
        values, vectors = np.linalg.eigh(curvature(*point).numpy())
        change = vectors @ (vectors.T @ slope(*point).numpy() / (abs(values) + damping))
        tried = float(loss(Tensor1D(logs - change, f64), start, seen))
        if tried <= best:
            logs, best, damping = logs - change, tried, damping / 4
        else:
            damping *= 8
        if k % 3 == 2:
            print(f"{k + 1:2}: {best:8.4f} at {np.exp(logs).round(4)}")
    fitted: Array = solve(Tensor1D(np.exp(logs), f64), start).numpy()
    lines = {"hares": (times, fitted[:, 0]), "foxes": (times, fitted[:, 1])}
    at = times[EVERY - 1 :: EVERY]
    dots = {"hares, measured": (at, measured[:, 0]), "foxes, measured": (at, measured[:, 1])}
    draw_curves(HERE / "out/ode.png", "Hares and foxes", lines, dots)
    sys.exit(0 if np.allclose(np.exp(logs), TRUTH, rtol=0.1) else "these are not the rates")


if __name__ == "__main__":
    main()
