"""Messages about choices, loops, recursion, and functions as values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnkit as nk
from nnkit import (
    DTypeError,
    RankError,
    Rep,
    Scalar,
    ShapeError,
    StagingError,
    Tensor1D,
    UnsupportedError,
    cond,
    const,
    f32,
    f64,
    fix,
    fn,
    fori,
    i32,
    staged,
    tup,
    while_loop,
    zip,
    zip_with,
)
from nnkit.core.errors import RecursionDepthError

from .messages import COMPREHENSION, F1, F2, L, Layer, M, N, Table, V, f, layer, on, ones

ROWS = Table()
row = ROWS.row
Int, Number = Scalar[i32], Scalar[f32]
YES = np.bool_(True)
ZERO = np.int32(0)

# fmt: off

# ------------------------------------------------------------------------------------------------ cond
row("condition of numbers", DTypeError, "cond decides by a boolean scalar, not a Tensor0D[f32]",
    "cond(x.sum(), lambda: x, lambda: x)", "help: compare, for example `x > 0.0`")(
    on(lambda x: cond(x.sum(), lambda: x, lambda: x), V))
row("condition of several", RankError, "cond decides by a boolean scalar, not a Tensor1D[boolean]",
    "cond(x > 0.0, lambda: x, lambda: x)", "help: reduce it, `.all()` or `.any()`")(
    on(lambda x: cond(x > 0.0, lambda: x, lambda: x), V))
row("condition of a struct", DTypeError, "cond decides by a boolean scalar, not a Layer")(
    on(lambda p: cond(p, lambda: p, lambda: p), layer()))
row("branches of ranks", RankError, "the branches of cond return a Tensor2D[f32] and a Tensor1D[f32]",
    "cond(p, lambda: x, lambda: x[0])")(on(lambda p, x: cond(p, lambda: x, lambda: x[0]), YES, M))
row("branches of types", DTypeError, "the branches of cond return a Tensor1D[f32] and a Tensor1D[f64]",
    "cond(p, lambda: x, lambda: x.cast(f64))")(on(lambda p, x: cond(p, lambda: x, lambda: x.cast(f64)), YES, V))
row("branches of tuples", DTypeError,
    "the branches of cond return a tuple[Tensor1D[f32], Tensor0D[f32]] and a Tensor1D[f32]")(
    on(lambda p, x: cond(p, lambda: (x, x[0]), lambda: x), YES, V))
row("branches of a tuple of Reps and of a Rep", StagingError,
    "one is a Rep of a tuple, the other a tuple of Reps", "", "help: take the Rep apart, `pair.unpack()`")(
    on(lambda p, x: cond(p, lambda: (x, x), lambda: tup(x, x)), YES, V))
row("branches of shapes", ShapeError, "the branches of cond return f32[2] and f32[3]",
    "cond(p, lambda: x[:2], lambda: x)")(on(lambda p, x: cond(p, lambda: x[:2], lambda: x), YES, V))
row("branches of shapes, in a called function", ShapeError, "the branches of cond return f32[3] and f32[2]",
    "cond(x[0] > 0.0, lambda: x, lambda: x[1:])", "note: inner is called here")(
    on(lambda x: inner(x), V))
row("inside a branch", ShapeError, "cannot add f32[3] and f32[2]: extents 3 and 2 differ", "x + x[1:]")(
    on(lambda p, x: cond(p, lambda: x, lambda: x + x[1:]), YES, V))
row("branch that is a Rep", StagingError, "the first branch of cond must be a function, and is a Tensor1D[f32]",
    "cond(p, x, lambda: x)", "help: put it into a function, `lambda: value`")(
    on(lambda p, x: cond(p, x, lambda: x), YES, V))
row("branch that is an array", StagingError, "the second branch of cond must be a function, and is a ndarray")(
    on(lambda p, x: cond(p, lambda: x, V), YES, V))
row("branch with parameters", StagingError,
    "the first branch of cond is called with no arguments, which <lambda> does not take",
    "cond(p, lambda y: y, lambda: x)")(on(lambda p, x: cond(p, lambda y: y, lambda: x), YES, V))
row("branch of a number", DTypeError,
    "the second branch of cond returns the Python number 1.0, which has no element type of its own",
    "cond(x[0] > 0.0, lambda: x[0], lambda: 1.0)", "help: a Tensor0D[f32] is wanted: `nk.const(f32(1.0))`")(
    on(lambda x: cond(x[0] > 0.0, lambda: x[0], lambda: 1.0), V))
row("first branch of a number", DTypeError, "the first branch of cond returns the Python number 1,",
    "cond(n < 2, lambda: 1, lambda: n)", "help: a Tensor0D[i64] is wanted: `nk.const(i64(1))`")(
    on(lambda n: cond(n < 2, lambda: 1, lambda: n), np.int64(1)))
row("number in a tuple of a branch", DTypeError, "the first branch of cond returns the Python number 1,", "",
    "help: a Tensor0D[f64] is wanted: `nk.const(f64(1.0))`")(
    on(lambda n: cond(n < 2, lambda: (n, 1), lambda: (n, n.cast(f64))), np.int64(1)))
row("branch of a number beside a vector", DTypeError, "the second branch of cond returns the Python number 0,", "",
    "help: a Tensor1D[f32] is wanted: `nk.full((...), 0.0, f32)`")(
    on(lambda x: cond(x[0] > 0.0, lambda: x, lambda: 0), V))
row("branch of a number of no such type", DTypeError, "the first branch of cond returns the Python number 0.5,", "",
    "help: a Tensor0D[i64] is wanted, and no i64 is 0.5")(
    on(lambda n: cond(n < 2, lambda: 0.5, lambda: n), np.int64(1)))
row("branches of numbers", DTypeError, "the first branch of cond returns the Python number 1,", "",
    "help: say which, `nk.const(i64(1))` or `nk.const(i32(1))`")(
    on(lambda p: cond(p, lambda: 1, lambda: 2), YES))
row("branch of a truth value", DTypeError, "the first branch of cond returns the Python number True,", "",
    "help: a Tensor0D[boolean] is wanted: `nk.const(boolean(True))`")(
    on(lambda p: cond(p, lambda: True, lambda: p), YES))
row("fold from a number", DTypeError, "fold carries the Python number 0,", "n.fold(0, lambda c, e: c + e)",
    "help: a Tensor0D[i32] is wanted: `nk.const(i32(0))`")(on(lambda n: n.fold(0, lambda c, e: c + e), N))
row("scan from a number", DTypeError, "scan carries the Python number 0,", "n.scan(0, lambda c, e: (c + e, c))",
    "help: a Tensor0D[i32] is wanted: `nk.const(i32(0))`")(on(lambda n: n.scan(0, lambda c, e: (c + e, c)), N))
row("map to a number", DTypeError, "the function of map returns the Python number 1,", "n.map(lambda e: 1)",
    "help: a Tensor0D[i32] is wanted: `nk.const(i32(1))`")(on(lambda n: n.map(lambda e: 1), N))
row("fori from a number", DTypeError, "fori carries the Python number 0,", "fori(0, n, lambda i, c: c + 1, 0)",
    "help: a Tensor0D[i64] is wanted: `nk.const(i64(0))`")(
    on(lambda n: fori(0, n, lambda i, c: c + 1, 0), np.int64(1)))
row("body of a number", DTypeError, "the body of fori returns the Python number 2,", "fori(0, 3, lambda i, c: 2, x)",
    "help: a Tensor0D[f64] is wanted: `nk.const(f64(2.0))`")(
    on(lambda x: fori(0, 3, lambda i, c: 2, x), np.float64(1)))
row("branch of nothing", StagingError, "the first branch of cond returns nothing, not a Rep or a tuple of Reps")(
    on(lambda p, x: cond(p, lambda: None, lambda: x), YES, V))
row("branch of a list", StagingError, "the first branch of cond returns a list, not a Rep")(
    on(lambda p, x: cond(p, lambda: [x], lambda: [x]), YES, V))
row("branch of a function", StagingError, "the first branch of cond returns a staged function, not a Rep", "",
    "help: which function is called must be known while staging")(
    on(lambda p, x: cond(p, lambda: f, lambda: f), YES, V))


@staged
def inner(x: Rep[F1]) -> Rep[F1]:
    return cond(x[0] > 0.0, lambda: x, lambda: x[1:])


@row("out of its branch", StagingError, "a Rep of the first branch of cond is used outside of it", "kept[0] + x")
def _outside() -> None:
    kept: list[Any] = []

    def keep(x: Any) -> Any:
        kept.append(x * 2.0)
        return kept[0]

    staged(lambda p, x: cond(p, lambda: keep(x), lambda: x) + (kept[0] + x))(YES, V)


# ----------------------------------------------------------------------------------------------- loops
row("while of numbers", DTypeError, "while_loop goes on by a boolean scalar, not a Tensor0D[f32]",
    "while_loop(lambda c: c.sum(), lambda c: c, x)")(on(lambda x: while_loop(lambda c: c.sum(), lambda c: c, x), V))
row("while of several", RankError, "while_loop goes on by a boolean scalar, not a Tensor1D[boolean]")(
    on(lambda x: while_loop(lambda c: c < 0.0, lambda c: c, x), V))
row("carry of a lower rank", RankError,
    "while_loop carries a Tensor1D[f32] and its body returns a Tensor0D[f32]",
    "while_loop(lambda c: c[0] < 0.0, lambda c: c[0], x)")(
    on(lambda x: while_loop(lambda c: c[0] < 0.0, lambda c: c[0], x), V))
row("carry of another type", DTypeError, "fori carries a Tensor1D[f32] and its body returns a Tensor1D[f64]",
    "fori(0, 3, lambda i, c: c.cast(f64), x)")(on(lambda x: fori(0, 3, lambda i, c: c.cast(f64), x), V))
row("carry of fewer", DTypeError,
    "fori carries a tuple[Tensor1D[f32], Tensor0D[f32]] and its body returns a Tensor1D[f32]")(
    on(lambda x: fori(0, 3, lambda i, c: c[0], (x, x[0])), V))
row("carry of another shape", ShapeError, "while_loop carries f32[3] and its body returns f32[2]",
    "while_loop(lambda c: c[0] < 0.0, lambda c: c[1:], x)")(
    on(lambda x: while_loop(lambda c: c[0] < 0.0, lambda c: c[1:], x), V))
row("carry of another shape of fori", ShapeError, "fori carries f32[3] and its body returns f32[6]",
    "fori(0, 3, lambda i, c: nk.concat([c, c]), x)")(
    on(lambda x: fori(0, 3, lambda i, c: nk.concat([c, c]), x), V))
row("carry of another shape among others", ShapeError,
    "while_loop carries f32[3] and its body returns f32[2]: in value 1")(
    on(lambda x: while_loop(lambda c: c[0][0] < 0.0, lambda c: (c[0], c[1][1:]), (x, x))[0], V))
row("carry of a struct of other shapes", ShapeError, "fori carries f32[3] and its body returns f32[6]: in .b")(
    on(lambda p: fori(0, 3, lambda i, c: c.set(Layer.b, nk.concat([c[Layer.b], c[Layer.b]])), p), layer()))
row("branches of a struct of other shapes", ShapeError, "the branches of cond return f32[3] and f32[2]: in .b")(
    on(lambda p: cond(p[Layer.b][0] > 0.0, lambda: p, lambda: p.set(Layer.b, p[Layer.b][1:])), layer()))
row("carry of a number", DTypeError, "while_loop carries the Python number 0, which has no element type")(
    on(lambda x: while_loop(lambda c: c < 3, lambda c: c + 1, 0), V))
row("carry of a function", StagingError, "fori carries a staged function, not a Rep or a tuple of Reps")(
    on(lambda x: fori(0, 3, lambda i, c: c, f), V))
row("body of one parameter", StagingError,
    "the body of fori is called with 2 arguments, which <lambda> does not take", "fori(0, 3, lambda c: c, x)",
    "help: the number of the iteration and what is carried")(
    on(lambda x: fori(0, 3, lambda c: c, x), V))
row("staged body of another arity", StagingError, "f takes 3 arguments (x, w, b), not 2", "fori(0, 3, f, x)",
    "note: f is defined here")(on(lambda x: fori(0, 3, f, x), M))
row("body of nothing", StagingError, "the body of fori returns nothing, not a Rep")(
    on(lambda x: fori(0, 3, lambda i, c: None, x), V))
row("float bound", DTypeError, "fori counts from an integer to another one, not 2.5",
    "fori(0, 2.5, lambda i, c: c, x)")(on(lambda x: fori(0, 2.5, lambda i, c: c, x), V))
row("bound of floats", DTypeError, "fori counts from an integer to another one, not a Tensor0D[f32]")(
    on(lambda x: fori(0, x[0], lambda i, c: c, x), V))
row("bound of several", RankError, "fori counts from a scalar to another one, not a Tensor1D[i32]")(
    on(lambda n: fori(n, 3, lambda i, c: c, n), N))
row("bound beyond i32", DTypeError, "fori counts in i32: 3000000000 is out of range")(
    on(lambda x: fori(0, 3_000_000_000, lambda i, c: c, x), V))
row("range of a Rep", StagingError, "an index or range() needs a value", "range(n[0])")(
    on(lambda n: [k + 1 for k in range(n[0])], N))
row("if", StagingError, "a Rep has no truth value", "x.sum() > 0.0", "help: choose with `cond(",
    "while_loop")(on(lambda x: x if x.sum() > 0.0 else -x, V))
row("for", StagingError, "a Rep cannot be iterated", COMPREHENSION, "`x.scan(init, fn)`", "fori")(
    on(lambda x: [-y for y in x], M))

# --------------------------------------------------------------------------------- along the leading axis
row("map of a number", RankError, "map goes along the leading axis, and a Tensor0D[f32] has none",
    "x.sum().map(lambda e: e)")(on(lambda x: x.sum().map(lambda e: e), V))
row("map of a struct", DTypeError, "map takes tensors, not a Layer")(
    on(lambda p: p.map(lambda e: e), layer()))
row("map to a tuple", StagingError, "map stacks tensors, not a tuple[Tensor1D[f32], Tensor1D[f32]]",
    "x.map(lambda r: (r, r))", "help: use map once for each")(on(lambda x: x.map(lambda r: (r, r)), M))
row("map to rank 6", RankError, "the result would have rank 6; tensors have at most 5")(
    on(lambda x: x.map(lambda r: x), ones(1, 1, 1, 1, 1)))
row("map by a value", StagingError, "the function of map must be a function, and is a Tensor2D[f32]", "x.map(x)")(
    on(lambda x: x.map(x), M))
row("map, in the function", RankError, "cannot multiply Tensor0D[f32]", "e @ e")(
    on(lambda x: x.map(lambda e: e @ e), V))
row("fold of another type", RankError, "fold carries a Tensor0D[f32] and its body returns a Tensor1D[f32]",
    "x.fold(x[0, 0], lambda c, r: c + r)")(on(lambda x: x.fold(x[0, 0], lambda c, r: c + r), M))
row("fold of another shape", ShapeError, "fold carries f32[2] and its body returns f32[3]")(
    on(lambda x: x.fold(x[0, :2], lambda c, r: r), M))
row("fold by a function of other types", RankError, "argument x of <lambda> must be a Tensor2D[f32]")(
    on(lambda x: x.fold(x[0], fn(F2, F2)(lambda x, y: x)), M))
row("scan without an element", StagingError, "the body of scan returns the next carry and an element",
    "x.scan(x[0], lambda c, r: c)")(on(lambda x: x.scan(x[0], lambda c, r: c), M))
row("scan of another carry", RankError, "scan carries a Tensor1D[f32] and its body returns a Tensor0D[f32]")(
    on(lambda x: x.scan(x[0], lambda c, r: (c.sum(), r)), M))
row("scan of structs", StagingError, "scan stacks tensors, not a Layer")(
    on(lambda x: x.scan(x[0], lambda c, r: (c, nk.build(Layer, Layer.w << x, Layer.b << r))), M))
row("filter by numbers", StagingError,
    "the function of filter says whether to keep an element, by a boolean scalar: it returns a Tensor0D[f32]",
    "x.filter(lambda e: e)", "help: compare")(on(lambda x: x.filter(lambda e: e), V))
row("filter by several", StagingError, "by a boolean scalar: it returns a Tensor1D[boolean]")(
    on(lambda x: x.filter(lambda r: r > 0.0), M))
row("zip of extents", ShapeError,
    "cannot zip_with over f32[3] and f32[2] together: leading extents 3 and 2 differ",
    "zip_with(x, y, lambda a, b: a)")(on(lambda x, y: zip_with(x, y, lambda a, b: a), V, ones(2)))
row("zip of extents that is returned", ShapeError,
    "cannot zip f32[3] and f32[2]: leading extents 3 and 2 differ", "zip(x, y)")(
    on(lambda x, y: zip(x, y), V, ones(2)))
row("zip of extents of which one is used", ShapeError,
    "cannot zip f32[3] and f32[2]: leading extents 3 and 2 differ", "zip(x, y)")(
    on(lambda x, y: zip(x, y).unpack()[0], V, ones(2)))
row("zip of a number", RankError, "zip goes along the leading axis, and a scalar has none", "zip(x, x[0])")(
    on(lambda x: zip(x, x[0]), V))
row("map of a zip by two parameters", StagingError,
    "the function of map is called with 1 argument, which <lambda> does not take",
    "zip(x, x).map(lambda a, b: a + b)", "help: `zip_with(v, w, fn)` gives `fn` the elements one by one")(
    on(lambda x: zip(x, x).map(lambda a, b: a + b), V))
row("fold of a zip by three parameters", StagingError, "the body of fold is called with 2 arguments", "",
    "help: the elements are one tuple")(on(lambda x: zip(x, x).fold(x[0], lambda c, a, b: c + a * b), V))
row("zip with by one parameter", StagingError, "the function of zip_with is called with 2 arguments")(
    on(lambda x: zip_with(x, x, lambda a: a), V))

# ------------------------------------------------------------------------------------------- recursion


@row("recursion without a branch", StagingError, "endless calls itself while it is staged, without end",
    "endless(x)", "help: a staged function runs once, at staging: call it again in a branch of `cond`")
def _endless() -> None:
    @staged
    def endless(x: Rep[F1]) -> Rep[F1]:
        return endless(x) + 1.0

    endless(V)


@row("recursion in the condition of a loop", StagingError, "asks calls itself while it is staged, without end")
def _in_condition() -> None:
    @staged
    def asks(x: Rep[F1]) -> Rep[F1]:
        return while_loop(lambda c: asks(c)[0] > 0.0, lambda c: c, x)

    asks(V)


@row("recursion in both branches", StagingError,
    "both calls itself on every path: what it returns is not known", "both(n)",
    "help: one branch of a `cond` must not call it; or say what it returns", "note: both is defined here")
def _both() -> None:
    @staged
    def both(n):
        return cond(n == 0, lambda: both(n), lambda: both(n - 1))

    both(ZERO)


@row("annotated recursion in both branches", StagingError,
    "both calls itself on every path: the shape of what it returns is not known", "both")
def _both_annotated() -> None:
    @staged
    def both(x: Rep[F1]) -> Rep[F1]:
        return cond(x[0] > 0.0, lambda: both(x), lambda: both(x * 2.0))

    both(V)


@row("recursion against its annotation", DTypeError,
    "half is declared to return a Tensor0D[f64] and returns a Tensor0D[f32]")
def _against() -> None:
    @staged
    def half(x: Rep[Number]) -> Rep[Scalar[f64]]:
        return cond(x < 1.0, lambda: x, lambda: half(x / 2.0).cast(f32))

    half(np.float32(3))


@row("recursion that returns another type", RankError,
    "the branches of cond return a Tensor1D[f32] and a Tensor0D[f32]")
def _other() -> None:
    @staged
    def shrink(x, n):
        return cond(n == 0, lambda: x, lambda: shrink(x, n - 1)[0])

    shrink(V, ZERO)


@row("recursion that returns another shape", ShapeError, "the branches of cond return f32[3] and f32[6]",
    "cond(n == 0, lambda: x, lambda: nk.concat([x, grow(x, n - 1)]))")
def _other_shape() -> None:
    @staged
    def grow(x: Rep[F1], n: Rep[Int]) -> Rep[F1]:
        return cond(n == 0, lambda: x, lambda: nk.concat([x, grow(x, n - 1)]))

    grow(V, ZERO)


@row("recursion with ever new shapes", StagingError, "longer calls itself with other shapes each time, 256 calls",
    "longer(nk.pad(x, [(0, 1)]), n - 1)", "help: shapes are static", "note: longer is called here")
def _ever_new() -> None:
    @staged
    def longer(x: Rep[F1], n: Rep[Int]) -> Rep[Number]:
        return cond(n == 0, lambda: x.sum(), lambda: longer(nk.pad(x, [(0, 1)]), n - 1))

    longer(V, ZERO)


@row("recursion at run time", RecursionDepthError, "recursion of down is too deep: its calls would take more than",
    "", "help: end the recursion in a branch of `cond`")
def _too_deep() -> None:
    @staged
    def down(n: Rep[Int]) -> Rep[Int]:
        return cond(n < 0, lambda: n, lambda: n + down(n + 1))

    down(np.int32(1))


@row("recursion with a wrong argument", RankError, "argument n of down must be a Tensor0D[i32], and is a Tensor1D[i32]",
    "down(const(N))")
def _argument() -> None:
    @staged
    def down(n: Rep[Int]) -> Rep[Int]:
        return cond(n == 0, lambda: n, lambda: down(const(N)))

    down(ZERO)


@row("recursion with concrete values", StagingError,
    "down is called with concrete values while it is staged: it cannot run yet", "down(ZERO)",
    "help: call it with Reps; `const(value)` makes one")
def _concrete() -> None:
    @staged
    def down(n: Rep[Int]) -> Rep[Int]:
        return cond(n == 0, lambda: n, lambda: const(down(ZERO)))

    down(ZERO)


@row("recursion by its own gradient", UnsupportedError, "slope uses its own derivative, which is not supported")
def _gradient() -> None:
    @staged
    def slope(x: Rep[Number]) -> Rep[Number]:
        return cond(x < 0.0, lambda: x, lambda: nk.gradient(of=slope, wrt=0)(x))

    slope(np.float32(1))


row("fix of no function", StagingError, "that returns a function, and <lambda> returns no function",
    "fix(lambda self: 3)")(lambda: fix(lambda self: 3))
row("fix of itself", StagingError, "that returns a function, and <lambda> returns what it is given",
    "fix(lambda self: self)")(lambda: fix(lambda self: self))
row("fix that calls too early", StagingError, "<lambda> calls the function that it is to return, before there is one",
    "self(1)", "help: call it inside the function that is returned")(lambda: fix(lambda self: self(1)))
row("fix of two parameters", StagingError, "fix takes a function of one parameter, not of 2",
    "fix(lambda f, g: f)")(lambda: fix(lambda f, g: f))

# --------------------------------------------------------------------------------- functions as values


@staged
def twice(g: Rep[Callable[[F1], F1]], x: Rep[F1]) -> Rep[F1]:
    return g(g(x))


@staged
def applied(g: Rep[Callable[[Number], Number]], x: Rep[Number]) -> Rep[Number]:
    return g(x)


@staged
def curried(x: Rep[F1]) -> Rep[Callable[[F1], F1]]:
    return fn(F1)(lambda y: x * y)


@staged
def no_function(x: Rep[F1]) -> Rep[Callable[[F1], F1]]:
    return x


row("tensor for a function", DTypeError, "argument g of twice must be a staged function, and is a Tensor1D[f32]",
    "twice(x, x)", "note: twice is defined here")(on(lambda x: twice(x, x), V))
row("array for a function", DTypeError, "argument g of twice must be a staged function, and is a ndarray",
    "twice(V, V)")(
    lambda: twice(V, V))
row("plain function for a staged one", DTypeError,
    "argument g of twice must be a staged function, and is a plain Python function",
    "twice(ones, V)", "help: make it one with nk.fn(Tensor1D[f32])(lambda ...)")(lambda: twice(ones, V))
row("lambda for a staged function", DTypeError,
    "argument g of applied must be a staged function, and is a plain Python function", "applied(lambda y: y, x)",
    "help: make it one with nk.fn(Scalar[f32])(lambda ...)")(on(lambda x: applied(lambda y: y, x), np.float32(1)))
row("number for a staged function", DTypeError,
    "argument g of twice must be a staged function, and is the Python number 3", "twice(3, V)")(lambda: twice(3, V))
row("lambda where nothing is declared", DTypeError,
    "argument g of <lambda> must be a tensor, a struct or an array, and is a plain Python function", "",
    "help: make it one with nk.fn(...)(lambda ...)")(lambda: staged(lambda g, x: g(x))(lambda y: y, V))
row("function for a tensor", DTypeError, "argument x of f must be a Tensor2D[f32], and is the staged function f",
    "f(f, x, x)")(
    on(lambda x: f(f, x, x), M))
row("function of other types", RankError, "argument x of <lambda> must be a Tensor2D[f32], and is a Tensor1D[f32]",
    "g(x)")(
    lambda: twice(fn(F2)(lambda x: x), V))
row("arity with functions", StagingError, "twice takes 2 arguments (g, x), not 1")(lambda: twice(inner))
row("wrong second argument", RankError, "argument y of <lambda> must be a Tensor1D[f32]", "curried(V)(M)")(
    lambda: curried(V)(M))
row("second arity", StagingError, "curried takes 1 argument (y), not 2", "curried(V)(V, V)")(
    lambda: curried(V)(V, V))
row("declared to return a function", DTypeError,
    "no_function is declared to return a staged function and returns a Tensor1D[f32]")(lambda: no_function(V))
row("function that closes over Reps, run", StagingError,
    "uses Reps of the staged function it was made in: it runs only there", "", "help: call it with Reps")(
    on(lambda x: fn(F1)(lambda y: y + x)(V), V))

# fmt: on


@pytest.mark.parametrize("name", ROWS)
def test_message(name: str) -> None:
    ROWS[name].check("test_errors_of_control.py")


def test_truth_values_stay_what_they_are() -> None:
    assert Tensor1D(L).numpy().tolist() == [True, False, True]
