"""Messages about staged functions and their gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nnkit import (
    DifferentiationError,
    DTypeError,
    RankError,
    Rep,
    Scalar,
    ShapeError,
    StagingError,
    Tensor0D,
    Tensor1D,
    const,
    f32,
    f64,
    fn,
    gradient,
    i8,
    i32,
    i64,
    spec,
    staged,
    take,
    tup,
    value_and_gradient,
)

from .messages import (
    F1,
    F2,
    Count,
    Layer,
    M,
    N,
    Other,
    Table,
    V,
    body,
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

# fmt: off

# ------------------------------------------------------------------------------------ staged functions
row("nothing returned", StagingError, "<lambda> returns nothing, not a Rep or a tuple of Reps", body("None"),
    "help: return the Rep; a concrete value becomes one by `const(value)`")(on(lambda x: None, V))
row("number returned", StagingError, "<lambda> returns an int, not a Rep", body("3"),
    "help: say which, `nk.const(i64(3))` or `nk.const(i32(3))`")(on(lambda x: 3, V))
row("number returned of a declared type", StagingError, "three returns an int, not a Rep", "three",
    "help: a Tensor0D[i64] is wanted: `nk.const(i64(3))`")(lambda: three())
row("function returned for a tensor", DTypeError,
    "makes is declared to return a Tensor0D[i64] and returns the function <lambda>", "makes",
    "note: makes is defined here", "help: call it")(lambda: makes(np.int64(1)))
row("staged function returned for a tensor", DTypeError,
    "gives is declared to return a Tensor0D[i64] and returns the staged function f", "gives")(
    lambda: gives(np.int64(1)))
row("array returned", StagingError, "<lambda> returns a ndarray, not a Rep", "V")(on(lambda x: V, V))
row("list returned", StagingError, "<lambda> returns a list, not a Rep", "[x, x]",
    "help: return a tuple of them")(on(lambda x: [x, x], V))
row("dict returned", StagingError, "<lambda> returns a dict, not a Rep", '{"x": x}',
    "help: return a tuple of them, or a")(
    on(lambda x: {"x": x}, V))
row("dict given", DTypeError, "argument x of <lambda> must be a Tensor1D[f32], and is a dict", "",
    "help: several tensors are a Struct")(lambda: fn(Tensor1D[f32])(lambda x: x)({"x": V}))
row("empty tuple returned", StagingError, "<lambda> returns an empty tuple, not a Rep", body("()"))(on(lambda x: (), V))
row("number in a tuple", StagingError, "<lambda> returns a float, not a Rep", "(x, 1.0)")(on(lambda x: (x, 1.0), V))
row("tuple of functions", StagingError, "<lambda> returns a tuple with a staged function in it", "",
    "help: return one function")(on(lambda x: (x, f), V))
row("arity", StagingError, "f takes 3 arguments (x, w, b), not 2", "f(M, M)",
    "note: f is defined here  messages.py:")(lambda: f(M, M))
row("staged arity", StagingError, "f takes 3 arguments (x, w, b), not 1", "f(x)")(on(lambda x: f(x), M))
row("no arguments", StagingError, "<lambda> takes no arguments, not 1", "staged(lambda: const(V))(V)")(
    lambda: staged(lambda: const(V))(V))
row("keywords", StagingError, "f takes its arguments by position, not by name (b)", "f(M, M, b=M)")(
    lambda: f(M, M, b=M))
row("staged keywords", StagingError, "f takes its arguments by position, not by name (w, b)", "f(x, w=x, b=x)")(
    on(lambda x: f(x, w=x, b=x), M))
row("rank of an argument", RankError, "argument x of f must be a Tensor2D[f32], and is an array of shape [3]",
    "f(V, M, M)", "note: f is defined here  messages.py:")(lambda: f(V, M, M))
row("rank of a tensor", RankError, "argument x of f must be a Tensor2D[f32], and is a Tensor1D[f32]",
    "f(Tensor1D(V), M, M)")(lambda: f(Tensor1D(V), M, M))
row("rank of a Rep", RankError, "argument w of f must be a Tensor2D[f32], and is a Tensor1D[f32]", "f(x, x[0], x)")(
    on(lambda x: f(x, x[0], x), M))
row("type of an argument", DTypeError, "argument x of f: cannot make a Tensor2D[f32] of an array of float64",
    "f(np.ones((2, 2)), M, M)", "help: convert it first, array.astype(np.float32)")(
    lambda: f(np.ones((2, 2)), M, M))
row("type of a Rep", DTypeError, "argument x of f must be a Tensor2D[f32], and is a Tensor2D[f64]",
    "f(x.cast(f64), x, x)")(on(lambda x: f(x.cast(f64), x, x), M))
row("list as argument", DTypeError, "argument x of f must be a Tensor2D[f32], and is a list", "f([[1.0]], M, M)",
    "help: wrap it")(lambda: f([[1.0]], M, M))
row("number as argument", DTypeError, "argument x of f must be a Tensor2D[f32], and is the Python number 1.0",
    "f(1.0, M, M)")(lambda: f(1.0, M, M))
row("number of no type", DTypeError,
    "argument x of <lambda> must be a tensor, a struct or an array, and is the Python number 2")(on(lambda x: x, 2))
row("array for a struct", DTypeError, "argument p of loss must be a Layer, and is a ndarray", "loss(V, M)")(
    lambda: loss(V, M))
row("struct for a struct", DTypeError, "argument p of loss must be a Layer, and is an Other", "loss(Other(M), M)")(
    lambda: loss(Other(M), M))
row("struct for a tensor", DTypeError, "argument x of loss must be a Tensor2D[f32], and is a Layer",
    "loss(layer(), layer())")(lambda: loss(layer(), layer()))
row("tuple length", DTypeError, "argument p of <lambda> must be a tuple of 2 values, and has 3")(
    lambda: fn(tuple[F1, F1])(lambda p: p[0])((V, V, V)))
row("rank 6 as argument", RankError, "argument x of <lambda> has rank 6: tensors have at most 5 axes")(
    on(lambda x: x, ones(1, 1, 1, 1, 1, 1)))
row("scalar out of range", DTypeError, "argument n of <lambda>: 300 is out of range of i8: -128 to 127")(
    lambda: fn(Tensor0D[i8])(lambda n: n)(300))
row("spec as argument", DTypeError, "argument x of <lambda> is spec((3,), f32), which has no data", "",
    "help: f.compile, f.ir")(on(lambda x: x, spec((3,), f32)))
row("Rep for the IR", DTypeError,
    "argument x of f must be a Tensor2D[f32], and is a Rep: concrete values are needed here", "f.ir(x, x, x)")(
    on(lambda x: f.ir(x, x, x), M))
row("declared result", RankError, "wrong is declared to return a Tensor1D[f32] and returns a Tensor2D[f32]",
    "x * 2.0", "note: wrong is defined here")(lambda: wrong(M))
row("declared element type", DTypeError,
    "narrow is declared to return a Tensor2D[f32] and returns a Tensor2D[f64]", "x.cast(f64)")(lambda: narrow(M))
row("stage", StagingError,
    "there is no stage 'fast'; the stages are raw, optimizable, optimized, compute, schedule",
    'f.ir(M, M, M, stage="fast")')(lambda: f.ir(M, M, M, stage="fast"))
row("no function", StagingError, "only a function can be staged, not a int", "staged(3)")(lambda: staged(3))
row("*args", StagingError, "parameter *xs of <lambda> cannot be staged", "staged(lambda *xs: xs[0])",
    "help: give it a default")(lambda: staged(lambda *xs: xs[0]))
row("keyword-only", StagingError, "parameter y of <lambda> cannot be staged", "staged(lambda x, *, y: x)")(
    lambda: staged(lambda x, *, y: x))
row("no signature", StagingError, "max does not say what its parameters are", "staged(max)", "help: wrap it")(
    lambda: staged(max))
row("fn arity", StagingError, "fn names 1 types and <lambda> has 2 parameters", "fn(F1)(lambda x, y: x)")(
    lambda: fn(F1)(lambda x, y: x))
row("self", StagingError, "method takes 2 arguments (self, x), not 1", "Holder().method(V)",
    "help: stage the bound method, staged(instance.method)")(lambda: Holder().method(V))
row("pickle", StagingError, "<lambda> cannot be pickled: it is not found by name in a module")(
    lambda: staged(lambda x: x).__reduce__())

@staged
def three() -> Rep[Scalar[i64]]:
    return 3


@staged
def makes(x: Rep[Scalar[i64]]) -> Rep[Scalar[i64]]:
    return lambda y: x + y


@staged
def gives(x: Rep[Scalar[i64]]) -> Rep[Scalar[i64]]:
    return f


@staged
def wrong(x: Rep[F2]) -> Rep[F1]:
    return x * 2.0


@staged
def narrow(x: Rep[F2]) -> Rep[F2]:
    return x.cast(f64)


class Holder:
    @staged
    def method(self, x):
        return x


@row("annotation", StagingError, "the annotations of bad name Missing, which is not defined here", "",
    "help: define or import it")
def _annotation() -> None:
    @staged
    def bad(x: Rep[Missing]) -> Rep[F1]:  # noqa: F821
        return x


@row("annotation that is no type", StagingError, "the annotations of bad cannot be read")
def _unreadable() -> None:
    def bad(x):
        return x

    bad.__annotations__["x"] = "Rep[("
    staged(bad)


@row("out of its function", StagingError, "a Rep of keep is used outside of it", "x + kept[0]",
    "help: return the value")
def _outside() -> None:
    kept: list[Any] = []

    @staged
    def keep(x: Any) -> Any:
        kept.append(x)
        return x

    keep(V)
    staged(lambda x: x + kept[0])(V)


@row("after its function", StagingError, "a Rep of keep is used outside of it", "kept[0] + 1.0")
def _after() -> None:
    kept: list[Any] = []

    @staged
    def keep(x: Any) -> Any:
        kept.append(x)
        return x

    keep(V)
    kept[0] + 1.0


@row("a closure run elsewhere", StagingError,
    "inner uses Reps of the staged function it was made in: it runs only there",
     "made[0](V)", "help: call it with Reps, inside that function")
def _closure() -> None:
    made: list[Any] = []

    @staged
    def outer(x: Any) -> Any:
        def inner(y: Any) -> Any:
            return x + y

        made.append(staged(inner))
        return made[0](x)

    outer(V)
    made[0](V)


@row("recursion", StagingError, "endless calls itself while it is staged, without end", "endless(x)",
    "help: a staged function runs once")
def _recursion() -> None:
    @staged
    def endless(x: Any) -> Any:
        return endless(x) + 1.0

    endless(V)


@row("mutual recursion", StagingError, "even calls itself while it is staged, without end", "even(x)")
def _mutual() -> None:
    @staged
    def even(x: Any) -> Any:
        return odd(x)

    @staged
    def odd(x: Any) -> Any:
        return even(x)

    even(V)


@row("recursion by ever new types", StagingError, "recursion of grow is too deep: 5,000 calls are inside",
    "grow(tup(x, x))", "help: a staged function runs once")
def _growing() -> None:
    @staged
    def grow(x: Any) -> Any:
        return grow(tup(x, x))

    grow(V)


@row("recursion of a function of functions", StagingError, "<lambda> calls itself while it is staged, without end",
    "other(g, x)")
def _of_functions() -> None:
    other = staged(lambda g, x: other(g, x))
    other(f, const(V))


@row("recursion by its gradient", StagingError, "itself calls itself while it is staged, without end")
def _gradient_recursion() -> None:
    @staged
    def itself(x: Any) -> Any:
        return gradient(of=itself, wrt=0)(x)

    itself(V)


# ------------------------------------------------------------------------------------------- gradients
row("wrt out of range", DifferentiationError, "wrt=3 is out of range: f has 3 parameters (0 x, 1 w, 2 b)",
    "gradient(of=f, wrt=3)")(lambda: gradient(of=f, wrt=3))
row("wrt negative", DifferentiationError, "wrt=-1 is out of range: f has 3 parameters",
    "gradient(of=f, wrt=-1)")(lambda: gradient(of=f, wrt=-1))
row("wrt in a tuple", DifferentiationError, "wrt=7 is out of range", "gradient(of=f, wrt=(0, 7))")(
    lambda: gradient(of=f, wrt=(0, 7)))
row("wrt twice", DifferentiationError, "wrt=(1, 1) names a parameter of f twice", "gradient(of=f, wrt=(1, 1))")(
    lambda: gradient(of=f, wrt=(1, 1)))
row("wrt empty", DifferentiationError, "wrt is empty: name at least one parameter of f",
    "gradient(of=f, wrt=())")(lambda: gradient(of=f, wrt=()))
row("wrt bool", DifferentiationError, "wrt holds True: it takes indices of parameters of f",
    "gradient(of=f, wrt=True)")(lambda: gradient(of=f, wrt=True))
row("wrt of strings", DifferentiationError, "f has no parameter 'nope'", 'gradient(of=f, wrt=("nope",))')(
    lambda: gradient(of=f, wrt=("nope",)))
row("wrt string", DifferentiationError, "f has no parameter 'nope'", 'gradient(of=f, wrt="nope")')(
    lambda: gradient(of=f, wrt="nope"))
row("wrt float", DifferentiationError, "wrt is a tuple of indices, not 0.5", "gradient(of=f, wrt=0.5)")(
    lambda: gradient(of=f, wrt=0.5))
row("wrt function", DifferentiationError, "wrt is a tuple of indices, not <staged function f(x, w, b)>",
    "gradient(of=f, wrt=f)")(lambda: gradient(of=f, wrt=f))
row("wrt integers", DifferentiationError,
    "parameter n of pair is a Tensor1D[i32]: only floats have derivatives", "gradient(of=pair, wrt=1)",
    "help: leave it out of wrt, or cast it")(lambda: gradient(of=pair, wrt=1))
row("wrt integers, found late", DifferentiationError,
    "parameter n of <lambda> is a Tensor1D[i32]: only floats have derivatives")(
    lambda: gradient(of=staged(lambda x, n: x), wrt=1)(V, N))
row("integer result", DifferentiationError,
    "result 0 of integers is a Tensor0D[i32]: only floats have derivatives", "gradient(of=integers, wrt=0)",
    "help: cast it to a float type inside the function")(lambda: gradient(of=integers, wrt=0))
row("integer result by from_", DifferentiationError, "result 1 of pair is a Tensor1D[i32]",
    "gradient(of=pair, wrt=0, from_=1)")(lambda: gradient(of=pair, wrt=0, from_=1))
row("from_", DifferentiationError, "from_=5 is out of range: pair has 2 results",
    "gradient(of=pair, wrt=0, from_=5)")(lambda: gradient(of=pair, wrt=0, from_=5))
row("from_, found late", DifferentiationError, "from_=5 is out of range: <lambda> has 1 result")(
    lambda: gradient(of=staged(lambda x: x), wrt=0, from_=5)(V))
row("from_ negative", DifferentiationError, "from_=-1 is no index of a result: they count from 0",
    "gradient(of=f, wrt=0, from_=-1)")(lambda: gradient(of=f, wrt=0, from_=-1))
row("keeping", DifferentiationError, "keeping=2 is out of range: pair has 2 results",
    "gradient(of=pair, wrt=0, keeping=(0, 2))")(lambda: gradient(of=pair, wrt=0, keeping=(0, 2)))
row("keeping twice", DifferentiationError, "keeping=(0, 0) names a result twice",
    "gradient(of=f, wrt=0, keeping=(0, 0))")(lambda: gradient(of=f, wrt=0, keeping=(0, 0)))
row("keeping int", DifferentiationError, "keeping is a tuple of indices, not 0",
    "gradient(of=f, wrt=0, keeping=0)", "help: keeping=(0,)")(lambda: gradient(of=f, wrt=0, keeping=0))
row("keeping bool", DifferentiationError, "keeping=True is no index of a result",
    "gradient(of=f, wrt=0, keeping=(True,))")(lambda: gradient(of=f, wrt=0, keeping=(True,)))
row("of no function", StagingError, "gradient takes a staged function, not the function ones",
    "gradient(of=ones, wrt=0)", "help: decorate it with @nk.staged")(lambda: gradient(of=ones, wrt=0))
row("value of no function", StagingError, "value_and_gradient takes a staged function, not a int",
    "value_and_gradient(of=3, wrt=0)")(lambda: value_and_gradient(of=3, wrt=0))
row("no scalar", DifferentiationError, "value_and_gradient needs a scalar result and f returns a Tensor2D[f32]",
    "value_and_gradient(of=f, wrt=1)", "help: reduce it, for example `.sum()`")(
    lambda: value_and_gradient(of=f, wrt=1))
row("no scalar, found late", DifferentiationError,
    "value_and_gradient needs a scalar result and <lambda> returns a Tensor1D[f32]")(
    lambda: value_and_gradient(of=staged(lambda x: x), wrt=0)(V))
row("lens of another", DifferentiationError, "wrt=Other.w is a field of parameter 0, and p of loss is a Layer",
    "gradient(of=loss, wrt=Other.w)")(lambda: gradient(of=loss, wrt=Other.w))
row("lens of an open type", DifferentiationError,
    "wrt=Layer.w is a field of parameter 0, and p of <lambda> is of no declared type")(
    lambda: gradient(of=staged(lambda p: p[Layer.w]), wrt=Layer.w))
row("lens without parameters", DifferentiationError, "<lambda> has no parameters to differentiate")(
    lambda: gradient(of=staged(lambda: const(V)), wrt=Layer.w))
row("selector of a field", DifferentiationError,
    "the selector asks parameter 0 for the field 'v', and it is a Layer", "p.v")(
    lambda: gradient(of=loss, wrt=lambda p, x: p.v))
row("selector of a tensor's field", DifferentiationError,
    "the selector asks parameter 1 for the field 'w', and it is a Tensor2D[f32]", "x.w")(
    lambda: gradient(of=loss, wrt=lambda p, x: x.w))
row("selector twice", DifferentiationError, "the selector names a parameter twice",
    "gradient(of=loss, wrt=lambda p, x: (p.w, p.w))")(lambda: gradient(of=loss, wrt=lambda p, x: (p.w, p.w)))
row("selector arity", DifferentiationError, "the selector takes other arguments than loss: it gets 2 (p, x)",
    "gradient(of=loss, wrt=lambda p: p)")(lambda: gradient(of=loss, wrt=lambda p: p))
row("selector of nothing", DifferentiationError, "the selector returns None: it picks",
    "gradient(of=loss, wrt=lambda p, x: None)")(lambda: gradient(of=loss, wrt=lambda p, x: None))
row("selector of something else", DifferentiationError,
    "the selector returns 3: it picks parameters or their fields",
    "gradient(of=loss, wrt=lambda p, x: (p, 3))")(lambda: gradient(of=loss, wrt=lambda p, x: (p, 3)))
row("integer field", DifferentiationError, "c.n of counted is a Tensor0D[i32]: only floats have derivatives",
    "", "help: leave it out of wrt")(lambda: gradient(of=counted, wrt=Count.n))
row("seed", DTypeError, "argument seed of f_grad must be a Tensor2D[f32], and is a Tensor2D[f64]")(
    on(lambda x: gradient(of=f, wrt=0, seedable=True)(x, x, x, x.cast(f64)), M))
row("seed missing", StagingError, "f_grad takes 4 arguments (x, w, b, seed), not 3")(
    on(lambda x: gradient(of=f, wrt=0, seedable=True)(x, x, x), M))
row("shape of the seed", ShapeError, "the seed of f_grad is f32[2, 3], like the result, not f32[2, 2]")(
    lambda: gradient(of=f, wrt=0, seedable=True)(ones(2, 4), ones(4, 3), ones(1, 3), ones(2, 2)))
row("gradient of a curried function", StagingError, "<lambda>_grad returns staged functions", "",
    "help: differentiate the function that is returned")(
    on(lambda x: gradient(of=staged(lambda y: staged(lambda z: y * z)), wrt=0)(x), V))
row("gradient of a curried function, run", StagingError, "<lambda>_grad returns staged functions")(
    lambda: gradient(of=staged(lambda y: staged(lambda z: y * z)), wrt=0)(V))
row("gradient of a function", DifferentiationError,
    "parameter g of <lambda> is a staged function: only floats have derivatives")(
    on(lambda x: gradient(of=staged(lambda g, y: g(y)), wrt=0)(staged(lambda z: z), x), V))

# fmt: on


@pytest.mark.parametrize("name", ROWS)
def test_message(name: str) -> None:
    ROWS[name].check("test_errors_of_functions.py")


@pytest.mark.parametrize("dtype", [i8, i32, i64])
@pytest.mark.parametrize("mode", ["error", "clip", "subscript"])
def test_indices_that_cannot_say_every_position(mode: str, dtype: Any) -> None:
    """Of an axis of 2³¹ elements or more, of which only the shape is given; the message names i64."""

    def pick(x: Any, i: Any) -> Any:
        return x[:, i[0]] if mode == "subscript" else take(x, i, axis=1, mode=mode)

    for extent in (2**31 - 2, 2**31 - 1, 2**31, 2**31 + 5, 2**40):
        given = spec((1, extent), i8), spec((3,), dtype)
        if extent < 2**31 or dtype is not i32:
            assert "gather" in staged(pick).ir(*given)
        else:
            with pytest.raises(
                DTypeError, match=rf"^indices of i32 .* {extent}: that takes i64\n"
            ) as caught:
                staged(pick).ir(*given)
            assert "help: cast them, `i.cast(i64)`" in "\n".join(caught.value.__notes__)
