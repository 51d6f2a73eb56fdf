"""Which results a parameter can influence: what no derivative reaches is never differentiated.

1. Per function, each tensor leaf carries the mask of parameter leaves it depends on by way of floats;
   integers and truth values depend on nothing.  A leaf is *active* when its mask meets `wrt`.
2. A call looks its callee's masks up, so a function is walked once, callees first.
3. The other half, usefulness for the result, is the reverse sweep itself: it visits only what has a
   cotangent, and a result that was not asked for has none.

Source: Hascoët, Naumann & Pascual 2005, "To be recorded" analysis in reverse-mode AD.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from ..errors import UnsupportedError
from ..ir import Block, Function, Instruction, Module, Value
from ..ops.aggregate import Aggregate, Apply, Extract
from ..ops.stopping import StopGradient
from ..types import Type
from .leaves import Spans, leaves_of, members
from .order import dependencies

Masks: TypeAlias = "tuple[int, ...]"
"""For each leaf of a value, the parameter leaves it depends on."""


@dataclass
class Activity:
    """Dependence of results on parameters, for the functions of `module`; remembered per function."""

    module: Module
    _known: dict[str, Masks] = field(default_factory=dict[str, Masks])

    def of_result(self, name: str) -> Masks:
        """For each leaf of the result of `@name`, the parameter leaves it depends on."""
        if name not in self._known:
            for needed in dependencies(self.module, [name]):
                if needed not in self._known:
                    masks = self.of_values(self.module.functions[needed])
                    returned = straight_line(self.module.functions[needed]).terminator.operands
                    self._known[needed] = masks[returned[0]] if returned else ()
        return self._known[name]

    def of_values(self, function: Function) -> dict[Value, Masks]:
        """The same for every value of `function`, whose callees are known."""
        masks: dict[Value, Masks] = {}
        spans = Spans()
        first = 0
        for parameter in function.parameters:
            leaves = leaves_of(parameter.type)
            masks[parameter] = only_floats(
                parameter.type, [1 << (first + position) for position in range(len(leaves))]
            )
            first += len(leaves)
        for instruction in straight_line(function).instructions:
            for result in instruction.results:
                masks[result] = self._of_result(instruction, result, masks, spans)
        return masks

    def _of_result(
        self, instruction: Instruction, result: Value, masks: dict[Value, Masks], spans: Spans
    ) -> Masks:
        operands = instruction.operands
        match instruction.op:
            case Aggregate():
                return tuple(mask for operand in operands for mask in masks[operand])
            case Extract() as op:
                return masks[operands[0]][spans.of(op, operands[0])]
            case Apply(callee=callee):
                given = [mask for operand in operands for mask in masks[operand]]
                return tuple(
                    _union([given[k] for k in members(mask)]) for mask in self.of_result(callee)
                )
            case StopGradient():
                return (0,) * len(leaves_of(result.type))
            case _:
                union = _union([mask for operand in operands for mask in masks[operand]])
                return only_floats(result.type, [union] * len(leaves_of(result.type)))


def only_floats(type: Type, masks: Sequence[int]) -> Masks:
    """`masks` with that of every leaf cleared which is not a float."""
    leaves = leaves_of(type)
    return tuple(
        m if leaf.type.dtype.is_float else 0 for leaf, m in zip(leaves, masks, strict=True)
    )


def straight_line(function: Function) -> Block:
    """The one block of `function`.  Raises: UnsupportedError when there is none, or several."""
    if function.body is None:
        raise UnsupportedError(f"@{function.name} has no body, so it cannot be differentiated")
    if len(function.body.blocks) != 1:
        raise UnsupportedError(
            f"@{function.name} branches between blocks, which cannot be differentiated: "
            "use structured control flow"
        )
    return function.entry


def _union(masks: Sequence[int]) -> int:
    union = 0
    for mask in masks:
        union |= mask
    return union
