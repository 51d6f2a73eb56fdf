"""Every message the language raises: its class, what is wrong with both values, the line and caret, the notes.

A row is a function that fails, the class, the first line, the text over the caret, and what its notes contain.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nnkit as nk
from nnkit import (
    DifferentiationError, DTypeError, Field, IndexOutOfRangeError, NNKitError, RankError, Rep, Scalar, ShapeError,
    StagingError, Struct, Tensor0D, Tensor1D, Tensor2D, build, const, f32, f64, fn, gradient, i8, i32, spec, staged,
    tup, value_and_gradient,
)  # fmt: skip

F1, F2 = Tensor1D[f32], Tensor2D[f32]


class Layer(Struct):
    w: Field[Tensor2D[f32]]
    b: Field[Tensor1D[f32]]


class Other(Struct):
    w: Field[Tensor2D[f32]]


class Count(Struct):
    n: Field[Scalar[i32]]
    x: Field[Tensor1D[f32]]


def ones(*shape: int) -> Any:
    return np.ones(shape, np.float32)


def layer() -> Layer:
    return Layer(ones(2, 3), ones(3))


@staged
def f(x: Rep[F2], w: Rep[F2], b: Rep[F2]) -> Rep[F2]:
    return x @ w + b


@staged
def integers(n: Rep[Tensor1D[i32]]) -> Rep[Scalar[i32]]:
    return n.sum()


@staged
def loss(p: Rep[Layer], x: Rep[F2]) -> Rep[Scalar[f32]]:
    return (x @ p[Layer.w] + p[Layer.b]).sum()


@staged
def pair(x: Rep[F1], n: Rep[Tensor1D[i32]]) -> tuple[Rep[F1], Rep[Tensor1D[i32]]]:
    return x, n


@dataclass(frozen=True)
class Row:
    """A program that fails, and how."""

    run: Callable[[], Any]
    error: type[NNKitError]
    message: str
    caret: str = ""
    notes: tuple[str, ...] = ()


ROWS: dict[str, Row] = {}


def row(
    name: str, error: type[NNKitError], message: str, caret: str = "", *notes: str
) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    def add(run: Callable[[], Any]) -> Callable[[], Any]:
        assert name not in ROWS
        ROWS[name] = Row(run, error, message, caret, notes)
        return run

    return add


def on(body: Any, *arguments: Any) -> Callable[[], Any]:
    """Running a staged function."""
    return lambda: staged(body)(*arguments)


V, M, N, L = ones(3), ones(2, 3), np.arange(3, dtype=np.int32), np.array([True, False, True])

# ------------------------------------------------------------------------------------------ shapes of operands

row("matmul", ShapeError, "cannot multiply f32[1, 784] by f32[785, 10]: inner dimensions 784 and 785 differ", "x @ w",
    "note: x is argument 0 of f: f32[1, 784]  test_errors.py:", "note: w is argument 1 of f: f32[785, 10]  test_errors.py:",
    "def f(x: Rep[F2], w: Rep[F2], b: Rep[F2]) -> Rep[F2]:")(lambda: f(ones(1, 784), ones(785, 10), ones(1, 10)))
row("add", ShapeError, "cannot add f32[1, 10] and f32[1, 11]: extents 10 and 11 differ", "x @ w + b",
    "note: the left operand is f32[1, 10], made here  test_errors.py:", "note: b is argument 2 of f")(
    lambda: f(ones(1, 2), ones(2, 10), ones(1, 11)))
row("compare", ShapeError, "cannot compare f32[3] and f32[2]: extents 3 and 2 differ", "x < y")(
    on(lambda x, y: x < y, V, ones(2)))
row("minimum", ShapeError, "cannot take the minimum of f32[3] and f32[2]", "nk.minimum(x, y)")(
    on(lambda x, y: nk.minimum(x, y), V, ones(2)))
row("power", ShapeError, "cannot take the power of f32[3] and f32[2]", "x**y")(on(lambda x, y: x**y, V, ones(2)))
row("divide", ShapeError, "cannot divide i32[3] and i32[2]", "x // y")(on(lambda x, y: x // y, N, N[:2]))
row("logic", ShapeError, "cannot combine bool[3] and bool[2]", "x & y")(on(lambda x, y: x & y, L, L[:2]))
row("select", ShapeError, "cannot select from f32[3] and f32[2] and bool[3]", "nk.select(x > 0.0, x, y)")(
    on(lambda x, y: nk.select(x > 0.0, x, y), V, ones(2)))
row("concat", ShapeError, "cannot concatenate f32[2, 3] and f32[3, 2] along axis 0: their other axes differ",
    "nk.concat([x, x.T])")(on(lambda x: nk.concat([x, x.T]), M))
row("broadcast_to", ShapeError, "cannot broadcast f32[3] to [2, 4]", "nk.broadcast_to(x, (2, 4))")(
    on(lambda x: nk.broadcast_to(x, (2, 4)), V))
row("reshape", ShapeError, "cannot reshape f32[2, 3] to [4, 2]: 6 elements and 8 differ", "x.reshape(4, 2)")(
    on(lambda x: x.reshape(4, 2), M))
row("reshape -1", ShapeError, "cannot reshape f32[2, 3] to [4, -1]: 6 elements cannot be divided so",
    "x.reshape(4, -1)")(on(lambda x: x.reshape(4, -1), M))
row("reshape of two -1", ShapeError, "cannot reshape Tensor2D[f32] to [-1, -1]: at most one extent may be -1",
    "x.reshape(-1, -1)")(on(lambda x: x.reshape(-1, -1), M))
row("squeeze", ShapeError, "cannot squeeze axis 0 of f32[2, 3]: its extent is 2, not 1", "x.squeeze(0)")(
    on(lambda x: x.squeeze(0), M))
row("argmax of nothing", ShapeError, "argmax of f32[0, 3]: axis 0 is empty", "x.argmax(0)")(
    on(lambda x: x.argmax(0), ones(0, 3)))
row("argmin of nothing", ShapeError, "argmin of f32[0]: it is empty", "x.argmin()")(on(lambda x: x.argmin(), ones(0)))
row("take of nothing", ShapeError, "the axis of f32[0] is empty", "nk.take(x, i)")(
    on(lambda x, i: nk.take(x, i), ones(0), N))
row("in a called function", ShapeError, "cannot multiply f32[2, 3] by f32[2, 3]: inner dimensions 3 and 2 differ", "x @ w",
    "note: f is called here  test_errors.py:")(on(lambda x: f(x, x, x), M))
row("too large", ShapeError, "larger than the address space", "nk.zeros((2**40, 2**40), f32)")(
    on(lambda x: nk.zeros((2**40, 2**40), f32) + x, V))

# ------------------------------------------------------------------------------------------------------- ranks

row("scalar @", RankError, "cannot multiply Tensor0D[f32] by Tensor1D[f32] with @: a scalar has no axes", "x.sum() @ x",
    "help: use *")(on(lambda x: x.sum() @ x, V))
row("number @", RankError, "cannot multiply Tensor1D[f32] by Tensor0D[f32] with @", "x @ 2.0")(on(lambda x: x @ 2.0, V))
row("axis", RankError, "axis 2 does not exist: the tensor has rank 2", "x.sum(2)")(on(lambda x: x.sum(2), M))
row("axis -3", RankError, "axis -3 does not exist: the tensor has rank 2", "nk.cumsum(x, -3)")(
    on(lambda x: nk.cumsum(x, -3), M))
row("axis twice", RankError, "axes (0, -2) name an axis twice", "x.max((0, -2))")(on(lambda x: x.max((0, -2)), M))
row("axis no int", RankError, "an axis is an int, not 0.5", "x.sum(0.5)")(on(lambda x: x.sum(0.5), M))
row("axis bool", RankError, "an axis is an int, not True", "x.sum(True)")(on(lambda x: x.sum(True), M))
row("rank 5", RankError, "the result would have rank 5; tensors have at most 4", "x.expand_dims(0)")(
    on(lambda x: x.expand_dims(0), ones(1, 1, 1, 1)))
row("rank 5 by reshape", RankError, "the result would have rank 5", "x.reshape(1, 1, 1, 1, 3)")(
    on(lambda x: x.reshape(1, 1, 1, 1, 3), V))
row("shape of rank 5", RankError, "zeros: tensors have at most 4 axes, not 5", "nk.zeros((1,) * 5, f32)")(
    on(lambda x: nk.zeros((1,) * 5, f32), V))
row("permutation", RankError, "(0, 0) is not a permutation of the axes of a Tensor2D[f32]", "x.transpose(0, 0)")(
    on(lambda x: x.transpose(0, 0), M))
row("T", RankError, "only a matrix has a T, not a Tensor1D[f32]", "x.T", "help: transpose(")(on(lambda x: x.T, V))
row("names", RankError, "a tensor of rank 1 cannot take 2 names of dimensions", "x.named(nk.Dim, nk.Dim)")(
    on(lambda x: x.named(nk.Dim, nk.Dim), V))
row("concat ranks", RankError, "cannot concatenate Tensor1D[f32] and Tensor2D[f32]: ranks differ", "nk.concat([x, y])")(
    on(lambda x, y: nk.concat([x, y]), V, M))
row("broadcast lower", RankError, "cannot broadcast a Tensor2D[f32] to the shape [3]: rank is lost",
    "nk.broadcast_to(x, (3,))")(on(lambda x: nk.broadcast_to(x, (3,)), M))
row("pad", RankError, "pad takes a pair (before, after) for each of the 2 axes", "nk.pad(x, [(1, 1)])")(
    on(lambda x: nk.pad(x, [(1, 1)]), M))
row("layer_norm", RankError, "layer_norm takes x alone, or x, scale and offset", "nk.layer_norm(x, x[0])")(
    on(lambda x: nk.layer_norm(x, x[0]), M))
row("layer_norm scale", RankError, "scale and offset of layer_norm are vectors, not a Tensor2D[f32]",
    "nk.layer_norm(x, x, x)")(on(lambda x: nk.layer_norm(x, x, x), M))
row("logits", RankError, "cross_entropy takes logits of rank 1 or 2, not a Tensor0D[f32]")(
    on(lambda x: nk.cross_entropy(x.sum(), x), V))
row("labels", RankError, "labels for a Tensor2D[f32] have rank 1, not 2")(
    on(lambda x: nk.cross_entropy(x, x.cast(i32)), M))
row("subscripts", RankError, "3 subscripts are too many for a Tensor2D[f32]", "x[0, 0, 0]")(on(lambda x: x[0, 0, 0], M))
row("subscript of rank 1", RankError, "a subscript is a scalar, not a Tensor1D[i32]", "x[n]", "help: use `take(")(
    on(lambda x, n: x[n], V, N))
row("constant of rank 5", RankError, "a constant has rank 5: tensors have at most 4 axes", "x + ones(1, 1, 1, 1, 1)")(
    on(lambda x: x + ones(1, 1, 1, 1, 1), V))

# ----------------------------------------------------------------------------------------------- element types

row("mixed", DTypeError, "cannot add Tensor1D[f32] and Tensor1D[f64]: element types f32 and f64 differ", "x + y",
    "help: cast one of them")(on(lambda x, y: x + y, V, np.ones(3)))
row("mixed comparison", DTypeError, "cannot compare Tensor1D[f32] and Tensor1D[i32]: element types f32 and i32 differ",
    "x < n")(on(lambda x, n: x < n, V, N))
row("mixed product", DTypeError, "cannot multiply Tensor2D[f32] by Tensor1D[i32]: element types f32 and i32 differ",
    "x @ n")(on(lambda x, n: x @ n, M, N))
row("mixed select", DTypeError, "cannot select from Tensor1D[f32] and Tensor1D[i32]: element types f32 and i32 differ",
    "nk.select(x > 0.0, x, n)")(on(lambda x, n: nk.select(x > 0.0, x, n), V, N))
row("mixed concat", DTypeError, "cannot concatenate Tensor1D[f32] and Tensor1D[i32]: element types differ",
    "nk.concat([x, n])")(on(lambda x, n: nk.concat([x, n]), V, N))
row("condition", DTypeError, "the condition of a select is boolean, not Tensor1D[f32]", "nk.select(x, x, x)")(
    on(lambda x: nk.select(x, x, x), V))
row("division of integers", DTypeError, "cannot divide Tensor1D[i32] and Tensor1D[i32]: it takes float elements", "n / n")(
    on(lambda n: n / n, N))
row("floor division of floats", DTypeError, "cannot divide Tensor1D[f32] and Tensor1D[f32]: it takes integer elements",
    "x // x")(on(lambda x: x // x, V))
row("power of integers", DTypeError, "cannot take the power of Tensor1D[i32] and Tensor0D[i32]: it takes float elements",
    "n**2")(on(lambda n: n**2, N))
row("exp of integers", DTypeError, "cannot exp Tensor1D[i32]: it takes float elements", "nk.exp(n)")(
    on(lambda n: nk.exp(n), N))
row("sum of booleans", DTypeError, "sum takes numeric elements, not a Tensor1D[boolean]", "b.sum()", "help: `x.cast(i64)`")(
    on(lambda b: b.sum(), L))
row("any of numbers", DTypeError, "any takes boolean elements, not a Tensor1D[f32]", "x.any()", "help: compare first")(
    on(lambda x: x.any(), V))
row("mean of integers", DTypeError, "mean takes float elements, not i32", "n.mean()", "help: cast it first")(
    on(lambda n: n.mean(), N))
row("var of booleans", DTypeError, "var takes float elements, not boolean", "b.var()")(on(lambda b: b.var(), L))
row("argmax of booleans", DTypeError, "argmax takes numeric elements, not a Tensor1D[boolean]", "b.argmax()")(
    on(lambda b: b.argmax(), L))
row("cumsum of booleans", DTypeError, "cumsum takes numeric elements", "nk.cumsum(b, 0)")(on(lambda b: nk.cumsum(b, 0), L))
row("product of booleans", DTypeError, "cannot multiply Tensor1D[boolean] by Tensor1D[boolean]: truth values have no product",
    "b @ b")(on(lambda b: b @ b, L))
row("addition of booleans", DTypeError, "cannot add Tensor1D[boolean] and Tensor1D[boolean]", "b + b")(on(lambda b: b + b, L))
row("logic of numbers", DTypeError, "cannot combine Tensor1D[f32] and Tensor1D[f32]: it takes boolean elements", "x & x")(
    on(lambda x: x & x, V))
row("not of numbers", DTypeError, "cannot combine Tensor1D[f32]: it takes boolean elements", "~x")(on(lambda x: ~x, V))
row("out of range", DTypeError, "300 is out of range for i8: -128 to 127", "x + 300")(
    on(lambda x: x + 300, np.zeros(3, np.int8)))
row("out of range of f16", DTypeError, "100000.0 is out of range for f16: at most 65504", "x * 1e5")(
    on(lambda x: x * 1e5, np.zeros(3, np.float16)))
row("huge integer", DTypeError, "an integer of 2001 bits is out of range for f64", "x + 2**2000")(
    on(lambda x: x + 2**2000, np.ones(3)))
row("huge integer for i64", DTypeError, "is out of range for i64", "x + 2**63")(
    on(lambda x: x + 2**63, np.zeros(3, np.int64)))
row("fraction", DTypeError, "1.5 is not an integer", "n + 1.5", "help: cast the tensor")(on(lambda n: n + 1.5, N))
row("nan for integers", DTypeError, "nan is not an integer", "n + float('nan')")(on(lambda n: n + float('nan'), N))
row("bool for floats", DTypeError, "True is a bool, not f32", "x + True")(on(lambda x: x + True, V))
row("number for booleans", DTypeError, "1 is a number, not boolean", "b & 1")(on(lambda b: b & 1, L))
row("filler", DTypeError, "1.5 is not an integer", "nk.full((2,), 1.5, i32)")(on(lambda x: nk.full((2,), 1.5, i32), V))
row("pad value", DTypeError, "1000 is out of range for i8", "nk.pad(n, [(1, 1)], value=1000)")(
    on(lambda n: nk.pad(n, [(1, 1)], value=1000), np.zeros(3, np.int8)))
row("arange", DTypeError, "299 is out of range for i8", "nk.arange(300, i8)")(on(lambda x: nk.arange(300, i8), V))
row("arange of booleans", DTypeError, "iota counts in numbers, not in boolean", "nk.arange(2, nk.boolean)")(
    on(lambda x: nk.arange(2, nk.boolean), V))
row("two numbers", DTypeError, "cannot add two Python numbers: one must be a tensor", "nk.add(1, 2)")(
    on(lambda x: nk.add(1, 2), V))
row("select of numbers", DTypeError, "select between two Python numbers: one of them must be a tensor",
    "nk.select(x > 0.0, 1, 2)")(on(lambda x: nk.select(x > 0.0, 1, 2), V))
row("float indices", DTypeError, "indices are integers, not a Tensor1D[f32]", "nk.take(x, x)", "help: cast them")(
    on(lambda x: nk.take(x, x), V))
row("float subscript", DTypeError, "indices are integers, not a Tensor0D[f32]", "x[x.sum()]")(on(lambda x: x[x.sum()], V))
row("mask", DTypeError, "a subscript is an integer, not a Tensor1D[boolean]", "x[x > 0.0]", "help: `select(mask")(
    on(lambda x: x[x > 0.0], V))
row("one_hot", DTypeError, "one_hot takes integer indices, not Tensor1D[f32]", "nk.one_hot(x, 3, f32)")(
    on(lambda x: nk.one_hot(x, 3, f32), V))
row("labels of another type", DTypeError, "labels are class numbers or a Tensor2D[f32], not a Tensor1D[f32]")(
    on(lambda x: nk.cross_entropy(x, x[0]), M))
row("dtype", DTypeError, "an element type is one of f16, bf16, f32, f64, i8, i32, i64, boolean, not 'f32'", "x.cast('f32')")(
    on(lambda x: x.cast('f32'), V))
row("numpy dtype", DTypeError, "an element type is one of f16, bf16", "x.cast(np.float32)")(on(lambda x: x.cast(np.float32), V))
row("random dtype", DTypeError, "random numbers are floats, not i32", "nk.random.normal(k, (2,), dtype=i32)")(
    on(lambda k: nk.random.normal(k, (2,), dtype=i32), np.int64(0)))
row("shape of floats", DTypeError, "reshape takes Python ints, not 2.0", "x.reshape(2.0)")(on(lambda x: x.reshape(2.0), V))
row("shape as one", DTypeError, "reshape takes Python ints, not (3,)", "x.reshape((3,))", "help: spread it, `*shape`")(
    on(lambda x: x.reshape((3,)), V))
row("staged extent", DTypeError, "zeros takes Python ints, not <Rep of Tensor0D[i32]>", "nk.zeros((n[0],), f32)")(
    on(lambda n: nk.zeros((n[0],), f32), N))
row("no shape", DTypeError, "ones takes a shape, a tuple of ints, not 3", "nk.ones(3, f32)")(on(lambda x: nk.ones(3, f32), V))
row("negative extent", ShapeError, "zeros takes numbers of at least 0, not -1", "nk.zeros((-1,), f32)")(
    on(lambda x: nk.zeros((-1,), f32), V))
row("negative width", ShapeError, "pad takes numbers of at least 0, not -1", "nk.pad(x, [(-1, 0)])")(
    on(lambda x: nk.pad(x, [(-1, 0)]), V))
row("constant number", DTypeError, "a constant is a tensor, a struct or an array, not the Python number 3", "const(3)",
    "help: say which, for example f32(0.1)")(on(lambda x: x + const(3), V))
row("constant list", DTypeError, "a constant is a tensor, a struct or an array, not a list", "const([1.0])")(
    on(lambda x: x + const([1.0]), V))
row("constant of an odd type", DTypeError, "a constant: cannot make a Tensor1D of an array of int16", "x + y16")(
    on(lambda x, y16=np.zeros(3, np.int16): x + y16, V))
row("constant with holes", DTypeError, "a constant: cannot make a Tensor1D of a masked array", "x + masked")(
    on(lambda x, masked=np.ma.array([1.0], mask=[True]): x + masked, V))

# ------------------------------------------------------------------------------------------------- subscripts

row("index", IndexOutOfRangeError, "index 5 is out of range for axis 0 of f32[2, 3]", "x[5]", "note: x is argument 0")(
    on(lambda x: x[5], M))
row("index -4", IndexOutOfRangeError, "index -4 is out of range for axis 1 of f32[2, 3]", "x[:, -4]")(
    on(lambda x: x[:, -4], M))
row("index at run time", IndexOutOfRangeError, "index 7 is out of range for an axis of extent 3", "nk.take(x, n)")(
    on(lambda x, n: nk.take(x, n), V, N[:1] + 7))
row("negative index at run time", IndexOutOfRangeError, "index -4 is out of range for an axis of extent 3", "x[n[0]]")(
    on(lambda x, n: x[n[0]], V, N - 4))
row("label at run time", IndexOutOfRangeError, "index 3 is out of range for an axis of extent 3",
    "nk.cross_entropy(x, n)")(on(lambda x, n: nk.cross_entropy(x, n), M, np.array([0, 3])))
row("staged slice", StagingError, "the ends of a slice are Python ints: its extent must be static", "x[: n[0]]",
    "help: use `take`")(on(lambda x, n: x[: n[0]], V, N))
row("step 0", StagingError, "the step of a slice cannot be 0", "x[::0]")(on(lambda x: x[::0], V))
row("two ellipses", StagingError, "a subscript has at most one `...`", "x[..., ...]")(on(lambda x: x[..., ...], M))
row("newaxis", StagingError, "None is not a subscript", "x[None]", "help: `x.expand_dims(axis)`")(on(lambda x: x[None], V))
row("list subscript", StagingError, "a subscript is an int, a slice or a Rep, not a list", "x[[0, 1]]")(
    on(lambda x: x[[0, 1]], V))
row("float constant subscript", StagingError, "a subscript is an int, a slice or a Rep, not a float", "x[1.0]")(
    on(lambda x: x[1.0], V))
row("array subscript", StagingError, "a subscript is an int, a slice or a Rep, not a ndarray", "x[N]")(on(lambda x: x[N], V))
row("mode", ShapeError, "mode is 'error' or 'clip', not 'wrap'", 'nk.take(x, n, mode="wrap")')(
    on(lambda x, n: nk.take(x, n, mode="wrap"), V, N))
row("concat nothing", ShapeError, "cannot concatenate nothing", "nk.concat([])")(on(lambda x: nk.concat([]), V))
row("split", ShapeError, "split takes numbers of at least 1, not 0", "nk.random.split(k, 0)")(
    on(lambda k: nk.random.split(k, 0)[0], np.int64(0)))

# -------------------------------------------------------------------------------------- structs, tuples, lenses

row("another struct's field", StagingError, "Other.w is not a field of Layer", "p[Other.w]", "help: its fields are Layer.w, Layer.b")(
    on(lambda p: p[Other.w], layer()))
row("a field of a tensor", StagingError, "Layer.w is a field of a struct, and this is a Tensor1D[f32]", "x[Layer.w]")(
    on(lambda x: x[Layer.w], V))
row("a struct's subscript", StagingError, "0 is not a field of Layer", "p[0]")(on(lambda p: p[0], layer()))
row("set of another type", DTypeError, "field w of Layer holds a Tensor2D[f32], not a Tensor1D[f32]", "p.set(Layer.w, p[Layer.b])")(
    on(lambda p: p.set(Layer.w, p[Layer.b]), layer()))
row("set of no Rep", DTypeError, "field b of Layer holds a Tensor1D[f32], not a ndarray", "p.set(Layer.b, V)")(
    on(lambda p: p.set(Layer.b, V), layer()))
row("set in a tensor", StagingError, "only a struct has fields to set, not a Tensor1D[f32]", "x.set(Layer.b, x)")(
    on(lambda x: x.set(Layer.b, x), V))
row("arithmetic of structs", DTypeError, "add takes tensors, not a Layer", "p + p")(on(lambda p: p + p, layer()))
row("method of structs", DTypeError, "sum takes tensors, not a Layer", "p.sum()")(on(lambda p: p.sum(), layer()))
row("build without a field", StagingError, "field w of Layer is missing", "build(Layer, Layer.b << x)")(
    on(lambda x: build(Layer, Layer.b << x), V))
row("build with a field twice", StagingError, "field b of Layer is given twice", "build(Layer, Layer.b << x, Layer.b << x)")(
    on(lambda x: build(Layer, Layer.b << x, Layer.b << x), V))
row("build with another's field", StagingError, "Other.w is not a field of Layer", "build(Layer, Other.w << x)",
    "help: its fields are w, b")(on(lambda x: build(Layer, Other.w << x), M))
row("build of another type", DTypeError, "field w of Layer holds a Tensor2D[f32], not a Tensor2D[f64]",
    "build(Layer, Layer.w << x.cast(f64), Layer.b << x[0])")(
    on(lambda x: build(Layer, Layer.w << x.cast(f64), Layer.b << x[0]), M))
row("build of another rank", RankError, "field b of Layer holds a Tensor1D[f32], not a Tensor2D[f32]",
    "build(Layer, Layer.w << x, Layer.b << x)")(on(lambda x: build(Layer, Layer.w << x, Layer.b << x), M))
row("build of no fields", StagingError, "build takes fields with their values, not a Rep", "build(Layer, x)",
    "help: for example Layer.w << value")(on(lambda x: build(Layer, x), M))
row("element", IndexOutOfRangeError, "element 2 does not exist: the tuple has 2 elements", "tup(x, x)[2]")(
    on(lambda x: tup(x, x)[2], V))
row("element by name", StagingError, "an element of a tuple is chosen by an int, not 'a'", 'tup(x, x)["a"]')(
    on(lambda x: tup(x, x)["a"], V))
row("unpack", StagingError, "only a tuple can be unpacked, not a Tensor1D[f32]", "x.unpack()")(on(lambda x: x.unpack(), V))
row("tup of nothing", StagingError, "tup takes at least one value", "tup()")(on(lambda x: tup(), V))

# ------------------------------------------------------------------------------------------ what Python cannot do

NO_VALUE = "needs a value, and a Rep has none while staging"
row("float()", StagingError, f"float() {NO_VALUE}", "float(x)", "help: keep computing with Reps")(on(lambda x: float(x), V))
row("int()", StagingError, f"int() {NO_VALUE}", "int(x)")(on(lambda x: int(x), V))
row("complex()", StagingError, f"complex() {NO_VALUE}", "complex(x)")(on(lambda x: complex(x), V))
row("len()", StagingError, f"len() {NO_VALUE}", "len(x)")(on(lambda x: len(x), V))
row("range()", StagingError, f"an index or range() {NO_VALUE}", "range(x)")(on(lambda x: range(x), V))
row("np.tanh", StagingError, f"np.tanh {NO_VALUE}", "np.tanh(x)")(on(lambda x: np.tanh(x), V))
row("np.sum", StagingError, f"np.sum {NO_VALUE}", "np.sum(x)")(on(lambda x: np.sum(x), V))
row("np.concatenate", StagingError, f"np.concatenate {NO_VALUE}", "np.concatenate([x, x])")(
    on(lambda x: np.concatenate([x, x]), V))
row("np.asarray", StagingError, f"a NumPy function {NO_VALUE}", "np.asarray(x)")(on(lambda x: np.asarray(x), V))
row("np.add.reduce", StagingError, f"np.add {NO_VALUE}", "np.add.reduce(x)")(on(lambda x: np.add.reduce(x), V))
row("and", StagingError, "a Rep has no truth value", "x > 0.0 and x < 1.0", "help: choose with `select(condition, a, b)`")(
    on(lambda x: x > 0.0 and x < 1.0, V))
row("not", StagingError, "a Rep has no truth value", "not x")(on(lambda x: not x, V))
row("conditional", StagingError, "a Rep has no truth value", "x.sum() > 0.0")(on(lambda x: x if x.sum() > 0.0 else -x, V))
row("for", StagingError, "a Rep cannot be iterated", "[y for y in x]", "help: use whole-tensor operations")(on(lambda x: [y for y in x], V))
row("in", StagingError, "a Rep cannot be searched", "1.0 in x", "help: `(x == value).any()`")(on(lambda x: 1.0 in x, V))
row("call of a tensor", StagingError, "a Tensor1D[f32] cannot be called: it is no staged function", "x(1)")(
    on(lambda x: x(1), V))
row("ir of a tensor", StagingError, "a Tensor1D[f32] is no staged function: it has no IR", "x.ir()")(on(lambda x: x.ir(), V))
row("code of a tensor", StagingError, "a Tensor1D[f32] is no staged function: it has no code", "const(V).compile()")(
    lambda: const(V).compile())
row("llvm of a tensor", StagingError, "it has no code", "const(V).llvm()")(lambda: const(V).llvm())
row("asm of a tensor", StagingError, "it has no code", "const(V).asm()")(lambda: const(V).asm())
row("function + tensor", StagingError, "f is a staged function, not a tensor", "f + x", "help: call it, f(...)")(
    on(lambda x: f + x, V))
row("tensor + function", StagingError, "f is a staged function, not a tensor", "x + f")(on(lambda x: x + f, V))
row("value of a function", StagingError, "f is a staged function, not a tensor", "f.eval()")(lambda: f.eval())
row("eval while staging", StagingError, "this Rep has no value: it depends on parameters of a staged function", "x.eval()",
    "help: return it from the function")(on(lambda x: x.eval(), V))

# ------------------------------------------------------------------------------------------- staged functions

row("nothing returned", StagingError, "<lambda> returns nothing, not a Rep or a tuple of Reps", "None",
    "help: return the Rep; a concrete value becomes one by `const(value)`")(on(lambda x: None, V))
row("number returned", StagingError, "<lambda> returns an int, not a Rep", "3")(on(lambda x: 3, V))
row("array returned", StagingError, "<lambda> returns a ndarray, not a Rep", "V")(on(lambda x: V, V))
row("list returned", StagingError, "<lambda> returns a list, not a Rep", "[x, x]")(on(lambda x: [x, x], V))
row("empty tuple returned", StagingError, "<lambda> returns an empty tuple, not a Rep", "()")(on(lambda x: (), V))
row("number in a tuple", StagingError, "<lambda> returns a float, not a Rep", "(x, 1.0)")(on(lambda x: (x, 1.0), V))
row("tuple of functions", StagingError, "<lambda> returns a tuple with a staged function in it", "",
    "help: return one function")(on(lambda x: (x, f), V))
row("arity", StagingError, "f takes 3 arguments (x, w, b), not 2", "f(M, M)", "note: f is defined here  test_errors.py:")(
    lambda: f(M, M))
row("staged arity", StagingError, "f takes 3 arguments (x, w, b), not 1", "f(x)")(on(lambda x: f(x), M))
row("no arguments", StagingError, "<lambda> takes no arguments, not 1", "staged(lambda: const(V))(V)")(
    lambda: staged(lambda: const(V))(V))
row("keywords", StagingError, "f takes its arguments by position, not by name (b)", "f(M, M, b=M)")(lambda: f(M, M, b=M))
row("staged keywords", StagingError, "f takes its arguments by position, not by name (w, b)", "f(x, w=x, b=x)")(
    on(lambda x: f(x, w=x, b=x), M))
row("rank of an argument", RankError, "argument x of f is a Tensor2D[f32], not an array of shape [3]", "f(V, M, M)",
    "note: f is defined here  test_errors.py:")(lambda: f(V, M, M))
row("rank of a tensor", RankError, "argument x of f is a Tensor2D[f32], not a Tensor1D[f32]", "f(Tensor1D(V), M, M)")(
    lambda: f(Tensor1D(V), M, M))
row("rank of a Rep", RankError, "argument w of f is a Tensor2D[f32], not a Tensor1D[f32]", "f(x, x[0], x)")(
    on(lambda x: f(x, x[0], x), M))
row("type of an argument", DTypeError, "argument x of f: cannot make a Tensor2D[f32] of an array of float64", "f(np.ones((2, 2)), M, M)",
    "help: convert it first, array.astype(np.float32)")(lambda: f(np.ones((2, 2)), M, M))
row("type of a Rep", DTypeError, "argument x of f is a Tensor2D[f32], not a Tensor2D[f64]", "f(x.cast(f64), x, x)")(
    on(lambda x: f(x.cast(f64), x, x), M))
row("list as argument", DTypeError, "argument x of f is a Tensor2D[f32], not a list", "f([[1.0]], M, M)", "help: wrap it")(
    lambda: f([[1.0]], M, M))
row("number as argument", DTypeError, "argument x of f is a Tensor2D[f32], not the Python number 1.0", "f(1.0, M, M)")(
    lambda: f(1.0, M, M))
row("number of no type", DTypeError, "argument x of <lambda> is a tensor, a struct or an array, not the Python number 2")(
    on(lambda x: x, 2))
row("array for a struct", DTypeError, "argument p of loss is a Layer, not a ndarray", "loss(V, M)")(lambda: loss(V, M))
row("struct for a struct", DTypeError, "argument p of loss is a Layer, not a Other", "loss(Other(M), M)")(
    lambda: loss(Other(M), M))
row("struct for a tensor", DTypeError, "argument x of loss is a Tensor2D[f32], not a Layer", "loss(layer(), layer())")(
    lambda: loss(layer(), layer()))
row("tuple length", DTypeError, "argument p of <lambda> is a tuple of 2 values, not of 3")(
    lambda: fn(tuple[F1, F1])(lambda p: p[0])((V, V, V)))
row("rank 5 as argument", RankError, "argument x of <lambda> has rank 5: tensors have at most 4 axes")(
    on(lambda x: x, ones(1, 1, 1, 1, 1)))
row("scalar out of range", DTypeError, "argument n of <lambda>: 300 is out of range of i8: -128 to 127")(
    lambda: fn(Tensor0D[i8])(lambda n: n)(300))
row("spec as argument", DTypeError, "argument x of <lambda> is spec((3,), f32), which has no data", "", "help: f.compile, f.ir")(
    on(lambda x: x, spec((3,), f32)))
row("Rep for the IR", DTypeError, "argument x of f is a Tensor2D[f32], not a Rep: concrete values are needed here",
    "f.ir(x, x, x)")(on(lambda x: f.ir(x, x, x), M))
row("declared result", RankError, "wrong is declared to return a Tensor1D[f32] and returns a Tensor2D[f32]", "x * 2.0",
    "note: wrong is defined here")(lambda: wrong(M))
row("declared element type", DTypeError, "narrow is declared to return a Tensor2D[f32] and returns a Tensor2D[f64]",
    "x.cast(f64)")(lambda: narrow(M))
row("stage", StagingError, "there is no stage 'fast'; the stages are raw, optimizable, optimized, compute, schedule",
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
def wrong(x: Rep[F2]) -> Rep[F1]:
    return x * 2.0


@staged
def narrow(x: Rep[F2]) -> Rep[F2]:
    return x.cast(f64)


class Holder:
    @staged
    def method(self, x):
        return x


@row("annotation", StagingError, "the annotations of bad name Missing, which is not defined here", "", "help: define or import it")
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


@row("out of its function", StagingError, "a Rep of keep is used outside of it", "x + kept[0]", "help: return the value")
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


@row("a closure run elsewhere", StagingError, "inner uses Reps of the staged function it was made in: it runs only there",
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


@row("recursion", StagingError, "endless calls itself while it is staged, without end", "endless(x)", "help: a staged function runs once")
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


@row("recursion by ever new types", StagingError, "calls functions too deeply for Python")
def _growing() -> None:
    @staged
    def grow(x: Any) -> Any:
        return grow(tup(x, x))

    grow(V)


@row("recursion of a curried function", StagingError, "calls functions too deeply for Python")
def _curried() -> None:
    @staged
    def curried(x: Any) -> Any:
        return curried(x)

    other = staged(lambda g, x: other(g, x))
    other(f, const(V))


@row("recursion by its gradient", StagingError, "itself calls itself while it is staged, without end")
def _gradient_recursion() -> None:
    @staged
    def itself(x: Any) -> Any:
        return gradient(of=itself, wrt=0)(x)

    itself(V)


# -------------------------------------------------------------------------------------------------- gradients

row("wrt out of range", DifferentiationError, "wrt=3 is out of range: f has 3 parameters (0 x, 1 w, 2 b)", "gradient(of=f, wrt=3)")(
    lambda: gradient(of=f, wrt=3))
row("wrt negative", DifferentiationError, "wrt=-1 is out of range: f has 3 parameters", "gradient(of=f, wrt=-1)")(
    lambda: gradient(of=f, wrt=-1))
row("wrt in a tuple", DifferentiationError, "wrt=7 is out of range", "gradient(of=f, wrt=(0, 7))")(
    lambda: gradient(of=f, wrt=(0, 7)))
row("wrt twice", DifferentiationError, "wrt=(1, 1) names a parameter of f twice", "gradient(of=f, wrt=(1, 1))")(
    lambda: gradient(of=f, wrt=(1, 1)))
row("wrt empty", DifferentiationError, "wrt is empty: name at least one parameter of f", "gradient(of=f, wrt=())")(
    lambda: gradient(of=f, wrt=()))
row("wrt bool", DifferentiationError, "wrt holds True: it takes indices of parameters of f", "gradient(of=f, wrt=True)")(
    lambda: gradient(of=f, wrt=True))
row("wrt of strings", DifferentiationError, "wrt holds 'x'", 'gradient(of=f, wrt=("x",))')(lambda: gradient(of=f, wrt=("x",)))
row("wrt string", DifferentiationError, "wrt is a tuple of indices, not 'x'", 'gradient(of=f, wrt="x")')(
    lambda: gradient(of=f, wrt="x"))
row("wrt float", DifferentiationError, "wrt is a tuple of indices, not 0.5", "gradient(of=f, wrt=0.5)")(
    lambda: gradient(of=f, wrt=0.5))
row("wrt function", DifferentiationError, "wrt is a tuple of indices, not <staged function f(x, w, b)>", "gradient(of=f, wrt=f)")(
    lambda: gradient(of=f, wrt=f))
row("wrt integers", DifferentiationError, "parameter n of pair is a Tensor1D[i32]: only floats have derivatives",
    "gradient(of=pair, wrt=1)", "help: leave it out of wrt, or cast it")(lambda: gradient(of=pair, wrt=1))
row("wrt integers, found late", DifferentiationError, "parameter n of <lambda> is a Tensor1D[i32]: only floats have derivatives")(
    lambda: gradient(of=staged(lambda x, n: x), wrt=1)(V, N))
row("integer result", DifferentiationError, "result 0 of integers is a Tensor0D[i32]: only floats have derivatives",
    "gradient(of=integers, wrt=0)", "help: cast it to a float type inside the function")(lambda: gradient(of=integers, wrt=0))
row("integer result by from_", DifferentiationError, "result 1 of pair is a Tensor1D[i32]", "gradient(of=pair, wrt=0, from_=1)")(
    lambda: gradient(of=pair, wrt=0, from_=1))
row("from_", DifferentiationError, "from_=5 is out of range: pair has 2 results", "gradient(of=pair, wrt=0, from_=5)")(
    lambda: gradient(of=pair, wrt=0, from_=5))
row("from_, found late", DifferentiationError, "from_=5 is out of range: <lambda> has 1 result")(
    lambda: gradient(of=staged(lambda x: x), wrt=0, from_=5)(V))
row("from_ negative", DifferentiationError, "from_=-1 is no index of a result: they count from 0", "gradient(of=f, wrt=0, from_=-1)")(
    lambda: gradient(of=f, wrt=0, from_=-1))
row("keeping", DifferentiationError, "keeping=2 is out of range: pair has 2 results", "gradient(of=pair, wrt=0, keeping=(0, 2))")(
    lambda: gradient(of=pair, wrt=0, keeping=(0, 2)))
row("keeping twice", DifferentiationError, "keeping=(0, 0) names a result twice", "gradient(of=f, wrt=0, keeping=(0, 0))")(
    lambda: gradient(of=f, wrt=0, keeping=(0, 0)))
row("keeping int", DifferentiationError, "keeping is a tuple of indices, not 0", "gradient(of=f, wrt=0, keeping=0)", "help: keeping=(0,)")(
    lambda: gradient(of=f, wrt=0, keeping=0))
row("keeping bool", DifferentiationError, "keeping=True is no index of a result", "gradient(of=f, wrt=0, keeping=(True,))")(
    lambda: gradient(of=f, wrt=0, keeping=(True,)))
row("of no function", StagingError, "gradient takes a staged function, not a function", "gradient(of=ones, wrt=0)",
    "help: decorate it with @staged")(lambda: gradient(of=ones, wrt=0))
row("value of no function", StagingError, "value_and_gradient takes a staged function, not a int", "value_and_gradient(of=3, wrt=0)")(
    lambda: value_and_gradient(of=3, wrt=0))
row("no scalar", DifferentiationError, "value_and_gradient needs a scalar result and f returns a Tensor2D[f32]",
    "value_and_gradient(of=f, wrt=1)", "help: reduce it, for example `.sum()`")(lambda: value_and_gradient(of=f, wrt=1))
row("no scalar, found late", DifferentiationError, "value_and_gradient needs a scalar result and <lambda> returns a Tensor1D[f32]")(
    lambda: value_and_gradient(of=staged(lambda x: x), wrt=0)(V))
row("lens of another", DifferentiationError, "wrt=Other.w is a field of parameter 0, and p of loss is a Layer", "gradient(of=loss, wrt=Other.w)")(
    lambda: gradient(of=loss, wrt=Other.w))
row("lens of an open type", DifferentiationError, "wrt=Layer.w is a field of parameter 0, and p of <lambda> is of no declared type")(
    lambda: gradient(of=staged(lambda p: p[Layer.w]), wrt=Layer.w))
row("lens without parameters", DifferentiationError, "<lambda> has no parameters to differentiate")(
    lambda: gradient(of=staged(lambda: const(V)), wrt=Layer.w))
row("selector of a field", DifferentiationError, "the selector asks parameter 0 for the field 'v', and it is a Layer", "p.v")(
    lambda: gradient(of=loss, wrt=lambda p, x: p.v))
row("selector of a tensor's field", DifferentiationError, "the selector asks parameter 1 for the field 'w', and it is a Tensor2D[f32]", "x.w")(
    lambda: gradient(of=loss, wrt=lambda p, x: x.w))
row("selector twice", DifferentiationError, "the selector names a parameter twice", "gradient(of=loss, wrt=lambda p, x: (p.w, p.w))")(
    lambda: gradient(of=loss, wrt=lambda p, x: (p.w, p.w)))
row("selector arity", DifferentiationError, "the selector takes other arguments than loss: it gets 2 (p, x)", "gradient(of=loss, wrt=lambda p: p)")(
    lambda: gradient(of=loss, wrt=lambda p: p))
row("selector of nothing", DifferentiationError, "the selector returns None: it picks", "gradient(of=loss, wrt=lambda p, x: None)")(
    lambda: gradient(of=loss, wrt=lambda p, x: None))
row("selector of something else", DifferentiationError, "the selector returns 3: it picks parameters or their fields",
    "gradient(of=loss, wrt=lambda p, x: (p, 3))")(lambda: gradient(of=loss, wrt=lambda p, x: (p, 3)))
row("integer field", DifferentiationError, "c.n of counted is a Tensor0D[i32]: only floats have derivatives", "",
    "help: leave it out of wrt")(lambda: gradient(of=counted, wrt=Count.n))
row("seed", DTypeError, "argument seed of f_grad is a Tensor2D[f32], not a Tensor2D[f64]")(
    on(lambda x: gradient(of=f, wrt=0, seedable=True)(x, x, x, x.cast(f64)), M))
row("seed missing", StagingError, "f_grad takes 4 arguments (x, w, b, seed), not 3")(
    on(lambda x: gradient(of=f, wrt=0, seedable=True)(x, x, x), M))
row("shape of the seed", ShapeError, "the seed of f_grad is f32[2, 3], like the result, not f32[2, 2]")(
    lambda: gradient(of=f, wrt=0, seedable=True)(ones(2, 4), ones(4, 3), ones(1, 3), ones(2, 2)))
row("gradient of a function of functions", StagingError, "takes or returns staged functions")(
    on(lambda x: gradient(of=staged(lambda g, y: g(y)), wrt=1)(staged(lambda z: z), x), V))


@staged
def counted(c: Rep[Count]) -> Rep[F1]:
    return c[Count.x]


# ------------------------------------------------------------------------------------------------ the checks


def caret_text(message: str) -> tuple[str, str]:
    """The place and the text that the carets mark."""
    lines = message.split("\n")
    at = next(k for k, line in enumerate(lines) if line.strip() and set(line.strip()) == {"^"})
    start = lines[at].index("^")
    return lines[at - 1].strip().split("  ")[0], lines[at - 1][start : start + lines[at].count("^")]


@pytest.mark.parametrize("name", ROWS)
def test_message(name: str) -> None:
    expected = ROWS[name]
    with pytest.raises(expected.error) as caught:
        expected.run()
    error = caught.value
    assert type(error) is expected.error
    message = str(error)
    assert expected.message in message.split("\n")[0]
    place, marked = caret_text(message)
    assert re.fullmatch(r"test_errors\.py:\d+", place), message
    if expected.caret:
        assert marked == expected.caret, message
    notes = "\n".join(getattr(error, "__notes__", []))
    for note in expected.notes:
        assert note in notes, f"{note!r} is not in\n{notes}"
    shown = "".join(traceback.format_exception_only(error))
    assert "<locals>" not in shown and "_dispatch" not in shown and "StagedFunction" not in shown
    assert not message.split("\n")[0].endswith(".")


def test_a_message_reads_as_promised() -> None:
    with pytest.raises(ShapeError) as caught:
        f(ones(1, 784), ones(785, 10), ones(1, 10))
    shown = "".join(traceback.format_exception_only(caught.value)).splitlines()
    number = next(k for k, line in enumerate(Path(__file__).read_text().splitlines(), 1) if "return x @ w + b" in line)
    assert shown == [
        "nnkit.core.errors.ShapeError: cannot multiply f32[1, 784] by f32[785, 10]: inner dimensions 784 and 785 differ",
        f"  test_errors.py:{number}  return x @ w + b",
        f"  {' ' * len(f'test_errors.py:{number}')}         ^^^^^",
        f"  note: x is argument 0 of f: f32[1, 784]  test_errors.py:{number - 1}  "
        "def f(x: Rep[F2], w: Rep[F2], b: Rep[F2]) -> Rep[F2]:",
        f"  note: w is argument 1 of f: f32[785, 10]  test_errors.py:{number - 1}  "
        "def f(x: Rep[F2], w: Rep[F2], b: Rep[F2]) -> Rep[F2]:",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("shape", "dtype", "error", "message"),
    [
        ((float("nan"), 2), f32, ShapeError, "a shape is a tuple of ints"),
        (("2",), f32, ShapeError, "a shape is a tuple of ints"),
        ((True,), f32, ShapeError, "a shape is a tuple of ints"),
        ((-1, 2), f32, ShapeError, "an axis is negative"),
        ((1, 1, 1, 1, 1), f32, RankError, "at most 4 axes, not 5"),
        ((2**62, 2**62), f64, ShapeError, "larger than the address space"),
        ((2,), "f32", DTypeError, "an element type is one of"),
        ((2,), np.float32, DTypeError, "an element type is one of"),
    ],
)
def test_specs_that_no_array_can_have(shape: Any, dtype: Any, error: type[NNKitError], message: str) -> None:
    with pytest.raises(error, match=message):
        spec(shape, dtype)


def test_operators_with_other_things_are_type_errors_of_python() -> None:
    for other in ("a", None, [1.0], 1j, object()):
        with pytest.raises(TypeError, match="unsupported operand"):
            staged(lambda x, other=other: x + other)(V)


def test_a_user_s_own_error_passes_through() -> None:
    class MineError(Exception):
        pass

    def fails(x: Any) -> Any:
        raise MineError("mine")

    function = staged(fails)
    for _ in range(2):
        with pytest.raises(MineError, match="^mine$"):
            function(V)
    with pytest.raises(MineError):
        staged(lambda x: function(x))(V)
    assert np.asarray(staged(lambda x: x)(V)).tolist() == [1.0] * 3  # no trace is left open


def test_after_an_error_the_function_still_works() -> None:
    g = staged(lambda x, y: x + y)
    assert np.asarray(g(V, V)).tolist() == [2.0] * 3
    for _ in range(2):
        with pytest.raises(ShapeError):
            g(V, ones(2))
    assert np.asarray(g(V, V)).tolist() == [2.0] * 3
