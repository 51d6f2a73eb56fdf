"""Messages about operands: shapes, ranks, element types."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nnkit as nk
from nnkit import (
    DTypeError,
    NNKitError,
    RankError,
    ShapeError,
    StagingError,
    const,
    f32,
    f64,
    i8,
    i32,
    spec,
    staged,
)

from .messages import L, M, N, Table, V, f, on, ones

ROWS = Table()
row = ROWS.row
SHORT = np.zeros(3, np.int16)
MASKED: Any = np.ma.array([1.0], mask=[True])

# fmt: off

# ---------------------------------------------------------------------------------- shapes of operands
row("matmul", ShapeError, "cannot multiply f32[1, 784] by f32[785, 10]: inner dimensions 784 and 785 differ",
    "x @ w", "note: x is argument 0 of f: f32[1, 784]  messages.py:",
    "note: w is argument 1 of f: f32[785, 10]  messages.py:",
    "def f(x: Rep[F2], w: Rep[F2], b: Rep[F2]) -> Rep[F2]:")(lambda: f(ones(1, 784), ones(785, 10), ones(1, 10)))
row("add", ShapeError, "cannot add f32[1, 10] and f32[1, 11]: extents 10 and 11 differ", "x @ w + b",
    "note: the left operand is f32[1, 10], made here  messages.py:", "note: b is argument 2 of f")(
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
row("argmax of nothing", ShapeError, "argMax: axis 0 of f32[0, 3] is empty", "x.argmax(0)")(
    on(lambda x: x.argmax(0), ones(0, 3)))
row("argmin of nothing", ShapeError, "argMin: axis 0 of f32[0] is empty", "x.argmin()")(
    on(lambda x: x.argmin(), ones(0)))
row("take of nothing", ShapeError, "the axis of f32[0] is empty", "nk.take(x, i)")(
    on(lambda x, i: nk.take(x, i), ones(0), N))
row("in a called function", ShapeError,
    "cannot multiply f32[2, 3] by f32[2, 3]: inner dimensions 3 and 2 differ", "x @ w",
    "note: f is called here  test_errors.py:")(on(lambda x: f(x, x, x), M))
row("too large", ShapeError, "larger than the address space", "nk.zeros((2**40, 2**40), f32)")(
    on(lambda x: nk.zeros((2**40, 2**40), f32) + x, V))

# ----------------------------------------------------------------------------------------------- ranks
row("scalar @", RankError, "cannot multiply Tensor0D[f32] by Tensor1D[f32]: a scalar has no axes",
    "x.sum() @ x", "help: use *")(on(lambda x: x.sum() @ x, V))
row("number @", RankError, "cannot multiply Tensor1D[f32] by Tensor0D[f32]: a scalar", "x @ 2.0")(
    on(lambda x: x @ 2.0, V))
row("axis", RankError, "axis 2 does not exist: the tensor has rank 2", "x.sum(2)")(on(lambda x: x.sum(2), M))
row("axis -3", RankError, "axis -3 does not exist: the tensor has rank 2", "nk.cumsum(x, -3)")(
    on(lambda x: nk.cumsum(x, -3), M))
row("axis twice", RankError, "axes (0, -2) name an axis twice", "x.max((0, -2))")(on(lambda x: x.max((0, -2)), M))
row("axis no int", RankError, "an axis is an int, not 0.5", "x.sum(0.5)")(on(lambda x: x.sum(0.5), M))
row("axis bool", RankError, "an axis is an int, not True", "x.sum(True)")(on(lambda x: x.sum(True), M))
row("rank 6", RankError, "the result would have rank 6; tensors have at most 5", "x.expand_dims(0)")(
    on(lambda x: x.expand_dims(0), ones(1, 1, 1, 1, 1)))
row("rank 6 by reshape", RankError, "the result would have rank 6", "x.reshape(1, 1, 1, 1, 1, 3)")(
    on(lambda x: x.reshape(1, 1, 1, 1, 1, 3), V))
row("shape of rank 6", RankError, "zeros: tensors have at most 5 axes, not 6", "nk.zeros((1,) * 6, f32)")(
    on(lambda x: nk.zeros((1,) * 6, f32), V))
row("permutation", RankError, "(0, 0) is not a permutation of the axes of Tensor2D[f32]",
    "x.transpose(0, 0)")(on(lambda x: x.transpose(0, 0), M))
row("T", RankError, "only a matrix has a T, not a Tensor1D[f32]", "x.T", "help: transpose(")(on(lambda x: x.T, V))
row("names", RankError, "a tensor of rank 1 cannot take 2 names of dimensions", "x.named(nk.Dim, nk.Dim)")(
    on(lambda x: x.named(nk.Dim, nk.Dim), V))
row("concat ranks", RankError, "cannot concatenate Tensor1D[f32] and Tensor2D[f32]: ranks differ",
    "nk.concat([x, y])")(on(lambda x, y: nk.concat([x, y]), V, M))
row("broadcast lower", RankError, "cannot broadcast Tensor2D[f32] to [3]: rank is lost",
    "nk.broadcast_to(x, (3,))")(on(lambda x: nk.broadcast_to(x, (3,)), M))
row("pad", RankError, "pad takes a pair (before, after) for each of the 2 axes", "nk.pad(x, [(1, 1)] * 3)")(
    on(lambda x: nk.pad(x, [(1, 1)] * 3), M))
row("layer_norm", RankError, "layer_norm takes x alone, or x, scale and offset", "nk.layer_norm(x, x[0])")(
    on(lambda x: nk.layer_norm(x, x[0]), M))
row("layer_norm scale", RankError, "scale and offset of layer_norm are vectors, not a Tensor2D[f32]",
    "nk.layer_norm(x, x, x)")(on(lambda x: nk.layer_norm(x, x, x), M))
row("logits", RankError, "cross_entropy takes logits of rank 1 or 2, not a Tensor0D[f32]")(
    on(lambda x: nk.cross_entropy(x.sum(), x), V))
row("labels", RankError, "labels for a Tensor2D[f32] have rank 1, not 2")(
    on(lambda x: nk.cross_entropy(x, x.cast(i32)), M))
row("subscripts", RankError, "3 subscripts are too many for a Tensor2D[f32]", "x[0, 0, 0]")(
    on(lambda x: x[0, 0, 0], M))
row("constant of rank 6", RankError, "a constant has rank 6: tensors have at most 5 axes",
    "x + ones(1, 1, 1, 1, 1, 1)")(on(lambda x: x + ones(1, 1, 1, 1, 1, 1), V))

# --------------------------------------------------------------------------------------- element types
row("mixed", DTypeError, "cannot add Tensor1D[f32] and Tensor1D[f64]: element types f32 and f64 differ",
    "x + y", "note: y is argument 1 of <lambda>: Tensor1D[f64]", "help: cast one of them")(
    on(lambda x, y: x + y, V, np.ones(3)))
row("mixed comparison", DTypeError,
    "cannot compare Tensor1D[f32] and Tensor1D[i32]: element types f32 and i32 differ", "x < n")(
    on(lambda x, n: x < n, V, N))
row("mixed product", DTypeError,
    "cannot multiply Tensor2D[f32] and Tensor1D[i32]: element types f32 and i32 differ", "x @ n")(
    on(lambda x, n: x @ n, M, N))
row("mixed select", DTypeError,
    "cannot select from Tensor1D[f32] and Tensor1D[i32]: element types f32 and i32 differ",
    "nk.select(x > 0.0, x, n)")(on(lambda x, n: nk.select(x > 0.0, x, n), V, N))
row("mixed concat", DTypeError, "cannot concatenate Tensor1D[f32] and Tensor1D[i32]: element types f32 and i32 differ",
    "nk.concat([x, n])")(on(lambda x, n: nk.concat([x, n]), V, N))
row("condition", DTypeError, "the condition of a select is boolean, not Tensor1D[f32]", "nk.select(x, x, x)")(
    on(lambda x: nk.select(x, x, x), V))
row("division of integers", DTypeError,
    "divide takes float elements, not Tensor1D[i32]", "n / n")(on(lambda n: n / n, N))
row("floor division of floats", DTypeError,
    "floorDivide takes integer elements, not Tensor1D[f32]", "x // x",
    "help: `nk.floor(x / y)` of floats")(on(lambda x: x // x, V))
row("negative power of integers", DTypeError,
    "integers have no negative powers: Tensor1D[i32] ** -2", "n**-2", "help: cast it")(
    on(lambda n: n**-2, N))
row("exp of integers", DTypeError, "exp takes float elements, not Tensor1D[i32]", "nk.exp(n)")(
    on(lambda n: nk.exp(n), N))
row("sum of booleans", DTypeError, "sum takes float or integer elements, not Tensor1D[boolean]", "b.sum()",
    "help: `x.cast(i64)`")(on(lambda b: b.sum(), L))
row("any of numbers", DTypeError, "any takes boolean elements, not Tensor1D[f32]", "x.any()",
    "help: compare first")(on(lambda x: x.any(), V))
row("mean of integers", DTypeError, "mean takes float elements, not Tensor1D[i32]", "n.mean()", "help: cast it")(
    on(lambda n: n.mean(), N))
row("var of booleans", DTypeError, "var takes float elements, not Tensor1D[boolean]", "b.var()")(
    on(lambda b: b.var(), L))
row("argmax of booleans", DTypeError, "argMax takes float or integer elements, not Tensor1D[boolean]", "b.argmax()",
    "help: of truth values, `x.cast(i8)`")(on(lambda b: b.argmax(), L))
row("max of booleans", DTypeError, "maximum takes float or integer elements, not Tensor1D[boolean]", "b.max()",
    "help: `x.any()` says whether one is true")(on(lambda b: b.max(), L))
row("min of booleans", DTypeError, "minimum takes float or integer elements, not Tensor1D[boolean]", "b.min()",
    "help: `x.all()` says whether all are true")(on(lambda b: b.min(), L))
row("cumsum of booleans", DTypeError,
    "running sum takes float or integer elements, not Tensor1D[boolean]", "nk.cumsum(b, 0)")(
    on(lambda b: nk.cumsum(b, 0), L))
row("product of booleans", DTypeError,
    "dot takes float or integer elements, not Tensor1D[boolean]", "b @ b")(
    on(lambda b: b @ b, L))
row("addition of booleans", DTypeError, "add takes float or integer elements, not Tensor1D[boolean]", "b + b")(
    on(lambda b: b + b, L))
row("logic of numbers", DTypeError, "bitwiseAnd takes integer elements, not Tensor1D[f32]",
    "x & x")(on(lambda x: x & x, V))
row("not of numbers", DTypeError, "not takes boolean elements, not Tensor1D[f32]", "~x")(
    on(lambda x: ~x, V))
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
row("filler", DTypeError, "1.5 is not an integer", "nk.full((2,), 1.5, i32)")(
    on(lambda x: nk.full((2,), 1.5, i32), V))
row("pad no pairs", RankError, "pad takes a pair (before, after) for each of the 1 axes", "nk.pad(x, [1])")(
    on(lambda x: nk.pad(x, [1]), V))
row("pad value", DTypeError, "1000 is out of range for i8", "nk.pad(n, [(1, 1)], constant_values=1000)")(
    on(lambda n: nk.pad(n, [(1, 1)], constant_values=1000), np.zeros(3, np.int8)))
row("arange", DTypeError, "299 is out of range for i8", "nk.arange(300, i8)")(on(lambda x: nk.arange(300, i8), V))
row("arange of booleans", DTypeError, "1 is a number, not boolean", "nk.arange(2, nk.boolean)")(
    on(lambda x: nk.arange(2, nk.boolean), V))
row("two numbers", DTypeError, "cannot add two Python numbers: one must be a tensor", "nk.add(1, 2)")(
    on(lambda x: nk.add(1, 2), V))
row("mean of truth values", DTypeError, "mean takes float elements, not Tensor1D[boolean]", "(x > 0.0).mean()",
    "help: `x.cast(f32).mean()` is the share that is true")(on(lambda x: (x > 0.0).mean(), V))
row("concat of several", StagingError, "concat takes a list of tensors, not a Rep", "nk.concat(x, x)",
    "help: `concat([x, y])`")(on(lambda x: nk.concat(x, x), V))
row("stack of several", StagingError, "stack takes a list of tensors, not a Rep", "nk.stack(x, x)",
    "help: `stack([x, y])`")(on(lambda x: nk.stack(x, x), V))
row("select of numbers", DTypeError, "select between two Python numbers: one of them must be a tensor",
    "nk.select(x > 0.0, 1, 2)",
    "help: say which element type, `nk.where(condition, nk.const(i64(1)), 2)`")(
    on(lambda x: nk.select(x > 0.0, 1, 2), V))
row("float indices", DTypeError, "indices are integers, not a Tensor1D[f32]", "nk.take(x, x)",
    "help: cast them")(on(lambda x: nk.take(x, x), V))
row("float subscript", DTypeError, "indices are integers, not a Tensor0D[f32]", "x[x.sum()]")(
    on(lambda x: x[x.sum()], V))
row("one_hot", DTypeError, "oneHot takes integer elements, not Tensor1D[f32]", "nk.one_hot(x, 3, f32)")(
    on(lambda x: nk.one_hot(x, 3, f32), V))
row("labels of another type", DTypeError, "labels are class numbers or a Tensor2D[f32], not a Tensor1D[f32]")(
    on(lambda x: nk.cross_entropy(x, x[0]), M))
row("dtype", DTypeError, "an element type is one of f16, bf16, f32, f64, i8, i32, i64, boolean, not 'f32'",
    "x.cast('f32')")(on(lambda x: x.cast('f32'), V))
row("numpy dtype", DTypeError, "an element type is one of f16, bf16", "x.cast(np.float32)")(
    on(lambda x: x.cast(np.float32), V))
row("random dtype", DTypeError, "random numbers are floats, not i32", "nk.random.normal(k, (2,), dtype=i32)")(
    on(lambda k: nk.random.normal(k, (2,), dtype=i32), np.int64(0)))
row("shape of floats", DTypeError, "reshape takes Python ints, not 2.0", "x.reshape(2.0)")(
    on(lambda x: x.reshape(2.0), V))
row("staged extent", DTypeError, "zeros takes Python ints, not <Rep of Tensor0D[i32]>",
    "nk.zeros((n[0],), f32)")(on(lambda n: nk.zeros((n[0],), f32), N))
row("no shape", DTypeError, "ones takes a shape, a tuple of ints, not 3.0", "nk.ones(3.0, f32)")(
    on(lambda x: nk.ones(3.0, f32), V))
row("negative extent", ShapeError, "zeros takes numbers of at least 0, not -1", "nk.zeros((-1,), f32)")(
    on(lambda x: nk.zeros((-1,), f32), V))
row("negative width", ShapeError, "pad takes numbers of at least 0, not -1", "nk.pad(x, [(-1, 0)])")(
    on(lambda x: nk.pad(x, [(-1, 0)]), V))
row("constant number", DTypeError, "a constant must be a tensor, a struct or an array, and is the Python number 3",
    "const(3)", "help: say which, `i64(3)` or `i32(3)`")(on(lambda x: x + const(3), V))
row("constant list", DTypeError, "a constant must be a tensor, a struct or an array, and is a list", "const([1.0])")(
    on(lambda x: x + const([1.0]), V))
row("constant of an odd type", DTypeError, "a constant: cannot make a Tensor1D of an array of int16",
    "x + SHORT")(on(lambda x: x + SHORT, V))
row("constant with holes", DTypeError, "a constant: cannot make a Tensor1D of a masked array", "x + MASKED")(
    on(lambda x: x + MASKED, V))

# fmt: on


@pytest.mark.parametrize("name", ROWS)
def test_message(name: str) -> None:
    ROWS[name].check("test_errors.py")


def test_a_message_reads_as_promised() -> None:
    with pytest.raises(ShapeError) as caught:
        f(ones(1, 784), ones(785, 10), ones(1, 10))
    shown = "".join(traceback.format_exception_only(caught.value)).splitlines()
    source = Path(__file__).with_name("messages.py").read_text().splitlines()
    number = source.index("    return x @ w + b") + 1
    place = f"messages.py:{number}"
    assert shown == [
        "nnkit.core.errors.ShapeError: cannot multiply f32[1, 784] by f32[785, 10]: "
        "inner dimensions 784 and 785 differ",
        f"  {place}  return x @ w + b",
        f"  {' ' * len(place)}         ^^^^^",
        f"  note: x is argument 0 of f: f32[1, 784]  messages.py:{number - 1}  {source[number - 2]}",
        f"  note: w is argument 1 of f: f32[785, 10]  messages.py:{number - 1}  {source[number - 2]}",
    ]


@pytest.mark.parametrize(
    ("shape", "dtype", "error", "message"),
    [
        ((float("nan"), 2), f32, ShapeError, "a shape is a tuple of ints"),
        (("2",), f32, ShapeError, "a shape is a tuple of ints"),
        ((True,), f32, ShapeError, "a shape is a tuple of ints"),
        ((-1, 2), f32, ShapeError, "an axis is negative"),
        ((1,) * 6, f32, RankError, "at most 5 axes, not 6"),
        ((2**62, 2**62), f64, ShapeError, "larger than the address space"),
        ((2,), "f32", DTypeError, "an element type is one of"),
        ((2,), np.float32, DTypeError, "an element type is one of"),
    ],
)
def test_specs_that_no_array_can_have(
    shape: Any, dtype: Any, error: type[NNKitError], message: str
) -> None:
    with pytest.raises(error, match=message):
        spec(shape, dtype)


def test_operators_with_other_things_are_type_errors_of_python() -> None:
    for other in ("a", None, 1j, object()):
        with pytest.raises(TypeError, match="unsupported operand"):
            staged(lambda x, other=other: x + other)(V)


def test_a_user_s_own_error_passes_through() -> None:
    class MineError(Exception):
        pass

    def fails(x: Any) -> Any:
        raise MineError("mine")

    function = staged(fails)
    for _ in range(2):
        with pytest.raises(MineError, match=r"^mine$"):
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
