"""Which variables are needed where: at the blocks of the graph, and after choices and loops.

For choices and loops, it is seen from the statements:

1. From the inside out: what each statement reads before it sets it, what it sets on every way through,
   and what it sets at all.
2. From the outside in, backwards: what is needed after each statement.

A loop needs no fixed point: at its head is needed what an iteration reads before it sets it, and what is
needed after the loop.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ...ir import Instruction, Value
from ...ir.surgery import walk
from .graph import Arc, Graph, Vertex
from .tree import Assign, Carried, Choice, Forget, Loop, Run, Statement, Test, lists_in


@dataclass(eq=False)
class _Summary:
    """What a statement or a list of them does to variables."""

    reads: set[Value] = field(default_factory=set[Value])
    kills: set[Value] = field(default_factory=set[Value])
    sets: dict[Value, None] = field(default_factory=dict[Value, None])

    def then(self, reads: Iterable[Value], kills: Iterable[Value], sets: Iterable[Value]) -> None:
        """Add what happens before."""
        kills = set(kills)
        self.reads -= kills
        self.reads.update(reads)
        self.kills |= kills
        self.sets.update(dict.fromkeys(sets))


def find_needed(statements: list[Statement], crossing: set[Value], at_end: Iterable[Value]) -> None:
    """Fill `results` of choices and `carried` of loops, and drop repeated instructions nobody needs.

    Variables are `crossing` and what `Assign` sets; those `at_end` are needed after everything.
    """
    liveness = _Liveness(crossing)
    liveness.summarize(statements)
    liveness.demand(statements, at_end)


@dataclass(eq=False)
class _Liveness:
    """The summaries of all statements."""

    crossing: set[Value]
    summaries: dict[Statement, _Summary] = field(default_factory=dict[Statement, _Summary])

    def summarize(self, statements: list[Statement]) -> None:
        order: list[Statement] = []
        pending = list(statements)
        while pending:
            statement = pending.pop()
            order.append(statement)
            for inner in lists_in(statement):
                pending.extend(inner)
        for statement in reversed(order):
            self.summaries[statement] = self._summary(statement)

    def _summary(self, statement: Statement) -> _Summary:
        match statement:
            case Run(instructions):
                return self._of_run(instructions)
            case Assign(targets, sources):
                read = {x for source in sources if (x := _read(source)) is not None}
                return _Summary(read, set(targets), dict.fromkeys(targets))
            case Forget(variables):
                return _Summary(kills=set(variables))
            case Choice():
                first, second = (self._of_list(inner) for inner in lists_in(statement))
                reads = first.reads | second.reads | _tested(statement.test)
                return _Summary(reads, first.kills & second.kills, first.sets | second.sets)
            case Loop():
                head, body = (self._of_list(inner) for inner in lists_in(statement))
                reads = head.reads | ((_tested(statement.test) | body.reads) - head.kills)
                return _Summary(reads, head.kills, body.sets)

    def _of_run(self, instructions: list[Instruction]) -> _Summary:
        results = {x for instruction in instructions for x in instruction.results}
        reads = {x for x in _operands(instructions) if x not in results}
        sets = {x: None for i in instructions for x in i.results if x in self.crossing}
        return _Summary(reads, set(sets), sets)

    def _of_list(self, statements: list[Statement]) -> _Summary:
        whole = _Summary()
        for statement in reversed(statements):
            part = self.summaries[statement]
            whole.then(part.reads, part.kills, part.sets)
        return whole

    def demand(self, statements: list[Statement], at_end: Iterable[Value]) -> None:
        """Step 2."""
        pending: list[tuple[list[Statement], set[Value]]] = [(statements, set(at_end))]
        while pending:
            current, live = pending.pop()
            for statement in reversed(current):
                part = self.summaries[statement]
                match statement:
                    case Run(instructions, is_copy):
                        if is_copy:
                            statement.instructions = _needed(instructions, live)
                            part = self._of_run(statement.instructions)
                        live -= part.kills
                        live |= part.reads
                    case Assign() | Forget():
                        live -= part.kills
                        live |= part.reads
                    case Choice(then=then, otherwise=otherwise):
                        statement.results = [x for x in part.sets if x in live]
                        pending += [(then, set(live)), (otherwise, set(live))]
                        live -= part.kills
                        live |= part.reads
                    case Loop(head=head, body=body):
                        live -= part.kills
                        live |= part.reads
                        statement.carried = [x for x in part.sets if x in live]
                        pending += [(head, set()), (body, set(live))]


def live_variables(graph: Graph) -> dict[Vertex, set[Value]]:
    """The variables that are needed when a vertex is reached.

    From each vertex that reads a variable, backwards to where it is set: as many steps as there are answers.
    """
    vertices = list(dict.fromkeys(v for scope in graph.scopes for v in scope.vertices))
    before: dict[Vertex, list[tuple[Vertex, Arc]]] = {vertex: [] for vertex in vertices}
    own: dict[Vertex, _Summary] = {vertex: _of_vertex(vertex) for vertex in vertices}
    live: dict[Vertex, set[Value]] = {vertex: set() for vertex in vertices}
    for vertex in vertices:
        for arc in vertex.arcs:
            before[arc.target].append((vertex, arc))
    for reader in vertices:
        for variable in own[reader].reads:
            pending = [reader]
            while pending:
                vertex = pending.pop()
                if variable in live[vertex]:
                    continue
                live[vertex].add(variable)
                pending += [
                    source
                    for source, arc in before[vertex]
                    if variable not in arc.targets and variable not in own[source].kills
                ]
    return live


def _of_vertex(vertex: Vertex) -> _Summary:
    """What a vertex reads, on its arcs too, before it sets it."""
    instructions = vertex.block.instructions if vertex.block is not None else []
    kills = {x for i in instructions for x in i.results}
    reads = set(_operands(instructions))
    reads.update(x for arc in vertex.arcs for s in arc.sources if (x := _read(s)) is not None)
    if vertex.selector is not None:
        reads.add(vertex.selector)
    return _Summary(reads - kills, kills)


def crossing_values(blocks: Iterable[list[Instruction]]) -> set[Value]:
    """The results that other lists use, or the last instruction of their own other than as its first operand."""
    found: set[Value] = set()
    for instructions in blocks:
        own = {x for instruction in instructions for x in instruction.results}
        found.update(x for x in _operands(instructions[:-1]) if x not in own)
        found.update(x for k, x in enumerate(instructions[-1].operands) if k or x not in own)
    return found


def _needed(instructions: list[Instruction], live: set[Value]) -> list[Instruction]:
    wanted = set(live)
    kept: list[Instruction] = []
    for instruction in reversed(instructions):
        if not wanted.isdisjoint(instruction.results):
            kept.append(instruction)
            wanted.update(instruction.operands)
    return kept[::-1]


def _operands(instructions: list[Instruction]) -> Iterable[Value]:
    """What instructions use, in bodies too."""
    for instruction in instructions:
        yield from instruction.operands
        for region in instruction.regions:
            for inner in walk(region):
                yield from inner.operands


def _read(source: object) -> Value | None:
    match source:
        case Value():
            return source
        case Carried(value=value):
            return value
        case _:
            return None


def _tested(test: Test) -> set[Value]:
    return {test.value} if test.value is not None else set()
