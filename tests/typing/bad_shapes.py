"""Rejected (marks as in bad.py): ranks, element types and named dimensions across operators, shapes and indexing."""
from __future__ import annotations
from typing import TypeAlias
from nnkit import Dim, Rep, Scalar, Tensor1D, Tensor2D, Tensor3D, Tensor4D, bf16, boolean, concat, f16, f32, f64, i8, i32, i64, maximum, select, softmax, stack, tanh
Float1D: TypeAlias = Tensor1D[f32]
Float2D: TypeAlias = Tensor2D[f32]
class Batch(Dim): ...
class Time(Dim): ...
class In(Dim): ...
class Out(Dim): ...

def products(s: Rep[Scalar[f32]], v: Rep[Float1D], m: Rep[Float2D], t: Rep[Tensor3D[f32]], q: Rep[Tensor4D[f32]], d: Rep[Tensor1D[f64]], n: Rep[Tensor2D[i32]]) -> None:
    m @ s    # E
    s @ s    # E
    v @ s    # E
    m @ t    # E
    v @ q    # E
    m @ q    # E
    t @ q    # E
    q @ t    # E
    d @ m    # E
    v @ d    # E
    n @ m    # E
    t @ n    # E
    2.0 @ m    # E
    a: Rep[Float2D] = v @ v    # E
    b: Rep[Float2D] = m @ v    # E
    c: Rep[Float1D] = m @ m    # E
    e: Rep[Scalar[f32]] = v @ m    # E
    f: Rep[Tensor2D[f64]] = m @ m    # E
    g: Rep[Tensor3D[f32]] = t @ v    # E
    (m @ v) @ m @ v @ v    # E
    del a, b, c, e, f, g

def arithmetic(s: Rep[Scalar[f32]], v: Rep[Float1D], m: Rep[Float2D], t: Rep[Tensor3D[f32]], d: Rep[Tensor2D[f64]], n: Rep[Tensor2D[i32]], k: Rep[Tensor2D[i64]], p: Rep[Tensor2D[boolean]], h: Rep[Tensor1D[f16]], r: Rep[Tensor1D[bf16]], j: Rep[Tensor1D[i8]]) -> None:
    m + d    # E
    d - m    # E
    m + n    # E
    n - m    # E
    n * k    # E
    k // n    # E
    n % k    # E
    h * r    # E
    m / h    # E
    v + h    # E
    m - p    # E
    p - m    # E
    p * p    # E
    p / p    # E
    -p    # E
    n / 2    # E
    2 / n    # E
    n + 0.5    # E
    0.5 * n    # E
    m // m    # E
    m % m    # E
    m % 2.0    # E
    m + "1"    # E
    m + None    # E
    m + [1.0]    # E
    m ** "2"    # E
    2.0 ** n    # E
    a: Rep[Float1D] = v + m    # E
    b: Rep[Float1D] = m * v    # E
    c: Rep[Scalar[f32]] = s * v    # E
    e: Rep[Float2D] = m - t    # E
    f: Rep[Float2D] = n // n    # E
    g: Rep[Tensor2D[i32]] = m * 2    # E
    m += d    # E
    del a, b, c, e, f, g
    r + j    # E

def comparisons(v: Rep[Float1D], m: Rep[Float2D], d: Rep[Tensor2D[f64]], n: Rep[Tensor2D[i32]], p: Rep[Tensor2D[boolean]], s64: Rep[Scalar[f64]]) -> None:
    m < n    # E
    m >= d    # E
    n == m    # E
    m != p    # E
    n < 0.5    # E
    m == "a"    # hole: any Python value may be compared, the answer is a bool
    n == 0.5    # hole
    select(None, m, m)    # E
    m > s64    # E
    0.5 < n    # E
    p & m    # E
    m ^ p    # E
    ~m    # E
    p & True    # E
    p and m    # hole
    not m    # E:pyright
    a: Rep[Float2D] = m < m    # E
    b: Rep[Tensor1D[boolean]] = m < 0.0    # E
    c: bool = m == m    # E
    del a, b, c

