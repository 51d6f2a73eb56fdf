"""Messages about subscripts, structs, and what Python cannot do with a Rep."""

from __future__ import annotations

import numpy as np
import pytest

import nnkit as nk
from nnkit import (
    DTypeError,
    IndexOutOfRangeError,
    RankError,
    ShapeError,
    StagingError,
    UnsupportedError,
    build,
    const,
    f64,
    staged,
    tup,
)

from .messages import COMPREHENSION, Layer, M, N, Other, Table, V, f, layer, on

ROWS = Table()
row = ROWS.row

# fmt: off

# ------------------------------------------------------------------------------------------ subscripts
row("index", IndexOutOfRangeError, "index 5 is out of range for axis 0 of f32[2, 3]", "x[5]",
    "note: x is argument 0")(on(lambda x: x[5], M))
row("index -4", IndexOutOfRangeError, "index -4 is out of range for axis 1 of f32[2, 3]", "x[:, -4]")(
    on(lambda x: x[:, -4], M))
row("index at run time", IndexOutOfRangeError, "index 7 is out of range for an axis of extent 3",
    "nk.take(x, n)")(on(lambda x, n: nk.take(x, n), V, N[:1] + 7))
row("negative index at run time", IndexOutOfRangeError, "index -4 is out of range for an axis of extent 3",
    "x[n[0]]")(on(lambda x, n: x[n[0]], V, N - 4))
row("label at run time", IndexOutOfRangeError, "index 3 is out of range for an axis of extent 3",
    "nk.cross_entropy(x, n)")(on(lambda x, n: nk.cross_entropy(x, n), M, np.array([0, 3])))
row("staged slice", StagingError, "the ends of a slice are Python ints: its extent must be static", "x[: n[0]]",
    "help: `take(x, i + arange(n))` reads n elements from a staged i on")(on(lambda x, n: x[: n[0]], V, N))
row("step 0", StagingError, "the step of a slice cannot be 0", "x[::0]")(on(lambda x: x[::0], V))
row("two ellipses", StagingError, "a subscript has at most one `...`", "x[..., ...]")(on(lambda x: x[..., ...], M))
row("float constant subscript", StagingError, "a subscript is an int, a slice or integer tensors, not a float",
    "x[1.0]")(on(lambda x: x[1.0], V))
row("index among several", IndexOutOfRangeError, "index 2 is out of range for an axis of extent 2", "x[n, n]")(
    on(lambda x, n: x[n, n], M, N))
row("indices around a slice", UnsupportedError, "integer tensors on both sides of a slice cannot be indices",
    "x[n, :, n]", "help: transpose")(on(lambda x, n: x[n, :, n], np.ones((2, 2, 2), np.float32), N))
row("an int and indices around a slice", UnsupportedError, "an int and integer tensors on both sides of a slice",
    "x[0, :, n]", "help: one after the other")(on(lambda x, n: x[0, :, n], np.ones((2, 2, 2), np.float32), N))
row("mask", StagingError, "x[mask] by a Tensor1D[boolean] would have as many elements as the mask has trues",
    "x[x > 0.0]", "help: `where(mask, x, 0)` keeps the shape")(on(lambda x: x[x > 0.0], V))
row("mask among others", UnsupportedError, "a mask is a key by itself", "x[0, x[0] > 0.0]")(
    on(lambda x: x[0, x[0] > 0.0], M))
row("a list of Reps", StagingError, "a list in a subscript has Python ints, not Reps", "x[[n[0], n[1]]]",
    "help: `stack(")(
    on(lambda x, n: x[[n[0], n[1]]], V, N))
row("known mask of another shape", ShapeError, "a mask of shape [2] does not fit f32[3]", "x[[True, False]]")(
    on(lambda x: x[[True, False]], V))
row("value of a mask", RankError, "at[mask].set by a mask of rank 1 cannot take Tensor1D[f32]",
    "x.at[x > 0.0].set(x)", "help: `where(mask, value, x)`")(on(lambda x: x.at[x > 0.0].set(x), V))
