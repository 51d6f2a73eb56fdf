"""From stage compute to stage schedule: every loop, group and buffer decided.

1. Give every output a buffer of its own, and join axes that are walked through as one (`collapse`).
2. Decide the loops of each nest (`loops`).
3. Let neighbouring nests share their outermost loop (`group`).
4. Find a place for every buffer (`memory`).
5. Write it all down as `Loops`, `Gemm` and library ops with places.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..compute.generate import live_instructions
from ..compute.ops import MatrixProduct
from ..errors import InternalError
from ..ir import Block, Builder, Function, Instruction, Module, Op, Region, Stage, Value
from ..ops.aggregate import Aggregate
from ..ops.literal import Literal
from ..ops.movement import ShapeCast
from ..ops.nest import Nest
from ..ops.scan import Scan
from ..ops.terminators import Return
from .arena import RESERVED, aligned
from .collapse import emit_collapsed
from .group import Step, group_nests
from .loops import plan_loops
from .memory import own_outputs, plan_memory
from .ops import Gemm, Loops, Place, ScheduledScan
from .target import Target


def schedule(module: Module, target: Target) -> None:
    """Bring every function of `module` from stage compute to stage schedule."""
    if module.stage is not Stage.COMPUTE:
        raise InternalError(f"a module in stage {module.stage.value} cannot be scheduled")
    for function in module.functions.values():
        if function.body is not None:
            _schedule_function(function, target)
    module.stage = Stage.SCHEDULE


def arena_bytes(function: Function) -> int:
    """Size of the arena that a scheduled function needs, the reserved head included."""
    needed = RESERVED
    for instruction in function.entry.instructions:
        for result, place in zip(instruction.results, places_of(instruction.op), strict=False):
            if place.space == "arena":
                needed = max(needed, place.offset + aligned(result.tensor.bytes))
    return needed


def places_of(op: Op) -> tuple[Place, ...]:
    """Where the results of a scheduled op lie; nothing for aliases and literals."""
    match op:
        case Loops():
            return op.places
        case Gemm() | ScheduledScan():
            return (op.place,)
        case _:
            return ()


def returned_values(block: Block) -> tuple[Value, ...]:
    """The tensors that the function returns, one by one."""
    operands = block.terminator.operands
    if operands and operands[0].producer and isinstance(operands[0].producer.op, Aggregate):
        return operands[0].producer.operands
    return operands


def _schedule_function(function: Function, target: Target) -> None:
    block = _with_own_outputs(function.entry, target)
    steps = [
        Step(i, plan_loops(i, i.op, target) if isinstance(i.op, Nest) else None)
        for i in block.instructions
    ]
    steps = group_nests(steps, target)
    instructions = [step.instruction for step in steps]
    groups = [step.group for step in steps]
    places = plan_memory(instructions, groups, returned_values(block))
    function.body = Region([_write_down(block, steps, places)])


def _with_own_outputs(block: Block, target: Target) -> Block:
    """The same program on fresh instructions, its results copied where they would share a buffer."""
    b = Builder(Block(list(block.arguments), name=block.name))
    known = {argument: argument for argument in block.arguments}
    for instruction in block.instructions:
        b.location = instruction.location
        operands = [known[operand] for operand in instruction.operands]
        match instruction.op:
            case Return() if instruction.operands:
                _return(b, instruction, operands[0])
            case MatrixProduct() as product if not target.has_blas:
                known[instruction.result] = product.nest(b, *operands)
            case op:
                if isinstance(op, Nest):
                    results = emit_collapsed(b, instruction, op, operands)
                else:
                    results = b.emit_many(op, operands)
                known.update(zip(instruction.results, results, strict=True))
    b.block.instructions = live_instructions(b.block)
    return b.block


def _return(b: Builder, instruction: Instruction, value: Value) -> None:
    aggregate = value.producer
    if aggregate is not None and isinstance(aggregate.op, Aggregate):
        b.block.instructions.remove(aggregate)
        value = b.emit(aggregate.op, *own_outputs(b, aggregate.operands))
    else:
        value = own_outputs(b, [value])[0]
    b.emit_many(instruction.op, [value])


def _write_down(block: Block, steps: Sequence[Step], places: dict[Value, Place]) -> Block:
    b = Builder(Block(list(block.arguments), name=block.name))
    known = {argument: argument for argument in block.arguments}
    for step in steps:
        instruction = step.instruction
        b.location = instruction.location
        op = _scheduled(step, [places.get(result) for result in instruction.results])
        operands = [known[operand] for operand in instruction.operands]
        results = b.emit_many(op, operands, instruction.regions)
        known.update(zip(instruction.results, results, strict=True))
    return b.block


def _scheduled(step: Step, found: Sequence[Place | None]) -> Op:
    places = tuple(place for place in found if place is not None)
    plan = step.plan
    match step.instruction.op:
        case Nest(extents, accesses, outputs) if plan is not None:
            return Loops(
                extents,
                accesses,
                outputs,
                places,
                plan.order,
                plan.vector,
                plan.lanes,
                plan.accumulators,
                step.group,
            )
        case MatrixProduct(transpose_a, transpose_b):
            return Gemm(places[0], transpose_a, transpose_b)
        case Scan(combinator, axis, reverse, exclusive):
            return ScheduledScan(combinator, axis, reverse, exclusive, places[0])
        case Literal() | ShapeCast() | Aggregate() | Return():
            return step.instruction.op
        case op:
            raise InternalError(f"{op.name} cannot stand in stage compute")
