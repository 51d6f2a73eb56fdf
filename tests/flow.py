"""Random control flow: structured ops with bodies, memory, and graphs of blocks; `tests.programs` uses it.

Everything ends: loops count to a small number, and each block of a graph has `fuel`, an i64 that falls by
one with every block and, once it is spent, makes every branch take the shortest way out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from nnkit.core.analysis import ControlFlow
from nnkit.core.ir import Block, Builder, Function, Module, Region, Value, Variable
from nnkit.core.ops import (
    Add,
    Aggregate,
    And,
    Branch,
    BranchEnum,
    Conditional,
    EnumCase,
    For,
    GreaterThan,
    If,
    LessThan,
    Load,
    Maximum,
    Minimum,
    Reference,
    Return,
    Store,
    Subtract,
    While,
    Yield,
    splat,
)
from nnkit.core.ops.aggregate import unpacked
from nnkit.core.types import (
    BOOL,
    F32,
    I64,
    EnumType,
    FunctionType,
    PointerType,
    StructType,
    TensorType,
    TupleType,
    Type,
    elements_of,
    scalar,
)
from tests.recipes import MAX_ELEMENTS, Draft

Step = Callable[[Draft], None]

COUNT = scalar(I64)
FLAG = scalar(BOOL)
CELLS = {"cell": scalar(F32), "counter": scalar(I64), "row": TensorType((2, 3), F32)}
"""The global variables of programs with memory."""

TREE = "Choice"


@dataclass
class Inner(Draft):
    """A body, or a block of a graph: it sees what is around it, and makes constants, never parameters.

    A body has some of its constants in the block `around` it, as passes leave them: all their uses may be in bodies.
    """

    around: Draft | None = None

    def fresh(self, type: Type) -> Value:
        elements = elements_of(type)
        if elements is not None:
            assert isinstance(type, TupleType | StructType)
            return self.emit(Aggregate(type), *(self.value(element) for element in elements))
        assert isinstance(type, TensorType)
        if self.around is None or self.flag():
            return self.emit(self.constant(type))
        value = self.around.emit(self.constant(type))
        self.values.append(value)
        return value


def inside(draft: Draft, name: str) -> Inner:
    """A draft of a body that sees all that `draft` has."""
    builder, values = Builder(Block(name=name)), list(draft.values)
    return Inner(draft.draw, draft.module, draft.options, builder, values, around=draft)


def add_memory(module: Module) -> None:
    """Global variables for `touch_memory`."""
    for name, type in CELLS.items():
        module.variables[name] = Variable(name, type)


def touch_memory(draft: Draft) -> None:
    """Load from a global variable, or store to it."""
    name = draft.pick(list(CELLS))
    type = CELLS[name]
    value = draft.value(type) if draft.flag() else None
    pointer = draft.builder.emit(Reference(name, PointerType(type)))
    if value is None:
        draft.emit(Load(), pointer)
    else:
        draft.builder.emit_many(Store(), (value, pointer))


def structured(draft: Draft, step: Step, depth: int) -> None:
    """An `if`, `while` or `for` of small bodies, which may hold others."""
    draft.pick((branch, loop, count))(draft, step, depth)


def _fill(draft: Draft, step: Step, depth: int) -> None:
    for _ in range(draft.integer(0, 2)):
        if depth > 1 and draft.integer(0, 3) == 0:
            structured(draft, step, depth - 1)
        else:
            step(draft)


def _take(body: Inner, values: list[Value]) -> list[Value]:
    arguments = [body.builder.argument(x.type) for x in values]
    body.values += arguments
    return arguments


def _region(body: Inner, yielded: list[Value]) -> Region:
    body.builder.emit_many(Yield(), yielded)
    return Region([body.builder.block])


def _add(draft: Draft, results: tuple[Value, ...]) -> None:
    draft.values += results


def branch(draft: Draft, step: Step, depth: int) -> None:
    """An `if` with up to two results."""
    condition = draft.tensor(dtype=BOOL, fits=lambda s: s == (), shape=())
    bodies = [inside(draft, name) for name in ("then", "else")]
    for body in bodies:
        _fill(body, step, depth)
    results = (
        [bodies[0].pick(bodies[0].values) for _ in range(draft.integer(0, 2))]
        if draft.values
        else []
    )
    types = tuple(x.type for x in results)
    others = [bodies[1].value(type) for type in types]
    regions = [_region(bodies[0], results), _region(bodies[1], others)]
    _add(draft, draft.builder.emit_many(If(types), [condition], regions))


def loop(draft: Draft, step: Step, depth: int) -> None:
    """A `while` of at most three iterations."""
    start = draft.builder.emit(splat(COUNT, draft.integer(0, 3)))
    carried = [
        start,
        *(draft.pick(draft.values) for _ in range(draft.integer(0, 2)) if draft.values),
    ]
    test = inside(draft, "condition")
    counter, *_ = _take(test, carried)
    if draft.flag():
        _fill(test, step, 1)
    more = test.emit(LessThan(), counter, test.emit(splat(COUNT, 3)))
    if draft.integer(0, 3) == 0:
        also = test.tensor(dtype=BOOL, fits=lambda s: s == (), shape=())
        more = test.emit(And(), more, also)
    body = inside(draft, "body")
    counter, *_ = _take(body, carried)
    _fill(body, step, depth)
    following = body.builder.emit(Add(), counter, body.builder.emit(splat(COUNT, 1)))
    yields = [following, *(body.value(x.type) for x in carried[1:])]
    regions = [_region(test, [more]), _region(body, yields)]
    _add(draft, draft.builder.emit_many(While(), carried, regions))


def count(draft: Draft, step: Step, depth: int) -> None:
    """A `for` of at most four iterations, which stacks if their number is known."""
    low, high = draft.integer(-1, 1), draft.integer(-1, 3)
    lower, upper = (draft.builder.emit(splat(COUNT, n)) for n in (low, high))
    is_known = draft.flag()
    if not is_known:
        x = draft.tensor(dtype=I64, fits=lambda s: s == (), shape=())
        upper = draft.builder.emit(Minimum(), draft.builder.emit(Maximum(), x, lower), upper)
    carried = [draft.pick(draft.values) for _ in range(draft.integer(0, 2)) if draft.values]
    body = inside(draft, "body")
    body.values.append(body.builder.argument(COUNT))
    _take(body, carried)
    _fill(body, step, depth)
    yields = [body.value(x.type) for x in carried]
    stacked: list[Type] = []
    trips = max(high - low, 0)
    for _ in range(draft.integer(0, 2) if is_known else 0):
        element = body.tensor(
            fits=lambda s: len(s) < 4 and 4 * np.prod(s, dtype=int) <= MAX_ELEMENTS
        )
        yields.append(element)
        stacked.append(element.tensor.with_shape((trips, *element.tensor.shape)))
    op = For(tuple(stacked))
    operands = [lower, upper, *carried]
    _add(draft, draft.builder.emit_many(op, operands, [_region(body, yields)]))


@dataclass
class _Node:
    """A block of a graph in the making: where it goes on to, and the draft it is written with."""

    block: Block
    after: list[int]
    draft: Inner
    fuel: Value
    shortest: int = -1
    types: list[Type] = field(default_factory=list[Type])


def graph(draft: Draft, name: str, step: Step, depth: int) -> Function:
    """A function of up to ten blocks with any branches between them: loops, irreducible ones, too.

    Its parameters are those of the draft, and fuel.
    """
    count = draft.integer(2, 9)
    enum = draft.module.enums.get(TREE)
    kinds = [draft.integer(0, 3 if enum else 2) for _ in range(count)]
    after: list[list[int]] = []
    for number, kind in enumerate(kinds):
        degree = kind if number < count - 1 else 0
        after.append([draft.integer(1, count - 1) for _ in range(degree)])
    distance = _distances(after)
    for number in range(count):  # what never ends gets a way out
        if distance[number] < 0:
            after[number] = (
                [count - 1] if len(after[number]) < 2 else [*after[number][1:], count - 1]
            )
            distance = _distances(after)
    nodes = _nodes(draft, after)
    for node in nodes:
        node.shortest = min(
            range(len(node.after)), key=lambda k: distance[node.after[k]], default=-1
        )
    flow = ControlFlow(Region([node.block for node in nodes]))
    result: TupleType | None = None
    order = [flow.number[block] for block in flow.order]
    for number in order:
        node = nodes[number]
        above = flow.dominators.parents[number]
        if above >= 0:
            node.draft.values[:0] = nodes[above].draft.values
        node.block.instructions.clear()
        _fill(node.draft, step, depth)
        result = _finish(draft, node, nodes, result)
    reached = [nodes[number].block for number in sorted(order)]
    assert result is not None
    types = tuple(x.type for x in nodes[0].block.arguments)
    return Function(name, FunctionType(types, result), Region(reached))


def _distances(after: list[list[int]]) -> list[int]:
    """Steps to the nearest return; −1 where there is none."""
    distance = [0 if not row else -1 for row in after]
    for steps in range(len(after)):
        for number, row in enumerate(after):
            if distance[number] < 0 and any(distance[target] == steps for target in row):
                distance[number] = steps + 1
    return distance


def _nodes(draft: Draft, after: list[list[int]]) -> list[_Node]:
    """Blocks with their arguments; in the terminators, for now, only where they go on to."""
    enum = draft.module.enums.get(TREE)
    by_enum = {target for row in after if len(row) == 3 for target in row}
    nodes: list[_Node] = []
    for number, row in enumerate(after):
        block = Block(name=f"b{number}")
        inner = Inner(draft.draw, draft.module, draft.options, Builder(block))
        types = [x.type for x in draft.values] if number == 0 else []
        if number and number not in by_enum:
            types = [draft.pick((COUNT, FLAG, scalar(F32))) for _ in range(draft.integer(0, 2))]
            if draft.values and draft.flag():
                types.append(draft.pick(draft.values).type)
        arguments = [inner.builder.argument(type) for type in types]
        inner.values += arguments
        fuel = inner.builder.argument(COUNT, "fuel")
        inner.values.append(fuel)
        nodes.append(_Node(block, row, inner, fuel, types=types))
    for node in nodes:
        successors = [nodes[target].block for target in node.after]
        Builder(node.block).emit_many(Branch(), (), (), successors)
    assert enum is None or len(enum.cases) == 3
    return nodes


def _finish(draft: Draft, node: _Node, nodes: list[_Node], result: TupleType | None) -> TupleType:
    """The terminator; what all of them return is decided by the first."""
    inner, b = node.draft, node.draft.builder
    fuel = b.emit(Subtract(), node.fuel, b.emit(splat(COUNT, 1)))
    if result is None:
        chosen = (
            [inner.pick(inner.values) for _ in range(inner.integer(0, 3))] if inner.values else []
        )
        result = TupleType((COUNT, *(x.type for x in chosen)))
    targets = [nodes[target] for target in node.after]
    successors = [target.block for target in targets]
    if not targets:
        values = [fuel, *(inner.value(type) for type in result.elements[1:])]
        b.emit_many(Return(), unpacked(b, b.emit(Aggregate(result), *values)))
        return result
    left = b.emit(GreaterThan(), fuel, b.emit(splat(COUNT, 0)))
    if len(targets) == 3:
        _branch_enum(node, left, fuel, successors)
        return result
    passed = [[*(inner.value(type) for type in target.types), fuel] for target in targets]
    if len(targets) == 1:
        b.emit_many(Branch(), passed[0], (), successors)
        return result
    condition = inner.tensor(dtype=BOOL, fits=lambda s: s == (), shape=())
    condition = b.emit(And(), left, condition)
    if node.shortest == 0:
        passed.reverse()
        successors.reverse()
    b.emit_many(Conditional(len(passed[0])), [condition, *passed[0], *passed[1]], (), successors)
    return result


def _branch_enum(node: _Node, left: Value, fuel: Value, successors: list[Block]) -> None:
    """To one of three blocks by a case, which is made here, so that it can be the shortest way."""
    inner = node.draft
    enum = inner.module.enums[TREE]
    names = [name for name, _ in enum.cases]
    first, second = inner.integer(0, 2), node.shortest
    bodies = [inside(inner, word) for word in ("then", "else")]
    regions = [
        _region(body, [body.builder.emit(EnumCase(enum, names[case]), fuel)])
        for body, case in zip(bodies, (first, second), strict=True)
    ]
    other = inner.tensor(dtype=BOOL, fits=lambda s: s == (), shape=())
    chosen = inner.builder.emit_many(If((enum,)), [inner.builder.emit(And(), left, other)], regions)
    inner.builder.emit_many(BranchEnum(tuple(names)), chosen, (), successors)


def add_enum(module: Module) -> None:
    """The enum that graphs branch by: every case carries fuel."""
    enum = EnumType(TREE)
    enum.define((name, (COUNT,)) for name in ("a", "b", "c"))
    module.enums[TREE] = enum
