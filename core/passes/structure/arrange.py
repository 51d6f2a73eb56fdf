"""Converts a reducible graph to structured statements.

Scope by scope, inner loops first, each a graph without cycles in which a loop is one vertex:

1. After a vertex comes a choice between its arcs.  A vertex that only one arc leads to is placed in that
   arc's branch.
2. All others are *joins*.  They follow after the choice of the vertex that immediately dominates them, in
   topological order.  If something else could come next at that place, a flag that the arcs set says
   whether it is the join.
3. A loop is repeated while an arc to its header was taken last.  After it comes a choice between the
   vertices that it may lead to.

A loop that is left only by the conditional of its header has that condition as its test, and what the
header does is done by the head of the loop.  Values of the header that are needed elsewhere are computed
again there if that is cheap; else the header is executed before the loop and at the end of its body.

Source: Bahmann, Reissmann, Jahre & Meyer 2015, §4; the order of joins is that of Ramsey 2022, §3.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import field

from ...analysis import Graph as Numbered
from ...analysis import dominators
from ...ir import Instruction, Value
from ...lazy_dataclass import dataclass
from ...ops import Elementwise, Extract, Literal
from ...ops.terminators import case_of, decider_of
from ...types import BOOL, TensorType, scalar
from .liveness import live_variables
from .reducible_graph import Arc, LoopScope, ReducibleGraph, Vertex
from .statements import Assign, Choice, Execute, Forget, Immediate, Repeat, Source, Statement, Test

CHEAP = 16
"""So many elements are computed again rather than kept, by so many instructions at most: 16 f32 are a
vector of AVX-512, which is computed as quickly as it is kept and loaded again."""

ROTATED = 64
"""Headers of at most so many instructions are written twice, where that saves a test per iteration: of longer
ones, a test is less than 2 % of the work."""


def arrange(graph: ReducibleGraph, crossing: set[Value]) -> list[Statement]:
    """The function as statements.  `crossing` are the values used outside of their block; some join them."""
    arranged: dict[LoopScope, list[Statement]] = {}
    live = live_variables(graph)
    for scope in reversed(graph.scopes):
        body = _Arrangement(scope, graph.end, arranged, live).statements()
        arranged[scope] = body if scope.parent is None else _loop(scope, body, crossing)
    return arranged[graph.scopes[0]]


@dataclass(eq=False)
class _PendingVertex:
    """A vertex of which some joins are still to come."""

    unit: int
    statements: list[Statement]
    joins: list[int]
    furthest: int = -1
    """The last of the joins, in topological order, that an arc has led to."""
    reach: int = sys.maxsize
    """The least depth, in the dominator tree, of what waits for an arc from here or from what is below."""


@dataclass(eq=False)
class _Arrangement:
    """The statements of one scope in the making."""

    scope: LoopScope
    end: Vertex
    arranged: dict[LoopScope, list[Statement]]
    live: dict[Vertex, set[Value]]
    numbers: dict[Vertex, int] = field(init=False)
    places: dict[int, _PendingVertex] = field(default_factory=dict[int, _PendingVertex])
    pending: list[tuple[int, list[Statement]] | _PendingVertex] = field(
        default_factory=list["tuple[int, list[Statement]] | _PendingVertex"]
    )

    def __post_init__(self) -> None:
        scope = self.scope
        around = [scope.header, *scope.exit_targets] if scope.parent is not None else []
        self.passed = dict.fromkeys(x for vertex in around for x in self.live[vertex])
        self.numbers = {
            unit.header if isinstance(unit, LoopScope) else unit: number
            for number, unit in enumerate(scope.units)
        }
        successors = [
            [self.numbers[target] for target in self._targets(unit) if self._is_inside(target)]
            for unit in scope.units
        ]
        graph = Numbered(successors)
        tree = dominators(graph)
        self.arriving = [len(sources) for sources in graph.predecessors]
        self.parents, self.children = tree.parents, tree.children
        self.position = list(graph.position)
        if self.end in self.numbers:
            # nothing follows, so that it can come last
            self.position[self.numbers[self.end]] = len(scope.units)
        self.depth = [0] * len(scope.units)
        for number in tree.preorder[1:]:
            self.depth[number] = self.depth[self.parents[number]] + 1

    def statements(self) -> list[Statement]:
        result: list[Statement] = []
        self.pending.append((0, result))
        while self.pending:
            current = self.pending.pop()
            if isinstance(current, _PendingVertex):
                self._continue(current)
            else:
                self._enter(*current)
        return result

    def _targets(self, unit: Vertex | LoopScope) -> list[Vertex]:
        if isinstance(unit, LoopScope):
            return unit.exit_targets
        return [arc.target for arc in unit.arcs]

    def _is_inside(self, target: Vertex) -> bool:
        """Whether an arc to `target` stays in this iteration of this loop."""
        return target in self.numbers and (
            self.scope.parent is None or target is not self.scope.header
        )

    def _enter(self, number: int, statements: list[Statement]) -> None:
        """Append a vertex and its choice; its joins wait until the branches are complete."""
        joins = [child for child in self.children[number] if self.arriving[child] > 1]
        joins.sort(key=self.position.__getitem__)
        place = self.places[number] = _PendingVertex(number, statements, joins)
        self.pending.append(place)
        flags = [self._vertex(join).flag for join in joins]
        unit = self.scope.units[number]
        if isinstance(unit, LoopScope):
            targets = unit.exit_targets
            flags += [target.flag for target in targets[1:]]
            _assign(statements, flags, [Immediate(False)] * len(flags))
            statements += self.arranged[unit]
            self._after_loop(place, targets)
            return
        _assign(statements, flags, [Immediate(False)] * len(flags))
        if unit.block is not None:
            statements.append(Execute(unit.block.instructions[:-1]))
        self._choose(place, unit)

    def _after_loop(self, place: _PendingVertex, targets: list[Vertex]) -> None:
        statements = place.statements
        for target in reversed(targets[1:]):
            choice = Choice(Test(target.flag))
            statements.append(choice)
            self._follow(place, Arc(target), choice.then)
            statements = choice.otherwise
        for target in targets[:1]:
            self._follow(place, Arc(target), statements)

    def _choose(self, place: _PendingVertex, vertex: Vertex) -> None:
        """Append the choice between the arcs of a vertex."""
        arcs, terminator = vertex.arcs, vertex.terminator
        if len(arcs) == 1:
            self._follow(place, arcs[0], place.statements)
        elif vertex.selector is not None:
            self._select(place, vertex.selector, arcs)
        elif terminator is not None and arcs:
            statements, value = place.statements, terminator.operands[0]
            for number, arc in enumerate(arcs[:-1]):
                test = Test(value, case_of(terminator, number))
                choice = Choice(test, location=terminator.location)
                statements.append(choice)
                self._follow(place, arc, choice.then)
                statements = choice.otherwise
            self._follow(place, arcs[-1], statements)

    def _select(self, place: _PendingVertex, selector: Value, arcs: list[Arc]) -> None:
        """A choice by number, each time between two halves."""
        waiting = [(0, len(arcs), place.statements)]
        while waiting:
            start, stop, statements = waiting.pop()
            if stop - start == 1:
                self._follow(place, arcs[start], statements)
                continue
            middle = (start + stop) // 2
            choice = Choice(Test(selector, below=middle if len(arcs) > 2 else None))
            statements.append(choice)
            waiting.append((middle, stop, choice.otherwise))
            waiting.append((start, middle, choice.then))

    def _follow(self, place: _PendingVertex, arc: Arc, statements: list[Statement]) -> None:
        """Append what an arc does: set variables, then go on here or say where to go on."""
        _assign(statements, arc.targets, arc.sources)
        scope, target = self.scope, arc.target
        if self._is_inside(target):
            number = self.numbers[target]
            if self.arriving[number] == 1:
                self.pending.append((number, statements))
                return
            _assign(statements, [target.flag], [Immediate(True)])
            above = self.places[self.parents[number]]
            above.furthest = max(above.furthest, self.position[number])
            place.reach = min(place.reach, self.depth[above.unit])
        elif target is scope.header:
            self._forget(target, statements)
            _assign(statements, [scope.again], [Immediate(True)])
            place.reach = -1
        else:
            self._forget(target, statements)
            _assign(statements, [scope.again, target.flag], [Immediate(False), Immediate(True)])
            place.reach = -1

    def _forget(self, target: Vertex, statements: list[Statement]) -> None:
        """What this loop passes on, but not to `target`."""
        dead = [x for x in self.passed if x not in self.live[target]]
        if dead:
            statements.append(Forget(dead))

    def _continue(self, place: _PendingVertex) -> None:
        """Append the next join, or finish the place."""
        number = place.unit
        if not place.joins:
            above = self.parents[number]
            if above >= 0:
                self.places[above].reach = min(self.places[above].reach, place.reach)
            del self.places[number]
            return
        join = place.joins.pop(0)
        self.pending.append(place)
        statements = place.statements
        if place.reach < self.depth[number] or place.furthest > self.position[join]:
            choice = Choice(Test(self._vertex(join).flag))
            statements.append(choice)
            statements = choice.then
        self.pending.append((join, statements))

    def _vertex(self, number: int) -> Vertex:
        unit = self.scope.units[number]
        return unit.header if isinstance(unit, LoopScope) else unit


def _loop(scope: LoopScope, body: list[Statement], crossing: set[Value]) -> list[Statement]:
    """A loop whose iterations are `body`."""
    terminator = scope.header.terminator
    location = terminator.location if terminator is not None else None
    if not scope.exits:
        return [Repeat([], Test(None), body, location)]
    plain = _plain_loop(scope, body, crossing)
    if plain is not None:
        return plain
    loop = Repeat([], Test(scope.again), body, location)
    return [Assign([scope.again], [Immediate(True)]), loop]


def _plain_loop(
    scope: LoopScope, body: list[Statement], crossing: set[Value]
) -> list[Statement] | None:
    """The loop, if its header alone decides when it ends and nothing is lost by asking there."""
    header, terminator = scope.header, scope.header.terminator
    decider = decider_of(terminator) if terminator is not None else None
    if decider is None or decider.type != scalar(BOOL):
        return None
    match scope.exits, body:
        case [(source, arc)], [Execute() as run, Choice() as choice] if source is header:
            pass
        case _:
            return None
    leaves_first = header.arcs[0] is arc
    test = Test(choice.test.value, negated=leaves_first)
    stays, leaves = choice.then, choice.otherwise
    if leaves_first:
        stays, leaves = leaves, stays
    loop = Repeat([run], test, stays, choice.location)
    needed = [x for i in run.instructions for x in i.results if x in crossing]
    if not needed:
        return [loop, *leaves]
    if header.arcs[leaves_first].target is header:
        return None  # a loop of one block, whose end is as good a place for the test
    cheap = _cheap_slice(run.instructions, needed)
    if cheap is not None:
        stays.insert(0, Execute(cheap, is_copy=True))
        return [loop, Execute(cheap, is_copy=True), *leaves]
    if len(run.instructions) > ROTATED or any(i.regions for i in run.instructions):
        return None
    loop.head = []
    stays.append(run)
    if choice.test.value is not None:
        crossing.add(choice.test.value)
    return [run, loop, *leaves]


def _cheap_slice(instructions: list[Instruction], needed: list[Value]) -> list[Instruction] | None:
    """What `needed` is computed by, if that may be done again."""
    wanted = set(needed)
    found: list[Instruction] = []
    for instruction in reversed(instructions):
        if wanted.isdisjoint(instruction.results):
            continue
        if not _is_cheap(instruction) or len(found) == CHEAP:
            return None
        found.append(instruction)
        wanted.update(instruction.operands)
    return found[::-1]


def _is_cheap(instruction: Instruction) -> bool:
    return isinstance(instruction.op, Elementwise | Extract | Literal) and all(
        isinstance(x.type, TensorType) and x.type.size <= CHEAP for x in instruction.results
    )


def _assign(
    statements: list[Statement], targets: Iterable[Value], sources: Iterable[Source]
) -> None:
    targets = list(targets)
    if targets:
        statements.append(Assign(targets, list(sources)))
