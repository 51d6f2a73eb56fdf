"""Plans a nest: assigns address computation, loads, scalar ops and stores to loop levels, before any code is emitted.

1. Every scalar of the body belongs to the level of the deepest loop that it depends on.
2. Addresses are made level by level (`addresses`).
3. What does not vary along the vector axis stays scalar, and is copied to the lanes once, where it is made.
4. A result that combines along inner loops is kept in registers over these; one whose elements come up
   again in an outer loop is joined in memory, which has been filled with the identity.
5. Inside of the innermost loop over blocks, totals start afresh; what a block came to is joined behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from ...core.compute.contracted import needs_fill
from ...core.compute.index_maps import axes_of, is_injective
from ...core.ir.instruction import Instruction, Value
from ...core.lazy_dataclass import dataclass
from ...core.ops.arithmetic import Multiply, Square
from ...core.ops.combinator import Combinator
from ...core.ops.literal import Literal, literal_of, splat_literal
from ...core.ops.nest import Access, Bounds, Loaded, Output
from ...core.schedule.nest_levels import count_uses
from ...core.schedule.ops import (
    Loops,
    compensated_outputs,
    is_float_sum,
    is_folded,
)
from .addresses import AddressPlanner, Levels, level
from .elements import element, splat_element
from .steps import (
    Address,
    CheckSite,
    Compute,
    FetchElement,
    LoopShape,
    MakeCoordinate,
    OutputPlan,
    ReadElement,
    SplatLanes,
    Step,
    WriteElement,
)
from .writer import Register


@dataclass(frozen=True, slots=True)
class NestPlan:
    """A nest ready to be written.  `steps[n]` runs inside of n loops; `axes[n]` is the axis of loop n."""

    axes: tuple[int, ...]
    loops: tuple[LoopShape, ...]
    steps: tuple[tuple[Step, ...], ...]
    targets: tuple[OutputPlan, ...]
    constants: dict[Value, Register]
    filled: tuple[int, ...]
    """Results whose elements are set to the combinator's identity before the loops."""
    afresh: tuple[int, ...] = ()
    """The loops over blocks in which totals start afresh: the innermost one, and those around it over its axis."""
    corrected: tuple[int, ...] = ()
    """Sums over rows with what rounding cut off from them beside them in memory."""

    begun: dict[int, list[OutputPlan]] = field(default_factory=dict[int, list[OutputPlan]])
    """The reductions that begin at a level."""

    def inner(self, level: int) -> LoopShape:
        """The loop over points of the blocks that the loop at `level` is over."""
        return self.loops[max(n for n, axis in enumerate(self.axes) if axis == self.axes[level])]

    @property
    def lane_counts(self) -> tuple[int, ...]:
        """The numbers of lanes that the vector loop uses; none without one."""
        return next((loop.lane_counts for loop in self.loops if loop.is_vector), ())

    @property
    def vector_level(self) -> int:
        """The level inside the vector loop; beyond the deepest without one."""
        inside = (n for n, loop in enumerate(self.loops, 1) if loop.is_vector)
        return next(inside, len(self.loops) + 1)


def plan_nest(instruction: Instruction[Loops], sites: list[CheckSite]) -> NestPlan:
    """The plan of one `Loops`; its checks are appended to `sites`, and numbered from 1 by their place."""
    op = instruction.op
    own = enumerate(op.own_outputs)
    filled = tuple(number for number, written in own if needs_fill(number, written, op))
    if 0 in op.extents:
        return NestPlan((), (), ((),), (), {}, filled)
    return _Planner(instruction, op, sites).plan(filled)


