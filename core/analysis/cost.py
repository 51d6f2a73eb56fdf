"""What a program costs: instructions, operations on elements, and bytes that are read and written.

1. The *flops* of an instruction are read off its own loop nest: points of the box, times what the body does at
   one and what combining does.  Elementwise functions count by weight, so that division and `exp` are dearer
   than a sum.  Integers count like floats; moving elements is no flop.
2. Its *bytes* are those of the tensors it reads and writes.  Views, literals, and putting tensors into tuples,
   move none; what takes a part of a tensor reads that part only.
3. A body counts as often as it is run, and of a choice the dearer branch.  Of blocks that branch all count,
   which is the most that one way through them can cost.
4. A call costs what the called function does.

How often a `while` runs, or a `for` whose bounds are not literals, a cycle of blocks or a recursion, is not
known: what is inside counts `n` times, and `n²` where two such are nested.  Nor is known what functions do that
are declared only or are values: their calls are listed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest

from ..compute.ops import MatrixProduct
from ..errors import NNKitError
from ..ir import Block, Builder, Effect, Function, Instruction, Module, Op, Value
from ..ir.surgery import walk, walk_blocks
from ..ops import (
    Copy,
    Divide,
    Elementwise,
    Extract,
    FloorDivide,
    Folding,
    For,
    Gather,
    If,
    Insert,
    Literal,
    Load,
    Modulo,
    Nest,
    PadShape,
    Pop,
    Power,
    Push,
    ReduceWindowBy,
    Rsqrt,
    Scan,
    ShapeCast,
    ShapeQuery,
    Slice,
    Sqrt,
    SqueezeShape,
    StopGradient,
    Store,
    Structured,
    TruncateDivide,
    While,
)
from ..ops.transcendental import FloatFunction
from ..schedule.ops import Gemm
from ..types import PointerType, TensorType, Type, elements_of
from .effects import callees_of
from .flow import ControlFlow
from .graph import components

WEIGHTS: Mapping[type[object], int] = {
    StopGradient: 0,
    **dict.fromkeys((Divide, FloorDivide, TruncateDivide, Modulo, Sqrt, Rsqrt), 4),
    Power: 32,
    FloatFunction: 16,
    Elementwise: 1,
}
"""Flops per element, by class of function: about how many sums take as long."""

VIEWS = (Literal, PadShape, ShapeCast, SqueezeShape, ShapeQuery, StopGradient)
"""What reads no element."""

PARTS = (Slice, Gather)
"""What reads no more of its first operand than it gives."""


@dataclass(frozen=True)
class Count:
    """A number that may depend on `n`: the sum of terms[k] · nᵏ, as `12 + 8n + 3n²`."""

    terms: tuple[int, ...] = ()

    def __add__(self, other: Count) -> Count:
        return Count(tuple(a + b for a, b in self._beside(other)))

    def or_more(self, other: Count) -> Count:
        """Term by term, whichever is more."""
        return Count(tuple(max(pair) for pair in self._beside(other)))

    def times(self, factor: int) -> Count:
        return Count(tuple(term * factor for term in self.terms))

    def repeated(self, depth: int = 1) -> Count:
        """So much in each of `n` rounds, nested `depth` times."""
        return Count((*(0,) * depth, *self.terms)) if any(self.terms) else Count()

    def _beside(self, other: Count) -> Iterator[tuple[int, int]]:
        return zip_longest(self.terms, other.terms, fillvalue=0)

    def __str__(self) -> str:
        terms = [_written(term, k) for k, term in enumerate(self.terms) if term]
        return " + ".join(terms) or "0"


@dataclass(frozen=True)
class Cost:
    """What running something once costs; `unknown` are calls whose cost is not in it."""

    flops: Count = Count()
    bytes: Count = Count()
    unknown: frozenset[str] = frozenset()

    def __add__(self, other: Cost) -> Cost:
        unknown = self.unknown | other.unknown
        return Cost(self.flops + other.flops, self.bytes + other.bytes, unknown)

    def or_more(self, other: Cost) -> Cost:
        flops, moved = self.flops.or_more(other.flops), self.bytes.or_more(other.bytes)
        return Cost(flops, moved, self.unknown | other.unknown)

    def times(self, factor: int) -> Cost:
        return Cost(self.flops.times(factor), self.bytes.times(factor), self.unknown)

    def repeated(self, depth: int = 1) -> Cost:
        return Cost(self.flops.repeated(depth), self.bytes.repeated(depth), self.unknown)


class Costs:
    """The cost of every function of a module, and of the module; computed once, when first asked for."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self._nested: dict[tuple[Op, tuple[Type, ...]], int] = {}
        self._known: dict[str, Cost] = {}

    def instructions(self, name: str) -> int:
        """How many instructions @`name` has, those of bodies and what ends blocks included."""
        body = self.module.functions[name].body
        return 0 if body is None else sum(1 for _ in walk(body))

    def of(self, name: str) -> Cost:
        """What one call of @`name` costs."""
        return self._functions.get(name, Cost(unknown=frozenset({f"@{name}"})))

    def total(self, names: Iterable[str]) -> Cost:
        """What calling each of the functions once costs."""
        return sum((self.of(name) for name in names), Cost())

    @cached_property
    def _functions(self) -> Mapping[str, Cost]:
        """Callees first; functions that call each other in a circle all cost what a round of it does."""
        names = list(self.module.functions)
        number = {name: position for position, name in enumerate(names)}
        calls = [_callees(function) for function in self.module.functions.values()]
        edges = [[number[callee] for callee in found if callee in number] for found in calls]
        for members in components(edges):
            circle = {names[member] for member in members}
            is_circle = len(members) > 1 or members[0] in edges[members[0]]
            if is_circle:
                self._known.update(dict.fromkeys(circle, Cost()))
            total = Cost()
            for member in members:
                total += self._of_function(self.module.functions[names[member]])
            self._known.update(dict.fromkeys(circle, total.repeated() if is_circle else total))
        return self._known

    def _of_function(self, function: Function) -> Cost:
        if function.body is None:
            return Cost(unknown=frozenset({f"@{function.name}"}))
        blocks = self._of_blocks(list(walk_blocks(function.body)))
        region = function.body
        if len(region.blocks) == 1:
            return blocks[region.entry]
        total = Cost()
        for block, depth in _depths(ControlFlow(region)):
            total += blocks[block].repeated(depth) if depth else blocks[block]
        return total

    def _of_blocks(self, blocks: Sequence[Block]) -> Mapping[Block, Cost]:
        """What each block costs once; `blocks` come before those in their bodies."""
        found: dict[Block, Cost] = {}
        for block in reversed(blocks):
            total = Cost()
            for instruction in block.instructions:
                total += self._of_instruction(instruction, found)
            found[block] = total
        return found

    def _of_instruction(self, instruction: Instruction, inside: Mapping[Block, Cost]) -> Cost:
        op = instruction.op
        if isinstance(op, Structured):
            return _of_structured(instruction, [inside[r.entry] for r in instruction.regions])
        own = Cost(Count((self._flops(instruction),)), Count((_bytes(instruction),)))
        if op.effect & Effect.CALL:
            callees = callees_of(instruction)
            if callees is None:
                return own + Cost(unknown=frozenset({"functions that are values"}))
            for callee in callees:
                called = self._known.get(callee, Cost(unknown=frozenset({f"@{callee}"})))
                own += called.times(_combined(instruction)) if isinstance(op, Folding) else called
        return own

    def _flops(self, instruction: Instruction) -> int:
        op, operands = instruction.op, instruction.operands
        if isinstance(op, Elementwise):
            return instruction.result.tensor.size * weight(op)
        if isinstance(op, Nest):
            return _nest_flops(instruction)
        if isinstance(op, Scan):
            return operands[0].tensor.size
        if isinstance(op, Gemm):
            op = MatrixProduct(op.transpose_a, op.transpose_b)
        if op.takes_any or isinstance(op, Literal) or not instruction.results:
            return 0
        key = op, tuple(x.type for x in operands)
        if key not in self._nested:
            self._nested[key] = _flops_of_nests(op, operands)
        return self._nested[key]


