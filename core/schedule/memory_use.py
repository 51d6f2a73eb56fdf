"""How much memory a call of a scheduled function takes: arguments, results, and what is planned besides.

Source: XLA's CompiledMemoryStats, for the quantities.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..analysis.call_graph import callees, cycles_callees_first
from ..compute.bodies import bodies_of
from ..ir import HEADER_BYTES, Effect, Function, Instruction, Module
from ..ir.donation import donations
from ..ir.surgery import walk
from ..kernels.access_ops import buffer_of
from ..lazy_dataclass import dataclass
from .plan import arena_bytes


@dataclass(frozen=True)
class MemoryStats:
    """Bytes of one call; `aliased` are those of results that lie where donated arguments were.

    `is_complete` says that nothing is allocated besides while it runs: there is no recursion, and no tape of a loop
    whose number of rounds is not known.
    """

    arguments: int
    results: int
    aliased: int
    temporary: int
    is_complete: bool


def memory_use(module: Module, function: Function) -> MemoryStats:
    """What a call of `function`, in stage schedule, takes: with what the functions take that it calls."""
    needed: dict[str, int] = {}
    complete: dict[str, bool] = {}
    for cycle in cycles_callees_first(module):
        for name in cycle:
            one, called = module.functions[name], callees(module.functions[name])
            if one.body is not None:
                inner = [i for body in bodies_of(one) for i in body.block.instructions]
                deepest = max((needed.get(callee, 0) for callee in called), default=0)
                own = arena_bytes(one) - HEADER_BYTES + _locals(inner)
                needed[name] = own + deepest
                # of functions of C and Python nothing is known, and nothing said
                known = called.keys().isdisjoint(cycle) and not any(map(_allocates, inner))
                complete[name] = known and all(complete.get(callee, True) for callee in called)
    results = [result.tensor.bytes for result in function.entry.terminator.operands]
    return MemoryStats(
        sum(parameter.tensor.bytes for parameter in function.parameters),
        sum(results),
        sum(results[result] for _, result in donations(function.attributes)),
        needed[function.name],
        complete[function.name],
    )


def _allocates(instruction: Instruction) -> bool:
    """Whether it allocates memory, or calls a function that only the run can tell."""
    op = instruction.op
    return op.effect is Effect.ALLOCATE or (op.effect is Effect.CALL and op.called is None)


def _locals(instructions: Sequence[Instruction]) -> int:
    """The bytes of the buffers of a kernel, which are there as long as it runs: of that which has most."""
    kernels = [i for i in instructions if i.regions and not i.op.is_structured]
    made = ([i for region in kernel.regions for i in walk(region)] for kernel in kernels)
    return max((sum(map(_local_bytes, inner)) for inner in made), default=0)


def _local_bytes(instruction: Instruction) -> int:
    if instruction.op.effect is not Effect.ALLOCATE:
        return 0
    return buffer_of(instruction.op.name, instruction.result.type).bytes
