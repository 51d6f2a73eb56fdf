"""The gradient of a batch that is too large, of one part after the other: accumulated in place, as the whole one.

Σ over the rows of a batch is that over its parts, so the parts' gradients add up to its gradient.  The total is donated
to each call and comes back in the same memory; so do the parameters from each step.
"""

import sys

import numpy as np
import numpy.typing as npt

import nnkit as nk
from nnkit import Dim, Field, Rep, Scalar, Struct, Tensor1D, Tensor2D, f32, f64

ROWS, PARTS, STEPS, RATE = 4096, 16, 40, 0.5


# fmt: off
class Row(Dim): ...
class Input(Dim): ...
class Hidden(Dim): ...
# fmt: on


class Params(Struct):
    w: Field[Tensor2D[f32, Input, Hidden]]
    b: Field[Tensor1D[f32, Hidden]]
    out: Field[Tensor1D[f32, Hidden]]


Rows = Tensor2D[f32, Row, Input]
Targets = Tensor1D[f32, Row]


@nk.staged
def loss(p: Rep[Params], x: Rep[Rows], y: Rep[Targets]) -> Rep[Scalar[f32]]:
    """A part's share of the mean over all rows, summed in f64."""
    found = nk.tanh(x @ p[Params.w] + p[Params.b]) @ p[Params.out]
    return nk.square(found - y).sum(accumulate=f64) / ROWS


slope = nk.gradient(of=loss, wrt=0)


@nk.staged
def add_slope(total: Rep[Params], p: Rep[Params], x: Rep[Rows], y: Rep[Targets]) -> Rep[Params]:
    part = slope(p, x, y)
    for field in nk.fields(Params):
        total = total.set(field, total[field] + part[field])
    return total


@nk.staged
def update(p: Rep[Params], total: Rep[Params]) -> tuple[Rep[Params], Rep[Params]]:
    """The next parameters, and zeros to begin the next total with."""
    zeros = total
    for field in nk.fields(Params):
        p = p.set(field, p[field] - RATE * total[field])
        zeros = zeros.set(field, nk.zeros_like(total[field]))
    return p, zeros


add_in_place = nk.donate(add_slope, 0)
update_in_place = nk.donate(update, 0, 1)


def params(rng: np.random.Generator, scale: float) -> Params:
    def around(*shape: int) -> npt.NDArray[np.float32]:
        return (scale * rng.normal(size=shape)).astype(np.float32)

    return Params(
        Tensor2D(around(8, 32), f32), Tensor1D(around(32), f32), Tensor1D(around(32), f32)
    )


def error(found: Params, wanted: Params) -> float:
    """The largest difference, as a share of the largest number."""
    pairs = [(found.w, wanted.w), (found.b, wanted.b), (found.out, wanted.out)]
    return max(
        float(np.max(np.abs(np.asarray(x) - np.asarray(y))) / np.max(np.abs(np.asarray(y))))
        for x, y in pairs
    )


def main() -> None:
    rng = np.random.default_rng(0)
    data = rng.normal(size=(ROWS, 8)).astype(np.float32)
    targets = np.sin(data.sum(axis=1)).astype(np.float32)
    x, y = Tensor2D(data, f32), Tensor1D(targets, f32)
    size = ROWS // PARTS
    parts = [
        (Tensor2D(data[k : k + size], f32), Tensor1D(targets[k : k + size], f32))
        for k in range(0, ROWS, size)
    ]
    p, total = params(rng, 0.3), params(rng, 0.0)
    first, worst = float(loss(p, x, y)), 0.0
    for _ in range(STEPS):
        whole = slope(p, x, y)
        for rows, wanted in parts:
            total = add_in_place(total, p, rows, wanted)
        worst = max(worst, error(total, whole))
        p, total = update_in_place(p, total)
    last = float(loss(p, x, y))
    print(
        f"{PARTS} parts and the whole differ by {worst:.0e} at most; loss {first:.2f} to {last:.2f}"
    )
    sys.exit(0 if worst < 1e-5 and last < first / 2 else "the parts are not the whole")


if __name__ == "__main__":
    main()
