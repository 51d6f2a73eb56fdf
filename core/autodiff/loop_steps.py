"""The step of a loop as a function with its pullback: what schedules of checkpoints are made of.

    func @f_step: (i64, C, W) -> C           the body of the loop: index, what is carried, what it uses from around
    %c2 = apply @f_step(%i, %c1, %w)         an iteration, again
    %c̄1, … = apply @f_step_bwd(…, %c̄2)       and backwards; what comes for %w is added to what came before

An iteration backwards adds up the same numbers in the same order as a loop that has saved all, whatever is between.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence, Set

from ..ir import Block, Builder, Function, Instruction, Module, Region, Value
from ..ir.surgery import clone_region, operands_inside
from ..lazy_dataclass import dataclass
from ..ops.aggregate import Apply
from ..ops.arithmetic import Add, Subtract
from ..ops.flows import Flow, Role, arguments_of_bodies, flows_in
from ..ops.indexing import Gather
from ..ops.literal import constant
from ..ops.nest import Bounds
from ..ops.terminators import Return
from ..types import FunctionType, TensorType, Type, one_or_tuple
from .activity import mask_of
from .emit_structured import LoopState, emit_for
from .pullback import Pullback, PullbackKey, ResidualSource, call_backward
from .recomputation import Recomputation


@dataclass
class Cotangents:
    """Of what is carried and of what is used from around, before some iteration."""

    carried: LoopState
    around: LoopState

    @property
    def all(self) -> LoopState:
        return [*self.carried, *self.around]

    def like(self, values: Sequence[Value]) -> Cotangents:
        """Others of these, in this order."""
        count = len(self.carried)
        return Cotangents([*values[:count]], [*values[count:]])


@dataclass
class LoopSteps:
    """The step of a loop, what it uses from `around`, and where cotangents are.

    `useful` positions of what is carried have some, and `active` ones of what is around; `stacked` results have those
    of all iterations, from `lower` on.
    """

    step: Function
    pullback: Pullback
    has_index: bool
    around: Sequence[Value]
    useful: Sequence[int]
    active: Sequence[int]
    stacked: Sequence[tuple[int, Value]]
    lower: Value | None = None

    def advance(self, b: Builder, state: LoopState, first: Value, last: Value) -> LoopState:
        """The state before iteration `last`, from that before `first`."""

        def body(inner: Builder, index: Value, carried: LoopState) -> LoopState:
            return self.results(inner, index, carried)[: len(state)]

        return emit_for(b, first, last, state, body)

    def results(self, b: Builder, index: Value, state: LoopState) -> LoopState:
        return b.emit_many(Apply(self.step.name, self.step.type), self._arguments(index, state))

    def forward(self, b: Builder, index: Value, state: LoopState) -> tuple[LoopState, LoopState]:
        """The next state, and what the iteration backwards needs besides the index and what is around."""
        arguments, residuals = self._arguments(index, state), self.pullback.residuals
        function = self.pullback.forward or self.step
        results = b.emit_many(Apply(function.name, function.type), arguments)
        at_hand = {ResidualSource.ARGUMENT: arguments, ResidualSource.RESULT: results}
        needed = [at_hand[one.source][one.position] for one in residuals]
        needed = [
            x
            for x, one in zip(needed, residuals, strict=True)
            if self._is_recorded(one.source, one.position)
        ]
        saved = results[len(self.step.type.results) :]
        return results[: len(state)], [*needed, *saved]

    def backward(
        self, b: Builder, index: Value, recorded: LoopState, cts: Cotangents
    ) -> Cotangents:
        """The cotangents before an iteration, from those after it."""
        given = iter(recorded)
        inputs = self._arguments(index, [index] * self._carried)  # carried ones are recorded
        residuals = [
            next(given) if self._is_recorded(one.source, one.position) else inputs[one.position]
            for one in self.pullback.residuals
        ]
        residuals += given
        seeds = dict(zip(self.useful, cts.carried, strict=True))
        if self.stacked:
            assert self.lower is not None
            row = b.emit(Subtract(), index, self.lower)
            seeds |= {k: b.emit(Gather(0, Bounds.INSIDE), ct, row) for k, ct in self.stacked}
        found = call_backward(b, self.pullback, residuals, seeds)
        carried = [
            found.get(self._first + k) or zero_of(b, ct.type)
            for k, ct in zip(self.useful, cts.carried, strict=True)
        ]
        around: list[Value] = []
        for k, total in zip(self.active, cts.around, strict=True):
            more = found.get(self._first + self._carried + k)
            around.append(total if more is None else b.emit(Add(), total, more))
        return Cotangents(carried, around)

    @property
    def recorded(self) -> list[Type]:
        """The types of what an iteration backwards needs besides the index and what is around."""
        of = {
            ResidualSource.ARGUMENT: self.step.type.parameters,
            ResidualSource.RESULT: self.step.type.results,
        }
        types = [
            of[one.source][one.position]
            for one in self.pullback.residuals
            if self._is_recorded(one.source, one.position)
        ]
        forward = self.pullback.forward
        return [*types, *(forward.type.results[len(self.step.type.results) :] if forward else ())]

    def back(self, b: Builder, index: Value, state: LoopState, cts: Cotangents) -> Cotangents:
        """The same from the state before the iteration."""
        _, recorded = self.forward(b, index, state)
        return self.backward(b, index, recorded, cts)

    @property
    def _first(self) -> int:
        return int(self.has_index)

    @property
    def _carried(self) -> int:
        return len(self.step.type.parameters) - self._first - len(self.around)

    def _arguments(self, index: Value, state: LoopState) -> LoopState:
        return [*([index] if self.has_index else []), *state, *self.around]

    def _is_recorded(self, source: ResidualSource, position: int) -> bool:
        """Whether a residual belongs to an iteration, and is not its index."""
        inside = self._first <= position < self._first + self._carried
        return source is ResidualSource.RESULT or inside


def steps_of(
    module: Module,
    name: str,
    at: Instruction,
    useful: Sequence[Flow],
    active: Set[Value],
    stacked: Sequence[tuple[Flow, Value]],
) -> Generator[PullbackKey, Pullback | None, LoopSteps]:
    """The step of the loop `at`, as a function of `module` called `name` or so.

    What is carried in `useful` flows has cotangents, and `stacked` results have these; only `active` values want one.
    """
    body = at.regions[-1].entry
    has_index = bool(flows_in(at, Role.INDEX))
    first = int(has_index)
    arguments = [arguments_of_bodies(at, flow)[-1] for flow in useful]
    carried = [body.arguments.index(x) - first for x in arguments]
    rows = [(flow.yields[-1][1], ct) for flow, ct in stacked]
    step, around = outlined(module, name, at)
    wanted = [k for k, x in enumerate(around) if x in active]
    count = len(body.arguments) - first
    key = PullbackKey(
        step.name,
        mask_of([first + k for k in carried] + [first + count + k for k in wanted]),
        mask_of([*carried, *(k for k, _ in rows)]),
    )
    pullback = yield key
    assert pullback is not None
    return LoopSteps(step, pullback, has_index, around, carried, wanted, rows)


def outlined(module: Module, name: str, at: Instruction) -> tuple[Function, list[Value]]:
    """The last body of the loop `at` as a function, and the values from around it that are its last parameters.

    It computes again what the loop has computed: what is observable, the loop has done.
    """
    region = at.regions[-1]
    body = region.entry
    inside = {*body.arguments, *(x for i in body.instructions for x in i.results)}
    around = list(dict.fromkeys(_from_around(body, inside)))
    values = {x: Value(x.type, x.name) for x in around}
    entry = clone_region(region, values).entry
    entry.name = "entry"
    entry.arguments += [values[x] for x in around]
    entry.instructions = Recomputation(module).of_instructions(entry.instructions)
    yielded = entry.instructions.pop()
    Builder(entry, at.location).emit_many(Return(), yielded.operands)
    types = tuple(x.type for x in entry.arguments)
    result = one_or_tuple([x.type for x in yielded.operands])
    yielded.erase()
    function = Function(module.fresh_name(name), FunctionType(types, result), Region([entry]))
    return module.add(function), around


def _from_around(body: Block, inside: set[Value]) -> list[Value]:
    """The values that a body uses and does not make, in its own bodies neither."""
    blocks = [body]
    while blocks:
        for instruction in blocks.pop().instructions:
            for region in instruction.regions:
                for block in region.blocks:
                    inside.update(block.arguments)
                    inside.update(x for i in block.instructions for x in i.results)
                    blocks.append(block)
    return [x for x in operands_inside(body.instructions) if x not in inside]


def zero_of(b: Builder, type: Type) -> Value:
    """A zero of a type of tensors."""
    assert isinstance(type, TensorType)
    return constant(b, type, 0)
