"""Rules 1 to 10: modules, declarations, functions, blocks and values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from ..autodiff.declaration import gradient_type
from ..errors import NNKitError, VerifyError
from ..ir import Block, Function, GradientOf, Instruction, Module, Region, Value, structs_in
from ..ops import Apply, Literal, Nest, Return, Yield
from ..text.lexer import written
from ..text.printer import print_instruction, value_names
from ..types import VOID, StructType, TensorType, Type
from .instruction import has_all_elements, instruction_violations, stage_violations
from .nest import nest_violations, schedule_violations

_Structs: TypeAlias = dict[str, set[StructType]]
"""The structs met so far, by name: one each, unless rule 1 is broken."""


def verify(module: Module) -> None:
    """Raises: VerifyError listing every violation."""
    found = violations(module)
    if found:
        count = f"{len(found)} violation{'s' * (len(found) > 1)}"
        raise VerifyError("\n".join([f"module {module.name!r} has {count}:", *found]))


def violations(module: Module) -> list[str]:
    """Every violation, in order of the text."""
    structs: _Structs = {}
    found = [f"  {message}" for message in _struct_violations(module, structs)]
    for name, function in module.functions.items():
        if name != function.name:
            found.append(f"  @{function.name}: stands in the module as @{name}")
        checker = _Checker(module, function, structs)
        found += [f"  @{function.name}: {message}" for message in checker.check()]
    return found


def _struct_violations(module: Module, structs: _Structs) -> Iterator[str]:
    for name, defined in module.structs.items():
        if name != defined.name:
            yield f"the struct {defined} stands in the module as ${name}"
        for struct in structs_in(defined):
            yield from _check_struct(struct, structs)


def _check_struct(struct: StructType, structs: _Structs) -> Iterator[str]:
    """Rule 1, once for every struct."""
    known = structs.setdefault(struct.name, set())
    if struct in known:
        return
    known.add(struct)
    names = [name for name, _ in struct.fields]
    if len(known) > 1:
        yield f"two different structs are called {struct}"
    if written("$", struct.name) != f"${struct.name}":
        yield f"the name of the struct {struct} is not a word"
    if len(set(names)) != len(names):
        yield f"two fields of the struct {struct} have the same name"


@dataclass(eq=False)
class _Checker:
    """One function's check: what is defined so far, and what of it is visible.

    `nesting` counts the bodies around the instruction.
    """

    module: Module
    function: Function
    structs: _Structs
    defined: set[Value] = field(default_factory=set[Value])
    visible: set[Value] = field(default_factory=set[Value])
    nesting: int = 0

    def check(self) -> Iterator[str]:
        function = self.function
        yield from self.type(function.type)
        if function.declaration is not None:
            yield from self.declaration()
            if function.body is not None:
                yield "has both a body and a declaration that asks for one"
        elif function.body is None:
            yield "has neither a body nor a declaration of what it is"
        if function.body is None:
            return
        if not function.body.blocks:
            yield "has no entry block"
            return
        given = tuple(argument.type for argument in function.entry.arguments)
        if given != function.type.parameters:
            yield f"the entry takes ({listed(given)}), the function ({listed(function.type.parameters)})"
        yield from self.region(function.body)

    def declaration(self) -> Iterator[str]:
        declaration = self.function.declaration
        if not isinstance(declaration, GradientOf):
            return
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

    def region(self, region: Region) -> Iterator[str]:
        inside: list[Value] = []
        labels: set[str] = set()
        for block in region.blocks:
            if block.name is not None and block.name in labels:
                yield f"the block '{block.name} is defined twice"
            labels.add(block.name or "")
            yield from self.block(block, inside)
        self.visible.difference_update(inside)

    def block(self, block: Block, inside: list[Value]) -> Iterator[str]:
        for argument in block.arguments:
            if argument.producer is not None:
                yield f"the argument {self.shown(argument)} has an instruction that computes it"
            yield from self.define(argument, inside)
        for position, instruction in enumerate(block.instructions):
            is_last = position == len(block.instructions) - 1
            for message in self.instruction(instruction, is_last):
                yield f"{message}\n{self.place(instruction)}"
            # what is wrong in a body is shown with the instruction there
            for body in instruction.regions:
                yield from self.body(body, is_closed=isinstance(instruction.op, Nest))
            for index, result in enumerate(instruction.results):
                if result.producer is not instruction or result.index != index:
                    yield f"a result does not know where it comes from\n{self.place(instruction)}"
                yield from self.define(result, inside)
        if not block.instructions or not block.instructions[-1].op.is_terminator:
            yield f"the block '{block.name or ''} does not end with a terminator"

    def body(self, region: Region, *, is_closed: bool) -> Iterator[str]:
        """A region inside the function; a closed one sees nothing of what is around it."""
        outside = self.visible
        if is_closed:
            self.visible = set()
        self.nesting += 1
        yield from self.region(region)
        self.nesting -= 1
        self.visible = outside

    def define(self, value: Value, inside: list[Value]) -> Iterator[str]:
        yield from self.type(value.type)
        if value in self.defined:
            yield f"the value {self.shown(value)} is defined twice"
        self.defined.add(value)
        self.visible.add(value)
        inside.append(value)

    def instruction(self, instruction: Instruction, is_last: bool) -> Iterator[str]:
        op = instruction.op
        for operand in instruction.operands:
            if operand not in self.visible:
                yield f"the operand {self.shown(operand)} is not defined before its use"
        if op.is_terminator and not is_last:
            yield f"{op.name} ends a block and is not its last instruction"
        yield from instruction_violations(instruction, self.module)
        if not self.nesting:
            yield from stage_violations(instruction, self.module.stage)
            if isinstance(op, Yield):
                yield "yield ends the body of a nest, not a function"
        if isinstance(op, Return):
            yield from self.returned(instruction)
        elif isinstance(op, Apply):
            yield from self.type(op.type)
        elif isinstance(op, Nest):
            yield from nest_violations(instruction, op)
        yield from schedule_violations(instruction, self.function.type.result)

    def returned(self, instruction: Instruction) -> Iterator[str]:
        given = tuple(operand.type for operand in instruction.operands)
        expected = self.function.type.result
        if given != (expected,) and not (not given and expected == VOID):
            yield f"returns {listed(given) or 'nothing'}; the function returns {expected}"

    def type(self, type: Type) -> Iterator[str]:
        """Rule 1 for the structs that `type` mentions."""
        if not isinstance(type, TensorType):
            for struct in structs_in(type):
                yield from _check_struct(struct, self.structs)

    @cached_property
    def names(self) -> Mapping[Value, str]:
        """What the printed function calls its values."""
        return value_names(self.function)

    def shown(self, value: Value) -> str:
        name = self.names.get(value) or (written("%", value.name) if value.name else "%?")
        return f"{name}: {value.type}"

    def place(self, instruction: Instruction) -> str:
        """The instruction as printed, and where it comes from."""
        op = instruction.op
        if isinstance(op, Literal) and not has_all_elements(op):
            text = f"literal of {len(op.data)} bytes: {op.type}"
        else:
            text = print_instruction(instruction, self.names).splitlines()[0].rstrip(" {")
        text = text if len(text) <= 200 else f"{text[:200]} …"
        location = instruction.location.resolve() if instruction.location else None
        where = location.excerpt().replace("\n", f"\n{' ' * 8}") if location else ""
        return f"    in: {text}" + (f"\n    at: {where}" if where else "")


def listed(types: tuple[Type, ...]) -> str:
    """The types, separated by commas."""
    return ", ".join(map(str, types))
