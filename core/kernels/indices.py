"""Indices as sums of values: affine indices seen through, changed, and written back into loads and stores.

A load at `(d0 + 1) of %j`, where `%j` is an `affineIndex` of two loops, is a load at an index of those loops: rewrites
keep all loads and stores in that form (`fold_indices`), which `dependence` and `bounds` understand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from ..ir.effect import Effect
from ..ir.instruction import Block, Instruction, Value
from ..lazy_dataclass import dataclass
from ..ops.literal import number_of, splat
from ..ops.nest import Affine
from ..types import I64, PointerType, scalar
from .access_ops import LoadAt, PrefetchAt, StoreAt, StreamInto, buffer_of
from .guarded_ops import LoadWhere, StoreWhere, written_buffer
from .loops import apply_op, inside
from .ops import AffineIndex


class IndexSum(NamedTuple):
    """`constant + Σ coefficient · value`; no coefficient is zero."""

    constant: int
    terms: Mapping[Value, int]

    def plus(self, other: IndexSum | int, times: int = 1) -> IndexSum:
        """This and the other, so many times."""
        if isinstance(other, int):
            return IndexSum(self.constant + times * other, self.terms)
        sums = dict(self.terms)
        for value, coefficient in other.terms.items():
            sums[value] = sums.get(value, 0) + times * coefficient
        terms = {value: coefficient for value, coefficient in sums.items() if coefficient}
        return IndexSum(self.constant + times * other.constant, terms)

    def coefficient(self, value: Value) -> int:
        return self.terms.get(value, 0)

    def substitute(self, value: Value, by: IndexSum) -> IndexSum:
        """The same with another sum in place of a value."""
        coefficient = self.terms.get(value, 0)
        if not coefficient:
            return self
        others = {term: c for term, c in self.terms.items() if term is not value}
        return IndexSum(self.constant, others).plus(by, coefficient)


@dataclass(frozen=True, slots=True)
class BufferAccess:
    """Elements of a buffer that an instruction touches: lane l lies `l · steps[k]` further along axis k.

    `lanes` is 0 for a scalar, and `touched` the number of elements.  Coordinates may be vectors, with one for each
    lane.  Without `indices` any element of the buffer may be touched.
    """

    instruction: Instruction
    is_store: bool
    buffer: Value
    indices: tuple[IndexSum, ...]
    lanes: int
    steps: tuple[int, ...]
    touched: int


def access_of(instruction: Instruction) -> BufferAccess | None:
    """What a load or store touches; None for all else."""
    op = instruction.op
    if op.effect is Effect.NONE:  # nearly all: asking for classes takes longer
        return None
    if isinstance(op, LoadAt):
        buffer, lanes, is_store = instruction.operands[0], op.lanes, False
    elif isinstance(op, StoreAt):
        value, buffer = instruction.operands[:2]
        lanes, is_store = (value.tensor.shape or (0,))[0], True
    else:
        return None
    steps = op.steps or (0,) * len(op.indices)
    touched = (op.active or lanes) if lanes else 1
    return BufferAccess(
        instruction, is_store, buffer, indices_of(instruction), lanes, steps, touched
    )


def accesses_of(instruction: Instruction) -> tuple[BufferAccess, ...]:
    """All that an instruction of a kernel may touch, where it holds, too; a fetch touches nothing."""
    op = instruction.op
    if op.effect in (Effect.NONE, Effect.ALLOCATE) or isinstance(op, PrefetchAt):
        return ()
    found = access_of(instruction)
    if found is not None:
        return (found,)
    if isinstance(op, LoadWhere | StoreWhere):
        first = op.first_buffer
        coordinates = instruction.operands[first + 1 :]
        indices = tuple([_sum_of(index, coordinates) for index in op.indices])
        steps = op.steps or (0,) * len(op.indices)
        touched = op.active or op.lanes or 1
        is_store, buffer = isinstance(op, StoreWhere), instruction.operands[first]
        return (BufferAccess(instruction, is_store, buffer, indices, op.lanes, steps, touched),)
    if isinstance(op, StreamInto):
        source, target, *coordinates = instruction.operands
        (size,) = buffer_of(op.name, source.type).shape
        there = _sum_of(op.indices[0], coordinates)
        places = (False, source, IndexSum(0, {})), (True, target, there)
        return tuple(
            [BufferAccess(instruction, w, x, (i,), size, (1,), size) for w, x, i in places]
        )
    written = written_buffer(instruction)
    buffers = [x for x in instruction.operands if isinstance(x.type, PointerType)]
    return tuple([BufferAccess(instruction, x is written, x, (), 0, (), 1) for x in buffers])


def linear_of(value: Value) -> IndexSum:
    """A value as a sum of others that are no affine indices and no constants."""
    return _sum_of(_ITSELF, (value,))


def indices_of(instruction: Instruction) -> tuple[IndexSum, ...]:
    """The indices of a load, store or fetch, or the one that `affineIndex` computes."""
    op, coordinates = instruction.op, instruction.operands[first_coordinate(instruction) :]
    if isinstance(op, LoadAt | StoreAt | PrefetchAt):
        return tuple([_sum_of(index, coordinates) for index in op.indices])
    assert isinstance(op, AffineIndex)
    return (_sum_of(op.expression, coordinates),)


def maps_of(indices: Sequence[IndexSum]) -> tuple[tuple[Affine, ...], tuple[Value, ...]]:
    """Sums as affine maps of coordinates, and the coordinates."""
    numbers: dict[Value, int] = {}
    for index in indices:
        for value in index.terms:
            numbers.setdefault(value, len(numbers))
    return tuple([_affine(index, numbers) for index in indices]), tuple(numbers)


def set_indices(instruction: Instruction, indices: Sequence[IndexSum]) -> None:
    """Have a load, store or `affineIndex` use these."""
    maps, coordinates = maps_of(indices)
    op = instruction.op
    if isinstance(op, LoadAt | StoreAt):
        instruction.op = replace(op, indices=maps)
    else:
        instruction.op = AffineIndex(maps[0])
    others = instruction.operands[: first_coordinate(instruction)]
    instruction.set_operands([*others, *coordinates])


def move_access(
    access: BufferAccess, buffer: Value, indices: Sequence[IndexSum], steps: tuple[int, ...]
) -> None:
    """Have a load or store touch these elements of another buffer."""
    instruction, op = access.instruction, access.instruction.op
    assert isinstance(op, LoadAt | StoreAt)
    maps, coordinates = maps_of(indices)
    stored = instruction.operands[:1] if access.is_store else ()
    instruction.op = replace(op, indices=maps, steps=steps if access.lanes else ())
    instruction.set_operands([*stored, buffer, *coordinates])


def element_of(buffer: Value, indices: Sequence[IndexSum]) -> IndexSum:
    """The element of a buffer at these indices, counted in the order of memory."""
    element = IndexSum(0, {})
    shape = buffer_of("element", buffer.type).shape
    for index, extent in zip(indices, shape, strict=True):
        element = IndexSum(0, {}).plus(element, extent).plus(index)
    return element


def fold_indices(block: Block) -> None:
    """Write the affine indices and constants among coordinates into the loads and stores that use them."""
    for instruction in inside(block):
        if isinstance(instruction.op, _INDEXED):
            coordinates = instruction.operands[first_coordinate(instruction) :]
            if any(x.producer is not None for x in coordinates):
                set_indices(instruction, indices_of(instruction))


def replace_index(body: Block, old: Value, new: IndexSum) -> None:
    """Use a sum in place of the index of a loop over `body`; where not only loads and stores do, it is computed."""
    is_value = False
    for user in list(old.uses):
        if isinstance(user.op, _INDEXED):
            first = first_coordinate(user)
            is_value = is_value or old in user.operands[:first]
            if old in user.operands[first:]:
                set_indices(user, [index.substitute(old, new) for index in indices_of(user)])
        else:
            is_value = True
    if is_value:
        made = compute_index(new, old.name)
        body.instructions.insert(0, made)
        old.replace_all_uses_with(made.result)


def compute_index(index: IndexSum, name: str | None = None) -> Instruction:
    """The instruction that computes a sum as a value of i64, in no block yet."""
    if not index.terms:
        return apply_op(splat(scalar(I64), index.constant), name=name)
    (index_map,), coordinates = maps_of((index,))
    return apply_op(AffineIndex(index_map), *coordinates, name=name)


_INDEXED = (LoadAt, StoreAt, AffineIndex)
_ITSELF = Affine(0, ((0, 1),))


def first_coordinate(instruction: Instruction) -> int:
    """How many operands stand before the coordinates."""
    op = instruction.op
    return 2 if isinstance(op, StoreAt) else 1 if isinstance(op, LoadAt | PrefetchAt) else 0


def _affine(index: IndexSum, numbers: Mapping[Value, int]) -> Affine:
    return Affine(index.constant, tuple(sorted([(numbers[v], c) for v, c in index.terms.items()])))


def _sum_of(index: Affine, coordinates: Sequence[Value]) -> IndexSum:
    constant = index.constant
    terms: dict[Value, int] = {}
    pending = [(coordinates[axis], c) for axis, c in reversed(index.terms)]
    while pending:
        value, times = pending.pop()
        producer = value.producer
        if producer is not None:
            if isinstance(producer.op, AffineIndex):
                inner = producer.op.expression
                constant += times * inner.constant
                pending += [(producer.operands[k], times * c) for k, c in reversed(inner.terms)]
                continue
            number: int | None = number_of(value)
            if number is not None:
                constant += times * number
                continue
        terms[value] = terms.get(value, 0) + times
    if not all(terms.values()):
        terms = {value: c for value, c in terms.items() if c}
    return IndexSum(constant, terms)
