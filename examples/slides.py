"""The program of DLVM's slides: two functions, the second calls the first, and a gradient of it.

Prints the IR as it was staged, with the gradient differentiated, and optimised; then runs it and
compares every number with NumPy.
"""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

import nnkit as nk
from nnkit import Rep, Tensor2D, f32

Float2D: TypeAlias = Tensor2D[f32]


@nk.staged
def f(x: Rep[Float2D], w: Rep[Float2D], b: Rep[Float2D]) -> Rep[Float2D]:
    return x @ w + b


@nk.staged
def g(x: Rep[Float2D], w: Rep[Float2D], b: Rep[Float2D]) -> Rep[Float2D]:
    return nk.tanh(f[x, w, b])  # a call, and stays one in the IR


dg = nk.gradient(of=g, wrt=(1, 2), seedable=True, keeping=(0,))


def main() -> None:
    x, w, b = nk.spec((1, 784), f32), nk.spec((784, 10), f32), nk.spec((1, 10), f32)
    title("staged: f, g, and the gradient of g with respect to w and b, declared")
    print(dg.ir(x, w, b, b, stage="raw"))
    title("differentiated: the declaration has a body, and f a function for its backward pass")
    print(dg.ir(x, w, b, b, stage="optimizable"))
    title("optimised: calls inlined")
    print(dg.ir(x, w, b, b, stage="optimized"))
    title("run, and compared with NumPy")
    run()


def run() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((1, 784), np.float32)
    w = rng.standard_normal((784, 10), np.float32) / np.float32(28)
    b, seed = rng.standard_normal((2, 1, 10), np.float32)
    dw, db, y = dg[Tensor2D(x, f32), Tensor2D(w, f32), Tensor2D(b, f32), Tensor2D(seed, f32)]

    expected_y = np.tanh(x @ w + b)
    expected_db = seed * (1 - expected_y**2)
    expected_dw = x.T @ expected_db
    compare("y ", y.numpy(), expected_y)
    compare("db", db.numpy(), expected_db)
    compare("dw", dw.numpy(), expected_dw)


def compare(name: str, found: npt.NDArray[np.float32], expected: npt.NDArray[np.float32]) -> None:
    error = np.abs(found - expected).max()
    print(f"{name} {found.shape!s:9} differs from NumPy by at most {error:.1e}")
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def title(text: str) -> None:
    print(f"\n==== {text}\n")


if __name__ == "__main__":
    main()
