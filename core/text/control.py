"""Control flow as text: branches with their successors, and the heads of `if`, `while` and `for`.

branch 'b(%x: T)
conditional %c: bool then 'a(%x: T) else 'b
branchEnum %e: $E case ?leaf 'a case ?node 'b
if %c: bool -> f32, <2 x f32> given %x: T
while carrying %x: T given %y: U
for %lo: i64 upto %hi: i64 carrying %x: T given %y: U stacking <10 x f32>
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..ir import Builder, Instruction, Op, Value
from ..ops.control import For, If, While
from ..ops.terminators import Branch, BranchEnum, Conditional, arguments_of
from ..types import Type
from .cursor import Cursor
from .lexer import Token, written
from .types import parse_type

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
        operands += _operands(cursor, b, operand)
    given = _operands(cursor, b, operand) if cursor.accept("given") else []
    operands += given
    if opcode == "while":
        return While(len(given)), operands
    return For(_types(cursor) if cursor.accept("stacking") else (), len(given)), operands


def _parse_if(cursor: Cursor, b: Builder, operand: ReadOperand) -> tuple[Op, list[Value]]:
    """The results come first: behind a tuple type, `->` would make it the type of a function."""
    condition = operand(b)
    results = _types(cursor) if cursor.accept("->") else ()
    given = _operands(cursor, b, operand) if cursor.accept("given") else []
    if not results and cursor.accept("->"):
        results = _types(cursor)
    return If(results, len(given)), [condition, *given]


def _operands(cursor: Cursor, b: Builder, operand: ReadOperand) -> list[Value]:
    found = [operand(b)]
    while cursor.accept(","):
        found.append(operand(b))
    return found


def _types(cursor: Cursor) -> tuple[Type, ...]:
    types = [parse_type(cursor)]
    while cursor.accept(","):
        types.append(parse_type(cursor))
    return tuple(types)


def print_branch(instruction: Instruction, typed: Typed, labels: Sequence[str]) -> str:
    """The text of a terminator with successors, which are called `labels`."""
    op, operands = instruction.op, instruction.operands
    targets = [
        label + _parenthesized(arguments_of(instruction, k), typed)
        for k, label in enumerate(labels)
    ]
    if isinstance(op, Branch):
        return f"branch {targets[0]}"
    if isinstance(op, Conditional):
        return f"conditional {typed(operands[0])} then {targets[0]} else {targets[1]}"
    assert isinstance(op, BranchEnum)
    cases = (f" case {written('?', c)} {t}" for c, t in zip(op.cases, targets, strict=True))
    return f"branchEnum {typed(operands[0])}{''.join(cases)}"


def _parenthesized(arguments: Sequence[Value], typed: Typed) -> str:
    return f"({', '.join(map(typed, arguments))})" if arguments else ""


def print_head(instruction: Instruction, typed: Typed) -> str:
    """The text of a structured op up to its first brace."""
    op, operands = instruction.op, instruction.operands
    assert isinstance(op, If | While | For)
    fixed = {If: 1, While: 0, For: 2}[type(op)]
    end = len(operands) - op.inputs
    parts = [op.name]
    if fixed:
        parts.append(" upto ".join(map(typed, operands[:fixed])))
    if operands[fixed:end]:
        parts.append(f"carrying {', '.join(map(typed, operands[fixed:end]))}")
    if isinstance(op, If) and op.results:
        parts.append(f"-> {', '.join(map(str, op.results))}")
    if operands[end:]:
        parts.append(f"given {', '.join(map(typed, operands[end:]))}")
    if isinstance(op, For) and op.stacked:
        parts.append(f"stacking {', '.join(map(str, op.stacked))}")
    return " ".join(parts)
