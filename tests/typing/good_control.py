"""Accepted: what branches return and loops carry, recursion, functions as arguments and results, collections."""
from __future__ import annotations
from collections.abc import Callable
from typing import TypeAlias
from typing_extensions import assert_type
from nnkit import (
    Dim, Field, Rep, Scalar, Stacked, Struct, Tensor1D, Tensor2D, Tensor3D, Tensor4D, boolean, bf16, cond, const, f32, fix, fn, fori,
    i32, i64, staged, tanh, tup, while_loop, zip, zip_with,
)
Float1D: TypeAlias = Tensor1D[f32]
Float2D: TypeAlias = Tensor2D[f32]
Int: TypeAlias = Scalar[i32]
Number: TypeAlias = Scalar[f32]
class Batch(Dim): ...
class In(Dim): ...
class Params(Struct):
    w: Field[Float1D]
    n: Field[Int]

# ------------------------------------------------------------------ 1. cond
def choices(x: Rep[Float2D], v: Rep[Float1D], s: Rep[Number], n: Rep[Int], p: Rep[Scalar[boolean]], q: Rep[Params],
            named: Rep[Tensor2D[f32, Batch, In]]) -> None:
    assert_type(cond(p, lambda: x, lambda: x.T), Rep[Float2D])
    assert_type(cond(~p & (n > 3), lambda: n, lambda: n // 2), Rep[Int])
    assert_type(cond(s == 0.0, lambda: q, lambda: q.set(Params.w, v)), Rep[Params])
    assert_type(cond(p, lambda: named, lambda: named * 2.0), Rep[Tensor2D[f32, Batch, In]])
    assert_type(cond(p, lambda: tup(x, n), lambda: tup(x, n + 1)), Rep[tuple[Float2D, Int]])
    assert_type(cond(p, lambda: (x, v, n), lambda: (x, v, n)), tuple[Rep[Float2D], Rep[Float1D], Rep[Int]])
    assert_type(cond(p, lambda: (x, v, n, s), lambda: (x, v, n, s)), tuple[Rep[Float2D], Rep[Float1D], Rep[Int], Rep[Number]])
    nested = cond(n < 0, lambda: -1.0 * s, lambda: cond(n == 0, lambda: s, lambda: s + 1.0))
    assert_type(nested, Rep[Number])
    def one() -> Rep[Float1D]:
        return v
    def other() -> Rep[Float1D]:
        return tanh(v)
    assert_type(cond(v.sum() > 0.0, one, other), Rep[Float1D])
    assert_type(x + cond(p, lambda: v, lambda: v * 2.0), Rep[Float2D])

# ------------------------------------------------------------------ 2. loops
def loops(x: Rep[Float2D], v: Rep[Float1D], n: Rep[Int], m: Rep[Scalar[i64]], s: Rep[Number], q: Rep[Params]) -> None:
    assert_type(while_loop(lambda a: a.sum() < 10.0, lambda a: a * 2.0, x), Rep[Float2D])
    assert_type(while_loop(lambda a: a < 10, lambda a: a * 2, n), Rep[Int])
    assert_type(while_loop(lambda a: a[Params.n] < 3, lambda a: a.set(Params.n, a[Params.n] + 1), q), Rep[Params])
    i, a, b = while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] @ x, c[2] + c[1].sum()), (n, x, s))
    assert_type(i, Rep[Int])
    assert_type(a, Rep[Float2D])
    assert_type(b, Rep[Number])
    four = while_loop(lambda c: c[3] < 3, lambda c: (c[0] @ c[1], c[1], c[2], c[3] + 1), (x, x, v, n))
    assert_type(four, tuple[Rep[Float2D], Rep[Float2D], Rep[Float1D], Rep[Int]])
    assert_type(fori(0, n, lambda k, c: c + x[k], v), Rep[Float1D])
    assert_type(fori(m, 10, lambda k, c: (c[0] + c[1], c[0]), (v, v)), tuple[Rep[Float1D], Rep[Float1D]])
    assert_type(fori(0, 3, lambda k, c: fori(0, k, lambda j, d: d * s, c), s), Rep[Number])
    def of_row(k: Rep[Int], c: Rep[Number]) -> Rep[Number]:    # a nested lambda with a subscript would take mypy 20 s
        return fori(0, k, lambda j, d: d + x[k, j], c)
    assert_type(fori(0, 3, of_row, s), Rep[Number])
    def power(k: Rep[Int], c: Rep[Float2D]) -> Rep[Float2D]:
        return c @ x
    assert_type(fori(0, 5, power, x), Rep[Float2D])
    def newton(y: Rep[Number]) -> Rep[Number]:
        return y - (y * y - s) / (2.0 * y)
    assert_type(while_loop(lambda y: y * y - s > 1e-6, newton, s), Rep[Number])

