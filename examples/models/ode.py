"""Fit the rates of a differential equation to measurements."""

import nnkit as nk
import numpy as np
from nnkit import Rep, Scalar, Tensor1D, Tensor2D, f64

STEPS, EVERY, STEP = 500, 20, 0.04
TRUTH, GUESS = [1.1, 0.4, 0.4, 0.1], [0.8, 0.3, 0.6, 0.15]
Vector = Tensor1D[f64]


def speed(rates: Rep[Vector], y: Rep[Vector]) -> Rep[Vector]:
    """Hares and foxes, by Lotka and Volterra."""
    hares, foxes = y[0], y[1]
    eaten = hares * foxes
    return nk.stack([rates[0] * hares - rates[1] * eaten, rates[3] * eaten - rates[2] * foxes])


def step(rates: Rep[Vector], y: Rep[Vector]) -> Rep[Vector]:
    k1 = speed(rates, y)
    k2 = speed(rates, y + STEP / 2 * k1)
    k3 = speed(rates, y + STEP / 2 * k2)
    k4 = speed(rates, y + STEP * k3)
    return y + STEP / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


@nk.staged
def solve(rates: Rep[Vector], y: Rep[Vector]) -> Rep[Tensor2D[f64]]:
    return nk.arange(STEPS).scan(y, lambda y, _: (step(rates, y), step(rates, y)))[1].tensor()


@nk.staged
def loss(logs: Rep[Vector], start: Rep[Vector], seen: Rep[Tensor2D[f64]]) -> Rep[Scalar[f64]]:
    return nk.square(nk.log(solve(nk.exp(logs), start)[EVERY - 1 :: EVERY]) - seen).sum()


def main() -> None:
    start = Tensor1D([10.0, 5.0], f64)
    clean = np.log(solve(Tensor1D(TRUTH, f64), start))[EVERY - 1 :: EVERY]
    seen = Tensor2D(clean + 0.05 * np.random.default_rng(0).normal(size=clean.shape))
    logs, optimizer = Tensor1D(np.log(GUESS), f64), nk.optim.adam(0.05)
    improve, state = nk.optim.training_step(loss, optimizer=optimizer), optimizer.init(logs)
    for k in range(1, 81):
        logs, state, value = improve(logs, state, start, seen)
        if k % 20 == 0:
            print(f"{k:3}: {value:8.4f} at {np.exp(logs).round(3)}")


if __name__ == "__main__":
    main()
