"""The forms of differentiation: an op gives the least, `core.autodiff.rules` derives the rest.

| form          | the op gives                         | derived             |
|---------------|--------------------------------------|---------------------|
| `Elementwise` | `partials`, `cost`                   | infer, jvp, vjp, nest |
| `Linear`      | `transpose_rule`                     | jvp, vjp            |
| `Bilinear`    | `transpose_rule`                     | jvp, vjp            |
| explicit      | `jvp` and `vjp` of `Op` itself       | –                   |
"""

from __future__ import annotations

import abc
import itertools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final, TypeAlias

from ..errors import DTypeError, RankError, ShapeError
from ..ir import Builder
from ..ir.instruction import Emitter, Instruction, Op, Pure, Value
from ..types import (
    DType,
    IntegerRange,
    Kind,
    KnownRanges,
    Shape,
    TensorType,
    Type,
    broadcast_shapes,
    same_dtype,
)
from .nest import Access, Output, broadcast_access, build_nest, identity_access

Partial: TypeAlias = "Value | float | None"
"""∂y/∂x: a value, a number, or None for zero."""

ADDITION: Final = 1
"""The unit of cost: an addition of a vector whose operands are in registers."""

DIVISION: Final = 5
"""What divides, or takes a root: such instructions take about as long as so many additions of a vector."""

POLYNOMIAL: Final = 15
"""A function by one polynomial, with what brings its operand into range: exp of f32 has 15 instructions with
AVX-512."""

SEVERAL_POLYNOMIALS: Final = 40
"""A function by two or three, of which it selects one."""


class Pointwise(Pure):
    """The form of what computes each element by itself, of tensors or of the scalars in a nest's body alike.

    Each states its `cost`.
    """

    required: ClassVar[tuple[str, ...]] = (*Pure.required, "cost")

    def nest(self, b: Emitter, *xs: Value) -> Value:
        types = [x.tensor for x in xs]
        result = self.infer(*types)
        assert isinstance(result, TensorType)
        shape = result.shape
        reads = [
            (x, broadcast_access(type.shape, shape)) for x, type in zip(xs, types, strict=True)
        ]
        output = Output(result, identity_access(shape))
        return build_nest(b, shape, reads, [output], lambda at, _, read: [at.emit(self, *read)])[0]

    def flops(self, instruction: Instruction) -> int:
        return instruction.result.tensor.size * self.cost


class Elementwise(Pointwise):
    """A scalar function mapped over tensors that broadcast to one shape (NumPy's rule).

    `accepts` says which kinds of elements the function has; all operands share one element type.
    """

    accepts: ClassVar[tuple[Kind, ...]] = ("float", "integer")
    verb: ClassVar[str] = ""
    """What a message says that it does to its operands; its name, unless that is no verb."""
    broadcasts: ClassVar[bool] = True
    """Whether an operand may have fewer elements than the result."""
    is_quotient: ClassVar[bool] = False
    """Whether it is the first operand divided by the second, where they are floats."""
    of_integers: ClassVar[Callable[..., int] | None] = None
    """The function of Python's integers, if it rises or falls along each of them, so that its extremes are where these
    have theirs."""

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

    def integer_range(self, ranges: KnownRanges) -> IntegerRange | None:
        known = [x for x in ranges if x is not None]
        function = type(self).of_integers
        if function is None or len(known) < len(ranges):
            return None
        found = [int(function(*point)) for point in itertools.product(*known)]
        return min(found), max(found)

    def repeated(self, batched: Sequence[bool]) -> Sequence[bool]:
        return batched if self.broadcasts else [True] * len(batched)

    def infer(self, *xs: TensorType) -> TensorType:
        verb = self.verb or self.name
        dtype = same_dtype(verb, xs)
        check_kind(self.name, xs[0], self.accepts)
        first = xs[0]
        shape = first.shape if xs.count(first) == len(xs) else broadcast_operands(verb, xs)
        result = self.result_dtype(*[x.dtype for x in xs])
        # the type itself where it is the same: most are, and a type is checked when it is made
        return first if result is dtype and shape is first.shape else TensorType(shape, result)


