"""Scheduling: lowers stage compute to stage schedule, deciding loops, groups and buffers.

1. Have nests write pieces of concatenations in place (`concatenations`), read the one element that a sum consists of
   (`one_hot_sums`), multiply and add in one instruction (`kernels.multiply_add`), and give every output a buffer of its
   own.  Matrix products become kernels, with what is around them (`product_kernels`, `prologues`), long sums in
   parts (`long_sums`), and so do scans (`scan_kernels`) and nests over the same rows (`row_kernels`); in those that are
   left, axes are joined that are walked through as one (`collapse`), and long rows split (`long_rows`).
2. Decide the loops of each nest (`loops`).
3. Let neighbouring nests share their outermost loop (`group`), or blocks of it (`block_groups`).
   What is alone reads transposed operands by squares (`turned_reads`), takes several registers for a vector if it
   computes much (`wide_vectors`), and if it goes through much memory has that fetched ahead (`streams_ahead`).
4. Write it all down as kernels and library ops; small kernels that follow each other become one
   (`small_kernels`), and what needs much room to work in comes early (`scratch_first`).
5. Find a place for every buffer (`contraction`, `buffer_assignment`); large results that lie in no operand's place are
   written past the caches (`stream_outputs`).

Each body of a structured op goes the same way by itself, inner ones first: what they need of memory is the frame
that the block around them sets aside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..analysis import Effects
from ..analysis.liveness import erase_dead
from ..compute.bodies import Body, base_of, bodies_of
from ..compute.ops import CallAddress, MatrixProduct
from ..errors import InternalError, NNKitError, UnsupportedError
from ..ir import (
    HEADER_BYTES,
    Block,
    Builder,
    Function,
    Instruction,
    Module,
    Op,
    Placement,
    Region,
    Stage,
    Value,
)
from ..kernels.like_terms import collect_like_terms
from ..kernels.multiply_add import multiply_and_add
from ..kernels.ops import Kernel
from ..location import located
from ..ops.aggregate import Apply
from ..ops.byte_memory import BYTE_MEMORY
from ..ops.nest import Nest, Yield, is_nest
from ..ops.terminators import Return
from .arena import aligned
from .block_groups import fold_row_groups, group_in_blocks
from .buffer_assignment import (
    BlockResults,
    Scratch,
    assign_buffers,
    copy_aliased_results,
    copy_overwritten_arguments,
)
from .collapse import emit_collapsed, joined_axes
from .concatenations import write_pieces
from .contraction import contract
from .far_outputs import far_outputs
from .group import GroupedInstruction, group_nests
from .long_rows import shorten_rows
from .long_sums import divide_long_sums
from .loops import plan_loops
from .moved_buffers import moved_buffers
from .nest_kernels import write_nest_kernels
from .one_hot_sums import read_one_hot_sums
from .ops import makes_buffers
from .product_kernels import is_kernel_product, write_product_kernels
from .row_blocks import write_row_blocks
from .row_kernels import write_row_kernels
from .scan_kernels import write_scan_kernels
from .scratch_first import order_by_scratch, shared_buffers
from .small_kernels import merge_small_kernels
from .sort_kernels import write_sort_kernels
from .stream_outputs import stream_outputs
from .streams_ahead import fetch_streams
from .switches import is_enabled
from .target import Target
from .turned_reads import block_turned_reads
from .wide_vectors import widen_vectors


def schedule(module: Module, target: Target) -> None:
    """Bring every function of `module` from stage compute to stage schedule."""
    if module.stage is not Stage.COMPUTE:
        raise InternalError(f"a module in stage {module.stage.value} cannot be scheduled")
    effects = Effects(module)
    for function in module.functions.values():
        if function.body is not None:
            _schedule_function(function, target, effects)
    module.stage = Stage.SCHEDULE


def arena_bytes(function: Function) -> int:
    """Size of the arena that a scheduled function needs, the reserved head included."""
    sizes: dict[Region, int] = {}
    for body in reversed(bodies_of(function)):
        sizes[body.region] = block_bytes(body.block, sizes)
    assert function.body is not None
    return max(HEADER_BYTES, sizes[function.body])


def block_bytes(block: Block, sizes: Mapping[Region, int]) -> int:
    """How much of its arena a block uses; `sizes` has the same of the bodies inside."""
    needed = 0
    for instruction in block.instructions:
        op, placement = instruction.op, instruction.placement
        for result, place in zip(instruction.results, placement.results, strict=False):
            if place.space == "arena":
                needed = max(needed, place.offset + aligned(result.tensor.bytes))
        for place, size in zip(placement.scratch, scratch_bytes(instruction), strict=True):
            if place.space == "arena":
                needed = max(needed, place.offset + size)
        if op.is_structured:
            needed = max(needed, placement.frame + frame_bytes(instruction, sizes))
    return needed


def frame_bytes(instruction: Instruction, sizes: Mapping[Region, int]) -> int:
    """The size of the frame that the bodies of a structured instruction share."""
    return max(sizes[region] for region in instruction.regions)


def _scratch(instruction: Instruction) -> list[Scratch]:
    """The buffers that it works with; what threads of a kernel share of them may lie in an output."""
    op = instruction.op
    shared = shared_buffers(op) if isinstance(op, Kernel) else {}
    return [Scratch(size, shared.get(n)) for n, size in enumerate(scratch_bytes(instruction))]


def scratch_bytes(instruction: Instruction) -> tuple[int, ...]:
    """The sizes of the buffers that an instruction works with."""
    return tuple(map(aligned, instruction.op.scratch(instruction)))


def has_variables(function: Function) -> bool:
    """Whether scalars are variables of a function: where there is control flow, or memory is used."""
    bodies = bodies_of(function)
    return len(bodies) > 1 or any(
        isinstance(i.op, _WITH_VARIABLES) for body in bodies for i in body.block.instructions
    )


_WITH_VARIABLES: tuple[type[Op], ...] = (Apply, CallAddress, *BYTE_MEMORY)


def _schedule_function(function: Function, target: Target, effects: Effects) -> None:
    bodies = bodies_of(function)
    uses_registers = has_variables(function)
    sizes: dict[Region, int] = {}
    for body in reversed(bodies):
        _schedule_block(body, target, sizes, effects, uses_registers=uses_registers)
        sizes[body.region] = block_bytes(body.block, sizes)


def _schedule_block(
    body: Body,
    target: Target,
    sizes: Mapping[Region, int],
    effects: Effects,
    *,
    uses_registers: bool,
) -> None:
    # by what the body yields as it is, and not by copies of that
    replaced = body.replaced
    write_pieces(body.block)
    read_one_hot_sums(body.block)
    if target.fma and is_enabled("fma"):
        for nest in filter(is_nest, body.block.instructions):
            collect_like_terms(nest)
            multiply_and_add(nest)
    moves = () if body.is_condition else _moves(body)
    _take_own_outputs(body.block, replaced, moves, target)
    write_row_blocks(body.block, target)
    divide_long_sums(body.block)
    write_product_kernels(body.block, target, {x for x in replaced if x is not None})
    write_scan_kernels(body.block, target)
    write_sort_kernels(body.block, target)
    write_row_kernels(body.block, target)
    _join_axes(body.block)
    shorten_rows(body.block)
    erase_dead(body.block, effects)
    steps = [
        GroupedInstruction(i, plan_loops(i, i.op, target) if isinstance(i.op, Nest) else None)
        for i in body.block.instructions
    ]
    steps = fold_row_groups(group_in_blocks(group_nests(steps, target), target))
    steps = fetch_streams(widen_vectors(block_turned_reads(steps, target), target), target)
    contracted = contract(steps)
    far = far_outputs(steps, contracted, target)
    steps = merge_small_kernels(write_nest_kernels(steps, target, contracted, far), target)
    results = _returned(body, replaced)
    instructions = order_by_scratch(
        [step.instruction for step in steps],
        [base_of(value) for value in results.values],
        [base for base in results.replaced if base is not None],
    )
    frames = {i: frame_bytes(i, sizes) for i in instructions if i.op.is_structured}
    plan = assign_buffers(
        instructions,
        results,
        frames,
        {i: _scratch(i) for i in instructions},
        reserved=0 if body.owner else HEADER_BYTES,
        uses_registers=uses_registers,
    )
    body.block.instructions = instructions
    stream_outputs(instructions, plan.places, results.replaced)
    for instruction in instructions:
        places = [plan.places.get(result) for result in instruction.results]
        instruction.placement = Placement(
            tuple(p for p in places if p is not None) if makes_buffers(instruction) else (),
            plan.scratch[instruction],
            plan.frames.get(instruction, 0),
        )


def _returned(body: Body, replaced: Sequence[Value | None]) -> BlockResults:
    """What leaves the block, and the arguments that lie there meanwhile."""
    if body.is_condition:
        return BlockResults(())
    return BlockResults(body.block.terminator.operands, replaced, _moves(body))


def _moves(body: Body) -> Sequence[int]:
    """The buffers that the values of a loop's body belong in; nothing for other bodies."""
    return moved_buffers(body.owner) if body.owner is not None and body.owner.op.is_loop else ()


