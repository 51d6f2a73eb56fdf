"""Plans a nest: what each loop level computes, before a line is written.

1. Axes of one point have no loop; the others are numbered by `order`, outermost first.
2. Every scalar of the body depends on a set of axes (a bit mask); its level is the deepest of them.
3. Addresses are chains: each level adds its coordinate times the stride, chains share their heads, and
   constants are added at the access.  Indices that must be checked, clipped or compared are made at
   their own level, which for an index read from memory is that of the read.
4. What does not vary along the vector axis stays scalar, and is copied to the lanes once, where it is made.
5. A result that combines along inner loops is kept in registers over these; one whose elements come up
   again in an outer loop is joined in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...core.errors import InternalError
from ...core.ir.graph import Instruction, Value
from ...core.ops.arithmetic import Multiply, Square
from ...core.ops.combinator import Combinator
from ...core.ops.literal import Literal
from ...core.ops.nest import Access, Affine, Bounds, Index, Loaded, Output
from ...core.schedule.ops import Loops
from ...core.types import Shape, TensorType
from .coverage import axes_of, covers, is_injective, is_inside
from .elements import element, memory_type
from .steps import (
    Address,
    Advance,
    AdvanceBy,
    Check,
    CheckSite,
    Clip,
    Compute,
    Coordinate,
    Inside,
    Load,
    LoopShape,
    MakeIndex,
    Slot,
    Spread,
    Step,
    TakeIndex,
    Target,
    Write,
)
from .writer import LType, Register

ZERO: Slot = 0
"""The slot of the index 0; the base addresses of operands, then of results, follow."""


@dataclass(frozen=True, slots=True)
class NestPlan:
    """A nest ready to be written.  `steps[n]` runs inside of n loops; `axes[n]` is the axis of loop n."""

    axes: tuple[int, ...]
    loops: tuple[LoopShape, ...]
    steps: tuple[tuple[Step, ...], ...]
    targets: tuple[Target, ...]
    constants: dict[Value, Register]
    filled: tuple[int, ...]
    """Results whose elements are set to the combinator's identity before the loops."""

    @property
    def lane_counts(self) -> tuple[int, ...]:
        """The numbers of lanes that the vector loop uses; none without one."""
        return next((loop.lane_counts for loop in self.loops if loop.is_vector), ())

    @property
    def vector_level(self) -> int:
        """The level inside the vector loop; beyond the deepest without one."""
        inside = (n for n, loop in enumerate(self.loops, 1) if loop.is_vector)
        return next(inside, len(self.loops) + 1)


def plan_nest(instruction: Instruction, sites: list[CheckSite]) -> NestPlan:
    """The plan of one `Loops`; its checks are appended to `sites`, and numbered from 1 by their place."""
    op = instruction.op
    if not isinstance(op, Loops):
        raise InternalError(f"{op.name} is no scheduled nest")
    filled = tuple(k for k, written in enumerate(op.outputs) if _needs_fill(written, op))
    if 0 in op.extents:
        return NestPlan((), (), ((),), (), {}, filled)
    return _Planner(instruction, op, sites).plan(filled)


