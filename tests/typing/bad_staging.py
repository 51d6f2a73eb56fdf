"""Rejected (marks as in bad.py): staging, application, structs, differentiation, concrete tensors, every way to get them wrong."""
from __future__ import annotations
from collections.abc import Callable
from typing import Any, TypeAlias
import numpy as np
import numpy.typing as npt
import nnkit as nk
from nnkit import (
    Dim, Field, Lens, Rep, Scalar, Struct, Tensor0D, Tensor1D, Tensor2D, Tensor3D, boolean, build, const, f16, f32, f64, fields, fn,
    gradient, gradient_dynamic, i8, i32, i64, named, staged, tup, value_and_gradient,
)
Float1D: TypeAlias = Tensor1D[f32]
Float2D: TypeAlias = Tensor2D[f32]
class Batch(Dim): ...
class In(Dim): ...
class Out(Dim): ...
class Params(Struct):
    w: Field[Tensor2D[f32, In, Out]]
    b: Field[Tensor1D[f32, Out]]
class Moments(Struct):
    first: Field[Params]
    count: Field[Scalar[i32]]
class Other(Struct):
    w: Field[Tensor2D[f32, In, Out]]

@staged
def dense(x: Rep[Float2D], w: Rep[Float2D], b: Rep[Float1D]) -> Rep[Float2D]:
    return x @ w + b
@staged
def loss(x: Rep[Float2D], w: Rep[Float2D], b: Rep[Float1D]) -> Rep[Scalar[f32]]:
    return dense(x, w, b).sum()
@staged
def two(x: Rep[Float2D], v: Rep[Float1D]) -> tuple[Rep[Float2D], Rep[Scalar[f32]]]:
    return x, v.sum()
@staged
def lookup(table: Rep[Float2D], rows: Rep[Tensor1D[i32]]) -> Rep[Scalar[f32]]:
    return nk.take(table, rows).sum()
@staged
def count(x: Rep[Float2D]) -> Rep[Scalar[i32]]:
    return x.sum().cast(i32)
@staged
def model(p: Rep[Params], x: Rep[Tensor2D[f32, Batch, In]]) -> Rep[Tensor2D[f32, Batch, Out]]:
    return x @ p[Params.w] + p[Params.b]
@staged
def model_loss(p: Rep[Params], x: Rep[Tensor2D[f32, Batch, In]]) -> Rep[Scalar[f32]]:
    return model(p, x).mean()
@staged
def scalar(a: Rep[Scalar[f32]]) -> Rep[Scalar[f32]]:
    return a * a

# definitions
@staged
def returns_smaller(x: Rep[Float2D]) -> Rep[Float2D]:
    return x.sum(axis=0)    # E
@staged
def returns_other_type(x: Rep[Float2D]) -> Rep[Tensor2D[f64]]:
    return x * 2.0    # E
@staged
def returns_mask(x: Rep[Float2D]) -> Rep[Float2D]:
    return x > 0.0    # E
@staged
def returns_swapped(x: Rep[Tensor2D[f32, Batch, In]]) -> Rep[Tensor2D[f32, Batch, In]]:
    return x.T    # E
@staged
def returns_concrete(x: Rep[Float2D]) -> Rep[Float2D]:
    return Tensor2D([[1.0]], f32)    # E
