"""The structured ops `if`, `while` and `for`, whose bodies are regions of one block each.

    %y = if %c: bool -> f32 {
    'then():
        yield %x: f32
    } else {
    'else():
        %z = negate %x: f32
        yield %z: f32
    }

    %n, %x = while carrying %n0: i64, %x0: f32 {
    'condition(%i: i64, %v: f32):
        %more = lessThan %i: i64, 10: i64
        yield %more: bool
    } do {
    'body(%i: i64, %v: f32):
        …
        yield %j: i64, %w: f32
    }

    %last, %all = for %lo: i64 upto %hi: i64 carrying %x0: f32 stacking <10 x f32> {
    'body(%i: i64, %x: f32):
        …
        yield %next: f32, %element: f32
    }

Up to stage optimizable a body sees the values around it.  From stage optimized on it is *closed*, and given them: the
last `inputs` operands become the last arguments of every body, unchanged in every iteration.  That is the form which
code is generated from (`core.passes.isolate`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import ClassVar, Self

from ..errors import DTypeError, ShapeError
from ..ir.instruction import Instruction, Value
from ..lazy_dataclass import dataclass
from ..types import BOOL, I64, TensorType, Type, scalar
from .flows import ControlPath, FlowLayout, KnownDecider, Role, Structured


@dataclass(frozen=True)
class If(Structured):
    """The results of the first body if the condition is true, else of the second; the other is not run.

    `inputs` operands after the condition are the arguments of both bodies.
    """

    name: ClassVar[str] = "if"
    syntax: ClassVar[str] = "if {condition} [-> {results}] [given {given*}]"
    bodies: ClassVar[tuple[str, ...]] = ("", "else")
    layouts = MappingProxyType(
        {
            Role.DECISION: FlowLayout(operands=1),
            Role.CHOSEN: FlowLayout(yields=(0, 1), has_result=True),
            Role.INPUT: FlowLayout(operands=1, arguments=(0, 1)),
        }
    )
    paths: ClassVar[tuple[ControlPath, ...]] = ((None, 0), (None, 1), (0, None), (1, None))
    is_loop: ClassVar[bool] = False
    ends: ClassVar[bool] = True
    results: tuple[Type, ...] = ()
    inputs: int = 0

    def infer(self, condition: Type, *given: Type) -> tuple[Type, ...]:
        if condition != scalar(BOOL):
            raise DTypeError(f"if decides by a bool, not by a {condition}")
        _check_inputs(self.name, self.inputs, given)
        return self.result_types((condition, *given))

    def roles(self, operands: Sequence[Type]) -> Iterator[tuple[Role, Type]]:
        yield Role.DECISION, scalar(BOOL)
        yield from _all(Role.CHOSEN, self.results)
        yield from _all(Role.INPUT, operands[1:])

    def with_roles(self, roles: Sequence[tuple[Role, Type]]) -> Self:
        return replace(self, results=_types(roles, Role.CHOSEN), inputs=_inputs(roles))

    def deciders(self, instruction: Instruction) -> Sequence[Value]:
        return instruction.operands[:1]

    def possible_paths(self, *deciders: KnownDecider) -> Iterator[ControlPath]:
        (condition,) = deciders
        for body, when in enumerate((True, False)):
            if condition is None or bool(condition) is when:
                yield None, body
                yield body, None

    def trips(self, *deciders: KnownDecider) -> int | None:
        return 1


@dataclass(frozen=True)
class While(Structured):
    """Runs its second body, on what it carries, for as long as the first one yields true.

    The operands before the inputs are carried: they are the arguments of both bodies, the second body yields
    their next values, and the results are the last ones.
    """

    name: ClassVar[str] = "while"
    syntax: ClassVar[str] = "while [carrying {carried*}] [given {given*}]"
    bodies: ClassVar[tuple[str, ...]] = ("", "do")
    layouts = MappingProxyType(
        {
            Role.DECISION: FlowLayout(yields=(0,)),
            Role.CARRIED: FlowLayout(operands=1, arguments=(0, 1), yields=(1,), has_result=True),
            Role.INPUT: FlowLayout(operands=1, arguments=(0, 1)),
        }
    )
    paths: ClassVar[tuple[ControlPath, ...]] = ((None, 0), (0, 1), (1, 0), (0, None))
    certain: ClassVar[tuple[ControlPath, ...]] = ((None, 0),)
    is_loop: ClassVar[bool] = True
    ends: ClassVar[bool] = False
    inputs: int = 0

    def infer(self, *operands: Type) -> tuple[Type, ...]:
        _check_inputs(self.name, self.inputs, operands)
        return self.result_types(operands)

    def roles(self, operands: Sequence[Type]) -> Iterator[tuple[Role, Type]]:
        end = len(operands) - self.inputs
        yield Role.DECISION, scalar(BOOL)
        yield from _all(Role.CARRIED, operands[:end])
        yield from _all(Role.INPUT, operands[end:])

    def with_roles(self, roles: Sequence[tuple[Role, Type]]) -> Self:
        return replace(self, inputs=_inputs(roles))

    def deciders(self, instruction: Instruction) -> Sequence[Value]:
        return instruction.regions[0].entry.terminator.operands

    def possible_paths(self, *deciders: KnownDecider) -> Iterator[ControlPath]:
        (condition,) = deciders
        yield None, 0
        if condition is None or condition:
            yield 0, 1
            yield 1, 0
        if not condition:
            yield 0, None


@dataclass(frozen=True)
class For(Structured):
    """Runs its body for every index from `lower` up to `upper`, which is not included; perhaps never.

    Operands: both bounds (i64), what is carried, the inputs.  The body takes the index, what is carried, and
    the inputs; it yields the next values of what is carried, then one element for each of `stacked`, whose
    leading axis counts the iterations: there must be exactly as many.  Results: what is carried at the end,
    then the stacked tensors.
    """

    name: ClassVar[str] = "for"
    syntax: ClassVar[str] = (
        "for {lower} upto {upper} [carrying {carried*}] [given {given*}] [stacking {stacked}]"
    )
    bodies: ClassVar[tuple[str, ...]] = ("",)
    layouts = MappingProxyType(
        {
            Role.INDEX: FlowLayout(operands=2, arguments=(0,)),
            Role.CARRIED: FlowLayout(operands=1, arguments=(0,), yields=(0,), has_result=True),
            Role.STACKED: FlowLayout(yields=(0,), has_result=True),
            Role.INPUT: FlowLayout(operands=1, arguments=(0,)),
        }
    )
    paths: ClassVar[tuple[ControlPath, ...]] = ((None, 0), (None, None), (0, 0), (0, None))
    is_loop: ClassVar[bool] = True
    ends: ClassVar[bool] = True
    stacked: tuple[Type, ...] = ()
    inputs: int = 0

    def infer(self, lower: Type, upper: Type, *rest: Type) -> tuple[Type, ...]:
        for bound in (lower, upper):
            if bound != scalar(I64):
                raise DTypeError(f"for counts in i64, not in {bound}")
        _check_inputs(self.name, self.inputs, rest)
        extents: set[int] = set()
        for type in self.stacked:
            if not isinstance(type, TensorType) or not type.rank:
                raise ShapeError(f"for stacks tensors along a new leading axis, not {type}")
            extents.add(type.shape[0])
        if len(extents) > 1:
            raise ShapeError(f"for stacks one element per iteration, not {sorted(extents)}")
        return self.result_types((lower, upper, *rest))

    def roles(self, operands: Sequence[Type]) -> Iterator[tuple[Role, Type]]:
        end = len(operands) - self.inputs
        yield Role.INDEX, scalar(I64)
        yield from _all(Role.CARRIED, operands[2:end])
        yield from _all(Role.STACKED, self.stacked)
        yield from _all(Role.INPUT, operands[end:])

    def with_roles(self, roles: Sequence[tuple[Role, Type]]) -> Self:
        return replace(self, stacked=_types(roles, Role.STACKED), inputs=_inputs(roles))

    def deciders(self, instruction: Instruction) -> Sequence[Value]:
        return instruction.operands[:2]

    def possible_paths(self, *deciders: KnownDecider) -> Iterator[ControlPath]:
        lower, upper = deciders
        trips = self.trips(lower, upper)
        if trips is None or trips:
            yield None, 0
            yield 0, None
        if trips is None or trips > 1:
            yield 0, 0
        if not trips:
            yield None, None

    def trips(self, *deciders: KnownDecider) -> int | None:
        lower, upper = deciders
        return None if lower is None or upper is None else max(upper - lower, 0)

    def can_fail(self) -> bool:
        """Where the iterations are not as many as the elements."""
        return bool(self.stacked)


def _all(role: Role, types: Sequence[Type]) -> Iterator[tuple[Role, Type]]:
    return ((role, type) for type in types)


def _types(roles: Sequence[tuple[Role, Type]], wanted: Role) -> tuple[Type, ...]:
    return tuple(type for role, type in roles if role is wanted)


def _inputs(roles: Sequence[tuple[Role, Type]]) -> int:
    return len(_types(roles, Role.INPUT))


def _check_inputs(name: str, count: int, given: tuple[Type, ...]) -> None:
    if not 0 <= count <= len(given):
        raise ShapeError(f"{name} gives its bodies {count} of {len(given)} operands")
