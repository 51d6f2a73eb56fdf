"""Which values to save for the backward half, and which to compute again: a minimum cut.

    saved:    what the cut goes through, weighted with its bytes
    computed: what lies between the saved values and the needed ones, weighted with what computing it costs

A value is two nodes with an edge of its bytes between them; from each operand of what may be computed again an edge
without limit leads to it.  The source leads to all that may not be computed again, and by an edge of its cost to what
may; each needed value leads to the sink.  An instruction of several results is a node itself, which leads to these.

Source: Ford & Fulkerson 1956 (a minimum cut is what a maximum flow fills); Dinic 1970 for the flow.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import field
from typing import TypeAlias

from ..ir import Block, Effect, Instruction, Value
from ..ir.surgery import operands_inside
from ..lazy_dataclass import dataclass
from ..types import TensorType, tensor_bytes

FLOPS = 2
"""So many operations an element may cost that is computed again: about what a load and a store of it take, while a
division or a function takes more (15 and up in `Elementwise.cost`)."""

_WORD = 8
"""Bytes of what is no tensor: an address."""

_SOURCE, _SINK = 0, 1
"""The first nodes."""


@dataclass(frozen=True)
class ResidualChoice:
    """Values to save, and instructions that compute the other needed values from these, in order."""

    saved: list[Value]
    computed: list[Instruction]


CostAgain: TypeAlias = "Callable[[Instruction], int | None]"
"""What it costs to compute an instruction again, None where that may not be."""


def cost_of_cheap(instruction: Instruction) -> int | None:
    """Nothing for movements and what costs up to two operations an element; all else is saved."""
    op = instruction.op
    if op.effect is not Effect.NONE or instruction.regions or len(instruction.results) != 1:
        return None
    type = instruction.result.type
    if op.is_moved or not isinstance(type, TensorType):
        return 0 if op.is_moved else None
    flops = op.flops(instruction)
    return 0 if flops is not None and flops <= FLOPS * type.size else None


def choose_residuals(
    block: Block,
    needed: Sequence[Value],
    free: Set[Value],
    cost: CostAgain = cost_of_cheap,
    byte: int = 1,
) -> ResidualChoice:
    """What of `block` to save for the use of its values `needed`; those in `free` cost nothing to have.

    `cost` is in the units of which saving a byte costs `byte`.
    Cost: in theory the product of values and edges; a few visits of each in practice.
    """
    inside: dict[Value, Instruction | None] = dict.fromkeys(block.arguments)
    inside.update((x, i) for i in block.instructions for x in i.results)
    graph = _Graph()
    again: dict[Instruction, tuple[int, list[Value]]] = {}
    pending = [x for x in needed if x not in free]
    while pending:
        value = pending.pop()
        if value in graph.numbers:
            continue
        number = graph.number(value)
        graph.connect(number, number + 1, _bytes(value) * byte)
        producer = inside[value]
        costs = None if producer is None else cost(producer)
        if producer is None or costs is None:
            graph.connect(_SOURCE, number, graph.unlimited)
        elif producer not in again:
            used = operands_inside([producer])
            operands = list(dict.fromkeys(x for x in used if x in inside and x not in free))
            again[producer] = costs, operands
            pending += operands
    for instruction, (costs, operands) in again.items():
        number = graph.instruction(instruction)
        if costs:
            graph.connect(_SOURCE, number, costs)
        for operand in operands:
            graph.connect(graph.numbers[operand] + 1, number, graph.unlimited)
    for value in needed:
        if value in graph.numbers:
            graph.connect(graph.numbers[value] + 1, _SINK, graph.unlimited)
    graph.saturate()
    leads = graph.leading_to_sink()
    is_saved = {
        v for v, number in graph.numbers.items() if number + 1 in leads and number not in leads
    }
    return ResidualChoice(
        [value for value in inside if value in is_saved],
        _between(block, needed, is_saved | free),
    )


def _between(block: Block, needed: Iterable[Value], known: Set[Value]) -> list[Instruction]:
    """The instructions of `block` that compute what is needed and not known."""
    missing = {value for value in needed if value not in known}
    found: list[Instruction] = []
    for instruction in reversed(block.instructions):
        if not missing.isdisjoint(instruction.results):
            found.append(instruction)
            missing.update(x for x in operands_inside([instruction]) if x not in known)
    found.reverse()
    return found


def _bytes(value: Value) -> int:
    return tensor_bytes(value.type) if isinstance(value.type, TensorType) else _WORD


@dataclass
class _Graph:
    """A network; edges lie in pairs, an edge and the one back, and `room` is what may still flow."""

    numbers: dict[Value, int] = field(default_factory=dict[Value, int])
    targets: list[int] = field(default_factory=list[int])
    room: list[int] = field(default_factory=list[int])
    edges: list[list[int]] = field(default_factory=lambda: [[], []])
    unlimited: int = 1 << 62

    def number(self, value: Value) -> int:
        """The first of the two nodes of a value that is new."""
        self.numbers[value] = len(self.edges)
        self.edges += [[], []]
        return self.numbers[value]

    def instruction(self, instruction: Instruction) -> int:
        """The node of an instruction: that of its only result, or a new one that leads to those there are."""
        if len(instruction.results) == 1:
            return self.numbers[instruction.result]
        number = len(self.edges)
        self.edges.append([])
        for result in instruction.results:
            if result in self.numbers:
                self.connect(number, self.numbers[result], self.unlimited)
        return number

    def connect(self, start: int, end: int, room: int) -> None:
        for node, target, most in ((start, end, room), (end, start, 0)):
            self.edges[node].append(len(self.targets))
            self.targets.append(target)
            self.room.append(most)

    def saturate(self) -> None:
        """Let as much flow from the source to the sink as can."""
        while (levels := self._levels()) is not None:
            following = [0] * len(self.edges)
            while self._augment(levels, following):
                pass

    def leading_to_sink(self) -> set[int]:
        """The nodes from which more could flow to the sink."""
        found, pending = {_SINK}, [_SINK]
        while pending:
            for edge in self.edges[pending.pop()]:
                node = self.targets[edge]
                if self.room[edge ^ 1] and node not in found:
                    found.add(node)
                    pending.append(node)
        return found

    def _levels(self) -> list[int] | None:
        """The distances from the source; None when the sink is out of reach."""
        levels = [-1] * len(self.edges)
        levels[_SOURCE] = 0
        queue = deque([_SOURCE])
        while queue:
            node = queue.popleft()
            for edge in self.edges[node]:
                target = self.targets[edge]
                if self.room[edge] and levels[target] < 0:
                    levels[target] = levels[node] + 1
                    queue.append(target)
        return levels if levels[_SINK] >= 0 else None

    def _augment(self, levels: list[int], following: list[int]) -> bool:
        """Let more flow along one shortest path; whether there was one."""
        path: list[int] = []
        node = _SOURCE
        while node != _SINK:
            while following[node] < len(self.edges[node]):
                edge = self.edges[node][following[node]]
                if self.room[edge] and levels[self.targets[edge]] == levels[node] + 1:
                    path.append(edge)
                    node = self.targets[edge]
                    break
                following[node] += 1
            else:
                if not path:
                    return False
                node = self.targets[path.pop() ^ 1]
                following[node] += 1
        most = min(self.room[edge] for edge in path)
        for edge in path:
            self.room[edge] -= most
            self.room[edge ^ 1] += most
        return True