@staged    # E
def takes_array(x: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    return x
@staged    # E
def takes_tensor(x: Float2D) -> Float2D:
    return x
@staged    # E
def returns_number(x: Rep[Float2D]) -> float:
    return 1.0
@staged
def returns_pair(x: Rep[Float2D]) -> tuple[Rep[Float2D], Rep[Float1D]]:
    return x, x    # E
@staged
def forgets_sum(x: Rep[Float2D]) -> Rep[Scalar[f32]]:
    return dense(x, x, x[0])    # E
d0: Rep[Callable[[Float2D], Float1D]] = staged(lambda x: x)    # E
d1: Rep[Callable[[Float2D], Float2D]] = staged(lambda x, y: x)    # E
d2: Rep[Callable[[Float2D, Float2D], Float2D]] = dense    # E
d3: Callable[[Float1D], Float2D] = fn(Float2D)(lambda x: x)    # E
d4 = fn(Float2D)(lambda x: x.sum(axis=2))    # E
d5 = fn(Float2D, Float1D)(lambda x, y: x @ x @ y @ y @ x)    # E
d6 = fn(Float2D)(lambda: 1)    # E
d7 = fn(Float2D)(lambda x: 1.0)    # E
d8 = fn(2)(lambda x: x)    # E
d9 = fn(Float2D, Tensor2D[f64])(lambda x, y: x + y)    # E
d10 = fn(Float1D)(lambda x: x.T)    # E
d11: Rep[Callable[[Float2D, Float2D], Float2D]] = fn(Float2D, Float1D)(lambda x, y: x + y)    # E
staged(3)    # E
const(1.0)    # E
const(np.zeros(3))    # E

def application(x: Rep[Float2D], v: Rep[Float1D], c: Float2D, k: Float1D, a: npt.NDArray[np.float32], s: Rep[Scalar[f32]], n: Rep[Tensor2D[i32]]) -> None:
    dense()    # E
    dense(x)    # E
    dense(x, x, v, v)    # E
    dense[x]    # E
    dense[x, x, v, v]    # E
    dense(v, x, x)    # E
    dense(x, x, x)    # E
    dense(x, n, v)    # E
    dense(c, c, v)    # E
    dense(x, x, k)    # E
    dense[c, x, k]    # E
    dense(c, c, c)    # E
    dense[k, c, c]    # E
    dense(a, a, a)    # E
    dense(c, c, [0.0])    # E
    dense(x, x, b=v)    # E
    dense(x, x, 1.0)    # E
    scalar(1.0)    # E
    scalar(c)    # E
    scalar(x)    # E
    scalar(const(k))    # E
    r0: Rep[Float1D] = dense(x, x, v)    # E
    r1: Float1D = dense(c, c, k)    # E
    r2: float = loss(c, c, k)    # E
    r3: npt.NDArray[np.float32] = dense(c, c, k)    # E
    r4: Scalar[f64] = loss(c, c, k)    # E
    r5: tuple[Float2D, Float1D] = two(c, k)    # E
    a0, a1, a2 = two(c, k)    # E
    b0, b1, b2 = two(x, v).unpack()    # E
    two(x, v)[2]    # E
    two(x, v)[-3]    # E
    two(x, v) + x    # E
    two(c, k)[0] @ x    # E
    del r0, r1, r2, r3, r4, r5, a0, a1, a2, b0, b1, b2

def tensors_and_functions(x: Rep[Float2D], v: Rep[Float1D], c: Float2D, a: npt.NDArray[np.float32], s: Rep[Scalar[f32]]) -> None:
    c.sum()    # E
    nk.tanh(c)    # E
    x + c    # E
    c * x    # E
    x == c    # E
    c.numpy() @ x    # E
    nk.tanh(1.0)    # E
    nk.tanh(a)    # E
    nk.tanh(dense)    # E
    dense + dense    # E
    dense.sum()    # E
    const(dense)(x, x, v)    # E
    x.numpy()    # E
    x.eval().sum()    # E
    tup(x)    # E
    tup(x, 1.0)    # E
    t0: Rep[tuple[Float2D, Float2D]] = tup(x, v)    # E
    for row in x: del row    # E
    if s > 0.0: pass    # E:pyright
    while s > 0.0: pass    # E:pyright
    _ = 1 if s > 0.0 else 2    # E:pyright
    assert s > 0.0    # E:pyright
    [row for row in x]    # E
    float(s)    # E
    range(s)    # E
    np.tanh(x)    # E
    del t0

def structs(p: Rep[Params], m: Rep[Moments], c: Params, x: Rep[Tensor2D[f32, Batch, In]], w: Tensor2D[f32, In, Out], b: Tensor1D[f32, Out], rw: Rep[Tensor2D[f32, In, Out]], rb: Rep[Tensor1D[f32, Out]]) -> None:
    Params()    # E
    Params(b, w)    # E
    Params(w, b, b)    # E
    Params(w=w)    # E
    Params(w=w, c=b)    # E
    Params(rw, rb)    # E
    Params(w, w)    # E
    Params.v    # E
    c.v    # E
    c.w = b    # E
    p.w    # E
    p.b    # E
    p["w"]    # E
    p[0]    # E
    p[Other.w]    # E
    p[Moments.first]    # E
    m[Params.w]    # E
    m[Moments.first][Other.w]    # E
    m[Moments.count] + 0.5    # E
    p.set(Params.w, rb)    # E
    p.set(Params.w, w)    # E
    p.set(Other.w, rw)    # E
    p.set("w", rw)    # E
    p.set(Params.w)    # E
    m.set(Moments.first, rw)    # E
    build(Params, Params.w << rb, Params.b << rb)    # E
    build(Params, Params.w << w, Params.b << b)    # E
    build(Params, Other.w << rw, Params.b << rb)    # E
    build(Params, rw, rb)    # E
    build(Moments, Moments.first << rw)    # E
    build(Float2D, Params.w << rw)    # E
    r0: Rep[Other] = p    # E
    r1: Other = c    # E
    r2: Rep[Tensor1D[f32, Out]] = p[Params.w]    # E
    r3: Rep[Other] = build(Params, Params.w << rw, Params.b << rb)    # E
    model(p, rb)    # E
    model(c, x)    # E
    model(Params, x)    # E
    model(m, x)    # E
    x @ p    # E
    p.sum()    # E
    nk.tanh(p)    # E
    fields(Float2D)    # E
    fields(p)    # E
    c.replace(1)    # E
    l: Lens[Other, Tensor2D[f32, In, Out]] = Params.w    # E
    del r0, r1, r2, r3, l

# differentiation
gradient(loss, 1)    # E
gradient(of=loss)    # E
gradient(wrt=1)    # E
gradient(of=loss, wrt=3)    # E
gradient(of=loss, wrt=-1)    # E
gradient(of=loss, wrt=(0, 3))    # E
gradient(of=loss, wrt=(1, 1))    # E
gradient(of=loss, wrt=(1, 0))    # E
gradient(of=loss, wrt="w")    # E
gradient(of=loss, wrt=())    # E
gradient(of=loss, wrt=1.0)    # E
gradient(of=scalar, wrt=1)    # E
gradient(of=two, wrt=2)    # E
gradient(of=lookup, wrt=1)    # E
gradient(of=lookup, wrt=(0, 1))    # E
gradient(of=count, wrt=0)    # E
gradient(of=loss, wrt=1, keeping=0)    # E
gradient(of=loss, wrt=1, keeping=(1,))    # E
gradient(of=loss, wrt=1, keeping=(0, 1))    # E
gradient(of=loss, wrt=1, seedable=1)    # E
gradient(of=loss, wrt=1, seed=True)    # E
gradient(of=loss, wrt=1, from_=4)    # E
gradient(of=loss, wrt=1, from_=-1)    # E
gradient(of=lambda x: x, wrt=0)    # E
gradient(of=Params, wrt=0)    # E
gradient(of=lookup, wrt=1, seedable=True)    # E
gradient(of=count, wrt=0, seedable=True, keeping=(0,))    # E
gradient(of=two, wrt=0, seedable=True)    # E
gradient(of=model_loss, wrt=Other.w)    # E
gradient(of=model_loss, wrt="w")    # E
gradient(of=loss, wrt=Params.w)    # E
gradient(of=loss, wrt=lambda x, w, b, c: w)    # E
gradient(of=loss, wrt=lambda: 1)    # E
gradient(of=model_loss, wrt=lambda p, x: p[Params.w])    # E
gradient(of=model_loss, wrt=lambda p, x: p.v)    # E
gradient_dynamic(of=loss)    # E
gradient_dynamic(of=loss, wrt=1)    # E
gradient_dynamic(of=3, wrt=[1])    # E
value_and_gradient(of=dense, wrt=1)    # E
value_and_gradient(of=loss, wrt=3)    # E
value_and_gradient(of=lookup, wrt=1)    # E
value_and_gradient(of=count, wrt=0)    # E
value_and_gradient(of=model, wrt=0)    # E
value_and_gradient(of=loss, wrt=(1, 0))    # E
value_and_gradient(of=two, wrt=0)    # E
value_and_gradient(of=loss, wrt=1, seedable=True)    # E
gradient(of=lookup, wrt=lambda table, rows: rows)    # E
gradient(of=lookup, wrt=lambda table, rows: (table, rows))    # E
gradient(of=loss, wrt=lambda x, w, b: [w, b])    # E
gradient(of=loss, wrt=lambda x, w, b: 1)    # E
value_and_gradient(of=dense, wrt=lambda x, w, b: b)    # E
value_and_gradient(of=loss, wrt=lambda x, w: w)    # E
value_and_gradient(of=model_loss, wrt=lambda p, x: p.v)    # E
g_w: Rep[Callable[[Float2D, Float2D, Float1D], Float1D]] = gradient(of=loss, wrt=1)    # E
g_wb: Rep[Callable[[Float2D, Float2D, Float1D], tuple[Float1D, Float2D]]] = gradient(of=loss, wrt=(1, 2))    # E
g_one: Rep[Callable[[Float2D, Float2D, Float1D], Float2D]] = gradient(of=loss, wrt=(1,))    # E
g_seed: Rep[Callable[[Float2D, Float2D, Float1D], Float2D]] = gradient(of=dense, wrt=1, seedable=True)    # E
g_keep: Rep[Callable[[Float2D, Float2D, Float1D], tuple[Scalar[f32], Float2D]]] = gradient(of=loss, wrt=1, keeping=(0,))    # E
g_value: Rep[Callable[[Float2D, Float2D, Float1D], tuple[Float2D, Scalar[f32]]]] = value_and_gradient(of=loss, wrt=1)    # E
g_struct: Rep[Callable[[Params, Tensor2D[f32, Batch, In]], Other]] = gradient(of=model_loss, wrt=0)    # E
first = gradient(of=loss, wrt=(1, 2))
seeded = gradient(of=dense, wrt=(0, 2), seedable=True)
seeded_kept = gradient(of=dense, wrt=2, seedable=True, keeping=(0,))
by_struct = gradient(of=model_loss, wrt=0)
by_field = gradient(of=model_loss, wrt=Params.b)
both = value_and_gradient(of=loss, wrt=(1, 2))
def gradients(x: Rep[Float2D], v: Rep[Float1D], c: Float2D, k: Float1D, p: Params, rp: Rep[Params], xb: Tensor2D[f32, Batch, In], rxb: Rep[Tensor2D[f32, Batch, In]]) -> None:
    first(c, c)    # E
    first(c, c, k, c)    # E
    first(c, c, c)    # E
    first(x, c, v)    # E
    a, b, e = first(c, c, k)    # E
    dw: Float1D = first(c, c, k)[0]    # E
    dw + first(x, x, v)[0]    # E
    seeded(c, c, k)    # E
    seeded(c, c, k, k)    # E
    seeded(x, x, v, v)    # E
    seeded[c, c, k]    # E
    s0: tuple[Float2D, Float2D] = seeded(c, c, k, c)    # E
    s1: Float1D = seeded_kept(c, c, k, c)    # E
    s2: tuple[Float2D, Float1D] = seeded_kept(c, c, k, c)    # E
    q0: Other = by_struct(p, xb)    # E
    q1: Tensor2D[f32, In, Out] = by_field(p, xb)    # E
    by_struct(p)    # E
    by_struct(xb, p)    # E
    by_struct(rp, rxb)[Other.w]    # E
    by_field(rp, rxb) + rp[Params.w].T    # E
    z0, (z1, z2, z3) = both(c, c, k)    # E
    z4: Float2D = both(c, c, k)    # E
    both(c, c, k)[1][2]    # E
    gradient(of=first, wrt=3)    # E
    gradient(of=seeded, wrt=4)    # E
    del a, b, e, dw, s0, s1, s2, q0, q1, z0, z1, z2, z3, z4

def concrete(a0: np.ndarray[tuple[()], np.dtype[np.float32]], a1: np.ndarray[tuple[int], np.dtype[np.float32]], a2: np.ndarray[tuple[int, int], np.dtype[np.float32]], d2: np.ndarray[tuple[int, int], np.dtype[np.float64]], u2: npt.NDArray[np.uint8], x: Tensor2D[f32, Batch, In], c: Float2D) -> None:
    Tensor1D(a2)    # E
    Tensor2D(a1)    # E
    Tensor3D(a2)    # E
    Tensor2D(a0)    # E
    Tensor0D(a1)    # E
    Tensor2D(u2)    # E
    Tensor2D([[1.0]])    # E
    Tensor2D([1.0], f32)    # E
    Tensor1D([[1.0]], f32)    # E
    Tensor3D([[1.0]], f32)    # E
    Tensor2D([["a"]], f32)    # E
    Tensor2D(1.0, f32)    # E
    Tensor2D()    # E
    Tensor2D([[1.0]], float)    # E
    Tensor2D([[1.0]], "f32")    # E
    Tensor2D([[1.0]], dtype=f32)    # E
    Tensor2D[f64](a2)    # E:pyright
    Tensor2D[f32](a1)    # E
    Tensor2D[f64]([[1.0]], f32)    # E:pyright
    e10: Tensor2D[f64] = Tensor2D[f64](a2)    # E
    e0: Float2D = Tensor2D(d2)    # E
    e1: Tensor2D[f64] = Tensor2D([[1.0]], f32)    # E
    e2: Tensor1D[f32] = Tensor2D(a2)    # E
    e3: Float2D = a2    # E
    e4: Float2D = Tensor2D(np.zeros((2, 3)))    # E
    e5: Float2D = Tensor2D(np.zeros((2, 3), np.int32))    # E
    e6: np.ndarray[tuple[int], np.dtype[np.float32]] = c.numpy()    # E
    e7: np.ndarray[tuple[int, int], np.dtype[np.float64]] = c.numpy()    # E
    e8: Scalar[f64] = f32(1.0)    # E
    e9: Scalar[f32] = 1.0    # E
    i32(0.5)    # E
    f32("1")    # E
    boolean("x")    # E
    f32()    # E
    f32([1.0])    # E
    named(c, Batch)    # E
    named(c, Batch, In, Out)    # E
    named(c, 3, 4)    # E
    n0: Tensor2D[f32, In, Batch] = named(c, Batch, In)    # E
    n1: Tensor2D[f32, Batch, Out] = x    # E
    n2: Tensor2D[f32, In, Batch] = x    # E
    n3: Tensor1D[f32, Batch] = x    # E
    n4: In = x.shape[0]    # E
    x.shape[2]    # E
    a, b, d = c.shape    # E
    float(c)    # E
    c.T    # E
    c.numpy = a2    # E
    c.shape = (1, 2)    # E
    nk.spec(3, f32)    # E
    nk.spec((3,), float)    # E
    nk.spec([3, 4], f32)    # E
    bad0: Tensor2D[float]    # E
    bad1: Tensor2D[f32, "Batch", 3]    # E
    bad2: Rep    # E
    bad3: Tensor2D[Batch, f32]    # E
    bad4: Tensor2D[f32, Batch, In, Out]    # E
    del e10, e0, e1, e2, e3, e4, e5, e6, e7, e8, e9, n0, n1, n2, n3, n4, a, b, d
_unused: Any = (f16, i8, i64, Rep)
gradient(of=two, wrt=lambda x, v: x, from_=4)    # E
class Counted(Struct):
    w: Field[Float2D]
    n: Field[Scalar[i32]]
@staged
def counted(p: Rep[Counted], x: Rep[Float2D]) -> Rep[Scalar[f32]]:
    return (x @ p[Counted.w]).sum()
gradient(of=counted, wrt=Counted.n)    # E
gradient(of=counted, wrt=lambda p, x: p.n)    # E
value_and_gradient(of=counted, wrt=Counted.n)    # E
value_and_gradient(of=counted, wrt=Params.w)    # E
counted_w: Rep[Callable[[Counted, Float2D], Scalar[i32]]] = gradient(of=counted, wrt=Counted.w)    # E
