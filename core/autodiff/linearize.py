"""The reverse sweep: propagates cotangents backwards through a copy of one function.

    %y = sin %x            ȳ is known         x̄ += ȳ · cos %x        (the op's rule)
    %y = apply @f(%x, …)   ȳ is known         x̄ += apply @f_bwd(residuals, ȳ)

1. The primal is copied; the copy's instructions are the forward half.
2. Instructions are visited last to first.  One without a cotangent, or without an operand that depends
   on what is wanted, costs nothing.
3. A call asks (by `yield`) for the pullback of its callee, and gets its two functions.
4. Control flow is swept body by body (`core.autodiff.reverse_control_flow`).
5. The backward half refers to values of the forward half freely.  Whoever asked decides whether both end
   up in one function (`core.autodiff.reverse`) or in two (`core.autodiff.residuals`).

Source: Griewank & Walther 2008, Evaluating Derivatives, §3.2.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import TypeAlias

from ..analysis.pointer_bases import leads_to_memory
from ..errors import DifferentiationError
from ..ir import Block, Builder, Function, Instruction, SavePolicy, Value
from ..ir.loop_schedules import LoopSchedule
from ..location import derivative_location, located
from ..ops.aggregate import Apply
from ..ops.enums import case_made, case_read
from .activity import Activity, Mask, mask_of, refuse_foreign
from .adjoints import Adjoints
from .cotangent_arithmetic import CotangentArithmetic
from .linearized import Linearized, Sweep
from .primal_copy import copy_primal
from .pullback import Pullback, PullbackKey, ResidualSource, call_backward, call_forward
from .reverse_control_flow import reverse_control_flow
from .rules import vjp_of
from .shadows import Shadows, check_shadows
from .tapes import Tapes

Seeds: TypeAlias = "Callable[[Builder], Mapping[int, Value]]"
"""The cotangents of results by their number, emitted at the head of the backward half."""


Linearizing: TypeAlias = "Generator[PullbackKey | Sweep, Pullback | None, Linearized]"


def linearize(
    function: Function,
    wanted: Mask,
    seeds: Seeds,
    activity: Activity,
    tapes: Tapes,
    arithmetic: CotangentArithmetic,
    *,
    save: SavePolicy | None = None,
    callees_save: SavePolicy | None = None,
    schedule: LoopSchedule | None = None,
) -> Linearizing:
    """Sweep over a copy of `function` for the derivatives by the parameters in `wanted`.

    `save` is the policy for what its bodies save, `callees_save` that for the functions it calls; its outermost
    loops are reversed by the `schedule`.
    Raises: DifferentiationError, with the user's line, for an op without a derivative on the way.
    """
    copy = copy_primal(function, wanted, activity)
    backward = Builder(Block())
    adjoints = Adjoints(backward, copy.active, arithmetic)
    result = Linearized(copy, backward, adjoints, tapes, {}, save, callees_save, schedule)
    backward.location = function.entry.terminator.location
    for position, seed in seeds(backward).items():
        result.adjoints.add(copy.results[position], seed)
    if result.shadows is not None:
        _take_shadows(result, result.shadows, wanted)
    yield from sweep_block(result, copy.builder.block, result.adjoints)
    return result


def _take_shadows(work: Linearized, shadows: Shadows, wanted: Mask) -> None:
    """The backward half takes the shadows of the memory that parameters lead to, behind its seeds."""
    active = work.copy.active
    check_shadows(work.copy.primal, wanted, [x in active for x in work.copy.arguments])
    for pointer in work.copy.arguments:
        if not leads_to_memory(pointer.type) or pointer not in active:
            continue
        shadow = work.backward.argument(pointer.type, f"d{pointer.name}" if pointer.name else None)
        shadows.give(pointer, shadow)


def sweep_block(work: Linearized, block: Block, adjoints: Adjoints) -> Sweep:
    """Visit the instructions of a block of the forward half, last to first, with the `adjoints` of what it gives."""
    b = adjoints.builder
    shadows = work.shadows
    if shadows is not None:
        shadows.begin(b, block)
    for instruction in reversed(block.instructions):
        if shadows is not None and instruction.op.acts_on_shadows:
            b.location = derivative_location(instruction.location, instruction.op.name)
            shadows.sweep(instruction, adjoints)
            continue
        cts = [adjoints[result] for result in instruction.results]
        if all(ct is None for ct in cts) and instruction not in work.writers:
            continue
        b.location = derivative_location(instruction.location, instruction.op.name)
        if isinstance(instruction.op, Apply):
            yield from _sweep_call(work, instruction, instruction.op, adjoints)
        elif (made := case_made(instruction)) is not None:
            carried = adjoints.arithmetic.carried(b, cts[0], made)
            for operand, derivative in zip(instruction.operands, carried, strict=True):
                adjoints.add(operand, derivative)
        elif (read := case_read(instruction)) is not None:
            (enum,) = instruction.operands
            adjoints.add_carried(enum, read.case, read.index, cts[0])
        elif instruction.op.is_structured:
            yield reverse_control_flow(work, block, instruction, adjoints, sweep_block)
        else:
            _sweep(instruction, adjoints, cts)
    b.location = None


def _sweep(instruction: Instruction, adjoints: Adjoints, cts: Sequence[Value | None]) -> None:
    """Hand the cotangents of an instruction on to its operands, by the rule of its op."""
    if adjoints.active.isdisjoint(instruction.operands):
        return
    results, operands = instruction.results, instruction.operands
    try:
        derivatives = vjp_of(adjoints.builder, instruction.op, results, operands, cts)
    except DifferentiationError as error:
        raise located(error, instruction.location) from None
    for operand, derivative in zip(operands, derivatives, strict=True):
        adjoints.add(operand, derivative)


def _sweep_call(work: Linearized, instruction: Instruction, op: Apply, adjoints: Adjoints) -> Sweep:
    """The same for a call, by way of the pullback of what it calls."""
    arguments, results = instruction.operands, instruction.results
    seeds = {k: ct for k, x in enumerate(results) if (ct := adjoints[x]) is not None}
    wanted = mask_of(k for k, x in enumerate(arguments) if x in adjoints.active)
    if not wanted:
        return
    if adjoints.arithmetic.is_sum(op.callee):
        for operand in arguments:
            adjoints.add(operand, seeds[0])
        return
    refuse_foreign(work.tapes.module.functions[op.callee], instruction.location)
    pullback = yield PullbackKey(op.callee, wanted, mask_of(seeds), work.callees_save)
    assert pullback is not None
    at_hand = {ResidualSource.ARGUMENT: arguments, ResidualSource.RESULT: results}
    residuals = [at_hand[residual.source][residual.position] for residual in pullback.residuals]
    if pullback.forward:
        work.calls[instruction] = call_forward(work.copy, instruction, pullback.forward)
        residuals += work.calls[instruction].saved
    b, shadows = adjoints.builder, work.shadows
    given = {k: shadows.of(b, arguments[k]) for k in pullback.shadowed} if shadows else {}
    found = call_backward(b, pullback, residuals, seeds, given)
    for position, derivative in found.items():
        adjoints.add(arguments[position], derivative)
