"""Writes docs/ops.md, the reference of all instructions, from the classes of the ops.

    python docs/generate_ops.py         write it
    python docs/generate_ops.py FILE    write it into FILE instead

What an instruction means is its class's docstring.  Examples of ops that compute with tensors are made from
the samples of `tests/core/ops`; those of all others stand in `docs/examples`.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from nnkit.core.compute import ops as compute_ops  # noqa: E402
from nnkit.core.ir import Effect, Instruction, Module, Op, finish_function, start_function  # noqa: E402
from nnkit.core.ir.surgery import walk  # noqa: E402
from nnkit.core.kernels.guarded_ops import GUARDED  # noqa: E402
from nnkit.core.kernels.ops import KERNEL  # noqa: E402
from nnkit.core.ops import (  # noqa: E402
    ALL,
    PROGRAM,
    Aggregate,
    Apply,
    Bilinear,
    Branch,
    BranchEnum,
    Conditional,
    Elementwise,
    EnumCase,
    Extract,
    Insert,
    Linear,
    Literal,
    Nest,
    Null,
    Payload,
    Reference,
    Return,
    Structured,
    Trap,
    Undefined,
    Yield,
)
from nnkit.core.ops.byte_memory import BYTE_MEMORY  # noqa: E402
from nnkit.core.schedule.ops import SCHEDULED  # noqa: E402
from nnkit.core.text import parse_module, print_instruction, print_module  # noqa: E402
from nnkit.core.text.printer import value_names  # noqa: E402
from nnkit.core.text.template import Operand, template_of  # noqa: E402
from tests.core.ops.catalogue import SAMPLES  # noqa: E402
from tests.core.ops.samples import Sample  # noqa: E402
from tests.core.ops.test_matrix_form import SAMPLES as MATRIX_SAMPLES  # noqa: E402

PAGE = ROOT / "docs" / "ops.md"
LATE: tuple[type[Op], ...] = (
    *BYTE_MEMORY,
    *(Nest, compute_ops.MatrixProduct, compute_ops.CallAddress),
    *SCHEDULED,
    *KERNEL,
    *GUARDED,
)
OPS: tuple[type[Op], ...] = (*ALL, *PROGRAM, *LATE)
SYNTAX: dict[type[Op], str] = {
    Branch: "branch 'block({arguments*})",
    Conditional: "conditional {condition} then 'block({arguments*}) else 'block({arguments*})",
    BranchEnum: "branchEnum {value} case ?name 'block case ?name 'block …",
}
"""How terminators are written, which their templates cannot say."""

HEAD = """# Instructions

Every instruction of the IR: how it is written, what it means, what its derivative follows from, and what it does
besides computing its results. Written by `docs/generate_ops.py` from the classes in `core`, whose docstrings these
are; [ir.md](ir.md) has the grammar, and says how attributes look.

`{x}` stands for an operand with its type, `{xs*}` for any number of them, `{axes}` and other names that the example
shows without `%` for attributes; what is in `[…]` can be left out.
"""


@dataclass(frozen=True)
class Example:
    """An instruction as text, the text of a module in which it stands, and the types of its results."""

    text: str
    module: str
    results: str


def examples() -> dict[type[Op], Example]:
    """One example for each op that has one."""
    found: dict[type[Op], Example] = {}
    for op in OPS:
        samples = [sample for sample in (*SAMPLES, *MATRIX_SAMPLES) if type(sample.op) is op]
        if samples:
            found[op] = _of_sample(max(samples, key=_telling))
    for path in sorted((ROOT / "docs" / "examples").glob("*.dl")):
        module = parse_module(path.read_text(), str(path))
        for function in module.functions.values():
            names = value_names(function)
            for instruction in walk(function.body) if function.body else ():
                if type(instruction.op) not in found:
                    found[type(instruction.op)] = Example(
                        print_instruction(instruction, names),
                        print_module(module),
                        _types(instruction),
                    )
    return found


def _telling(sample: Sample) -> tuple[bool, ...]:
    """How much a sample shows: operands with elements and axes, of different shapes, and no special values."""
    shapes = [type.shape for type in sample.types]
    return (
        all(extent > 1 for shape in shapes for extent in shape),
        all(shapes) or len(shapes) > 2,
        all(type.dtype.name != "bf16" for type in sample.types),
        any(len(shape) == 2 for shape in shapes),
        sample.values is None,
        len(set(shapes)) == len(shapes),
    )


def _of_sample(sample: Sample) -> Example:
    names = list(_operand_names(type(sample.op), len(sample.types)))
    b = start_function(sample.types, names)
    result = b.emit(sample.op, *b.block.arguments)
    result.name = "y" if "y" not in names else "z"
    b.emit_many(Return(), [result])
    function = finish_function("f", b, result.type)
    instruction = b.block.instructions[0]
    text = print_instruction(instruction, value_names(function))
    module = Module("example", functions={"f": function})
    return Example(text, print_module(module), _types(instruction))


def _types(instruction: Instruction) -> str:
    return ", ".join(str(result.type) for result in instruction.results)


def _operand_names(op: type[Op], count: int) -> Iterator[str]:
    """The names of the template; of several operands behind one name, each with its number."""
    names = [piece.name for piece in template_of(op) if isinstance(piece, Operand)]
    several = count > len(names)
    for position in range(count):
        name = names[min(position, len(names) - 1)] if names else "x"
        yield f"{name.rstrip('s') or name}{position}" if several else name


def render() -> str:
    """The whole page."""
    shown = examples()
    sections: dict[str, list[type[Op]]] = {}
    for op in OPS:
        sections.setdefault(op.__module__, []).append(op)
    lines = [HEAD]
    for module, ops in sections.items():
        first, *rest = _paragraphs(importlib.import_module(module).__doc__)
        title, _, more = first.partition(".  ")
        rest = [more, *rest] if more else rest
        lines += [f"## {title.rstrip('.')}", ""]
        lines += [line for paragraph in rest for line in (paragraph, "")]
        for op in ops:
            lines += [*_entry(op, shown[op]), ""]
    return "\n".join(lines).rstrip() + "\n"


def _paragraphs(text: str | None) -> list[str]:
    """A docstring's paragraphs; what is indented there is code."""
    found: list[str] = []
    for paragraph in inspect.cleandoc(text or "").split("\n\n"):
        if paragraph.startswith(("    ", "| ")):
            found.append(
                paragraph
                if paragraph.startswith("|")
                else f"```\n{inspect.cleandoc(paragraph)}\n```"
            )
        elif not paragraph.startswith("Source:"):
            found.append(paragraph)
    return found


