"""Power series of values: the coefficients of what an instruction computes, from those of its operands.

A value that moves along x + t·v is a series y₀ + y₁·t + y₂·t² + …, and its coefficients are computed when they are
asked for, once: yₖ may need those of y itself that come before it (van der Hoeven's relaxed series).

| what an op is        | coefficient k of its result                                                      |
|----------------------|----------------------------------------------------------------------------------|
| a product u · v      | Σ uᵢ · vₖ₋ᵢ                                                                        |
| a quotient u / v     | (uₖ − Σ vᵢ · yₖ₋ᵢ) / v₀, i from 1                                                   |
| linear where it is   | its tangent rule, of coefficients k: the rule's factors do not move               |
| anything else        | coefficient k − 1 of y′ = its tangent rule, by k                                   |

The last needs no table of series: the rule is recorded once, on symbols, and its instructions are series by the same
table. Ops are the same where they have the same operands, so that the cosine in the rule of a sine is one whose own
rule has that sine.

Source: van der Hoeven 2002, Relax, but don't be too lazy; Griewank & Walther 2008, Evaluating Derivatives, §13.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import TypeAlias

from ..errors import UnsupportedError
from ..ir import Block, Builder, Op, Value
from ..lazy_dataclass import dataclass
from ..ops.arithmetic import Divide, Multiply, Negate, StrongMultiply
from ..ops.forms import is_product, is_quotient, is_step, is_sum
from ..ops.literal import constant
from ..types import TensorType, Type, scalar
from .rules import add, jvp_of

Coefficient: TypeAlias = "Value | None"
"""None is zero."""


class Series:
    """Coefficients of a value of `type`, the first ones `known`; `later` computes the others, one after the other."""

    __slots__ = ("known", "later", "type")

    def __init__(
        self,
        type: Type,
        known: Sequence[Coefficient],
        later: Callable[[int], Coefficient] | None = None,
    ) -> None:
        self.type, self.known, self.later = type, list(known), later

    def __getitem__(self, k: int) -> Coefficient:
        if self.later is None:
            return self.known[k] if k < len(self.known) else None
        while len(self.known) <= k:
            self.known.append(self.later(len(self.known)))
        return self.known[k]

    @property
    def is_constant(self) -> bool:
        """Whether the value does not move."""
        return self.later is None and all(x is None for x in self.known[1:])

    @property
    def value(self) -> Value:
        """Coefficient 0 of a value, which is never left out."""
        first = self[0]
        assert first is not None
        return first


@dataclass
class SeriesExpansion:
    """The series of values in the block of `b`."""

    b: Builder
    _given: dict[Value, Series] = field(default_factory=dict[Value, Series])
    _applied: dict[tuple[object, ...], tuple[Series, ...]] = field(
        default_factory=dict[tuple[object, ...], tuple[Series, ...]]
    )

    def given(self, value: Value, coefficients: Sequence[Coefficient] = ()) -> Series:
        """A value whose further coefficients are these."""
        if value not in self._given:
            self._given[value] = Series(value.type, [value, *coefficients])
        return self._given[value]

    def apply(
        self, op: Op, operands: Sequence[Series], results: Sequence[Value] = ()
    ) -> tuple[Series, ...]:
        """The series of `op`, whose `results` are there or are emitted.

        Raises: DifferentiationError, here or when a coefficient is asked for, where `op` has no derivative.
        """
        key = (op, *operands)
        if key not in self._applied:
            values = results or self.b.emit_many(op, [x.value for x in operands])
            if all(x.is_constant for x in operands):
                made = tuple(self.given(value) for value in values)
            else:
                made = self._moving(op, operands, values)
            self._applied[key] = made
            self._given.update(zip(values, made, strict=True))
        return self._applied[key]

    def _moving(
        self, op: Op, operands: Sequence[Series], values: Sequence[Value]
    ) -> tuple[Series, ...]:
        types = [x.type for x in operands]
        if not any(y.tensor.dtype.is_float for y in values) or is_step(op, types):
            return tuple(Series(y.type, [y]) for y in values)
        if is_product(op, types):
            y, (u, v) = values[0], operands
            return (Series(y.type, [y], lambda k: self._product(op, y.type, u, v, k)),)
        if is_quotient(op) and not operands[1].is_constant:
            return (self._quotient(values[0], *operands),)
        return _Rule(self, op, operands, values).results

    def _product(
        self, op: Op, type: Type, u: Series, v: Series, k: int, moving: int | None = None
    ) -> Coefficient:
        """Σ uᵢ · vₖ₋ᵢ, where the factor `moving` is a derivative; if none is, the one that is no value."""
        total: Coefficient = None
        for i in range(k + 1):
            factors = u[i], v[k - i]
            if factors[0] is None or factors[1] is None:
                continue
            which = (0 if i else 1) if moving is None else moving
            points = [Value(u.type), Value(v.type)]
            points[1 - which] = factors[1 - which] or points[1 - which]
            tangents: list[Coefficient] = [None, None]
            tangents[which] = factors[which]
            (term,) = jvp_of(self.b, op, [Value(type)], points, tangents)
            total = add(self.b, total, term)
        return total

    def _quotient(self, y: Value, u: Series, v: Series) -> Series:
        one = constant(self.b, scalar(y.tensor.dtype), 1)
        reciprocal = self.given(self.b.emit(Divide(), one, v.value))

        def later(k: int) -> Coefficient:
            rest = u[k]
            for i in range(1, k + 1):
                first, second = v[i], made[k - i]
                if first is not None and second is not None:
                    term = self.b.emit(Negate(), self.b.emit(StrongMultiply(), first, second))
                    rest = add(self.b, rest, term)
            return rest and self.b.emit(StrongMultiply(), rest, reciprocal.value)

        made = Series(y.type, [y], later)
        return made

    def linear(self, op: Op, operands: Sequence[Series], moves: Sequence[bool]) -> Series:
        """The series of `op`, linear in the operands that move with a derivative; the others are values.

        The first coefficient may be left out, as zero.
        """
        type = op.infer(*[x.type for x in operands])
        if not isinstance(type, TensorType):
            raise UnsupportedError(f"a derivative uses {op.name}, which has several results")
        if all(x.is_constant for x, moving in zip(operands, moves, strict=True) if not moving):
            return Series(type, [], lambda k: self._coefficientwise(op, type, operands, moves, k))
        if is_product(op, [x.type for x in operands]) and sum(moves) == 1:
            u, v = operands
            which = moves.index(True)
            return Series(type, [], lambda k: self._product(op, type, u, v, k, which))
        whole = [x if x[0] is not None else self._with_zero(x) for x in operands]
        return self.apply(op, whole)[0]

    def _coefficientwise(
        self, op: Op, type: TensorType, operands: Sequence[Series], moves: Sequence[bool], k: int
    ) -> Coefficient:
        given = [x[k] if moving else x.value for x, moving in zip(operands, moves, strict=True)]
        tangents = [x if moving else None for x, moving in zip(given, moves, strict=True)]
        if all(x is None for x in tangents):
            return None
        if is_sum(op, [x.type for x in operands]):
            points = [Value(x.type) for x in operands]
            return jvp_of(self.b, op, [Value(type)], points, tangents)[0]
        every = [x or self.zero(s.type) for x, s in zip(given, operands, strict=True)]
        return self.b.emit(op, *every)

    def _with_zero(self, x: Series) -> Series:
        return Series(x.type, [self.zero(x.type)], x.__getitem__)

    def zero(self, type: Type) -> Value:
        assert isinstance(type, TensorType)
        return constant(self.b, type, 0)

    def scaled(self, x: Value, by: int, op: Op) -> Value:
        """x times or by a number, as `op` says."""
        if by == 1:
            return x
        return self.b.emit(op, x, constant(self.b, scalar(x.tensor.dtype), by))


@dataclass
class _Rule:
    """The tangent rule of `op`, as series: recorded when the first coefficient is asked for."""

    at: SeriesExpansion
    op: Op
    operands: Sequence[Series]
    values: Sequence[Value]
    _slopes: list[Series | None] | None = None
    """The derivatives of the results; None are zero."""
    _is_linear: bool = False
    _linear: dict[int, Sequence[Coefficient]] = field(
        default_factory=dict[int, Sequence[Coefficient]]
    )

    def __post_init__(self) -> None:
        def series(position: int, y: Value) -> Series:
            return Series(y.type, [y], lambda k: self.coefficient(position, k))

        self.results = tuple(series(k, y) for k, y in enumerate(self.values))

    def coefficient(self, position: int, k: int) -> Coefficient:
        """Coefficient k, not 0, of a result."""
        if self._slopes is None:
            self._slopes = self._record()
        slope = self._slopes[position]
        if slope is None:
            return None
        if not self._is_linear:
            before = slope[k - 1]
            return before and self.at.scaled(before, k, Divide())
        if k not in self._linear:
            points = [x.value for x in self.operands]
            moved = [None if x.is_constant else x[k] for x in self.operands]
            self._linear[k] = jvp_of(self.at.b, self.op, self.values, points, moved)
        return self._linear[k][position]

    def _record(self) -> list[Series | None]:
        """The rule on symbols, its instructions as series; it is linear if none of its factors moves."""
        b = Builder(Block())
        known: dict[Value, Series] = {}
        slopes: dict[Value, Series] = {}
        xs: list[Value] = []
        dxs: list[Value | None] = []
        for x in self.operands:
            symbol, tangent = x.value, None
            if not x.is_constant:
                symbol, tangent = Value(x.type), Value(x.type)
                known[symbol], slopes[tangent] = x, self._slope(x)
            xs.append(symbol)
            dxs.append(tangent)
        ys = [Value(y.type) for y in self.values]
        known.update(zip(ys, self.results, strict=True))
        dys = jvp_of(b, self.op, ys, xs, dxs)
        self._is_linear = True
        for instruction in b.block.instructions:
            if instruction.regions:
                raise UnsupportedError(
                    f"the derivative of {self.op.name} has regions: it has no series"
                )
            moves = [x in slopes for x in instruction.operands]
            given = [
                slopes[x] if x in slopes else known[x] if x in known else self.at.given(x)
                for x in instruction.operands
            ]
            if any(moves):
                slopes[instruction.result] = self.at.linear(instruction.op, given, moves)
                pairs = zip(given, moves, strict=True)
                self._is_linear &= all(moving or x.is_constant for x, moving in pairs)
            else:
                found = self.at.apply(instruction.op, given)
                known.update(zip(instruction.results, found, strict=True))
        found_slopes = [None if dy is None else slopes.get(dy) or known[dy] for dy in dys]
        for instruction in b.block.instructions:
            instruction.drop_all_references()
        return found_slopes

    def _slope(self, x: Series) -> Series:
        """x′, whose coefficient k is that of x behind, k + 1 times."""

        def later(k: int) -> Coefficient:
            behind = x[k + 1]
            return behind and self.at.scaled(behind, k + 1, Multiply())

        return Series(x.type, [], later)
