"""Loop distribution of products: those that no round waits for are computed for all rounds at once.

    for %i upto 100 carrying %h {                    %p = dot %x: <100 x 64>, %w: <64 x 32>
        %r = gather %x: <100 x 64> at %i             for %i upto 100 carrying %h {
        %a = dot %r, %w: <64 x 32>          becomes      %a = gather %p: <100 x 32> at %i
        …                                                …
    }                                                }

A product of a row with a matrix reads the matrix for two operations on each of its elements; a product of all rows
reads it once for all of them.  Its derivative is a product of all rows, too.

1. What a round computes depends on nothing (`invariant`), on its number alone (`indexed`), or on what other rounds did.
2. A product of what is indexed with a matrix that is invariant is taken, with all that its operand is computed from,
   by the rules of batches, as if the rounds were the elements of one.
3. What is left in the loop is the row of the result; nobody needs the rest, and `dce` removes it.

Source: Allen & Kennedy 2001, Optimizing Compilers for Modern Architectures, §5.4 and §6.2 (loop distribution).
"""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar, Final

from ..analysis import Analyses, Analysis, Effects
from ..batching.rules import batch_of
from ..ir import Block, Builder, Function, Instruction, Value
from ..ir.surgery import clone_instructions, walk_blocks
from ..lazy_dataclass import dataclass
from ..ops import Add, Gather, Iota, Subtract
from ..ops.flows import Role, flows_in, operands_of, trips_of
from ..ops.indexing import entries_at
from ..ops.literal import constant, number_of
from ..ops.movement import permuted
from ..ops.nest import Bounds
from ..types import I64, TensorType, scalar
from .base import FunctionPass

LEAST_ROUNDS: Final = 4
"""Of fewer rounds the rows are no better than one by one."""

MOST_BYTES: Final = 64 << 20
"""What is stored for all rounds at most: the loop needs as much for one of them."""


FEW_BYTES: Final = 4 << 20
"""The same where the matrix stays in the nearest cache: its results would leave the second one. Distances of 10,000
points to 100 centroids take 2.4 ms if they are stored first, and 1.1 if each row is used at once."""

NEAR_BYTES: Final = 32 << 10
"""Matrices that stay in the nearest cache, from one round to the next."""


@dataclass(frozen=True)
class DistributeLoops(FunctionPass):
    """Computes before a `for` its products of rows with matrices, where the rows are known beforehand: all at once.

    Taken are products of what depends on the number of the round alone with a matrix that is the same in each, if the
    rounds are known to be four or more, and their results take 64 MiB at most, or 4 if the matrix is small.

    Requires: structured control flow; loops between blocks are left alone.
    Preserves: effects, and results but for the order in which the terms of a product are added.
    Cost: linear.
    Source: Allen & Kennedy 2001, Optimizing Compilers for Modern Architectures, §5.4.
    """

    name: ClassVar[str] = "distribute-loops"
    preserves_analyses: ClassVar[Analysis] = Analysis.FLOW | Analysis.EFFECTS

    def run(self, function: Function, analyses: Analyses) -> bool:
        if function.body is None:
            return False
        changed = False
        # a product of an inner loop may be a row of an outer one
        for block in reversed(list(walk_blocks(function.body))):
            for loop in [i for i in block.instructions if _is_counted(i)]:
                changed |= _distribute(block, loop, analyses.effects)
        return changed


def _is_counted(instruction: Instruction) -> bool:
    """Whether it is a loop from one value up to another; the bounds of loops in kernels are numbers."""
    return any(operands_of(instruction, flow) for flow in flows_in(instruction, Role.INDEX))


def _distribute(block: Block, loop: Instruction, effects: Effects) -> bool:
    """Take the products out of `loop`, which stands in `block`; whether there were any."""
    rounds, lower = trips_of(loop), number_of(loop.operands[0])
    if rounds is None or rounds < LEAST_ROUNDS or lower is None:
        return False
    body = _Body(loop, lower, rounds, effects)
    products = [i for i in loop.regions[0].entry.instructions if body.is_product(i)]
    taken = [body.take(block, product) for product in products]
    return any(taken)


