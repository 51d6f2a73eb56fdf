"""Lowers tensor ops to loop nests: stage optimized to stage compute.

1. Each op's `nest` rule writes its loops; what a rule emits goes through the same way until only nests,
   library ops, literals and aliases (`shapeCast`) are left.
2. A `dot` that the BLAS computes faster than a nest becomes a `matrixProduct`, with transposes of its
   operands, and one of its result, folded into its flags.
3. A literal of one repeated element becomes a nest that writes it, which fusion turns into a constant of the
   readers.
4. Instructions whose results nobody reads are dropped, unless they have effects.

Each body of an `if`, `while` or `for` goes the same way by itself, so all of them must be closed (pass
`isolate`).
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, replace

from ..errors import InternalError
from ..ir import Block, Builder, Extern, Function, Instruction, Module, Op, Region, Stage, Value
from ..ir.surgery import drop_operands
from ..ops.contraction import Dot
from ..ops.literal import Literal
from ..ops.movement import Transpose
from ..ops.nest import Output, build_nest, identity_access
from ..types import TensorType, scalar, written
from .bodies import bodies_of, effectful_regions, erase_dead, unsupported
from .products import ProductOperand, emit_product, library_product, transposed_product

_ROUNDS = 8
"""How deep rules may build on each other's ops before we suspect that they go round in circles."""


def generate_compute(module: Module) -> None:
    """Bring every function of `module` from stage optimized to stage compute.

    Bodies must be closed, and values be tensors (`words.lower_memory`).
    Raises: UnsupportedError for ops that have no nests, and for values that are not tensors.
    """
    if module.stage is not Stage.OPTIMIZED:
        raise InternalError(f"nests are generated from stage optimized, not {module.stage.value}")
    for function in module.functions.values():
        if function.body is not None:
            _generate_function(function, module)
    module.stage = Stage.COMPUTE


def _generate_function(function: Function, module: Module) -> None:
    for type in (*function.type.parameters, *function.type.results):
        if not isinstance(type, TensorType):
            raise unsupported(f"{written('@', function.name)} takes or returns a {type}", None)
    bodies = bodies_of(function)
    effectful = effectful_regions(bodies)
    for body in bodies:
        for instruction in body.block.instructions:
            callee = instruction.op.called
            if callee is not None and not _is_there(module.functions[callee]):
                what = f"a call of {written('@', callee)}, which has no body"
                raise unsupported(what, instruction.location)
        body.region.blocks = [_generate_block(body.block, function.name, effectful)]


def _is_there(function: Function) -> bool:
    return function.body is not None or isinstance(function.declaration, Extern)


def _generate_block(block: Block, name: str, effectful: Set[Region]) -> Block:
    for _ in range(_ROUNDS):
        old, block = block, _Generation.over(block).b.block
        drop_operands(old.instructions)
        erase_dead(block, effectful)
        if all(_is_compute(instruction.op) for instruction in block.instructions):
            return block
    raise InternalError(f"{written('@', name)}: the nest rules of its ops go round in circles")


@dataclass
class _Generation:
    """One round of lowering over a block: each op is replaced by what its rule emits."""

    b: Builder
    known: dict[Value, Value]

    @classmethod
    def over(cls, block: Block) -> _Generation:
        known = {argument: argument for argument in block.arguments}
        made = cls(Builder(Block(list(block.arguments), name=block.name)), known)
        for instruction in block.instructions:
            made.b.location = instruction.location
            made.visit(instruction)
        return made

    def visit(self, instruction: Instruction) -> None:
        match instruction.op:
            case Literal() as literal if _is_repeated(literal):
                self.replace(instruction, _fill(self.b, literal))
            case Dot() if (sides := library_product(instruction)) is not None:
                self.product(instruction, *sides)
            case Transpose() if (sides := self.transposed(instruction)) is not None:
                self.product(instruction, *sides)
            case op if _is_compute(op):
                self.keep(instruction)
            case op:
                value = op.nest(self.b, *self.operands(instruction))
                if value is None:
                    raise unsupported(op.name, instruction.location)
                self.replace(instruction, value)

    def operands(self, instruction: Instruction) -> list[Value]:
        """The new operands, all of them tensors."""
        for operand in instruction.operands:
            if not isinstance(operand.type, TensorType):
                what = f"{instruction.op.name} of a {operand.type}"
                raise unsupported(what, instruction.location)
        return [self.known[operand] for operand in instruction.operands]

    def keep(self, instruction: Instruction) -> None:
        """Copy an instruction unchanged."""
        for result in instruction.results:
            if not isinstance(result.type, TensorType):
                what = f"{instruction.op.name}, which makes a {result.type}"
                raise unsupported(what, instruction.location)
        operands = self.operands(instruction)
        results = self.b.emit_many(instruction.op, operands, instruction.regions)
        self.known.update(zip(instruction.results, results, strict=True))

    def replace(self, instruction: Instruction, value: Value) -> None:
        if value.type != instruction.result.type:
            raise InternalError(
                f"the nest of {instruction.op.name} makes {value.type}, not {instruction.result.type}"
            )
        self.known[instruction.result] = value

    def product(self, instruction: Instruction, a: ProductOperand, b: ProductOperand) -> None:
        """Replace `instruction` by a library product."""
        a, b = (replace(side, value=self.known[side.value]) for side in (a, b))
        shape = instruction.result.tensor.shape
        self.replace(instruction, emit_product(self.b, a, b, shape))

    def transposed(self, transpose: Instruction) -> tuple[ProductOperand, ProductOperand] | None:
        """The operands of the library product that is this transpose of one that nobody else uses."""
        (x,) = transpose.operands
        if not isinstance(x.op, Dot) or not x.has_one_use:
            return None
        return transposed_product(transpose)


def _is_compute(op: Op) -> bool:
    return Stage.COMPUTE in op.stages and not (isinstance(op, Literal) and _is_repeated(op))


def _is_repeated(literal: Literal) -> bool:
    return literal.is_splat and literal.type.size != 1


def _fill(b: Builder, literal: Literal) -> Value:
    type = literal.type
    one = Literal(scalar(type.dtype), literal.data)
    output = Output(type, identity_access(type.shape))
    return build_nest(b, type.shape, [], [output], lambda body, _, __: [body.emit(one)])[0]
