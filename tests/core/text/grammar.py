"""The grammar on `docs/ir.md`, read, and texts recognized by it: independent of the parser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from nnkit.core.ir import Op
from nnkit.core.text.lexer import Token, tokenize
from nnkit.core.text.operations import ALIASES, OPS
from nnkit.core.text.template import Attribute, Operand, Optional, Piece, Words, template_of

PAGE = (Path(__file__).parents[3] / "docs/ir.md").read_text()
BLOCKS = re.findall(r"```ebnf\n(.*?)```", PAGE, re.DOTALL)

KINDS = {
    "int": "INTEGER", "bool": "flag", "Shape": "shape", "tuple[int, ...]": "numbers",
    "tuple[int | str, ...]": "keys", "str": "STRING", "Type": "type", "tuple[Type, ...]": "types",
    "FunctionType": "function_type", "Symbol": "@NAME", "Case": "?NAME", "TensorType": "tensor",
    "tuple[tuple[int, int], ...]": "pairs", "Padding": "padding", "DType": "dtype",
    "Combinator": "operator", "Elementwise": "ordered", "Bounds": "bounds", "tuple[Access, ...]": "accesses",
    "tuple[Output, ...]": "outputs", "Update": "update", "Affine": "sum",
    "tuple[Affine, ...]": "coordinates",
}  # fmt: skip
"""What an attribute of each kind is called on the page."""

_SYMBOL = re.compile(r'"([^"]+)"|([@%\'$#?!]NAME|[A-Z]+|[a-z_]+)|([\[\]{}()|])')
_CLOSING = {"[": "]", "{": "}", "(": ")"}
_TOKEN_KINDS = {"INTEGER": "integer", "FLOAT": "float", "STRING": "string"}


@dataclass(frozen=True)
class Symbol:
    """A word, a kind of token, or a production, by name."""

    name: str
    is_word: bool = False


@dataclass(frozen=True)
class Group:
    """Alternatives, each a sequence; `kind` is the bracket around them."""

    kind: str
    alternatives: tuple[tuple[Node, ...], ...]


Node: TypeAlias = Symbol | Group


def productions() -> dict[str, tuple[str, str]]:
    """Of every production its right side and its example."""
    found: dict[str, tuple[str, str]] = {}
    for block in BLOCKS:
        for rule, example in re.findall(r"^(\w.*)\n> (.*)$", block, re.MULTILINE):
            name, _, right = rule.partition(" = ")
            assert name not in found
            found[name] = right, example
    return found


def symbols_in(right: str) -> list[str]:
    """The names, but not the words, on the right side of a production."""
    return [name for _, name, _ in _SYMBOL.findall(right) if name]


def names_in(group: Group) -> Iterator[str]:
    """The names, but not the words, in a rule."""
    pending: list[Node] = [group]
    while pending:
        node = pending.pop()
        if isinstance(node, Group):
            pending.extend(inner for sequence in node.alternatives for inner in sequence)
        elif not node.is_word:
            yield node.name


def read_rule(right: str) -> Group:
    """The right side of a production."""
    parts = [match.groups() for match in _SYMBOL.finditer(right)]
    open: list[tuple[str, list[list[Node]]]] = [("(", [[]])]
    for word, name, bracket in parts:
        if word or name:
            open[-1][1][-1].append(Symbol(word or name, bool(word)))
        elif bracket == "|":
            open[-1][1].append([])
        elif bracket in _CLOSING:
            open.append((bracket, [[]]))
        else:
            kind, inside = open.pop()
            assert _CLOSING[kind] == bracket
            open[-1][1][-1].append(Group(kind, tuple(map(tuple, inside))))
    [(_, alternatives)] = open
    return Group("(", tuple(map(tuple, alternatives)))


RULES = {name: read_rule(right) for name, (right, _) in productions().items()}


def rule_of(op: type[Op]) -> Group:
    """The production of an instruction, from its template; parts that may be missing in any order."""
    sequence = [Symbol(op.name, True), *_nodes(template_of(op))]
    if op.bodies:
        sequence.append(Group("[", ((Symbol("placement"),),)))
    for word in op.bodies:
        sequence += [Symbol(word, True)] * bool(word)
        sequence.append(Symbol("body"))
    return Group("(", (tuple(sequence),))


def _nodes(pieces: tuple[Piece, ...]) -> list[Node]:
    nodes: list[Node] = []
    options: list[tuple[Node, ...]] = []
    for piece in pieces:
        if options and not isinstance(piece, Optional):
            nodes.append(Group("{", tuple(options)))
            options = []
        match piece:
            case Words(tokens):
                nodes += [Symbol(token, True) for token in tokens]
            case Operand(is_variadic=True):
                nodes.append(Group("[", ((Symbol("operands"),),)))
            case Operand():
                nodes.append(Symbol("operand"))
            case Attribute(_, kind):
                nodes.append(Symbol(KINDS[kind]))
            case Optional(inner):
                options.append(tuple(_nodes(inner)))
    return [*nodes, Group("{", tuple(options))] if options else nodes


@dataclass
class Recognizer:
    """Where the productions that begin at a token of a text can end."""

    tokens: list[Token]
    known: dict[tuple[str, int], frozenset[int]] = field(
        default_factory=dict[tuple[str, int], frozenset[int]]
    )

    def ends(self, node: Node, start: int) -> frozenset[int]:
        if isinstance(node, Symbol):
            return self._symbol(node, start)
        if node.kind == "{":
            return self._repeated(node, start)
        once = self._once(node, start)
        return once | {start} if node.kind == "[" else once

    def _once(self, group: Group, start: int) -> frozenset[int]:
        found: set[int] = set()
        for sequence in group.alternatives:
            places = frozenset((start,))
            for node in sequence:
                places = frozenset(end for place in places for end in self.ends(node, place))
            found |= places
        return frozenset(found)

    def _repeated(self, group: Group, start: int) -> frozenset[int]:
        found, new = {start}, {start}
        while new:
            new = {end for place in new for end in self._once(group, place)} - found
            found |= new
        return frozenset(found)

    def _symbol(self, symbol: Symbol, start: int) -> frozenset[int]:
        token = self.tokens[start]
        if symbol.is_word:
            return frozenset((start + 1,)) if token.text == symbol.name else frozenset()
        if symbol.name.endswith("NAME") or symbol.name.isupper():
            return frozenset((start + 1,)) if _is_kind(token, symbol.name) else frozenset()
        key = symbol.name, start
        if key not in self.known:
            if symbol.name == "template":
                op = OPS.get(ALIASES.get(token.text, token.text))
                rule = rule_of(op) if op else None
                if op and token.text in ALIASES:
                    self.tokens[start] = token._replace(text=op.name)
            else:
                rule = RULES[symbol.name]
            self.known[key] = self.ends(rule, start) if rule else frozenset()
        return self.known[key]


def _is_kind(token: Token, name: str) -> bool:
    if name.endswith("NAME"):
        return token.kind == "name" and token.text[0] == name[0]
    if name == "COORDINATE":
        return re.fullmatch("d[0-9]+", token.text) is not None
    return token.kind == _TOKEN_KINDS[name]


def recognizes(production: str, text: str) -> bool:
    """Whether the grammar says that `text` is of this production."""
    split = re.sub(r"<(?=\d+ x )", "< ", text)  # no tensor type is one token
    tokens = tokenize(split)
    return len(tokens) - 1 in Recognizer(tokens).ends(Symbol(production), 0)
