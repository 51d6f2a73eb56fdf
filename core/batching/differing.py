"""Which values differ among the elements of a batch, and which functions run for one element after the other.

1. What is computed from what differs, differs; through bodies and loops as it flows, to a fixed point.
2. The results of a choice differ if its condition does, and so does what is carried by a loop whose iterations are not
   the same for all, unless it stays what it was.
3. A function is *looped*, run for one element after the other, if it or what it calls has effects, if a value that
   differs is no tensor (an enum, a pointer), or if a loop of differing bounds stacks.
4. Calls ask the same of what they call, for the parameters that differ; recursion is a fixed point, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import NamedTuple

from ..analysis.call_graph import reachable
from ..analysis.effects import Effects
from ..ir import Instruction, Module, Region, Value
from ..ir.surgery import walk
from ..lazy_dataclass import dataclass
from ..ops.flows import (
    Flow,
    Role,
    arguments_of_bodies,
    flows_of,
    operands_of,
    sources_of,
    structured,
    targets_of,
    yields_of_bodies,
)
from ..types import TensorType


class BatchKey(NamedTuple):
    """A function, which of its parameters are batched, the name of the axis and its extent."""

    name: str
    batched: tuple[bool, ...]
    axis: str | None
    extent: int


@dataclass
class Differing:
    """What is known of a function: the values that differ, which results do, and whether it is looped."""

    values: set[Value] = field(default_factory=set[Value])
    concerned: set[Instruction] = field(default_factory=set[Instruction])
    """The instructions that have to do with what differs, or combine it, themselves or in their bodies."""
    results: tuple[bool, ...] = ()
    is_looped: bool = False


class DifferingValues:
    """Answers for the functions of `module`, which are remembered."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.known: dict[BatchKey, Differing] = {}
        self.effects = Effects(module)
        """Those of the functions that had bodies when a batch was asked for."""
        self._axes: dict[str, frozenset[str]] = {}

    def combines(self, instruction: Instruction, axis: str | None) -> bool:
        """Whether it, or what it calls, combines elements of the batch whose axis is called `axis`."""
        op = instruction.op
        if axis is None:
            return False
        return op.axis_name == axis or (op.called is not None and axis in self.axes_of(op.called))

    def axes_of(self, name: str) -> frozenset[str]:
        """The names of the axes over which a function, or what it calls, combines elements."""
        if name not in self._axes:
            needed = [self.module.functions[n] for n in reachable(self.module, [name])]
            bodies = [function.body for function in needed if function.body is not None]
            names = (i.op.axis_name for body in bodies for i in walk(body))
            self._axes[name] = frozenset(axis for axis in names if axis is not None)
        return self._axes[name]

    def of(self, key: BatchKey) -> Differing:
        """What differs in the function of `key`."""
        if key not in self.known:
            self._settle(key)
        return self.known[key]

    def _settle(self, root: BatchKey) -> None:
        """The least fixed point over `root` and all that it calls.

        What is known of a function only grows: it is never more than the fixed point, but a call with more parameters
        that differ asks another question, of which nothing is known at first, and two functions that call each other
        would take back what they know in turn for ever.
        """
        callers: dict[BatchKey, set[BatchKey]] = {root: set()}
        self.known[root] = self._start(root)
        pending = [root]
        while pending:
            key = pending.pop()
            before = self.known[key]
            found = _Walk(self, key, callers, pending).run()
            found.is_looped |= before.is_looped
            both = zip(before.results, found.results, strict=True)
            found.results = tuple(one or other for one, other in both)
            self.known[key] = found
            if (found.results, found.is_looped) != (before.results, before.is_looped):
                pending += callers[key]

    def _start(self, key: BatchKey) -> Differing:
        return Differing(results=(False,) * len(self.module.functions[key.name].type.results))

    def called(
        self,
        key: BatchKey,
        caller: BatchKey,
        callers: dict[BatchKey, set[BatchKey]],
        pending: list[BatchKey],
    ) -> Differing:
        """What is known so far of a function that another one calls."""
        if key not in self.known:
            self.known[key] = self._start(key)
            callers[key] = set()
            pending += [caller, key]
        callers.setdefault(key, set()).add(caller)
        return self.known[key]


