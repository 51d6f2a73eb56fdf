"""The syntax of control flow: branches with their successors, and the headers of `if`, `while` and `for`.

branch 'b(%x: T)
conditional %c: bool then 'a(%x: T) else 'b
branchEnum %e: $E case ?leaf 'a case ?node 'b
if %c: bool -> f32, <2 x f32> given %x: T
while carrying %x: T given %y: U
for %lo: i64 upto %hi: i64 carrying %x: T given %y: U stacking <10 x f32>
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ..ir import Builder, Instruction, Op, Value
from ..ops.structured import For, If, While
from ..ops.terminators import Branch, BranchEnum, Conditional, arguments_of
from .cursor import Cursor
from .lexer import Token, written
from .types import parse_types

Typed = Callable[[Value], str]
ReadOperand = Callable[[Builder], Value]

BRANCHES = ("branch", "conditional", "branchEnum")
STRUCTURED = ("if", "while", "for")


def parse_branch(
    cursor: Cursor, b: Builder, opcode: str, operand: ReadOperand
) -> tuple[Op, list[Value], list[Token]]:
    """The terminator whose opcode has been read, with the labels of its successors."""
    if opcode == "branch":
        label, arguments = _target(cursor, b, operand)
        return Branch(), arguments, [label]
    value = operand(b)
    if opcode == "conditional":
        cursor.expect("then")
        taken, first = _target(cursor, b, operand)
        cursor.expect("else")
        other, second = _target(cursor, b, operand)
        return Conditional(len(first)), [value, *first, *second], [taken, other]
    cases: list[str] = []
    labels: list[Token] = []
    while cursor.accept("case"):
        cases.append(cursor.name("?", "a case"))
        labels.append(cursor.token)
        cursor.name("'", "a block")
    return BranchEnum(tuple(cases)), [value], labels


def _target(cursor: Cursor, b: Builder, operand: ReadOperand) -> tuple[Token, list[Value]]:
    label = cursor.token
    cursor.name("'", "a block")
    arguments: list[Value] = []
    if cursor.accept("("):
        while cursor.separated(")", not arguments):
            arguments.append(operand(b))
    return label, arguments


def parse_head(
    cursor: Cursor, b: Builder, opcode: str, operand: ReadOperand
) -> tuple[Op, list[Value]]:
    """The structured op whose opcode has been read, up to its first body."""
    operands: list[Value] = []
    if opcode == "if":
        return _parse_if(cursor, b, operand)
    if opcode == "for":
        operands.append(operand(b))
        cursor.expect("upto")
        operands.append(operand(b))
    if cursor.accept("carrying"):
        operands += cursor.listed(operand, b)
    given = cursor.listed(operand, b) if cursor.accept("given") else ()
    operands += given
    if opcode == "while":
        return While(len(given)), operands
    return For(parse_types(cursor) if cursor.accept("stacking") else (), len(given)), operands


def _parse_if(cursor: Cursor, b: Builder, operand: ReadOperand) -> tuple[Op, list[Value]]:
    """The results come first: behind a tuple type, `->` would make it the type of a function."""
    condition = operand(b)
    results = parse_types(cursor) if cursor.accept("->") else ()
    given = cursor.listed(operand, b) if cursor.accept("given") else ()
    if not results and cursor.accept("->"):
        results = parse_types(cursor)
    return If(results, len(given)), [condition, *given]


def _print_branch(at: Instruction, typed: Typed, labels: Sequence[str]) -> str:
    return f"branch {_targets(at, typed, labels)[0]}"


def _print_conditional(at: Instruction, typed: Typed, labels: Sequence[str]) -> str:
    taken, other = _targets(at, typed, labels)
    return f"conditional {typed(at.operands[0])} then {taken} else {other}"


def _print_branch_enum(at: Instruction[BranchEnum], typed: Typed, labels: Sequence[str]) -> str:
    targets = zip(at.op.cases, _targets(at, typed, labels), strict=True)
    cases = (f" case {written('?', case)} {target}" for case, target in targets)
    return f"branchEnum {typed(at.operands[0])}{''.join(cases)}"


def _targets(at: Instruction, typed: Typed, labels: Sequence[str]) -> list[str]:
    """The blocks gone on to, which are called `labels`, with their arguments."""
    given = [", ".join(map(typed, arguments_of(at, number))) for number in range(len(labels))]
    return [f"{label}({x})" if x else label for label, x in zip(labels, given, strict=True)]


def _print_if(at: Instruction[If], typed: Typed, labels: Sequence[str]) -> str:
    condition = "".join(map(typed, at.operands[:1]))
    results = _listed("->", map(str, at.op.results))
    return f"if {condition}{results}{_listed('given', map(typed, at.operands[1:]))}"


def _print_while(at: Instruction[While], typed: Typed, labels: Sequence[str]) -> str:
    return f"while{_passed(at.operands, at.op.inputs, typed)}"


def _print_for(at: Instruction[For], typed: Typed, labels: Sequence[str]) -> str:
    bounds = " upto ".join(map(typed, at.operands[:2]))
    passed = _passed(at.operands[2:], at.op.inputs, typed)
    return f"for {bounds}{passed}{_listed('stacking', map(str, at.op.stacked))}"


def _passed(operands: Sequence[Value], inputs: int, typed: Typed) -> str:
    """What a loop carries, and the `inputs` values that it gives its bodies."""
    texts, end = [*map(typed, operands)], len(operands) - inputs
    return _listed("carrying", texts[:end]) + _listed("given", texts[end:])


def _listed(word: str, texts: Iterable[str]) -> str:
    inside = ", ".join(texts)
    return f" {word} {inside}" if inside else ""


PRINTED: Mapping[type[Op], Callable[[Instruction[Any], Typed, Sequence[str]], str]] = {
    Branch: _print_branch,
    Conditional: _print_conditional,
    BranchEnum: _print_branch_enum,
    If: _print_if,
    While: _print_while,
    For: _print_for,
}
"""The text of each op up to its first brace; its successors are called by their labels."""