class _Planner:
    """Collects the steps of one nest."""

    def __init__(self, instruction: Instruction, op: Loops, sites: list[CheckSite]) -> None:
        self.op = op
        self.instruction = instruction
        self.operands = instruction.operands
        body = instruction.regions[0].entry
        rank = len(op.extents)
        self.coordinates, self.scalars = body.arguments[:rank], body.arguments[rank:]
        self.instructions, self.results = body.instructions[:-1], body.terminator.operands
        self.levels = Levels(op)
        self.addresses = AddressPlanner(op, self.levels, instruction.location, sites)
        self.masks: dict[Value, int] = {}
        self.constants: dict[Value, Register] = {}
        self.copied: set[Value] = set()
        self.uses = count_uses(body.instructions)
        self.indexing = _indexing(op)
        blocks = [n for n, block in enumerate(self.levels.blocks) if block]
        axes = self.levels.axes
        self.afresh = tuple(n for n in blocks if axes[n] == axes[blocks[-1]])
        self.corrected = compensated_outputs(op)

    def plan(self, filled: tuple[int, ...]) -> NestPlan:
        for axis, value in enumerate(self.coordinates):
            self._plan_coordinate(axis, value)
        for number, (value, access) in enumerate(zip(self.scalars, self.op.accesses, strict=True)):
            self._plan_read(number, value, access)
        for instruction in self.instructions:
            self._plan_mask(instruction)
        fused = self._fused()
        for instruction in self.instructions:
            if instruction.result in self.masks and instruction.result not in fused:
                self._plan_compute(instruction)
        targets = tuple(
            self._plan_result(number, value, value in fused)
            for number, value in enumerate(self.results)
        )
        for written, number, target in zip(
            self.op.outputs, range(len(targets)), targets, strict=True
        ):
            if target.begins is None:
                mask = self._written_mask(written) | self._mask(target.value)
                self.levels.put(mask, WriteElement(number))
                self._plan_fetch(len(self.op.accesses) + number, target.address, mask)
        steps = (self._with_copies(steps, level) for level, steps in enumerate(self.levels.steps))
        shapes = self._loop_shapes(targets)
        begun: dict[int, list[OutputPlan]] = {}
        for target in targets:
            if target.begins is not None:
                begun.setdefault(target.begins, []).append(target)
        return NestPlan(
            self.levels.axes,
            shapes,
            tuple(steps),
            targets,
            self.constants,
            filled,
            self.afresh,
            self.corrected,
            begun,
        )

    # The body.

    def _mask(self, value: Value) -> int:
        return self.masks.get(value, 0)

    def _plan_coordinate(self, axis: int, value: Value) -> None:
        mask = self.levels.mask([axis])
        if not mask:
            self.constants[value] = element(value.tensor.dtype, 0)
        elif value in self.uses:
            self.levels.put(mask, MakeCoordinate(value, axis))
        self.masks[value] = mask

    def _plan_read(self, number: int, value: Value, access: Access) -> None:
        literal = splat_read(self.operands[number], access)
        if literal is not None:
            self.constants[value] = splat_element(literal)
            is_index = value.tensor.dtype.is_integer
            self.addresses.loaded.append(int(literal.splat_value()) if is_index else 0)
            return
        type = self.operands[number].tensor
        base = 1 + self.operands.index(self.operands[number])
        address, mask = self.addresses.plan(base, type, access.indices, access.bounds)
        self.masks[value] = mask
        self.addresses.loaded.append((value, mask))
        if value in self.uses or number in self.indexing:
            self.levels.put(mask, ReadElement(value, address))
            self._plan_fetch(number, address, mask)

    def _plan_fetch(self, number: int, address: Address, mask: int) -> None:
        """Fetch what the vector loop comes to later of an operand, or a result, if that is to be."""
        ahead = dict(self.op.fetch).get(number)
        if ahead is not None:
            self.levels.put(mask, FetchElement(address, ahead * address.dtype.bytes))

    def _plan_mask(self, instruction: Instruction) -> None:
        """What the result depends on, if anything needs it."""
        result = instruction.result
        if result not in self.uses:
            return
        literal = literal_of(result)
        if literal is not None:
            self.constants[result] = splat_element(literal)
            return
        mask = 0
        for operand in instruction.operands:
            mask |= self._mask(operand)
        self.masks[result] = mask

    def _plan_compute(self, instruction: Instruction) -> None:
        mask = self._mask(instruction.result)
        if self.levels.varies(mask):
            self._copy_uniform(instruction.operands)
        self.levels.put(mask, Compute(instruction))

    def _fused(self) -> frozenset[Value]:
        """Products that only a sum in registers uses: both are one `multiply_add`."""
        innermost = len(self.levels.axes)
        return frozenset(
            value
            for value, written in zip(self.results, self.op.outputs, strict=True)
            if isinstance(value.op, Multiply | Square)
            and value.tensor.dtype.name in ("f32", "f64")
            and written.combinator is Combinator.ADD
            and self.uses[value] == 1
            and self._begins(written) is not None
            and level(self._mask(value)) == innermost
        )

    def _copy_uniform(self, values: Sequence[Value]) -> None:
        """Copy uniform values to all lanes where vector steps read them."""
        self.copied.update(
            value
            for value in values
            if value not in self.constants and not self.levels.varies(self._mask(value))
        )

    def _with_copies(self, steps: Sequence[Step], level: int) -> tuple[Step, ...]:
        result: list[Step] = []
        for step in steps:
            result.append(step)
            made = _made_by(step)
            if made is not None and made in self.copied:
                result.append(SplatLanes(made, level))
        return tuple(result)

    # Results.

    def _written_mask(self, written: Output) -> int:
        """The loops that decide which element is written."""
        mask = self.levels.mask(axes_of(written.indices, self.op.extents))
        for index in written.indices:
            if isinstance(index, Loaded):
                mask |= self._mask(self.scalars[index.operand])
        return mask

    def _begins(self, written: Output) -> int | None:
        """The level where a reduction in registers begins; None when nothing is reduced inside it."""
        first = level(self._written_mask(written))
        if written.combinator is None or first == len(self.levels.axes):
            return None
        return first

    def _plan_result(self, number: int, value: Value, is_fused: bool) -> OutputPlan:
        written = self.op.outputs[number]
        base = 1 + len(self.op.accesses) + number
        address, _ = self.addresses.plan(base, written.type, written.indices, written.bounds)
        begins = self._begins(written)
        inside = begins is not None and self.levels.vector >= begins
        joins = written.combinator is not None and (
            written.init is not None or not self._writes_once(written)
        )
        factors = None
        if is_fused and value.producer is not None:
            factors = value.producer.operands[0], value.producer.operands[-1]
        is_reduced = written.combinator is not None and self.levels.vector >= 0
        varies = self.levels.varies(self._mask(value)) or (is_reduced and not address.varies)
        if inside or varies or (begins is None and address.varies):
            self._copy_uniform(factors or [value])
        correction: Address | None = None
        is_pair = False
        if number in self.corrected and not is_folded(self.op.order, self.op.blocks):
            base += len(self.op.outputs) - number + self.corrected.index(number)
            correction, _ = self.addresses.plan(base, written.type, written.indices, written.bounds)
        elif self.op.compensated and self.afresh and begins is not None:
            is_pair = is_float_sum(written) and begins <= self.afresh[0]
        return OutputPlan(
            value,
            varies,
            address,
            written.combinator,
            joins,
            begins,
            inside,
            factors,
            is_pair,
            correction,
        )

    def _writes_once(self, written: Output) -> bool:
        """Whether no element is stored twice, reductions in registers being stored at their end."""
        mask = self._written_mask(written)
        axes = self.levels.axes
        kept = {axis for n, axis in enumerate(axes) if mask >> n & 1}
        reduced_outside = any(axis not in kept for axis in axes[: level(mask)])
        return (
            written.bounds is not Bounds.CLIP
            and is_injective(written.indices, self.op.extents)
            and not reduced_outside
        )

    def _loop_shapes(self, targets: Sequence[OutputPlan]) -> tuple[LoopShape, ...]:
        """Lanes that are reduced are all kept to the end; else the tail is as narrow as can be."""
        all_lanes = any(target.inside for target in targets)
        reduces = any(target.begins is not None for target in targets)
        shapes: list[LoopShape] = []
        for position, axis in enumerate(self.levels.axes):
            extent, is_vector = self.op.extents[axis], position == self.levels.vector
            if self.levels.blocks[position]:
                shapes.append(LoopShape(extent, block=self.levels.blocks[position]))
                continue
            lanes = self.op.lanes if is_vector else 1
            is_innermost = position == len(self.levels.axes) - 1
            copies = self.op.accumulators if is_innermost and reduces else 1
            shapes.append(_shape(extent, lanes, copies, is_vector, all_lanes))
        return tuple(shapes)


def _shape(extent: int, lanes: int, copies: int, is_vector: bool, all_lanes: bool) -> LoopShape:
    narrow = 1 << max(extent % lanes - 1, 0).bit_length()
    tail_lanes = lanes if all_lanes else narrow
    return LoopShape(extent, lanes, tail_lanes, copies, is_vector)


def splat_read(operand: Value, access: Access) -> Literal | None:
    """The literal whose one element is read wherever the access goes; it needs no memory."""
    is_element = access.bounds in (Bounds.INSIDE, Bounds.CLIP) and operand.tensor.size > 0
    return splat_literal(operand) if is_element else None


def _indexing(op: Loops) -> frozenset[int]:
    """The operands that are indices of others."""
    everywhere = [index for access in op.accesses for index in access.indices]
    everywhere += [index for written in op.outputs for index in written.indices]
    return frozenset(index.operand for index in everywhere if isinstance(index, Loaded))


def _made_by(step: Step) -> Value | None:
    match step:
        case ReadElement(value) | MakeCoordinate(value):
            return value
        case Compute(instruction):
            return instruction.result
        case _:
            return None
