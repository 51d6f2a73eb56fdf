"""Whether two accesses of a kernel may touch the same element: what makes rewrites legal.

Indices are affine and bounds constant, so per axis the difference of two indices is a constant plus terms of known
range; it can be 0 only if 0 lies between its smallest and largest value, and the greatest common divisor of the
coefficients divides the constant.  Where that says "maybe", the answer is that they do.

Buffers of a kernel do not overlap, except where a result is made in the place of an operand: such pairs are given as
`aliases`.

Source: Banerjee 1988, Dependence Analysis for Supercomputing; Allen & Kennedy 2001, Optimizing Compilers, §3.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import NamedTuple, TypeAlias

from ..ir.effect import Effect
from ..ir.instruction import Instruction, Value
from ..lazy_dataclass import dataclass
from .access_ops import buffer_of
from .errors import IllegalRewrite
from .guarded_ops import ReshapeBuffer
from .indices import BufferAccess, IndexSum, accesses_of
from .loops import body_of, counted_op, loop_op

BufferAliases: TypeAlias = Sequence[tuple[Value, Value]]
"""Buffers of an operand and of the result that may be made in its place."""


class Range(NamedTuple):
    """The numbers `lower`, `lower + step`, …, so many."""

    lower: int
    step: int
    extent: int


Distances: TypeAlias = "tuple[int, int]"
"""From how many to how many iterations later an access is than another."""


@dataclass
class LoopAccesses:
    """All accesses in some instructions, and what is known of the values made there."""

    accesses: list[BufferAccess] = field(default_factory=list[BufferAccess])
    ranges: dict[Value, Range] = field(default_factory=dict[Value, Range])
    """Of the indices of loops."""
    carried: set[Value] = field(default_factory=set[Value])
    own: set[Value] = field(default_factory=set[Value])
    """The buffers that are allocated there."""
    stops: bool = False
    """Whether a check may stop the program."""

    def renamed(self, old: Value, new: Value) -> LoopAccesses:
        """The same with another value in place of an index."""
        by = IndexSum(0, {new: 1})
        changed = [
            replace(a, indices=tuple([index.substitute(old, by) for index in a.indices]))
            for a in self.accesses
        ]
        return replace(self, accesses=changed)


def accesses_in(instructions: Iterable[Instruction]) -> LoopAccesses:
    """Of instructions and of the loops among them that run; each access once, however often it is written."""
    found = LoopAccesses()
    seen: set[object] = set()
    pending: list[Iterator[Instruction]] = [iter(instructions)]
    while pending:
        instruction = next(pending[-1], None)
        if instruction is None:
            pending.pop()
        elif instruction.regions:
            op, body = counted_op(instruction), body_of(instruction)
            if op.count:
                index, *carried = body.arguments
                found.ranges[index] = range_of(instruction)
                found.carried.update(carried)
                pending.append(iter(body.instructions))
        elif instruction.op.effect is Effect.ALLOCATE:
            found.own.update(instruction.results)
        elif Effect.TRAP in instruction.op.effect:
            found.stops = True
        else:
            for access in accesses_of(instruction):
                key = (access.buffer, access.is_store, key_of(access))
                if key not in seen:
                    seen.add(key)
                    found.accesses.append(access)
    return found


def key_of(access: BufferAccess) -> object:
    """What is equal for accesses of the same elements of a buffer, where their coordinates are the same."""
    indices = tuple([(i.constant, frozenset(i.terms.items())) for i in access.indices])
    return indices, access.lanes, access.steps, access.touched


def root_of(buffer: Value, aliases: BufferAliases) -> Value:
    """One of the buffers that lie where this one may lie: the same for all of them.

    A result may be made in the place of one operand or of another, and in that of an operand one result or another:
    each of them may lie where any other does.
    """
    while buffer.producer is not None and isinstance(buffer.op, ReshapeBuffer):
        (buffer,) = buffer.producer.operands
    if not any(buffer in pair for pair in aliases):
        return buffer
    joined, count = {buffer}, 0
    while len(joined) > count:
        count = len(joined)
        for pair in aliases:
            if not joined.isdisjoint(pair):
                joined.update(pair)
    return next(operand for operand, _ in aliases if operand in joined)


def dependence(loop: Instruction, aliases: BufferAliases = ()) -> str | None:
    """Why the iterations of a loop are not independent: which accesses may meet.  None if they are."""
    op, body = loop_op(loop), body_of(loop)
    found = accesses_in(body.instructions)
    index = body.arguments[0]
    whole = Range(op.lower, op.step, op.count)
    for one, other in _pairs(found.accesses, found.accesses, found.own, aliases):
        for distances in ((1, op.count - 1), (1 - op.count, -1)):
            if may_meet(one, other, found, found, {index: (whole, distances)}):
                return f"{_described(one)} and {_described(other)}, in different iterations"
    return None


def require_independent(loop: Instruction, aliases: BufferAliases = ()) -> None:
    """Raises: IllegalRewrite when iterations touch what others write."""
    if reason := dependence(loop, aliases):
        raise IllegalRewrite(f"the iterations are not independent: {reason}")


def conflict_of_order(
    first: LoopAccesses,
    second: LoopAccesses,
    loops: Mapping[Value, tuple[Range, Distances]],
    aliases: BufferAliases,
) -> str | None:
    """Which accesses of `first` and of `second` may meet at these distances of these loops, one of them a store.

    Of two checks that fail, the program tells the first one.
    """
    if first.stops and second.stops:
        return "two checks"
    own = first.own | second.own
    for one, other in _pairs(first.accesses, second.accesses, own, aliases):
        if may_meet(one, other, first, second, loops):
            return f"{_described(one)} and {_described(other)}"
    return None


def may_meet(
    one: BufferAccess,
    other: BufferAccess,
    of_one: LoopAccesses,
    of_other: LoopAccesses,
    loops: Mapping[Value, tuple[Range, Distances]],
) -> bool:
    """Whether they may touch one element, `other` so many iterations of `loops` later than `one`.

    Indices of loops inside, which `of_one` and `of_other` know, are any; all other values are the same for both.
    """
    if any(low > high for _, (low, high) in loops.values()):
        return False
    if _differ(one, other):
        return True
    for axis, (x, y) in enumerate(zip(one.indices, other.indices, strict=True)):
        constant = x.constant - y.constant
        terms: list[_Term] = []
        if one.steps[axis]:
            terms.append((one.steps[axis], 0, one.touched - 1))
        if other.steps[axis]:
            terms.append((-other.steps[axis], 0, other.touched - 1))
        for value in {**x.terms, **y.terms}:
            a, b = x.coefficient(value), y.coefficient(value)
            if value in loops:
                whole, (low, high) = loops[value]
                if a == b:
                    terms.append((-b * whole.step, low, high))
                else:  # the distance is left out: iterations may be any two
                    constant += _own_terms(a, whole, terms) + _own_terms(-b, whole, terms)
            else:
                constant += _terms_of(value, a, of_one, terms, other_way=-b, of_other=of_other)
        if not _can_be_zero(constant, terms):
            return False
    return True


def may_touch_same(one: BufferAccess, other: BufferAccess) -> bool:
    """Whether they may touch one element of a buffer, where their coordinates are the same values."""
    if _differ(one, other):
        return True
    for axis, (x, y) in enumerate(zip(one.indices, other.indices, strict=True)):
        step, step_of_other = one.steps[axis], other.steps[axis]
        if x.terms == y.terms and not step and not step_of_other:
            if x.constant != y.constant:
                return False
            continue
        terms: list[_Term] = [
            (step, 0, one.touched - 1),
            (-step_of_other, 0, other.touched - 1),
        ]
        terms += [(c, None, None) for c in x.plus(y, -1).terms.values()]
        if not _can_be_zero(x.constant - y.constant, terms):
            return False
    return True


def _differ(one: BufferAccess, other: BufferAccess) -> bool:
    """Whether indices say nothing: of buffers of different shapes in one place, or of any element."""
    is_reshaped = one.buffer is not other.buffer and one.buffer.type != other.buffer.type
    return is_reshaped or len(one.indices) != len(other.indices)


_Term: TypeAlias = "tuple[int, int | None, int | None]"
"""A coefficient, and between which numbers lies what it is multiplied with, if that is known."""


def _terms_of(
    value: Value,
    times: int,
    of_one: LoopAccesses,
    terms: list[_Term],
    *,
    other_way: int,
    of_other: LoopAccesses,
) -> int:
    """Append the terms of a value, of either access; the constant part."""
    constant, same = 0, 0
    for coefficient, known in ((times, of_one), (other_way, of_other)):
        if not coefficient:
            continue
        whole = known.ranges.get(value)
        if whole is not None:
            constant += _own_terms(coefficient, whole, terms)
        elif value in known.carried or value.producer is not None or value.tensor.rank:
            terms.append((coefficient, None, None))
        else:
            same += coefficient
    if same:
        terms.append((same, None, None))
    return constant


def _own_terms(coefficient: int, whole: Range, terms: list[_Term]) -> int:
    """Append the term of an index that may be any of its range; the constant part."""
    if coefficient:
        terms.append((coefficient * whole.step, 0, whole.extent - 1))
    return coefficient * whole.lower


def _can_be_zero(constant: int, terms: Sequence[_Term]) -> bool:
    """Whether the constant and the terms may add to 0."""
    low = high = constant
    divisor, is_bounded = 0, True
    for coefficient, least, most in terms:
        if not coefficient:
            continue
        divisor = math.gcd(divisor, coefficient)
        if least is None or most is None:
            is_bounded = False
        elif coefficient > 0:
            low, high = low + coefficient * least, high + coefficient * most
        else:
            low, high = low + coefficient * most, high + coefficient * least
    if is_bounded and not low <= 0 <= high:
        return False
    return constant % divisor == 0 if divisor else constant == 0


def _pairs(
    first: Sequence[BufferAccess],
    second: Sequence[BufferAccess],
    own: set[Value],
    aliases: BufferAliases,
) -> Iterator[tuple[BufferAccess, BufferAccess]]:
    """Accesses of one place, one of them at least a store, of buffers that are there for all iterations."""
    by_buffer: dict[Value, list[BufferAccess]] = {}
    for access in second:
        if access.buffer not in own:
            by_buffer.setdefault(root_of(access.buffer, aliases), []).append(access)
    for one in first:
        for other in by_buffer.get(root_of(one.buffer, aliases), ()):
            if one.is_store or other.is_store:
                yield one, other


def _described(access: BufferAccess) -> str:
    """An access, for a message."""
    kind = "a store to" if access.is_store else "a load of"
    buffer = access.buffer
    return f"{kind} {f'%{buffer.name}' if buffer.name else buffer_of('kernel', buffer.type)}"


def shifted(whole: Range, direction: int) -> tuple[Range, Distances]:
    """All distances of a loop that are positive (1), negative (−1), or 0."""
    most = whole.extent - 1
    return whole, ((1, most) if direction > 0 else (-most, -1) if direction < 0 else (0, 0))


def range_of(loop: Instruction) -> Range:
    """The indices of a loop, or what those that it runs for are some of."""
    op = counted_op(loop)
    return Range(op.lower, op.indices.step, op.count)
