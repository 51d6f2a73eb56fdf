"""Activity analysis: which results depend differentiably on which parameters.

1. Per function, each tensor leaf carries the mask of parameter leaves it depends on by way of floats;
   integers and truth values depend on nothing.  A leaf is *active* when its mask meets `wrt`.
2. A call looks its callee's masks up, so a function is walked once, callees first.  What a loop carries
   depends on what the loop makes of it, and a recursive function on itself: masks only grow, so walking
   until none does reaches the smallest that fit.
3. The other half, usefulness for the result, is the reverse sweep itself: it visits only what has a
   cotangent, and a result that was not asked for has none.

Source: Hascoët, Naumann & Pascual 2005, "To be recorded" analysis in reverse-mode AD.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from ..analysis.call_graph import callees
from ..errors import UnsupportedError
from ..ir import Block, Effect, Extern, Function, Instruction, Module, Value
from ..ir.nested import Nested, run_nested
from ..location import located
from ..ops.aggregate import Aggregate, Apply, Extract
from ..ops.flows import flows_of, sources_of, targets_of
from ..types import TensorType, Type, written
from .declaration_order import dependencies
from .leaves import Spans, leaf_count, members, tensors_in

Masks: TypeAlias = "tuple[int, ...]"
"""For each leaf of a value, the parameter leaves it depends on."""


@dataclass
class Activity:
    """Dependence of results on parameters, for the functions of `module`; remembered per function."""

    module: Module
    _known: dict[str, Masks] = field(default_factory=dict[str, Masks])

    def of_result(self, name: str) -> Masks:
        """For each leaf of the results of `@name`, the parameter leaves it depends on."""
        if name not in self._known:
            new = [f for f in dependencies(self.module, [name]) if f not in self._known]
            for needed in new:
                result = self.module.functions[needed].type.result
                self._known[needed] = (0,) * leaf_count([result])
            grows = True
            while grows:
                grown = [self._update(needed) for needed in new]
                grows = any(grown) and self._is_recursive(new)
        return self._known[name]

    def of_values(self, function: Function) -> dict[Value, Masks]:
        """The same for every value of `function`, whose callees are known."""
        return _ActivityWalk(self, function).masks

    def _update(self, name: str) -> bool:
        """Walk `@name` again; whether its masks have grown."""
        function = self.module.functions[name]
        if isinstance(function.declaration, Extern):
            everything = (1 << leaf_count(function.type.parameters)) - 1
            result = function.type.result
            masks = only_floats(result, [everything] * leaf_count([result]))
        else:
            returned = straight_line(function).terminator.operands
            known = self.of_values(function)
            masks = tuple(mask for value in returned for mask in known[value])
        grown = masks != self._known[name]
        self._known[name] = masks
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
        self.masks: dict[Value, Masks] = {}
        self.spans = Spans()
        body = straight_line(function)
        first = 0
        for parameter in body.arguments:
            count = leaf_count([parameter.type])
            self.masks[parameter] = only_floats(
                parameter.type, [1 << (first + position) for position in range(count)]
            )
            first += count
        run_nested(self.block(body))

    def block(self, block: Block) -> Nested:
        """Visit the instructions in order, bodies of loops until nothing grows."""
        for instruction in block.instructions:
            if not instruction.op.is_structured:
                if isinstance(instruction.op, Apply):
                    self.call(instruction, instruction.op)
                    continue
                for result in instruction.results:
                    self.masks[result] = self.of_result(instruction, result)
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
            joined = only_floats(flow.type, _joined(*[self.masks[x] for x in sources]))
            for target in targets_of(instruction, flow):
                if target.producer is None:
                    grows = grows or self.masks.get(target) != joined
                self.masks[target] = joined
        return grows

    def call(self, instruction: Instruction, op: Apply) -> None:
        """Give the results of a call their masks."""
        given = [mask for operand in instruction.operands for mask in self.masks[operand]]
        found = iter(self.activity.of_result(op.callee))
        for result in instruction.results:
            self.masks[result] = tuple(
                _union([given[k] for k in members(next(found))]) for _ in tensors_in(result.type)
            )

    def of_result(self, instruction: Instruction, result: Value) -> Masks:
        """The masks of a result of an instruction without bodies that is no call."""
        operands, masks = instruction.operands, self.masks
        match instruction.op:
            case Aggregate():
                return tuple(mask for operand in operands for mask in masks[operand])
            case Extract() as op if not isinstance(operands[0].type, TensorType):
                return masks[operands[0]][self.spans.of(op, operands[0])]
            case op:
                moving = [mask for operand in op.moving(operands) for mask in masks[operand]]
                union = _union(moving)
                return only_floats(result.type, [union] * len(tensors_in(result.type)))


def only_floats(type: Type, masks: Sequence[int]) -> Masks:
    """`masks` with that of every leaf cleared which is not a float."""
    leaves = tensors_in(type)
    return tuple(m if leaf.dtype.is_float else 0 for leaf, m in zip(leaves, masks, strict=True))


def check_flow(instruction: Instruction, is_moving: Callable[[Value], bool]) -> None:
    """Raises: UnsupportedError where a derivative would have to follow a value into memory or an enum.

    A tangent stored and loaded again, or hidden in a case, would be lost without a word.  What is extracted and
    no tensor has none: it was checked where it was made.
    """
    op = instruction.op
    if op.called is not None or isinstance(op, Extract):
        return
    if not any(map(is_moving, instruction.operands)):
        return
    if op.effect is not Effect.NONE or not all(leaf_count([r.type]) for r in instruction.results):
        error = UnsupportedError(
            f"{op.name} cannot be differentiated: derivatives do not pass through memory, enums or function "
            "values; carry the value through the loop or return it"
        )
        raise located(error, instruction.location)


def straight_line(function: Function) -> Block:
    """The one block of `function`.  Raises: UnsupportedError when there is none, or several."""
    if function.body is None:
        raise UnsupportedError(
            f"{written('@', function.name)} has no body, so it cannot be differentiated"
        )
    if len(function.body.blocks) != 1:
        raise UnsupportedError(
            f"{written('@', function.name)} branches between blocks, which cannot be differentiated: "
            "run the pass 'structurize' before"
        )
    return function.entry


def _joined(*masks: Masks) -> Masks:
    return tuple(_union(both) for both in zip(*masks, strict=True))


def _union(masks: Sequence[int]) -> int:
    union = 0
    for mask in masks:
        union |= mask
    return union
