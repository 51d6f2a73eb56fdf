"""Loops of kernels as rewrites see them: their parts, copies of their bodies, and what takes their place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ..ir.instruction import Block, Instruction, Op, Region, Value
from ..ir.surgery import clone_region, make_instruction, with_bodies
from ..ops.nest import Yield
from ..types import I64, scalar
from .errors import IllegalRewrite
from .ops import BoundedLoop, CountedLoop, Loop


def loop_op(loop: Instruction) -> Loop:
    """The op of a loop.  Raises: IllegalRewrite when it is none."""
    if not isinstance(loop.op, Loop):
        raise IllegalRewrite(f"{loop.op.name} is not a loop")
    return loop.op


def is_loop(instruction: Instruction) -> bool:
    """Whether it is a loop whose iterations are known: what rewrites change."""
    return isinstance(instruction.op, Loop)


def counted_op(loop: Instruction) -> CountedLoop:
    """The op of a loop, whose bounds may be computed.  Raises: IllegalRewrite when it is none."""
    if not isinstance(loop.op, CountedLoop):
        raise IllegalRewrite(f"{loop.op.name} is not a loop")
    return loop.op


def require_known_bounds(block: Block) -> None:
    """Raises: IllegalRewrite when there is a loop in a block whose bounds are computed, whether it runs or not."""
    for instruction in with_bodies(block.instructions):
        if isinstance(instruction.op, BoundedLoop):
            raise IllegalRewrite("the bounds of a loop inside are computed")


def body_of(loop: Instruction) -> Block:
    """The body: its arguments are the index and what is carried."""
    return loop.regions[0].entry


def loops_of(block: Block) -> list[Instruction]:
    """The loops that stand in a block itself, in order."""
    return [instruction for instruction in block.instructions if instruction.regions]


def position_of(block: Block, instruction: Instruction) -> int:
    """Where it stands in the block.  Raises: IllegalRewrite when it does not."""
    for position, other in enumerate(block.instructions):
        if other is instruction:
            return position
    raise IllegalRewrite(f"the {instruction.op.name} does not stand in this block")


def make_index(name: str | None = None) -> Value:
    """An index for the body of a loop yet to be made."""
    return Value(scalar(I64), name)


def make_loop(
    op: CountedLoop, operands: Iterable[Value], body: Block, like: Sequence[Value] = ()
) -> Instruction:
    """A loop over a finished body, in no block yet; its results are named as `like`."""
    return make_instruction(op, operands, like, regions=(Region([body]),))


def make_yield(values: Iterable[Value] = ()) -> Instruction:
    """The end of a body, in no block yet."""
    return Instruction(Yield(), tuple(values), ())


def apply_op(op: Op, *operands: Value, name: str | None = None) -> Instruction:
    """An op of one result on these operands, in no block yet."""
    type = op.infer(*[operand.type for operand in operands])
    assert not isinstance(type, tuple)
    return make_instruction(op, operands, (Value(type, name),))


def copy_block(body: Block) -> Block:
    """A copy with arguments of its own; what it uses from outside is shared."""
    return clone_region(Region([body]), {}).entry


def copies_like(values: Iterable[Value]) -> list[Value]:
    """New values of the same types and names, for the arguments of another body."""
    return [Value(value.type, value.name) for value in values]


def take_apart(body: Block) -> tuple[list[Instruction], list[Value]]:
    """The instructions of a body and what it yields; the body is not used any more."""
    *instructions, end = body.instructions
    yielded = list(end.operands)
    end.set_operands(())
    return instructions, yielded


def substitute(block: Block, position: int, new: Sequence[Instruction]) -> Instruction:
    """Put instructions where another stands, which is dropped without its bodies."""
    old = block.instructions[position]
    block.instructions[position : position + 1] = new
    old.set_operands(())
    return old


def replace_results(old: Instruction, values: Iterable[Value]) -> None:
    """Use these in place of the results of an instruction that is no longer there."""
    for result, value in zip(old.results, values, strict=True):
        result.replace_with(value)


def inside(block: Block) -> Iterator[Instruction]:
    """Every instruction of a block and of the loops in it that run, in order of the text."""
    pending = [iter(block.instructions)]
    while pending:
        instruction = next(pending[-1], None)
        if instruction is None:
            pending.pop()
            continue
        yield instruction
        if instruction.regions and counted_op(instruction).count:
            pending.append(iter(body_of(instruction).instructions))
