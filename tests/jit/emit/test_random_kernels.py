"""Random kernels, compiled, do what the evaluator does: bounds that are computed, conditions, checks and copies."""

from __future__ import annotations

import numpy as np
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from nnkit.core.ir import Instruction
from nnkit.core.ir.surgery import make_instruction
from nnkit.core.kernels.access_ops import buffer_of
from nnkit.core.kernels.build import KernelBuilder
from nnkit.core.kernels.guarded_ops import FillBuffer
from nnkit.core.kernels.loops import apply_op
from nnkit.core.ops.literal import splat
from nnkit.core.types import F32, TensorType, scalar
from tests.core.kernels.kernel_programs import Program, module_of, random_kernel

from .running import CheckFailed, compare, run


@given(st.integers(0, 2**32 - 1))
@settings(phases=[Phase.generate])  # seeds do not shrink
def test_random_kernels(seed: int) -> None:
    program = random_kernel(seed)
    while " = exp " in program.drawn:  # which each computes in its own way
        seed += 1
        program = random_kernel(seed)
    write_everything(program)
    function = program.module.functions["main"]
    wanted = program.run()
    try:
        found = run(function, program.arguments)
    except CheckFailed as failure:
        assert str(failure.error) == wanted, program
        return
    assert not isinstance(wanted, str), program
    compare(function, wanted, found)


def write_everything(program: Program) -> None:
    """Have a kernel begin with ones in all of its results: what it leaves holds anything."""
    written: list[Instruction] = []
    for buffer in program.block.arguments[len(program.arguments) :]:
        one = apply_op(splat(scalar(buffer_of("fill", buffer.type).dtype), 1))
        written += [one, make_instruction(FillBuffer(), (buffer, one.result), ())]
    program.block.instructions[:0] = written


def test_a_result_may_be_copied_to_another() -> None:
    """Which is no update of an operand, as other copies are."""
    type = TensorType((5,), F32)
    build = KernelBuilder([type], [type, type])
    first, second = build.outputs
    build.copy(build.operands[0], first)
    build.copy(first, second)
    function = module_of(build).functions["main"]
    x = np.arange(5, dtype=np.float32)
    compare(function, [x, x], run(function, [x]))
