"""A star import brings no name of a builtin."""

from typing import assert_type

from nnkit import *

assert_type(abs(-1), int)
assert_type(sum([1, 2]), int)
assert_type(round(1.5), int)
shown = [f"{a}{b}" for a, b in zip("ab", "cd")]


@staged
def length(x: Rep[Tensor1D[f32]]) -> Rep[Scalar[f32]]:
    return sqrt((x * x).sum())
