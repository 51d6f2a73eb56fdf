"""Schedules a module, and checks of its kernels what is true of all of them."""

from __future__ import annotations

from nnkit.core.ir import Instruction, Module
from nnkit.core.kernels.bounds import accesses_outside
from nnkit.core.kernels.dependence import dependence
from nnkit.core.kernels.loops import inside, is_loop, loop_op
from nnkit.core.kernels.ops import Kernel
from nnkit.core.schedule.plan import schedule
from nnkit.core.schedule.target import Target
from nnkit.core.text import parse_module, print_module
from nnkit.core.verify import verify


def kernels_in(module: Module, target: Target) -> list[Instruction]:
    """The kernels of a module that is scheduled here: they print, parse, and stay inside of their buffers.

    What threads share is independent.
    """
    schedule(module, target)
    verify(module)
    text = print_module(module)
    assert print_module(parse_module(text)) == text
    found = [i for i in module.functions["main"].entry.instructions if isinstance(i.op, Kernel)]
    for kernel in found:
        assert not list(accesses_outside(kernel.regions[0].entry))
        for loop in inside(kernel.regions[0].entry):
            assert not is_loop(loop) or not loop_op(loop).grain or dependence(loop) is None
    return found
