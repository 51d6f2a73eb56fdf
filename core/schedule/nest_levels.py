"""The loops of a nest, and at which of them each value of its body stands."""

from __future__ import annotations

from collections.abc import Sequence

from ..compute.index_maps import is_injective
from ..ir import Instruction, Value
from ..kernels.bodies import factors_of
from ..lazy_dataclass import dataclass
from ..ops.combinator import Combinator
from ..ops.literal import Literal, literal_of, splat_literal
from ..ops.nest import Access, Affine, Bounds, Index, Loaded, Output, axes_in
from .ops import Loops, is_float_sum
from .summation import scattered_sums


@dataclass(frozen=True, slots=True)
class WrittenResult:
    """A result: the value of the body that is written, and the level at which its reduction begins, if it is one."""

    number: int
    value: Value
    indices: tuple[Index, ...]
    begins: int | None
    inside: bool
    """Whether the vector loop is one of those that are reduced."""
    varies: bool
    """Whether each lane gives something."""
    joins: bool
    """Whether what is stored is joined with what is there: elements come up again."""
    is_scattered: bool = False
    """Whether each number is added in memory, with what the sum there has too much beside it."""
    factors: tuple[Value, Value] | None = None
    """Of a product that only a sum uses: both are one instruction."""
    is_pair: bool = False
    """Whether the total is two numbers: what was summed, and what rounding has cut off from it."""


class NestLevels:
    """The loops of a nest, and inside of which of them each value of its body differs: a mask, bit 0 the outermost."""

    def __init__(
        self,
        instruction: Instruction,
        op: Loops,
        *,
        has_fma: bool,
        cuts: Sequence[tuple[int, int]] = (),
    ) -> None:
        self.op = op
        self.cuts = cuts
        """Where the parts of loops begin, which follow each other, but the first: (axis, point), in order."""
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
        self.indices: list[tuple[Index, ...]] = []
        """Those of each access; numbers that are known are not read."""
        self._find_masks()
        self.scattered = scattered_sums(instruction, op)
        self.targets = [self._target(number, has_fma) for number in range(len(op.outputs))]
        self.copied = self._find_copied()
        self.fused = {t.value for t in self.targets if t.factors is not None}

    @property
    def depth(self) -> int:
        return len(self.axes)

    def cuts_of(self, axis: int) -> tuple[int, ...]:
        """The points at which the parts of an axis begin, but the first."""
        return tuple([point for cut, point in self.cuts if cut == axis])

    def level(self, value: Value) -> int:
        return self.masks.get(value, 0).bit_length()

    def varies(self, value: Value) -> bool:
        """Whether it differs between lanes."""
        return self.vector >= 0 and bool(self.masks.get(value, 0) >> self.vector & 1)

    def moves(self, indices: Sequence[Index]) -> bool:
        """Whether an element at these indices is another one in each lane."""
        return self.vector >= 0 and bool(self.mask(indices) >> self.vector & 1)

    def mask(self, indices: Sequence[Index]) -> int:
        """The loops that decide what indices are."""
        found = 0
        for axis in axes_in(indices):
            found |= 1 << self.position[axis] if axis in self.position else 0
        for index in indices:
            if isinstance(index, Loaded):
                found |= self.masks.get(self.scalars[index.operand], 0)
        return found

    def _find_masks(self) -> None:
        for axis, value in enumerate(self.coordinates):
            self.masks[value] = 1 << self.position[axis] if axis in self.position else 0
        operands = self.instruction.operands
        for value, operand, access in zip(self.scalars, operands, self.op.accesses, strict=True):
            self.indices.append(self._known(access.indices))
            literal = read_literal(operand, access)
            if literal is not None:
                self.literals[value] = literal
            else:
                self.masks[value] = self.mask(self.indices[-1])
        for computed in self.computed:
            literal = literal_of(computed.result)
            if literal is not None:
                self.literals[computed.result] = literal
                continue
            mask = 0
            for operand in computed.operands:
                mask |= self.masks.get(operand, 0)
            self.masks[computed.result] = mask

    def _known(self, indices: Sequence[Index]) -> tuple[Index, ...]:
        """Indices, with a number in place of what is read of a literal."""
        found = list(indices)
        for place, index in enumerate(indices):
            literal = (
                self.literals.get(self.scalars[index.operand])
                if isinstance(index, Loaded)
                else None
            )
            if literal is not None:
                found[place] = Affine(int(literal.splat_value()))
        return tuple(found)

    def _target(self, number: int, has_fma: bool) -> WrittenResult:
        written, value = self.op.outputs[number], self.results[number]
        indices = self._known(written.indices)
        is_scattered = number in self.scattered
        mask = (1 << self.depth) - 1 if is_scattered else self.mask(indices)
        first = mask.bit_length()
        joins = written.combinator is not None and (
            written.init is not None or not self._writes_once(written, mask)
        )
        # copies of what is the same in all lanes count, where lanes are joined
        is_joined = written.combinator is not None and self.vector >= 0 and not self.moves(indices)
        varies = self.varies(value) or is_joined
        if written.combinator is None or first == self.depth:
            return WrittenResult(number, value, indices, None, False, varies, joins, is_scattered)
        is_sum = written.combinator is Combinator.ADD and self.level(value) == self.depth
        factors = factors_of(value) if has_fma and is_sum else None
        is_pair = self.op.compensated and is_float_sum(written) and bool(self.afresh)
        is_pair = is_pair and first <= self.afresh[0]
        inside = self.vector >= first
        return WrittenResult(
            number, value, indices, first, inside, varies, joins, False, factors, is_pair
        )

    def _writes_once(self, written: Output, mask: int) -> bool:
        """Whether no element is stored twice, reductions in registers being stored at their end."""
        kept = {axis for n, axis in enumerate(self.axes) if mask >> n & 1}
        return (
            written.bounds is not Bounds.CLIP
            and is_injective(written.indices, self.op.extents)
            and kept.issuperset(self.axes[: mask.bit_length()])
        )

    def _find_copied(self) -> set[Value]:
        """What is the same in all lanes, and is used where they differ."""
        found = set[Value]()
        for computed in self.computed:
            if self.varies(computed.result) and computed.result in self.uses:
                found.update(x for x in computed.operands if not self.varies(x))
        for target in self.targets:
            moves = self.moves(target.indices)
            if (
                target.inside
                or target.varies
                or (target.begins is None and moves)
                or target.factors
            ):
                values = target.factors or (target.value,)
                found.update(x for x in values if not self.varies(x))
        return {value for value in found if value not in self.literals}


def read_literal(operand: Value, access: Access) -> Literal | None:
    """The literal whose one element is read wherever the access goes; it needs no memory."""
    is_element = access.bounds in (Bounds.INSIDE, Bounds.CLIP) and operand.tensor.size > 0
    return splat_literal(operand) if is_element else None


def count_uses(instructions: Sequence[Instruction]) -> dict[Value, int]:
    """How often each value is used by what the results need."""
    uses: dict[Value, int] = {}
    for instruction in reversed(instructions):
        if instruction.op.is_terminator or any(result in uses for result in instruction.results):
            for operand in instruction.operands:
                uses[operand] = uses.get(operand, 0) + 1
    return uses
