"""Copies of the body of a loop, for each number that its index may be.

Where copies are to stand side by side, what is alike in all of them is in all of them the same instruction.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from ..ir.effect import Effect
from ..ir.instruction import Block, Instruction, Op, Region, Value
from ..lazy_dataclass import dataclass
from ..ops.literal import splat
from ..ops.nest import Affine
from ..types import I64, scalar
from .access_ops import LoadAt, StoreAt
from .indices import first_coordinate
from .loops import apply_op
from .ops import AffineIndex


@dataclass
class BodyCopies:
    """Makes copies of a body in which its index is a number: loads and stores have it in their constants."""

    body: Block
    is_jammed: bool = False
    """Whether copies of a loop are to become one loop: they have the same index, and what depends neither on the index
    of `body` nor on what a loop carries is shared.  Iterations must be independent."""
    _moved: dict[Instruction, _Moved] = field(
        init=False, default_factory=dict[Instruction, "_Moved"]
    )
    _is_value: bool = field(init=False, default=False)
    _indices: dict[Block, Value] = field(init=False, default_factory=dict[Block, Value])
    _shared: dict[Instruction, Instruction | None] = field(
        init=False, default_factory=dict[Instruction, "Instruction | None"]
    )
    """What all copies share, once there is a copy."""

    def __post_init__(self) -> None:
        index = self.body.arguments[0]
        for user in index.uses:
            first = first_coordinate(user) if isinstance(user.op, _INDEXED) else len(user.operands)
            self._is_value = self._is_value or index in user.operands[:first]
            if index in user.operands[first:]:
                self._moved[user] = _Moved.of(user, first, index)
        if self.is_jammed:
            self._shared.update(dict.fromkeys(_alike(self.body)))

    def with_index(self, number: int) -> Block:
        """A copy for one number; its arguments are what the loop carries."""
        index, *carried = self.body.arguments
        values: dict[Value, Value] = {}
        copy = Block([Value(x.type, x.name) for x in carried], [], self.body.name)
        values.update(zip(carried, copy.arguments, strict=True))
        if self._is_value:
            made = apply_op(splat(scalar(I64), number), name=index.name)
            copy.instructions.append(made)
            values[index] = made.result
        self._fill(copy, self.body, values, number)
        return copy

    def _fill(self, copy: Block, block: Block, values: dict[Value, Value], number: int) -> None:
        """Loops are as deep as kernels are, which is not very."""
        shared = self._shared
        for one in block.instructions:
            known = shared.get(one)
            if known is not None:
                values.update(zip(one.results, known.results, strict=True))
                copy.instructions.append(known)
                continue
            moved = self._moved.get(one)
            op, operands = (one.op, one.operands) if moved is None else moved.at(number)
            regions: tuple[Region, ...] = ()
            if one.regions:
                regions = (Region([self._inner(one.regions[0].entry, values, number)]),)
            mapped = tuple([values.get(operand, operand) for operand in operands])
            made = Instruction(op, mapped, (), regions, one.location)
            made.results = tuple(
                [Value(x.type, x.name, made, k) for k, x in enumerate(one.results)]
            )
            if one in shared:
                shared[one] = made
            values.update(zip(one.results, made.results, strict=True))
            copy.instructions.append(made)

    def _inner(self, block: Block, values: dict[Value, Value], number: int) -> Block:
        inner = Block([Value(x.type, x.name) for x in block.arguments], [], block.name)
        if self.is_jammed:
            inner.arguments[0] = self._indices.setdefault(block, inner.arguments[0])
        values.update(zip(block.arguments, inner.arguments, strict=True))
        self._fill(inner, block, values, number)
        return inner


def _alike(body: Block) -> Iterator[Instruction]:
    """What computes and loads the same whatever the index of a body is, in loops inside of it, too.

    A load is alike if its place is: nothing in other iterations writes there, and so nothing in its own does.
    """
    varying = set(body.arguments)
    pending = [iter(body.instructions)]
    while pending:
        one = next(pending[-1], None)
        if one is None:
            pending.pop()
            continue
        if one.regions:
            inner = one.regions[0].entry
            varying.update(inner.arguments[1:])
            pending.append(iter(inner.instructions))
        elif (
            one.op.effect in (Effect.NONE, Effect.READ)
            and not one.op.is_terminator
            and varying.isdisjoint(one.operands)
        ):
            yield one
            continue
        varying.update(one.results)


@dataclass(frozen=True, slots=True)
class _Moved:
    """A load, store or affine index whose coordinates are without one, which is a number instead."""

    op: LoadAt | StoreAt | AffineIndex
    operands: tuple[Value, ...]
    sums: tuple[tuple[int, int, tuple[tuple[int, int], ...]], ...]
    """Of each index its constant, the coefficient of the number, and the other terms."""

    @classmethod
    def of(cls, instruction: Instruction, first: int, index: Value) -> _Moved:
        op = instruction.op
        assert isinstance(op, _INDEXED)
        coordinates = instruction.operands[first:]
        kept = [position for position, x in enumerate(coordinates) if x is not index]
        numbers = {position: number for number, position in enumerate(kept)}
        maps = (op.expression,) if isinstance(op, AffineIndex) else op.indices
        sums = tuple(
            (
                one.constant,
                sum(c for axis, c in one.terms if axis not in numbers),
                tuple([(numbers[axis], c) for axis, c in one.terms if axis in numbers]),
            )
            for one in maps
        )
        others = (*instruction.operands[:first], *(coordinates[position] for position in kept))
        return cls(op, others, sums)

    def at(self, number: int) -> tuple[Op, tuple[Value, ...]]:
        """The op and operands for one number."""
        maps = tuple([Affine(c + k * number, terms) for c, k, terms in self.sums])
        match self.op:
            case LoadAt(lanes=lanes, steps=steps, active=active):
                return LoadAt(maps, lanes, steps, active), self.operands
            case StoreAt(steps=steps, active=active):
                return StoreAt(maps, steps, active), self.operands
            case AffineIndex():
                return AffineIndex(maps[0]), self.operands


_INDEXED = (LoadAt, StoreAt, AffineIndex)
