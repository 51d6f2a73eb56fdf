"""Writes sorts as kernels: short rows by counting, long ones by the digits of keys.

What a row is sorted in are buffers that the kernel works with; threads share rows, and each has buffers of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from math import prod
from typing import Final, TypeGuard

from ..ir import Block, Builder, Instruction, Value
from ..kernels.build import KernelBuilder
from ..kernels.indices import IndexSum
from ..kernels.sort_keys import key_bits
from ..ops.sorting import ArgSort
from ..types import I64, TensorType
from .replace_each import replace_each
from .shared_loops import share_rows
from .sort_by_counting import sort_by_counting
from .sort_by_digits import HALF, sort_by_digits
from .sorted_row import SortedRow
from .target import Target

_DIGIT, _WIDE_DIGIT = 8, 11
"""Bits of a digit of shorter and of longer rows: the places of 8 are made in no time, 11 have a pass less to go for f32
and two for f64.  10⁶ f32 take 16 and 11 ms, f64 80 and 62, 512 f32 3.3 and 5.7 µs (docs/decisions/0050)."""

_LONG, _LONG_OF_WIDE = 128, 256
"""Rows from here on go by digits, those of wide keys from the second: 127 f32 take 0.7 µs by counting and 128 by digits
1.0, 127 f64 1.3 and 256 either way 5."""

_LONGER: Final = 4096
"""Rows from here on go by wide digits."""


def write_sort_kernels(block: Block, target: Target) -> None:
    """Replace the sorts of a block by kernels."""
    replace_each(block, lambda b, one: write_sort(b, one, target) if _is_sort(one) else None)


def digit_of(type: TensorType, axis: int) -> int:
    """Bits of the digits to sort rows along an axis by; 0 for counting."""
    extent, bits = type.shape[axis], key_bits(type.dtype)
    if extent < (_LONG if bits <= HALF else _LONG_OF_WIDE):
        return 0
    return min(_DIGIT if extent < _LONGER else _WIDE_DIGIT, bits)


def write_sort(b: Builder, sort: Instruction[ArgSort], target: Target) -> Value:
    """Append the kernel for a sort; its result."""
    (x,) = sort.operands
    type, axis = x.tensor, sort.op.axis
    outer, extent, inner = prod(type.shape[:axis]), type.shape[axis], prod(type.shape[axis + 1 :])
    build = KernelBuilder([type], [type.with_dtype(I64)])
    grains: Sequence[int] = (0, 0)
    if type.size:
        seen = type.with_shape((outer, extent, inner))
        source = build.reshape(build.operands[0], seen)
        result = build.reshape(build.outputs[0], seen.with_dtype(I64))
        grains = share_rows((outer, inner), sort.op.nanoseconds(sort))
        with ExitStack() as loops:
            rows = _entered(loops, build, outer, grains[0])
            columns = _entered(loops, build, inner, grains[1])
            row = SortedRow(build, source, result, rows, columns, sort.op.descending)
            if digit := digit_of(type, axis):
                sort_by_digits(row, digit)
            else:
                sort_by_counting(row)
    blocks = [-(-n // grain) for n, grain in zip((outer, inner), grains, strict=True) if grain]
    (made,) = build.kernel(b, x, copies=min([target.threads, *blocks]) if blocks else 0)
    return made


def _entered(loops: ExitStack, build: KernelBuilder, count: int, grain: int) -> IndexSum:
    """The index of a loop that stays open; 0 where there is nothing to go through."""
    if count == 1:
        return IndexSum(0, {})
    return IndexSum(0, {loops.enter_context(build.loop(count, grain=grain)).index: 1})


def _is_sort(instruction: Instruction) -> TypeGuard[Instruction[ArgSort]]:
    return isinstance(instruction.op, ArgSort)
