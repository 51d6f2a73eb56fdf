"""Chooses which products are computed with the nests over their rows, by blocks of rows (`kernels.row_blocks`).

A group of nests over rows (`row_kernels`) takes the products along that make what it alone reads, row by row, and those
that read rows of what it makes: attention is one kernel, and no tensor of all scores is ever there.

1. It pays where what is not stored any more is too large for the nearer caches, and a block of at least eight rows of
   all that is local fits a part of them.
2. A product over rows, as in gradients, is added up block by block.
3. Threads share blocks of rows or matrices of the batch, in runs that have buffers of their own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Final

from ..compute.bodies import base_of
from ..compute.ops import MatrixProduct
from ..ir import Block, Builder, Instruction, Value
from ..kernels.errors import IllegalRewrite
from ..kernels.products import is_product
from ..kernels.row_blocks import RowBlockPlan, VectorUnit, build_row_blocks, long_axes
from ..kernels.rows import RowPlan
from ..types import Shape
from .product_kernels import is_kernel_product
from .product_plans import product_nanoseconds
from .row_gathers import separate_row_gathers
from .row_kernels import RowForms, RowGroup, group_of_rows, is_reduction_of_rows, with_views
from .shared_loops import LEAST_JOB
from .switches import is_enabled
from .target import Target

_LEAST_SAVED: Final = 256 * 1024
"""Bytes that are not stored any more: with less, all of it lies in a nearer cache anyway."""

_LEAST_ROWS: Final = 8
"""Rows of a block: the other operand of a product is read once for each."""

_MOST_ROWS: Final = 64
"""More gain nothing: tiles have a dozen rows."""

_MOST_RUNS: Final = 16
"""Parts that threads share, each with buffers of its own."""

_RUNS_OF_CORE: Final = 4
"""Runs of blocks for each core, if none has sums: how many there are changes no bit, and each takes room."""

_FEW_RUNS: Final = 4
"""Runs that are enough for some threads, where each has sums of its own.  Else those of blocks have as many blocks, so
that their buffers stay in a cache."""


def write_row_blocks(block: Block, target: Target) -> None:
    """Replace products of a block, and the nests over their rows, by kernels."""
    if not (is_enabled("rows") and is_enabled("row-blocks")):
        return
    products = [i for i in block.instructions if _may_go_by_rows(i, target)]
    lengths = {n for one in products for n in _row_shapes(one)}
    forms = RowForms()
    seeds = {
        i.op.extents[:-1]
        for i in (block.instructions if lengths else ())
        if is_reduction_of_rows(i, forms) and i.op.extents[-1] in lengths
    }
    if not seeds:
        return
    separate_row_gathers(block, seeds)
    forms, position = RowForms(), 0
    while position < len(block.instructions):
        one = block.instructions[position]
        if is_reduction_of_rows(one, forms) and one.op.extents[-1] in lengths:
            group = group_of_rows(block.instructions, position, forms, target)
            if group is not None:
                position = _write_group(group, block, target, position)
        position += 1


def _may_go_by_rows(instruction: Instruction, target: Target) -> bool:
    """Whether it is a product that tiles compute, with a large operand or result."""
    if not is_kernel_product(instruction, target):
        return False
    left, result = instruction.operands[0].tensor, instruction.result.tensor
    return max(left.bytes, result.bytes) >= _LEAST_SAVED // 2


def _row_shapes(product: Instruction) -> tuple[int, int]:
    """The lengths of rows that it may read or make."""
    return product.operands[0].tensor.shape[-1], product.result.tensor.shape[-1]


def _plan(group: RowGroup, block: Block, target: Target) -> RowBlockPlan | None:
    """The plan of a group with its products; None if it takes none along, or it does not pay."""
    rows = group.rows
    if math.prod(rows[-1:]) < _LEAST_ROWS:
        return None
    before, behind = list(_makers(group, target)), list(_readers(group, block, target))
    taken: set[Instruction] = {*before, *behind}
    if not taken:
        return None
    nests = group.plan(target, _ANY)
    local = {product.result: product.result for product in before}
    for result in nests.outputs:
        one, number = group.made[result]
        if one.has_rows(number) and not group.is_read_by_others(result, besides=taken):
            local[result] = result
    if sum(value.tensor.bytes for value in local) < _LEAST_SAVED:
        return None
    _share_rooms(local, nests)
    bytes_of_row = sum(x.tensor.bytes // math.prod(rows) for x, y in local.items() if x is y)
    most = min(_MOST_ROWS, _room((*before, *behind), target) // max(bytes_of_row, 1))
    if most < _LEAST_ROWS:
        return None
    work = sum(product_nanoseconds(one, target) for one in (*before, *behind))
    has_sums = any(product.op.transpose_a for product in behind)
    enough = (
        _FEW_RUNS if has_sums else min(_MOST_RUNS, max(_FEW_RUNS, _RUNS_OF_CORE * target.cores))
    )
    size, runs, shares_blocks = _runs(rows, most, work, enough)
    return RowBlockPlan(rows, nests, before, behind, local, size, runs, shares_blocks)


def _room(products: Iterable[Instruction[MatrixProduct]], target: Target) -> int:
    """Bytes for what is local to a block: more where the matrices that all blocks touch come from far anyway.

    With rows of 2048 and 4096, the gradient of attention takes 0.64 of the time with all of the cache, not a quarter.
    """
    whole = 0
    for product in products:
        matrix = (product.result if product.op.transpose_a else product.operands[1]).tensor
        whole += math.prod(matrix.shape[-2:]) * matrix.dtype.bytes
    return target.l2_bytes // (4 if whole <= target.l2_bytes else 1)


_ANY: Final = 1 << 40
"""Bytes for rows of a kernel's own, which lie in the arena."""