def weight(op: Op) -> int:
    """Flops that an elementwise function does for one element."""
    return next(WEIGHTS[base] for base in type(op).__mro__ if base in WEIGHTS)


def _flops_of_nests(op: Op, operands: Sequence[Value]) -> int:
    """What the loop nests do that `op` means; 0 for what has none."""
    b = Builder()
    try:
        op.nest(b, *(Value(x.type) for x in operands))
    except NNKitError:
        return 0
    made = (i for i in b.block.instructions if isinstance(i.op, Nest))
    return sum(map(_nest_flops, made))


def _nest_flops(instruction: Instruction) -> int:
    op = instruction.op
    assert isinstance(op, Nest)
    body = instruction.regions[0].entry.instructions
    computed = sum(weight(i.op) for i in body if isinstance(i.op, Elementwise))
    combined = sum(1 for output in op.outputs if output.combinator)
    return op.points * (computed + combined)


def _bytes(instruction: Instruction) -> int:
    op, operands, results = instruction.op, instruction.operands, instruction.results
    match op:
        case Load() | Pop():
            return 2 * _size(results[0].type)
        case Store() | Push():
            return 2 * _size(operands[0].type)
        case Copy():
            count, type = operands[2].op, operands[0].type
            values = int(count.splat_value()) if isinstance(count, Literal) else 1
            pointee = _size(type.pointee) if isinstance(type, PointerType) else 0
            return 2 * max(0, values) * pointee
        case Extract() if isinstance(operands[0].type, TensorType):
            return 2 * _size(results[0].type)
        case Insert() if isinstance(operands[1].type, TensorType):
            return 2 * _size(results[0].type)
        case Folding():
            return _size(operands[0].type) + _size(results[0].type)
        case _ if op.takes_any or isinstance(op, VIEWS):
            return 0
        case _:
            read = [_size(x.type) for x in operands]
            made = sum(_size(x.type) for x in results)
            if isinstance(op, PARTS):
                read[0] = min(read[0], made)
            return sum(read) + made


