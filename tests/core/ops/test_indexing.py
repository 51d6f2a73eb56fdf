"""Gather, scatter, one-hot and iota: samples for the laws, then indices outside."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from nnkit.core.errors import DTypeError, IndexOutOfRangeError, RankError
from nnkit.core.ir import Builder, Op
from nnkit.core.ops import Bounds, Gather, Iota, OneHot, ScatterAdd
from nnkit.core.types import BOOL, F32, F64, I32, I64, Array, TensorType

from .running import arguments, run
from .samples import ErrorSample, Sample, boolean, f64, i32, i64


def _take(axis: int) -> Callable[[Array, Array], Array]:
    return lambda x, indices: np.take(x, indices, axis)


SAMPLES = [
    Sample(Gather(0), (f64(4), i64()), low=0, high=3, numpy=_take(0)),
    Sample(Gather(0), (f64(4, 3), i64(5)), low=0, high=3, numpy=_take(0)),
    Sample(Gather(1), (f64(2, 4, 3), i32(2, 2)), low=0, high=3, numpy=_take(1)),
    Sample(Gather(2), (f64(2, 1, 4), i32(3)), low=0, high=3, numpy=_take(2)),
    Sample(Gather(0), (i64(4), i64(0)), numpy=_take(0)),
    Sample(Gather(0), (f64(0, 3), i64(0)), numpy=_take(0)),
    Sample(Gather(0), (boolean(4), i64(3)), low=0, high=3, numpy=_take(0)),
    Sample(Gather(0, Bounds.CLIP), (f64(3), i64(5)), ([1.0, 2.0, 3.0], [-7, -1, 0, 2, 9])),
    Sample(Gather(1, Bounds.ZERO), (f64(2, 3), i64(5)), ([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], [-7, -1, 0, 2, 9])),
    Sample(Gather(0, Bounds.ZERO), (f64(0, 2), i64(3)), (np.zeros((0, 2)), [0, -1, 5])),
    Sample(Gather(1, Bounds.ZERO), (f64(2, 0), i64()), ([[], []], 0), numpy=lambda x, i: np.zeros(2)),
    Sample(ScatterAdd((4,), 0), (f64(), i64()), low=0, high=3),
    Sample(ScatterAdd((4, 3), 0), (f64(5, 3), i64(5)), low=0, high=3),
    Sample(ScatterAdd((2, 4, 3), 1), (f64(2, 2, 2, 3), i32(2, 2)), low=0, high=3),
    Sample(ScatterAdd((4,), 0), (i64(6), i64(6)), low=0, high=3),
    Sample(ScatterAdd((4, 2), 0), (f64(0, 2), i64(0))),
    Sample(ScatterAdd((0, 2), 0), (f64(0, 2), i64(0))),
    Sample(ScatterAdd((3,), 0, Bounds.CLIP), (f64(5),  i64(5)), ([1.0, 2.0, 3.0, 4.0, 5.0], [-7, -1, 0, 2, 9])),
    Sample(ScatterAdd((3,), 0, Bounds.ZERO), (f64(5),  i64(5)), ([1.0, 2.0, 3.0, 4.0, 5.0], [-7, -1, 0, 2, 9])),
    Sample(ScatterAdd((0,), 0, Bounds.ZERO), (f64(2),  i64(2)), ([1.0, 2.0], [0, -1])),
    Sample(OneHot(4, F64), (i64(),), low=0, high=3, numpy=lambda i: np.eye(4)[i]),
    Sample(OneHot(4, F32), (i32(2, 3),), low=0, high=3, numpy=lambda i: np.eye(4, dtype="f4")[i]),
    Sample(OneHot(3, BOOL), (i64(4),), ([-1, 0, 2, 3],)),
    Sample(OneHot(0, F64), (i64(3),)),
    Sample(Iota((3,), 0, I64), (), numpy=lambda: np.arange(3)),
    Sample(Iota((2, 3), 1, F32), (), numpy=lambda: np.array([[0, 1, 2], [0, 1, 2]], "f4")),
    Sample(Iota((2, 0), 0, I32), ()),
    Sample(Iota((0,), 0, I32), ()),
]  # fmt: skip
ERRORS = [
    ErrorSample(Gather(0), (f64(3), f64(2)), "indices must be i32 or i64, not f64[2]", DTypeError),
    ErrorSample(Gather(2), (f64(3, 2), i64(2)), "axis 2 is out of range for f64[3, 2]", RankError),
    ErrorSample(Gather(0), (f64(), i64(2)), "axis 0 is out of range for f64[]", RankError),
    ErrorSample(Gather(0), (f64(0, 2), i64(2)), "the axis of f64[0, 2] is empty"),
    ErrorSample(Gather(0, Bounds.CLIP), (f64(0, 2), i64(2)), "the axis of f64[0, 2] is empty"),
    ErrorSample(ScatterAdd((3, 2), 0), (f64(4, 3), i64(4)), "takes updates of shape [4, 2], not f64[4, 3]"),
    ErrorSample(ScatterAdd((3,), 0), (boolean(4), i64(4)), "float or integer elements", DTypeError),
    ErrorSample(ScatterAdd((3,), 1), (f64(4), i64(4)), "axis 1 is out of range for f64[3]", RankError),
    ErrorSample(ScatterAdd((0,), 0), (f64(4), i64(4)), "the axis of f64[0] is empty"),
    ErrorSample(OneHot(4, F64), (f64(2),), "oneHot takes integer elements, not f64", DTypeError),
    ErrorSample(Iota((2, 3), 2, I64), (), "axis 2 is out of range for i64[2, 3]", RankError),
    ErrorSample(Iota((2,), 0, BOOL), (), "iota takes float or integer elements, not bool", DTypeError),
]  # fmt: skip


@pytest.mark.parametrize("index", [-1, 3])
@pytest.mark.parametrize(
    ("op", "types"),
    [(Gather(0), (f64(3), i64(2))), (ScatterAdd((3,), 0), (f64(2), i64(2)))],
    ids=lambda x: x.name if isinstance(x, Op) else "",
)
def test_an_index_outside_is_an_error(op: Op, types: tuple[TensorType, ...], index: int) -> None:
    operands = [np.ones(types[0].shape), np.array([0, index])]
    message = f"index {index} is out of range for an axis of extent 3"
    with pytest.raises(IndexOutOfRangeError, match=message):
        op.evaluate(*operands)
    b = Builder()
    xs = arguments(b, types)
    y = op.nest(b, *xs)
    assert y is not None
    with pytest.raises(IndexOutOfRangeError, match=message):
        run(b, dict(zip(xs, operands, strict=True)), [y])


def test_updates_at_the_same_index_add_up() -> None:
    updates, indices = np.array([1.0, 2.0, 4.0]), np.array([0, 0, 2])
    assert ScatterAdd((3,), 0).evaluate(updates, indices).tolist() == [3.0, 0.0, 4.0]


def test_indices_outside_by_their_bounds() -> None:
    x, indices = np.array([1.0, 2.0, 3.0]), np.array([-1, 1, 3])
    assert Gather(0, Bounds.CLIP).evaluate(x, indices).tolist() == [1.0, 2.0, 3.0]
    assert Gather(0, Bounds.ZERO).evaluate(x, indices).tolist() == [0.0, 2.0, 0.0]
    assert OneHot(2, I64).evaluate(indices).tolist() == [[0, 0], [0, 1], [0, 0]]