def _entry(op: type[Op], example: Example) -> Iterator[str]:
    bodies = "".join(f" {word} {{…}}".replace("  ", " ") for word in op.bodies)
    yield f"### {op.name}"
    yield ""
    yield f"`{SYNTAX.get(op, op.syntax)}{bodies}`"
    yield ""
    for paragraph in _paragraphs(op.__doc__):
        yield from (paragraph, "")
    if issubclass(op, Elementwise):
        yield f"- Operands: tensors of one element type ({' or '.join(op.accepts)}), which broadcast"
    yield f"- Derivative: {derivative(op)}"
    if op.effect is not Effect.NONE:
        yield f"- Effect: {effect(op)}"
    if op.is_terminator:
        yield "- Ends a block."
    if example.results:
        yield f"- Here: `{example.results}`"
    yield from ("", "```", example.text, "```")


def derivative(op: type[Op]) -> str:
    """What the derivative of an op is made from, or why there is none."""
    if op in LATE:
        return "made after differentiation"
    if op.not_differentiable:
        return f"none: {op.not_differentiable}"
    if issubclass(op, Elementwise):
        return "elementwise, by partial derivatives"
    if op.acts_on_shadows:
        return "by shadows: of pointers to tangents it is the same, cotangents are added to what shadows lead to"
    if issubclass(op, Linear):
        some = op.linear_operands
        which = "" if some is None else f" in operand {' and '.join(map(str, some))}"
        return f"linear{which}: its tangent is the same op, its transpose gives the cotangent"
    if issubclass(op, Bilinear):
        return "bilinear: by the product rule, with one transpose for each operand"
    if op.jvp is not Op.jvp:
        return "by a forward and a reverse rule of its own"
    if issubclass(op, Structured):
        return "that of its bodies"
    if issubclass(op, Literal | Null | Reference | Undefined):
        return "zero: it is a constant"
    if issubclass(op, Aggregate | Extract | Insert):
        return "element by element"
    if issubclass(op, Apply):
        return "that of the function it calls"
    if issubclass(op, Return | Yield):
        return "that of its operands"
    if op.is_terminator:
        return "blocks become structured ops before differentiation"
    if issubclass(op, EnumCase | Payload):
        return (
            "that of what the case carries: tangents and cotangents are enums with the same cases"
        )
    if issubclass(op, Trap):
        return "none: it has no value, and nothing comes after it"
    return "none: derivatives do not pass through casts of pointers, stacks or function values"


def effect(op: type[Op]) -> str:
    """What an op does besides computing results, in words."""
    words = {
        Effect.READ: "reads memory",
        Effect.WRITE: "writes memory",
        Effect.ALLOCATE: "allocates",
        Effect.TRAP: "stops the program",
        Effect.CALL: "whatever the called function does",
    }
    return ", ".join(word for flag, word in words.items() if flag & op.effect)


def main() -> None:
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else PAGE
    path.write_text(render())


if __name__ == "__main__":
    main()