row("mask of another shape", ShapeError, "a mask of shape [2] does not fit f32[3]")(
    on(lambda x: x.at[x[:2] > 0.0].set(1.0), V))
row("mode", ShapeError, "mode is 'error', 'clip', 'wrap' or 'fill', not 'drop'", 'nk.take(x, n, mode="drop")')(
    on(lambda x, n: nk.take(x, n, mode="drop"), V, N))
row("filler", ShapeError, "fill_value is for mode='fill'", 'nk.take(x, n, fill_value=1.0)')(
    on(lambda x, n: nk.take(x, n, fill_value=1.0), V, N))
row("concat nothing", ShapeError, "cannot concatenate nothing", "nk.concat([])")(on(lambda x: nk.concat([]), V))
row("split", ShapeError, "split takes numbers of at least 1, not 0", "nk.random.split(k, 0)")(
    on(lambda k: nk.random.split(k, 0)[0], np.int64(0)))

# ----------------------------------------------------------------------------- structs, tuples, lenses
row("another struct's field", StagingError, "Other.w is not a field of Layer", "p[Other.w]",
    "help: its fields are Layer.w, Layer.b")(on(lambda p: p[Other.w], layer()))
row("a field of a tensor", StagingError, "Layer.w is a field of a struct, and this is a Tensor1D[f32]",
    "x[Layer.w]")(on(lambda x: x[Layer.w], V))
row("a struct's subscript", StagingError, "0 is not a field of Layer", "p[0]")(on(lambda p: p[0], layer()))
row("set of another type", DTypeError, "field w of Layer must be a Tensor2D[f32], and is a Tensor1D[f32]",
    "p.set(Layer.w, p[Layer.b])")(on(lambda p: p.set(Layer.w, p[Layer.b]), layer()))
row("set of no Rep", DTypeError, "field b of Layer must be a Tensor1D[f32], and is a Tensor1D[f64]",
    "p.set(Layer.b, V.astype(float))")(on(lambda p: p.set(Layer.b, V.astype(float)), layer()))
row("set in a tensor", StagingError, "only a struct has fields to set, not a Tensor1D[f32]",
    "x.set(Layer.b, x)")(on(lambda x: x.set(Layer.b, x), V))
row("arithmetic of structs", DTypeError, "cannot add a struct and a Tensor1D[f32]", "p + V")(
    on(lambda p: p + V, layer()))
row("method of structs", DTypeError, "sum takes tensors, not a Layer", "p.sum()")(on(lambda p: p.sum(), layer()))
row("build without a field", StagingError, "field w of Layer is missing", "build(Layer, Layer.b << x)")(
    on(lambda x: build(Layer, Layer.b << x), V))
row("build with a field twice", StagingError, "field b of Layer is given twice",
    "build(Layer, Layer.b << x, Layer.b << x)")(on(lambda x: build(Layer, Layer.b << x, Layer.b << x), V))
row("build with another's field", StagingError, "Other.w is not a field of Layer", "build(Layer, Other.w << x)",
    "help: its fields are w, b")(on(lambda x: build(Layer, Other.w << x), M))
row("build of another type", DTypeError, "field w of Layer must be a Tensor2D[f32], and is a Tensor2D[f64]",
    "build(Layer, Layer.w << x.cast(f64), Layer.b << x[0])")(
    on(lambda x: build(Layer, Layer.w << x.cast(f64), Layer.b << x[0]), M))
row("build of another rank", RankError, "field b of Layer must be a Tensor1D[f32], and is a Tensor2D[f32]",
    "build(Layer, Layer.w << x, Layer.b << x)")(on(lambda x: build(Layer, Layer.w << x, Layer.b << x), M))
row("build of no fields", StagingError, "build takes fields with their values, not a Rep", "build(Layer, x)",
    "help: for example Layer.w << value")(on(lambda x: build(Layer, x), M))