class _Planner:
    """Collects the steps of one nest."""

    def __init__(self, instruction: Instruction, op: Loops, sites: list[CheckSite]) -> None:
        self.op = op
        self.instruction = instruction
        self.sites = sites
        self.body = instruction.regions[0].entry
        self.axes = tuple(axis for axis in op.order if op.extents[axis] > 1)
        if sorted(op.order) != list(range(len(op.extents))):
            raise InternalError(
                f"the order {op.order} does not name every axis of {op.extents} once"
            )
        self.position = {axis: position for position, axis in enumerate(self.axes)}
        self.vector = self.position.get(op.vector, -1) if op.lanes > 1 else -1
        self.steps: list[list[Step]] = [[] for _ in range(len(self.axes) + 1)]
        self.masks: dict[Value, int] = {}
        self.slot_masks: dict[Slot, int] = {}
        self.constants: dict[Value, Register] = {}
        self.known: dict[tuple[object, ...], Slot] = {}
        self.slots = 1 + len(op.accesses) + len(op.outputs)
        self.spread: set[Value] = set()
        self.uses = _uses(self.body.instructions)

    # Levels.

    def plan(self, filled: tuple[int, ...]) -> NestPlan:
        rank = len(self.op.extents)
        for axis, value in enumerate(self.body.arguments[:rank]):
            self._plan_coordinate(axis, value)
        scalars = self.body.arguments[rank:]
        for number, (value, access) in enumerate(zip(scalars, self.op.accesses, strict=True)):
            self._plan_read(number, value, access, scalars)
        results = self.body.terminator.operands
        fused = self._fused(results)
        for instruction in self.body.instructions[:-1]:
            self._plan_compute(instruction, fused)
        targets = tuple(
            self._plan_result(number, value, scalars, fused) for number, value in enumerate(results)
        )
        for number, target in enumerate(targets):
            self._plan_write(number, target)
        return NestPlan(
            self.axes,
            self._loop_shapes(targets),
            tuple(
                tuple(self._with_spreads(steps, level)) for level, steps in enumerate(self.steps)
            ),
            targets,
            self.constants,
            filled,
        )

    def _level(self, mask: int) -> int:
        """Deepest loop of the axes in the mask, whose bit n is loop n."""
        return mask.bit_length()

    def _varies(self, mask: int) -> bool:
        return self.vector >= 0 and bool(mask >> self.vector & 1)

    def _mask(self, axes: frozenset[int]) -> int:
        return sum(1 << self.position[axis] for axis in axes)

    def _fresh(self, mask: int) -> Slot:
        self.slots += 1
        self.slot_masks[self.slots - 1] = mask
        return self.slots - 1

    def _put(self, mask: int, step: Step) -> None:
        self.steps[self._level(mask)].append(step)

    # The body.

    def _plan_coordinate(self, axis: int, value: Value) -> None:
        if axis not in self.position:
            self.constants[value] = element(value.tensor.dtype, 0)
            return
        self.masks[value] = 1 << self.position[axis]
        if value in self.uses:
            self._put(self.masks[value], Coordinate(value, axis))

    def _plan_read(
        self, number: int, value: Value, access: Access, scalars: Sequence[Value]
    ) -> None:
        type = self.instruction.operands[number].tensor
        address, mask = self._address(1 + number, type, access.indices, access.bounds, scalars)
        self.masks[value] = mask
        loaded = {i.operand for a in self.op.accesses for i in a.indices if isinstance(i, Loaded)}
        loaded.update(
            i.operand for o in self.op.outputs for i in o.indices if isinstance(i, Loaded)
        )
        if value in self.uses or number in loaded:
            self._put(mask, Load(value, address))

    def _plan_compute(self, instruction: Instruction, fused: frozenset[Value]) -> None:
        result = instruction.result
        if result not in self.uses:
            return
        if isinstance(instruction.op, Literal):
            number = instruction.op.splat_value()
            self.constants[result] = element(result.tensor.dtype, number)
            return
        mask = 0
        for operand in instruction.operands:
            mask |= self.masks.get(operand, 0)
        self.masks[result] = mask
        if result in fused:
            return
        if self._varies(mask):
            self._spread_uniform(instruction.operands)
        self._put(mask, Compute(instruction))

    def _fused(self, results: Sequence[Value]) -> frozenset[Value]:
        """Products that only a sum uses: they are joined by fused multiply-add where that is in registers."""
        return frozenset(
            value
            for value, written in zip(results, self.op.outputs, strict=True)
            if isinstance(value.op, Multiply | Square)
            and value.tensor.dtype.name in ("f32", "f64")
            and written.combinator is Combinator.ADD
            and self.uses[value] == 1
            and self._begins(written) is not None
            and self._is_innermost(value)
        )

    def _is_innermost(self, value: Value) -> bool:
        """Whether a product reads something of the innermost loop directly or by what it is made of."""
        return self._level(self._mask_of(value)) == len(self.axes)

    def _mask_of(self, value: Value) -> int:
        """The mask of a value of the body whose plan has not been made yet."""
        pending, seen, mask = [value], set[Value](), 0
        while pending:
            current = pending.pop()
            if current in seen:
                continue
            seen.add(current)
            mask |= self.masks.get(current, 0)
            if current.producer is not None:
                pending.extend(current.producer.operands)
        return mask

    def _spread_uniform(self, values: Sequence[Value]) -> None:
        self.spread.update(
            v for v in values if v not in self.constants and not self._varies(self.masks[v])
        )

    def _with_spreads(self, steps: Sequence[Step], level: int) -> list[Step]:
        result: list[Step] = []
        for step in steps:
            result.append(step)
            made = _made_by(step)
            if made is not None and made in self.spread:
                result.append(Spread(made, level))
        return result

    # Addresses.

    def _address(
        self,
        base: Slot,
        type: TensorType,
        indices: Sequence[Index],
        bounds: Bounds,
        scalars: Sequence[Value],
    ) -> tuple[Address, int]:
        """How to reach the element, and the mask of all that it depends on."""
        linear, uniform, offsets = Affine(), list[tuple[Slot, int]](), list[tuple[Slot, int]]()
        conditions: list[Slot] = []
        for index, extent, stride in zip(indices, type.shape, _strides(type.shape), strict=True):
            inside = bounds is Bounds.INSIDE or is_inside(index, extent, self.op.extents)
            if isinstance(index, Affine) and (inside or bounds is not Bounds.CLIP):
                linear = linear + index * stride
            if isinstance(index, Affine) and inside:
                continue
            slot = self._index(index, scalars)
            if bounds is Bounds.CHECK:
                self._check(slot, extent)
            elif bounds is Bounds.ZERO:
                conditions.append(self._bounded(Inside, slot, extent))
            elif bounds is Bounds.CLIP:
                slot = self._bounded(Clip, slot, extent)
            if isinstance(index, Loaded) or bounds is Bounds.CLIP:
                varying = self._varies(self.slot_masks[slot])
                (offsets if varying else uniform).append((slot, stride))
        terms = [(a, c) for a, c in linear.terms if a in self.position]
        element_type = memory_type(type.dtype)
        pointer = self._chain(base, terms, uniform, element_type)
        mask = self._mask(frozenset(axis for axis, _ in terms))
        for slot in (*conditions, *(s for s, _ in (*offsets, *uniform))):
            mask |= self.slot_masks[slot]
        vector_axis = self.axes[self.vector] if self.vector >= 0 else -1
        address = Address(
            type.dtype,
            pointer,
            linear.constant,
            linear.coefficient(vector_axis),
            tuple(offsets),
            tuple(conditions),
            self._varies(mask),
            type.size == 0,
        )
        return address, mask

    def _check(self, index: Slot, extent: int) -> None:
        key = (Check, index, extent)
        if key not in self.known:
            self.sites.append(CheckSite(self.instruction.location))
            self.known[key] = index
            self._put(self.slot_masks[index], Check(index, extent, len(self.sites)))

    def _index(self, index: Index, scalars: Sequence[Value]) -> Slot:
        """The slot of an index as an `i64`, one per lane if it varies."""
        known = self.known.get((index,))
        if known is not None:
            return known
        if isinstance(index, Loaded):
            value = scalars[index.operand]
            slot = self._fresh(self.masks[value])
            self._put(self.masks[value], TakeIndex(slot, value))
        else:
            terms = [(axis, c) for axis, c in index.terms if axis in self.position]
            mask = self._mask(frozenset(axis for axis, _ in terms))
            source = self._chain(ZERO, terms, [], None)
            slot = self._fresh(mask)
            stride = index.coefficient(self.axes[self.vector]) if self._varies(mask) else 0
            self._put(mask, MakeIndex(slot, source, index.constant, stride))
        self.known[(index,)] = slot
        return slot

    def _bounded(self, kind: type[Clip] | type[Inside], index: Slot, extent: int) -> Slot:
        key = (kind, index, extent)
        if key not in self.known:
            mask = self.slot_masks[index]
            self.known[key] = self._fresh(mask)
            self._put(mask, kind(self.known[key], index, extent))
        return self.known[key]

    def _chain(
        self,
        base: Slot,
        terms: Sequence[tuple[int, int]],
        uniform: Sequence[tuple[Slot, int]],
        element_type: LType | None,
    ) -> Slot:
        """`base` plus all terms, each added at its level; equal heads are made once."""
        links = [(1 << self.position[axis], 0, axis, c) for axis, c in terms]
        links += [(self.slot_masks[slot], 1, slot, stride) for slot, stride in uniform]
        current, reached = base, 0
        for mask, kind, source, coefficient in sorted(
            links, key=lambda link: (self._level(link[0]), link[1], link[2])
        ):
            reached |= mask
            key = (current, kind, source, coefficient, element_type)
            if key not in self.known:
                self.known[key] = target = self._fresh(reached)
                if kind == 0:
                    step: Step = Advance(target, current, source, coefficient, element_type)
                else:
                    assert element_type is not None
                    step = AdvanceBy(target, current, source, coefficient, element_type)
                self._put(reached, step)
            current = self.known[key]
        return current

    # Results.

    def _begins(self, written: Output) -> int | None:
        """The level where a reduction in registers begins; None when nothing is reduced inside it."""
        level = self._level(self._written_mask(written))
        return level if written.combinator is not None and level < len(self.axes) else None

    def _written_mask(self, written: Output) -> int:
        mask = self._mask(axes_of(written.indices, self.op.extents))
        scalars = self.body.arguments[len(self.op.extents) :]
        for index in written.indices:
            if isinstance(index, Loaded):
                mask |= self.masks[scalars[index.operand]]
        return mask

    def _plan_result(
        self, number: int, value: Value, scalars: Sequence[Value], fused: frozenset[Value]
    ) -> Target:
        written = self.op.outputs[number]
        base = 1 + len(self.op.accesses) + number
        address, _ = self._address(base, written.type, written.indices, written.bounds, scalars)
        begins = self._begins(written)
        inside = begins is not None and self.vector >= begins
        joins = written.combinator is not None and not self._writes_once(written)
        factors = None
        if value in fused and value.producer is not None:
            factors = value.producer.operands[0], value.producer.operands[-1]
        is_reduced = written.combinator is not None and self.vector >= 0
        varies = self._varies(self._mask_of(value)) or (is_reduced and not address.varies)
        if inside or varies:
            self._spread_uniform(factors or [value])
        elif begins is None and address.varies:
            self._spread_uniform([value])
        return Target(value, varies, address, written.combinator, joins, begins, inside, factors)

    def _plan_write(self, number: int, target: Target) -> None:
        """A result that is not reduced is stored as soon as it and its place are known."""
        if target.begins is not None:
            return
        mask = self._written_mask(self.op.outputs[number])
        self._put(mask | self.masks.get(target.value, 0), Write(number))

    def _writes_once(self, written: Output) -> bool:
        """Whether no element is stored twice, reductions in registers being stored at their end."""
        return (
            written.bounds is not Bounds.CLIP
            and is_injective(written.indices, self.op.extents)
            and not self._reduced_outside(written)
        )

    def _reduced_outside(self, written: Output) -> bool:
        mask = self._written_mask(written)
        return mask != (1 << self._level(mask)) - 1

    # Loops.

    def _loop_shapes(self, targets: Sequence[Target]) -> tuple[LoopShape, ...]:
        shapes: list[LoopShape] = []
        for position, axis in enumerate(self.axes):
            extent, is_vector = self.op.extents[axis], position == self.vector
            lanes = self.op.lanes if is_vector else 1
            tail = extent % lanes
            whole = any(target.inside for target in targets)
            tail_lanes = lanes if whole else 1 << max(tail - 1, 0).bit_length()
            is_innermost = position == len(self.axes) - 1
            reduces = any(target.begins is not None for target in targets)
            copies = self.op.accumulators if is_innermost and reduces else 1
            shapes.append(LoopShape(extent, lanes, tail_lanes, copies, is_vector))
        return tuple(shapes)


