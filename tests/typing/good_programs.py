"""Accepted: programs as users write them."""
from __future__ import annotations
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar
import numpy as np
import numpy.typing as npt
from typing_extensions import assert_type
import nnkit as nk
from nnkit import (
    AnyTensor, Dim, Field, Float, Lens, Rep, Scalar, Struct, Tensor1D, Tensor2D, Tensor3D, Tensor4D, boolean, const, f16, f32, f64, fn,
    gradient, i32, i64, select, staged, tanh, tup, value_and_gradient,
)
Float1D: TypeAlias = Tensor1D[f32]
Float2D: TypeAlias = Tensor2D[f32]
class Batch(Dim): ...
class Time(Dim): ...
class Head(Dim): ...
class Model(Dim): ...
class Hidden(Dim): ...
class Token(Dim): ...

# ------------------------------------------------------------------ attention
Queries: TypeAlias = Tensor4D[f32, Batch, Head, Time, Model]
@staged
def attention(q: Rep[Queries], k: Rep[Queries], v: Rep[Queries], mask: Rep[Tensor4D[boolean]]) -> Rep[Queries]:
    scores = q @ k.transpose(0, 1, 3, 2) / 8.0
    assert_type(scores, Rep[Tensor4D[f32, Batch, Head, Time, Time]])
    weights = nk.softmax(select(mask, scores, -1e9), axis=-1)
    assert_type(weights, Rep[Tensor4D[f32]])    # the unnamed mask hides the names
    return weights @ v
@staged
def split_heads(x: Rep[Tensor3D[f32, Batch, Time, Model]]) -> Rep[Tensor4D[f32]]:
    return x.reshape(8, 16, 4, 32).transpose(0, 2, 1, 3)
class Block(Struct):
    up: Field[Tensor2D[f32, Model, Hidden]]
    down: Field[Tensor2D[f32, Hidden, Model]]
    scale: Field[Tensor1D[f32, Model]]
    offset: Field[Tensor1D[f32, Model]]
@staged
def feed_forward(p: Rep[Block], x: Rep[Tensor3D[f32, Batch, Time, Model]]) -> Rep[Tensor3D[f32, Batch, Time, Model]]:
    y = nk.layer_norm(x, p[Block.scale], p[Block.offset])
    assert_type(y, Rep[Tensor3D[f32, Batch, Time, Model]])
    h = nk.gelu(y @ p[Block.up])
    assert_type(h, Rep[Tensor3D[f32, Batch, Time, Hidden]])
    return x + h @ p[Block.down]
@staged
def embed(table: Rep[Tensor2D[f32, Token, Model]], tokens: Rep[Tensor2D[i32, Batch, Time]]) -> Rep[Tensor3D[f32, Batch, Time, Model]]:
    return nk.take(table, tokens)
@staged
def layers(blocks: Rep[Block], x: Rep[Tensor3D[f32, Batch, Time, Model]]) -> Rep[Tensor3D[f32, Batch, Time, Model]]:
    for _ in range(3):
        x = feed_forward(blocks, x)
    return x

# ------------------------------------------------------------------ optimisers
class State(Struct):
    params: Field[Block]
    mean: Field[Block]
    step: Field[Scalar[f32]]
@staged
def objective(p: Rep[Block], x: Rep[Tensor3D[f32, Batch, Time, Model]]) -> Rep[Scalar[f32]]:
    return (layers(p, x) ** 2).mean()
@staged
def train(s: Rep[State], x: Rep[Tensor3D[f32, Batch, Time, Model]]) -> tuple[Rep[State], Rep[Scalar[f32]]]:
    value, slope = value_and_gradient(of=objective, wrt=0)(s[State.params], x).unpack()
    assert_type(value, Rep[Scalar[f32]])
    assert_type(slope, Rep[Block])
    params, mean = s[State.params], s[State.mean]
    for field in nk.fields(Block):
        mean = mean.set(field, 0.9 * mean[field] + 0.1 * slope[field])
        params = params.set(field, params[field] - 0.01 * mean[field] / (nk.sqrt(nk.square(mean[field])) + 1e-8))
    return s.set(State.params, params).set(State.mean, mean).set(State.step, s[State.step] + 1), value
