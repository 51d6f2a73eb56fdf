"""Accepted: checks and output inside staged functions."""
from __future__ import annotations
import nnkit as nk
from nnkit import Rep, Scalar, Tensor1D, f32
Float1D = Tensor1D[f32]
@nk.staged
def f(x: Rep[Float1D]) -> Rep[Scalar[f32]]:
    nk.check(x.min() > 0.0, "x must be positive")
    nk.check((x < 10.0).all(), "x is too large")
    nk.check(len("abc") > 2, "too short")
    nk.print("x", x, 3, x.sum(), sep=", ", end="\n\n")
    nk.print()
    return x.sum()
with nk.debug_nans():
    f(Tensor1D([1.0], f32))
wrong: FloatingPointError = nk.NonFiniteError("message")
error: AssertionError = nk.CheckError("message")
