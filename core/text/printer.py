"""IR to text.  What it prints, `parser` reads back; see `docs/ir.md` for the form.

Names are kept where they are unique in their scope; values without one are `%B.I` (instruction I of block
B, counted through the function), arguments `%B^A`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ..ir import Block, Function, GradientOf, Instruction, Module, Region, Value, structs_in
from ..ir.surgery import walk
from ..ops import Aggregate, Apply, Branch, BranchEnum, Conditional, For, If, Literal, While
from ..types import StructType, Type
from .attributes import print_attribute
from .control import print_branch, print_head
from .lexer import is_counted, quoted, written
from .literals import print_elements
from .template import (
    Attribute,
    Operand,
    Optional,
    Piece,
    Words,
    attributes_in,
    defaults_of,
    template_of,
)

_BLOCK = "'"


def print_module(module: Module) -> str:
    """The text of a module; the structs it defines and those it uses come first."""
    head = f"module {quoted(module.name)}\nstage {module.stage.value}\n"
    structs: dict[StructType, None] = {}
    for type in dict.fromkeys(_types_of(module)):
        structs.update(dict.fromkeys(structs_in(type)))
    functions = [print_function(function) for function in module.functions.values()]
    return "\n".join([head, *map(print_struct, structs), *functions])


def print_struct(struct: StructType) -> str:
    """The definition of a struct."""
    fields = ", ".join(f"{written('#', name)}: {type}" for name, type in struct.fields)
    return f"struct {struct} {{ {fields} }}\n" if fields else f"struct {struct} {{ }}\n"


def print_function(function: Function) -> str:
    """The text of a function or declaration."""
    lines = [written("!", attribute) for attribute in function.attributes]
    if isinstance(function.declaration, GradientOf):
        lines.append(f"[{print_declaration(function.declaration)}]")
    header = f"func {written('@', function.name)}: {function.type}"
    if function.body is None:
        return "\n".join([*lines, header, ""])
    body = _Printer().region(function.body, "")
    return "\n".join([*lines, f"{header} {{", *body, "}", ""])


def print_declaration(gradient: GradientOf) -> str:
    """`gradient @f from 0 wrt 1, 2 keeping 0 seedable`."""
    parts = [f"gradient {written('@', gradient.primal)}"]
    if gradient.source is not None:
        parts.append(f"from {gradient.source}")
    if gradient.wrt is not None:
        parts.append(f"wrt {', '.join(map(str, gradient.wrt)) or '()'}")
    if gradient.keeping:
        parts.append(f"keeping {', '.join(map(str, gradient.keeping))}")
    if gradient.seedable:
        parts.append("seedable")
    return " ".join(parts)


def print_instruction(instruction: Instruction, names: Mapping[Value, str] | None = None) -> str:
    """One instruction by itself, for messages; values that have no name are `%?`."""
    printer = _Printer(names=dict(names or {}), is_loose=True)
    return "\n".join(printer.instruction(instruction, 0, 0, ""))


def value_names(function: Function) -> Mapping[Value, str]:
    """What `print_function` calls the values of `function`."""
    printer = _Printer()
    if function.body is not None:
        printer.region(function.body, "")
    return printer.names


@dataclass
class _Printer:
    """Names of the values printed so far, and a count of blocks.

    `taken` are the names in scope in order, `numbers` the last one appended to a name that was taken.
    """

    names: dict[Value, str] = field(default_factory=dict[Value, str])
    is_loose: bool = False
    labels: dict[Block, str] = field(default_factory=dict[Block, str])
    taken: dict[str, None] = field(default_factory=dict[str, None])
    numbers: dict[str, int] = field(default_factory=dict[str, int])
    blocks: int = 0

    def region(self, region: Region, indent: str) -> list[str]:
        outside = len(self.taken)
        self._name_blocks(region)
        lines: list[str] = []
        for block in region.blocks:
            lines += self.block(block, indent)
        while len(self.taken) > outside:
            self.taken.popitem()
        return lines

    def _name_blocks(self, region: Region) -> None:
        """Labels first, as branches may go to blocks that follow."""
        taken: set[str] = set()
        for number, block in enumerate(region.blocks, self.blocks):
            label = block.name if block.name and not is_counted(block.name) else str(number)
            while label in taken:
                label = f"{label}_{number}"
            taken.add(label)
            self.labels[block] = written(_BLOCK, label)

    def block(self, block: Block, indent: str) -> Iterator[str]:
        number = self.blocks
        self.blocks += 1
        for position, argument in enumerate(block.arguments):
            self._name(argument, f"{number}^{position}")
        shown = ", ".join(self.typed(argument) for argument in block.arguments)
        yield f"{indent}{self.labels[block]}({shown}):"
        for position, instruction in enumerate(block.instructions):
            yield from self.instruction(instruction, number, position, f"{indent}    ")

    def instruction(
        self, instruction: Instruction, block: int, position: int, indent: str
    ) -> list[str]:
        text = self.operation(instruction)
        bodies = [self.region(region, indent) for region in instruction.regions]
        for index, result in enumerate(instruction.results):
            several = f".{index}" if len(instruction.results) > 1 else ""
            self._name(result, f"{block}.{position}{several}")
        if instruction.results:
            text = f"{', '.join(self.names[r] for r in instruction.results)} = {text}"
        lines = [f"{indent}{text}"]
        for word, body in zip(instruction.op.bodies, bodies, strict=False):
            lines[-1] += f" {word} {{" if word else " {"
            lines += [*body, f"{indent}}}"]
        return lines

    def operation(self, instruction: Instruction) -> str:
        op, operands = instruction.op, instruction.operands
        match op:
            case Literal():
                return f"literal {print_elements(op)}: {op.type}"
            case Aggregate(type=StructType(fields=fields) as made):
                inside = ", ".join(
                    f"{written('#', name)} = {self.typed(operand)}"
                    for (name, _), operand in zip(fields, operands, strict=False)
                )
                return f"literal {{{inside}}}: {made}"
            case Aggregate(type=made):
                return f"literal ({', '.join(map(self.typed, operands))}): {made}"
            case Apply(callee, called):
                arguments = ", ".join(map(self.bare, operands))
                return f"apply {written('@', callee)}({arguments}): {called}"
            case If() | While() | For():
                return print_head(instruction, self.typed)
            case Branch() | Conditional() | BranchEnum():
                labels = [self.labels.get(b) or "'?" for b in instruction.successors]
                return print_branch(instruction, self.typed, labels)
            case _:
                rest = self._pieces(instruction, template_of(type(op)), iter(operands))
                return " ".join([op.name, *rest])

    def _pieces(
        self, instruction: Instruction, pieces: Sequence[Piece], operands: Iterator[Value]
    ) -> list[str]:
        op = instruction.op
        parts: list[str] = []
        for piece in pieces:
            match piece:
                case Words(tokens):
                    for token in tokens:
                        if token == ",":
                            parts[-1] += ","
                        else:
                            parts.append(token)
                case Operand(is_variadic=True):
                    rest = ", ".join(map(self.typed, operands))
                    parts += [rest] if rest else []
                case Operand():
                    operand = next(operands, None)
                    parts.append(self.typed(operand) if operand else "%?")
                case Attribute(name, kind):
                    parts.append(print_attribute(kind, getattr(op, name)))
                case Optional(inner):
                    if _is_needed(instruction, inner):
                        parts += self._pieces(instruction, inner, operands)
        return parts

    def bare(self, value: Value) -> str:
        """`%x`."""
        return self.names.get(value) or (written("%", value.name) if value.name else "%?")

    def typed(self, value: Value) -> str:
        """`%x: T`."""
        return f"{self.bare(value)}: {value.type}"

    def _name(self, value: Value, anonymous: str) -> None:
        if self.is_loose:
            self.names.setdefault(value, self.bare(value))
            return
        wanted = value.name if value.name and not is_counted(value.name) else anonymous
        name = wanted
        while name in self.taken:
            number = self.numbers[wanted] = self.numbers.get(wanted, 0) + 1
            name = f"{wanted}_{number}"
        self.taken[name] = None
        self.names[value] = f"%{name}" if wanted is anonymous else written("%", name)


def _is_needed(instruction: Instruction, pieces: tuple[Piece, ...]) -> bool:
    """Whether a part that can be left out says something."""
    defaults = defaults_of(type(instruction.op))
    attributes = [attribute.name for attribute in attributes_in(pieces)]
    if not attributes:
        return bool(instruction.operands)
    return any(
        name not in defaults or getattr(instruction.op, name) != defaults[name]
        for name in attributes
    )


def _types_of(module: Module) -> Iterator[Type]:
    """Every type that the text of the module names, some of them often."""
    yield from module.structs.values()
    for function in module.functions.values():
        yield function.type
        if function.body is None:
            continue
        for instruction in walk(function.body):
            if isinstance(instruction.op, Apply):
                yield instruction.op.type
            yield from (result.type for result in instruction.results)