@dataclass
class _Body:
    """The body of a loop, with what of it is computed for all rounds at once: `batches`."""

    loop: Instruction
    lower: int
    rounds: int
    effects: Effects
    batches: dict[Value, Value] = field(default_factory=dict[Value, Value])

    def __post_init__(self) -> None:
        body = self.loop.regions[0].entry
        self.index = body.arguments[0]
        self.indexed = {self.index}
        self.inside = set(body.arguments)
        waiting = set(body.arguments[1:])
        for instruction in body.instructions:
            self.inside.update(instruction.results)
            if not self._is_plain(instruction) or not waiting.isdisjoint(instruction.operands):
                waiting.update(instruction.results)
            elif not self.indexed.isdisjoint(instruction.operands):
                self.indexed.update(instruction.results)

    def _is_plain(self, instruction: Instruction) -> bool:
        """Whether it may be computed though its round does not come."""
        op = instruction.op
        return (
            not instruction.regions
            and op.called is None
            and len(instruction.results) == 1
            and isinstance(instruction.result.type, TensorType)
            and self.effects.is_pure(instruction)
            and not op.can_fail()
        )

    def is_product(self, instruction: Instruction) -> bool:
        """Whether it is the product of something indexed with one matrix for all rounds."""
        if not instruction.results or not self.indexed.issuperset(instruction.results):
            return False
        batched = [x in self.indexed for x in instruction.operands]
        return instruction.op.gains_from_batch(instruction.operands, batched) and all(
            is_one or self._is_at_hand(x)
            for x, is_one in zip(instruction.operands, batched, strict=True)
        )

    def take(self, block: Block, product: Instruction) -> bool:
        """Compute a product for all rounds in front of the loop, and leave its row; whether that can be."""
        needed = self._needed(product)
        matrices = [x.tensor.bytes for x in product.operands if x not in self.indexed]
        most = FEW_BYTES if max(matrices, default=0) <= NEAR_BYTES else MOST_BYTES
        if sum(self.rounds * i.result.tensor.bytes for i in needed) > most:
            return False
        b = Builder(Block())
        made: dict[Value, Value] = {}
        for instruction in needed:
            b.location = instruction.location
            batch = self._batch(b, instruction, made)
            if batch is None:
                for left in b.block.instructions:
                    left.drop_all_references()
                return False
            made[instruction.result] = batch
        self.batches |= made
        place = block.instructions.index(self.loop)
        block.instructions[place:place] = b.block.instructions
        self._leave_row(product, made[product.result])
        return True

    def _needed(self, product: Instruction) -> list[Instruction]:
        """The instructions that depend on the index, and the product needs, in order; it comes last."""
        needed = {product}
        waiting = [product]
        for instruction in waiting:
            for x in instruction.operands:
                maker = x.producer
                is_known = x not in self.indexed or x in self.batches
                if not is_known and maker is not None and maker not in needed:
                    needed.add(maker)
                    waiting.append(maker)
        return [i for i in self.loop.regions[0].entry.instructions if i in needed]

    def _batch(
        self, b: Builder, instruction: Instruction, made: dict[Value, Value]
    ) -> Value | None:
        """The results of all rounds, along a leading axis; None if its operands are not all at hand, or it has none."""
        op, xs = instruction.op, instruction.operands
        batched = [x in self.indexed for x in xs]
        if not all(is_one or self._is_at_hand(x) for x, is_one in zip(xs, batched, strict=True)):
            return None
        row = entries_at(instruction, self.index, self.lower + self.rounds - 1)
        if row is not None and self._is_whole(*row):
            x, taken = row
            order = [axis for axis in range(x.tensor.rank) if axis != taken]
            return permuted(b, self._around(b, x), (taken, *order))
        known = self.batches | made
        given = [
            self._around(b, x) if not is_one else known[x] if x in known else self._numbers(b)
            for x, is_one in zip(xs, batched, strict=True)
        ]
        return batch_of(b, op, given, batched)

    def _is_at_hand(self, x: Value) -> bool:
        """Whether it is known in front of the loop, or a constant."""
        return x not in self.inside or (x.producer is not None and not x.producer.operands)

    def _around(self, b: Builder, x: Value) -> Value:
        """What is at hand, in front of the loop."""
        if x not in self.inside:
            return x
        assert x.producer is not None
        copies: dict[Value, Value] = {}
        clone_instructions(b.block, [x.producer], copies)
        return copies[x]

    def _is_whole(self, x: Value, axis: int) -> bool:
        return self.lower == 0 and x.tensor.shape[axis] == self.rounds

    def _numbers(self, b: Builder) -> Value:
        """The numbers of all rounds."""
        numbers = b.emit(Iota((self.rounds,), 0, I64))
        if self.lower == 0:
            return numbers
        return b.emit(Add(), numbers, constant(b, scalar(I64), self.lower))

    def _leave_row(self, product: Instruction, rows: Value) -> None:
        """Put the row of this round in the place of the product."""
        body = self.loop.regions[0].entry
        b = Builder(Block())
        b.location = product.location
        number = self.index
        if self.lower:
            number = b.emit(Subtract(), number, constant(b, scalar(I64), self.lower))
        row = b.emit(Gather(0, Bounds.INSIDE), rows, number)
        place = body.instructions.index(product)
        product.replace_with(row)
        body.instructions[place : place + 1] = b.block.instructions
        self.indexed.add(row)
        self.inside.add(row)
        self.batches[row] = rows
