"""How a call is differentiated: two functions made once, which all calls with the same needs share.

    %t = apply @f_fwd(%x, %w)               the result of @f and what was saved on the way
    %y = extract 0 from %t
    …
    %g = apply @f_bwd(%w, %s, %ȳ)           gradients of the arguments that want one

A *residual* is a value of the forward half that the backward half uses.  Arguments and results of the
call are at hand where it stands, so only the others are saved; when there are none, @f itself serves as
the forward function.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..ir import Block, Builder, Function, Instruction, Value
from ..ops.aggregate import Apply, Extract
from .copy import Copy


@dataclass(frozen=True)
class Signature:
    """What a call needs of `@name`: masks of argument leaves and of result leaves.

    `wanted` arguments get gradients, `seeded` results have a cotangent, those in `strong` a strong one.
    """

    name: str
    wanted: int
    seeded: int
    strong: int


class Source(enum.Enum):
    """Where a caller finds a residual."""

    ARGUMENT = "argument"
    RESULT = "result"
    SAVED = "saved"


@dataclass(frozen=True)
class Residual:
    """The leaf number `position` of the arguments or the result, or a saved value."""

    source: Source
    position: int


@dataclass(frozen=True)
class Pullback:
    """The functions for a signature.

    `backward` takes the residuals and the cotangents of the result leaves `seeds`; it returns those of
    the argument leaves `gradients`, of which the mask `strong` has strong zeros.  None as `backward`
    says that nothing flows back, None as `forward` that nothing is saved.
    """

    forward: Function | None = None
    backward: Function | None = None
    residuals: tuple[Residual, ...] = ()
    seeds: tuple[int, ...] = ()
    gradients: tuple[int, ...] = ()
    strong: int = 0


@dataclass
class SavingCall:
    """Instructions that do what a call does and have the `saved` residuals as well."""

    instructions: list[Instruction]
    saved: list[Value]

    def replace(self, call: Instruction) -> list[Instruction]:
        """Those instructions, the second of which now gives the result of `call`."""
        result = call.result
        extract = self.instructions[1]
        extract.results = (result,)
        result.producer = extract
        return self.instructions


def call_forward(copy: Copy, call: Instruction, pullback: Pullback) -> SavingCall:
    """What stands in for `call`, a call in `copy`; no instructions when nothing is saved."""
    forward = pullback.forward
    if forward is None:
        return SavingCall([], [])
    b = Builder(Block(), call.location)
    both = b.emit(Apply(forward.name, forward.type), *call.operands)
    b.emit(Extract((0,)), both)
    count = sum(residual.source is Source.SAVED for residual in pullback.residuals)
    saved = [b.emit(Extract((1 + position,)), both) for position in range(count)]
    site = copy.origins[copy.leaves[call.result][0]][0]
    for position, value in enumerate(saved):
        copy.origins[value] = (site, forward.name, position)
    return SavingCall(b.block.instructions, saved)


def call_backward(
    b: Builder, pullback: Pullback, residuals: Sequence[Value], seeds: Mapping[int, Value]
) -> dict[int, Value]:
    """The cotangents of the argument leaves that have one, by their position."""
    backward = pullback.backward
    if backward is None:
        return {}
    given = [*residuals, *(seeds[position] for position in pullback.seeds)]
    result = b.emit(Apply(backward.name, backward.type), *given)
    if len(pullback.gradients) == 1:
        return {pullback.gradients[0]: result}
    return {
        position: b.emit(Extract((number,)), result)
        for number, position in enumerate(pullback.gradients)
    }