def selects(v: Rep[Float1D], m: Rep[Float2D], d: Rep[Tensor2D[f64]], n: Rep[Tensor2D[i32]], p: Rep[Tensor2D[boolean]], q: Rep[Tensor1D[boolean]]) -> None:
    select(n, m, m)    # E
    select(p, m, d)    # E
    select(p, v, m)    # E
    select(p, m)    # E
    select(q, m, m)    # E
    select(p, n, 1.5)    # E
    select(1.0, m, m)    # E
    select(True, v, m)    # E
    select(p, p, 1.0)    # E
    a: Rep[Float1D] = select(p, m, m)    # E
    b: Rep[Tensor2D[boolean]] = select(p, m, 0.0)    # E
    del a, b

def names(x: Rep[Tensor2D[f32, Batch, In]], w: Rep[Tensor2D[f32, In, Out]], b: Rep[Tensor1D[f32, Out]], y: Rep[Tensor2D[f32, Batch, Out]], t: Rep[Tensor3D[f32, Batch, Time, In]], o: Rep[Tensor1D[i32, Batch]], k: Rep[Tensor2D[f64, In, Out]]) -> None:
    w @ x    # E
    x @ w.T    # E
    x.T @ w    # E
    x @ b    # E
    b @ x    # E
    t @ x    # E
    t @ w + x    # E
    x @ k    # E
    x + y    # E
    y - x @ w.T.T + x    # E
    y + b * x    # E
    x * y    # E
    x < y    # E
    y == w    # E
    maximum(x, y)    # E
    select(x < 0.0, y, y)    # E
    select(y < 0.0, y, x)    # E
    stack([x, y])    # E
    r0: Rep[Tensor2D[f32, Out, Batch]] = y    # E
    r1: Rep[Tensor1D[f32, Batch]] = y.sum(axis=0)    # E
    r2: Rep[Tensor1D[f32, Out]] = y.mean(axis=1)    # E
    r3: Rep[Tensor2D[f32, Batch, Out]] = y.T    # E
    r4: Rep[Tensor1D[f32, Batch]] = y[0]    # E
    r5: Rep[Tensor1D[f32, Out]] = y.max(axis=-1)    # E
    r6: Rep[Tensor2D[boolean, In, Batch]] = x < 0.0    # E
    r7: Rep[Tensor1D[i64, Out]] = y.argmax(axis=1)    # E
    r8: Rep[Tensor3D[f32, Time, Batch, In]] = t.transpose(0, 2, 1)    # E
    r9: Rep[Tensor2D[f32, Batch, In]] = tanh(y)    # E
    s0: Rep[Tensor2D[f32, Batch, In]] = t.sum(axis=0)    # E
    s1: Rep[Tensor2D[f64, In, Batch]] = x.cast(f64)    # E
    s2: Rep[Tensor2D[f32, Batch, Out]] = softmax(x)    # E
    s3: Rep[Tensor3D[f32, Batch, Time, Out]] = t @ w.T.T + t    # E
    x.named(Batch)    # E
    x.named(Batch, In, Out)    # E
    x.named(Batch, "In")    # E
    s4: Rep[Tensor2D[f32, Out, In]] = w.transpose(0, 1)    # E
    s5: Rep[Tensor1D[f32, In]] = t[0, 0] + b    # E
    x - o    # E
    del r0, r1, r2, r3, r4, r5, r6, r7, r8, r9, s0, s1, s2, s3, s4, s5

