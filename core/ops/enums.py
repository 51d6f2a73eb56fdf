"""Values of enums; `branchEnum` in `terminators` takes them apart."""

from __future__ import annotations

from typing import ClassVar, TypeAlias

from ..errors import DTypeError
from ..ir.instruction import Emitter, Instruction, Pure, Value
from ..lazy_dataclass import dataclass
from ..types import (
    BOOL,
    ArrayType,
    EnumType,
    StructType,
    TupleType,
    Type,
    parts_of,
    scalar,
    written,
)
from .aggregate import listed

Case: TypeAlias = str
"""The name of a case; written `?name`."""


@dataclass(frozen=True)
class EnumCase(Pure):
    """A case of an enum with what it carries: `literal ?node(%l: $Tree, %r: $Tree): $Tree`."""

    name: ClassVar[str] = "enumCase"
    syntax: ClassVar[str] = "literal ?{case}({carried*}): {type}"
    takes_any: ClassVar[bool] = True
    type: EnumType
    case: str

    def infer(self, *carried: Type) -> Type:
        expected = carried_by(self.type, self.case)
        if carried != expected:
            raise DTypeError(
                f"{written('?', self.case)} of {self.type} carries ({listed(expected)}), not ({listed(carried)})"
            )
        return self.type


@dataclass(frozen=True)
class IsCase(Pure):
    """Whether an enum is of a case: `isCase ?node of %e: $Tree`."""

    name: ClassVar[str] = "isCase"
    syntax: ClassVar[str] = "isCase {case} of {value}"
    takes_any: ClassVar[bool] = True
    case: Case

    def infer(self, value: Type) -> Type:
        carried_by(value, self.case)
        return scalar(BOOL)


@dataclass(frozen=True)
class Payload(Pure):
    """What an enum of a known case carries: `payload ?node 0 of %e: $Tree`.

    Undefined for an enum of another case.
    """

    name: ClassVar[str] = "payload"
    syntax: ClassVar[str] = "payload {case} {index} of {value}"
    takes_any: ClassVar[bool] = True
    case: Case
    index: int

    def infer(self, value: Type) -> Type:
        carried = carried_by(value, self.case)
        if not 0 <= self.index < len(carried):
            raise DTypeError(
                f"{written('?', self.case)} of {value} carries ({listed(carried)}): there is no element {self.index}"
            )
        return carried[self.index]


def case_made(instruction: Instruction | None) -> EnumCase | None:
    """The op of what makes a case of an enum."""
    op = instruction.op if instruction is not None else None
    return op if isinstance(op, EnumCase) else None


def case_read(instruction: Instruction) -> Payload | None:
    """The op of what reads a case of an enum."""
    return instruction.op if isinstance(instruction.op, Payload) else None


def payload_of(b: Emitter, value: Value, case: str, index: int) -> Value:
    """What `value` carries at `index` if it is of `case`: what was put there, where that is known."""
    made = case_made(value.producer)
    if made is not None and made.case == case and value.producer is not None:
        return value.producer.operands[index]
    return b.emit(Payload(case, index), value)


def carried_by(value: Type, case: str) -> tuple[Type, ...]:
    """What `case` of an enum carries.  Raises: DTypeError where there is no such case."""
    if not isinstance(value, EnumType):
        raise DTypeError(f"only enums have cases, not a {value}")
    if case not in value.positions:
        known = ", ".join(written("?", name) for name in value.positions) or "no cases"
        raise DTypeError(f"{value} has no case {written('?', case)}: it has {known}")
    return value.carried(case)


def default_cases(type: Type) -> dict[str, str]:
    """For each enum that a value of `type` may hold, by name, the case that `undefined` means.

    1. A case is possible once all enums that it carries have their case; one that carries none is at once.
    2. In each round, enums take the first of their cases that are possible.
    3. Enums that never get one have no values: they are left out.
    """
    enums = _enums_in(type)
    missing: dict[tuple[str, int], int] = {}
    needed_by: dict[str, list[tuple[str, int]]] = {}
    possible: list[tuple[str, int]] = []
    for name, enum in enums.items():
        for number, (_, carried) in enumerate(enum.cases):
            needs = {inner.name for part in carried for inner in _held(part)}
            missing[name, number] = len(needs)
            for inner in needs:
                needed_by.setdefault(inner, []).append((name, number))
            if not needs:
                possible.append((name, number))
    chosen: dict[str, str] = {}
    while possible:
        first: dict[str, int] = {}
        for name, number in possible:
            if name not in chosen:
                first[name] = min(number, first.get(name, number))
        chosen |= {name: enums[name].cases[number][0] for name, number in first.items()}
        possible = []
        for place in (place for name in first for place in needed_by.get(name, ())):
            missing[place] -= 1
            if not missing[place]:
                possible.append(place)
    return chosen


def _enums_in(type: Type) -> dict[str, EnumType]:
    """The enums that a value of `type` may hold, at any depth."""
    found: dict[str, EnumType] = {}
    pending = [type]
    while pending:
        for enum in _held(pending.pop()):
            if enum.name not in found:
                found[enum.name] = enum
                pending.extend(part for _, carried in enum.cases for part in carried)
    return found


def _held(type: Type) -> list[EnumType]:
    """The enums that lie in a value of `type` itself, not in another enum or behind a pointer."""
    found: list[EnumType] = []
    seen: set[int] = set()
    pending = [type]
    while pending:
        current = pending.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        match current:
            case EnumType():
                found.append(current)
            case ArrayType(count=0):
                pass
            case TupleType() | StructType() | ArrayType():
                pending.extend(parts_of(current))
            case _:
                pass
    return found