def _makers(group: RowGroup, target: Target) -> Iterator[Instruction[MatrixProduct]]:
    """Products whose results the group alone reads, row by row."""
    operands = [base_of(x) for one in group.members for x in one.nest.operands]
    for value in dict.fromkeys(operands):
        product = value.producer
        if product is None or not is_product(product) or value in group.made:
            continue
        reads = list(group.reads(value))
        if (
            not product.op.transpose_a
            and product.op.is_whole
            and is_kernel_product(product, target)
            and _goes_by(value.tensor.shape, group.rows)
            and all(one.reads_each_row(number) is not None for _, one, number in reads)
            and not group.is_read_by_others(value)
        ):
            yield product


def _readers(group: RowGroup, block: Block, target: Target) -> Iterator[Instruction[MatrixProduct]]:
    """Products that read rows of what the group makes, and nothing else that is made of it."""
    early = {*block.instructions[: group.start], *group.before}
    for made, (one, _) in group.made.items():
        for value in with_views(made):
            for product in dict.fromkeys(value.uses):
                if not is_product(product) or not product.op.is_whole:
                    continue
                if not is_kernel_product(product, target):
                    continue
                left, right = product.operands
                other = right if left is value else left
                is_known = other.producer is None or other.producer in early
                if not is_known or left is right or value.tensor.shape[-1] != one.length:
                    continue
                if product.op.transpose_a:
                    shapes = {long_axes(x.tensor.shape[:-1]) for x in (left, right)}
                    is_taken = not product.op.transpose_b and shapes == {long_axes(group.rows)}
                else:
                    is_taken = left is value and _goes_by(value.tensor.shape, group.rows)
                if is_taken:
                    yield product


def _goes_by(shape: Shape, rows: Shape) -> bool:
    """Whether a tensor of this shape has a row for each: with the same axes, or as one matrix."""
    return long_axes(shape[:-1]) in (long_axes(rows), (math.prod(rows),))


def _share_rooms(local: dict[Value, Value], nests: RowPlan) -> None:
    """Let what is made of a product's rows lie in their place, where each element is read before it is written."""
    taken: set[Value] = set()
    for operand, result in nests.overwriting:
        place = base_of(operand)
        if local.get(place) is place and local.get(result) is result and place not in taken:
            local[result] = place
            taken.add(place)


def _runs(rows: Shape, most: int, work: float, enough: int) -> tuple[int, int, bool]:
    """How many rows a block has, how many runs threads share, and whether they are of blocks."""
    count = rows[-1]
    size = count if count <= most else _size(count, most)
    blocks = count // size
    batch = next((extent for extent in rows[:-1] if extent > 1), 1)
    matrices = math.prod(rows[:-1])
    if work < 2 * LEAST_JOB or not is_enabled("threads"):
        return size, 1, False
    if batch < _FEW_RUNS and work / matrices >= _FEW_RUNS * LEAST_JOB:
        return size, _divisor(blocks, min(enough, max(_FEW_RUNS, blocks // _FEW_RUNS))), True
    return size, _divisor(batch, _MOST_RUNS), False


def _size(count: int, most: int) -> int:
    """Rows of a block: few are left over, and blocks can be shared by many."""
    sizes = range(max(_LEAST_ROWS, most // 2), most + 1)
    return min(sizes, key=lambda size: (count % size > 0, -_divisor(count // size, 8), -size))


def _divisor(count: int, most: int) -> int:
    """The most runs of equal length."""
    return max(n for n in range(1, most + 1) if count % n == 0)


def _write_group(group: RowGroup, block: Block, target: Target, position: int) -> int:
    """Put a kernel where the group stood, if it pays; the position of what was done last."""
    plan = _plan(group, block, target)
    if plan is None:
        return position
    unit = VectorUnit(
        target.vector_bytes, target.registers, target.fma, unrolls=is_enabled("unroll")
    )
    b = Builder(Block(), group.members[0].nest.location)
    try:
        made = build_row_blocks(b, plan, unit)
    except IllegalRewrite:  # a sum of so many numbers is in no loops that bound its rounding
        return position
    for result, value in zip(plan.outputs(), made, strict=True):
        result.replace_with(value)
    gone: set[Instruction] = {*plan.products}
    gone |= {i for x in plan.local for y in with_views(x) if (i := y.producer) and i.op.is_view}
    for one in (*(member.nest for member in group.members), *gone):
        one.drop_all_references()
    kernel = b.block.instructions
    before = [i for i in (*block.instructions[: group.start], *group.before) if i not in gone]
    behind = [i for i in (*group.behind, *block.instructions[group.stop :]) if i not in gone]
    block.instructions[:] = [*before, *kernel, *behind]
    return len(before) + len(kernel) - 1
