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

from collections import Counter
from dataclasses import dataclass, replace

from ..errors import InternalError
from ..ir import Block, Builder, Function, Instruction, Module, Op, Region, Stage, Value
from ..ops.aggregate import Aggregate
from ..ops.contraction import Dot
from ..ops.literal import Literal
from ..ops.movement import ShapeCast, Transpose
from ..ops.nest import Nest, Output, build_nest, identity_access
from ..ops.scan import Scan
from ..ops.terminators import Return
from ..types import scalar
from .ops import MatrixProduct
from .products import Side, emit_product, library_product, transposed_product

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
        block = _Round.over(block).b.block
        block.instructions = live_instructions(block)
        if all(_is_compute(instruction.op) for instruction in block.instructions):
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
            case Literal() as literal if _is_repeated(literal):
                self.replace(instruction, _fill(self.b, literal))
            case Dot() if (sides := library_product(instruction)) is not None:
                self.product(instruction, *sides)
            case Transpose() if (sides := self.transposed(instruction)) is not None:
                self.product(instruction, *sides)
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

    def product(self, instruction: Instruction, a: Side, b: Side) -> None:
        """Replace `instruction` by a library product."""
        a, b = (replace(side, value=self.known[side.value]) for side in (a, b))
        shape = instruction.result.tensor.shape
        self.replace(instruction, emit_product(self.b, a, b, shape))

    def transposed(self, transpose: Instruction) -> tuple[Side, Side] | None:
        """The operands of the library product that is this transpose of one that nobody else uses."""
        (x,) = transpose.operands
        if not isinstance(x.op, Dot) or self.uses[x] != 1:
            return None
        return transposed_product(transpose)


def _is_compute(op: Op) -> bool:
    legal = isinstance(op, Nest | MatrixProduct | Scan | Literal | ShapeCast | Aggregate | Return)
    return legal and not (isinstance(op, Literal) and _is_repeated(op))


def _is_repeated(literal: Literal) -> bool:
    return literal.is_splat and literal.type.size != 1


def _fill(b: Builder, literal: Literal) -> Value:
    type = literal.type
    one = Literal(scalar(type.dtype), literal.data)
    output = Output(type, identity_access(type.shape))
    return build_nest(b, type.shape, [], [output], lambda body, _, __: [body.emit(one)])[0]
