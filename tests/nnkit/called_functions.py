"""A function, a struct and arrays that tests of calls share."""

from __future__ import annotations

from typing import Any

import numpy as np

from nnkit import Field, Rep, Struct, Tensor1D, Tensor2D, f32, staged

F1, F2 = Tensor1D[f32], Tensor2D[f32]


class Layer(Struct):
    w: Field[Tensor2D[f32]]
    b: Field[Tensor1D[f32]]


def ones(*shape: int) -> Any:
    return np.ones(shape, np.float32)


def values(result: Any) -> Any:
    return np.asarray(result).tolist()


def layer() -> Layer:
    return Layer(ones(2, 3), np.arange(3, dtype=np.float32))


@staged
def importable(x: Rep[F1]) -> Rep[F1]:
    return x + 1.0
