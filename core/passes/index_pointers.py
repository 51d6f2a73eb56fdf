"""Numbers in place of the pointers that structured ops pass on.

    %q = for %i … carrying %p: *f64 {        %n = for %i … carrying 0: i64 {
    'body(%i: i64, %r: *f64):                'body(%i: i64, %k: i64):
        …                                        %r = offset %p: *f64 by %k: i64
        %s = offset %r: *f64 by 2: i64           …
        yield %s: *f64                           %m = add %k: i64, 2: i64
    }                                            yield %m: i64
                                             }
                                             %q = offset %p: *f64 by %n: i64

1. A pointer that is carried or chosen leads on by `offset` from a *root*: a pointer from around the instruction, or
   another that is carried.  It is the number of its root, if there are several, and a count.
2. Where it is needed the pointer is made from these; one of several roots by choices that do nothing else.
3. A root that is made inside, by indices from around, is made before the instruction.
4. Inner instructions come first: what they choose from is known then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import ClassVar

from ..analysis import Analyses
from ..ir import Block, Builder, Function, Instruction, Region, Value
from ..ir.surgery import clone_instructions, walk_blocks, with_bodies
from ..lazy_dataclass import dataclass
from ..ops.arithmetic import Add
from ..ops.comparison import Equal, Select, equal_to_number
from ..ops.flows import (
    Flow,
    Role,
    add_flows,
    add_yields,
    arguments_of_bodies,
    flows_in,
    flows_of,
    keep_flows,
    operands_of,
    structured,
    yields_of_bodies,
)
from ..ops.literal import constant, number_of
from ..ops.memory import Offset, offset_from
from ..ops.nest import Yield
from ..ops.structured import If
from ..types import I64, PointerType, scalar
from .base import FunctionPass

_COUNT = scalar(I64)


@dataclass(frozen=True)
class IndexPointers(FunctionPass):
    """Has choices and loops pass on numbers in place of pointers, where it is known what these lead on from.

    `differentiate` has this done to what it differentiates: the way back follows numbers, which it can save.

    Requires: structured control flow; functions with several blocks are left alone.
    Preserves: results and effects.
    Cost: linear, times the number of pointers that one instruction passes on.
    """

    name: ClassVar[str] = "index-pointers"

    def run(self, function: Function, analyses: Analyses) -> bool:
        body = function.body
        if body is None or len(body.blocks) != 1:
            return False
        blocks = [*walk_blocks(body)]
        if not any(_pointer_flows(i) for block in blocks for i in block.instructions):
            return False
        work = _Indexing()
        changed = [work.block(block) for block in reversed(blocks)]
        return any(changed)


def _pointer_flows(instruction: Instruction) -> list[Flow]:
    return [flow for flow in flows_of(instruction) if isinstance(flow.type, PointerType)]


@dataclass
class _Indexing:
    """What has been done so far: `chosen` are pointers that are one of several roots, by number."""

    chosen: dict[Value, tuple[Value, Sequence[Value]]] = field(
        default_factory=dict[Value, "tuple[Value, Sequence[Value]]"]
    )

    def block(self, block: Block) -> bool:
        changed = False
        for instruction in [i for i in block.instructions if _pointer_flows(i)]:
            changed = self.instruction(block, instruction) or changed
        return changed

    def instruction(self, block: Block, at: Instruction) -> bool:
        """Have one instruction pass on numbers; whether there is anything that it can."""
        known = _choice_by_number(at)
        if known is not None:
            self.chosen[at.results[0]] = known
            return False
        changed = False
        for flow in flows_in(at, Role.INPUT):
            if isinstance(flow.type, PointerType):
                (pointer,) = operands_of(at, flow)
                for argument in arguments_of_bodies(at, flow):
                    changed = changed or bool(argument.uses)
                    argument.replace_all_uses_with(pointer)
        before, after = Builder(Block(), at.location), Builder(Block(), at.location)
        changed = _take_out(before, at) or changed
        roots = _roots(self, at)
        if roots:
            _Passing(self, at, roots).rewrite(before, after)
        place = block.instructions.index(at)
        block.instructions[place : place + 1] = [
            *before.block.instructions,
            at,
            *after.block.instructions,
        ]
        return changed or bool(roots)

    def choose(self, b: Builder, which: Value | None, roots: Sequence[Value]) -> Value:
        """The root of this number."""
        if which is None:
            return roots[0]
        made = _choice(b, which, roots, 0)
        self.chosen[made] = which, roots
        return made


def _choice(b: Builder, which: Value, roots: Sequence[Value], first: int) -> Value:
    """Of the roots from `first` on, that of number `which`."""
    here, other = Builder(Block(name="then"), b.location), Builder(Block(name="else"), b.location)
    here.emit_many(Yield(), [_outside(here, roots[first])])
    last = first + 2 == len(roots)
    rest = _outside(other, roots[-1]) if last else _choice(other, which, roots, first + 1)
    other.emit_many(Yield(), [rest])
    is_first = b.emit(Equal(), which, constant(b, _COUNT, first))
    regions = [Region([here.block]), Region([other.block])]
    (made,) = b.emit_many(If((roots[first].type,)), [is_first], regions)
    return made


def _choice_by_number(at: Instruction) -> tuple[Value, list[Value]] | None:
    """The number and the roots of what `_choice` has made."""
    roots: list[Value] = []
    number: Value | None = None
    while True:
        test = equal_to_number(at.operands[0]) if at.operands and not at.op.is_loop else None
        if test is None or len(at.results) != 1:
            return None
        which, place = test
        number = number or which
        if number is not which or place != len(roots):
            return None
        here, other = (region.entry for region in at.regions)
        if any(i.regions or not _is_nothing(i) for i in here.instructions):
            return None
        roots += here.terminator.operands
        (rest,) = other.terminator.operands
        inner = [i for i in other.instructions if i.regions]
        if not inner and all(map(_is_nothing, other.instructions)):
            return number, [*roots, rest]
        if len(inner) != 1 or rest.producer is not inner[0]:
            return None
        at = inner[0]


def _is_nothing(instruction: Instruction) -> bool:
    return instruction.op.is_constant or instruction.op.is_terminator


def _outside(b: Builder, root: Value) -> Value:
    """A root where it is seen: constants, which may stand in a body, are made anew."""
    if root.producer is None or not root.producer.op.is_constant:
        return root
    values: dict[Value, Value] = {}
    clone_instructions(b.block, [root.producer], values)
    return values[root]


def _inside(at: Instruction) -> set[Value]:
    """The values that the bodies of an instruction take and make."""
    inside = {x for i in with_bodies([at]) for x in i.results} - set(at.results)
    inside.update(x for i in with_bodies([at]) for r in i.regions for x in r.entry.arguments)
    return inside


def _take_out(b: Builder, at: Instruction) -> bool:
    """Emit before `at` what its bodies yield pointers from, and make by steps that begin around it and use nothing of
    what is inside; whether there was any."""
    inside = _inside(at)
    sources = [x for flow in _pointer_flows(at) for x in yields_of_bodies(at, flow)]
    changed = False
    for root in dict.fromkeys(offset_from(x)[0] for x in sources):
        steps: list[Instruction] = []
        pointer = root
        while (step := pointer.producer) is not None and step.op.is_pointer_step:
            if pointer not in inside:
                break
            steps.append(step)
            pointer = step.operands[0]
        keys = [x for step in steps for x in step.operands[1:]]
        if not steps or pointer in inside or any(x in inside and not _is_constant(x) for x in keys):
            continue
        for step in reversed(steps):
            pointer = b.emit(step.op, pointer, *(_outside(b, x) for x in step.operands[1:]))
        pointer.name = root.name
        root.replace_all_uses_with(pointer)
        changed = True
    return changed


def _is_constant(value: Value) -> bool:
    return value.op is not None and value.op.is_constant


def _roots(work: _Indexing, at: Instruction) -> dict[Flow, list[Value]]:
    """The roots of the flows of `at` that can be numbers; those that may become each other have the same ones."""
    flows = [f for f in _pointer_flows(at) if f.role in (Role.CARRIED, Role.CHOSEN)]
    inside = _inside(at)
    owners = {x: flow for flow in flows for x in arguments_of_bodies(at, flow)}
    found: dict[Flow, dict[Value, None]] = {flow: {} for flow in flows}
    links: list[tuple[Flow, Flow]] = []
    bad: set[Flow] = set()
    for flow in flows:
        pending = [*operands_of(at, flow), *yields_of_bodies(at, flow)]
        while pending:
            root, _ = offset_from(pending.pop())
            if root in owners:
                links += [(flow, owners[root]), (owners[root], flow)]
            elif root in work.chosen and root in inside:
                pending += work.chosen[root][1]
            elif root in inside and not _is_constant(root):
                bad.add(flow)
            else:
                found[flow][root] = None
    grows = True
    while grows:
        grows = False
        for one, other in links:
            if other in bad and one not in bad:
                bad.add(one)
                grows = True
            if found[other].keys() - found[one].keys():
                found[one].update(found[other])
                grows = True
    order = [*dict.fromkeys(root for roots in found.values() for root in roots)]
    return {
        flow: [root for root in order if root in roots]
        for flow, roots in found.items()
        if flow not in bad
    }


@dataclass
class _Passing:
    """The change of one instruction, whose flows in `roots` become numbers: which root, of several, and a count."""

    work: _Indexing
    at: Instruction
    roots: Mapping[Flow, list[Value]]
    owners: dict[Value, Flow] = field(default_factory=dict[Value, Flow])
    numbers: dict[Flow, dict[int, tuple[Value | None, Value]]] = field(
        default_factory=dict[Flow, "dict[int, tuple[Value | None, Value]]"]
    )
    """For each flow, by the body, what of its arguments says which root and how far from there."""

    def rewrite(self, before: Builder, after: Builder) -> None:
        at = self.at
        gone = {flow: at.results[flow.result or 0] for flow in self.roots}
        sources = {flow: [*yields_of_bodies(at, flow)] for flow in self.roots}
        arguments = {flow: arguments_of_bodies(at, flow) for flow in self.roots}
        self.owners = {x: flow for flow, taken in arguments.items() for x in taken}
        starts = [x for flow, roots in self.roots.items() for x in self.starts(before, flow, roots)]
        flows = add_flows(at, structured(at).updated, starts)
        own = iter(flows)
        results = {
            flow: self.take_numbers(flow, [next(own) for _ in range(_width(roots))])
            for flow, roots in self.roots.items()
        }
        self.yield_numbers(flows, sources)
        for flow, taken in arguments.items():
            self.make_pointers(flow, taken)
        for flow, result in gone.items():
            pointer = self.pointer(after, results[flow], self.roots[flow])
            pointer.name = pointer.name or result.name
            result.replace_all_uses_with(pointer)
        dropped = {*gone.values()}
        keep_flows(
            at,
            [f for f in flows_of(at) if f.result is None or at.results[f.result] not in dropped],
        )

    def starts(self, b: Builder, flow: Flow, roots: Sequence[Value]) -> list[Value]:
        """The numbers that a loop begins with; of a choice, what tells their types."""
        operands = operands_of(self.at, flow)
        if operands:
            return _flat(self.number(b, operands[0], roots))
        return [Value(_COUNT) for _ in range(_width(roots))]

    def take_numbers(self, flow: Flow, own: Sequence[Flow]) -> tuple[Value | None, Value]:
        """Note the arguments of bodies for a flow's numbers; the results for them."""
        taken = zip(*(arguments_of_bodies(self.at, f) for f in own), strict=True)
        self.numbers[flow] = {
            body: _pair(values) for (body, _), values in zip(flow.arguments, taken, strict=True)
        }
        return _pair([self.at.results[f.result or 0] for f in own])

    def yield_numbers(self, flows: Sequence[Flow], sources: Mapping[Flow, Sequence[Value]]) -> None:
        """Have the bodies yield numbers for what they yielded pointers for."""
        yields: list[list[Value]] = [[] for _ in self.at.regions]
        for flow, roots in self.roots.items():
            for (body, _), source in zip(flow.yields, sources[flow], strict=True):
                end = self.at.regions[body].entry
                terminator = end.instructions.pop()
                pair = self.number(Builder(end, self.at.location), source, roots, body)
                end.instructions.append(terminator)
                yields[body] += _flat(pair)
        for body, values in enumerate(yields):
            add_yields(self.at, body, flows, values)

    def make_pointers(self, flow: Flow, arguments: Sequence[Value]) -> None:
        """Make the pointers that bodies took of the numbers that they take."""
        for (body, _), argument in zip(flow.arguments, arguments, strict=True):
            start = Builder(Block(), self.at.location)
            pointer = self.pointer(start, self.numbers[flow][body], self.roots[flow])
            argument.replace_all_uses_with(pointer)
            entry = self.at.regions[body].entry
            entry.instructions[:0] = start.block.instructions

    def pointer(
        self, b: Builder, number: tuple[Value | None, Value], roots: Sequence[Value]
    ) -> Value:
        which, count = number
        return b.emit(Offset(), self.work.choose(b, which, roots), count)

    def number(
        self, b: Builder, pointer: Value, roots: Sequence[Value], body: int = 0
    ) -> tuple[Value | None, Value]:
        """Which of `roots` a pointer leads on from, and how far."""
        root, steps = offset_from(pointer)
        if root in self.owners:
            which, count = self.numbers[self.owners[root]][body]
        elif root in self.work.chosen and root not in roots:
            which, count = self.of_chosen(b, root, roots, body)
        else:
            which = constant(b, _COUNT, roots.index(root)) if len(roots) > 1 else None
            count = constant(b, _COUNT, 0)
        for step in reversed(steps):
            count = step if number_of(count) == 0 else b.emit(Add(), count, step)
        return which, count

    def of_chosen(
        self, b: Builder, pointer: Value, roots: Sequence[Value], body: int
    ) -> tuple[Value | None, Value]:
        """The same for one of several, inside of the instruction."""
        number, choices = self.work.chosen[pointer]
        which, count = self.number(b, choices[-1], roots, body)
        for place, choice in [*enumerate(choices)][-2::-1]:
            other, far = self.number(b, choice, roots, body)
            is_it = b.emit(Equal(), number, constant(b, _COUNT, place))
            if which is not None and other is not None:
                which = b.emit(Select(), other, which, is_it)
            count = b.emit(Select(), far, count, is_it)
        return which, count


def _width(roots: Sequence[Value]) -> int:
    """How many numbers say which root, and how far from there."""
    return 1 + (len(roots) > 1)


def _flat(pair: tuple[Value | None, Value]) -> list[Value]:
    which, count = pair
    return [count] if which is None else [which, count]


def _pair(values: Sequence[Value]) -> tuple[Value | None, Value]:
    return (None, values[0]) if len(values) == 1 else (values[0], values[1])