def _join_axes(block: Block) -> None:
    """Join axes of nests that are walked through as one."""
    if not is_enabled("collapse"):
        return
    old, block.instructions = block.instructions, []
    b = Builder(block)
    for instruction in old:
        match instruction.op:
            case Nest() as nest if joined := joined_axes(instruction, nest):
                b.location = instruction.location
                instruction.replace_with(*emit_collapsed(b, instruction, nest, joined))
            case _:
                block.instructions.append(instruction)


def _take_own_outputs(
    block: Block, replaced: Sequence[Value | None], moves: Sequence[int], target: Target
) -> None:
    """Copy results where they would share a buffer, and find what the target has no library for."""
    old, block.instructions = block.instructions, []
    b = Builder(block)
    for instruction in old:
        b.location = instruction.location
        operands = instruction.operands
        match instruction.op:
            case Return():
                instruction.set_operands(copy_aliased_results(b, operands, replaced))
            case Yield():
                instruction.set_operands(copy_overwritten_arguments(b, operands, replaced, moves))
            case MatrixProduct() as product if not is_kernel_product(instruction, target):
                instruction.replace_with(product.nest(b, *operands))
                continue
            case op if op.calls_lapack and not target.has_lapack:
                raise _without_lapack(instruction)
            case _:
                pass
        block.instructions.append(instruction)


def _without_lapack(instruction: Instruction) -> NNKitError:
    name = instruction.op.name
    message = f"{name} needs a LAPACK, that which NumPy has loaded, and there is none to be called"
    return located(
        UnsupportedError(f"{message}: NumPy as PyPI has it brings one, compiled files have none"),
        instruction.location,
    )
