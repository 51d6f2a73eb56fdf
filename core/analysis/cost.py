"""The cost of programs: instructions, scalar operations, and bytes read and written.

1. An instruction costs the operations that its op says, or those of its loop nests: points of the box, times what the
   body does at one and what combining does.  Elementwise functions count by their cost, so that division and `exp` are
   dearer than a sum.  Integers count like floats.  Its bytes are those of the tensors it reads and writes; views,
   literals, and putting tensors into tuples, move none.
2. A body counts as often as it is run, and of a choice the dearer branch.  Of blocks that branch all count,
   which is the most that one way through them can cost.
3. A call costs what the called function does.

How often a `while` runs, or a `for` whose bounds are not literals, a cycle of blocks or a recursion, is not
known: what is inside counts `n` times, and `n²` where two such are nested.  Nor is known what functions do that
are declared only or are values: their calls are listed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, reduce

from ..errors import NNKitError
from ..ir import Block, Builder, Effect, Function, Instruction, Module, Op, Value
from ..ir.surgery import walk, walk_blocks
from ..ops.flows import Role, certain_bodies, flows_in, trips_of
from ..types import TensorType, Type, tensor_bytes, written
from .call_graph import cycles_callees_first
from .effects import callees_of
from .flow import ControlFlow
from .graph import components
from .symbolic_count import Cost, SymbolicCount


class Costs:
    """The cost of every function of a module, and of the module; computed once, when first asked for."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self._nests: dict[tuple[Op, tuple[Type, ...]], int] = {}
        self._known: dict[str, Cost] = {}

    def instructions(self, name: str) -> int:
        """How many instructions @`name` has, those of bodies and what ends blocks included."""
        body = self.module.functions[name].body
        return 0 if body is None else sum(1 for _ in walk(body))

    def of(self, name: str) -> Cost:
        """What one call of @`name` costs."""
        return self._functions.get(name, Cost(unknown=frozenset({written("@", name)})))

    def total(self, names: Iterable[str]) -> Cost:
        """What calling each of the functions once costs."""
        return sum((self.of(name) for name in names), Cost())

    def of_instruction(self, instruction: Instruction) -> Cost:
        """What running `instruction` once costs, its bodies included."""
        blocks = [block for region in instruction.regions for block in walk_blocks(region)]
        known = self._functions
        assert known is self._known
        return self._of_instruction(instruction, self._of_blocks(blocks))

    @cached_property
    def _functions(self) -> Mapping[str, Cost]:
        """Callees first; functions that call each other in a circle all cost what a round of it does."""
        functions = self.module.functions
        for names in cycles_callees_first(self.module, _callees):
            is_circle = len(names) > 1 or names[0] in _callees(functions[names[0]])
            if is_circle:
                self._known.update(dict.fromkeys(names, Cost()))
            total = sum((self._of_function(functions[name]) for name in names), Cost())
            self._known.update(dict.fromkeys(names, total.repeated() if is_circle else total))
        return self._known

    def _of_function(self, function: Function) -> Cost:
        if function.body is None:
            return Cost(unknown=frozenset({written("@", function.name)}))
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

    def _flops_of(self, instruction: Instruction) -> int:
        known = instruction.op.flops(instruction)
        if known is not None:
            return known
        key = instruction.op, tuple(x.type for x in instruction.operands)
        if key not in self._nests:  # the nests follow from these
            b = Builder()
            with suppress(NNKitError):
                instruction.op.nest(b, *map(Value, key[1]))
            self._nests[key] = sum(map(self._flops_of, b.block.instructions))
        return self._nests[key]

    def _of_instruction(self, instruction: Instruction, inside: Mapping[Block, Cost]) -> Cost:
        op = instruction.op
        if op.is_structured:
            return _cost_of_structured(instruction, [inside[r.entry] for r in instruction.regions])
        own = Cost(
            SymbolicCount((self._flops_of(instruction),)),
            SymbolicCount((op.bytes_moved(instruction),)),
        )
        if op.effect & Effect.CALL:
            callees = callees_of(instruction)
            if callees is None:
                return own + Cost(unknown=frozenset({"functions that are values"}))
            for callee in callees:
                called = self._known.get(callee, Cost(unknown=frozenset({written("@", callee)})))
                own += called.times(op.call_count(instruction))
        return own


def _cost_of_structured(instruction: Instruction, bodies: Sequence[Cost]) -> Cost:
    if not instruction.op.is_loop:
        return reduce(Cost.or_more, bodies)
    stacked = [flow.type for flow in flows_in(instruction, Role.STACKED)]
    once = sum((bodies[body] for body in certain_bodies(instruction)), Cost())
    rounds, each = trip_count(instruction), sum(bodies, Cost())
    return (
        Cost(bytes=SymbolicCount((2 * sum(map(tensor_bytes, stacked)),)))
        + once
        + (each.repeated() if rounds is None else each.times(rounds))
    )


def trip_count(instruction: Instruction) -> int | None:
    """The static trip count of a loop: by the extent it stacks, or by constant bounds."""
    for flow in flows_in(instruction, Role.STACKED):
        if isinstance(flow.type, TensorType):
            return flow.type.shape[0]
    return trips_of(instruction)


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
