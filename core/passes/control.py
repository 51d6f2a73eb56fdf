"""Laws of `if`, `while` and `for`: which body runs, and what their results are, where that is known.

Inner bodies are looked at before those around them, and everything again until nothing changes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ..ir import Block, Builder, Instruction, Region, Value
from ..ir.surgery import replace_uses, resolve, walk_blocks
from ..ops import For, If, Literal, Not, Structured, While, splat
from ..ops.control import carried_of
from ..types import TensorType
from .reshape import carried_count, keep_results, yields_of


def choose_bodies(region: Region) -> bool:
    """Put a body in the place of its instruction if it is known to run once; whether there was any.

    `if` with a known condition; `while` whose condition is false at once, and `for` without iterations,
    which leave what they carry as it was.
    """
    return _Laws(region, choosing=True).apply()


def simplify_control(region: Region) -> bool:
    """Take out of structured ops what does not depend on them; whether there was anything.

    A result that both branches of an `if` yield, or the condition itself; what a loop carries unchanged; an
    `if` that does nothing.
    """
    return _Laws(region, choosing=False).apply()


def to_the_end(
    region: Region, rewrite: Callable[[], bool], *laws: Callable[[Region], bool]
) -> bool:
    """Rewrite, then apply laws of structured ops, and so on while these find anything.

    Whether anything changed.
    """
    changed = rewrite()
    while _has_control(region) and any([law(region) for law in laws]):  # noqa: C419  # all of them
        changed = True
        rewrite()
    return changed


def _has_control(region: Region) -> bool:
    return any(isinstance(i.op, Structured) for b in region.blocks for i in b.instructions)


@dataclass(eq=False)
class _Laws:
    """One walk; values that are replaced are so at its end."""

    region: Region
    choosing: bool
    replaced: dict[Value, Value] = field(default_factory=dict[Value, Value])

    def apply(self) -> bool:
        changed = False
        for block in reversed(list(walk_blocks(self.region))):
            if any(isinstance(i.op, Structured) for i in block.instructions):
                changed = self._block(block) or changed
        replace_uses(self.region, self.replaced)
        return changed

    def now(self, value: Value) -> Value:
        """What stands for `value`."""
        return resolve(self.replaced, value)

    def _block(self, block: Block) -> bool:
        changed = False
        old, block.instructions = block.instructions, []
        for instruction in old:
            b = Builder(block, instruction.location)
            if not isinstance(instruction.op, Structured):
                block.instructions.append(instruction)
            elif self.choosing:
                chosen = self._chosen(b, instruction)
                changed = changed or chosen
                if not chosen:
                    block.instructions.append(instruction)
            else:
                changed = self._simplify(b, instruction) or changed
        return changed

    # which body runs

    def _chosen(self, b: Builder, instruction: Instruction) -> bool:
        operands = instruction.operands
        match instruction.op:
            case If():
                truth = self._number(operands[0])
                if truth is None:
                    return False
                self._splice(b, instruction.regions[0 if truth else 1], operands[1:], instruction)
            case While():
                test = instruction.regions[0]
                if self._number(yields_of(test)[0]) is not False:
                    return False
                # what is carried stays as it was, after the condition has been computed once
                self._splice(b, test, operands, None)
                self._replace(instruction.results, operands[: len(instruction.results)])
            case For(stacked=stacked):
                lower, upper = map(self._number, operands[:2])
                if lower is None or upper is None or lower < upper:
                    return False
                types = [type for type in stacked if isinstance(type, TensorType)]
                if any(type.shape[0] for type in types):
                    return False  # there should have been iterations: not for us to say
                empty = [b.emit(splat(type, 0)) for type in types]
                self._replace(instruction.results, [*operands[carried_of(instruction)], *empty])
            case _:
                return False
        return True

    def _number(self, value: Value) -> int | bool | None:
        op = self.now(value).op
        number: int | bool | None = op.splat_value() if isinstance(op, Literal) else None
        return number

    def _splice(
        self, b: Builder, body: Region, given: Sequence[Value], whole: Instruction | None
    ) -> None:
        """Append a body, which gives the results of `whole`."""
        self._replace(body.entry.arguments, given)
        b.block.instructions += body.entry.instructions[:-1]
        if whole is not None:
            self._replace(whole.results, yields_of(body))

    def _replace(self, old: Sequence[Value], new: Sequence[Value]) -> None:
        for one, other in zip(old, new, strict=True):
            value = self.now(other)
            if value.producer is not None and value.name is None:
                value.name = one.name
            self.replaced[one] = value

    # what does not depend on the instruction

    def _simplify(self, b: Builder, instruction: Instruction) -> bool:
        known = self._branches(b, instruction) if isinstance(instruction.op, If) else None
        if known is None:
            known = self._invariants(instruction)
        kept = [k for k in range(len(instruction.results)) if k not in known]
        self._replace([instruction.results[k] for k in known], list(known.values()))
        b.block.instructions.append(instruction)
        keep_results(instruction, kept)
        is_empty = all(len(region.entry.instructions) == 1 for region in instruction.regions)
        if isinstance(instruction.op, If) and not kept and is_empty:
            b.block.instructions.pop()
            return True
        return bool(known)

    def _branches(self, b: Builder, instruction: Instruction) -> dict[int, Value]:
        """The results of an `if` that are the same value, or literal, in both branches, or say which it is."""
        condition, *given = instruction.operands
        inside = [dict(zip(r.entry.arguments, given, strict=True)) for r in instruction.regions]
        yields = [[self.now(x) for x in yields_of(region)] for region in instruction.regions]
        known: dict[int, Value] = {}
        for k, pair in enumerate(zip(*yields, strict=True)):
            one, other = (now.get(x) or x for now, x in zip(inside, pair, strict=True))
            first, second = one.op, other.op
            if one is other:
                known[k] = self.now(one)
            elif first is not None and first.is_constant and first == second:
                known[k] = b.emit(first)
            elif isinstance(first, Literal) and isinstance(second, Literal):
                truths = first.splat_value(), second.splat_value()
                if first.type != condition.type or first.type != second.type:
                    continue
                # if c then true else false = c
                known[k] = condition if truths == (True, False) else b.emit(Not(), condition)
        return known

    def _invariants(self, loop: Instruction) -> dict[int, Value]:
        """What a loop carries and never changes; its bodies use what is outside instead."""
        first = carried_of(loop).start
        skipped = isinstance(loop.op, For)
        arguments = [region.entry.arguments[skipped:] for region in loop.regions]
        known: dict[int, Value] = {}
        for k in range(carried_count(loop)):
            value = self.now(yields_of(loop.regions[-1])[k])
            initial = self.now(loop.operands[first + k])
            if value is arguments[-1][k] or value is initial:
                known[k] = initial
                self._replace([inside[k] for inside in arguments], [initial] * len(arguments))
        return known
