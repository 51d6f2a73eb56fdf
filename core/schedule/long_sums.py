"""Divides the sums of matrix products that are long: into parts, each a matrix, which are added up afterwards.

    %p = matrixProduct %a, %b of 1000 parts 80        80 × m × n
    %c = nest … of %p … add                           m × n

A part reads rows of both operands that stay in the nearer caches.  Threads share the parts of matrices that are too
small to be shared, and what rounding does grows with the length of one.

Source: blocks of k, as of Goto & van de Geijn 2008, "Anatomy of high-performance matrix multiplication"; here as an
axis of the result, so that blocks are independent of each other.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ..compute.ops import MatrixProduct
from ..ir import Block, Builder, Instruction, Value
from ..kernels.products import is_product
from ..ops.arithmetic import Add
from ..ops.combinator import Combinator
from ..ops.reduction import Reduce
from .ops import sizes_of
from .replace_each import replace_each

LONG: Final = 4 * 1024
"""Products of a sum that is not divided, at most, if parts of it would not be longer."""

LONGEST_PART: Final = 64 * 1024
"""Products of a part at most: its error grows with a 512th of them."""

LEAST_PART: Final = 1024
"""Products of a part at least: with half of them small matrices gain little, and with twice as many they lose."""

_OF_PARTS: Final = 4
"""How many times as large as all parts the operands are at least: what parts take of memory, and of time."""

_ALIGNED: Final = 16
"""Elements that the length of a part is a multiple of, for rows to begin at cache lines."""


def divide_long_sums(block: Block) -> None:
    """Replace the products of a block whose sums are long; those of one row are read once, and stay."""
    replace_each(block, lambda b, one: _divided(b, one) if is_product(one) else None)


def _divided(b: Builder, product: Instruction[MatrixProduct]) -> Value | None:
    op, (x, y) = product.op, product.operands
    m, n, k = sizes_of(op, x.tensor, y.tensor)
    longest = min(max(LEAST_PART, _OF_PARTS * m * n // (m + n)), LONGEST_PART)
    if m == 1 or k <= max(LONG, longest) or not op.is_whole:
        return None
    parts, length = _parts(k, longest)
    made = b.emit(replace(op, length=length, parts=parts), x, y)
    total = Reduce(Combinator.ADD, (0,)).nest(b, made)
    if parts * length == k:
        return total
    rest = b.emit(replace(op, first=parts * length), x, y)
    return Add().nest(b, total, rest)


def _parts(k: int, longest: int) -> tuple[int, int]:
    """How many parts of which length a sum has; equal ones, or a rest is left that is shorter."""
    count = -(-k // longest)
    for parts in range(count, 2 * count):
        if k % (parts * _ALIGNED) == 0:
            return parts, k // parts
    length = -(-k // (count * _ALIGNED)) * _ALIGNED
    return k // length, length