# ------------------------------------------------------------------ 3. along the leading axis
rowsum = fn(Float1D)(lambda r: r.sum())
@staged
def affine(r: Rep[Float1D]) -> Rep[Float1D]:
    return r * 2.0 + 1.0
def collections(v: Rep[Float1D], x: Rep[Float2D], t: Rep[Tensor3D[f32]], q: Rep[Tensor4D[f32]], n: Rep[Tensor1D[i32]], s: Rep[Number],
                named: Rep[Tensor2D[f32, Batch, In]], h: Rep[Tensor2D[bf16]]) -> None:
    assert_type(v.map(lambda e: e * s), Rep[Float1D])
    assert_type(x.map(lambda r: r.argmax()), Rep[Tensor1D[i64]])
    assert_type(x.map(lambda r: r > r.mean()), Rep[Tensor2D[boolean]])
    assert_type(t.map(lambda m: m @ x), Rep[Tensor3D[f32]])
    assert_type(q.map(lambda u: u.sum()), Rep[Float1D])
    assert_type(x.map(rowsum), Rep[Float1D])
    assert_type(x.map(affine), Rep[Float2D])
    assert_type(x.map(lambda r: r.map(lambda e: e + s)), Rep[Float2D])
    assert_type(n.fold(const(i32(0)), lambda a, e: a + e), Rep[Int])
    assert_type(t.fold(x, lambda a, m: a @ m), Rep[Float2D])
    assert_type(x.fold((v, s), lambda c, r: (c[0] + r, c[1] + r.sum())), tuple[Rep[Float1D], Rep[Number]])
    assert_type(x.fold((v, s, n), lambda c, r: (c[0] + r, c[1], c[2])), tuple[Rep[Float1D], Rep[Number], Rep[Tensor1D[i32]]])
    total, running = v.scan(s, lambda c, e: (c + e, c + e))
    assert_type(total, Rep[Number])
    assert_type(running, Stacked[Number])
    assert_type(running.tensor(), Rep[Float1D])
    pair, states = t.scan((x, s), lambda c, m: ((c[0] @ m, c[1] + m.sum()), m[0]))
    assert_type(pair, tuple[Rep[Float2D], Rep[Number]])
    assert_type(states.tensor(), Rep[Float2D])
    kept, count = v.filter(lambda e: e > 0.0)
    assert_type(kept, Rep[Float1D])
    assert_type(count, Rep[Scalar[i64]])
    assert_type(named.filter(lambda r: (r > 0.0).all())[0], Rep[Tensor2D[f32, Batch, In]])
    assert_type(n.filter(lambda e: e % 2 != 0)[0].sum(), Rep[Int])
    assert_type(h.filter(lambda r: r.sum() > 0.0)[0], Rep[Tensor2D[bf16]])
    assert_type(zip_with(v, v, lambda a, b: a - b), Rep[Float1D])
    assert_type(zip_with(x, n, lambda r, k: r[k]), Rep[Float1D])
    assert_type(zip_with(t, x, lambda m, r: m @ r), Rep[Float2D])
    assert_type(zip(v, n), Rep[tuple[Float1D, Tensor1D[i32]]])
    assert_type(zip(x, n).map(lambda p: p[0] * 2.0), Rep[Float2D])
    assert_type(zip(x, n).fold(s, lambda c, p: c + p[0][p[1]]), Rep[Number])
    last, firsts = zip(x, n).scan(v, lambda c, p: (c + p[0], p[1]))
    assert_type(last, Rep[Float1D])
    assert_type(firsts.tensor(), Rep[Tensor1D[i32]])

