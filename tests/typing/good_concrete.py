"""Accepted: concrete values: the wrapper asserts the rank, dtype is inferred from the array."""
import numpy as np
import numpy.typing as npt
from typing import Any, TypeAlias
from typing_extensions import assert_type
from nnkit import Dim, Rep, Scalar, Tensor0D, Tensor1D, Tensor2D, f32, f64, named, staged
Float2D: TypeAlias = Tensor2D[f32]
class Batch(Dim): ...
class In(Dim): ...
@staged
def f(x: Rep[Float2D], lr: Rep[Scalar[f32]]) -> Rep[Float2D]:
    return x * lr
@staged
def nb(x: Rep[Tensor2D[f32, Batch, In]]) -> Rep[Tensor1D[f32, Batch]]:
    return x.sum(axis=1)
a = Tensor2D(np.zeros((3, 4), np.float32))
assert_type(a, Tensor2D[f32])
assert_type(Tensor2D([[0.0, 1.0]], f32), Tensor2D[f32])
assert_type(f(a, f32(0.1)), Tensor2D[f32])
assert_type(f(a, f32(0.1)).numpy(), np.ndarray[tuple[int, int], np.dtype[np.float32]])
assert_type(f32(0.1), Tensor0D[f32])
loss: float = float(f32(1.0))
def unknown_rank(x: npt.NDArray[np.float32], y: npt.NDArray[Any]) -> None:
    assert_type(Tensor2D(x), Tensor2D[f32])          # rank asserted, checked at run time
    assert_type(Tensor2D(y, f64), Tensor2D[f64])
    assert_type(nb(named(Tensor2D(x), Batch, In)), Tensor1D[f32, Batch])
    assert_type(nb(a), Tensor1D[f32, Batch])         # unnamed dims are gradual
