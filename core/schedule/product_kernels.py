"""Chooses which matrix products are kernels, and which nests are computed in their loops.

A product of a row and few columns, or of few rows and a transposed matrix, is a nest, others are kernels.  A nest that
alone reads the result of one is its *epilogue* (`epilogues`); one that makes an operand for it alone, its *prologue*
(`prologues`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from ..compute.bodies import base_of
from ..compute.ops import MatrixProduct
from ..ir import Block, Builder, Instruction, Value
from ..kernels.ops import Kernel
from ..kernels.prefetch import fetch_before_loops
from ..kernels.products import Epilogue, build_product, is_product
from ..kernels.tiles import tile_once
from ..ops.movement import reshaped
from ..types import F32, F64, TensorType
from .epilogues import depth_of, epilogue_of, is_staged, read_as_matrices, registers_of
from .long_sums import LONGEST_PART
from .ops import is_one_product, sizes_of
from .product_plans import LEAST_ROWS, plan_product
from .prologues import has_prologue, inline_prologues, turn_prologues
from .switches import is_enabled
from .target import Target

_LEAST_SUMS: Final = 2
"""Vectors of columns from which a vector times a matrix is a kernel: with fewer, each step waits for the one before.

A nest, which sums several rows at a time, takes 1.0 to 2.4 times as long from 2 vectors on, and 0.7 with 20,000 rows of
33 columns."""


def write_product_kernels(block: Block, target: Target, replaced: Collection[Value]) -> None:
    """Replace the matrix products of a block, with their epilogues, by kernels.

    `replaced` are the arguments whose buffers results may lie in.
    """
    products = [i for i in block.instructions if is_product(i) and is_kernel_product(i, target)]
    read_as_matrices(block, products, target)
    waiting: dict[Instruction, tuple[Instruction, Epilogue]] = {}
    written: set[Instruction] = set()
    old, block.instructions = block.instructions, []
    positions = {instruction: n for n, instruction in enumerate(old)}
    b = Builder(block)

    def write(product: Instruction, epilogue: Epilogue | None) -> None:
        made = _write(b, product, epilogue, target)
        (product if epilogue is None else epilogue.nest).replace_with(*made)
        if epilogue is not None:
            product.drop_all_references()
        inline_prologues(b, made, target)

    for instruction in old:
        b.location = instruction.location
        if is_product(instruction) and is_kernel_product(instruction, target):
            turn_prologues(b, instruction, target)
            found = epilogue_of(instruction, target)
            if found is None or found.nest in waiting:
                write(instruction, None)
            elif _comes_early(found, positions[instruction], positions, replaced):
                b.location = found.nest.location
                write(instruction, found)
                written.add(found.nest)
            else:
                waiting[found.nest] = instruction, found
        elif instruction in waiting:
            write(*waiting[instruction])
        elif instruction not in written:
            block.instructions.append(instruction)


def _comes_early(
    epilogue: Epilogue,
    position: int,
    positions: Mapping[Instruction, int],
    replaced: Collection[Value],
) -> bool:
    """Whether a product at a position is to be a kernel there, and not where its epilogue is.

    So that its operands may be given up: those of the gradients of a network, say, whose weights are all updated at the
    end.  What is made has to have a place of its own, as results have, and not that of something that others read.
    """
    nest = epilogue.nest

    def is_later(one: Instruction | None) -> bool:
        return one is not None and positions.get(one, -1) > position

    others = [x for n, x in enumerate(nest.operands) if n != epilogue.position]
    kept = (base for x in others if (base := base_of(x)) in replaced or base.producer is not None)
    return (
        all(user.op.is_terminator for result in nest.results for user in result.uses)
        and not any(is_later(x.producer) for x in others)
        and not any(is_later(user) for x in kept for user in x.uses if user is not nest)
    )


def is_kernel_product(product: Instruction, target: Target) -> bool:
    """Whether a kernel computes it."""
    if not is_product(product):
        return False
    if not is_enabled("kernels"):
        return False
    a, b = (operand.tensor for operand in product.operands)
    m, n, k = sizes_of(product.op, a, b)
    return (
        a.dtype in (F32, F64)
        and n > 1
        and (m >= LEAST_ROWS or not product.op.transpose_b)
        and (m > 1 or _is_wide(b, target) or has_prologue(product.operands[1], target))
        and 0 < k <= (LONGEST_PART if m == 1 else k)
        and product.result.tensor.size > 0
    )


def _is_wide(matrix: TensorType, target: Target) -> bool:
    """Whether the product of a row and a matrix is one of tiles: all columns of each of its rows, or a large part."""
    return matrix.shape[-1] >= _LEAST_SUMS * target.lanes(matrix.dtype.bytes)


def _write(
    b: Builder, product: Instruction, epilogue: Epilogue | None, target: Target
) -> Sequence[Value]:
    """The kernel of a product; a batch of matrices below each other times one matrix is one tall product."""
    op = product.op
    assert isinstance(op, MatrixProduct)
    x, y = product.operands
    shape = product.result.tensor.shape
    if epilogue is None and len(shape) > 2 and is_one_product(op, y.tensor):
        m, *_ = sizes_of(op, x.tensor, y.tensor)
        x = reshaped(b, x, (m, x.tensor.shape[-1]))
        y = reshaped(b, y, y.tensor.shape[-2:])
        (made,) = _write_tiled(b, op, (x, y), None, target)
        return [reshaped(b, made, shape)]
    return _write_tiled(b, op, (x, y), epilogue, target)


def _write_tiled(
    b: Builder,
    op: MatrixProduct,
    operands: tuple[Value, Value],
    epilogue: Epilogue | None,
    target: Target,
) -> Sequence[Value]:
    """The kernel with its loops scheduled."""
    x, y = (operand.tensor for operand in operands)
    matrices = [extent for extent in op.infer(x, y).shape[:-2] if extent > 1]
    reduces = epilogue is not None and bool(epilogue.reduced)
    plan = plan_product(op, x, y, target, whole_rows=reduces)
    results = build_product(
        b,
        op,
        operands,
        epilogue,
        by_rows=not plan.block_columns,
        has_fma=target.fma,
        staged=epilogue is not None and is_staged(epilogue.nest, plan, target),
    )
    kernel: Instruction[Any] = b.block.instructions[-1]
    plan.share(kernel)
    tile_once(
        kernel,
        registers_of(y, target),
        len(matrices),
        plan.packed,
        depth=depth_of(op, x, y),
        block_columns=plan.block_columns,
        turned=plan.turned,
    )
    _limit_copies(kernel, target.threads)
    if is_enabled("prefetch"):
        _fetch_operands(kernel, target)
    return results


def _limit_copies(kernel: Instruction[Kernel], threads: int) -> None:
    """Have no more copies of what threads have for themselves than there are threads."""
    op = kernel.op
    kernel.op = replace(op, private=tuple(min(copies, threads) for copies in op.private))


def _fetch_operands(kernel: Instruction[Kernel], target: Target) -> None:
    """Have large tensors that what follows a product reads fetched while a tile is summed."""
    entry = kernel.regions[0].entry
    _, _, *others = zip(entry.arguments, kernel.operands, strict=False)
    far = [buffer for buffer, operand in others if operand.tensor.bytes >= target.near_l2_bytes]
    fetch_before_loops(entry, far)