def _of_structured(instruction: Instruction, bodies: Sequence[Cost]) -> Cost:
    match instruction.op:
        case If():
            then, other = bodies
            return then.or_more(other)
        case While():
            condition, body = bodies
            return condition + (condition + body).repeated()
        case For() as op:
            (body,) = bodies
            written = Cost(bytes=Count((2 * sum(map(_size, op.stacked)),)))
            rounds = trip_count(instruction)
            return written + (body.repeated() if rounds is None else body.times(rounds))
        case _:
            return sum(bodies, Cost())


def trip_count(instruction: Instruction) -> int | None:
    """How often a `for` runs its body, if that is written: by its bounds, or by what it stacks."""
    op, bounds = instruction.op, [x.op for x in instruction.operands[:2]]
    if isinstance(op, For):
        for stacked in op.stacked:
            if isinstance(stacked, TensorType):
                return stacked.shape[0]
    if not all(isinstance(bound, Literal) for bound in bounds):
        return None
    lower, upper = (int(bound.splat_value()) for bound in bounds if isinstance(bound, Literal))
    return max(0, upper - lower)


def _combined(instruction: Instruction) -> int:
    """How often a fold calls its function, about."""
    x, op = instruction.operands[0].tensor, instruction.op
    if isinstance(op, ReduceWindowBy):
        return instruction.result.tensor.size * math.prod(op.window)
    return x.size


def _depths(flow: ControlFlow) -> Iterator[tuple[Block, int]]:
    """The blocks that are reached, and in how many cycles each is."""
    loops = flow.loops.innermost
    in_cycle = {
        node
        for members in components(flow.graph.successors)
        if len(members) > 1
        for node in members
    }
    for block in flow.order:
        node = flow.number[block]
        loop = loops[node]
        yield block, loop.depth if loop is not None else int(node in in_cycle)


def _callees(function: Function) -> list[str]:
    found: dict[str, None] = {}
    for instruction in walk(function.body) if function.body is not None else ():
        if instruction.op.effect & Effect.CALL:
            found.update(dict.fromkeys(callees_of(instruction) or ()))
    return list(found)


def _size(type: Type) -> int:
    """Bytes of the tensors in a value; 0 for what has none."""
    if isinstance(type, TensorType):
        return type.bytes
    total = 0
    pending: list[Type] = [type]
    while pending:
        elements: Iterable[Type] = elements_of(pending.pop()) or ()
        for element in elements:
            if isinstance(element, TensorType):
                total += element.bytes
            else:
                pending.append(element)
    return total


def _written(term: int, k: int) -> str:
    """`term · nᵏ`; of what has very many digits, the order of magnitude."""
    number = f"{term:,}" if term < 10**24 else f"10{_raised(round(term.bit_length() * 0.30103))}"
    if k == 0:
        return number
    return f"{'' if term == 1 else number}n{'' if k == 1 else _raised(k)}"


def _raised(number: int) -> str:
    return str(number).translate(_RAISED)


_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
