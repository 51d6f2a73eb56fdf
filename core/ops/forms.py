"""The forms of differentiation: an op gives the least, `core.autodiff.rules` derives the rest.

| form          | the op gives                         | derived             |
|---------------|--------------------------------------|---------------------|
| `Elementwise` | `partials`                           | infer, jvp, vjp, nest |
| `Linear`      | `transpose_rule`                     | jvp, vjp            |
| `Bilinear`    | `transpose_rule`                     | jvp, vjp            |
| explicit      | `jvp` and `vjp` of `Op` itself       | –                   |
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any, ClassVar, TypeAlias

from ..errors import DTypeError, ShapeError
from ..ir.graph import Emitter, Op, Value
from ..types import DType, Kind, Shape, TensorType, broadcast_shapes, same_dtype
from .nest import Access, Output, broadcast_access, build_nest, identity_access

Partial: TypeAlias = "Value | float | None"
"""∂y/∂x: a value, a number, or None for zero."""


class Elementwise(Op):
    """A scalar function mapped over tensors that broadcast to one shape (NumPy's rule).

    `accepts` says which kinds of elements the function has; all operands share one element type.
    """

    accepts: ClassVar[tuple[Kind, ...]] = ("float", "integer")
    verb: ClassVar[str] = ""
    """What a message says that it does to its operands; its name, unless that is no verb."""
    broadcasts: ClassVar[bool] = True
    """Whether an operand may have fewer elements than the result."""

    @abc.abstractmethod
    def partials(self, b: Emitter, y: Value, *xs: Any, **_: Any) -> tuple[Partial, ...]:
        """∂y/∂xᵢ elementwise, for every operand.

        Where y is NaN so are they, but for the coefficient of an operand that the function is linear in, and
        for steps.  They may be infinite or 0: products with them are strong (`StrongMultiply`), so that
        0 · ∞ needs no guard.  A choice that has a number among its branches becomes a choice between products.
        """

    def result_dtype(self, *dtypes: DType) -> DType:
        """Element type of the result; the operands' own unless overridden."""
        return dtypes[0]

    def infer(self, *xs: TensorType) -> TensorType:
        verb = self.verb or self.name
        dtype = same_dtype(verb, xs)
        check_kind(self.name, dtype, self.accepts)
        first = xs[0]
        shape = first.shape if xs.count(first) == len(xs) else broadcast_operands(verb, xs)
        result = self.result_dtype(*[x.dtype for x in xs])
        # the type itself where it is the same: most are, and a type is checked when it is made
        return first if result is dtype and shape is first.shape else TensorType(shape, result)

    def nest(self, b: Emitter, *xs: Value) -> Value:
        inferred = self.infer(*(x.tensor for x in xs))
        reads = [(x, broadcast_access(x.tensor.shape, inferred.shape)) for x in xs]
        output = Output(inferred, identity_access(inferred.shape))
        return build_nest(
            b,
            inferred.shape,
            reads,
            [output],
            lambda inner, _, scalars: [inner.emit(self, *scalars)],
        )[0]


class Linear(Op):
    """Linear in the operands that `linear_operands` names (all by default): its tangent is itself."""

    linear_operands: ClassVar[tuple[int, ...] | None] = None

    @abc.abstractmethod
    def transpose_rule(
        self, b: Emitter, xs: Sequence[Value], ct: Value
    ) -> tuple[Value | None, ...]:
        """The transposed map: one cotangent per operand, None for those it is not linear in.

        `xs` may be used for their types, and for the values of operands it is not linear in.
        """


class Bilinear(Op):
    """Linear in each of two operands: its tangent is the product rule."""

    @abc.abstractmethod
    def transpose_rule(
        self, b: Emitter, xs: Sequence[Value], ct: Value
    ) -> tuple[Value | None, Value | None]:
        """Both cotangents; each uses the other operand."""


def broadcast_operands(name: str, xs: Sequence[TensorType]) -> Shape:
    """The common shape.  Raises: ShapeError naming the op and both operands where extents differ."""
    try:
        return broadcast_shapes([x.shape for x in xs])
    except ShapeError as error:
        reason = str(error).partition(": ")[2]
        operands = " and ".join(x.words for x in xs)
        raise ShapeError(f"cannot {name} {operands}: {reason}") from None


def check_kind(name: str, dtype: DType, accepts: Sequence[Kind]) -> None:
    """Raises: DTypeError when `dtype` is of a kind that op `name` does not take."""
    if dtype.kind not in accepts:
        wanted = " or ".join(accepts)
        raise DTypeError(f"{name} takes {wanted} elements, not {dtype}")


__all__ = ["Access", "Bilinear", "Elementwise", "Linear", "Partial", "check_kind"]
