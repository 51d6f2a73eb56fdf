"""Matrix chains: x·(w·v) costs less than (x·w)·v when v is narrow.

1. A *chain* is a tree of products whose inner results nobody else uses; its leaves, left to right, are its
   factors.  A product that is used twice is a factor of both chains, so nothing is computed twice.
2. The cheapest order of products of each chain is found by dynamic programming over its intervals; the cost
   of a product is its multiplications, batches included.
3. The chain is built anew if that saves multiplications, at the place of its last product.

What may be associated: matrices and batches of matrices, and a vector at either end of a chain of matrices.
A vector in the middle is a row for one side and a column for the other, so a chain ends there.

Source: Godbole 1973, "On efficient computation of matrix chain products".
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import ClassVar, NamedTuple

from ..ir import Block, Builder, Instruction, Value
from ..lazy_dataclass import dataclass
from ..ops import Dot
from ..types import broadcast_shapes
from .reassociate import Reassociate, Reassociation

LONGEST = 64
"""Factors per chain: the search is cubic, so a longer chain is cut.  64 take 16 ms, 128 take 105, 256 take 0.9 s."""


@dataclass(frozen=True)
class MatrixChain(Reassociate):
    """Multiplies chains of matrices in the order that takes the fewest multiplications.

    Without `fast_math` only chains of integers, since another order rounds differently.

    Requires: nothing.
    Preserves: every bit of integers; of floats, with `fast_math`, the result up to rounding.
    Cost: linear, and cubic in the length of a chain, of which 64 factors are looked at together.
    Source: Godbole 1973.
    """

    name: ClassVar[str] = "matrix-chain"

    def regroupings(self, block: Block) -> Mapping[Instruction, Reassociation]:
        return {
            root: partial(_build, factors=factors, splits=plan[1])
            for root, factors in self._chains(block)
            if (plan := _cheapest(factors))[0] < _multiplications(root, factors)
        }

    def _chains(self, block: Block) -> Iterator[tuple[Instruction, list[Value]]]:
        """The last product of each chain in `block`, and the chain's factors."""
        here = {result for i in block.instructions for result in i.results}
        inside: set[Instruction] = set()
        for instruction in reversed(block.instructions):
            if not isinstance(instruction.op, Dot) or instruction in inside:
                continue
            if not self.may_regroup(instruction.result):
                continue
            factors, products = _factors(instruction, here)
            # where the whole chain cannot be associated, those before its last product may be
            if len(factors) > 2 and _may_associate(factors):
                inside |= products
                yield instruction, factors


def _factors(root: Instruction, here: set[Value]) -> tuple[list[Value], set[Instruction]]:
    """The leaves of the tree of products under `root`, left to right, and its inner products."""
    leaves: list[Value] = []
    inner: set[Instruction] = set()
    left, right = root.operands
    pending = [_Part(right, is_last=True), _Part(left, is_first=True)]
    while pending:
        part = pending.pop()
        value, producer = part.value, part.value.producer
        if (
            producer is not None
            and isinstance(producer.op, Dot)
            and value in here
            and value.has_one_use
            and part.is_in_chain(producer)
            and len(inner) < LONGEST - 2
        ):
            inner.add(producer)
            left, right = producer.operands
            pending += [_Part(right, is_last=part.is_last), _Part(left, is_first=part.is_first)]
        else:
            leaves.append(value)
    return leaves, inner


class _Part(NamedTuple):
    """What a chain is made of, and whether the chain begins or ends with it."""

    value: Value
    is_first: bool = False
    is_last: bool = False

    def is_in_chain(self, product: Instruction) -> bool:
        """Whether the factors of this product are factors of the chain."""
        match tuple(x.tensor.rank for x in product.operands):
            case (1, 2):
                return self.is_first
            case (2, 1):
                return self.is_last
            case ranks:
                return min(ranks) >= 2


def _may_associate(factors: Sequence[Value]) -> bool:
    """Whether the order of products is free: a vector times a batch has another rank than its factors."""
    ranks = [factor.tensor.rank for factor in factors]
    return min(ranks) >= 2 or max(ranks) <= 2


def _cheapest(factors: Sequence[Value]) -> tuple[int, dict[tuple[int, int], int]]:
    """The least number of multiplications, and where each interval of factors is split for it."""
    count = len(factors)
    rows = [f.tensor.shape[-2] if f.tensor.rank > 1 else 1 for f in factors]
    columns = [f.tensor.shape[-1] for f in factors]
    if factors[-1].tensor.rank == 1:
        columns[-1] = 1
    batches = {(k, k): f.tensor.shape[:-2] for k, f in enumerate(factors)}
    cost = {(k, k): 0 for k in range(count)}
    splits: dict[tuple[int, int], int] = {}
    for length in range(1, count):
        for first in range(count - length):
            last = first + length
            batches[first, last] = broadcast_shapes((batches[first, last - 1], batches[last, last]))
            products = math.prod(batches[first, last]) * rows[first] * columns[last]
            cost[first, last], splits[first, last] = min(
                (cost[first, k] + cost[k + 1, last] + products * columns[k], k)
                for k in range(first, last)
            )
    return cost[0, count - 1], splits


def _multiplications(root: Instruction, factors: Sequence[Value]) -> int:
    """What the chain costs as it is written."""
    total = 0
    leaves = set(factors)
    pending: list[Instruction] = [root]
    while pending:
        product = pending.pop()
        u, _ = product.operands
        total += product.result.tensor.size * u.tensor.shape[-1]
        pending.extend(
            x.producer for x in product.operands if x not in leaves and x.producer is not None
        )
    return total


def _build(b: Builder, factors: Sequence[Value], splits: dict[tuple[int, int], int]) -> Value:
    """The products in the order that `splits` says, without recursion."""
    made: dict[tuple[int, int], Value] = {(k, k): f for k, f in enumerate(factors)}
    pending = [(0, len(factors) - 1)]
    while pending:
        first, last = pending[-1]
        split = splits.get((first, last), first)
        left, right = (first, split), (split + 1, last)
        waiting = [part for part in (right, left) if part not in made]
        if (first, last) in made or not waiting:
            pending.pop()
            if (first, last) not in made:
                made[first, last] = b.emit(Dot(), made[left], made[right])
        else:
            pending.extend(waiting)
    return made[0, len(factors) - 1]
