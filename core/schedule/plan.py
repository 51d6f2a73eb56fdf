"""From stage compute to stage schedule: every loop, group and buffer decided.

1. Give every output a buffer of its own, and join axes that are walked through as one (`collapse`).
2. Decide the loops of each nest (`loops`).
3. Let neighbouring nests share their outermost loop (`group`).
4. Find a place for every buffer (`memory`).
5. Write it all down as `Loops`, `Gemm` and library ops with places.

Each body of a structured op goes the same way by itself, inner ones first: what they need of memory is the frame
that the block around them sets aside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from ..compute.bodies import Body, bodies_of, effectful_regions, live_instructions
from ..compute.ops import Call, CallAddress, MatrixProduct
from ..errors import InternalError
from ..ir import Block, Builder, Function, Instruction, Module, Op, Region, Stage, Value
from ..ops.aggregate import Aggregate
from ..ops.bytes import (
    BYTES,
    AddressOf,
    AllocateBytes,
    CheckAddress,
    FreeBytes,
    FunctionAddress,
    MoveBytes,
    ReadBytes,
    StopIf,
    WriteBytes,
)
from ..ops.control import For, If, While
from ..ops.flows import Structured
from ..ops.literal import Literal
from ..ops.movement import ShapeCast
from ..ops.nest import Nest, Yield
from ..ops.scan import Scan
from ..ops.terminators import Return
from .arena import RESERVED, aligned
from .collapse import emit_collapsed
from .group import Step, group_nests
from .loops import plan_loops
from .memory import MemoryPlan, Returned, own_outputs, plan_memory, without_exchanges
from .ops import (
    Gemm,
    Loops,
    Place,
    ScheduledAddressOf,
    ScheduledAllocateBytes,
    ScheduledCall,
    ScheduledCallAddress,
    ScheduledFor,
    ScheduledFunctionAddress,
    ScheduledIf,
    ScheduledReadBytes,
    ScheduledScan,
    ScheduledWhile,
    accumulated_sums,
    compensated_outputs,
    is_folded,
    sizes_of,
)
from .sums import product_chunk, scan_block, scattered_sums
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
    sizes: dict[Region, int] = {}
    for body in reversed(bodies_of(function)):
        sizes[body.region] = block_bytes(body.block, sizes)
    assert function.body is not None
    return max(RESERVED, sizes[function.body])


def block_bytes(block: Block, sizes: Mapping[Region, int]) -> int:
    """How much of its arena a block uses; `sizes` has the same of the bodies inside."""
    needed = 0
    for instruction in block.instructions:
        made = zip(instruction.results, places_of(instruction.op), strict=False)
        if isinstance(instruction.op, Loops):
            corrected = compensated_outputs(instruction.op)
            op = instruction.op
            times = 2 if is_folded(op.order, op.blocks) else 1
            for number, place in zip(corrected, op.corrections, strict=True):
                size = aligned(instruction.results[number].tensor.bytes)
                size *= 1 if number in op.scattered else times
                needed = max(needed, place.offset + size)
        for result, place in made:
            if place.space == "arena":
                needed = max(needed, place.offset + aligned(result.tensor.bytes))
        if isinstance(instruction.op, Gemm):
            m, n, _ = sizes_of(instruction.op, *(x.tensor for x in instruction.operands))
            size = aligned(m * n * instruction.result.tensor.dtype.bytes)
            for place in instruction.op.corrections:
                needed = max(needed, place.offset + 2 * size)
        if isinstance(instruction.op, ScheduledIf | ScheduledWhile | ScheduledFor):
            needed = max(needed, instruction.op.frame + frame_bytes(instruction, sizes))
    return needed


def frame_bytes(instruction: Instruction, sizes: Mapping[Region, int]) -> int:
    """The size of the frame that the bodies of a structured instruction share."""
    return max(sizes[region] for region in instruction.regions)


def places_of(op: Op) -> tuple[Place, ...]:
    """Where the results of a scheduled op lie; nothing for aliases and literals."""
    match op:
        case Loops() | ScheduledCall() | ScheduledIf() | ScheduledWhile() | ScheduledFor():
            return op.places
        case ScheduledCallAddress():
            return op.places
        case Gemm() | ScheduledScan():
            return (op.place,)
        case ScheduledReadBytes() | ScheduledAllocateBytes():
            return (op.place,)
        case ScheduledAddressOf() | ScheduledFunctionAddress():
            return (op.place,)
        case _:
            return ()


def has_variables(function: Function) -> bool:
    """Whether scalars are variables of a function: where there is control flow, or memory is used."""
    bodies = bodies_of(function)
    return len(bodies) > 1 or any(
        isinstance(i.op, _WITH_VARIABLES) for body in bodies for i in body.block.instructions
    )


_WITH_VARIABLES: tuple[type[Op], ...] = (Call, CallAddress, *BYTES)


def returned_values(block: Block) -> tuple[Value, ...]:
    """The tensors that the function returns, one by one."""
    return returned_by(block.terminator)


def returned_by(terminator: Instruction) -> tuple[Value, ...]:
    """The tensors that a `return` returns."""
    operands = terminator.operands
    if operands and operands[0].producer and isinstance(operands[0].producer.op, Aggregate):
        return operands[0].producer.operands
    return operands


def _schedule_function(function: Function, target: Target) -> None:
    bodies = bodies_of(function)
    effectful = effectful_regions(bodies)
    uses_registers = has_variables(function)
    sizes: dict[Region, int] = {}
    for body in reversed(bodies):
        block = _schedule_block(body, target, sizes, effectful, uses_registers=uses_registers)
        body.region.blocks = [block]
        sizes[body.region] = block_bytes(block, sizes)


def _schedule_block(
    body: Body,
    target: Target,
    sizes: Mapping[Region, int],
    effectful: Set[Region],
    *,
    uses_registers: bool,
) -> Block:
    block = _with_own_outputs(body, target)
    block.instructions = live_instructions(block, effectful)
    steps = [
        Step(i, plan_loops(i, i.op, target) if isinstance(i.op, Nest) else None)
        for i in block.instructions
    ]
    steps = group_nests(steps, target)
    instructions = [step.instruction for step in steps]
    frames = {i: frame_bytes(i, sizes) for i in instructions if isinstance(i.op, Structured)}
    plan = plan_memory(
        instructions,
        [step.group for step in steps],
        _returned(body, block),
        frames,
        {step.instruction: _corrections(step) for step in steps},
        reserved=0 if body.owner else RESERVED,
        uses_registers=uses_registers,
    )
    return _write_down(block, steps, plan)


def _corrections(step: Step) -> tuple[int, ...]:
    """The bytes that results of a nest need for what rounding cuts off from them."""
    nest, plan = step.instruction.op, step.plan
    if isinstance(nest, MatrixProduct):
        m, n, _ = sizes_of(nest, *(operand.tensor for operand in step.instruction.operands))
        dtype = step.instruction.result.tensor.dtype
        return (2 * aligned(m * n * dtype.bytes),) if _product_chunk(step.instruction) else ()
    if not isinstance(nest, Nest) or plan is None:
        return ()
    times = 2 if is_folded(plan.order, plan.blocks) else 1
    rows = accumulated_sums(nest, plan.order) if plan.compensated else ()
    return tuple(
        (times if number in rows else 1) * aligned(nest.outputs[number].type.bytes)
        for number in (*rows, *scattered_sums(step.instruction, nest))
    )


def _product_chunk(instruction: Instruction) -> int:
    op = instruction.op
    assert isinstance(op, MatrixProduct)
    return product_chunk(*sizes_of(op, *(operand.tensor for operand in instruction.operands)))


def _returned(body: Body, block: Block) -> Returned:
    """What leaves the block, and the arguments that lie there meanwhile."""
    if body.owner is None:
        return Returned(returned_values(block))
    if body.is_condition:
        return Returned(())
    return Returned(block.terminator.operands, body.replaced)


def _with_own_outputs(body: Body, target: Target) -> Block:
    """The same program on fresh instructions, its results copied where they would share a buffer."""
    block = body.block
    b = Builder(Block(list(block.arguments), name=block.name))
    known = {argument: argument for argument in block.arguments}
    for instruction in block.instructions:
        b.location = instruction.location
        operands = [known[operand] for operand in instruction.operands]
        match instruction.op:
            case Return() if instruction.operands:
                _return(b, instruction, operands[0])
            case Yield():
                b.emit_many(instruction.op, without_exchanges(b, operands, body.replaced))
            case MatrixProduct() as product if not target.has_blas:
                known[instruction.result] = product.nest(b, *operands)
            case op:
                if isinstance(op, Nest):
                    results = emit_collapsed(b, instruction, op, operands)
                else:
                    results = b.emit_many(op, operands, instruction.regions)
                known.update(zip(instruction.results, results, strict=True))
    return b.block


def _return(b: Builder, instruction: Instruction, value: Value) -> None:
    aggregate = value.producer
    if aggregate is not None and isinstance(aggregate.op, Aggregate):
        b.block.instructions.remove(aggregate)
        value = b.emit(aggregate.op, *own_outputs(b, aggregate.operands))
    else:
        value = own_outputs(b, [value])[0]
    b.emit_many(instruction.op, [value])


def _write_down(block: Block, steps: Sequence[Step], plan: MemoryPlan) -> Block:
    b = Builder(Block(list(block.arguments), name=block.name))
    known = {argument: argument for argument in block.arguments}
    for step in steps:
        instruction = step.instruction
        b.location = instruction.location
        op = _scheduled(step, plan)
        operands = [known[operand] for operand in instruction.operands]
        results = b.emit_many(op, operands, instruction.regions)
        known.update(zip(instruction.results, results, strict=True))
    return b.block


def _scheduled(step: Step, memory: MemoryPlan) -> Op:
    found = [memory.places.get(result) for result in step.instruction.results]
    frame = memory.frames.get(step.instruction, 0)
    places = tuple(place for place in found if place is not None)
    plan = step.plan
    match step.instruction.op:
        case Nest(extents, accesses, outputs) as nest if plan is not None:
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
                plan.blocks,
                plan.compensated,
                memory.corrections.get(step.instruction, ()),
                scattered_sums(step.instruction, nest),
            )
        case MatrixProduct(transpose_a, transpose_b):
            corrections = memory.corrections.get(step.instruction, ())
            chunk = _product_chunk(step.instruction) if corrections else 0
            return Gemm(places[0], transpose_a, transpose_b, chunk, corrections)
        case Scan(combinator, axis, reverse, exclusive):
            block = scan_block(combinator, step.instruction.result.tensor.dtype)
            return ScheduledScan(combinator, axis, reverse, exclusive, places[0], block)
        case Call(callee, type):
            return ScheduledCall(callee, type, places)
        case CallAddress(type):
            return ScheduledCallAddress(type, places)
        case ReadBytes(offset, type):
            return ScheduledReadBytes(offset, type, places[0])
        case AllocateBytes(owner):
            return ScheduledAllocateBytes(owner, places[0])
        case AddressOf(symbol, bytes):
            return ScheduledAddressOf(symbol, bytes, places[0])
        case FunctionAddress(symbol, type):
            return ScheduledFunctionAddress(symbol, type, places[0])
        case WriteBytes() | MoveBytes() | FreeBytes() | CheckAddress() | StopIf():
            return step.instruction.op
        case If(results, inputs):
            return ScheduledIf(results, inputs, places, frame)
        case While(inputs):
            return ScheduledWhile(inputs, places, frame)
        case For(stacked, inputs):
            return ScheduledFor(stacked, inputs, places, frame)
        case Literal() | ShapeCast() | Aggregate() | Return() | Yield():
            return step.instruction.op
        case op:
            raise InternalError(f"{op.name} cannot stand in stage compute")
