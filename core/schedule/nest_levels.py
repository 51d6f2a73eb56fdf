"""The loops of a nest, and at which of them each value of its body stands."""

from __future__ import annotations

from collections.abc import Sequence

from ..ir import Instruction, Value
from ..kernels.bodies import factors_of
from ..lazy_dataclass import dataclass
from ..ops.combinator import Combinator
from ..ops.literal import Literal, literal_of, splat_literal
from ..ops.nest import Index, axes_in
from .ops import Loops, is_float_sum


@dataclass(frozen=True, slots=True)
class WrittenResult:
    """A result: the value of the body that is written, and the level at which its reduction begins, if it is one."""

    number: int
    value: Value
    begins: int | None
    inside: bool
    """Whether the vector loop is one of those that are reduced."""
    factors: tuple[Value, Value] | None = None
    """Of a product that only a sum uses: both are one instruction."""
    is_pair: bool = False
    """Whether the total is two numbers: what was summed, and what rounding has cut off from it."""


class NestLevels:
    """The loops of a nest, and inside of which of them each value of its body differs: a mask, bit 0 the outermost."""

    def __init__(self, instruction: Instruction, op: Loops, *, has_fma: bool) -> None:
        self.op = op
        self.instruction = instruction
        blocks = op.blocks or (0,) * len(op.order)
        kept = [n for n, axis in enumerate(op.order) if op.extents[axis] > 1]
        self.axes = tuple([op.order[n] for n in kept])
        self.blocks = tuple([blocks[n] for n in kept])
        in_blocks = [n for n, block in enumerate(self.blocks) if block]
        self.afresh = [n for n in in_blocks if self.axes[n] == self.axes[in_blocks[-1]]]
        """The loops over blocks in which totals start afresh: the innermost one, and those around it over its axis."""
        # of an axis in blocks, that of the loop inside of a block
        self.position = {axis: position for position, axis in enumerate(self.axes)}
        self.vector = self.position.get(op.vector, -1) if op.lanes > 1 else -1
        body = instruction.regions[0].entry
        rank = len(op.extents)
        self.coordinates, self.scalars = body.arguments[:rank], body.arguments[rank:]
        self.computed, self.results = body.instructions[:-1], body.terminator.operands
        self.uses = count_uses(body.instructions)
        self.literals: dict[Value, Literal] = {}
        self.masks: dict[Value, int] = {}
        self._find_masks()
        self.targets = [self._target(number, has_fma) for number in range(len(op.outputs))]
        self.copied = self._find_copied()
        self.fused = {t.value for t in self.targets if t.factors is not None}

    @property
    def depth(self) -> int:
        return len(self.axes)

    def level(self, value: Value) -> int:
        return self.masks.get(value, 0).bit_length()

    def varies(self, value: Value) -> bool:
        """Whether it differs between lanes."""
        return self.vector >= 0 and bool(self.masks.get(value, 0) >> self.vector & 1)

    def moves(self, indices: Sequence[Index]) -> bool:
        """Whether an element at these indices is another one in each lane."""
        return self.vector >= 0 and self.op.vector in axes_in(indices)

    def _mask(self, indices: Sequence[Index]) -> int:
        return sum(1 << self.position[axis] for axis in axes_in(indices) if axis in self.position)

    def _find_masks(self) -> None:
        for axis, value in enumerate(self.coordinates):
            self.masks[value] = 1 << self.position[axis] if axis in self.position else 0
        operands = self.instruction.operands
        for value, operand, access in zip(self.scalars, operands, self.op.accesses, strict=True):
            literal = splat_literal(operand) if operand.tensor.size else None
            if literal is not None:
                self.literals[value] = literal
            else:
                self.masks[value] = self._mask(access.indices)
        for computed in self.computed:
            literal = literal_of(computed.result)
            if literal is not None:
                self.literals[computed.result] = literal
                continue
            mask = 0
            for operand in computed.operands:
                mask |= self.masks.get(operand, 0)
            self.masks[computed.result] = mask

    def _target(self, number: int, has_fma: bool) -> WrittenResult:
        written, value = self.op.outputs[number], self.results[number]
        first = self._mask(written.indices).bit_length()
        if written.combinator is None or first == self.depth:
            return WrittenResult(number, value, None, False)
        is_sum = written.combinator is Combinator.ADD and self.level(value) == self.depth
        factors = factors_of(value) if has_fma and is_sum else None
        is_pair = self.op.compensated and is_float_sum(written) and bool(self.afresh)
        is_pair = is_pair and first <= self.afresh[0]
        return WrittenResult(number, value, first, self.vector >= first, factors, is_pair)

    def _find_copied(self) -> set[Value]:
        """What is the same in all lanes, and is used where they differ."""
        found = set[Value]()
        for computed in self.computed:
            if self.varies(computed.result) and computed.result in self.uses:
                found.update(x for x in computed.operands if not self.varies(x))
        for target in self.targets:
            moves = self.moves(self.op.outputs[target.number].indices)
            if target.inside or (target.begins is None and moves) or target.factors:
                values = target.factors or (target.value,)
                found.update(x for x in values if not self.varies(x))
        return {value for value in found if value not in self.literals}


def count_uses(instructions: Sequence[Instruction]) -> dict[Value, int]:
    """How often each value is used by what the results need."""
    uses: dict[Value, int] = {}
    for instruction in reversed(instructions):
        if instruction.op.is_terminator or any(result in uses for result in instruction.results):
            for operand in instruction.operands:
                uses[operand] = uses.get(operand, 0) + 1
    return uses
