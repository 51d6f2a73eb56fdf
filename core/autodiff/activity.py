"""Activity analysis: which results depend differentiably on which parameters.

1. Per function, each value has the mask of the parameters it depends on by way of floats; integers and truth
   values depend on nothing.  A value is *active* when its mask meets `wrt`.
2. A call looks its callee's masks up, so a function is walked once, callees first.  What a loop carries
   depends on what the loop makes of it, and a recursive function on itself: masks only grow, so walking
   until none does reaches the smallest that fit.
3. What lies in memory depends on all that is stored there: each base of pointers (`core.analysis.pointer_bases`) has a
   mask, and so have pointers.  A call stores what its callee does.
4. The other half, usefulness for the result, is the reverse sweep itself: it visits only what has a
   cotangent, and a result that was not asked for has none.

Source: Hascoët, Naumann & Pascual 2005, "To be recorded" analysis in reverse-mode AD.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from typing import TypeAlias

from ..analysis.call_graph import callees
from ..analysis.pointer_bases import PointerBases, leads_to_memory, uses_memory
from ..errors import DifferentiationError, UnsupportedError
from ..ir import Block, Effect, Extern, Function, Instruction, Module, Region, Value
from ..ir.nested import Nested, run_nested
from ..lazy_dataclass import dataclass
from ..location import HasLocation, located
from ..ops.aggregate import Aggregate, Apply
from ..ops.flows import flows_of, sources_of, targets_of
from ..ops.leaves import is_leaf
from ..types import EnumType, TensorType, Type, parts_of, written
from .declaration_order import dependencies

Mask: TypeAlias = int
"""Bits for the parameters that a value depends on, or for those of a set of parameters or results."""


@dataclass
class Activity:
    """Dependence of results on parameters, for the functions of `module`; remembered per function."""

    module: Module
    _known: dict[str, tuple[Mask, ...]] = field(default_factory=dict[str, "tuple[Mask, ...]"])
    _stored: dict[str, tuple[Mask, ...]] = field(default_factory=dict[str, "tuple[Mask, ...]"])
    _uses_memory: dict[Region, bool] = field(default_factory=dict[Region, bool])

    def of_results(self, name: str) -> tuple[Mask, ...]:
        """For each result of `@name`, the parameters it depends on."""
        if name not in self._known:
            new = [f for f in dependencies(self.module, [name]) if f not in self._known]
            for needed in new:
                type = self.module.functions[needed].type
                self._known[needed] = (0,) * len(type.results)
                self._stored[needed] = (0,) * len(type.parameters)
            grows = True
            while grows:
                grown = [self._update(needed) for needed in new]
                grows = any(grown) and self._is_recursive(new)
        return self._known[name]

    def of_memory(self, name: str) -> tuple[Mask, ...]:
        """For each parameter of `@name` that is a pointer, what is in the end in the memory that it leads to."""
        self.of_results(name)
        return self._stored[name]

    def uses_memory(self, function: Function) -> bool:
        """Whether it has to do with memory; most functions have not, and need not be looked at for that."""
        body = function.body
        if body is None:
            return False
        if body not in self._uses_memory:
            self._uses_memory[body] = uses_memory(body)
        return self._uses_memory[body]

    def of_values(self, function: Function) -> dict[Value, Mask]:
        """The same for every value of `function`, whose callees are known; for pointers, of what they lead to."""
        return _ActivityWalk(self, function).masks

    def _update(self, name: str) -> bool:
        """Walk `@name` again; whether its masks have grown."""
        function = self.module.functions[name]
        if isinstance(function.declaration, Extern) or function.rules:
            everything = mask_of(k for k, x in enumerate(function.type.parameters) if can_move(x))
            masks = tuple(everything if can_move(type) else 0 for type in function.type.results)
            stored = tuple(
                everything if leads_to_memory(type) else 0 for type in function.type.parameters
            )
        else:
            body = straight_line(function)
            known = self.of_values(function)
            masks = tuple(known[value] for value in body.terminator.operands)
            stored = tuple(known[x] if leads_to_memory(x.type) else 0 for x in body.arguments)
        grown = (masks, stored) != (self._known[name], self._stored[name])
        self._known[name], self._stored[name] = masks, stored
        return grown

    def _is_recursive(self, names: Sequence[str]) -> bool:
        """Whether one of `names`, which stand callees first, needs one that does not stand before it."""
        later = set(names)
        for name in names:
            if not later.isdisjoint(callees(self.module.functions[name])):
                return True
            later.remove(name)
        return False


class _ActivityWalk:
    """Computes the dependence masks of one function's values."""

    def __init__(self, activity: Activity, function: Function) -> None:
        self.activity = activity
        body = straight_line(function)
        assert function.body is not None
        self.bases = PointerBases(function.body)
        self.masks: dict[Value, Mask] = {
            parameter: 1 << position if can_move(parameter.type) else 0
            for position, parameter in enumerate(body.arguments)
        }
        self.memory = {x: mask for x, mask in self.masks.items() if leads_to_memory(x.type)}
        """The masks of what lies behind bases."""
        self.grows = True
        while self.grows:
            self.grows = False
            run_nested(self.block(body))
            for x in [x for x in self.masks if leads_to_memory(x.type)] if self.memory else ():
                self.masks[x] |= self.in_memory(x)

    def block(self, block: Block) -> Nested:
        """Visit the instructions in order, bodies of loops until nothing grows."""
        for instruction in block.instructions:
            if instruction.op.acts_on_shadows:
                self.access(instruction)
                continue
            if not instruction.op.is_structured:
                self.masks.update(
                    zip(instruction.results, self.of_results(instruction), strict=True)
                )
                continue
            self.pass_on(instruction)
            grows = True
            while grows:
                for region in instruction.regions:
                    yield self.block(region.entry)
                grows = self.pass_on(instruction)

    def pass_on(self, instruction: Instruction) -> bool:
        """Give arguments of bodies and results the masks of what becomes them; whether what bodies take has grown."""
        grows = False
        for flow in flows_of(instruction):
            sources = [x for x in sources_of(instruction, flow) if x in self.masks]
            if not sources:
                continue
            joined = _union(self.masks[x] for x in sources) if can_move(flow.type) else 0
            if leads_to_memory(flow.type):
                joined = self.in_memory(targets_of(instruction, flow)[0])
            for target in targets_of(instruction, flow):
                if target.producer is None:
                    grows = grows or self.masks.get(target) != joined
                self.masks[target] = joined
        return grows

    def of_results(self, instruction: Instruction) -> Iterator[Mask]:
        """The masks of the results of an instruction without bodies."""
        operands, op = instruction.operands, instruction.op
        if isinstance(op, Apply):
            stored = self.activity.of_memory(op.callee)
            for pointer, mask in zip(operands, stored, strict=True):
                if mask:
                    self.store(pointer, _union(self.masks[operands[k]] for k in members(mask)))
            for mask in self.activity.of_results(op.callee):
                yield _union(self.masks[operands[k]] for k in members(mask))
            return
        union = _union(self.masks[operand] for operand in op.moving(operands))
        yield from (union if can_move(result.type) else 0 for result in instruction.results)

    def access(self, instruction: Instruction) -> None:
        """What is done with memory, or with pointers into it."""
        uses = instruction.op.memory_uses(instruction)
        moved = _union(self.in_memory(use.pointer) for use in uses if use.effect & Effect.READ)
        for use in uses:
            if use.effect & Effect.WRITE:
                value = 0 if use.value is None else self.masks[use.value]
                self.store(use.pointer, value | moved)
        for result in instruction.results:
            into_memory = leads_to_memory(result.type) and not uses
            mask = self.in_memory(result) if into_memory else moved
            self.masks[result] = mask if can_move(result.type) else 0

    def in_memory(self, pointer: Value) -> Mask:
        """Of all that a pointer may lead to."""
        bases = self.bases.of(pointer)
        union = _union(self.memory.get(base, 0) for base in bases)
        if len(bases) > 1:
            self.store(pointer, union)
        return union

    def store(self, pointer: Value, mask: Mask) -> None:
        for base in self.bases.of(pointer):
            before = self.memory.get(base, 0)
            if before | mask != before:
                self.memory[base] = before | mask
                self.grows = True


