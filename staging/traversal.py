"""What goes along the leading axis of a tensor, element by element: map, fold, scan and filter."""

from __future__ import annotations

from types import GenericAlias
from typing import Any, ClassVar, TypeVar, cast

from ..core.errors import StagingError
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
from . import control, primitive
from .expression import Expression
from .primitive import located
from .rep import Rep
from .spec import TensorSpec

_Rep = TypeVar("_Rep", bound="Traversable")


class Stacked:
    """What `scan` has stacked: `ys.tensor()` has one element per step along its leading axis."""

    __slots__ = ("_rep",)
    __class_getitem__: ClassVar[Any] = cast("Any", classmethod(GenericAlias))

    def __init__(self, rep: Rep) -> None:
        self._rep = rep

    def tensor(self) -> Rep:
        """The elements along a new leading axis."""
        return self._rep

    def __repr__(self) -> str:
        return f"<stacked {self._rep.spec.words}>"


class Traversable(Rep):
    """A staged value with the methods that take a function of its elements.

    An element is what `x[i]` is.  Of a tuple of tensors, as `zip` makes one, it is the tuple of their elements.
    """

    __slots__ = ()

    def map(self: _Rep, fn: Any, /) -> _Rep:
        """`fn` of every element along the leading axis, stacked."""
        return type(self)(control.map_rows("map", self, fn, type(self)))

    def fold(self, init: Any, fn: Any, /) -> Any:
        """`fn(… fn(fn(init, x[0]), x[1]) …, x[n - 1])`; `init` is a Rep, or a tuple of Reps."""
        return control.fold(self, init, fn, type(self))

    def scan(self, init: Any, fn: Any, /) -> tuple[Any, Stacked]:
        """As `fold`, of a function that returns the next carry and a tensor: the last carry, and all of these."""
        carry, stacked = control.scan(self, init, fn, type(self))
        return carry, Stacked(type(self)(stacked))

    def filter(self: _Rep, predicate: Any, /) -> tuple[_Rep, _Rep]:
        """The elements of which `predicate` is true, then zeros up to the same extent; and how many there are."""
        x = self.expression
        spec = primitive.tensor_of(x, "filter")
        kept = control.map_rows("filter", self, predicate, type(self))
        if kept.type != TensorSpec(1, BOOL):
            raise located(
                StagingError(
                    f"the function of filter says whether to keep an element, by a boolean scalar: it "
                    f"returns {_element(kept)}"
                ),
                "compare, for example `x > 0.0`",
            )
        padded = primitive.shaped("filter", _kept_first, (x, kept), spec)
        count = primitive.shaped("count", _count, (kept,), TensorSpec(0, I64))
        return type(self)(padded), type(self)(count)


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