def run(state: State, x: npt.NDArray[np.float32]) -> float:
    state, value = train(state, Tensor3D(x))
    assert_type(state.params.up, Tensor2D[f32, Model, Hidden])
    return float(value)

# ------------------------------------------------------------------ statistics and geometry
@staged
def standardise(x: Rep[Tensor2D[f32, Batch, Model]]) -> Rep[Tensor2D[f32, Batch, Model]]:
    return (x - x.mean(axis=0)) / (x.var(axis=0) + 1e-5) ** 0.5
@staged
def log_density(x: Rep[Float2D], means: Rep[Float2D], scale: Rep[Float1D]) -> Rep[Float1D]:
    difference = x.expand_dims(1) - means.expand_dims(0)
    assert_type(difference, Rep[Tensor3D[f32]])
    squared = (difference * difference).sum(axis=2)
    return nk.logsumexp(-0.5 * squared / nk.square(scale) - nk.log(scale), axis=1)
@staged
def pairwise(x: Rep[Float2D]) -> Rep[Float2D]:
    squares = (x * x).sum(axis=1, keepdims=True)
    return squares + squares.T - 2 * x @ x.T
@staged
def rotate(angle: Rep[Scalar[f64]], points: Rep[Tensor2D[f64]]) -> Rep[Tensor2D[f64]]:
    c, s = nk.cos(angle), nk.sin(angle)
    return points @ nk.stack([nk.stack([c, -s]), nk.stack([s, c])])
@staged
def accuracy(logits: Rep[Tensor2D[f32, Batch, Token]], labels: Rep[Tensor1D[i64, Batch]]) -> Rep[Scalar[f32]]:
    return (logits.argmax(axis=1) == labels).cast(f32).mean()
@staged
def clip(x: Rep[Float2D]) -> Rep[Float2D]:
    return nk.minimum(nk.maximum(x, -1.0), 1)
@staged
def huber(x: Rep[Float1D], delta: Rep[Scalar[f32]]) -> Rep[Scalar[f32]]:
    large = nk.abs(x) > delta
    return select(large, delta * (nk.abs(x) - 0.5 * delta), 0.5 * x * x).sum()
@staged
def mixed_precision(x: Rep[Tensor2D[f16]], w: Rep[Float2D]) -> Rep[Tensor2D[f16]]:
    return (x.cast(f32) @ w).cast(f16)
@staged
def euler(y: Rep[Float1D], a: Rep[Float2D]) -> Rep[Float1D]:
    for step in range(10):
        y = y + 0.1 * (a @ y) * (1 if step else 0.5)
    return y
@staged
def total(x: Rep[Float2D]) -> Rep[Scalar[f32]]:
    return sum([x.sum(), x.mean(), x[0, 0]], start=x.max())
@staged
def convolve_rows(x: Rep[Float2D], kernel: Rep[Float1D]) -> Rep[Float2D]:
    return x[:, :-2] * kernel[0] + x[:, 1:-1] * kernel[1] + x[:, 2:] * kernel[2]

# ------------------------------------------------------------------ functions as values, generic code
def compose(*parts: Rep[Callable[[Float2D], Float2D]]) -> Rep[Callable[[Float2D], Float2D]]:
    def all_parts(x: Rep[Float2D]) -> Rep[Float2D]:
        for part in parts:
            x = part(x)
        return x
    return staged(all_parts)
@staged
def twice(f: Rep[Callable[[Float1D], Float1D]], x: Rep[Float1D]) -> Rep[Float1D]:
    return f(f(x))
square = fn(Float1D)(lambda x: x * x)
def use_twice(x: Rep[Float1D]) -> None:
    assert_type(twice(square, x), Rep[Float1D])
def make_linear(size: int) -> Rep[Callable[[Float2D], Float2D]]:
    weights = const(Tensor2D(np.zeros((size, size), np.float32)))
    @staged
    def linear(x: Rep[Float2D]) -> Rep[Float2D]:
        return x @ weights
    return linear
X = TypeVar("X", bound=AnyTensor[Float])
def swish(x: Rep[X]) -> Rep[X]:
    return x * nk.sigmoid(x)
def residual(f: Callable[[Rep[X]], Rep[X]], x: Rep[X]) -> Rep[X]:
    return x + f(x)
