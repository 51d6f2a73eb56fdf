"""Emits the planned steps of a nest for the current iteration, scalar or vector."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.ir import ALIGNMENT
from ...core.ir.instruction import Instruction, Value
from .addresses import ZERO
from .checks import Checks
from .element_access import (
    Lanes,
    Pointers,
    element_address,
    load_elements,
    offset_bytes,
    store_elements,
    write_compensated,
)
from .elements import memory_type, register_type
from .indices import add, add_constant, clip, is_inside, multiply_constant
from .loops import LoopStep
from .nest_plan import NestPlan
from .scalar import write_scalar
from .steps import (
    Address,
    Advance,
    AdvanceBy,
    BoundIndex,
    Compute,
    FetchElement,
    IndexCheck,
    MakeCoordinate,
    MakeIndex,
    OutputPlan,
    ReadElement,
    Slot,
    SplatLanes,
    Step,
    TakeIndex,
    WriteElement,
)
from .writer import I64, FunctionWriter, Register, constant, constants


class PointWriter:
    """Emits planned steps; maps what the plan names to registers."""

    def __init__(
        self,
        w: FunctionWriter,
        plan: NestPlan,
        bases: Sequence[Register],
        checks: Checks,
    ) -> None:
        self.w = w
        self.plan = plan
        self.checks = checks
        self.lanes = Lanes()
        self.copy = 0
        self.distance = 0
        self.slots: dict[Slot, Register] = {ZERO: constant(I64, 0)}
        self.slots.update(enumerate(bases, 1))
        self.firsts: dict[Slot, Register] = {}
        self.values: dict[Value, Register] = {}
        self.copied: dict[tuple[Value, int], Register] = {}
        self.coordinates: dict[int, Register] = {}
        self.scaled: dict[tuple[str, int], Register] = {}

    def enter(self, axis: int, loop_step: LoopStep) -> None:
        """Go to one step of the loop over `axis`."""
        self.lanes = loop_step.lanes or self.lanes
        self.copy = loop_step.copy
        self.distance = loop_step.distance
        self.coordinates[axis] = loop_step.index

    def run(self, steps: Sequence[Step]) -> None:
        """Write steps."""
        for item in steps:
            self._run(item)

    def register(self, value: Value, lanes: int) -> Register:
        """The value in a register of `lanes` lanes."""
        known = self.plan.constants.get(value)
        if known is not None:
            return self.w.splat(known, lanes)
        register = self.values[value]
        return register if register.type.lanes == lanes else self.copied[value, lanes]

    def store(self, target: OutputPlan, value: Register) -> None:
        """Write a result's element (or one per lane) to memory."""
        if target.address.is_empty:
            return
        at = self._spot(target.address)
        if target.correction is not None:
            write_compensated(self.w, at, self._spot(target.correction), value, self.lanes)
        else:
            store_elements(self.w, at, value, self.lanes, target.combinator, target.joins)

    def _run(self, item: Step) -> None:
        slots = self.slots
        match item:
            case Advance():
                slots[item.target] = self._advance(item)
            case Compute(instruction):
                self._compute(instruction)
            case ReadElement(value, address):
                self.values[value] = self._load(address)
            case FetchElement(address, bytes):
                self._fetch(address, bytes)
            case SplatLanes(value, level):
                self._spread(value, level)
            case WriteElement(number):
                self._write(self.plan.targets[number])
            case MakeCoordinate(value, axis):
                self.values[value] = self._coordinate(axis)
            case MakeIndex():
                slots[item.target] = self._index(item)
            case TakeIndex(target, value):
                loaded = self.values[value]
                slots[target] = loaded if loaded.type.bits == 64 else self.w.sext(loaded, "i64")
            case BoundIndex(target, index, extent, clips):
                slots[target] = (clip if clips else is_inside)(self.w, slots[index], extent)
            case AdvanceBy(target, source, index, coefficient, element):
                scaled = multiply_constant(self.w, slots[index], coefficient)
                slots[target] = element_address(self.w, slots[source], element, scaled)
            case IndexCheck(index, extent, site):
                self.checks.write_check(self.w, slots[index], extent, site, self.lanes.mask)

    # Indices and addresses.

    def _advance(self, item: Advance) -> Register:
        """In further copies of a round, a constant distance from the first copy's."""
        if self.copy:
            return self._moved(item, self.firsts[item.target], self.distance * item.coefficient)
        source, coordinate = self.slots[item.source], self.coordinates[item.axis]
        if coordinate.is_constant:
            result = self._moved(item, source, int(coordinate.text) * item.coefficient)
        elif item.element is None:
            result = add(self.w, source, self._scaled(coordinate, item.coefficient))
        else:
            scaled = self._scaled(coordinate, item.coefficient)
            result = element_address(self.w, source, item.element, scaled)
        self.firsts[item.target] = result
        return result

    def _moved(self, item: Advance, source: Register, distance: int) -> Register:
        if item.element is None:
            return add_constant(self.w, source, distance)
        return offset_bytes(self.w, source, distance * item.element.size)

    def _scaled(self, coordinate: Register, coefficient: int) -> Register:
        key = coordinate.text, coefficient
        if key not in self.scaled:
            self.scaled[key] = multiply_constant(self.w, coordinate, coefficient)
        return self.scaled[key]

    def _index(self, item: MakeIndex) -> Register:
        index = add_constant(self.w, self.slots[item.source], item.constant)
        lanes = self.lanes.count
        if item.stride == 0 or lanes == 1:
            return index
        return self.w.add(self.w.splat(index, lanes), _apart(item.stride, lanes))

    def _coordinate(self, axis: int) -> Register:
        index, lanes = add_constant(self.w, self.coordinates[axis], self.distance), self.lanes.count
        is_vector = any(
            loop.is_vector
            for other, loop in zip(self.plan.axes, self.plan.loops, strict=True)
            if other == axis
        )
        if not is_vector or lanes == 1:
            return index
        return self.w.add(self.w.splat(index, lanes), self.w.lane_numbers("i64", lanes))

    # Scalars of the body.

    def _compute(self, instruction: Instruction) -> None:
        operands, result = instruction.operands, instruction.result
        lanes = 1
        for operand in operands:
            if operand not in self.plan.constants:
                lanes = max(lanes, self.values[operand].type.lanes)
        registers = [self.register(operand, lanes) for operand in operands]
        dtypes = [operand.tensor.dtype for operand in operands]
        self.values[result] = write_scalar(
            self.w, instruction.op, dtypes, result.tensor.dtype, registers
        )

    def _spread(self, value: Value, level: int) -> None:
        inside = level >= self.plan.vector_level
        for lanes in (self.lanes.count,) if inside else self.plan.lane_counts:
            self.copied[value, lanes] = self.w.splat(self.values[value], lanes)

    def _write(self, target: OutputPlan) -> None:
        varies = target.varies or target.address.varies
        self.store(target, self.register(target.value, self.lanes.count if varies else 1))

    # Memory.

    def _load(self, address: Address) -> Register:
        if address.is_empty:
            lanes = self.lanes.count if address.varies else 1
            return constant(register_type(address.dtype, lanes), 0)
        return load_elements(self.w, self._spot(address), self.lanes)

    def _fetch(self, address: Address, bytes: int) -> None:
        """Fetch the lines of a vector; what is left of an axis is next to what was fetched."""
        if self.lanes.mask is None and self.lanes.count > 1:
            pointer, size = self._spot(address).pointer, self.lanes.count * address.dtype.bytes
            for line in range(0, size, ALIGNMENT):
                self.w.prefetch(offset_bytes(self.w, pointer, bytes + line))

    def _spot(self, address: Address) -> Pointers:
        w, dtype = self.w, address.dtype
        pointer = offset_bytes(w, self.slots[address.pointer], address.constant * dtype.bytes)
        lanes = self.lanes.count if address.varies else 1
        offsets: Register | None = None
        for slot, stride in address.offsets:
            offset = multiply_constant(w, self.slots[slot], stride)
            if lanes == 1:
                pointer = element_address(w, pointer, memory_type(dtype), offset)
            else:
                offsets = offset if offsets is None else w.add(offsets, offset)
        if offsets is not None and address.stride:
            offsets = w.add(offsets, _apart(address.stride, lanes))
        condition = self._condition(address)
        stride, is_short = address.stride, address.is_short
        return Pointers(dtype, pointer, stride, offsets, condition, address.varies, is_short)

    def _condition(self, address: Address) -> Register | None:
        found: Register | None = None
        for slot in address.conditions:
            condition = self.slots[slot]
            if found is None:
                found = condition
            else:
                lanes = max(found.type.lanes, condition.type.lanes)
                found = self.w.and_(self.w.splat(found, lanes), self.w.splat(condition, lanes))
        return found


def _apart(stride: int, lanes: int) -> Register:
    """How far each lane is from the first."""
    return constants("i64", [lane * stride for lane in range(lanes)])
