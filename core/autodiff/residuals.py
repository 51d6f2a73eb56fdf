"""Cuts a differentiated function in two: a forward half that saves, a backward half that uses.

1. The backward half is reduced to what its gradients need.
2. The forward values it still uses are the residuals, exactly: `sum(x + x)` has none, `x · x` has x.
3. Constants are made anew; arguments and results are at the caller's hand (`core.autodiff.pullback`).
4. What remains is saved: the forward function returns it after the result.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, field

from ..ir import Block, Builder, Function, Instruction, Module, Region, Value
from ..ops.aggregate import Aggregate
from ..ops.terminators import Return
from ..types import FunctionType, TupleType
from .copy import Origin, append_copy
from .leaves import mask_of, members
from .linearize import Linearized
from .live import live
from .pullback import Pullback, Residual, Signature, Source


@dataclass
class Cutter:
    """Adds forward and backward functions to `module`; equal forward functions are one."""

    module: Module
    _forwards: dict[tuple[str, tuple[Origin, ...]], Function] = field(
        default_factory=dict[tuple[str, "tuple[Origin, ...]"], Function]
    )

    def cut(self, signature: Signature, work: Linearized) -> Pullback:
        """The two functions for `signature`, of which `work` is the sweep.

        The backward half's block has the seeds as its arguments, for the leaves of `signature.seeded`.
        """
        leaves = work.copy.arguments
        found = {k: ct for k in members(signature.wanted) if (ct := work.adjoints[leaves[k]])}
        if not found:
            return Pullback()
        outputs = [ct.value for ct in found.values()]
        instructions, used = live(work.backward.block.instructions, outputs)
        seeds = {
            position: seed
            for position, seed in zip(
                members(signature.seeded), work.backward.block.arguments, strict=True
            )
            if seed in used
        }
        free = _defined_before(work, used - set(seeds.values()))
        constants = [value for value in free if _is_constant(value)]
        residuals = [value for value in free if not _is_constant(value)]
        places, saved = _places(work, residuals)
        backward = self._backward(
            signature.name, instructions, constants, [*residuals, *seeds.values()], outputs
        )
        forward = self._forward(signature.name, work, saved, used) if saved else None
        strong = mask_of([k for k, ct in found.items() if ct.strong])
        return Pullback(forward, backward, tuple(places), tuple(seeds), tuple(found), strong)

    def _backward(
        self,
        name: str,
        instructions: Sequence[Instruction],
        constants: Sequence[Value],
        parameters: Sequence[Value],
        outputs: Sequence[Value],
    ) -> Function:
        b = Builder(Block(name="entry"))
        new = {value: b.argument(value.type, value.name) for value in parameters}
        for value in constants:
            assert value.producer is not None
            b.location = value.producer.location
            new[value] = append_copy(b, value.producer, ())[value.index]
        for instruction in instructions:
            instruction.operands = tuple(
                new.get(operand, operand) for operand in instruction.operands
            )
        b.block.instructions.extend(instructions)
        b.location = None
        return self._finish(f"{name}_bwd", name, b, [new.get(output, output) for output in outputs])

    def _forward(
        self, name: str, work: Linearized, saved: Sequence[Value], used: Set[Value]
    ) -> Function:
        origins = tuple(work.copy.origins[value] for value in saved)
        known = self._forwards.get((name, origins))
        if known is not None:
            return known
        assert work.copy.returned is not None
        outputs = [work.copy.returned, *saved]
        instructions, _ = live(work.forward(used), outputs)
        b = Builder(Block(work.copy.builder.block.arguments, instructions, "entry"))
        forward = self._finish(f"{name}_fwd", name, b, outputs)
        self._forwards[name, origins] = forward
        return forward

    def _finish(self, name: str, primal: str, b: Builder, outputs: Sequence[Value]) -> Function:
        if len(outputs) > 1:
            together = TupleType(tuple(output.type for output in outputs))
            outputs = [b.emit(Aggregate(together), *outputs)]
        b.emit_many(Return(), outputs)
        result = outputs[0].type
        parameters = tuple(argument.type for argument in b.block.arguments)
        return self.module.add(
            Function(
                self.module.fresh_name(name),
                FunctionType(parameters, result),
                Region([b.block]),
                attributes=self.module.functions[primal].attributes,
            )
        )


def _defined_before(work: Linearized, used: Set[Value]) -> list[Value]:
    """The values of the forward half among `used`, in order of definition."""
    block = work.copy.builder.block
    found = [argument for argument in block.arguments if argument in used]
    for instruction in block.instructions:
        found.extend(result for result in instruction.results if result in used)
        if instruction in work.calls:
            found.extend(value for value in work.calls[instruction].saved if value in used)
    return found


def _is_constant(value: Value) -> bool:
    """Whether `value` depends on nothing, so that making it anew costs no more than saving it."""
    return value.producer is not None and not value.producer.operands


def _places(work: Linearized, residuals: Sequence[Value]) -> tuple[list[Residual], list[Value]]:
    """Where a caller finds each residual, and those that have to be saved for it."""
    known: dict[Value, Residual] = {}
    sources = ((Source.RESULT, work.copy.results), (Source.ARGUMENT, work.copy.arguments))
    for source, leaves in sources:
        known.update((leaf, Residual(source, position)) for position, leaf in enumerate(leaves))
    saved: list[Value] = []
    for value in residuals:
        if value not in known:
            known[value] = Residual(Source.SAVED, len(saved))
            saved.append(value)
    return [known[value] for value in residuals], saved
