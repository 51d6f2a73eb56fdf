"""Differentiates calls: a forward and a backward function per callee and activity, shared by all call sites.

    %y, %s = apply @f_fwd(%x, %w)           the results of @f, and what was saved on the way
    …
    %g = apply @f_bwd(%w, %s, %ȳ)           gradients of the arguments that want one

A *residual* is a value of the forward half that the backward half uses.  Arguments and results of the
call are at hand where it stands, so only the others are saved.  When there is none, @f is its own forward function.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence

from ..ir import Block, Builder, Function, Instruction, SavePolicy, Value
from ..lazy_dataclass import dataclass
from ..ops.aggregate import Apply
from .activity import Mask
from .primal_copy import PrimalCopy


@dataclass(frozen=True)
class PullbackKey:
    """The key of a pullback: `@name` with the masks of active arguments and results, and a policy what to save.

    `wanted` arguments get gradients, `seeded` results have a cotangent.  Without a policy all that is used is saved.
    """

    name: str
    wanted: Mask
    seeded: Mask
    save: SavePolicy | None = None


class ResidualSource(enum.Enum):
    """Where a caller finds a residual that need not be saved: an argument or a result."""

    ARGUMENT = "argument"
    RESULT = "result"


@dataclass(frozen=True)
class ResidualPlace:
    """The argument or result number `position`."""

    source: ResidualSource
    position: int


@dataclass(frozen=True)
class Pullback:
    """The functions for a signature.

    `forward` returns the results and what is saved; None says that nothing is.  `backward` takes the
    residuals, what was saved, the cotangents of the results `seeds`, and the shadows of the arguments `shadowed`, to
    which it adds; it returns the cotangents of the arguments `gradients`.  None says that nothing flows back.
    """

    forward: Function | None = None
    backward: Function | None = None
    residuals: tuple[ResidualPlace, ...] = ()
    seeds: tuple[int, ...] = ()
    gradients: tuple[int, ...] = ()
    shadowed: tuple[int, ...] = ()


@dataclass
class SavingCall:
    """The call of a forward function, which has what is `saved` behind the results of `@f`."""

    instruction: Instruction
    saved: tuple[Value, ...]

    def replace(self, call: Instruction) -> Instruction:
        """That call, which now gives the results of `call`."""
        self.instruction.results = (*call.results, *self.saved)
        for result in call.results:
            result.producer = self.instruction
        return self.instruction


def call_forward(copy: PrimalCopy, call: Instruction, forward: Function) -> SavingCall:
    """The call of the forward function in place of `call`, when the backward function needs residuals."""
    b = Builder(Block(), call.location)
    results = b.emit_many(Apply(forward.name, forward.type), call.operands)
    saved = results[len(call.results) :]
    site = copy.origins[call.results[0]] if call.results else copy.silent[call]
    for number, value in enumerate(saved):
        copy.origins[value] = site, f"{forward.name} {number}"
    return SavingCall(b.block.instructions[0], saved)


def call_backward(
    b: Builder,
    pullback: Pullback,
    residuals: Sequence[Value],
    seeds: Mapping[int, Value],
    shadows: Mapping[int, Value] | None = None,
) -> dict[int, Value]:
    """The cotangents of the arguments that have one, by their position; `shadows` are those of `pullback.shadowed`."""
    backward = pullback.backward
    if backward is None:
        return {}
    given = [*residuals, *(seeds[position] for position in pullback.seeds)]
    if shadows:
        given += [shadows[position] for position in pullback.shadowed]
    results = b.emit_many(Apply(backward.name, backward.type), given)
    return dict(zip(pullback.gradients, results, strict=True))
