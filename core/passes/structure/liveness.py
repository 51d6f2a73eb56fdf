"""Liveness of variables at blocks, and after choices and loops.

For choices and loops, it is seen from the statements:

1. From the inside out: what each statement reads before it sets it, what it sets on every way through,
   and what it sets at all.
2. From the outside in, backwards: what is needed after each statement.

A loop needs no fixed point: at its head is needed what an iteration reads before it sets it, and what is
needed after the loop.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import field

from ...analysis.liveness import backward_slice
from ...ir import Instruction, Value
from ...ir.surgery import operands_inside
from ...lazy_dataclass import dataclass
from .reducible_graph import Arc, ReducibleGraph, Vertex
from .statements import Assign, Carried, Choice, Execute, Forget, Repeat, Statement, Test, lists_in


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
    """The summaries of all statements, of nothing but `variables`: what runs only read for themselves adds up."""

    crossing: set[Value]
    variables: set[Value] = field(default_factory=set[Value])
    summaries: dict[Statement, _Summary] = field(default_factory=dict[Statement, _Summary])

    def summarize(self, statements: list[Statement]) -> None:
        self.variables |= self.crossing
        order: list[Statement] = []
        pending = list(statements)
        while pending:
            statement = pending.pop()
            order.append(statement)
            if isinstance(statement, Assign):
                self.variables.update(statement.targets)
            for inner in lists_in(statement):
                pending.extend(inner)
        for statement in reversed(order):
            self.summaries[statement] = self._summary(statement)

    def _summary(self, statement: Statement) -> _Summary:
        match statement:
            case Execute(instructions):
                return self._of_run(instructions)
            case Assign(targets, sources):
                read = {x for source in sources if (x := _read(source)) in self.variables}
                return _Summary(read, set(targets), dict.fromkeys(targets))
            case Forget(variables):
                return _Summary(kills=set(variables))
            case Choice():
                first, second = (self._of_list(inner) for inner in lists_in(statement))
                reads = first.reads | second.reads | self._tested(statement.test)
                return _Summary(reads, first.kills & second.kills, first.sets | second.sets)
            case Repeat():
                head, body = (self._of_list(inner) for inner in lists_in(statement))
                reads = head.reads | ((self._tested(statement.test) | body.reads) - head.kills)
                return _Summary(reads, head.kills, body.sets)

    def _of_run(self, instructions: list[Instruction]) -> _Summary:
        results = {x for instruction in instructions for x in instruction.results}
        reads = {
            x for x in operands_inside(instructions) if x in self.variables and x not in results
        }
        sets = {x: None for i in instructions for x in i.results if x in self.crossing}
        return _Summary(reads, set(sets), sets)

    def _tested(self, test: Test) -> set[Value]:
        return {test.value} & self.variables if test.value is not None else set()

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
                    case Execute(instructions, is_copy):
                        if is_copy:
                            statement.instructions = backward_slice(instructions, live)[0]
                            part = self._of_run(statement.instructions)
                        live -= part.kills
                        live |= part.reads
                    case Assign() | Forget():
                        live -= part.kills
                        live |= part.reads
                    case Choice(then=then, otherwise=otherwise):
                        statement.results = [x for x in part.sets if x in live]
                        # what they do not set, nothing inside of them asks for
                        pending += [(x, set(statement.results)) for x in (then, otherwise)]
                        live -= part.kills
                        live |= part.reads
                    case Repeat(head=head, body=body):
                        live -= part.kills
                        live |= part.reads
                        statement.carried = [x for x in part.sets if x in live]
                        pending += [(head, set()), (body, set(statement.carried))]


def live_variables(graph: ReducibleGraph) -> dict[Vertex, set[Value]]:
    """Which of the variables that loops set are needed when a vertex is reached.

    From each vertex that reads a variable, backwards to where it is set: as many steps as there are answers.
    The steps are those of the original graph: an arc to a header between the entries of a loop leads, by what
    it sets, to one of them, and only what that one needs is needed before.
    """
    vertices = graph.scopes[0].vertices
    loops = [scope for scope in graph.scopes if scope.parent is graph.scopes[0]]
    looped = {vertex for loop in loops for vertex in loop.vertices}
    live = {
        vertex: {vertex.selector} if vertex.selector is not None else set[Value]()
        for vertex in (*vertices, *(scope.header for scope in graph.scopes))
    }
    if not looped:
        return live
    own = {vertex: _of_vertex(vertex) for vertex in vertices}
    variables = {x for v in vertices if v in looped for x in own[v].kills}
    before: dict[Vertex, list[_Transfer]] = {vertex: [] for vertex in vertices}
    for vertex in vertices:
        for arc in vertex.arcs:
            step = _transfer(vertex, arc)
            before[step.target].append(step)
            if vertex in looped:
                variables.update(step.sets)
    for reader in vertices:
        for variable in own[reader].reads & variables:
            pending = [reader]
            while pending:
                vertex = pending.pop()
                if variable in live[vertex]:
                    continue
                live[vertex].add(variable)
                for step in before[vertex]:
                    for header, sets_after in step.through:
                        if variable not in sets_after:
                            live[header].add(variable)
                    if variable not in step.sets and variable not in own[step.source].kills:
                        pending.append(step.source)
    return live


@dataclass(eq=False)
class _Transfer:
    """From one block to the next, through headers that only decide between the entries of loops.

    `sets` are the variables that are set on the way, and beside each header are those set after it.
    """

    source: Vertex
    target: Vertex
    sets: frozenset[Value]
    through: tuple[tuple[Vertex, frozenset[Value]], ...]


def _transfer(source: Vertex, arc: Arc) -> _Transfer:
    sets = dict(zip(arc.targets, arc.sources, strict=True))
    arcs = [arc]
    while (selector := arcs[-1].target.selector) is not None:
        following = arcs[-1].target.chosen(sets[selector])
        sets.update(zip(following.targets, following.sources, strict=True))
        arcs.append(following)
    through: list[tuple[Vertex, frozenset[Value]]] = []
    after: frozenset[Value] = frozenset()
    for before, following in reversed([*itertools.pairwise(arcs)]):
        after = after.union(following.targets)
        through.append((before.target, after))
    return _Transfer(source, arcs[-1].target, frozenset(sets), tuple(through))


def _of_vertex(vertex: Vertex) -> _Summary:
    """What a vertex reads, on its arcs too, before it sets it."""
    instructions = vertex.block.instructions if vertex.block is not None else []
    kills = {x for i in instructions for x in i.results}
    reads = set(operands_inside(instructions))
    reads.update(x for arc in vertex.arcs for s in arc.sources if (x := _read(s)) is not None)
    return _Summary(reads - kills, kills)


def crossing_values(blocks: Iterable[list[Instruction]]) -> set[Value]:
    """The results that other lists use, or the last instruction of their own other than as its first operand."""
    found: set[Value] = set()
    for instructions in blocks:
        own = {x for instruction in instructions for x in instruction.results}
        found.update(x for x in operands_inside(instructions[:-1]) if x not in own)
        found.update(x for k, x in enumerate(instructions[-1].operands) if k or x not in own)
    return found


def _read(source: object) -> Value | None:
    match source:
        case Value():
            return source
        case Carried(value=value):
            return value
        case _:
            return None
