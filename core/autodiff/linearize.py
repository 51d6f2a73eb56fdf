"""The reverse sweep: propagates cotangents backwards through a copy of one function.

    %y = sin %x            ȳ is known         x̄ += ȳ · cos %x        (the op's rule)
    %y = apply @f(%x, …)   ȳ is known         x̄ += apply @f_bwd(residuals, ȳ)

1. The primal is copied; the copy's instructions are the forward half.
2. Instructions are visited last to first.  One without a cotangent, or without an operand that depends
   on what is wanted, costs nothing.
3. A call asks (by `yield`) for the pullback of its callee, and gets its two functions.
4. The backward half refers to values of the forward half freely.  Whoever asked decides whether both end
   up in one function (`core.autodiff.reverse`) or in two (`core.autodiff.residuals`).

Source: Griewank & Walther 2008, Evaluating Derivatives, §3.2.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Set
from dataclasses import dataclass, field
from typing import TypeAlias

from ..errors import DifferentiationError
from ..ir import Block, Builder, Function, Instruction, Value
from ..location import located
from ..ops.aggregate import Apply
from .activity import Activity, Mask, mask_of
from .adjoints import Adjoints
from .primal_copy import PrimalCopy, copy_primal
from .pullback import Pullback, PullbackKey, ResidualSource, SavingCall, call_backward, call_forward
from .rules import vjp_of

Seeds: TypeAlias = "Callable[[Builder], Mapping[int, Value]]"
"""The cotangents of results by their number, emitted at the head of the backward half."""


@dataclass
class Linearized:
    """A copy of the primal, the reverse sweep over it, and what the sweep gathered.

    `calls` are the calls of the copy whose pullbacks want something saved.
    """

    copy: PrimalCopy
    backward: Builder
    adjoints: Adjoints
    calls: dict[Instruction, SavingCall] = field(default_factory=dict[Instruction, SavingCall])

    def forward(self, used: Set[Value]) -> list[Instruction]:
        """The forward half; a call saves what its pullback wants only if that is `used`."""
        half: list[Instruction] = []
        for instruction in self.copy.builder.block.instructions:
            saving = self.calls.get(instruction)
            if saving is not None and not used.isdisjoint(saving.saved):
                instruction = saving.replace(instruction)
            half.append(instruction)
        return half

    def drop_all_but(self, *functions: Function) -> None:
        """Have what was made, and is in none of these functions, use nothing any more."""
        kept = {
            instruction for function in functions for instruction in function.entry.instructions
        }
        saving = [call.instruction for call in self.calls.values()]
        halves = (self.copy.builder, self.backward)
        for instruction in (*saving, *(i for half in halves for i in half.block.instructions)):
            if instruction not in kept:
                instruction.drop_all_references()


Linearizing: TypeAlias = "Generator[PullbackKey, Pullback | None, Linearized]"


def linearize(function: Function, wanted: Mask, seeds: Seeds, activity: Activity) -> Linearizing:
    """Sweep over a copy of `function` for the derivatives by the parameters in `wanted`.

    Raises: DifferentiationError, with the user's line, for an op without a derivative on the way.
    """
    copy = copy_primal(function, wanted, activity)
    backward = Builder(Block())
    result = Linearized(copy, backward, Adjoints(backward, copy.active))
    backward.location = function.entry.terminator.location
    for position, seed in seeds(backward).items():
        result.adjoints.add(copy.results[position], seed)
    for instruction in reversed(copy.builder.block.instructions):
        backward.location = instruction.location
        if isinstance(instruction.op, Apply):
            yield from _sweep_call(result, instruction)
        else:
            _sweep(result, instruction)
    backward.location = None
    return result


def _sweep(work: Linearized, instruction: Instruction) -> None:
    """Hand the cotangents of an instruction on to its operands, by the rule of its op."""
    adjoints, op = work.adjoints, instruction.op
    cts = [adjoints[result] for result in instruction.results]
    if all(ct is None for ct in cts) or adjoints.active.isdisjoint(instruction.operands):
        return
    try:
        derivatives = vjp_of(work.backward, op, instruction.results, instruction.operands, cts)
    except DifferentiationError as error:
        raise located(error, instruction.location) from None
    for operand, derivative in zip(instruction.operands, derivatives, strict=True):
        adjoints.add(operand, derivative)


def _sweep_call(
    work: Linearized, instruction: Instruction
) -> Generator[PullbackKey, Pullback | None, None]:
    """The same for a call, by way of the pullback of what it calls."""
    copy, adjoints = work.copy, work.adjoints
    op = instruction.op
    assert isinstance(op, Apply)
    arguments, results = instruction.operands, instruction.results
    seeds = {k: ct for k, x in enumerate(results) if (ct := adjoints[x]) is not None}
    wanted = mask_of(k for k, x in enumerate(arguments) if x in adjoints.active)
    if not wanted or not seeds:
        return
    pullback = yield PullbackKey(op.callee, wanted, mask_of(seeds))
    assert pullback is not None
    at_hand = {ResidualSource.ARGUMENT: arguments, ResidualSource.RESULT: results}
    residuals = [at_hand[residual.source][residual.position] for residual in pullback.residuals]
    if pullback.forward:
        work.calls[instruction] = call_forward(copy, instruction, pullback.forward)
        residuals += work.calls[instruction].saved
    for position, derivative in call_backward(work.backward, pullback, residuals, seeds).items():
        adjoints.add(arguments[position], derivative)
