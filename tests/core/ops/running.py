"""Runs what a rule has emitted, and differentiates it instruction by instruction."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nnkit.core.autodiff.rules import jvp_of, vjp_of
from nnkit.core.evaluate import evaluate_instruction
from nnkit.core.ir import Builder, Op, Value
from nnkit.core.types import F64, Array, DType, TensorType

from .samples import Sample


def run(b: Builder, given: Mapping[Value, Array], wanted: Sequence[Value]) -> list[Array]:
    """The values `wanted` of a block whose arguments are `given`."""
    values: dict[Value, Any] = dict(given)
    with np.errstate(all="ignore"):
        for instruction in b.block.instructions:
            operands = [values[operand] for operand in instruction.operands]
            values.update(
                zip(instruction.results, evaluate_instruction(instruction, operands), strict=True)
            )
    return [values[value] for value in wanted]


def arguments(b: Builder, types: Sequence[TensorType]) -> list[Value]:
    """New arguments of the block."""
    return [b.argument(type) for type in types]


def result_of(op: Op, types: Sequence[TensorType], operands: Sequence[Array]) -> Array:
    """What the op gives, rounded to its type as the evaluator does."""
    b = Builder()
    xs = arguments(b, types)
    y = b.emit(op, *xs)
    return run(b, dict(zip(xs, operands, strict=True)), [y])[0]


def pushed_forward(
    b: Builder, tangents: Mapping[Value, Value], wanted: Sequence[Value]
) -> list[Value | None]:
    """Tangents of `wanted`, by the forward rule of each instruction of the block in turn."""
    known: dict[Value, Value | None] = dict(tangents)
    for instruction in list(b.block.instructions):
        dxs = [known.get(operand) for operand in instruction.operands]
        dys = jvp_of(b, instruction.op, instruction.results, instruction.operands, dxs)
        known.update(zip(instruction.results, dys, strict=True))
    return [known.get(value) for value in wanted]


class Tangents:
    """A sample with random tangents of its operands of type `dtype`, and a random cotangent of its result."""

    def __init__(self, sample: Sample, dtype: DType = F64) -> None:
        rng = np.random.default_rng(zlib.crc32(str(sample).encode()) + 1)
        self.sample, self.b = sample, Builder()
        self.xs = arguments(self.b, sample.types)
        self.active = [x for x in self.xs if x.tensor.dtype == dtype]
        self.dxs = dict(zip(self.active, self._fresh(), strict=True))
        self.ddxs = dict(zip(self.active, self._fresh(), strict=True))
        self.y = self.b.emit(sample.op, *self.xs)
        self.ct = self.b.argument(self.y.tensor)
        given = zip(self.xs, sample.operands(), strict=True)
        random = (*self.dxs.values(), *self.ddxs.values(), self.ct)
        self.given: dict[Value, Array] = dict(given) | {
            value: rng.uniform(-1, 1, value.tensor.shape).astype(value.tensor.dtype.numpy)
            for value in random
        }

    def _fresh(self) -> list[Value]:
        return [self.b.argument(x.tensor) for x in self.active]

    def rounded_to(self, other: Tangents) -> None:
        """Take what `other` is given, of the same sample in another float type, as its own."""
        for mine, given in zip(self.given, other.given.values(), strict=True):
            self.given[mine] = np.asarray(given).astype(mine.tensor.dtype.numpy)

    def forward(self) -> Value | None:
        dxs = [self.dxs.get(x) for x in self.xs]
        [dy] = jvp_of(self.b, self.sample.op, [self.y], self.xs, dxs)
        return dy

    def reverse(self) -> list[Value | None]:
        cts = vjp_of(self.b, self.sample.op, [self.y], self.xs, [self.ct])
        return [ct for x, ct in zip(self.xs, cts, strict=True) if x in self.active]

    def difference(self, wanted: list[Value], along: dict[Value, Value]) -> list[Array]:
        """(f(x + h dx) − f(x − h dx)) / 2h of each value wanted, to the fourth order in h."""
        step, sides = 2e-4, []
        for factor in (1, -1, 2, -2):
            moved = {x: self.given[x] + factor * step * self.given[dx] for x, dx in along.items()}
            sides.append(run(self.b, self.given | moved, wanted))
        return [
            (8 * _change(near, far) - _change(further, furthest)) / (12 * step)
            for near, far, further, furthest in zip(*sides, strict=True)
        ]

    def values(self, wanted: list[Value | None], like: list[Value]) -> list[Array]:
        """The wanted values, zeros for None."""
        found = iter(run(self.b, self.given, [value for value in wanted if value is not None]))
        pairs = zip(wanted, like, strict=True)
        return [np.zeros(x.tensor.shape) if v is None else next(found) for v, x in pairs]


def _change(x: Array, y: Array) -> Array:
    """x − y; an infinity that stays, such as the maximum of nothing, does not change."""
    return np.subtract(x, y, out=np.zeros_like(x), where=x != y)


def gradient(op: Op, *values: float) -> list[float]:
    """The derivatives of an op of scalars, by its reverse rule."""
    program = Tangents(Sample(op, (TensorType((), F64),) * len(values), values))
    program.given[program.ct] = np.asarray(1.0)
    return [ct.item() for ct in program.values(program.reverse(), program.active)]