def can_move(type: Type) -> bool:
    """Whether a value of `type` may depend on parameters by way of floats.

    What is neither a tensor nor an enum of such may hold them, so that it is known when a derivative would have to
    follow.
    """
    if isinstance(type, EnumType):
        return any(map(can_move, _held(type)))
    return not isinstance(type, TensorType) or type.dtype.is_float


def has_tangent(type: Type) -> bool:
    """Whether a value of `type` has a tangent: a tensor of floats, and an enum that holds one."""
    if isinstance(type, EnumType):
        return any(map(has_tangent, _held(type)))
    return isinstance(type, TensorType) and type.dtype.is_float


def _held(enum: EnumType) -> Iterator[Type]:
    """The types that values of `enum` carry, and those of the enums among them, which are left out themselves."""
    found: set[str] = set()
    pending: list[Type] = [enum]
    while pending:
        current = pending.pop()
        if not isinstance(current, EnumType):
            yield current
        elif current.name not in found:
            found.add(current.name)
            pending += parts_of(current)


def members(mask: Mask) -> Iterator[int]:
    """The positions of the bits set in `mask`, ascending."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def mask_of(positions: Iterable[int]) -> Mask:
    """The mask with these bits set."""
    return _union(1 << position for position in positions)


def check_flow(instruction: Instruction, is_moving: Callable[[Value], bool]) -> None:
    """Raises: UnsupportedError where a derivative would have to follow a value into what has none.

    It would be lost without a word; of memory, `core.autodiff.shadows` asks.  Who uses an aggregate is asked in its
    place.
    """
    op = instruction.op
    if op.acts_on_shadows:
        return
    if isinstance(op, Aggregate):
        return
    given = instruction.operands if op.called else op.moving(instruction.operands)
    passed = given if op.called else (*given, *instruction.results)
    moving = [x for x in passed if is_moving(x) and not leads_to_memory(x.type)]
    has_effect = op.effect is not Effect.NONE and op.called is None
    if moving and instruction.regions and not op.is_structured:
        error = UnsupportedError(
            f"{op.name} has regions, which cannot be differentiated: differentiate before loop nests are made"
        )
        raise located(error, instruction.location)
    if moving and (has_effect or not all(has_tangent(x.type) for x in moving)):
        error = UnsupportedError(
            f"{op.name} cannot be differentiated: derivatives do not pass through stacks, function values or very "
            "large arrays; carry the value through the loop or return it"
        )
        raise located(error, instruction.location)


def refuse_foreign(function: Function, location: HasLocation | None) -> None:
    """Raises: DifferentiationError, with the line of the call, for a function without a body or a rule."""
    if isinstance(function.declaration, Extern):
        error = DifferentiationError(
            f"{written('@', function.name)} is a foreign function, which has no derivative without a rule: "
            "give it one, or stop_gradient its arguments"
        )
        raise located(error, location)


def straight_line(function: Function) -> Block:
    """The one block of `function`, which is flat.

    Raises: UnsupportedError when there is no block, or several, or a parameter is an aggregate.
    """
    refuse_foreign(function, function.location)
    if function.body is None:
        raise UnsupportedError(
            f"{written('@', function.name)} has no body, so it cannot be differentiated"
        )
    if len(function.body.blocks) != 1:
        raise UnsupportedError(
            f"{written('@', function.name)} branches between blocks, which cannot be differentiated: "
            "run the pass 'structurize' before"
        )
    whole = next((x for x in function.parameters if not is_leaf(x.type, large_arrays=False)), None)
    if whole is not None:
        raise UnsupportedError(
            f"{written('@', function.name)} takes a {whole.type}, which cannot be differentiated as a whole: "
            "run the pass 'flatten' before"
        )
    return function.entry


def _union(masks: Iterable[Mask]) -> int:
    union = 0
    for mask in masks:
        union |= mask
    return union