def stacked(rows: Sequence[Rep[Float1D]]) -> Rep[Float2D]:
    return nk.stack(rows)
def use_generic(m: Rep[Float2D], v: Rep[Tensor1D[f64]]) -> None:
    assert_type(swish(m), Rep[Float2D])
    assert_type(residual(swish, v), Rep[Tensor1D[f64]])
    assert_type(residual(nk.tanh, m), Rep[Float2D])
    assert_type(stacked([m[0], m[1] * 2]), Rep[Float2D])
    by_name: dict[str, Callable[[Rep[Float2D]], Rep[Float2D]]] = {"tanh": nk.tanh, "relu": nk.relu, "swish": swish}
    assert_type(by_name["tanh"](m), Rep[Float2D])
no_arguments = staged(lambda: nk.zeros((2,), f32))
assert_type(no_arguments, Rep[Callable[[], Float1D]])

# ------------------------------------------------------------------ derivatives
second = gradient(of=gradient(of=huber, wrt=1), wrt=1)
assert_type(second, Rep[Callable[[Float1D, Scalar[f32]], Scalar[f32]]])
@staged
def newton(x: Rep[Float1D], delta: Rep[Scalar[f32]]) -> Rep[Scalar[f32]]:
    return delta - gradient(of=huber, wrt=1)(x, delta) / second(x, delta)
@staged
def penalty(x: Rep[Float2D], w: Rep[Float2D]) -> Rep[Scalar[f32]]:
    slope = gradient(of=fn(Float2D, Float2D)(lambda a, b: tanh(a @ b).sum()), wrt=0)(x, w)
    return nk.norm(slope, axis=1).mean()
assert_type(gradient(of=penalty, wrt=(0, 1)), Rep[Callable[[Float2D, Float2D], tuple[Float2D, Float2D]]])
assert_type(gradient(of=penalty, wrt=(0, 1), keeping=(0,)), Rep[Callable[[Float2D, Float2D], tuple[Float2D, Float2D, Scalar[f32]]]])
assert_type(gradient(of=objective, wrt=1), Rep[Callable[[Block, Tensor3D[f32, Batch, Time, Model]], Tensor3D[f32, Batch, Time, Model]]])
assert_type(gradient(of=objective, wrt=(0, 1)), Rep[Callable[[Block, Tensor3D[f32, Batch, Time, Model]], tuple[Block, Tensor3D[f32, Batch, Time, Model]]]])
assert_type(gradient(of=objective, wrt=lambda p, x: (p.up, x)), Rep[Callable[[Block, Tensor3D[f32, Batch, Time, Model]], tuple[Tensor2D[f32, Model, Hidden], Tensor3D[f32, Batch, Time, Model]]]])
assert_type(gradient(of=embed, wrt=0), Rep[Callable[[Tensor2D[f32, Token, Model], Tensor2D[i32, Batch, Time]], Tensor2D[f32, Token, Model]]])
def steps(x: Float2D, w: Float2D) -> Float2D:
    value, (dx, dw) = value_and_gradient(of=penalty, wrt=(0, 1))(x, w)
    assert_type(value, Scalar[f32])
    assert_type(dx, Float2D)
    return dw
@staged
def many(a: Rep[Float1D], b: Rep[Float1D], c: Rep[Float1D], d: Rep[Float1D], e: Rep[Float1D], f: Rep[Float1D]) -> Rep[Scalar[f32]]:
    return (a * b + c * d + e * f).sum()
assert_type(gradient(of=many, wrt=(0, 1, 2, 3)), Rep[Callable[[Float1D, Float1D, Float1D, Float1D, Float1D, Float1D], tuple[Float1D, Float1D, Float1D, Float1D]]])
assert_type(gradient(of=many, wrt=lambda a, b, c, d, e, f: (f, a)), Rep[Callable[[Float1D, Float1D, Float1D, Float1D, Float1D, Float1D], tuple[Float1D, Float1D]]])
@staged
def eight(a: Rep[Float1D], b: Rep[Float1D], c: Rep[Float1D], d: Rep[Float1D], e: Rep[Float1D], f: Rep[Float1D], g: Rep[Float1D], h: Rep[Float1D]) -> Rep[Float1D]:
    return a * b + c * d + e * f + g * h
