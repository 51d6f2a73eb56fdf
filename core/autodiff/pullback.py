"""How a call is differentiated: two functions made once, which all calls with the same needs share.

    %t = apply @f_fwd(%x, %w)               the result of @f, and what was saved on the way
    %y, %s = extract 0, 1 from %t
    …
    %g = apply @f_bwd(%w, %s, %ȳ)           gradients of the arguments that want one

A *residual* is a value of the forward half that the backward half uses.  Arguments and results of the
call are at hand where it stands, so only the others are saved, as one value, which may be a tuple; a
caller that saves it in turn need not look inside.  When there is none, @f is its own forward function.
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

    `wanted` arguments get gradients, `seeded` results have a cotangent.
    """

    name: str
    wanted: int
    seeded: int


class Source(enum.Enum):
    """Where a caller has a residual that need not be saved."""

    ARGUMENT = "argument"
    RESULT = "result"


@dataclass(frozen=True)
class Residual:
    """The leaf number `position` of the arguments or of the result."""

    source: Source
    position: int


@dataclass(frozen=True)
class Pullback:
    """The functions for a signature.

    `forward` returns the result and what is saved; None says that nothing is.  `backward` takes the
    residuals, what was saved, and the cotangents of the result leaves `seeds`; it returns those of the
    argument leaves `gradients`.  None says that nothing flows back.
    """

    forward: Function | None = None
    backward: Function | None = None
    residuals: tuple[Residual, ...] = ()
    seeds: tuple[int, ...] = ()
    gradients: tuple[int, ...] = ()


@dataclass
class SavingCall:
    """Instructions that do what a call does and have what is `saved` as well."""

    instructions: list[Instruction]
    saved: Value

    def replace(self, call: Instruction) -> list[Instruction]:
        """Those instructions, the second of which now gives the result of `call`."""
        result = call.result
        extract = self.instructions[1]
        extract.results = (result,)
        result.producer = extract
        return self.instructions


def call_forward(copy: Copy, call: Instruction, forward: Function) -> SavingCall:
    """What stands in for `call`, a call in `copy`, when its backward function wants something saved."""
    b = Builder(Block(), call.location)
    both = b.emit(Apply(forward.name, forward.type), *call.operands)
    b.emit(Extract((0,)), both)
    saved = b.emit(Extract((1,)), both)
    site, _ = copy.origins[copy.leaves[call.result][0]]
    copy.origins[saved] = site, forward.name
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
