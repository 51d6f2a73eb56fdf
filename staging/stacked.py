"""Stacked results of `scan`, and `filter` along the leading axis."""

from __future__ import annotations

from types import GenericAlias
from typing import Any, ClassVar, NoReturn, cast

from ..core.ir import Builder, Value
from ..core.ops import (
    Combinator,
    DataTypeCast,
    Gather,
    Iota,
    LessThan,
    Reduce,
    Scan,
    ScatterAdd,
    Select,
    Subtract,
)
from ..core.ops.literal import constant
from ..core.ops.nest import Bounds
from ..core.types import BOOL, I64, scalar
from . import control_flow, primitive
from .expression import Expression
from .primitive import staging_error
from .rep_base import RepBase
from .spec import TensorSpec


class Stacked:
    """What `scan` has stacked: `ys.tensor()` has one element per step along its leading axis."""

    __slots__ = ("_rep",)
    __class_getitem__: ClassVar[Any] = cast("Any", classmethod(GenericAlias))

    def __init__(self, rep: RepBase) -> None:
        self._rep = rep

    def tensor(self) -> RepBase:
        """The elements along a new leading axis."""
        return self._rep

    def __getattr__(self, name: str) -> NoReturn:
        words = f"what scan has stacked has no {name!r}"
        if name.startswith("_"):
            raise AttributeError(words)
        raise AttributeError(f"{words}\n  help: `ys.tensor()` is the tensor, which may have it")

    def __repr__(self) -> str:
        return f"<stacked {self._rep.spec.words}>"


def filter_rows(xs: RepBase, predicate: Any) -> tuple[Expression, Expression]:
    """The elements of which `predicate` is true, then zeros up to the same extent; and how many there are."""
    x = xs.expression
    spec = primitive.tensor_of(x, "filter")
    kept = control_flow.map_rows("filter", xs, predicate)
    if kept.type != TensorSpec(1, BOOL):
        raise staging_error(
            f"the function of filter says whether to keep an element, by a boolean scalar: it "
            f"returns {_element(kept)}",
            "compare, for example `x > 0.0`",
        )
    padded = primitive.shape_dependent("filter", _kept_first, (x, kept), spec)
    return padded, primitive.shape_dependent("count", _count, (kept,), TensorSpec(0, I64))


def _element(stacked: Expression) -> str:
    spec = stacked.type
    assert isinstance(spec, TensorSpec)
    return f"a {TensorSpec(spec.rank - 1, spec.dtype).words}"


def _count(b: Builder, kept: Value) -> Value:
    return b.emit(Reduce(Combinator.ADD, (0,)), b.emit(DataTypeCast(I64), kept))


def _kept_first(b: Builder, x: Value, kept: Value) -> Value:
    """Where each element comes from; the places after the last one kept read outside, which gives zero.

    The kept ones are scattered to the number of those before them, the others nowhere.
    """
    extent = x.tensor.shape[0]
    if extent == 0:
        return x
    one, beyond = (constant(b, scalar(I64), number) for number in (1, extent))
    numbers = b.emit(DataTypeCast(I64), kept)
    before = b.emit(Subtract(), b.emit(Scan(Combinator.ADD, 0), numbers), one)
    places = b.emit(Iota((extent,), 0, I64))
    target = b.emit(Select(), before, beyond, kept)
    source = b.emit(ScatterAdd((extent,), 0, Bounds.ZERO), places, target)
    is_taken = b.emit(LessThan(), places, _count(b, kept))
    return b.emit(Gather(0, Bounds.ZERO), x, b.emit(Select(), source, beyond, is_taken))
