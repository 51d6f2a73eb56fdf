"""Rejected (marks as in bad.py): branches, carries, bodies, recursion, functions as values."""
from __future__ import annotations
from collections.abc import Callable
from typing import TypeAlias
from nnkit import (
    Field, Rep, Scalar, Struct, Tensor1D, Tensor2D, Tensor3D, Tensor4D, boolean, cond, const, f32, f64, fix, fn, fori,
    gradient, i32, i64, staged, tup, while_loop, zip, zip_with,
)
Float1D: TypeAlias = Tensor1D[f32]
Float2D: TypeAlias = Tensor2D[f32]
Int: TypeAlias = Scalar[i32]
Number: TypeAlias = Scalar[f32]
class Params(Struct):
    w: Field[Float1D]
class Other(Struct):
    w: Field[Float1D]

def choices(x: Rep[Float2D], v: Rep[Float1D], s: Rep[Number], n: Rep[Int], p: Rep[Scalar[boolean]], d: Rep[Tensor2D[f64]],
            a: Rep[Params], b: Rep[Other], mask: Rep[Tensor1D[boolean]], c: Float2D, flag: bool) -> None:
    cond(mask, lambda: x, lambda: x)    # E
    cond(n, lambda: x, lambda: x)    # E
    cond(x.sum(), lambda: x, lambda: x)    # E
    cond("a", lambda: x, lambda: x)    # E
    cond(flag, lambda: x, lambda: v)    # E
    cond(n > 0, x, x)    # E:pyright
    cond(n > 0, lambda: x, x)    # E:pyright
    cond(n > 0, lambda: x)    # E
    cond(n > 0, lambda: x, lambda: d)    # E
    cond(n > 0, lambda: x, lambda: x.sum(axis=0))    # E
    cond(n > 0, lambda: s, lambda: n)    # E
    cond(n > 0, lambda: s, lambda: 1.0)    # E
    cond(n > 0, lambda: x, lambda: c)    # E
    cond(n > 0, lambda: a, lambda: b)    # E
    cond(n > 0, lambda: (x, v), lambda: (v, x))    # E
    cond(n > 0, lambda: (x, v), lambda: x)    # E
    cond(n > 0, lambda: (x, v), lambda: tup(x, v))    # E
    cond(n > 0, lambda: (x, v, n), lambda: (x, v, s))    # E
    cond(n > 0, lambda k: x, lambda: x)    # E
    cond(n > 0, lambda: cond(p, lambda: x, lambda: v), lambda: x)    # E
    w1: Rep[Float1D] = cond(p, lambda: x, lambda: x)    # E
    w2: Rep[Float2D] = cond(p, lambda: (x, x), lambda: (x, x))    # E
    del w1, w2

def loops(x: Rep[Float2D], v: Rep[Float1D], s: Rep[Number], n: Rep[Int], d: Rep[Scalar[f64]], a: Rep[Params]) -> None:
    while_loop(lambda c: c, lambda c: c, s)    # E
    while_loop(lambda c: c < 0.0, lambda c: c, v)    # E
    while_loop(lambda c: c.sum() < 0.0, lambda c: c[0], v)    # E
    while_loop(lambda c: c < 0.0, lambda c: c.cast(f64), s)    # E
    while_loop(lambda c: c < 0.0, lambda c, k: c, s)    # E
    while_loop(lambda: s < 0.0, lambda c: c, s)    # E
    while_loop(lambda c: c[0] < 3, lambda c: (c[1], c[0]), (n, x))    # E
    while_loop(lambda c: c[0] < 3, lambda c: (c[0], c[1], x), (n, x))    # E
    while_loop(lambda c: c[0] < 3, lambda c: c[0], (n, x))    # E
    while_loop(lambda c: c < 3, lambda c: c + 1, 0)    # E
    while_loop(lambda c: c < 0.0, lambda c: c * 2.0)    # E
    fori(0, 3, lambda c: c, x)    # E
    fori(0, 3, lambda i, c: c[i], x)    # E
    fori(0, 3, lambda i, c: c * i, s)    # E
    fori(0.5, 3, lambda i, c: c, x)    # E
    fori(0, s, lambda i, c: c, x)    # E
    fori(0, v, lambda i, c: c, x)    # E
    fori(0, 3, lambda i, c: (c[0], c[0]), (x, v))    # E
    fori(3, lambda i, c: c, x)    # E
    def shrinks(i: Rep[Int], c: Rep[Float2D]) -> Rep[Float1D]:
        return c[i]
    fori(0, 3, shrinks, x)    # E
    def of_i64(i: Rep[Scalar[i64]], c: Rep[Float2D]) -> Rep[Float2D]:
        return c
    fori(0, 3, of_i64, x)    # E
    r: Rep[Float1D] = fori(0, 3, lambda i, c: c, x)    # E
    del r