row("element", IndexOutOfRangeError, "element 2 does not exist: the tuple has 2 elements", "tup(x, x)[2]")(
    on(lambda x: tup(x, x)[2], V))
row("element by name", StagingError, "an element of a tuple is chosen by an int, not 'a'", 'tup(x, x)["a"]')(
    on(lambda x: tup(x, x)["a"], V))
row("unpack", StagingError, "only a tuple can be unpacked, not a Tensor1D[f32]", "x.unpack()")(
    on(lambda x: x.unpack(), V))
row("tup of nothing", StagingError, "tup takes at least one value", "tup()")(on(lambda x: tup(), V))

# ------------------------------------------------------------------------------- what Python cannot do

NO_VALUE = "needs a value, and a Rep has none while staging"
row("float()", StagingError, f"float() {NO_VALUE}", "float(x)", "help: keep computing with Reps")(
    on(lambda x: float(x), V))
row("int()", StagingError, f"int() {NO_VALUE}", "int(x)")(on(lambda x: int(x), V))
row("complex()", StagingError, f"complex() {NO_VALUE}", "complex(x)")(on(lambda x: complex(x), V))
row("round()", StagingError, f"round() {NO_VALUE}", "round(x)", "`nk.round(x)`")(
    on(lambda x: round(x), V)
)
row("range()", StagingError, f"an index or range() {NO_VALUE}", "range(x)")(on(lambda x: range(x), V))
row("np.tanh", StagingError, f"np.tanh {NO_VALUE}", "np.tanh(x)")(on(lambda x: np.tanh(x), V))
row("np.sum", StagingError, f"np.sum {NO_VALUE}", "np.sum(x)")(on(lambda x: np.sum(x), V))
row("np.concatenate", StagingError, f"np.concatenate {NO_VALUE}", "np.concatenate([x, x])")(
    on(lambda x: np.concatenate([x, x]), V))
row("np.asarray", StagingError, f"a NumPy function {NO_VALUE}", "np.asarray(x)")(on(lambda x: np.asarray(x), V))
row("np.add.reduce", StagingError, f"np.add {NO_VALUE}", "np.add.reduce(x)")(on(lambda x: np.add.reduce(x), V))
row("and", StagingError, "a Rep has no truth value", "x > 0.0 and x < 1.0",
    "help: choose with `cond(condition, lambda: a, lambda: b)`")(on(lambda x: x > 0.0 and x < 1.0, V))
row("not", StagingError, "a Rep has no truth value", "not x")(on(lambda x: not x, V))
row("format", StagingError, "a Rep has no digits for '.2f'", "", "help: `nk.print(x)` shows the value")(
    on(lambda x: f"{x:.2f}", V)
)
row("conditional", StagingError, "a Rep has no truth value", "x.sum() > 0.0")(
    on(lambda x: x if x.sum() > 0.0 else -x, V))
row("for", StagingError, "a Rep cannot be iterated", COMPREHENSION, "help: `x.map(fn)`")(
    on(lambda x: [-y for y in x], V))
row("in", StagingError, "a Rep cannot be searched", "1.0 in x", "help: `(x == value).any()`")(
    on(lambda x: 1.0 in x, V))
row("assignment", StagingError, "a Rep cannot be written to: it is a value, as a number is", "x.__setitem__(0, 1.0)",
    "help: `x.at[i].set(value)`")(on(lambda x: x.__setitem__(0, 1.0), V))
row("deletion", StagingError, "elements of a Rep cannot be deleted", "x.__delitem__(0)", "help: take a slice")(
    on(lambda x: x.__delitem__(0), V))
row("call of a tensor", StagingError, "a Tensor1D[f32] cannot be called: it is no staged function", "x(1)")(
    on(lambda x: x(1), V))
row("ir of a tensor", StagingError, "a Tensor1D[f32] is no staged function: it has no IR", "x.ir()")(
    on(lambda x: x.ir(), V))
