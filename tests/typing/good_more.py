"""Accepted: other dtypes, tensor-valued gradients, several outputs, generic user functions."""
from __future__ import annotations
from collections.abc import Callable
from typing import TypeAlias
import numpy as np
from typing_extensions import TypeVar, assert_type
from nnkit import (
    AnyTensor, Dim, Field, Float, Rep, Scalar, Struct, Tensor1D, Tensor2D, Tensor3D, Tensor4D, bf16, boolean, cond, const, f16, f32,
    fn, gradient, i8, sigmoid, staged, tanh, value_and_gradient,
)
Float1D: TypeAlias = Tensor1D[f32]
Float2D: TypeAlias = Tensor2D[f32]
class In(Dim): ...
class Out(Dim): ...
class Params(Struct):
    w: Field[Tensor2D[f32, In, Out]]
    b: Field[Tensor1D[f32, Out]]

def dtypes(h: Rep[Tensor2D[f16]], b: Rep[Tensor2D[bf16]], n: Rep[Tensor2D[i8]]) -> None:
    assert_type(tanh(h @ h + 0.5).mean(axis=0), Rep[Tensor1D[f16]])
    assert_type(b / b.sum(), Rep[Tensor2D[bf16]])
    assert_type((n // 2 + 1).sum(), Rep[Scalar[i8]])
    assert_type(n < 3, Rep[Tensor2D[boolean]])
    assert_type(bf16(0.5), Scalar[bf16])
    assert_type(Tensor2D([[0.5]], bf16), Tensor2D[bf16])
    # an array built in place: mypy must not let the constructor's overloads decide numpy's dtype
    assert_type(Tensor2D(np.zeros((3, 4), np.float16)), Tensor2D[f16])
    assert_type(Tensor2D(np.zeros((3, 4), np.int8)), Tensor2D[i8])
    assert_type(Tensor2D(np.zeros((3, 4), np.int8)).numpy(), np.ndarray[tuple[int, int], np.dtype[np.int8]])

# generic calls as operands: the overload tried first must not fix their type variables
def operands(v: Rep[Float1D], m: Rep[Float2D], t: Rep[Tensor3D[f32]], q: Rep[Tensor4D[f32]], p: Rep[Params]) -> None:
    assert_type(m + tanh(v), Rep[Float2D])
    assert_type(tanh(v) + m, Rep[Float2D])
    assert_type(tanh(v) * tanh(m), Rep[Float2D])
    assert_type(q - tanh(m.sum()), Rep[Tensor4D[f32]])
    assert_type(t / m.sum(axis=0), Rep[Tensor3D[f32]])
    assert_type(tanh(v) < tanh(v[0]), Rep[Tensor1D[boolean]])
    assert_type(m + p[Params.b], Rep[Float2D])
    assert_type(v + p[Params.w], Rep[Tensor2D[f32, In, Out]])
    assert_type(m + const(v.eval()), Rep[Float2D])
    assert_type(m * cond(v[0] < v[1], lambda: v, lambda: v), Rep[Float2D])
    assert_type(m * fn(Float1D)(lambda x: x)(v), Rep[Float2D])
    assert_type(m.map(lambda row: tanh(row)), Rep[Float2D])
    assert_type(q[0, 1, :, 2], Rep[Float1D])
    assert_type(q[0, :, 1:, 2], Rep[Float2D])

# user functions generic in the tensor type may use operators
FT = TypeVar("FT", bound=AnyTensor[Float])
def silu(x: Rep[FT]) -> Rep[FT]:
    return x * sigmoid(x) + x / 2.0
def use_silu(m: Rep[Float2D], h: Rep[Tensor1D[f16]]) -> None:
    assert_type(m + silu(m), Rep[Float2D])
    assert_type(silu(h), Rep[Tensor1D[f16]])

@staged
def g(x: Rep[Float2D], w: Rep[Float2D], b: Rep[Float1D]) -> Rep[Float2D]:
    return x @ w + b
@staged
def two(x: Rep[Float2D], w: Rep[Float2D], b: Rep[Float1D]) -> tuple[Rep[Float2D], Rep[Float1D]]:
    return x @ w, b
assert_type(two, Rep[Callable[[Float2D, Float2D, Float1D], tuple[Float2D, Float1D]]])
# unseeded gradient of a tensor: the seed is a tensor of ones
assert_type(gradient(of=g, wrt=(1, 2)), Rep[Callable[[Float2D, Float2D, Float1D], tuple[Float2D, Float1D]]])
assert_type(gradient(of=g, wrt=2), Rep[Callable[[Float2D, Float2D, Float1D], Float1D]])
assert_type(gradient(of=g, wrt=lambda x, w, b: (b, x)), Rep[Callable[[Float2D, Float2D, Float1D], tuple[Float1D, Float2D]]])
assert_type(gradient(of=g, wrt=1, keeping=(0,)), Rep[Callable[[Float2D, Float2D, Float1D], tuple[Float2D, Float2D]]])
assert_type(gradient(of=gradient(of=g, wrt=1), wrt=0), Rep[Callable[[Float2D, Float2D, Float1D], Float2D]])
assert_type(gradient(of=fn(Float2D)(lambda a: a * 2.0), wrt=0, keeping=(0,)), Rep[Callable[[Float2D], tuple[Float2D, Float2D]]])
# several outputs
assert_type(gradient(of=two, wrt=(1, 2)), Rep[Callable[[Float2D, Float2D, Float1D], tuple[Float2D, Float1D]]])
assert_type(gradient(of=two, wrt=1, from_=1), Rep[Callable[[Float2D, Float2D, Float1D], Float2D]])
assert_type(gradient(of=two, wrt=2, keeping=(0,)), Rep[Callable[[Float2D, Float2D, Float1D], tuple[Float1D, Float2D]]])
assert_type(gradient(of=two, wrt=2, from_=1, keeping=(0,)), Rep[Callable[[Float2D, Float2D, Float1D], tuple[Float1D, Float2D]]])
s0 = gradient(of=two, wrt=(1, 2), from_=0, seedable=True)
s1 = gradient(of=two, wrt=(1, 2), from_=1, seedable=True)
vg = value_and_gradient(of=fn(Float2D)(lambda a: a.sum()), wrt=0)
assert_type(vg, Rep[Callable[[Float2D], tuple[Scalar[f32], Float2D]]])
def seeds(x: Rep[Float2D], v: Rep[Float1D], c: Float2D, k: Float1D) -> None:
    assert_type(s0(x, x, v, x), Rep[tuple[Float2D, Float1D]])
    assert_type(s1(c, c, k, k), tuple[Float2D, Float1D])
