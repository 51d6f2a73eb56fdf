"""The two halves of a gradient whose declaration says what to save: what each takes and returns, and what is between.

func @f_grad: (A, S) -> (A, R) {                  forward:   (A) -> (R, residuals)
'entry(%x: A, %seed: S):
    %y, %h = apply @f_fwd(%x): (A) -> (R, H)      residuals: those of %x, %y and %h that the rest uses
    %dx = apply @f_bwd(%x, %h, %seed): …
    return %dx: A, %y: R                          backward:  (residuals, S) -> A
}
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ..analysis.call_graph import reachable, symbols
from ..analysis.liveness import backward_slice
from ..errors import InternalError
from ..ir import (
    BatchOf,
    Builder,
    Function,
    GradientOf,
    Instruction,
    Module,
    TangentOf,
    Value,
)
from ..ir.surgery import clone_function, clone_instructions, walk, with_bodies
from ..lazy_dataclass import dataclass
from ..location import Location
from ..ops.flows import flows_of, yields_of_bodies
from ..types import Type


@dataclass(frozen=True)
class HalfResidual:
    """A value that the backward half reads; `kind` is argument, result or saved, and `number` that among its kind.

    `op` makes it, at `location`; an argument is made by nothing.
    """

    kind: str
    number: int
    type: Type
    op: str | None = None
    location: Location | None = None


@dataclass(frozen=True)
class GradientHalves:
    """A gradient `function` of `module` in stage optimizable, the first `parameters` of which are those of the primal.

    Of what it returns, the first `gradients` are derivatives and the others the primal's results.
    """

    module: Module
    function: Function
    parameters: int
    gradients: int
    ruled: Module | None = None
    """The functions before they were differentiated, if some have rules: with these they are linked, to be
    differentiated again by them."""

    @property
    def residuals(self) -> list[HalfResidual]:
        """What is between the halves: arguments, results, and what is saved besides, in order."""
        return [described for _, described in self._residuals()]

    def emit_forward(
        self, b: Builder, arguments: Sequence[Value]
    ) -> tuple[list[Value], list[Value]]:
        """The results for these arguments, and the residuals."""
        values = dict(zip(self.function.parameters, arguments, strict=False))
        forward, _ = self._split()
        clone_instructions(b.block, forward, values)
        results = [values[x] for x in self._returned[self.gradients :]]
        return results, [values[x] for x, _ in self._residuals()]

    def emit_backward(
        self, b: Builder, residuals: Sequence[Value], seeds: Sequence[Value]
    ) -> list[Value]:
        """The derivatives."""
        values = dict(zip(self.function.parameters[self.parameters :], seeds, strict=True))
        kept = [x for x, _ in self._residuals()]
        values.update(zip(kept, residuals, strict=True))
        _, backward = self._split()
        clone_instructions(b.block, backward, values)
        return [values[x] for x in self._returned[: self.gradients]]

    def linked(self, module: Module, known: dict[tuple[int, str], str]) -> GradientHalves:
        """The same halves in `module`, with copies of what they call; `known` are the copies made before."""
        return _linked(module, self, known)

    @property
    def has_while(self) -> bool:
        """Whether a loop of the backward half decides when it ends, for all that is known by its seeds."""
        _, backward = self._split()
        inside = list(with_bodies(backward))
        called = [i.op.called for i in inside if i.op.called is not None]
        bodies = [self.module.functions[name].body for name in reachable(self.module, called)]
        inside += [i for body in bodies if body is not None for i in walk(body)]
        return not all(i.op.ends for i in inside)

    @property
    def _returned(self) -> Sequence[Value]:
        return self.function.entry.terminator.operands

    def _split(self) -> tuple[list[Instruction], list[Instruction]]:
        """The instructions that results come from, and the others that derivatives come from."""
        instructions = self.function.entry.instructions[:-1]
        forward, _ = backward_slice(instructions, self._returned[self.gradients :])
        backward, _ = backward_slice(instructions, self._returned[: self.gradients])
        apart = {i for i in forward if not i.op.is_constant}
        return forward, [i for i in backward if i not in apart]

    def _residuals(self) -> Iterator[tuple[Value, HalfResidual]]:
        _, backward = self._split()
        used = {x for i in with_bodies(backward) for x in i.operands}
        used.update(self._returned[: self.gradients])
        inside = {x for i in backward for x in i.results}
        arguments = self.function.parameters[: self.parameters]
        results = self._returned[self.gradients :]
        for number, x in enumerate(arguments):
            if x in used:
                yield x, HalfResidual("argument", number, x.type)
        made = [x for i in self._split()[0] for x in i.results if x in used and x not in inside]
        number = 0
        for x in made:
            origin = self._origin(x)
            op = origin.op.name if origin else None
            place = origin.location.resolve() if origin and origin.location else None
            if x in results:
                yield x, HalfResidual("result", results.index(x), x.type, op, place)
            else:
                yield x, HalfResidual("saved", number, x.type, op, place)
                number += 1

    def _origin(self, value: Value) -> Instruction | None:
        """The instruction that computes `value`, in a function that is called or in the body of a loop."""
        while (producer := value.producer) is not None:
            callee = producer.op.called and self.module.functions.get(producer.op.called)
            if callee and callee.body is not None:
                value = callee.entry.terminator.operands[value.index]
            elif producer.op.is_structured:
                value = _yielded(producer, value)
            else:
                return producer
            if value.producer is None:
                return producer
        return None


def _yielded(producer: Instruction, result: Value) -> Value:
    """What the last body gives as this result."""
    flow = next(f for f in flows_of(producer) if f.result == result.index)
    return yields_of_bodies(producer, flow)[-1]


def _linked(
    module: Module, halves: GradientHalves, known: dict[tuple[int, str], str]
) -> GradientHalves:
    source, name = halves.module, halves.function.name
    if (id(source), name) not in known:
        needed, ruled = _needed(halves)
        names = _copied(module, halves.ruled, ruled, {}, known) if halves.ruled else {}
        _copied(module, source, needed, names, known)
        for nominal in source.enums.values():
            module.add_structs(nominal)
    return replace(halves, module=module, function=module.functions[known[id(source), name]])


def _needed(halves: GradientHalves) -> tuple[list[str], list[str]]:
    """The functions that the halves need: those of their module, and those that come with their rules."""
    source = halves.module
    rules = halves.ruled.functions if halves.ruled else {}
    found: dict[str, None] = {}
    ruled: dict[str, None] = {}
    pending = [halves.function.name]
    while pending:
        name = pending.pop()
        if name in rules and rules[name].rules:
            ruled[name] = None
        elif name in source.functions and name not in found:
            found[name] = None
            pending += symbols(source.functions[name])
    if halves.ruled:
        ruled = dict.fromkeys(sorted(reachable(halves.ruled, ruled)))
    return list(found), list(ruled)


def _copied(
    module: Module,
    source: Module,
    needed: Sequence[str],
    names: Mapping[str, str],
    known: dict[tuple[int, str], str],
) -> dict[str, str]:
    """Copy functions of `source`, which call others by new `names`: all new names."""
    fresh = [old for old in needed if (id(source), old) not in known]
    for old in fresh:
        known[id(source), old] = module.fresh_name(old)
        module.add(clone_function(source.functions[old], known[id(source), old]))
    names = {**names, **{old: known[id(source), old] for old in needed}}
    for old in fresh:
        _rename(module.functions[names[old]], names)
    return names


def _rename(function: Function, names: Mapping[str, str]) -> None:
    """Have a copy speak of other functions by their new `names`."""
    rules, declaration = function.rules, function.declaration
    if rules:
        jvp, vjp, saving = (name and names[name] for name in (rules.jvp, rules.vjp, rules.saving))
        function.rules = replace(rules, jvp=jvp, vjp=vjp, saving=saving)
    if isinstance(declaration, GradientOf | TangentOf | BatchOf):
        function.declaration = replace(declaration, primal=names[declaration.primal])
    elif function.body is None:
        raise InternalError(f"@{function.name} has no body, so its halves cannot be used elsewhere")
    if function.body is None:
        return
    for instruction in walk(function.body):
        called, referred = instruction.op.called, instruction.op.referred
        if called in names and called is not None:
            instruction.op = replace(instruction.op, callee=names[called])  # type: ignore[call-arg]
        if referred in names and referred is not None:
            instruction.op = replace(instruction.op, symbol=names[referred])  # type: ignore[call-arg]
