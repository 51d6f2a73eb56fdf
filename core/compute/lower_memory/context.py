"""The builder of memory lowering: one block of the lowered program, and module-wide tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from ...errors import InternalError
from ...ir import Block, Builder, Instruction, Module, Region, Value, Variable
from ...lazy_dataclass import dataclass
from ...ops.arithmetic import Add, Multiply
from ...ops.byte_memory import (
    ADDRESS,
    FIRST_ADDRESS,
    AddressOf,
    AllocateBytes,
    CheckAddress,
    FreeBytes,
    ReadBytes,
    StopIf,
    WriteBytes,
)
from ...ops.comparison import LessThan, NotEqual, Select
from ...ops.literal import constant, number_of
from ...types import BOOL, I64, EnumType, TensorType, TupleType, Type, scalar
from .data_layout import WORD_BYTES, DataLayout, machine_type, reaches_cells

NOTHING = "nnkit.nothing"
"""The global variable of zeros that is read in place of an enum's value that is not there."""

_LARGEST_FOLDED = 1 << 62
"""Sums and products of known numbers are computed here up to this size; beyond, code computes them, as they may wrap
around."""


@dataclass(eq=False)
class ModuleContext:
    """Module-wide state of memory lowering: layouts and type numbers."""

    module: Module
    layout: DataLayout = field(default_factory=DataLayout)
    numbers: dict[Type, int] = field(default_factory=dict[Type, int])
    """Of the types that stand on stacks."""

    def __post_init__(self) -> None:
        variables = [variable.type for variable in self.module.variables.values()]
        self.cells = "program" if reaches_cells(variables) else "run"
        """How long values of enums and stacks last: for ever where global variables may lead to them."""

    def number(self, type: Type) -> int:
        """The type tag of values on stacks."""
        return self.numbers.setdefault(type, 1 + len(self.numbers))

    def cell(self, enum: EnumType, case: str) -> TupleType:
        """The memory type of an enum case: its tag and payload."""
        return TupleType((ADDRESS, *enum.carried(case)))

    def nothing(self) -> AddressOf:
        """Zeros, as many as any enum may carry."""
        cells = (self.cell(e, case) for e in self.module.enums.values() for case, _ in e.cases)
        size = max((self.layout.extent(cell).bytes for cell in cells), default=WORD_BYTES)
        type = TensorType((-(-size // WORD_BYTES),), I64)
        known = self.module.variables.setdefault(NOTHING, Variable(NOTHING, type))
        if known.type != type:
            raise InternalError(f"@{NOTHING} belongs to the compiler")
        return AddressOf(NOTHING, type.bytes)


@dataclass(eq=False)
class LoweringContext:
    """Builds one lowered block; maps old values to their leaves.

    `valid` are addresses that are known to lead somewhere.
    """

    program: ModuleContext
    b: Builder
    loops: int
    room: list[int]
    """How many bytes of the stack the function may still take for memory that it allocates."""
    known: dict[Value, list[Value]] = field(default_factory=dict[Value, list[Value]])
    valid: set[Value] = field(default_factory=set[Value])
    origins: dict[Value, tuple[Value, int]] = field(
        default_factory=dict[Value, "tuple[Value, int]"]
    )
    """For an address that is a known distance from another one: that one, and the distance."""
    tags: dict[Value, Value] = field(default_factory=dict[Value, Value])
    """The numbers of the cases of enums that have been looked at."""
    given: dict[Region, list[bool]] = field(default_factory=dict[Region, list[bool]])
    """For the arguments of bodies inside: whether they are valid addresses."""

    @property
    def layout(self) -> DataLayout:
        return self.program.layout

    # What old values have become.

    def leaves(self, value: Value) -> list[Value]:
        found = self.known.get(value)
        if found is None:
            raise InternalError(f"a value of type {value.type} is used before it is made")
        return found

    def word(self, value: Value) -> Value:
        """The one leaf of a pointer, box, stack, enum, function or number."""
        (leaf,) = self.leaves(value)
        return leaf

    def all_leaves(self, values: Sequence[Value]) -> list[Value]:
        return [leaf for value in values for leaf in self.leaves(value)]

    # Numbers.

    def number(self, number: int) -> Value:
        return constant(self.b, scalar(I64), number)

    def add(self, x: Value, number: int) -> Value:
        """x + number."""
        known = literal_number(x)
        if known is not None and abs(known + number) < _LARGEST_FOLDED:
            return self.number(known + number)
        return self.b.emit(Add(), x, self.number(number)) if number else x

    def scaled(self, x: Value, factor: int) -> Value:
        """x · factor."""
        known = literal_number(x)
        if known is not None and abs(known * factor) < _LARGEST_FOLDED:
            return self.number(known * factor)
        return x if factor == 1 else self.b.emit(Multiply(), x, self.number(factor))

    def select(self, condition: Value, x: Value, y: Value) -> Value:
        return self.b.emit(Select(), x, y, condition)

    def leads_nowhere(self, address: Value) -> Value:
        return self.b.emit(LessThan(), address, self.number(FIRST_ADDRESS))

    # Memory.

    def moved(self, address: Value, distance: int) -> Value:
        """The address plus a byte offset; an invalid address is unchanged."""
        if not distance:
            return address
        found = self.unless_nowhere(address, self.add(address, distance))
        base, before = self.origins.get(address, (address, 0))
        self.origins[found] = base, before + distance
        return found

    def unless_nowhere(self, base: Value, moved: Value) -> Value:
        """`moved`, or `base` where that leads nowhere already."""
        if self.is_valid(base):
            return moved
        return self.select(self.leads_nowhere(base), base, moved)

    def is_valid(self, address: Value) -> bool:
        """Whether an address is known to be valid."""
        return self.origins.get(address, (address, 0))[0] in self.valid

    def check(self, address: Value, action: str) -> None:
        """Emit a check that the address is valid."""
        if not self.is_valid(address):
            base, _ = self.origins.get(address, (address, 0))
            self.b.emit_many(CheckAddress(action), [base])
            self.valid.add(base)

    def stop_if(self, condition: Value, message: str) -> None:
        self.b.emit_many(StopIf(message), [condition])

    def stop(self, message: str) -> None:
        self.stop_if(constant(self.b, scalar(BOOL), True), message)

    def stop_unless_equal(self, x: Value, number: int, message: str) -> None:
        self.stop_if(self.b.emit(NotEqual(), x, self.number(number)), message)

    def allocate(self, count: Value | int, owner: str) -> Value:
        """The address of new memory."""
        size = self.number(count) if isinstance(count, int) else count
        address = self.b.emit(AllocateBytes(owner), size)
        self.valid.add(address)
        return address

    def free(self, address: Value) -> None:
        self.b.emit_many(FreeBytes(), [address])

    def read(self, address: Value, offset: int = 0) -> Value:
        """The word that lies there."""
        return self._read(ADDRESS, address, offset)

    def write(self, value: Value, address: Value, offset: int = 0) -> None:
        base, distance = self.origins.get(address, (address, 0))
        self.b.emit_many(WriteBytes(distance + offset), [value, base])

    def read_value(self, type: Type, address: Value, start: int = 0) -> list[Value]:
        """The leaves of a value of `type` that lies `start` bytes after the address."""
        return [
            self._read(machine_type(leaf), address, start + offset)
            for offset, leaf in self.layout.leaves(type)
        ]

    def write_value(
        self, type: Type, leaves: Sequence[Value], address: Value, start: int = 0
    ) -> None:
        """Put the leaves of a value of `type` there."""
        for (offset, _), leaf in zip(self.layout.leaves(type), leaves, strict=True):
            self.write(leaf, address, start + offset)

    def _read(self, type: TensorType, address: Value, offset: int) -> Value:
        base, distance = self.origins.get(address, (address, 0))
        return self.b.emit(ReadBytes(distance + offset, type), base)

    def zeros(self, type: Type) -> list[Value]:
        """The leaves of what memory holds at first."""
        return [constant(self.b, leaf, 0) for leaf in self.layout.machine_leaves(type)]


def literal_number(x: Value) -> int | None:
    """What a scalar literal says; None for all other values."""
    number = number_of(x)
    return int(number) if number is not None and not x.tensor.rank else None


def start_context(
    program: ModuleContext, block: Block, loops: int, room: list[int], valid: Sequence[bool] = ()
) -> LoweringContext:
    """A context whose block takes the leaves of what `block` takes."""
    c = LoweringContext(program, Builder(Block(name=block.name)), loops, room)
    for position, argument in enumerate(block.arguments):
        leaves = program.layout.machine_leaves(argument.type)
        names = leaf_names(argument.name, len(leaves))
        made = [c.b.argument(leaf, name) for leaf, name in zip(leaves, names, strict=True)]
        c.known[argument] = made
        if position < len(valid) and valid[position]:
            c.valid.update(made)
    return c


def leaf_names(name: str | None, count: int) -> list[str | None]:
    """What the leaves of a value are called."""
    if name is None or count == 1:
        return [name] * count
    return [f"{name}_{number}" for number in range(count)]


def results_named(
    c: LoweringContext, instruction: Instruction, results: Sequence[list[Value]]
) -> None:
    """Map an instruction's results to lowered values, which take their names."""
    for old, leaves in zip(instruction.results, results, strict=True):
        c.known[old] = leaves
        for leaf, name in zip(leaves, leaf_names(old.name, len(leaves)), strict=True):
            if leaf.name is None and leaf.producer is not None:
                leaf.name = name