# ------------------------------------------------------------------ 4. recursion
one = const(i32(1))
factorial: Rep[Callable[[Int], Int]] = staged(lambda n: cond(n == 0, lambda: one, lambda: n * factorial(n - 1)))
@staged
def fibonacci(n: Rep[Int]) -> Rep[Int]:
    return cond(n == 0, lambda: n, lambda: cond(n == 1, lambda: n, lambda: fibonacci(n - 1) + fibonacci[n - 2]))
@staged
def even(n: Rep[Int]) -> Rep[Scalar[boolean]]:
    return cond(n == 0, lambda: n == 0, lambda: odd(n - 1))
@staged
def odd(n: Rep[Int]) -> Rep[Scalar[boolean]]:
    return cond(n == 0, lambda: n != 0, lambda: even(n - 1))
fixed: Rep[Callable[[Int], Int]] = fix(lambda self: fn(Int)(lambda n: cond(n <= 1, lambda: one, lambda: n * self(n - 1))))
assert_type(fix(lambda self: factorial), Rep[Callable[[Int], Int]])
@fix
def fixed_by_name(rec: Rep[Callable[[Int], Int]]) -> Rep[Callable[[Int], Int]]:
    return fn(Int)(lambda n: cond(n < 2, lambda: n, lambda: rec(n - 1) + rec[n - 2]))
def runs(n: Int) -> None:
    assert_type(factorial(n), Int)
    assert_type(fixed(n), Int)
    assert_type(fixed_by_name[n], Int)
    assert_type(even(n), Scalar[boolean])

# ------------------------------------------------------------------ 5. functions as arguments and results
@staged
def twice(f: Rep[Callable[[Float1D], Float1D]], x: Rep[Float1D]) -> Rep[Float1D]:
    return f(f(x))
@staged
def compose(f: Rep[Callable[[Float1D], Number]], g: Rep[Callable[[Float2D], Float1D]]) -> Rep[Callable[[Float2D], Number]]:
    return fn(Float2D)(lambda x: f(g(x)))
curried = fn(Float1D)(lambda x: fn(Float1D)(lambda y: fn(Number)(lambda s: x * s - y)))
assert_type(curried, Rep[Callable[[Float1D], Callable[[Float1D], Callable[[Number], Float1D]]]])
@staged
def add(x: Rep[Number], y: Rep[Number]) -> Rep[Callable[[Number], Number]]:
    return fn(Number)(lambda z: (x + y + z) * 10.0)
def shown(n: Int, k: Number) -> None:
    assert_type(twice.ir(affine, n), str)
    twice.compile(affine, k)
@staged
def six() -> Rep[Scalar[i64]]:
    return const(i64(3)) * 2
def without_arguments(m: Rep[Scalar[i64]]) -> None:
    assert_type(six.eval(), Scalar[i64])
    assert_type(six() + m, Rep[Scalar[i64]])
    assert_type((m + six()).eval(), Scalar[i64])
    assert_type(staged(lambda: const(i64(3))).eval(), Scalar[i64])
def higher(x: Rep[Float1D], s: Rep[Number], c: Float1D, k: Number) -> None:
    assert_type(twice(affine, x), Rep[Float1D])
    assert_type(curried(x)(x)(s), Rep[Float1D])
    assert_type(curried[x][x], Rep[Callable[[Number], Float1D]])
    assert_type(curried(c)(c)(k), Float1D)
    assert_type(add(s, s)(s), Rep[Number])
    assert_type(compose(rowsum, staged(lambda m: m[0])), Rep[Callable[[Float2D], Number]])