assert_type(gradient(of=eight, wrt=(1, 2)), Rep[Callable[[Float1D, Float1D, Float1D, Float1D, Float1D, Float1D, Float1D, Float1D], tuple[Float1D, Float1D]]])
def use_eight(k: Float1D) -> None:
    assert_type(eight(k, k, k, k, k, k, k, k), Float1D)
    assert_type(gradient(of=eight, wrt=0, seedable=True)(k, k, k, k, k, k, k, k, k), Float1D)

# ------------------------------------------------------------------ small things that must not be flagged
def small(s: Rep[Scalar[f32]], v: Rep[Float1D], m: Rep[Float2D], t: Rep[Tensor3D[f32]], n: Rep[Tensor1D[i32]], p: Rep[Tensor2D[boolean]], c: Float2D) -> None:
    assert_type(m.sum(axis=None), Rep[Scalar[f32]])
    assert_type(m.mean(axis=None, keepdims=True), Rep[Float2D])
    assert_type(nk.mean(m, axis=None), Rep[Scalar[f32]])
    assert_type(m.argmax(axis=None), Rep[Scalar[i64]])
    assert_type(+m, Rep[Float2D])
    assert_type(m.sum(axis=0, keepdims=False), Rep[Float1D])
    assert_type(m.sum(axis=(0,)), Rep[Float1D])
    assert_type(2 - n, Rep[Tensor1D[i32]])
    assert_type(1 / m, Rep[Float2D])
    assert_type(2 ** m, Rep[Float2D])
    assert_type(3.0 < m, Rep[Tensor2D[boolean]])
    assert_type(n == 0, Rep[Tensor1D[boolean]])
    assert_type(s < m, Rep[Tensor2D[boolean]])
    assert_type(m >= s, Rep[Tensor2D[boolean]])
    assert_type((p & (m > 0.0)) | ~p ^ p, Rep[Tensor2D[boolean]])
    assert_type(m[-1], Rep[Float1D])
    assert_type(m[n[0]], Rep[Float1D])
    assert_type(m[:, n[0]], Rep[Float1D])
    assert_type(t[0][1][2], Rep[Scalar[f32]])
    assert_type(tup(m, v)[-1], Rep[Float1D])
    np.asarray(c)
    np.add(c, 1.0)
    rows, columns = c.shape
    print(f"{rows} x {columns} {c.dtype} {c!r}")
    m += v
    m *= 2.0
    total = s
    for x in (s, s * 2):
        total += x
    assert_type(total, Rep[Scalar[f32]])
    best: Rep[Any] = m
    anything: Rep[Tensor2D[Any]] = m
    lens: Lens[Block, Tensor2D[f32, Model, Hidden]] = Block.up
    del best, anything, lens

# ------------------------------------------------------------------ several results, fields
@staged
def both(x: Rep[Float2D], w: Rep[Float2D]) -> tuple[Rep[Float2D], Rep[Scalar[f32]]]:
    return x @ w, w.sum()
assert_type(gradient(of=both, wrt=lambda x, w: (w, x)), Rep[Callable[[Float2D, Float2D], tuple[Float2D, Float2D]]])
assert_type(gradient(of=both, wrt=lambda x, w: w, from_=1), Rep[Callable[[Float2D, Float2D], Float2D]])
assert_type(gradient(of=objective, wrt=lambda p, x: p.scale, seedable=True), Rep[Callable[[Block, Tensor3D[f32, Batch, Time, Model], Scalar[f32]], Tensor1D[f32, Model]]])
assert_type(gradient(of=objective, wrt=Block.scale), Rep[Callable[[Block, Tensor3D[f32, Batch, Time, Model]], Tensor1D[f32, Model]]])
assert_type(value_and_gradient(of=objective, wrt=Block.scale), Rep[Callable[[Block, Tensor3D[f32, Batch, Time, Model]], tuple[Scalar[f32], Tensor1D[f32, Model]]]])
assert_type(value_and_gradient(of=objective, wrt=lambda p, x: (p.scale, p)), Rep[Callable[[Block, Tensor3D[f32, Batch, Time, Model]], tuple[Scalar[f32], tuple[Tensor1D[f32, Model], Block]]]])
