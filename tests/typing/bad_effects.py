"""Rejected (marks as in bad.py): checks of what is no boolean scalar, output."""
from __future__ import annotations
from nnkit import Rep, Tensor1D, callback, check, debug_nans, f32, foreign, print, staged
Float1D = Tensor1D[f32]
@staged
def f(x: Rep[Float1D]) -> Rep[Float1D]:
    check(x, "m")    # E
    check(x > 0.0, "m")    # E
    check(x.sum(), "m")    # E
    check(x.sum() > 0.0)    # E
    check(x.sum() > 0.0, 3)    # E
    print("x", sep=1)    # E
    debug_nans("inf")    # E
    foreign("f", x)    # E
    callback(3, f)    # E
    callback(len, f)(x.sum())    # E
    y: Rep[Float1D] = print(x)    # E
    return y
