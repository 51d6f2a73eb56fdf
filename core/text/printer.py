"""IR to text: modules, definitions and functions.  What it prints, `parser` reads back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..ir import Function, Instruction, Module, Value, Variable, nominals_in
from ..ir.module import Nominal
from ..ir.surgery import walk_blocks
from ..ops import Apply, ApplyValue
from ..types import EnumType, OpaqueType, StructType, TensorType, Type
from .declarations import print_declaration, print_rules
from .lexer import quoted, written
from .lines import Lines
from .names import Names


def print_module(module: Module) -> str:
    """The text of a module: structs, enums, aliases, variables, functions.

    Types that are used and not defined in the module are defined as well.
    """
    head = f"module {quoted(module.name)}\nstage {module.stage.value}\n"
    nominals: dict[Nominal, None] = dict.fromkeys(
        (*module.structs.values(), *module.enums.values())
    )
    aliases = dict(module.aliases)
    nominals.update(dict.fromkeys(nominals_in(*_types_of(module))))
    for nominal in nominals:
        if isinstance(nominal, OpaqueType):
            aliases.setdefault(nominal.name, nominal)
    parts = [
        head,
        *(print_struct(nominal) for nominal in nominals if isinstance(nominal, StructType)),
        *(print_enum(nominal) for nominal in nominals if isinstance(nominal, EnumType)),
        *(print_alias(name, type) for name, type in aliases.items()),
        *map(print_variable, module.variables.values()),
        *map(print_function, module.functions.values()),
    ]
    return "\n".join(parts)


def print_struct(struct: StructType) -> str:
    """`struct $S { #a: T, #b: U }`."""
    fields = ", ".join(f"{written('#', name)}: {type}" for name, type in struct.fields)
    return f"struct {written('$', struct.name)} {{ {fields}{' ' * bool(fields)}}}\n"


def print_enum(enum: EnumType) -> str:
    """`enum $E { ?leaf(f32), ?node($E, $E) }`."""
    cases = ", ".join(
        written("?", name) + (f"({', '.join(map(str, carried))})" if carried else "")
        for name, carried in enum.cases
    )
    return f"enum {written('$', enum.name)} {{ {cases}{' ' * bool(cases)}}}\n"


def print_alias(name: str, type: Type) -> str:
    """`type $A = T`, or `type $X = opaque`."""
    is_opaque = isinstance(type, OpaqueType) and type.name == name
    return f"type {written('$', name)} = {'opaque' if is_opaque else type}\n"


def print_variable(variable: Variable) -> str:
    """`var @x: T`."""
    return f"var {written('@', variable.name)}: {variable.type}\n"


def print_function(function: Function) -> str:
    """The text of a function or declaration."""
    lines = [written("!", attribute) for attribute in function.attributes]
    if function.declaration is not None:
        lines.append(f"[{print_declaration(function.declaration)}]")
    lines += print_rules(function.rules)
    header = f"func {written('@', function.name)}: {function.type}"
    if function.body is None:
        return "\n".join([*lines, header, ""])
    names = Names()
    names.give(function.body)
    body = Lines(names.values, names.labels).write(function.body)
    return "\n".join([*lines, f"{header} {{", *body, "}", ""])


def print_instruction(instruction: Instruction, names: Mapping[Value, str] | None = None) -> str:
    """One instruction by itself, for messages; values that have no name are `%?`."""
    inside = (block for region in instruction.regions for block in walk_blocks(region))
    blocks = (*instruction.successors, *inside)
    labels = {block: written("'", block.name) for block in blocks if block.name}
    return "\n".join(Lines(names or {}, labels).write_instruction(instruction))


def value_names(function: Function) -> Mapping[Value, str]:
    """What `print_function` calls the values of `function`."""
    names = Names()
    if function.body is not None:
        names.give(function.body)
    return names.values


def _types_of(module: Module) -> Iterator[Type]:
    """The types that the text of the module names, but for tensors, which have no definition."""
    seen: dict[Type, None] = {}
    yield from module.structs.values()
    yield from module.enums.values()
    yield from module.aliases.values()
    yield from (variable.type for variable in module.variables.values())
    for function in module.functions.values():
        seen.setdefault(function.type)
        for block in walk_blocks(function.body) if function.body else ():
            for value in block.arguments:
                if not isinstance(value.type, TensorType):
                    seen.setdefault(value.type)
            for instruction in block.instructions:
                if isinstance(instruction.op, Apply | ApplyValue):
                    seen.setdefault(instruction.op.type)
                for value in instruction.results:
                    if not isinstance(value.type, TensorType):
                        seen.setdefault(value.type)
    yield from seen
