"""Whether code can be run where it was not asked for: it ends, cannot fail and has no effects.

So a branch can be run for elements of a batch that take the other one.  Matrix products and functions
of matrices cannot: what is not finite for those elements stays so where derivatives multiply it with zeros and sum.
"""

from __future__ import annotations

from dataclasses import field

from ..ir import Effect, Instruction, Module, Region
from ..ir.surgery import walk
from ..lazy_dataclass import dataclass
from ..ops.flows import Role, flows_in, structured, trips_of
from ..ops.forms import Bilinear
from ..types import TensorType


@dataclass
class Totality:
    """Answers for the bodies and functions of `module`, which are remembered."""

    module: Module
    functions: dict[str, bool] = field(default_factory=dict[str, bool])
    regions: dict[Region, bool] = field(default_factory=dict[Region, bool])

    def of_region(self, region: Region) -> bool:
        """Whether a body can."""
        if region not in self.regions:
            inside = [region]
            for one in inside:
                inside += [r for i in one.entry.instructions for r in i.regions]
            for one in reversed(inside):
                self.regions[one] = all(map(self._of_instruction, one.entry.instructions))
        return self.regions[region]

    def _of_instruction(self, instruction: Instruction) -> bool:
        """Whether an instruction can whose bodies are known."""
        if not _is_total(instruction) or not all(self.regions[r] for r in instruction.regions):
            return False
        called = instruction.op.called
        return called is None or self._of_function(called)

    def _of_function(self, root: str) -> bool:
        """The same of a function; one that calls itself cannot."""
        stack = [(root, iter(self._enter(root)))] if root not in self.functions else []
        open_names = {root}
        while stack:
            name, called = stack[-1]
            following = next(called, None)
            if following is None:
                stack.pop()
                open_names.discard(name)
                self.functions.setdefault(name, True)
                if not self.functions[name] and stack:
                    self.functions[stack[-1][0]] = False
            elif following in open_names or self.functions.get(following) is False:
                self.functions[name] = False
            elif following not in self.functions:
                stack.append((following, iter(self._enter(following))))
                open_names.add(following)
        return self.functions[root]

    def _enter(self, name: str) -> list[str]:
        """The functions that it calls; none if it cannot be run for what it does itself."""
        function = self.module.functions.get(name)
        body = None if function is None else function.body
        if body is None or not all(map(_is_total, walk(body))):
            self.functions[name] = False
            return []
        return [called for i in walk(body) if (called := i.op.called) is not None]


def _is_total(instruction: Instruction) -> bool:
    """Whether an instruction can, what it calls and its bodies aside."""
    op = instruction.op
    if op.is_structured:
        return _has_known_trips(instruction)
    if op.effect & Effect.CALL:
        return op.called is not None
    if op.effect or (op.can_fail() and not op.is_terminator):
        return False
    if op.calls_lapack or isinstance(op, Bilinear):
        return False
    # the number of an iteration is right in each
    return all(x.producer is None for x in op.trusted(instruction.operands))


def _has_known_trips(instruction: Instruction) -> bool:
    """Whether a structured instruction certainly ends soon, and stacks as many elements as it has iterations."""
    if not structured(instruction).is_loop:
        return True
    trips = trips_of(instruction)
    stacked = [flow.type for flow in flows_in(instruction, Role.STACKED)]
    return trips is not None and all(
        isinstance(type, TensorType) and type.shape[0] == trips for type in stacked
    )
