"""Which values to save for the backward half, and which to compute again: a minimum cut.

    saved:    what the cut goes through, weighted with its bytes
    computed: what lies between the saved values and the needed ones; only what costs little may lie there

A value is two nodes with an edge of its bytes between them; from each operand of what may be computed again an edge
without limit leads to it; the source leads to all that may not be, and each needed value to the sink.

Source: Ford & Fulkerson 1956 (a minimum cut is what a maximum flow fills); Dinic 1970 for the flow.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field

from ..ir import Block, Effect, Instruction, Value
from ..types import TensorType, tensor_bytes

FLOPS = 2
"""So many operations an element may cost that is computed again: about what a load and a store of it take, while a
division or a function takes more (15 and up in `Elementwise.cost`)."""

_WORD = 8
"""Bytes of what is no tensor: an address."""

_SOURCE, _SINK = 0, 1
"""The first nodes."""


@dataclass(frozen=True)
class Residuals:
    """Values to save, and instructions that compute the other needed values from these, in order."""

    saved: list[Value]
    computed: list[Instruction]


def choose_residuals(block: Block, needed: Sequence[Value], free: Set[Value]) -> Residuals:
    """What of `block` to save for the use of its values `needed`; those in `free` cost nothing to have.

    Cost: in theory the product of values and edges; a few visits of each in practice.
    """
    inside: dict[Value, Instruction | None] = dict.fromkeys(block.arguments)
    inside.update((x, i) for i in block.instructions for x in i.results)
    graph = _Graph()
    reached: list[Value] = []
    pending = [x for x in needed if x not in free]
    while pending:
        value = pending.pop()
        if value in graph.numbers:
            continue
        reached.append(value)
        number = graph.number(value)
        graph.connect(number, number + 1, _bytes(value))
        producer = inside[value]
        if producer is None or not _may_be_computed_again(producer):
            graph.connect(_SOURCE, number, graph.unlimited)
        else:
            pending += [x for x in producer.operands if x in inside and x not in free]
    for value in reached:
        producer = inside[value]
        if producer is not None and _may_be_computed_again(producer):
            for operand in producer.operands:
                if operand in graph.numbers:
                    graph.connect(graph.numbers[operand] + 1, graph.numbers[value], graph.unlimited)
    for value in needed:
        if value in graph.numbers:
            graph.connect(graph.numbers[value] + 1, _SINK, graph.unlimited)
    graph.saturate()
    leads = graph.leading_to_sink()
    is_saved = {
        v for v, number in graph.numbers.items() if number + 1 in leads and number not in leads
    }
    return Residuals(
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
            missing.update(x for x in instruction.operands if x not in known)
    found.reverse()
    return found


def _may_be_computed_again(instruction: Instruction) -> bool:
    op = instruction.op
    if op.effect is not Effect.NONE or instruction.regions or len(instruction.results) != 1:
        return False
    type = instruction.result.type
    if op.is_moved or not isinstance(type, TensorType):
        return op.is_moved
    flops = op.flops(instruction)
    return flops is not None and flops <= FLOPS * type.size


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