row("code of a tensor", StagingError, "a Tensor1D[f32] is no staged function: it has no code",
    "const(V).compile()")(lambda: const(V).compile())
row("llvm of a tensor", StagingError, "it has no code", "const(V).llvm()")(lambda: const(V).llvm())
row("asm of a tensor", StagingError, "it has no code", "const(V).asm()")(lambda: const(V).asm())
row("function + tensor", StagingError, "f is a staged function, not a tensor", "f + x",
    "help: call it, f(...)")(on(lambda x: f + x, V))
row("tensor + function", StagingError, "f is a staged function, not a tensor", "x + f")(on(lambda x: x + f, V))
row("value of a function", StagingError, "f is a staged function, not a tensor", "f.eval()")(lambda: f.eval())
row("eval while staging", StagingError, "this Rep has no value: it depends on parameters of a staged function",
    "x.eval()", "help: return it from the function")(on(lambda x: x.eval(), V))

row("subscript of a concrete struct", StagingError,
    "p[Layer.w] reads a staged struct, and this Layer is a concrete one", "layer()[Layer.w]",
    "help: `p.w`")(lambda: layer()[Layer.w])
row("select between structs", DTypeError, "select takes tensors, not a Layer", "nk.select(x.sum() > 0.0, p, p)",
    "help: `nk.cond(condition, lambda: p, lambda: q)`")(on(lambda p, x: nk.select(x.sum() > 0.0, p, p), layer(), V))
row("root of a size", DTypeError, "is a size, x.shape[0], which has no element type of its own", "nk.sqrt(x.shape[0])",
    "help: `nk.full((), x.shape[0], f32)` has one")(on(lambda x: nk.sqrt(x.shape[0]), V))
row("dropout in another order", DTypeError, "dropout(x, rate, key) takes a key last, not the number 0.5",
    "nk.dropout(x, k, 0.5)", "help: `nk.dropout(x, 0.5, nk.random.key(0))`")(
    on(lambda x, k: nk.dropout(x, k, 0.5), V, np.int64(0)))
row("tree.map of a dict", DTypeError, "tree.map goes through structs, tuples and lists, and a dict is none of them",
    'nk.tree.map(nk.tanh, {"a": x})', "help: `{key: nk.tree.map(function, value)")(
    on(lambda x: nk.tree.map(nk.tanh, {"a": x})["a"], V))
row("nothing for data", DTypeError, "argument x of f", "f(None, None, None)", "help: data is given in every call")(
    lambda: f(None, None, None))

# fmt: on


def test_a_part_of_a_tensor_names_what_reads_it() -> None:
    with pytest.raises(
        AttributeError, match=r"x\.at\[\.\.\.\] has no get: x\[\.\.\.\] reads the part"
    ):
        staged(lambda x: x.at[0].get())(V)


def test_what_only_a_concrete_tensor_has() -> None:
    for name in ("tolist", "item", "numpy"):
        with pytest.raises(
            AttributeError, match=f"a Rep has no '{name}': it is not known while staging"
        ):
            staged(lambda x, name=name: getattr(x, name))(V)
    assert hasattr(const(V), "shape") and not hasattr(f, "shape")
    with pytest.raises(AttributeError, match=r"a Rep has no 'shape': it is a tuple\[Tensor1D"):
        staged(lambda x: nk.tup(x, x).shape)(V)


@pytest.mark.parametrize("name", ROWS)
def test_message(name: str) -> None:
    ROWS[name].check("test_errors_of_values.py")


def test_what_scan_has_stacked_is_no_tensor_and_a_tensor_is_not_stacked() -> None:
    def stacked(x: nk.Rep) -> object:
        return x.scan(x[0], lambda carry, row: (carry, row))[1].sum()

    with pytest.raises(AttributeError, match=r"stacked has no 'sum'\n.*`ys\.tensor\(\)`"):
        on(stacked, V)()
    with pytest.raises(AttributeError, match="a Rep has no 'tensor': it is one"):
        on(lambda x: x.map(nk.exp).tensor(), V)()
