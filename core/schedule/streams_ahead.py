"""Fetches what a nest goes through element by element before it is needed, if the second cache cannot hold it.

The machine follows memory that is walked through line by line, but not into the next page, nor far enough where much
is computed between two lines: a tanh of 4 MB waited for a quarter of its time.

Only nests that share no loops with others have it, as what others touch is in the nearest caches, and only those that
go through all of what is large in its order: with jumps in one tensor, that is what they wait for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from ..ir import Instruction
from ..ops.nest import Access, Affine, Bounds, Index, Output
from ..types import TensorType
from .group import GroupedInstruction
from .loops import depends_on
from .ops import Loops
from .switches import is_enabled
from .target import Target

_AHEAD: Final = 4096
"""Bytes of each tensor between what is computed and what is fetched: some µs of work, a part of the nearest cache."""

_LEAST_VECTOR: Final = 32
"""Bytes of a vector from which it pays to ask for each: a line has two of them."""

_SHARE: Final = 4
"""Parts of the second cache: a tensor that is smaller than one of so many stays there while others go through."""


def fetch_streams(steps: Sequence[GroupedInstruction], target: Target) -> list[GroupedInstruction]:
    """The same steps, with what is fetched ahead in nests that are alone."""
    if not is_enabled("prefetch"):
        return list(steps)
    return [_fetching(step, target) for step in steps]


def is_side_by_side(indices: Sequence[Index], axis: int) -> bool:
    """Whether lanes along `axis` are neighbours in the last axis of a tensor, or all the same element."""
    if not all(isinstance(index, Affine) for index in indices):
        return False
    *outer, last = [i.coefficient(axis) for i in indices if isinstance(i, Affine)] or [0]
    return not any(outer) and last in (0, 1)


def _fetching(step: GroupedInstruction, target: Target) -> GroupedInstruction:
    instruction, loops = step.instruction, step.loops
    if loops is None or loops.group >= 0 or loops.lanes == 1:
        return step
    # or a few rows are gone through by columns, one block of them after the other
    if loops.order[-1] != loops.vector and not loops.blocks:
        return step
    touched = _touched(instruction, loops)
    least = target.near_l2_bytes // _SHARE
    large = [one for one in touched if one.type.bytes >= least]
    if sum(one.type.bytes for one in large) < target.near_l2_bytes:
        return step
    streams = [one for one in large if _is_stream(one.type, one.access, loops)]
    # a column beside a matrix is gone through in order as well, but an element of it serves a row
    if not all(one in streams or _is_column(one.access, loops) for one in large):
        return step
    fetch = tuple((one.number, _AHEAD // one.type.dtype.bytes) for one in streams)
    return GroupedInstruction(instruction, replace(loops, fetch=fetch))


class _Touched(NamedTuple):
    """An operand or, behind all of these, a result, and at which elements."""

    number: int
    type: TensorType
    access: Access | Output


def _touched(instruction: Instruction, loops: Loops) -> list[_Touched]:
    types = [
        *(operand.tensor for operand in instruction.operands),
        *(o.type for o in loops.outputs),
    ]
    accesses: list[Access | Output] = [*loops.accesses, *loops.outputs]
    return [_Touched(n, *both) for n, both in enumerate(zip(types, accesses, strict=True))]


def _is_stream(type: TensorType, access: Access | Output, loops: Loops) -> bool:
    """Whether the loops go through a tensor in the order of its elements, by vectors along its last axis."""
    if access.bounds is not Bounds.INSIDE or loops.lanes * type.dtype.bytes < _LEAST_VECTOR:
        return False
    moving = _moving(access, loops)
    # what comes from the last row to the first lies before what is read, and the machine follows it
    if any(isinstance(i, Affine) and min(k for _, k in i.terms) < 0 for i in moving):
        return False
    # behind a short part at an index lies another one, which a loop around may have come from
    if len(moving) < len(access.indices) and loops.points * type.dtype.bytes < _AHEAD:
        return False
    return _walked(access, loops) == _axes(loops) and is_side_by_side(moving, loops.vector)


def _is_column(access: Access | Output, loops: Loops) -> bool:
    """Whether the loops go through a tensor in the order of its elements, and stay at each for the inner ones."""
    if access.bounds is not Bounds.INSIDE:
        return False
    walked, axes = _walked(access, loops), _axes(loops)
    return 0 < len(walked) < len(axes) and walked == axes[: len(walked)]


def _axes(loops: Loops) -> list[int]:
    return [axis for axis in dict.fromkeys(loops.order) if loops.extents[axis] > 1]


def _moving(access: Access | Output, loops: Loops) -> list[Index]:
    """The indices that the loops change: of a part of a tensor, an index that is read may say which one."""
    axes = _axes(loops)
    return [i for i in access.indices if any(depends_on(loops, i, axis) for axis in axes)]


def _walked(access: Access | Output, loops: Loops) -> list[int]:
    """The axes of the loops that the indices of a tensor depend on, from its first index to its last."""
    axes = _axes(loops)
    return [axis for index in access.indices for axis in axes if depends_on(loops, index, axis)]