def reductions(s: Rep[Scalar[f32]], v: Rep[Float1D], m: Rep[Float2D], t: Rep[Tensor3D[f32]], q: Rep[Tensor4D[f32]], n: Rep[Tensor2D[i32]], p: Rep[Tensor2D[boolean]]) -> None:
    s.sum(axis=0)    # E
    v.sum(1)    # E
    v.max(axis=-2)    # E
    m.mean(axis=-3)    # E
    m.min(axis=2)    # E
    t.prod(axis=3)    # E
    q.sum(axis=4)    # E
    t.sum((0, 3))    # E
    m.sum((0, 1, 2))    # E
    t.mean((1, 0))    # E
    m.sum((0, 0))    # E
    m.sum(axis=1.0)    # E
    m.sum(axis="batch")    # E
    m.sum(dim=1)    # E
    m.sum(0, True)    # E
    m.sum(axis=0, keepdims=1)    # E
    v.argmax(axis=1)    # E
    m.argmax(axis=2)    # E
    m.argmin(axis=(0, 1))    # E
    p.argmax()    # E
    p.max()    # E
    n.all()    # E
    m.any(axis=0)    # E
    p.any(axis=2)    # E
    n.var(axis=0)    # E
    a: Rep[Scalar[f32]] = m.sum(axis=0)    # E
    b: Rep[Float1D] = m.sum()    # E
    c: Rep[Float1D] = m.sum(axis=0, keepdims=True)    # E
    d: Rep[Tensor1D[f32]] = n.sum(axis=0)    # E
    e: Rep[Scalar[f32]] = m.argmax()    # E
    f: Rep[Scalar[boolean]] = p.all(axis=0)    # E
    g: Rep[Float2D] = t.sum((0, 1))    # E
    m.sum    # accepted: a bound method
    del a, b, c, d, e, f, g

def shapes(s: Rep[Scalar[f32]], v: Rep[Float1D], m: Rep[Float2D], t: Rep[Tensor3D[f32]], q: Rep[Tensor4D[f32]], d: Rep[Tensor2D[f64]], n: Rep[Tensor2D[i32]]) -> None:
    v.T    # E
    t.T    # E
    s.T    # E
    v.transpose()    # E
    m.transpose(0)    # E
    m.transpose(0, 0)    # E
    m.transpose(1, 2)    # E
    t.transpose(0, 1)    # E
    t.transpose(0, 1, 3)    # E
    t.transpose(0, 1, 1)    # E
    q.transpose(0, 1, 2)    # E
    m.reshape(2.0)    # E
    m.reshape(1, 2, 3, 4, 5, 6)    # E
    m.reshape("x")    # E
    v.expand_dims(2)    # E
    v.expand_dims()    # E
    s.squeeze(0)    # E
    v.squeeze(1)    # E
    m.cast(float)    # E
    m.cast("f64")    # E
    m.cast()    # E
    concat([m, d])    # E
    concat([m, n])    # E
    concat([m, m], axis=2)    # E
    concat([m, m], axis=-3)    # E
    concat([s, s])    # E
    concat(m, m)    # E
    concat([v, m], axis=0)    # E
    stack([m, d])    # E
    stack([v, m])    # E
    stack([v, v], axis=2)    # E
    stack(v, v)    # E
    a: Rep[Float1D] = v.expand_dims(0)    # E
    b: Rep[Float2D] = m.cast(i32)    # E
    c: Rep[Float1D] = stack([v, v])    # E
    e: Rep[Float2D] = concat([v, v])    # E
    f: Rep[Float2D] = m.squeeze(0)    # E
    g: Rep[Float2D] = m.reshape(-1)    # E
    h: Rep[Float2D] = t.transpose(2, 1, 0)    # E
    del a, b, c, e, f, g, h

def indexing(s: Rep[Scalar[f32]], v: Rep[Float1D], m: Rep[Float2D], t: Rep[Tensor3D[f32]], i: Rep[Scalar[i32]], x: Rep[Scalar[f32]]) -> None:
    s[0]    # E
    v[0, 1]    # E
    m[0, 0, 0]    # E
    m[:, :, 0]    # E
    t[0, 0, 0, 0]    # E
    m[0.5]    # E
    m["a"]    # E
    m[x]    # E
    m[m < 0.0]    # E
    m[0] = v    # E
    del m[0]    # E
    float(s)    # E
    a: Rep[Float2D] = m[0]    # E
    b: Rep[Float1D] = m[0:1]    # E
    c: Rep[Float1D] = m[i, i]    # E
    d: Rep[Float2D] = t[0, 1, :]    # E
    e: Rep[Float1D] = t[:, 0]    # E
    f: Rep[Scalar[f64]] = v[0]    # E
    del a, b, c, d, e, f
