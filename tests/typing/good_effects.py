"""Accepted: checks and output inside staged functions."""
from __future__ import annotations
import nnkit as nk
from typing_extensions import assert_type
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
def rule(x: Rep[Float1D], ct: Rep[Scalar[f32]]) -> tuple[Rep[Float1D]]:
    return (x * ct,)
def total(x: object) -> float:
    return 0.0
summed = nk.callback(total, f, vjp=rule)
assert_type(summed(Tensor1D([1.0], f32)), Scalar[f32])
@nk.staged
def uses(x: Rep[Float1D]) -> Rep[Scalar[f32]]:
    return summed(x) * 2.0
assert_type(nk.gradient(of=uses, wrt=0)(Tensor1D([1.0], f32)), Float1D)
def by_name(symbol: str, address: int) -> None:
    nk.foreign(symbol, f)
    nk.foreign(address, f, vjp=rule)
with nk.debug_nans():
    f(Tensor1D([1.0], f32))
wrong: FloatingPointError = nk.NonFiniteError("message")
error: AssertionError = nk.CheckError("message")
