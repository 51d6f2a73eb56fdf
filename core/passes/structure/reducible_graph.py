"""The control-flow graph made reducible: every loop has one entry.

1. A vertex is a block, the start, or the end that every `return` leads to.  An arc sets the arguments of
   the block it leads to.
2. A loop is a strongly connected component.  If it is entered at several vertices, all arcs to these are
   led to a new vertex, its header, which goes on by a selector that the arcs set.
3. Without the arcs to its header, the same holds for the loops inside a loop.

Source: Bahmann, Reissmann, Jahre & Meyer 2015, §4.1.
"""

from __future__ import annotations

from dataclasses import field

from ...analysis.graph import components
from ...ir import Block, Function, Instruction, Region, Value
from ...lazy_dataclass import dataclass
from ...ops import arguments_of
from ...ops.terminators import case_of
from ...types import BOOL, I64, scalar
from .statements import Carried, Immediate, Source


@dataclass(eq=False)
class Arc:
    """Leads to `target`, having set variables."""

    target: Vertex
    targets: list[Value] = field(default_factory=list[Value])
    sources: list[Source] = field(default_factory=list[Source])


@dataclass(eq=False)
class Vertex:
    """A block; without one, the start, the end, or the header of a loop that had several entries.

    `selector` decides between the arcs of such a header, by number.  `flag` is a variable that says, where
    that is not clear from the place in the program, that this vertex comes next.
    """

    block: Block | None = None
    arcs: list[Arc] = field(default_factory=list[Arc])
    selector: Value | None = None
    flag: Value = field(default_factory=lambda: Value(scalar(BOOL)))

    @property
    def terminator(self) -> Instruction | None:
        return self.block.terminator if self.block is not None else None

    def chosen(self, selector: Source) -> Arc:
        """The arc that a value of the selector decides for."""
        assert isinstance(selector, Immediate)
        number = selector.number
        return self.arcs[not number if isinstance(number, bool) else number]


@dataclass(eq=False)
class LoopScope:
    """A loop, or (where `parent` is None) the whole graph: its entry first, then vertices and inner loops.

    `vertices` are all, those of inner loops too.  `again` says whether another iteration follows.
    """

    header: Vertex
    vertices: list[Vertex]
    parent: LoopScope | None = None
    units: list[Vertex | LoopScope] = field(default_factory=list["Vertex | LoopScope"])
    again: Value = field(default_factory=lambda: Value(scalar(BOOL)))
    exits: list[tuple[Vertex, Arc]] = field(default_factory=list[tuple[Vertex, Arc]])
    """The arcs that leave the loop, with the vertices they start from."""

    @property
    def exit_targets(self) -> list[Vertex]:
        """Where the loop may lead to."""
        return list(dict.fromkeys(arc.target for _, arc in self.exits))


@dataclass(eq=False)
class ReducibleGraph:
    """All scopes, inner ones after those around them; where the function ends, and the variables that it returns."""

    scopes: list[LoopScope]
    end: Vertex
    results: list[Value]


def graph_of(function: Function) -> ReducibleGraph:
    """The graph of a function's blocks, those that are not reachable left out."""
    assert function.body is not None
    end = Vertex()
    results = [Value(type) for type in function.type.results]
    start = Vertex()
    vertices = _vertices(function.body, end, results)
    start.arcs.append(Arc(vertices[0]))
    whole = LoopScope(start, [start, *vertices])
    if any(arc.target is end for vertex in vertices for arc in vertex.arcs):
        whole.vertices.append(end)
    scopes = [whole]
    for scope in scopes:  # which grows
        scopes.extend(_find_loops(scope))
    return ReducibleGraph(scopes, end, results)


def _vertices(region: Region, end: Vertex, results: list[Value]) -> list[Vertex]:
    """The vertices of the blocks that are reachable, the entry first."""
    found = {region.entry: Vertex(region.entry)}
    pending = [region.entry]
    while pending:
        block = pending.pop()
        for successor in block.terminator.successors:
            if successor not in found:
                found[successor] = Vertex(successor)
                pending.append(successor)
    for block, vertex in found.items():
        vertex.arcs = _arcs(block.terminator, found, end, results)
    return list(found.values())


def _arcs(
    terminator: Instruction, vertices: dict[Block, Vertex], end: Vertex, results: list[Value]
) -> list[Arc]:
    if not terminator.successors:
        return [Arc(end, [*results], [*terminator.operands])]
    arcs: list[Arc] = []
    for number, block in enumerate(terminator.successors):
        sources: list[Source] = [*arguments_of(terminator, number)]
        case = case_of(terminator, number)
        if case is not None:
            value = terminator.operands[0]
            sources = [Carried(value, case, index) for index in range(len(block.arguments))]
        arcs.append(Arc(vertices[block], [*block.arguments], sources))
    return arcs


def _find_loops(scope: LoopScope) -> list[LoopScope]:
    """Fill `units`; the loops directly inside `scope`."""
    numbers = {vertex: number for number, vertex in enumerate(scope.vertices)}
    arriving: list[list[tuple[int, Arc]]] = [[] for _ in numbers]
    successors: list[list[int]] = [[] for _ in numbers]
    for vertex, number in numbers.items():
        for arc in vertex.arcs:
            target = numbers.get(arc.target)
            if target is not None and not (scope.parent is not None and target == 0):
                successors[number].append(target)
                arriving[target].append((number, arc))
    loops: list[LoopScope] = []
    for component in components(successors):
        first = component[0]
        if len(component) == 1 and first not in successors[first]:
            scope.units.append(scope.vertices[first])
            continue
        members = set(component)
        entries = [
            number
            for number in sorted(component)
            if any(source not in members for source, _ in arriving[number])
        ]
        header = scope.vertices[entries[0]]
        if len(entries) > 1:
            header = _demultiplexer([[arc for _, arc in arriving[n]] for n in entries])
        inside = [scope.vertices[number] for number in sorted(component)]
        loops.append(_loop(scope, header, inside))
        scope.units.append(loops[-1])
    scope.units.reverse()  # components come after those they lead to
    return loops


def _loop(scope: LoopScope, header: Vertex, members: list[Vertex]) -> LoopScope:
    """The loop of `members`; its header becomes the first of its vertices."""
    inside = dict.fromkeys([header, *members])
    loop = LoopScope(header, list(inside), scope)
    for vertex in inside:
        for arc in vertex.arcs:
            if arc.target not in inside:
                loop.exits.append((vertex, arc))
    return loop


def _demultiplexer(arriving: list[list[Arc]]) -> Vertex:
    """A vertex between several entries of a loop and the arcs that lead to them."""
    is_binary = len(arriving) == 2
    selector = Value(scalar(BOOL if is_binary else I64))
    header = Vertex(selector=selector)
    for number, arcs in enumerate(arriving):
        header.arcs.append(Arc(arcs[0].target))
        for arc in arcs:
            arc.target = header
            arc.targets.append(selector)
            arc.sources.append(Immediate(number == 0 if is_binary else number))
    return header