class _Walk:
    """Finds what differs in one function, given what is known so far of those that it calls."""

    def __init__(
        self,
        analysis: DifferingValues,
        key: BatchKey,
        callers: dict[BatchKey, set[BatchKey]],
        pending: list[BatchKey],
    ) -> None:
        self.analysis, self.key = analysis, key
        self.callers, self.pending = callers, pending
        self.function = analysis.module.functions[key.name]
        self.values: set[Value] = set()
        self.is_looped = False

    def run(self) -> Differing:
        results = len(self.function.type.results)
        if self.function.body is None:
            return Differing(results=(True,) * results, is_looped=True)
        for parameter, is_batched in zip(self.function.parameters, self.key.batched, strict=True):
            if is_batched:
                self.add(parameter)
        instructions = _in_order(self.function.body)
        count = -1
        while count != len(self.values) and not self.is_looped:
            count = len(self.values)
            for instruction in instructions:
                self.visit(instruction)
        if self.is_looped:
            return Differing(results=(True,) * results, is_looped=True)
        returned = self.function.entry.terminator.operands
        # tangents of a function with rules may differ though its results do not
        all_differ = bool(self.function.rules) and any(self.key.batched)
        results_differ = tuple(all_differ or value in self.values for value in returned)
        return Differing(self.values, self.concerned(instructions), results_differ)

    def concerned(self, instructions: Sequence[Instruction]) -> set[Instruction]:
        """Those that have to do with what differs; bodies are known when what they belong to stands behind them."""
        found: set[Instruction] = set()
        for one in instructions:
            own = self.differs(one.operands) or self.differs(one.results)
            if (
                own
                or self.analysis.combines(one, self.key.axis)
                or any(
                    self.differs(region.entry.arguments)
                    or self.differs(region.entry.terminator.operands)
                    or not found.isdisjoint(region.entry.instructions)
                    for region in one.regions
                )
            ):
                found.add(one)
        return found

    def add(self, value: Value) -> None:
        self.values.add(value)
        if not isinstance(value.type, TensorType):
            self.is_looped = True

    def differs(self, values: Sequence[Value]) -> bool:
        return any(value in self.values for value in values)

    def visit(self, instruction: Instruction) -> None:
        op = instruction.op
        if op.is_structured:
            self.visit_structured(instruction)
            return
        if not self.analysis.effects.is_pure(instruction):
            self.is_looped = True
            return
        batched = tuple(operand in self.values for operand in instruction.operands)
        if op.called is not None:
            if any(batched) or self.analysis.combines(instruction, self.key.axis):
                key = self.key._replace(name=op.called, batched=batched)
                found = self.analysis.called(key, self.key, self.callers, self.pending)
                self.add_some(instruction.results, found.results)
        elif op.differs(batched, self.key.axis):
            self.add_some(instruction.results, [True] * len(instruction.results))

    def add_some(self, values: Sequence[Value], which: Sequence[bool]) -> None:
        for value, is_batched in zip(values, which, strict=True):
            if is_batched:
                self.add(value)

    def visit_structured(self, instruction: Instruction) -> None:
        is_own = self.differs(structured(instruction).deciders(instruction))
        for flow in flows_of(instruction):
            if flow.role is Role.STACKED and is_own:
                self.is_looped = True
            all_differ = is_own and not is_kept(instruction, flow)
            if all_differ or self.differs(sources_of(instruction, flow)):
                for target in targets_of(instruction, flow):
                    self.add(target)


def is_kept(instruction: Instruction, flow: Flow) -> bool:
    """Whether a flow is the same whichever bodies run, and however often: they do not replace it."""
    if flow.role is Role.CHOSEN:
        return len(set(yields_of_bodies(instruction, flow))) == 1
    if flow.role is not Role.CARRIED:
        return flow.role in (Role.INPUT, Role.DECISION)
    start = operands_of(instruction, flow)
    arguments = arguments_of_bodies(instruction, flow)
    return all(x in arguments or x in start for x in yields_of_bodies(instruction, flow))


def _in_order(region: Region) -> list[Instruction]:
    """All instructions, those with bodies both before and behind these: what flows in and out is known at once.

    So one round finds all but what goes round in loops, however deep bodies nest.
    """
    found: list[Instruction] = []
    pending = [(i, False) for i in reversed(region.entry.instructions)]
    while pending:
        instruction, is_done = pending.pop()
        if instruction.op.is_terminator:
            continue
        found.append(instruction)
        if instruction.regions and not is_done:
            pending.append((instruction, True))
            for inside in reversed(instruction.regions):
                pending += [(i, False) for i in reversed(inside.entry.instructions)]
    return found
