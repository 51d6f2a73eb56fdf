"""Structured control flow: `if`, `while` and `for`, whose bodies are regions of one block each.

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

A body sees the values around it.  It can also be given them: the last `inputs` operands become the last
arguments of every body, unchanged in every iteration.  With all of them given, the bodies are *closed*, and
nothing outside is used; that is the form which code is generated from (`core.passes.isolate`).
"""

from __future__ import annotations

import abc
from dataclasses import dataclass
from typing import ClassVar

from ..errors import DTypeError, ShapeError
from ..ir.graph import Instruction, Pure
from ..ir.stage import EARLY, Stage, Stages
from ..types import BOOL, I64, TensorType, Type, scalar


class Structured(Pure):
    """An op whose bodies are run, chosen or repeated; each ends with `yield`."""

    takes_any: ClassVar[bool] = True
    stages: ClassVar[Stages] = EARLY | {Stage.COMPUTE}
    inputs: int

    @abc.abstractmethod
    def body_arguments(self, region: int, operands: tuple[Type, ...]) -> tuple[Type, ...]:
        """The types of the arguments that body number `region` takes."""

    @abc.abstractmethod
    def body_yields(self, region: int, operands: tuple[Type, ...]) -> tuple[Type, ...]:
        """The types of what body number `region` yields."""


@dataclass(frozen=True)
class If(Structured):
    """The results of the first body if the condition is true, else of the second; the other is not run.

    `inputs` operands after the condition are the arguments of both bodies.
    """

    name: ClassVar[str] = "if"
    syntax: ClassVar[str] = "if {condition} [-> {results}] [given {given*}]"
    bodies: ClassVar[tuple[str, ...]] = ("", "else")
    results: tuple[Type, ...] = ()
    inputs: int = 0

    def infer(self, condition: Type, *given: Type) -> tuple[Type, ...]:
        if condition != scalar(BOOL):
            raise DTypeError(f"if decides by a bool, not by a {condition}")
        _check_inputs(self, given)
        return self.results

    def body_arguments(self, region: int, operands: tuple[Type, ...]) -> tuple[Type, ...]:
        return operands[1:]

    def body_yields(self, region: int, operands: tuple[Type, ...]) -> tuple[Type, ...]:
        return self.results


@dataclass(frozen=True)
class While(Structured):
    """Runs its second body, on what it carries, for as long as the first one yields true.

    The operands before the inputs are carried: they are the arguments of both bodies, the second body yields
    their next values, and the results are the last ones.
    """

    name: ClassVar[str] = "while"
    syntax: ClassVar[str] = "while [carrying {carried*}] [given {given*}]"
    bodies: ClassVar[tuple[str, ...]] = ("", "do")
    inputs: int = 0

    def infer(self, *operands: Type) -> tuple[Type, ...]:
        _check_inputs(self, operands)
        return operands[: len(operands) - self.inputs]

    def body_arguments(self, region: int, operands: tuple[Type, ...]) -> tuple[Type, ...]:
        return operands

    def body_yields(self, region: int, operands: tuple[Type, ...]) -> tuple[Type, ...]:
        return (scalar(BOOL),) if region == 0 else operands[: len(operands) - self.inputs]


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
    stacked: tuple[Type, ...] = ()
    inputs: int = 0

    def infer(self, lower: Type, upper: Type, *rest: Type) -> tuple[Type, ...]:
        for bound in (lower, upper):
            if bound != scalar(I64):
                raise DTypeError(f"for counts in i64, not in {bound}")
        _check_inputs(self, rest)
        extents: set[int] = set()
        for type in self.stacked:
            if not isinstance(type, TensorType) or not type.rank:
                raise ShapeError(f"for stacks tensors along a new leading axis, not {type}")
            extents.add(type.shape[0])
        if len(extents) > 1:
            raise ShapeError(f"for stacks one element per iteration, not {sorted(extents)}")
        return (*rest[: len(rest) - self.inputs], *self.stacked)

    def body_arguments(self, region: int, operands: tuple[Type, ...]) -> tuple[Type, ...]:
        return (scalar(I64), *operands[2:])

    def body_yields(self, region: int, operands: tuple[Type, ...]) -> tuple[Type, ...]:
        carried = operands[2 : len(operands) - self.inputs]
        return (*carried, *(element_of(type) for type in self.stacked))

    def can_fail(self) -> bool:
        """Where the iterations are not as many as the elements."""
        return bool(self.stacked)


def element_of(stacked: Type) -> Type:
    """What one iteration adds to a stacked tensor."""
    if not isinstance(stacked, TensorType):
        raise ShapeError(f"for stacks tensors, not {stacked}")
    return stacked.with_shape(stacked.shape[1:])


def carried_of(instruction: Instruction) -> slice[int, int, None]:
    """Which operands of a `while` or `for` are carried."""
    op = instruction.op
    assert isinstance(op, While | For)
    first = 2 if isinstance(op, For) else 0
    return slice(first, len(instruction.operands) - op.inputs)


def _check_inputs(op: Structured, given: tuple[Type, ...]) -> None:
    if not 0 <= op.inputs <= len(given):
        raise ShapeError(f"{op.name} gives its bodies {op.inputs} of {len(given)} operands")
