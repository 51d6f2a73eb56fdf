"""Whether a module keeps the rules of the IR.  All violations are collected, each with its instruction.

What is checked
---------------
Module      1. every struct that a type names is defined in the module, and the same everywhere
Declaration 2. a gradient's primal exists and has that gradient; the declared type is the computed one
            3. a declaration without a gradient has no meaning, so every other function has a body
Function    4. the entry's arguments are the function's parameters
            5. every block ends with a terminator and has no other
            6. the returned type is the function's
Value       7. every operand is defined before its use, in the same region or one around it
            8. no value is defined twice, and a result knows its instruction and its position
Instruction 9. the op's type rule accepts the operands and gives the results' types
           10. a call names a function of the module, with its type
           11. nests and library ops stand only in stages that have them
Nest       12. the body takes the coordinates and a scalar per operand, and uses nothing else
           13. the body consists of scalar elementwise ops and literals, and yields one scalar per output
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from .autodiff.declaration import gradient_type
from .compute.ops import MatrixProduct
from .errors import NNKitError, VerifyError
from .ir import Block, Function, Instruction, Module, Region, Stage, Value, structs_in
from .ops import Apply, Elementwise, Linear, Literal, Nest, Return, Yield
from .schedule.ops import Gemm, Loops, ScheduledScan
from .text.printer import print_instruction
from .types import I64, TensorType, Type, scalar

_FROM_COMPUTE = (Nest, MatrixProduct)
_FROM_SCHEDULE = (Loops, Gemm, ScheduledScan)


def verify(module: Module) -> None:
    """Raises: VerifyError listing every violation."""
    found = violations(module)
    if found:
        count = f"{len(found)} violation{'s' * (len(found) > 1)}"
        raise VerifyError("\n".join([f"module {module.name!r} has {count}:", *found]))


def violations(module: Module) -> list[str]:
    """Every violation, in order of the text."""
    found: list[str] = []
    for function in module.functions.values():
        checker = _Checker(module, function)
        found += [f"  @{function.name}: {message}" for message in checker.check()]
    return found


@dataclass
class _Checker:
    """One function's check."""

    module: Module
    function: Function
    seen: set[Value] = field(default_factory=set[Value])

    def check(self) -> Iterator[str]:
        function = self.function
        for type in (*function.type.parameters, function.type.result):
            yield from self.structs(type)
        if function.declaration is not None:
            yield from self.declaration()
        if function.body is None:
            if function.declaration is None:
                yield "has neither a body nor a declaration of what it is"
            return
        if not function.body.blocks:
            yield "has no entry block"
            return
        given = tuple(argument.type for argument in function.entry.arguments)
        if given != function.type.parameters:
            yield f"the entry takes ({_list(given)}), the function ({_list(function.type.parameters)})"
        yield from self.region(function.body, set())

    def structs(self, type: Type) -> Iterator[str]:
        for struct in structs_in(type):
            if self.module.structs.get(struct.name) != struct:
                yield f"the struct {struct} is not defined in the module, or otherwise"

    def declaration(self) -> Iterator[str]:
        declaration = self.function.declaration
        assert declaration is not None
        primal = self.module.functions.get(declaration.primal)
        if primal is None:
            yield f"is the gradient of @{declaration.primal}, which does not exist"
            return
        try:
            expected = gradient_type(primal.type, declaration)
        except NNKitError as error:
            yield str(error)
            return
        if expected != self.function.type:
            yield f"is declared as {self.function.type}; the gradient is {expected}"

    def region(self, region: Region, outside: set[Value]) -> Iterator[str]:
        visible = set(outside)
        for block in region.blocks:
            for argument in block.arguments:
                yield from self.define(argument, visible)
            for position, instruction in enumerate(block.instructions):
                is_last = position == len(block.instructions) - 1
                for message in self.instruction(instruction, visible, is_last):
                    yield f"{message}\n    in: {_shown(instruction)}"
                for index, result in enumerate(instruction.results):
                    if result.producer is not instruction or result.index != index:
                        yield f"a result does not know where it comes from\n    in: {_shown(instruction)}"
                    yield from self.define(result, visible)
            if not block.instructions or not block.instructions[-1].op.is_terminator:
                yield f"block '{block.name or ''} does not end with a terminator"

    def define(self, value: Value, visible: set[Value]) -> Iterator[str]:
        if value in self.seen:
            yield f"the value %{value.name or '?'}: {value.type} is defined twice"
        self.seen.add(value)
        visible.add(value)

    def instruction(
        self, instruction: Instruction, visible: set[Value], is_last: bool
    ) -> Iterator[str]:
        op = instruction.op
        for operand in instruction.operands:
            if operand not in visible:
                yield f"the operand %{operand.name or '?'}: {operand.type} is not defined before its use"
        if op.is_terminator and not is_last:
            yield f"{op.name} ends a block and is not its last instruction"
        yield from self.types(instruction)
        yield from self.stage(instruction)
        match op:
            case Return():
                yield from self.returned(instruction)
            case Apply(callee, type):
                called = self.module.functions.get(callee)
                if called is None:
                    yield f"calls @{callee}, which does not exist"
                elif called.type != type:
                    yield f"calls @{callee} as {type}; it is {called.type}"
            case Nest():
                yield from self.nest(instruction, op)
                return
            case _:
                pass
        for region in instruction.regions:
            yield from self.region(region, visible)

    def types(self, instruction: Instruction) -> Iterator[str]:
        try:
            inferred = instruction.op.infer(*(operand.type for operand in instruction.operands))
        except NNKitError as error:
            yield str(error)
            return
        except (TypeError, ValueError):
            yield f"{instruction.op.name} does not take {len(instruction.operands)} operands"
            return
        types = (inferred,) if isinstance(inferred, Type) else tuple(inferred)
        given = tuple(result.type for result in instruction.results)
        if types != given:
            yield f"the results are ({_list(given)}); by its rule they are ({_list(types)})"

    def stage(self, instruction: Instruction) -> Iterator[str]:
        op, stage = instruction.op, self.module.stage
        if isinstance(op, _FROM_SCHEDULE):
            if stage is not Stage.SCHEDULE:
                yield f"{op.name} stands in stage {stage.value}; it belongs to stage schedule"
        elif isinstance(op, _FROM_COMPUTE) and stage not in (Stage.COMPUTE, Stage.SCHEDULE):
            yield f"{op.name} stands in stage {stage.value}; it belongs to stage compute"

    def returned(self, instruction: Instruction) -> Iterator[str]:
        values = tuple(operand.type for operand in instruction.operands)
        expected = self.function.type.result
        if values != (expected,) and not (not values and str(expected) == "void"):
            yield f"returns {_list(values) or 'nothing'}; the function returns {expected}"

    def nest(self, instruction: Instruction, op: Nest) -> Iterator[str]:
        if len(instruction.regions) != 1 or len(instruction.regions[0].blocks) != 1:
            yield "a nest has one region of one block"
            return
        body = instruction.regions[0].entry
        expected = [scalar(I64)] * len(op.extents)
        expected += [scalar(operand.tensor.dtype) for operand in instruction.operands]
        given = [argument.type for argument in body.arguments]
        if given != expected:
            yield f"the body takes ({_list(given)}); it should take ({_list(expected)})"
        yield from self.region(instruction.regions[0], set())
        yield from _body(body, op)


def _body(body: Block, op: Nest) -> Iterator[str]:
    for instruction in body.instructions[:-1]:
        if not isinstance(instruction.op, Elementwise | Linear | Literal) or any(
            not isinstance(result.type, TensorType) or result.type.rank
            for result in instruction.results
        ):
            yield f"{instruction.op.name} cannot stand in the body of a nest"
    if not body.instructions or not isinstance(body.instructions[-1].op, Yield):
        yield "the body of a nest ends with yield"
        return
    given = [operand.type for operand in body.instructions[-1].operands]
    expected = [scalar(output.type.dtype) for output in op.outputs]
    if given != expected:
        yield f"the body yields ({_list(given)}); the outputs hold ({_list(expected)})"


def _list(types: list[Type] | list[TensorType] | tuple[Type, ...]) -> str:
    return ", ".join(map(str, types))


def _shown(instruction: Instruction) -> str:
    first = print_instruction(instruction).splitlines()[0]
    return first if len(first) <= 200 else f"{first[:200]} …"