class Linear(Pure):
    """Linear in the operands that `linear_operands` names (all by default): its tangent is itself."""

    linear_operands: ClassVar[tuple[int, ...] | None] = None

    def integer_range(self, ranges: KnownRanges) -> IntegerRange | None:
        known = [x for x in ranges if x is not None]
        if not self.is_moved or not known or len(known) < len(ranges):
            return None
        return min(least for least, _ in known), max(greatest for _, greatest in known)

    @abc.abstractmethod
    def transpose_rule(
        self, b: Emitter, xs: Sequence[Value], ct: Value
    ) -> tuple[Value | None, ...]:
        """The transposed map: one cotangent per operand, None for those it is not linear in.

        `xs` may be used for their types, and for the values of operands it is not linear in.
        """


class Bilinear(Pure):
    """Linear in each of two operands: its tangent is the product rule."""

    @abc.abstractmethod
    def transpose_rule(
        self, b: Emitter, xs: Sequence[Value], ct: Value
    ) -> tuple[Value | None, Value | None]:
        """Both cotangents; each uses the other operand."""


def is_product(op: Op, types: Sequence[Type]) -> bool:
    """Whether it is linear in each of two operands of these types: each is the factor of the other's tangent."""
    if isinstance(op, Bilinear):
        return True
    return len(types) == 2 and _partials_say(op, types, lambda found, xs: found == (xs[1], xs[0]))


def is_sum(op: Op, types: Sequence[Type]) -> bool:
    """Whether its tangent is a sum of those of operands of these types, times numbers."""
    return _partials_say(op, types, lambda found, _: not any(isinstance(x, Value) for x in found))


def is_step(op: Op, types: Sequence[Type]) -> bool:
    """Whether it has no derivative but zero by operands of these types."""
    return _partials_say(op, types, lambda found, _: all(x is None for x in found))


def is_quotient(op: Op) -> bool:
    """Whether it is the first operand divided by the second, where they are floats."""
    return isinstance(op, Elementwise) and op.is_quotient


def _partials_say(
    op: Op,
    types: Sequence[Type],
    holds: Callable[[tuple[Partial, ...], Sequence[Value]], bool],
) -> bool:
    """Whether it `holds` for the partials of `op` by values of which no more than the types is known."""
    if not isinstance(op, Elementwise) or op.not_differentiable:
        return False
    tensors = [type for type in types if isinstance(type, TensorType)]
    xs = [Value(type) for type in tensors]
    return holds(op.partials(Builder(), Value(op.infer(*tensors)), *xs), xs)


def broadcast_operands(name: str, xs: Sequence[TensorType]) -> Shape:
    """The common shape.  Raises: ShapeError naming the op and both operands where extents differ."""
    try:
        return broadcast_shapes([x.shape for x in xs])
    except ShapeError as error:
        reason = str(error).partition(": ")[2]
        operands = " and ".join(x.words for x in xs)
        raise ShapeError(f"cannot {name} {operands}: {reason}") from None


def check_kind(name: str, x: TensorType, accepts: Sequence[Kind]) -> None:
    """Raises: DTypeError when the elements of `x` are of a kind that op `name` does not take."""
    if x.dtype.kind not in accepts:
        wanted = " or ".join(accepts)
        raise DTypeError(f"{name} takes {wanted} elements, not {x.words}")


def check_axis(name: str, axis: int, x: TensorType) -> None:
    """Raises: RankError when `x` has no such axis."""
    if not 0 <= axis < x.rank:
        raise RankError(
            f"{name}: axis {axis} is out of range for {x.words}, which has rank {x.rank}"
        )


__all__ = ["Access", "Bilinear", "Elementwise", "Linear", "Partial", "check_axis", "check_kind"]
