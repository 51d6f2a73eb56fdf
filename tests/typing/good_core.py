"""Accepted: tensors, operators, staging, application, structs, gradient, control flow."""
from __future__ import annotations
from collections.abc import Callable
from typing import Any, TypeAlias
from typing_extensions import TypeVar, assert_type
from nnkit import (
    Dim, Field, Lens, Rep, Scalar, Struct, Tensor0D, Tensor1D, Tensor2D, Tensor3D, Tensor4D,
    boolean, build, concat, cond, const, exp, f32, f64, fix, fn, fori, gradient, gradient_dynamic,
    hessian, i32, i64, jacobian, jvp, maximum, mul, relu, select, sigmoid, softmax, stack, staged, tanh, tup,
    value_and_gradient, vjp, vmap, vmap2, while_loop,
)

Float1D: TypeAlias = Tensor1D[f32]
Float2D: TypeAlias = Tensor2D[f32]
class Batch(Dim): ...
class In(Dim): ...
class Hid(Dim): ...
class Out(Dim): ...

# ------------------------------------------------------------------ 1. operators
def ops(s: Rep[Scalar[f32]], v: Rep[Float1D], m: Rep[Float2D], t: Rep[Tensor3D[f32]], q: Rep[Tensor4D[f32]],
        n: Rep[Tensor2D[i32]], p: Rep[Tensor2D[boolean]]) -> None:
    assert_type(m @ m, Rep[Tensor2D[f32]])
    assert_type(m @ v, Rep[Tensor1D[f32]])
    assert_type(v @ m, Rep[Tensor1D[f32]])
    assert_type(v @ v, Rep[Tensor0D[f32]])
    assert_type(t @ m, Rep[Tensor3D[f32]])
    assert_type(t @ t, Rep[Tensor3D[f32]])
    assert_type(q @ q, Rep[Tensor4D[f32]])
    assert_type(m + m, Rep[Tensor2D[f32]])
    assert_type(m + v, Rep[Tensor2D[f32]])              # bias add
    assert_type(v + m, Rep[Tensor2D[f32]])
    assert_type(t * m, Rep[Tensor3D[f32]])
    assert_type(t + v, Rep[Tensor3D[f32]])
    assert_type(s * q, Rep[Tensor4D[f32]])
    assert_type(m * 2.0, Rep[Tensor2D[f32]])
    assert_type(2 * m, Rep[Tensor2D[f32]])
    assert_type(1.0 - m / 3, Rep[Tensor2D[f32]])
    assert_type(m ** 2.0, Rep[Tensor2D[f32]])
    assert_type(n // 2 + 1, Rep[Tensor2D[i32]])
    assert_type(n % n, Rep[Tensor2D[i32]])
    assert_type(-m, Rep[Tensor2D[f32]])
    assert_type(m < 0.0, Rep[Tensor2D[boolean]])
    assert_type(m < m, Rep[Tensor2D[boolean]])
    assert_type(m == s, Rep[Tensor2D[boolean]])
    assert_type(n != 3, Rep[Tensor2D[boolean]])
    assert_type((m < 0.0) & ~p, Rep[Tensor2D[boolean]])
    assert_type(select(m < 0.0, m, -m), Rep[Tensor2D[f32]])
    assert_type(tanh(exp(relu(m))), Rep[Tensor2D[f32]])
    assert_type(maximum(m, 0.0), Rep[Tensor2D[f32]])
    assert_type(softmax(v), Rep[Tensor1D[f32]])
    # reductions, shapes, indexing
    assert_type(t.sum(), Rep[Tensor0D[f32]])
    assert_type(t.sum(axis=0), Rep[Tensor2D[f32]])
    assert_type(t.sum(axis=-1), Rep[Tensor2D[f32]])
    assert_type(t.mean((0, 1)), Rep[Tensor1D[f32]])
    assert_type(t.max(axis=1, keepdims=True), Rep[Tensor3D[f32]])
    assert_type(m.argmax(axis=1), Rep[Tensor1D[i64]])
    assert_type(m.T, Rep[Tensor2D[f32]])
    assert_type(t.transpose(0, 2, 1), Rep[Tensor3D[f32]])
    assert_type(m.reshape(-1), Rep[Tensor1D[f32]])
    assert_type(m.reshape(2, 3, -1), Rep[Tensor3D[f32]])
    assert_type(v.expand_dims(0), Rep[Tensor2D[f32]])
    assert_type(m.cast(f64), Rep[Tensor2D[f64]])
    assert_type(concat([m, m], axis=1), Rep[Tensor2D[f32]])
    assert_type(stack([v, v]), Rep[Tensor2D[f32]])
    assert_type(m[0], Rep[Tensor1D[f32]])
    assert_type(m[1:3], Rep[Tensor2D[f32]])
    assert_type(m[:, 0], Rep[Tensor1D[f32]])
    assert_type(m[0, 1], Rep[Tensor0D[f32]])
    assert_type(t[0, :, 1:], Rep[Tensor2D[f32]])

# named dimensions are optional and gradual
def dims(x: Rep[Tensor2D[f32, Batch, In]], w: Rep[Tensor2D[f32, In, Out]], b: Rep[Tensor1D[f32, Out]],
         anyw: Rep[Tensor2D[f32]], lit: Rep[Tensor2D[f32, Any, Out]]) -> Rep[Tensor2D[f32, Batch, Out]]:
    assert_type(x @ w, Rep[Tensor2D[f32, Batch, Out]])
    assert_type(x @ w + b, Rep[Tensor2D[f32, Batch, Out]])
    assert_type((x @ w).sum(axis=0), Rep[Tensor1D[f32, Out]])
    assert_type(w.T, Rep[Tensor2D[f32, Out, In]])
    assert_type(x.T @ x, Rep[Tensor2D[f32, In, In]])
    assert_type(x @ anyw, Rep[Tensor2D[f32, Batch, Any]])
    assert_type(anyw.named(Batch, In) @ w, Rep[Tensor2D[f32, Batch, Out]])
    assert_type(x < 0.0, Rep[Tensor2D[boolean, Batch, In]])
    y: Rep[Tensor2D[f32, Batch, Out]] = anyw + b
    z: Rep[Tensor2D[f32]] = x + anyw + x
    del y, z
    return x @ anyw

# functions generic in the tensor type
FT = TypeVar("FT", Tensor1D[f32], Tensor2D[f32], Tensor2D[f64])
TT = TypeVar("TT", bound="Tensor1D[f32] | Tensor2D[f32]")
def silu(x: Rep[FT]) -> Rep[FT]:
    return mul(x, sigmoid(x))

# ------------------------------------------------------------------ 2. staging and application
@staged
def f(x: Rep[Float2D], w: Rep[Float2D], b: Rep[Float2D]) -> Rep[Float2D]:
    return x @ w + b
assert_type(f, Rep[Callable[[Float2D, Float2D, Float2D], Float2D]])
f_ann: Rep[Callable[[Float2D, Float2D, Float2D], Float2D]] = staged(lambda x, w, b: x @ w + b)
f_fn = fn(Float2D, Float2D, Float2D)(lambda x, w, b: x @ w + b)
assert_type(f_fn, Rep[Callable[[Float2D, Float2D, Float2D], Float2D]])
@staged
def g(x: Rep[Float2D], w: Rep[Float2D], b: Rep[Float2D]) -> Rep[Float2D]:
    return tanh(f[x, w, b])
@staged
def pair(x: Rep[Float2D], v: Rep[Float1D]) -> tuple[Rep[Float2D], Rep[Float1D]]:
    return x + v, v
assert_type(pair, Rep[Callable[[Float2D, Float1D], tuple[Float2D, Float1D]]])
@staged
def loss(x: Rep[Float2D], w: Rep[Float2D], b: Rep[Float2D]) -> Rep[Scalar[f32]]:
    return (g(x, w, b) ** 2.0).sum()
curried = fn(Float2D)(lambda x: x)
id_of = fn(Float2D)(lambda x: fn(Float2D)(lambda y: x + y))
assert_type(id_of, Rep[Callable[[Float2D], Callable[[Float2D], Float2D]]])

def app(x: Rep[Float2D], c: Float2D, v: Rep[Float1D], k: Float1D) -> None:
    assert_type(f[x, x, x], Rep[Float2D])
    assert_type(f(x, x, x), Rep[Float2D])
    assert_type(f[c, c, c], Float2D)
    assert_type(f(c, c, c), Float2D)
    assert_type(f(x, const(c), x), Rep[Float2D])
    assert_type(pair(x, v), Rep[tuple[Float2D, Float1D]])
    assert_type(pair(x, v)[1], Rep[Float1D])
    a, b = pair(x, v).unpack()
    assert_type(a, Rep[Float2D])
    assert_type(b, Rep[Float1D])
    assert_type(pair[c, k], tuple[Float2D, Float1D])
    assert_type(id_of[x][x], Rep[Float2D])
    assert_type(const(c).eval(), Float2D)
    assert_type(tup(x, v), Rep[tuple[Float2D, Float1D]])

# recursion as in NNKit's tests
@staged
def fac(n: Rep[Scalar[i32]]) -> Rep[Scalar[i32]]:
    return cond(n == 0, lambda: const(i32(1)), lambda: n * fac(n - 1))
@fix
def fac2(rec: Rep[Callable[[Scalar[i32]], Scalar[i32]]]) -> Rep[Callable[[Scalar[i32]], Scalar[i32]]]:
    return staged(lambda n: n * rec[n - 1])
assert_type(fac2, Rep[Callable[[Scalar[i32]], Scalar[i32]]])

# structs
class Params(Struct):
    w: Field[Tensor2D[f32, In, Out]]
    b: Field[Tensor1D[f32, Out]]
assert_type(Params.w, Lens[Params, Tensor2D[f32, In, Out]])
@staged
def dense(p: Rep[Params], x: Rep[Tensor2D[f32, Batch, In]]) -> Rep[Tensor2D[f32, Batch, Out]]:
    assert_type(p[Params.w], Rep[Tensor2D[f32, In, Out]])
    return x @ p[Params.w] + p[Params.b]
@staged
def sgd(p: Rep[Params], g: Rep[Params], lr: Rep[Scalar[f32]]) -> Rep[Params]:
    q = p.set(Params.w, p[Params.w] - lr * g[Params.w])
    assert_type(q, Rep[Params])
    return build(Params, Params.w << q[Params.w], Params.b << p[Params.b] - lr * g[Params.b])
def use_struct(w: Tensor2D[f32, In, Out], b: Tensor1D[f32, Out], x: Tensor2D[f32, Batch, In]) -> None:
    p = Params(w, b)
    assert_type(p.w, Tensor2D[f32, In, Out])
    assert_type(dense[p, x], Tensor2D[f32, Batch, Out])

# ------------------------------------------------------------------ 3. differentiation
G1 = gradient(of=loss, wrt=1)
assert_type(G1, Rep[Callable[[Float2D, Float2D, Float2D], Float2D]])
G12 = gradient(of=loss, wrt=(1, 2))
assert_type(G12, Rep[Callable[[Float2D, Float2D, Float2D], tuple[Float2D, Float2D]]])
G12k = gradient(of=loss, wrt=(1, 2), keeping=(0,))
assert_type(G12k, Rep[Callable[[Float2D, Float2D, Float2D], tuple[Float2D, Float2D, Scalar[f32]]]])
G12s = gradient(of=g, wrt=(1, 2), seedable=True)
G12sk = gradient(of=g, wrt=(1, 2), seedable=True, keeping=(0,))
vg = value_and_gradient(of=loss, wrt=(1, 2))
assert_type(vg, Rep[Callable[[Float2D, Float2D, Float2D], tuple[Scalar[f32], tuple[Float2D, Float2D]]]])
def app_grad(x: Rep[Float2D], c: Float2D) -> None:
    assert_type(G12[x, x, x], Rep[tuple[Float2D, Float2D]])
    assert_type(G12[c, c, c], tuple[Float2D, Float2D])
    assert_type(G12s[x, x, x, x], Rep[tuple[Float2D, Float2D]])
    assert_type(G12sk[x, x, x, x], Rep[tuple[Float2D, Float2D, Float2D]])
    assert_type(G12sk[c, c, c, c], tuple[Float2D, Float2D, Float2D])
    dw, db, y = G12sk(c, c, c, c)
    assert_type(dw, Float2D)
    assert_type(y, Float2D)
    del db
@staged
def ploss(p: Rep[Params], x: Rep[Tensor2D[f32, Batch, In]], y: Rep[Tensor2D[f32, Batch, Out]]) -> Rep[Scalar[f32]]:
    d = dense(p, x) - y
    return (d * d).mean()
gp = gradient(of=ploss, wrt=0)                         # gradient of a struct is the struct
def use_ploss(p: Params, x: Tensor2D[f32, Batch, In], y: Tensor2D[f32, Batch, Out]) -> Params:
    assert_type(gp(p, x, y), Params)
    v, d = value_and_gradient(of=ploss, wrt=0)(p, x, y)
    assert_type(v, Scalar[f32])
    assert_type(d, Params)
    return gp(p, x, y)
# selector form: any order, fields of structs
gs = gradient(of=loss, wrt=lambda x, w, b: (b, w))
assert_type(gs, Rep[Callable[[Float2D, Float2D, Float2D], tuple[Float2D, Float2D]]])
gf = gradient(of=ploss, wrt=Params.w)
def use_gf(p: Rep[Params], x: Rep[Tensor2D[f32, Batch, In]], y: Rep[Tensor2D[f32, Batch, Out]]) -> None:
    assert_type(gf[p, x, y], Rep[Tensor2D[f32, In, Out]])
gd = gradient_dynamic(of=loss, wrt=[2, 1])
J = jvp(f)
def more(x: Float2D, v: Float1D) -> None:
    assert_type(J(x, x, x, x, x, x), tuple[Float2D, Float2D])
    assert_type(vjp(f)(x, x, x, x), tuple[Float2D, Float2D, Float2D])
    assert_type(jacobian(fn(Float1D)(lambda v: v * v))(v), Tensor2D[f32])
    assert_type(hessian(fn(Float1D)(lambda v: (v * v).sum()))(v), Tensor2D[f32])

# ------------------------------------------------------------------ 4. control flow
def control(x: Rep[Float2D], v: Rep[Float1D], s: Rep[Scalar[f32]], n: Rep[Scalar[i32]]) -> None:
    assert_type(cond(s < 0.0, lambda: x, lambda: -x), Rep[Float2D])
    assert_type(cond(s < 0.0, lambda: (x, v), lambda: (x + v, v)), tuple[Rep[Float2D], Rep[Float1D]])
    assert_type(while_loop(lambda c: c[0] < 10, lambda c: (c[0] + 1, c[1] * 2.0), (n, x)), tuple[Rep[Scalar[i32]], Rep[Float2D]])
    assert_type(fori(0, 10, lambda i, a: a + 1.0, x), Rep[Float2D])
    assert_type(x.fold(v, lambda a, row: a + row), Rep[Float1D])
    def step(h: Rep[Float1D], row: Rep[Float1D]) -> tuple[Rep[Float1D], Rep[Scalar[f32]]]:
        h2 = tanh(h + row)
        return h2, h2.sum()
    h, ys = x.scan(v, step)
    assert_type(h, Rep[Float1D])
    assert_type(ys.tensor(), Rep[Float1D])
    h2, zs = x.scan((v, n), lambda c, row: ((c[0] + row, c[1] + 1), row))
    assert_type(h2, tuple[Rep[Float1D], Rep[Scalar[i32]]])
    assert_type(zs.tensor(), Rep[Float2D])
    assert_type(x.map(lambda row: row.sum()), Rep[Float1D])
    assert_type(x.map(lambda row: row * 2.0), Rep[Float2D])
rowsum = fn(Float1D)(lambda v: v.sum())
assert_type(vmap(rowsum), Rep[Callable[[Float2D], Float1D]])
dot = fn(Float1D, Float1D)(lambda a, b: a @ b)
assert_type(rowsum, Rep[Callable[[Float1D], Scalar[f32]]])
assert_type(vmap2(dot), Rep[Callable[[Float2D, Float2D], Float1D]])
def more_vmap(a: Rep[Float2D], b: Rep[Float1D]) -> None:
    assert_type(vmap(dot)(a, b), Rep[Float1D])
assert_type(dot, Rep[Callable[[Float1D, Float1D], Scalar[f32]]])
