"""Rules of batched functions: the rules of the function, for all elements.

All results of a function with rules differ if any parameter does, as tangents of them may.  The cotangent of a
parameter that is the same for all elements is the sum of what it is for each.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..analysis.batches import batched_type
from ..ir import BatchOf, Block, Builder, CustomRules, Function, Module, Region, Value
from ..ops.aggregate import Apply
from ..ops.combinator import Combinator
from ..ops.reduction import Reduce
from ..ops.terminators import Return
from ..types import FunctionType, one_or_tuple
from .differing import BatchKey


def batched_rules(module: Module, primal: Function, key: BatchKey) -> CustomRules:
    """The rules of the batched function of `primal` for `key`; their bodies come when they are used."""
    rules = primal.rules
    along = tuple(0 if is_batched else None for is_batched in key.batched)
    results = (0,) * len(primal.type.results)
    jvp = vjp = saving = None
    if rules.jvp is not None:
        jvp = _batch(module, rules.jvp, (*along, *along), key).name
    if rules.vjp is not None:
        given = along
        if rules.saving is not None:
            made = _batch(module, rules.saving, along, key)
            saving = made.name
            given = (0,) * (len(made.type.results) - len(results))
        back = _batch(module, rules.vjp, (*given, *results), key)
        vjp = _summed(module, back, key.batched).name
    return CustomRules(jvp, vjp, saving, rules.location)


def _batch(module: Module, name: str, along: tuple[int | None, ...], key: BatchKey) -> Function:
    """The declaration of the batch of a rule, with the axis first in all that it returns."""
    rule = module.functions[name]
    declaration = BatchOf(name, along, (0,) * len(rule.type.results), key.axis, rule.location)
    type = batched_type(rule.type, declaration, key.extent)
    fresh = module.fresh_name(f"{name}_batch")
    return module.add(Function(fresh, type, declaration=declaration, location=rule.location))


def _summed(module: Module, back: Function, batched: Sequence[bool]) -> Function:
    """The way back, which adds up the cotangents of what is the same for all elements."""
    if all(batched):
        return back
    b = Builder(Block(name="entry"), back.location)
    found = b.emit_many(
        Apply(back.name, back.type), [b.argument(type) for type in back.type.parameters]
    )
    outputs: list[Value] = [
        ct if is_batched else b.emit(Reduce(Combinator.ADD, (0,)), ct)
        for ct, is_batched in zip(found, batched, strict=True)
    ]
    b.emit_many(Return(), outputs)
    type = FunctionType(back.type.parameters, one_or_tuple([x.type for x in outputs]))
    fresh = module.fresh_name(f"{back.name}_sum")
    return module.add(Function(fresh, type, Region([b.block]), location=back.location))
