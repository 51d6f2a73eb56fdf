"""Splits a differentiated function into a forward half, which saves residuals, and a backward half, which uses them.

1. The backward half is reduced to what its gradients need.
2. The forward values it still uses are the residuals, exactly: `sum(x + x)` has none, `x · x` has x.
3. Constants are made anew; arguments and results are at the caller's hand (`core.autodiff.pullback`).
4. What remains is saved: the forward function returns it after the results.  Of a function with the attribute
   `checkpoint` nothing is: the backward function computes it again from the arguments.  A policy may choose in between
   (`core.autodiff.save_policies`); what then computes something again stays a call, as merging it with the forward
   half would save it after all.
5. The signature of functions that call themselves must be known before the residuals are: there, all of these are one
   record of a tape.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import field

from ..analysis.liveness import backward_slice
from ..analysis.pointer_bases import leads_to_memory
from ..errors import UnsupportedError
from ..ir import Block, Builder, Function, Instruction, Module, Region, SavePolicy, Value
from ..ir.donation import without_donations
from ..ir.surgery import clone_instructions, operands_inside, replace_operands, with_bodies
from ..lazy_dataclass import dataclass
from ..location import located
from ..ops.enums import EnumCase, Payload
from ..ops.terminators import Return
from ..types import EnumType, FunctionType, Type, one_or_tuple, written
from .activity import members
from .linearized import Linearized
from .minimum_cut import ResidualChoice
from .primal_copy import Origin
from .pullback import Pullback, PullbackKey, ResidualPlace, ResidualSource
from .recomputation import Recomputation
from .save_policies import choose_by_policy
from .tangent_types import TangentTypes
from .tapes import EMPTY, RECORD, fresh_enum


@dataclass
class ResidualSplitter:
    """Adds forward and backward functions to `module`; equal forward functions are one.

    `effectful` are the functions that do more than compute a result, forward functions of such included.
    """

    module: Module
    again: Recomputation
    types: TangentTypes
    effectful: set[str] = field(default_factory=set[str])
    halves: set[str] = field(default_factory=set[str])
    """The functions that have been made."""
    _forwards: dict[tuple[str, tuple[Origin, ...]], Function] = field(
        default_factory=dict[tuple[str, "tuple[Origin, ...]"], Function]
    )
    _recursive: dict[PullbackKey, Pullback] = field(default_factory=dict[PullbackKey, Pullback])

    def recursive(self, key: PullbackKey) -> Pullback:
        """The two functions for `key`, still without bodies: `cut` gives them later."""
        if key not in self._recursive:
            type = self.module.functions[key.name].type
            tape = fresh_enum(self.module, "tape")
            seeds, wanted = tuple(members(key.seeded)), tuple(members(key.wanted))
            shadowed = tuple(k for k in wanted if leads_to_memory(type.parameters[k]))
            gradients = tuple(k for k in wanted if k not in shadowed)
            forward = self._declare(
                f"{key.name}_fwd", key.name, type.parameters, [*type.results, tape]
            )
            backward = self._declare(
                f"{key.name}_bwd",
                key.name,
                [
                    tape,
                    *(self.types.known(type.results[k]) for k in seeds),
                    *(type.parameters[k] for k in shadowed),
                ],
                [self.types.known(type.parameters[k]) for k in gradients],
            )
            self._recursive[key] = Pullback(forward, backward, (), seeds, gradients, shadowed)
        return self._recursive[key]

    def cut(self, signature: PullbackKey, work: Linearized) -> Pullback:
        """The two functions for `signature`, of which `work` is the sweep.

        The backward half's block has the seeds as its arguments, for the results in `signature.seeded`, and shadows.
        """
        if signature in self._recursive:
            return self._cut_recursive(self._recursive[signature], work)
        arguments = work.copy.arguments
        shadowed = [k for k in members(signature.wanted) if leads_to_memory(arguments[k].type)]
        found = {k: ct for k in members(signature.wanted) if (ct := work.adjoints[arguments[k]])}
        if not found and not shadowed:
            return Pullback()
        outputs = [*found.values()]
        instructions, used = backward_slice(work.backward.block.instructions, outputs)
        given = [*members(signature.seeded), *shadowed]
        taken = zip(given, work.backward.block.arguments, strict=True)
        by_place = [(k, x) for k, x in taken if x in used]
        seeds = {k: x for k, x in by_place if not leads_to_memory(x.type)}
        shadows = {k: x for k, x in by_place if leads_to_memory(x.type)}
        if not found and not shadows:
            return Pullback()
        if "checkpoint" in self.module.functions[signature.name].attributes:
            _refuse_checkpoint(work)
            return self._checkpoint(signature.name, work, found, seeds, instructions, used)
        free = _defined_before(work, used.difference(seeds.values(), shadows.values()))
        constants = [value for value in free if is_constant(value)]
        places = _places(work)
        needed = [value for value in free if not is_constant(value)]
        at_hand = [value for value in needed if value in places]
        saved = [value for value in needed if value not in places]
        computed: Sequence[Instruction] = ()
        if signature.save is not None:
            chosen = self._chosen(signature.save, work, saved, places, used)
            saved, computed = chosen.saved, chosen.computed
            made = {x for instruction in computed for x in instruction.results}
            constants = [x for x in constants if x not in made]
            needed_again = {*operands_inside(computed)}
            at_hand = [x for x in places if x in needed_again or x in used]
        backward = self._backward(
            signature.name,
            _Backward(
                instructions,
                constants,
                at_hand,
                saved,
                [*seeds.values(), *shadows.values()],
                outputs,
                computed,
            ),
        )
        forward = self._forward(signature.name, work, saved, used) if saved else None
        work.drop_all_but(backward, *([forward] if forward else []))
        return Pullback(
            forward,
            backward,
            tuple(places[value] for value in at_hand),
            tuple(seeds),
            tuple(found),
            tuple(shadows),
        )

    def _chosen(
        self,
        save: SavePolicy,
        work: Linearized,
        needed: Sequence[Value],
        free: Collection[Value],
        used: Set[Value],
    ) -> ResidualChoice:
        """What to save of `needed`, and how to compute the rest from this and what is `free`."""
        work.forward(used)
        block = work.copy.builder.block
        return choose_by_policy(self.module, block, needed, set(free), save, self.effectful)

    def _checkpoint(
        self,
        name: str,
        work: Linearized,
        found: Mapping[int, Value],
        seeds: Mapping[int, Value],
        instructions: Sequence[Instruction],
        used: Set[Value],
    ) -> Pullback:
        """A backward function that has the arguments alone, and computes all the rest anew."""
        forward, used = backward_slice(self.again.of_instructions(work.forward(used)), used)
        residuals = {k: x for k, x in enumerate(work.copy.arguments) if x in used}
        block = Block([*residuals.values(), *seeds.values()], [*forward, *instructions], "entry")
        backward = self._finish(f"{name}_bwd", name, Builder(block), list(found.values()))
        work.drop_all_but(backward)
        places = [ResidualPlace(ResidualSource.ARGUMENT, k) for k in residuals]
        return Pullback(None, backward, tuple(places), tuple(seeds), tuple(found))

    def _cut_recursive(self, pullback: Pullback, work: Linearized) -> Pullback:
        """Give the functions of a pullback that was asked for already their bodies."""
        forward, backward = pullback.forward, pullback.backward
        assert forward is not None and backward is not None
        b, arguments = work.backward, work.copy.arguments
        wanted = [arguments[k] for k in pullback.gradients]
        outputs = [work.adjoints[x] or self.types.zero(b, x.type) for x in wanted]
        seeds = b.block.arguments
        instructions, used = backward_slice(b.block.instructions, outputs)
        free = _defined_before(work, used.difference(seeds))
        saved = [value for value in free if not is_constant(value)]
        tape = forward.type.results[-1]
        assert isinstance(tape, EnumType)
        tape.define([(EMPTY, ()), (RECORD, tuple(value.type for value in saved))])
        start = Builder(Block(name="entry"))
        record = start.argument(tape)
        start.block.arguments += seeds
        new = {x: start.emit(Payload(RECORD, number), record) for number, x in enumerate(saved)}
        new.update((value, again(start, value)) for value in free if value not in new)
        replace_operands(with_bodies(instructions), new)
        start.block.instructions += instructions
        start.emit_many(Return(), [new.get(output, output) for output in outputs])
        backward.body = Region([start.block])
        results = work.copy.results
        kept, _ = backward_slice(work.forward(used), [*results, *saved], self.effectful)
        last = next((i.location for i in reversed(kept) if i.location), None)
        half = Builder(Block(arguments, kept, "entry"), last)  # where the tape runs out of memory
        half.emit_many(Return(), [*results, half.emit(EnumCase(tape, RECORD), *saved)])
        forward.body = Region([half.block])
        work.drop_all_but(forward, backward)
        return pullback

    def _backward(self, name: str, half: _Backward) -> Function:
        b = Builder(Block(name="entry"))
        new = {value: b.argument(value.type, value.name) for value in half.at_hand}
        new.update((value, b.argument(value.type, value.name)) for value in half.saved)
        new.update((seed, b.argument(seed.type)) for seed in half.seeds)
        for value in half.constants:
            new[value] = again(b, value)
        clone_instructions(b.block, half.computed, new)
        replace_operands(with_bodies(half.instructions), new)
        b.block.instructions.extend(half.instructions)
        outputs = [new.get(output, output) for output in half.outputs]
        made = self._finish(f"{name}_bwd", name, b, outputs)
        if any(not i.op.is_constant for i in half.computed):
            made.attributes = tuple(dict.fromkeys((*made.attributes, "noinline")))
        return made

    def _forward(
        self, name: str, work: Linearized, saved: Sequence[Value], used: Set[Value]
    ) -> Function:
        origins = tuple(work.copy.origins[value] for value in saved)
        known = self._forwards.get((name, origins))
        if known is not None:
            return known
        wanted = [*work.copy.results, *saved]
        instructions, _ = backward_slice(work.forward(used), wanted, self.effectful)
        b = Builder(Block(work.copy.builder.block.arguments, instructions, "entry"))
        forward = self._forwards[name, origins] = self._finish(f"{name}_fwd", name, b, wanted)
        return forward

    def _finish(self, name: str, primal: str, b: Builder, results: Sequence[Value]) -> Function:
        b.emit_many(Return(), results)
        parameters = [argument.type for argument in b.block.arguments]
        function = self._declare(name, primal, parameters, [result.type for result in results])
        function.body = Region([b.block])
        return function

    def _declare(
        self, name: str, primal: str, parameters: Sequence[Type], results: Sequence[Type]
    ) -> Function:
        """A function made of `@primal`, effects and attributes included, whose body comes later."""
        fresh = self.module.fresh_name(name)
        self.halves.add(fresh)
        if primal in self.effectful and name.endswith("_fwd"):
            self.effectful.add(fresh)
        return self.module.add(
            Function(
                fresh,
                FunctionType(tuple(parameters), one_or_tuple(results)),
                attributes=without_donations(self.module.functions[primal].attributes),
                made_from=self.module.functions[primal].made_from or primal,
            )
        )


def _refuse_checkpoint(work: Linearized) -> None:
    """Raises: UnsupportedError for a function that would be computed again when its memory has changed."""
    primal = work.copy.primal
    memory = next((x for x in primal.parameters if leads_to_memory(x.type)), None)
    if memory is not None:
        error = UnsupportedError(
            f"{written('@', primal.name)} has the attribute checkpoint and takes a {memory.type}: what it computed "
            "cannot be computed again when that memory has changed; leave the attribute out, or pass values"
        )
        raise located(error, primal.location)


@dataclass(frozen=True)
class _Backward:
    """Instructions that compute `outputs`, and the values they use that are defined elsewhere."""

    instructions: Sequence[Instruction]
    constants: Sequence[Value]
    at_hand: Sequence[Value]
    saved: Sequence[Value]
    seeds: Sequence[Value]
    outputs: Sequence[Value]
    computed: Sequence[Instruction]


def _defined_before(work: Linearized, used: Set[Value]) -> list[Value]:
    """The values of the forward half among `used`, in order of definition."""
    block = work.copy.builder.block
    found = list(block.arguments)
    for instruction in block.instructions:
        found.extend(instruction.results)
        if instruction in work.calls:
            found += work.calls[instruction].saved
    return [value for value in found if value in used]


def again(b: Builder, constant: Value) -> Value:
    """Make a constant anew."""
    assert constant.producer is not None
    values: dict[Value, Value] = {}
    clone_instructions(b.block, [constant.producer], values)
    return values[constant]


def is_constant(value: Value) -> bool:
    """Whether `value` is made from nothing by one op, so that making it anew costs no more than saving."""
    producer = value.producer
    return producer is not None and not producer.operands and not producer.op.effect


def _places(work: Linearized) -> dict[Value, ResidualPlace]:
    """What the caller has at hand: results, and arguments in preference to them."""
    places: dict[Value, ResidualPlace] = {}
    sources = (
        (ResidualSource.RESULT, work.copy.results),
        (ResidualSource.ARGUMENT, work.copy.arguments),
    )
    for source, values in sources:
        places.update((x, ResidualPlace(source, position)) for position, x in enumerate(values))
    return places
