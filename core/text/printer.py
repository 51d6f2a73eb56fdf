"""IR to text.  What it prints, `parser` reads back; see `docs/ir.md` for the form.

Names are kept where they are unique in their scope; values without one are `%B.I` (instruction I of block
B, counted through the function), arguments `%B^A`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ..ir import Block, Function, GradientOf, Instruction, Module, Region, Value
from ..ops import Aggregate, Apply, Literal
from ..types import StructType
from .attributes import print_attribute, print_elements
from .template import Attribute, Operand, Optional, Piece, Words, defaults_of, template_of


def print_module(module: Module) -> str:
    """The text of a module."""
    head = f'module "{_escaped(module.name)}"\nstage {module.stage.value}\n'
    structs = [print_struct(struct) for struct in module.structs.values()]
    functions = [print_function(function) for function in module.functions.values()]
    return "\n".join([head, *structs, *functions])


def print_struct(struct: StructType) -> str:
    """The definition of a struct."""
    fields = ", ".join(f"#{name}: {type}" for name, type in struct.fields)
    return f"struct {struct} {{ {fields} }}\n" if fields else f"struct {struct} {{ }}\n"


def print_function(function: Function) -> str:
    """The text of a function or declaration."""
    lines = [f"!{attribute}" for attribute in function.attributes]
    if function.declaration is not None:
        lines.append(f"[{print_declaration(function.declaration)}]")
    header = f"func @{function.name}: {function.type}"
    if function.body is None:
        return "\n".join([*lines, header, ""])
    printer = _Printer()
    body = printer.region(function.body, "")
    return "\n".join([*lines, f"{header} {{", *body, "}", ""])


def print_declaration(gradient: GradientOf) -> str:
    """`gradient @f from 0 wrt 1, 2 keeping 0 seedable`."""
    parts = [f"gradient @{gradient.primal}"]
    if gradient.source is not None:
        parts.append(f"from {gradient.source}")
    if gradient.wrt is not None:
        parts.append(f"wrt {', '.join(map(str, gradient.wrt))}")
    if gradient.keeping:
        parts.append(f"keeping {', '.join(map(str, gradient.keeping))}")
    if gradient.seedable:
        parts.append("seedable")
    return " ".join(parts)


def print_instruction(instruction: Instruction) -> str:
    """One instruction by itself, for messages; values without names are `%?`."""
    return "\n".join(_Printer(loose=True).instruction(instruction, 0, 0, ""))


@dataclass
class _Printer:
    """Names of the values printed so far, and a count of blocks."""

    loose: bool = False
    names: dict[Value, str] = field(default_factory=dict[Value, str])
    scopes: list[set[str]] = field(default_factory=list[set[str]])
    blocks: int = 0

    def region(self, region: Region, indent: str) -> list[str]:
        self.scopes.append(set())
        lines = [line for block in region.blocks for line in self.block(block, indent)]
        self.scopes.pop()
        return lines

    def block(self, block: Block, indent: str) -> Iterator[str]:
        number = self.blocks
        self.blocks += 1
        for position, argument in enumerate(block.arguments):
            self._name(argument, f"{number}^{position}")
        label = f"'{block.name or number}"
        shown = ", ".join(self.typed(argument) for argument in block.arguments)
        yield f"{indent}{label}({shown}):"
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
        for body in bodies:
            lines[-1] += " {"
            lines += [*body, f"{indent}}}"]
        return lines

    def operation(self, instruction: Instruction) -> str:
        op, operands = instruction.op, instruction.operands
        match op:
            case Literal():
                return f"literal {print_elements(op)}: {op.type}"
            case Aggregate(type=StructType(fields=fields) as made):
                inside = ", ".join(
                    f"#{name} = {self.typed(operand)}"
                    for (name, _), operand in zip(fields, operands, strict=True)
                )
                return f"literal {{{inside}}}: {made}"
            case Aggregate(type=made):
                return f"literal ({', '.join(map(self.typed, operands))}): {made}"
            case Apply(callee, called):
                return f"apply @{callee}({', '.join(map(self.bare, operands))}): {called}"
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
                case Words(text):
                    if text.startswith(",") and parts:
                        parts[-1] += ","
                        text = text[1:].strip()
                    parts += [text] if text else []
                case Operand(is_variadic=True):
                    rest = ", ".join(map(self.typed, operands))
                    parts += [rest] if rest else []
                case Operand():
                    parts.append(self.typed(next(operands)))
                case Attribute(name, kind):
                    parts.append(print_attribute(kind, getattr(op, name)))
                case Optional(inner):
                    if _is_needed(instruction, inner):
                        parts += self._pieces(instruction, inner, operands)
        return parts

    def bare(self, value: Value) -> str:
        """`%x`."""
        return self.names.get(value, f"%{value.name or '?'}")

    def typed(self, value: Value) -> str:
        """`%x: T`."""
        return f"{self.bare(value)}: {value.type}"

    def _name(self, value: Value, anonymous: str) -> None:
        name = value.name if value.name and not value.name[0].isdigit() else anonymous
        if self.scopes:
            taken = any(name in scope for scope in self.scopes)
            number = 0
            wanted = name
            while taken:
                number += 1
                name = f"{wanted}_{number}"
                taken = any(name in scope for scope in self.scopes)
            self.scopes[-1].add(name)
        self.names[value] = f"%{name}"


def _is_needed(instruction: Instruction, pieces: Sequence[Piece]) -> bool:
    defaults = defaults_of(type(instruction.op))
    attributes = [piece.name for piece in pieces if isinstance(piece, Attribute)]
    if not attributes:
        return bool(instruction.operands)
    return any(
        name not in defaults or getattr(instruction.op, name) != defaults[name]
        for name in attributes
    )


def _escaped(text: str) -> str:
    escapes = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}
    return "".join(escapes.get(c, c) for c in text)
