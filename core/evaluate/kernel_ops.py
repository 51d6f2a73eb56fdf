"""Evaluates kernels: their buffers are arrays that loads and stores share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from ..ir import Instruction, Op
from ..kernels.ops import AllocateLocal, BoundedLoop, Kernel, Loop
from ..types import Array, TensorType, Type
from .machine import Machine
from .memory_ops import MachineRule

_UNWRITTEN: Final = 0x55
"""Each byte of memory that has not been written."""


def _kernel(op: Kernel, machine: Machine, at: Instruction, *operands: Array) -> Sequence[Any]:
    frame = machine.frames[-1]
    made = [_unwritten(result.tensor) for result in at.results]
    given = [np.asarray(operand).view() for operand in operands]
    for array in given:
        array.flags.writeable = False

    def leave(yielded: Sequence[Any]) -> None:
        frame.assign(at, made)

    machine.enter(frame, at.regions[0], [*given, *made, *map(_unwritten, op.using)], leave)
    return ()


def _loop(op: Loop, machine: Machine, at: Instruction, *carried: Any) -> Sequence[Any]:
    return _repeat(machine, at, op.indices, carried)


def _bounded_loop(
    op: BoundedLoop, machine: Machine, at: Instruction, first: Array, stop: Array, *carried: Any
) -> Sequence[Any]:
    indices = range(max(op.lower, int(first)), min(op.upper, int(stop)))
    return _repeat(machine, at, indices, carried)


def _repeat(
    machine: Machine, at: Instruction, of: Sequence[int], carried: Sequence[Any]
) -> Sequence[Any]:
    """Run the body of a loop for these indices."""
    frame = machine.frames[-1]
    indices = iter(of)

    def repeat_with(values: Sequence[Any]) -> None:
        index = next(indices, None)
        if index is None:
            frame.assign(at, values)
        else:
            machine.enter(frame, at.regions[0], [np.asarray(index), *values], repeat_with)

    repeat_with(carried)
    return ()


def _allocate(op: AllocateLocal, machine: Machine, at: Instruction) -> Sequence[Any]:
    return (_unwritten(op.type),)


def _unwritten(type: Type) -> Array:
    """A buffer of numbers that nobody means: a load of what was not written is seen."""
    assert isinstance(type, TensorType)
    made = np.empty(type.shape, type.dtype.numpy)
    if made.dtype == np.bool_:
        made[...] = True
    elif made.dtype.kind == "f":
        made[...] = np.nan
    else:
        made[...] = np.frombuffer(bytes([_UNWRITTEN] * made.itemsize), made.dtype)[0]
    return made


KERNEL_RULES: Final[Mapping[type[Op], MachineRule]] = {
    Kernel: _kernel,
    Loop: _loop,
    BoundedLoop: _bounded_loop,
    AllocateLocal: _allocate,
}
"""What the machine runs of kernels; all else in them computes, loads or stores by itself."""