rowsum = fn(Float1D)(lambda r: r.sum())
def collections(s: Rep[Number], v: Rep[Float1D], x: Rep[Float2D], t: Rep[Tensor3D[f32]], q: Rep[Tensor4D[f32]], n: Rep[Int],
                k: Rep[Tensor1D[i32]], a: Rep[Params], c: Float2D) -> None:
    s.map(lambda e: e)    # E
    a.map(lambda e: e)    # E
    t.map(rowsum)    # E
    x.map(lambda r: (r, r))    # E
    x.map(lambda r, i: r)    # E
    x.map(lambda r: r @ x @ x @ v @ v)    # E
    x.map(lambda r: 1.0)    # E
    m1: Rep[Float2D] = x.map(lambda r: r.sum())    # E
    s.fold(s, lambda b, e: b)    # E
    x.fold(s, lambda b, r: b + r)    # E
    x.fold(v, lambda b, r: b.sum())    # E
    x.fold(v, lambda b: b)    # E
    x.fold(0.0, lambda b, r: b)    # E
    x.fold((v, s), lambda b, r: (b[1], b[0]))    # E
    k.fold(s, lambda b, e: b + e)    # E
    x.scan(v, lambda b, r: b + r)    # E
    x.scan(v, lambda b, r: (b.sum(), r))    # E
    x.scan(v, lambda b, r: (b, r, r))    # E
    carry, ys = x.scan(v, lambda b, r: (b + r, r.sum()))
    f1: Rep[Float2D] = ys.tensor()    # E
    f2: Rep[Float2D] = carry    # E
    f3: Rep[Float1D] = ys    # E
    v.filter(lambda e: e)    # E
    x.filter(lambda r: r > 0.0)    # E
    s.filter(lambda e: e > 0.0)    # E
    f4: Rep[Float1D] = v.filter(lambda e: e > 0.0)    # E
    zip(x, a)    # E
    zip(x)    # E
    zip(x, c)    # E
    zip(x, v).map(lambda p: p[0] + p[1] @ x)    # E
    zip(s, v).map(lambda p: p[0])    # E
    zip_with(x, k, lambda r, i: r @ i)    # E
    zip_with(s, v, lambda e, g: e)    # E
    zip_with(x, v, lambda r: r)    # E
    c.map(lambda r: r)    # E
    del m1, f1, f2, f3, f4

@staged
def wrong_branch(n: Rep[Int]) -> Rep[Int]:    # recursive lambdas that are right stand in good_control; each takes mypy 15 s
    return cond(n == 0, lambda: const(f32(1.0)), lambda: n * wrong_branch(n - 1))    # E
@staged
def wrong_result(n: Rep[Int]) -> Rep[Number]:
    return cond(n == 0, lambda: n, lambda: n * wrong_result(n - 1))    # E
@staged
def wrong_argument(n: Rep[Int]) -> Rep[Int]:
    return cond(n == 0, lambda: n, lambda: wrong_argument(n > 1))    # E
@staged
def wrong_arity(n: Rep[Int]) -> Rep[Int]:
    return cond(n == 0, lambda: n, lambda: wrong_arity(n, n))    # E
fixed: Rep[Callable[[Int], Int]] = fix(lambda self: fn(Number)(lambda n: n))    # E
@fix    # E
def not_itself(rec: Rep[Callable[[Int], Int]]) -> Rep[Callable[[Int], Number]]:
    return fn(Int)(lambda n: n.cast(f32))
fix(lambda n: 3)    # E
fix(rowsum)    # E

@staged
def twice(f: Rep[Callable[[Float1D], Float1D]], x: Rep[Float1D]) -> Rep[Float1D]:
    return f(f(x))
add = fn(Number)(lambda x: fn(Number)(lambda y: x + y))
@staged
def six() -> Rep[Scalar[i64]]:
    return const(i64(3)) * 2
def without_arguments(m: Rep[Scalar[i64]]) -> None:
    y0: Scalar[i64] = six()    # E
    y1: Rep[Scalar[i64]] = six.eval()    # E
    six(m)    # E
    del y0, y1
def higher(x: Rep[Float1D], m: Rep[Float2D], s: Rep[Number], c: Number, v: Float1D) -> None:
    twice(rowsum, x)    # E
    twice(x, x)    # E
    twice(lambda y: y, x)    # E
    twice(add, x)    # E
    add(s)(x)    # E
    add(s)(s)(s)    # E
    add(c)(v)    # E
    add(x)    # E
    y1: Rep[Number] = add(s)    # E
    y2: Number = add(c)    # E
    gradient(of=twice, wrt=0)    # E
    gradient(of=add, wrt=0)    # E
    del y1, y2, m
