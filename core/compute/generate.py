"""From stage optimizable to stage compute: every tensor op becomes loop nests.

1. Each op's `nest` rule writes its loops; what a rule emits goes through the same way until only nests,
   library ops, literals and aliases (`shapeCast`) are left.
2. A `dot` that the BLAS computes faster than a nest becomes a `matrixProduct`, with transposes of its
   operands, and one of its result, folded into its flags.
3. A literal of one repeated element becomes a nest that writes it, which fusion turns into a constant of the
   readers.
4. Instructions whose results nobody reads are dropped.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

from ..errors import InternalError
from ..ir import Block, Builder, Function, Instruction, Module, Op, Region, Stage, Value
from ..ops.aggregate import Aggregate
from ..ops.contraction import Dot
from ..ops.literal import Literal
from ..ops.movement import ShapeCast, Transpose
from ..ops.nest import Nest, Output, build_nest, identity_access
from ..ops.scan import Scan
from ..ops.terminators import Return
from ..types import F32, F64, TensorType, scalar
from .ops import MatrixProduct, flipped

BLAS_WORK = 16 * 1024
"""Multiplications from which a product goes to the BLAS: below, its call costs more than a nest takes.

A product of two 25 × 25 matrices is just below.  Batches do not count: the BLAS is called per product.
"""

_ROUNDS = 8
"""How deep rules may build on each other's ops before we suspect that they go round in circles."""


def generate_compute(module: Module) -> None:
    """Bring every function of `module` from stage optimizable to stage compute.

    Functions must be free of calls, and hold no aggregates but the returned one.
    """
    if module.stage not in (Stage.RAW, Stage.OPTIMIZABLE):
        raise InternalError(f"a module in stage {module.stage.value} has its nests already")
    for function in module.functions.values():
        if function.body is not None:
            _generate_function(function)
    module.stage = Stage.COMPUTE


def uses_blas(a: TensorType, b: TensorType) -> bool:
    """Whether `dot` of these operands is better left to the BLAS.

    Vectors are not: such products are bound by memory, and as nests they fuse.
    """
    if a.dtype not in (F32, F64) or a.rank < 2 or b.rank < 2:
        return False
    return math.prod((*a.shape[-2:], b.shape[-1])) >= BLAS_WORK


def live_instructions(block: Block) -> list[Instruction]:
    """The instructions that the terminator depends on, in order."""
    needed: set[Value] = set()
    kept: list[Instruction] = []
    for instruction in reversed(block.instructions):
        if instruction.op.is_terminator or any(result in needed for result in instruction.results):
            needed.update(instruction.operands)
            kept.append(instruction)
    return kept[::-1]


def _generate_function(function: Function) -> None:
    block = function.entry
    for _ in range(_ROUNDS):
        round_ = _Round.over(block)
        block = round_.b.block
        block.instructions = live_instructions(block)
        if not round_.changed:
            break
    else:
        raise InternalError(f"@{function.name}: the nest rules of its ops go round in circles")
    function.body = Region([block])


@dataclass
class _Round:
    """One walk over a block that replaces each op by what its rule emits."""

    b: Builder
    known: dict[Value, Value]
    uses: Counter[Value]
    changed: bool = False

    @classmethod
    def over(cls, block: Block) -> _Round:
        uses = Counter(operand for i in block.instructions for operand in i.operands)
        known = {argument: argument for argument in block.arguments}
        made = cls(Builder(Block(list(block.arguments), name=block.name)), known, uses)
        for instruction in block.instructions:
            made.b.location = instruction.location
            made.visit(instruction)
        return made

    def visit(self, instruction: Instruction) -> None:
        operands = [self.known[operand] for operand in instruction.operands]
        match instruction.op:
            case Literal() as literal if literal.is_splat and literal.type.size != 1:
                self.replace(instruction, _fill(self.b, literal))
            case Dot() if uses_blas(*(operand.tensor for operand in instruction.operands)):
                self.replace(instruction, self.product(instruction))
            case Transpose() if (dot := self.transposed_product(instruction)) is not None:
                self.replace(instruction, self.product(dot, transposed=True))
            case op if _is_compute(op):
                results = self.b.emit_many(op, operands, instruction.regions)
                self.known.update(zip(instruction.results, results, strict=True))
            case op:
                value = op.nest(self.b, *operands)
                if value is None:
                    raise InternalError(f"{op.name} cannot be brought to stage compute")
                self.replace(instruction, value)

    def replace(self, instruction: Instruction, value: Value) -> None:
        if value.type != instruction.result.type:
            raise InternalError(
                f"the nest of {instruction.op.name} makes {value.type}, not {instruction.result.type}"
            )
        self.known[instruction.result] = value
        self.changed = True

    def transposed_product(self, transpose: Instruction) -> Instruction | None:
        """The library product that this transposes, if nobody else uses it."""
        dot = transpose.operands[0].producer
        if dot is None or not isinstance(dot.op, Dot) or self.uses[dot.result] != 1:
            return None
        library = uses_blas(*(operand.tensor for operand in dot.operands))
        return dot if library and _swaps_last(transpose) else None

    def product(self, dot: Instruction, *, transposed: bool = False) -> Value:
        """The library product of `dot`, transposed as (A·B)ᵀ = Bᵀ·Aᵀ if asked."""
        sides = [_behind_transpose(operand) for operand in dot.operands]
        if transposed:
            sides = [(value, not flag) for value, flag in reversed(sides)]
        (a, flip_a), (b, flip_b) = sides
        return self.b.emit(MatrixProduct(flip_a, flip_b), self.known[a], self.known[b])


def _is_compute(op: Op) -> bool:
    return isinstance(op, Nest | MatrixProduct | Scan | Literal | ShapeCast | Aggregate | Return)


def _behind_transpose(value: Value) -> tuple[Value, bool]:
    """The matrix that `value` transposes and true, or itself and false."""
    producer = value.producer
    if producer is not None and _swaps_last(producer):
        return producer.operands[0], True
    return value, False


def _swaps_last(instruction: Instruction) -> bool:
    """Whether this is a transpose that exchanges the last two axes and leaves the others."""
    if not isinstance(instruction.op, Transpose):
        return False
    rank = instruction.operands[0].tensor.rank
    return rank >= 2 and instruction.op.order(rank) == flipped(tuple(range(rank)), True)


def _fill(b: Builder, literal: Literal) -> Value:
    type = literal.type
    one = Literal(scalar(type.dtype), literal.data)
    output = Output(type, identity_access(type.shape))
    return build_nest(b, type.shape, [], [output], lambda body, _, __: [body.emit(one)])[0]
