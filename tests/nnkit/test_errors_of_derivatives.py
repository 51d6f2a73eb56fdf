"""Messages about jvp, vjp, hvp, jacobian and hessian."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nnkit import (
    DifferentiationError,
    DTypeError,
    RankError,
    RecursionDepthError,
    Rep,
    Scalar,
    ShapeError,
    StagingError,
    Tensor3D,
    UnsupportedError,
    cond,
    f32,
    f64,
    fn,
    gradient,
    hessian,
    hvp,
    i32,
    jacobian,
    jvp,
    staged,
    taylor,
    value_and_gradient,
    vjp,
)

from .messages import (
    F1,
    Count,
    Layer,
    M,
    N,
    Other,
    Table,
    V,
    counted,
    f,
    integers,
    layer,
    loss,
    on,
    ones,
    pair,
)

ROWS = Table()
row = ROWS.row
WIDE = np.ones(3)
REP = Rep[Tensor3D[f32]]
square: Any = fn(F1)(lambda x: x * x)
total: Any = fn(F1)(lambda x: (x * x).sum())
cube: Any = fn(Tensor3D[f32])(lambda x: x * x)
curried: Any = staged(lambda y: staged(lambda z: y * z))
open_type: Any = staged(lambda x: x * x)
several: Any = staged(lambda x: (x, x * x))

# fmt: off

# ------------------------------------------------------------------------------------ what is declared, at once
declared: Any = fn(F1, Scalar[i32])(lambda x, n: x * n.cast(f32))
INTEGER = DifferentiationError, "parameter n of <lambda> is a Tensor0D[i32]: only floats have derivatives"
row("gradient by a declared integer", *INTEGER, "gradient(of=declared, wrt=1)", "help: leave it out of wrt")(
    lambda: gradient(of=declared, wrt=1))
row("vjp by a declared integer", *INTEGER, "vjp(declared, wrt=1)")(lambda: vjp(declared, wrt=1))
row("jvp by a declared integer", *INTEGER, "jvp(declared)")(lambda: jvp(declared))
row("hvp by a declared integer", *INTEGER, "hvp(declared, wrt=1)")(lambda: hvp(declared, wrt=1))

# ------------------------------------------------------------------------------------ what is differentiated
row("jvp of no function", StagingError, "jvp takes a staged function, not the function ones", "jvp(ones)",
    "help: decorate it with @nk.staged")(lambda: jvp(ones))
row("vjp of no function", StagingError, "vjp takes a staged function, not a int", "vjp(3)")(lambda: vjp(3))
row("hvp of no function", StagingError, "hvp takes a staged function, not a int", "hvp(3)")(lambda: hvp(3))
row("jacobian of no function", StagingError, "jacobian takes a staged function", "jacobian(ones)")(
    lambda: jacobian(ones))
row("hessian of no function", StagingError, "hessian takes a staged function", "hessian(ones)")(
    lambda: hessian(ones))
row("jvp of integers", DifferentiationError,
    "the result of integers is a Tensor0D[i32]: only floats have derivatives", "jvp(integers)",
    "help: cast it to a float type inside the function")(lambda: jvp(integers))
row("vjp of integers", DifferentiationError, "the result of integers is a Tensor0D[i32]", "vjp(integers)")(
    lambda: vjp(integers))
row("jvp of integers, found late", DifferentiationError, "the result of <lambda> is a Tensor1D[i32]")(
    lambda: jvp(staged(lambda x, n: n), wrt=0)(V, N, V))
row("jacobian of integers", DifferentiationError, "result 0 of integers is a Tensor0D[i32]", "jacobian(integers)")(
    lambda: jacobian(integers))
row("jvp of a curried function", StagingError, "<lambda>_jvp returns staged functions", "",
    "help: differentiate the function that is returned")(lambda: jvp(curried)(V, V))
row("vjp of a curried function", StagingError, "<lambda>_vjp returns staged functions")(lambda: vjp(curried)(V, V))
row("jacobian of a curried function", StagingError, "<lambda>_jacobian returns staged functions")(
    lambda: jacobian(curried)(V))
row("scalar of hvp", DifferentiationError, "hvp needs a scalar result and f returns a Tensor2D[f32]", "hvp(f)",
    "help: reduce it, for example `.sum()`")(lambda: hvp(f))
row("scalar of hvp, found late", DifferentiationError, "hvp needs a scalar result and <lambda> returns a Tensor1D")(
    lambda: hvp(open_type)(V, V))
row("scalar of hessian", DifferentiationError, "hessian needs a scalar result and f returns a Tensor2D[f32]",
    "hessian(f)", "help: reduce it")(lambda: hessian(f))
row("scalar of hessian, found late", DifferentiationError,
    "hessian needs a scalar result and <lambda> returns a Tensor1D[f32]")(lambda: hessian(square)(V))
row("jacobian of a struct", DifferentiationError, "a Jacobian is of a tensor, and result 0 of <lambda> is a Layer",
    "", "help: choose a result by from_")(
    lambda: jacobian(fn(Layer)(lambda p: p), wrt=lambda p: p.w)(layer()))


@row("its own derivative", UnsupportedError, "slope uses its own derivative, which is not supported")
def _own() -> None:
    @staged
    def slope(x: Any) -> Any:
        return cond(x.sum() < 0.0, lambda: x, lambda: jvp(slope)(x, x)[1])

    slope(V)


# ------------------------------------------------------------------------------------ wrt and from_
row("jvp wrt out of range", DifferentiationError, "wrt=3 is out of range: f has 3 parameters (0 x, 1 w, 2 b)",
    "jvp(f, wrt=3)")(lambda: jvp(f, wrt=3))
row("vjp wrt out of range", DifferentiationError, "wrt=-1 is out of range: f has 3 parameters", "vjp(f, wrt=-1)")(
    lambda: vjp(f, wrt=-1))
row("hvp wrt out of range", DifferentiationError, "wrt=5 is out of range: loss has 2 parameters",
    "hvp(loss, wrt=(0, 5))")(lambda: hvp(loss, wrt=(0, 5)))
row("jacobian wrt out of range", DifferentiationError, "wrt=7 is out of range", "jacobian(f, wrt=7)")(
    lambda: jacobian(f, wrt=7))
row("hessian wrt out of range", DifferentiationError, "wrt=7 is out of range", "hessian(loss, wrt=7)")(
    lambda: hessian(loss, wrt=7))
row("jvp wrt twice", DifferentiationError, "wrt=(1, 1) names a parameter of f twice", "jvp(f, wrt=(1, 1))")(
    lambda: jvp(f, wrt=(1, 1)))
row("jvp wrt nothing", DifferentiationError, "wrt is empty: name at least one parameter of f", "jvp(f, wrt=())")(
    lambda: jvp(f, wrt=()))
row("jvp wrt a string", DifferentiationError, "f has no parameter 'nope'", 'jvp(f, wrt="nope")')(
    lambda: jvp(f, wrt="nope"))
row("jvp wrt all, one of integers", DifferentiationError,
    "parameter n of pair is a Tensor1D[i32]: only floats have derivatives", "jvp(pair)",
    "help: leave it out of wrt")(lambda: jvp(pair))
row("vjp wrt integers", DifferentiationError, "parameter n of pair is a Tensor1D[i32]", "vjp(pair, wrt=1)")(
    lambda: vjp(pair, wrt=1))
row("jvp wrt integers, found late", DifferentiationError, "parameter n of <lambda> is a Tensor1D[i32]")(
    lambda: jvp(staged(lambda x, n: x), wrt=1)(V, N, N))
row("jacobian wrt integers", DifferentiationError, "parameter n of pair is a Tensor1D[i32]",
    "jacobian(pair, wrt=1)")(lambda: jacobian(pair, wrt=1))
row("jvp wrt a field of integers", DifferentiationError, "c.n of counted is a Tensor0D[i32]", "",
    "help: leave it out of wrt")(lambda: jvp(counted, wrt=Count.n))
row("jvp wrt a field of another", DifferentiationError,
    "wrt=Other.w is a field of parameter 0, and p of loss is a Layer", "jvp(loss, wrt=Other.w)")(
    lambda: jvp(loss, wrt=Other.w))
row("jvp selector twice", DifferentiationError, "the selector names a parameter twice",
    "jvp(loss, wrt=lambda p, x: (p.w, p.w))")(lambda: jvp(loss, wrt=lambda p, x: (p.w, p.w)))
row("jvp selector inside of another", DifferentiationError, "the selector names a parameter twice",
    "jvp(loss, wrt=lambda p, x: (p.w, p))")(lambda: jvp(loss, wrt=lambda p, x: (p.w, p)))
row("jacobian from_", DifferentiationError, "from_=5 is out of range: pair has 2 results",
    "jacobian(pair, from_=5)")(lambda: jacobian(pair, from_=5))
row("jacobian from_ negative", DifferentiationError, "from_=-1 is no index of a result", "jacobian(f, from_=-1)")(
    lambda: jacobian(f, from_=-1))
row("hvp from_", DifferentiationError, "from_=2 is out of range: loss has 1 result", "hvp(loss, from_=2)")(
    lambda: hvp(loss, from_=2))
row("hessian from_", DifferentiationError, "from_=True is no index of a result", "hessian(loss, from_=True)")(
    lambda: hessian(loss, from_=True))
row("jacobian by a struct", DifferentiationError,
    "a Jacobian is by tensors, and parameter p of loss is a Layer", "jacobian(loss)",
    "help: name its fields, wrt=Params.w")(lambda: jacobian(loss))
row("hessian by a struct", DifferentiationError, "a Hessian is by tensors, and parameter p of loss is a Layer",
    "hessian(loss)")(lambda: hessian(loss))
row("rank of a jacobian", RankError,
    "the Jacobian of <lambda> by x would have rank 6; tensors have at most 5", "jacobian(cube)(ones(1, 1, 2))",
    "help: reshape inside the function, or use jvp, vjp or hvp")(lambda: jacobian(cube)(ones(1, 1, 2)))
row("rank of a jacobian, declared", RankError, "the Jacobian of cubed by x would have rank 6",
    "jacobian(cubed())")(lambda: jacobian(cubed()))
row("rank of a hessian", RankError, "the Hessian of <lambda> by x would have rank 6")(
    lambda: hessian(fn(Tensor3D[f32])(lambda x: x.sum()))(ones(1, 1, 2)))
row("mode", DifferentiationError, "there is no mode 'fast'; the modes are auto, forward, reverse",
    'jacobian(f, mode="fast")')(lambda: jacobian(f, mode="fast"))

# ------------------------------------------------------------------------------------ tangents and seeds
row("shape of a tangent", ShapeError, "the tangent dx of <lambda>_jvp is f32[3], like x, not f32[2]",
    "jvp(square)(V, ones(2))")(lambda: jvp(square)(V, ones(2)))
row("shape of a tangent of a type found late", ShapeError,
    "the tangent dx of <lambda>_jvp is f32[3], like x, not f32[2]")(lambda: jvp(open_type)(V, ones(2)))
row("shape of the second tangent", ShapeError, "the tangent db of f_jvp is f32[1, 3], like b, not f32[2, 3]")(
    lambda: jvp(f, wrt=(1, 2))(ones(2, 4), ones(4, 3), ones(1, 3), ones(4, 3), ones(2, 3)))
row("shape in a struct of tangents", ShapeError, "the tangent dp.b of <lambda>_jvp is f32[3], like p.b, not f32[2]")(
    lambda: jvp(fn(Layer)(lambda p: p))(layer(), Layer(M, ones(2))))
row("shape in a struct of seeds", ShapeError,
    "the seed of <lambda>_vjp is f32[3], like .b of the result, not f32[2]")(
    lambda: vjp(fn(Layer)(lambda p: p))(layer(), Layer(M, ones(2))))
row("shape of a vector of hvp", ShapeError, "the tangent dx of <lambda>_hvp is f32[3], like x, not f32[2]",
    "hvp(total)(V, ones(2))")(lambda: hvp(total)(V, ones(2)))
row("type of a tangent", DTypeError, "argument dx of <lambda>_jvp: cannot make a Tensor1D[f32] of an array of float64",
    "jvp(square)(V, WIDE)")(lambda: jvp(square)(V, WIDE))
row("type of a tangent, found late", DTypeError,
    "argument dx of <lambda>_jvp must be a Tensor1D[f32], and is a Tensor1D[f64]", "jvp(open_type)(V, WIDE)")(
    lambda: jvp(open_type)(V, WIDE))
row("type of a staged tangent", DTypeError,
    "argument dx of <lambda>_jvp must be a Tensor1D[f32], and is a Tensor1D[f64]", "jvp(square)(x, x.cast(f64))")(
    on(lambda x: jvp(square)(x, x.cast(f64)), V))
row("rank of a tangent", RankError,
    "argument dx of <lambda>_jvp must be a Tensor1D[f32], and is an array of shape [2, 3]",
    "jvp(square)(V, M)")(lambda: jvp(square)(V, M))
row("a struct for a tangent", DTypeError, "argument dp of loss_jvp must be a Layer, and is an Other",
    "jvp(loss, wrt=0)(layer(), M, Other(M))")(lambda: jvp(loss, wrt=0)(layer(), M, Other(M)))
row("no tangent", StagingError, "<lambda>_jvp takes 2 arguments (x, dx), not 1", "jvp(square)(V)")(
    lambda: jvp(square)(V))
row("shape of the seed", ShapeError, "the seed of <lambda>_vjp is f32[3], like the result, not f32[2]",
    "vjp(square)(V, ones(2))")(lambda: vjp(square)(V, ones(2)))
row("shape of one of several seeds", ShapeError,
    "the seed of <lambda>_vjp for result 1 is f32[3], like result 1, not f32[2]",
    "vjp(several)(V, (V, ones(2)))")(lambda: vjp(several)(V, (V, ones(2))))
row("type of the seed", DTypeError, "argument seed of <lambda>_vjp must be a Tensor1D[f32], and is a Tensor1D[f64]",
    "vjp(square)(V, WIDE)")(lambda: vjp(square)(V, WIDE))
row("type of the seed, declared", DTypeError,
    "argument seed of f_vjp: cannot make a Tensor2D[f32] of an array of float64",
    "vjp(f)(M, M, M, np.ones((2, 2)))")(lambda: vjp(f)(M, M, M, np.ones((2, 2))))
row("rank of the seed", RankError, "argument seed of <lambda>_vjp must be a Tensor1D[f32], and is a Tensor2D[f32]",
    "vjp(square)(V, M)")(lambda: vjp(square)(V, M))
row("number of seeds", DTypeError,
    "argument seed of <lambda>_vjp must be a tuple[Tensor1D[f32], Tensor1D[f32]], and is a tuple[Tensor1D[f32]]",
    "vjp(several)(V, (V,))")(lambda: vjp(several)(V, (V,)))
row("a Python tuple of seeds", DTypeError, "argument seed of <lambda>_vjp is a Python tuple of Reps, where one Rep is",
    "vjp(several)(x, (x, x))", "help: `tup(a, b)` makes one Rep of them")(on(lambda x: vjp(several)(x, (x, x)), V))
row("no seed", StagingError, "<lambda>_vjp takes 2 arguments (x, seed), not 1", "vjp(square)(V)")(
    lambda: vjp(square)(V))


@row("a recursion without end, forward, is of the function that the user wrote", RecursionDepthError,
    "recursion of endless is too deep: its calls would take more than", "", "help: end the recursion in a branch")
def _endless_tangent() -> None:
    jvp(of=without_end())(ones(2), ones(2))


@row("a recursion without end, in reverse, is of the function that the user wrote", RecursionDepthError,
    "recursion of endless is too deep: its calls would take more than", "", "help: end the recursion in a branch")
def _endless_gradient() -> None:
    vjp(of=without_end())(ones(2), ones(2))

# fmt: on


def without_end() -> Any:
    def endless(x: Any) -> Any:
        return cond(x.sum() > -1.0, lambda: again(x * x + 1.0) * 2.0, lambda: x)

    endless.__annotations__ = dict.fromkeys(("x", "return"), Rep[F1])
    again = staged(endless)
    return again


def cubed() -> Any:
    def cubed(x: Any) -> Any:
        return x * x * x

    cubed.__annotations__ = dict.fromkeys(("x", "return"), REP)
    return staged(cubed)


@pytest.mark.parametrize("name", ROWS)
def test_message(name: str) -> None:
    ROWS[name].check("test_errors_of_derivatives.py")


@pytest.mark.parametrize(
    ("make", "others"),
    [
        (lambda of: gradient(of=of, wrt=0), 0),
        (lambda of: gradient(of=of, wrt=lambda x, y: (y, x)), 0),
        (lambda of: value_and_gradient(of=of, wrt=0), 0),
        (lambda of: jvp(of=of, wrt=0), 1),
        (lambda of: taylor(of=of, order=2, wrt=0), 1),
        (lambda of: hvp(of=of, wrt=0), 1),
        (lambda of: vjp(of=of, wrt=0), None),
        (lambda of: jacobian(of=of, wrt=0), 0),
        (lambda of: hessian(of=of, wrt=0), 0),
    ],
    ids=["gradient", "selector", "value", "jvp", "taylor", "hvp", "vjp", "jacobian", "hessian"],
)
def test_a_mistake_in_a_later_call_names_no_line_of_an_earlier_one(make: Any, others: Any) -> None:
    of: Any = fn(F1, F1)(lambda x, y: (x + y).sum())
    made = make(of)

    def rest(n: int) -> list[Any]:
        return [np.ones((), np.float32)] if others is None else [ones(n)] * others

    made(ones(3), ones(3), *rest(3))  # the first call, which is right
    wrong = [(ones(3), ones(4), *rest(3))]
    if others:
        wrong.append((ones(3), ones(3), *rest(4)))
    for arguments in wrong:
        with pytest.raises(ShapeError) as caught:
            made(*arguments)  # the later one
        text = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", [])])
        assert "test_errors_of_derivatives.py" in text
        assert "which is right" not in text
    assert "# the later one" in text or not others
