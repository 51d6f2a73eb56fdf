"""A network whose shape is that of its input: it reads formulas of logic as trees, by calling itself.

A formula is `0`, `1`, or two formulas joined by `and`, `or` or `xor`.  The network makes a vector of each
from those of its parts, in compiled code that calls itself; so does the code of the gradient.  While it learns
it sees formulas of up to eight joints.  Then it is asked for ones of up to forty.
"""

import sys

import numpy as np
import numpy.typing as npt

import nnkit as nk
from nnkit import Dim, Field, Rep, Scalar, Struct, Tensor1D, Tensor2D, Tensor3D, f32, i64

STEPS, RATE, WIDTH = 10000, 0.05, 16
LEARNED, ASKED = 8, 40  # joints of a formula, at most


# fmt: off
class Leaf(Dim): ...     # 0 and 1
class Kind(Dim): ...     # and, or, xor
class Parts(Dim): ...    # the features of both parts, and a 1
class Feature(Dim): ...
class Joint(Dim): ...
# fmt: on


class Params(Struct):
    leaves: Field[Tensor2D[f32, Leaf, Feature]]
    joints: Field[Tensor3D[f32, Kind, Parts, Feature]]
    answer: Field[Tensor1D[f32, Feature]]


Tree = Tensor2D[
    i64, Joint, Dim
]  # rows of kind, left and right; a part below 0 is the leaf 0 or 1, less 2
Vector = Tensor1D[f32, Feature]
Number = Scalar[f32]


@nk.staged
def features(p: Rep[Params], tree: Rep[Tree], part: Rep[Scalar[i64]]) -> Rep[Vector]:
    def joined() -> Rep[Vector]:
        left = features(p, tree, tree[part, 1])
        right = features(p, tree, tree[part, 2])
        both = nk.concat([left, right, nk.ones((1,), f32)])
        return nk.tanh(both @ p[Params.joints][tree[part, 0]])

    return nk.cond(part < 0, lambda: p[Params.leaves][part + 2], joined)


@nk.staged
def odds(p: Rep[Params], tree: Rep[Tree]) -> Rep[Number]:
    """The logarithm of the odds that a formula is true; its outermost joint is number 0."""
    return features(p, tree, nk.const(i64(0))) @ p[Params.answer]


@nk.staged
def loss(p: Rep[Params], tree: Rep[Tree], truth: Rep[Number]) -> Rep[Number]:
    z = odds(p, tree)
    return nk.logsumexp(nk.stack([z * 0, z])) - z * truth


@nk.staged
def train(
    p: Rep[Params], tree: Rep[Tree], truth: Rep[Number], rate: Rep[Number]
) -> tuple[Rep[Params], Rep[Number]]:
    value, slope = nk.value_and_gradient(of=loss, wrt=0)(p, tree, truth).unpack()
    for field in nk.fields(Params):
        p = p.set(field, p[field] - rate * slope[field])
    return p, value


def formula(rng: np.random.Generator, joints: int) -> tuple[npt.NDArray[np.int64], bool]:
    """A random formula of that many joints, and whether it is true."""
    rows = np.zeros((joints, 3), np.int64)

    def write(row: int, count: int) -> bool:
        """Write a formula of `count` joints from that row on."""
        left, at, truths = int(rng.integers(count)), row + 1, list[bool]()
        rows[row, 0] = kind = int(rng.integers(3))
        for side, size in enumerate((left, count - 1 - left)):
            rows[row, 1 + side] = at if size else rng.integers(2) - 2
            truths.append(write(at, size) if size else bool(rows[row, 1 + side] + 2))
            at += size
        return (all(truths), any(truths), truths[0] != truths[1])[kind]

    return rows, write(0, joints)


def padded(rows: npt.NDArray[np.int64]) -> Tensor2D[i64]:
    """The rows, with room for the largest formula, so that one compilation serves all."""
    return Tensor2D(np.pad(rows, ((0, ASKED - len(rows)), (0, 0))), i64)


def main() -> None:
    rng = np.random.default_rng(0)

    def around(*shape: int) -> npt.NDArray[np.float32]:
        return rng.normal(scale=WIDTH**-0.5, size=shape).astype(np.float32)

    leaves, joints = Tensor2D(around(2, WIDTH)), Tensor3D(around(3, 2 * WIDTH + 1, WIDTH))
    p, losses = Params(leaves, joints, Tensor1D(around(WIDTH))), list[float]()
    for k in range(1, STEPS + 1):
        rows, truth = formula(rng, int(rng.integers(1, LEARNED + 1)))
        p, value = train(p, padded(rows), f32(float(truth)), f32(RATE * (1 - k / STEPS)))
        losses.append(float(value))
        if k % 2000 == 0:
            print(f"{k:5}: loss {np.mean(losses[-200:]):.5f}")
    right = list[bool]()
    for _ in range(500):
        rows, truth = formula(rng, int(rng.integers(LEARNED + 1, ASKED + 1)))
        right.append((float(odds(p, padded(rows))) > 0) == truth)
    print(f"{np.mean(right):.1%} of formulas of {LEARNED + 1} to {ASKED} joints read right")
    sys.exit(0 if np.mean(right) >= 0.99 else "that is too few")


if __name__ == "__main__":
    main()
