"""Data layout: sizes, alignments and field offsets as in C, for the evaluator and compiled code.

A *leaf* is what is neither tuple, struct nor array.  A leaf that is no tensor is a *word*, an `i64`: an address, or
the number of an enum's case.  Elements of aggregates follow each other, each aligned to its largest scalar; a tensor
is aligned to its element, a word to 8 bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field

from ...errors import UnsupportedError
from ...lazy_dataclass import dataclass
from ...ops.aggregate import positions_of
from ...ops.byte_memory import ADDRESS
from ...ops.enums import default_cases
from ...ops.memory import pointee_at
from ...types import (
    ArrayType,
    EnumType,
    FunctionType,
    StackType,
    TensorType,
    Type,
    elements_of,
    one_or_tuple,
    parts_of,
)

MOST_LEAVES = 10_000
"""Values of more leaves are refused: each is an instruction wherever the value goes, and 10,000 instructions compile in
a second (docs/decisions/0015)."""

WORD_BYTES = 8
"""Of an `i64`, which holds an address of any machine that code is made for."""

MOST_BYTES = 1 << 46
"""More than any machine gives, and so little that sizes can be added, and moved by offsets, without leaving an
`i64`."""


@dataclass(frozen=True)
class TypeLayout:
    """The size of a value in bytes, its alignment, and of how many leaves it is made."""

    bytes: int
    alignment: int
    leaves: int


@dataclass(eq=False)
class DataLayout:
    """The data layout, cached by type."""

    known: dict[Type, TypeLayout] = field(default_factory=dict[Type, TypeLayout])
    numbers: dict[str, dict[str, int]] = field(default_factory=dict[str, dict[str, int]])

    def extent(self, type: Type) -> TypeLayout:
        """The size of a value of `type`; types may be nested deeply."""
        pending = [type]
        while pending:
            current = pending[-1]
            missing = [part for part in _inside(current) if part not in self.known]
            if missing:
                pending += missing
                continue
            pending.pop()
            if current not in self.known:
                self.known[current] = self._measure(current)
        return self.known[type]

    def _measure(self, type: Type) -> TypeLayout:
        match type:
            case TensorType():
                return TypeLayout(type.bytes, type.dtype.bytes, 1)
            case ArrayType(count, element):
                one = self.known[element]
                return TypeLayout(count * one.bytes, one.alignment, count * one.leaves)
            case _:
                return self._measure_elements(type)

    def _measure_elements(self, type: Type) -> TypeLayout:
        """Of a struct or tuple, one after the other; everything else is a word."""
        elements = elements_of(type)
        if elements is None:
            return TypeLayout(WORD_BYTES, WORD_BYTES, 1)
        end, alignment, leaves = 0, 1, 0
        for element in elements:
            one = self.known[element]
            end = _aligned(end, one.alignment) + one.bytes
            alignment = max(alignment, one.alignment)
            leaves += one.leaves
        return TypeLayout(_aligned(end, alignment), alignment, leaves)

    def offset(self, type: Type, position: int) -> tuple[int, Type]:
        """How far into an aggregate or tensor its element `position` lies, and the element's type."""
        if isinstance(type, TensorType):
            row = type.with_shape(type.shape[1:])
            return position * row.bytes, row
        if isinstance(type, ArrayType):
            return position * self.extent(type.element).bytes, type.element
        end = 0
        elements = elements_of(type) or ()
        for element in elements[:position]:
            one = self.extent(element)
            end = _aligned(end, one.alignment) + one.bytes
        found = elements[position]
        return _aligned(end, self.extent(found).alignment), found

    def path(
        self, type: Type, keys: Sequence[int | str | None]
    ) -> tuple[int, list[tuple[int, int]]]:
        """How far into a value of `type` the keys of `elementPointer` lead.

        The distance by the keys that are known; and, for each that is a value, how many elements there are to
        choose from, and the bytes of one.
        """
        start, strides = 0, list[tuple[int, int]]()
        for key in keys:
            if key is not None:
                distance, type = self.offset(type, positions_of(type, (key,))[0])
                start += distance
                continue
            count = type.count if isinstance(type, ArrayType) else _rows(type)
            type = pointee_at(type, None)
            strides.append((count, self.extent(type).bytes))
        return start, strides

    def case_numbers(self, enum: EnumType) -> dict[str, int]:
        """The number of each case: 0 for the one that `undefined` means, if any; the others count from 1."""
        if enum.name not in self.numbers:
            default = default_cases(enum).get(enum.name)
            others = [name for name, _ in enum.cases if name != default]
            numbers = {name: number for number, name in enumerate(others, 1)}
            self.numbers[enum.name] = numbers if default is None else {default: 0, **numbers}
        return self.numbers[enum.name]

    def leaves(self, type: Type) -> list[tuple[int, Type]]:
        """Each leaf of a value of `type` with its offset, in order.

        Raises: UnsupportedError when there are too many.
        """
        if self.extent(type).leaves > MOST_LEAVES:
            raise UnsupportedError(
                f"a value of type {type} is made of more than {MOST_LEAVES} tensors: "
                "make it a tensor, or leave it in memory and reach its elements by elementPointer"
            )
        return list(self.every_leaf(type))

    def every_leaf(self, type: Type) -> Iterator[tuple[int, Type]]:
        """The same, of any number."""
        pending: list[tuple[int, Type]] = [(0, type)]
        while pending:
            offset, current = pending.pop()
            elements = elements_of(current)
            if elements is None:
                yield offset, current
                continue
            parts: list[tuple[int, Type]] = []
            end = offset
            for element in elements:
                one = self.extent(element)
                end = _aligned(end, one.alignment)
                parts.append((end, element))
                end += one.bytes
            pending.extend(reversed(parts))

    def machine_leaves(self, type: Type) -> list[TensorType]:
        """The tensors that a value of `type` is made of; words are numbers."""
        return [machine_type(leaf) for _, leaf in self.leaves(type)]

    def slice_of(self, type: Type, keys: Sequence[int | str]) -> tuple[slice, Type]:
        """Which leaves of a value of `type` lie where the keys lead, and their type."""
        first = 0
        for position in positions_of(type, keys):
            if isinstance(type, ArrayType):
                first += position * self.extent(type.element).leaves
                type = type.element
                continue
            elements = elements_of(type) or ()
            first += sum(self.extent(element).leaves for element in elements[:position])
            type = elements[position]
        return slice(first, first + self.extent(type).leaves), type

    def flat(self, type: FunctionType) -> FunctionType:
        """The type of a function that takes and returns leaves."""
        parameters = tuple(leaf for p in type.parameters for leaf in self.machine_leaves(p))
        return FunctionType(parameters, one_or_tuple(self.machine_leaves(type.result)))


def machine_type(leaf: Type) -> TensorType:
    """What a leaf is while the program runs."""
    return leaf if isinstance(leaf, TensorType) else ADDRESS


def reaches_cells(types: Sequence[Type]) -> bool:
    """Whether a value of one of these types may lead to an enum's value or to a stack."""
    seen: set[Type] = set()
    pending = list(types)
    while pending:
        type = pending.pop()
        if isinstance(type, EnumType | StackType):
            return True
        if type not in seen and not isinstance(type, FunctionType):
            seen.add(type)
            pending += parts_of(type)
    return False


def _rows(type: Type) -> int:
    return type.shape[0] if isinstance(type, TensorType) else 0


def _inside(type: Type) -> Iterator[Type]:
    """The types of what lies in a value of `type` itself."""
    if isinstance(type, ArrayType):
        yield type.element
    else:
        yield from elements_of(type) or ()


def _aligned(offset: int, alignment: int) -> int:
    return -(-offset // alignment) * alignment
