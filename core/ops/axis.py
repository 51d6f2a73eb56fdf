"""`axisReduce`: combines the elements of a batch, inside of the function that is batched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..errors import DTypeError, UnsupportedError
from ..ir.instruction import Emitter, Pure, Value
from ..lazy_dataclass import dataclass
from ..stage import Stage, Stages
from ..types import I64, Array, TensorType, quoted
from .arithmetic import Divide, Maximum, Multiply, StrongMultiply
from .casting import DataTypeCast
from .combinator import Combinator
from .comparison import Equal, Select
from .formulas import number
from .reduction import Reduce
from .scan import check_combinator, nan_where_nan

_COMBINATORS = (Combinator.ADD, Combinator.MIN, Combinator.MAX)


@dataclass(frozen=True)
class AxisReduce(Pure):
    """x₀ ∘ x₁ ∘ … over the elements of the batch whose axis has the name `axis`, the same for each; of the shape of x.

    It stands in functions that are declared to be batched along an axis of this name, or are called by such; batching
    makes it a `reduce` along the batch axis.  Its derivative is that of all the elements' results together, as of a
    function of the whole batch: a sum gives each element the sum of all cotangents.
    """

    name: ClassVar[str] = "axisReduce"
    syntax: ClassVar[str] = "axisReduce {x} by {combinator} over {axis}"
    stages: ClassVar[Stages] = frozenset({Stage.RAW, Stage.OPTIMIZABLE})
    combinator: Combinator
    axis: str

    def infer(self, x: TensorType) -> TensorType:
        if self.combinator not in _COMBINATORS:
            known = ", ".join(map(str, _COMBINATORS))
            raise DTypeError(f"axisReduce is by {known}, not by {self.combinator}")
        check_combinator(self.combinator, x)
        return x

    def evaluate(self, x: Array) -> Array:
        raise UnsupportedError(
            f"axisReduce over {quoted(self.axis)} is run in a batch only: run the function that is declared as one"
        )

    def jvp(
        self, b: Emitter, ys: Sequence[Value], xs: Sequence[Value], dxs: Sequence[Value | None]
    ) -> tuple[Value | None, ...]:
        (y,), (x,), (dx,) = ys, xs, dxs
        if dx is None:
            return (None,)
        if self.combinator is not Combinator.ADD:
            dx = b.emit(StrongMultiply(), dx, self._share(b, y, x))
        return (self._sum(b, dx),)

    def vjp(
        self, b: Emitter, ys: Sequence[Value], xs: Sequence[Value], cts: Sequence[Value | None]
    ) -> tuple[Value | None, ...]:
        (y,), (x,), (ct,) = ys, xs, cts
        if ct is None:
            return (None,)
        total = self._sum(b, ct)
        if self.combinator is Combinator.ADD:
            return (total,)
        return (b.emit(StrongMultiply(), total, self._share(b, y, x)),)

    @property
    def axis_name(self) -> str:
        return self.axis

    def differs(self, batched: Sequence[bool], axis: str | None) -> bool:
        """Not among those that it combines."""
        return axis != self.axis and any(batched)

    def batch(self, b: Emitter, xs: Sequence[Value], batched: Sequence[bool]) -> Value:
        """Along another axis than its own, which stays."""
        return b.emit(self, *xs)

    def combined(self, b: Emitter, x: Value, extent: int, is_batched: bool) -> Value:
        if is_batched:
            return b.emit(Reduce(self.combinator, (0,)), x)
        if self.combinator is not Combinator.ADD:
            return x
        return b.emit(Multiply(), x, number(b, x, extent))

    def _sum(self, b: Emitter, x: Value) -> Value:
        return b.emit(AxisReduce(Combinator.ADD, self.axis), x)

    def _share(self, b: Emitter, y: Value, x: Value) -> Value:
        """∂y/∂x of an extremum y: one over the number of elements that attain it, where x does; NaN where y is."""
        attains = b.emit(Equal(), x, y)
        count = self._sum(b, b.emit(DataTypeCast(I64), attains))
        ties = b.emit(DataTypeCast(x.tensor.dtype), b.emit(Maximum(), count, number(b, count, 1)))
        share = b.emit(Divide(), nan_where_nan(b, y, 1), ties)
        return b.emit(Select(), share, nan_where_nan(b, y, 0), attains)