def _needs_fill(written: Output, op: Loops) -> bool:
    """Elements that nobody writes, or that are joined in memory, start as the identity."""
    if not covers(written, op.extents):
        return True
    if written.combinator is None:
        return False
    kept = axes_of(written.indices, op.extents)
    order = [axis for axis in op.order if op.extents[axis] > 1]
    deepest = max((order.index(axis) for axis in kept), default=0)
    return any(axis not in kept for axis in order[:deepest])


def _uses(instructions: Sequence[Instruction]) -> dict[Value, int]:
    """How often each value is used by what the results need."""
    uses: dict[Value, int] = {}
    for instruction in reversed(instructions):
        if instruction.op.is_terminator or any(result in uses for result in instruction.results):
            for operand in instruction.operands:
                uses[operand] = uses.get(operand, 0) + 1
    return uses


def _strides(shape: Shape) -> tuple[int, ...]:
    """Elements from one index to the next, per axis, row-major."""
    strides: list[int] = []
    stride = 1
    for extent in reversed(shape):
        strides.append(stride)
        stride *= extent
    return tuple(reversed(strides))


def _made_by(step: Step) -> Value | None:
    match step:
        case Load(value) | Coordinate(value):
            return value
        case Compute(instruction):
            return instruction.result
        case _:
            return None
