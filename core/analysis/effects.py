"""Side effects of instructions and functions, those of regions and callees included.

1. A function's own effects are those of its instructions, in bodies too, calls aside.
2. A call adds what the called function does.  The functions of one cycle of calls all do what one of them
   does; cycles are met after what they call, so that one visit is enough.
3. What is defined elsewhere may do everything, and so may a function that is only known at run time.  A
   declared derivative does what its primal does, and reads and writes the shadows that it is given.

Time is not an effect: a loop or recursion that may not end counts as what it does in each round.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from ..ir import Effect, Function, GradientOf, Instruction, Module, TangentOf
from ..ir.surgery import walk
from ..types import FunctionType
from .call_graph import cycles_callees_first
from .pointer_bases import leads_to_memory

EVERYTHING = Effect.READ | Effect.WRITE | Effect.ALLOCATE | Effect.TRAP
"""What a function does about which nothing is known."""

KEPT = Effect.WRITE | Effect.TRAP
"""What has one of these effects is done whether its results are used or not."""


class OwnEffects(NamedTuple):
    """What a function does itself, and the functions it calls."""

    effect: Effect
    called: Sequence[str]


class Effects:
    """The effects of a module's instructions and functions; never with CALL, which is looked through.

    Answers are remembered, whole functions at a time: the cost is that of one walk over the module, those
    functions aside whose `own` effects are known.  They hold until instructions change: make a new one then.
    """

    def __init__(self, module: Module, own: dict[Function, OwnEffects] | None = None) -> None:
        self.module = module
        self._own_effects = {} if own is None else own
        self._inside: dict[Instruction, Effect] = {}

    def of(self, instruction: Instruction) -> Effect:
        """What `instruction` does, with its bodies and with what it calls."""
        if not instruction.regions:
            return self._own(instruction)
        if instruction not in self._inside:
            self._look_inside(instruction)
        return self._inside[instruction]

    def of_function(self, name: str) -> Effect:
        """What a call of @`name` does; everything if the module does not have it."""
        return self._functions.get(name, EVERYTHING)

    def is_pure(self, instruction: Instruction) -> bool:
        """Whether it has no effect: it can be moved, merged and removed."""
        return not self.of(instruction)

    def is_removable(self, instruction: Instruction) -> bool:
        """Whether nothing is lost when the results are not used; terminators are not asked."""
        return not self.of(instruction) & KEPT

    @cached_property
    def _functions(self) -> dict[str, Effect]:
        functions, own = self.module.functions, self._own_effects
        effects: dict[str, Effect] = {}
        for name, function in functions.items():
            if function not in own:
                own[function] = own_effects(function)
            is_known = functions.keys() >= set(own[function].called)
            effects[name] = own[function].effect if is_known else EVERYTHING
        for names in cycles_callees_first(self.module, lambda function: own[function].called):
            whole = Effect.NONE
            for name in names:
                for one in (name, *own[functions[name]].called):
                    whole |= effects.get(one, Effect.NONE)
            effects.update(dict.fromkeys(names, whole))
        return effects

    def _own(self, instruction: Instruction) -> Effect:
        """Without bodies."""
        effect = instruction.op.effect
        if effect & Effect.CALL:
            effect &= ~Effect.CALL
            callees = callees_of(instruction)
            if callees is None:
                return EVERYTHING
            for callee in callees:
                effect |= self.of_function(callee)
        return effect

    def _look_inside(self, outermost: Instruction) -> None:
        """Fill `_inside` for an instruction and all that have bodies in its bodies."""
        entered: list[tuple[Instruction, Instruction | None]] = []
        pending: list[tuple[Instruction, Instruction | None]] = [(outermost, None)]
        while pending:
            instruction, parent = pending.pop()
            entered.append((instruction, parent))
            effect = self._own(instruction)
            for region in instruction.regions:
                for block in region.blocks:
                    for inner in block.instructions:
                        if inner in self._inside:
                            effect |= self._inside[inner]
                        elif inner.regions:
                            pending.append((inner, instruction))
                        elif inner.op.effect is not Effect.NONE:
                            effect |= self._own(inner)
            self._inside[instruction] = effect
        for instruction, parent in reversed(entered):
            if parent is not None:
                self._inside[parent] |= self._inside[instruction]


def callees_of(instruction: Instruction) -> tuple[str, ...] | None:
    """The functions that an instruction of effect CALL calls; None if only the running program knows."""
    if instruction.op.called is not None:
        return (instruction.op.called,)
    functions = [x.op for x in instruction.operands if isinstance(x.type, FunctionType)]
    names = tuple(op.referred for op in functions if op is not None and op.referred is not None)
    return names if names and len(names) == len(functions) else None


def own_effects(function: Function) -> OwnEffects:
    """The effects of the instructions of `function`, calls aside."""
    if function.body is None:
        if function.primal is not None:
            shadows = Effect.READ | Effect.WRITE if _has_shadows(function) else Effect.NONE
            return OwnEffects(shadows, [function.primal])
        return OwnEffects(EVERYTHING, [])
    effect = Effect.NONE
    called: dict[str, None] = {}
    for instruction in walk(function.body):
        own = instruction.op.effect
        if own & Effect.CALL:
            callees = callees_of(instruction)
            own = EVERYTHING if callees is None else own & ~Effect.CALL
            called.update(dict.fromkeys(callees or ()))
        effect |= own
    return OwnEffects(effect, list(called))


def _has_shadows(function: Function) -> bool:
    """Whether a declared derivative is by parameters that are pointers."""
    declaration, parameters = function.declaration, function.type.parameters
    if not isinstance(declaration, GradientOf | TangentOf):
        return False
    wrt = range(len(parameters)) if declaration.wrt is None else declaration.wrt
    return any(leads_to_memory(parameters[k]) for k in wrt if k < len(parameters))
