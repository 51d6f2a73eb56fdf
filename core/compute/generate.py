"""Lowers tensor ops to loop nests: stage optimized to stage compute.

1. Each op's `nest` rule writes its loops, from the last instruction to the first; what a rule emits goes through
   the same way until only nests, library ops, literals and aliases (`shapeCast`) are left.
2. A `dot` that a kernel computes faster than a nest becomes a `matrixProduct`, with transposes of its
   operands, and one of its result, folded into its flags.
3. A `concatenate` stays, to have its pieces written in place (`schedule.concatenations`), unless it has few pieces
   and only nests read it, each element once: they select it, and it need not be stored.
4. A literal of one repeated element becomes a nest that writes it, which fusion turns into a constant of the
   readers.
5. Products of f16 and bf16 that are summed, as `dot` and `convolve` do, are those of f32.
6. Instructions whose results nobody reads by then are erased, unless they have effects.

Each body of an `if`, `while` or `for` goes the same way by itself, so all of them must be closed (pass
`isolate`).
"""

from __future__ import annotations

from typing import Final

from ..analysis import Effects
from ..analysis.liveness import is_dead
from ..errors import InternalError
from ..ir import Block, Builder, Extern, Function, Instruction, Module, Stage, Value
from ..ops.casting import DataTypeCast
from ..ops.contraction import Dot
from ..ops.forms import Bilinear
from ..ops.literal import Literal
from ..ops.movement import Transpose
from ..ops.nest import Output, build_nest, identity_access, is_nest
from ..ops.slicing import is_concatenation
from ..types import F32, DType, TensorType, scalar, written
from .bodies import bodies_of, unsupported
from .product_transposes import split_transposes
from .products import (
    ProductOperand,
    emit_product,
    is_dot,
    product_operands,
    transposed_product,
)

_SELECTED: Final = 4
"""Pieces of a concatenation that a nest selects from, in place of reading them where they were written.

The sum of 10⁶ numbers takes 0.3 of the time so in 2 pieces, and 0.5 in 4; 2x + 1 takes 0.7 and 0.6; with more,
what it takes to select grows, and what it saves does not."""

_DEPTH = 8
"""How deep rules may build on each other's ops before we suspect that they go round in circles."""


def generate_compute(module: Module) -> None:
    """Bring every function of `module` from stage optimized to stage compute.

    Bodies must be closed, and values be tensors (`words.lower_memory`).
    Raises: UnsupportedError for ops that have no nests, and for values that are not tensors.
    """
    if module.stage is not Stage.OPTIMIZED:
        raise InternalError(f"nests are generated from stage optimized, not {module.stage.value}")
    effects = Effects(module)
    for function in module.functions.values():
        if function.body is not None:
            _generate_function(function, module, effects)
    module.stage = Stage.COMPUTE


def _generate_function(function: Function, module: Module, effects: Effects) -> None:
    for type in (*function.type.parameters, *function.type.results):
        if not isinstance(type, TensorType):
            raise unsupported(f"{written('@', function.name)} takes or returns a {type}", None)
    bodies = bodies_of(function)
    for body in bodies:
        for instruction in body.block.instructions:
            _refuse(instruction, module)
    for body in reversed(bodies):  # inner ones first: what is dead goes with its bodies
        _generate_block(body.block, function.name, effects)


def _refuse(instruction: Instruction, module: Module) -> None:
    """Raises: UnsupportedError for what only the evaluator can do."""
    op = instruction.op
    for result in instruction.results:
        if not isinstance(result.type, TensorType):
            raise unsupported(f"{op.name}, which makes a {result.type}", instruction.location)
    callee = None if op.called is None else module.functions[op.called]
    if callee is not None and not (callee.body or isinstance(callee.declaration, Extern)):
        what = f"a call of {written('@', callee.name)}, which has no body"
        raise unsupported(what, instruction.location)


def _generate_block(block: Block, name: str, effects: Effects) -> None:
    """Lower the instructions of a block, and what their rules emit, from the last to the first.

    So an instruction is met when all its users are lowered: what they have folded, and what is dead, never is.
    """
    split_transposes(block)
    lowered: list[Instruction] = []
    pending = [(instruction, _DEPTH) for instruction in block.instructions]
    b = Builder()
    emitted = b.block.instructions
    while pending:
        instruction, depth = pending.pop()
        if is_dead(instruction, effects):
            instruction.erase()
            continue
        b.location = instruction.location
        value = _lowered(b, instruction)
        if value is None:
            lowered.append(instruction)
        elif value.type != instruction.result.type:
            was = f"{instruction.op.name} makes {value.type}, not {instruction.result.type}"
            raise InternalError(f"the nest of {was}")
        elif depth == 0:
            raise InternalError(
                f"{written('@', name)}: the nest rules of its ops go round in circles"
            )
        else:
            instruction.replace_with(value)
            pending += [(one, depth - 1) for one in emitted]
            emitted.clear()
    block.instructions = lowered[::-1]


def _lowered(b: Builder, instruction: Instruction) -> Value | None:
    """The value that its rule emits for the result of an instruction; None for what stays in stage compute."""
    match instruction.op:
        case Literal() as literal if _is_repeated(literal):
            return _fill(b, literal)
        case Bilinear() if _is_narrow(instruction.result.tensor.dtype):
            return _widened(b, instruction)
        case Dot() if (sides := product_operands(instruction)) is not None:
            return emit_product(b, *sides, instruction.result.tensor.shape)
        case Transpose() if (sides := _transposed(instruction)) is not None:
            return emit_product(b, *sides, instruction.result.tensor.shape)
        case op if Stage.COMPUTE in op.stages and not _is_selected(instruction):
            return None
        case op:
            value = op.nest(b, *instruction.operands)
            if value is None:
                raise unsupported(op.name, instruction.location)
            return value


def _is_narrow(dtype: DType) -> bool:
    return dtype.is_float and dtype.bits < F32.bits


def _widened(b: Builder, instruction: Instruction) -> Value:
    """Sums of products of narrow floats, in f32: only what they come to is rounded, and no product overflows."""
    wide = [b.emit(DataTypeCast(F32), operand) for operand in instruction.operands]
    return b.emit(DataTypeCast(instruction.result.tensor.dtype), b.emit(instruction.op, *wide))


def _is_selected(concatenate: Instruction) -> bool:
    """Whether the pieces are few, and nests, which read each element once, are the only readers."""
    if not is_concatenation(concatenate):
        return False
    whole = concatenate.result
    if sum(x.tensor.size > 0 for x in concatenate.operands) > _SELECTED:
        return False
    points, pending = 0, [whole]
    while pending:
        for user in pending.pop().uses:
            if user.op.is_view:
                pending += user.results
            elif is_nest(user):
                points += user.op.points
            else:
                return False
    return points <= whole.tensor.size


def _transposed(transpose: Instruction) -> tuple[ProductOperand, ProductOperand] | None:
    """The operands of the library product that is this transpose of one that nobody else uses."""
    (x,) = transpose.operands
    if not is_dot(x.producer) or not x.has_one_use:
        return None
    return transposed_product(transpose)


def _is_repeated(literal: Literal) -> bool:
    return literal.is_splat and literal.type.size != 1


def _fill(b: Builder, literal: Literal) -> Value:
    type = literal.type
    one = Literal(scalar(type.dtype), literal.data)
    output = Output(type, identity_access(type.shape))
    return build_nest(b, type.shape, [], [output], lambda body, _, __: [body.emit(one)])[0]
