"""Terms of a sum that are products of the same factors become a multiple of one of them.

    u ⊗ (x · x) + (u ⊗ x) ⊗ x + (u ⊗ x) ⊗ x     3 ⊗ (u ⊗ (x · x))

The derivative of a power that is written as x · x · x has a term for each factor, which multiplies by the others, in
one order after the other.  The term that stays is the one which computes least anew, as x · x is there already.

Being one of them, it overflows only where the sum did, and where it underflows, the sum had lost as many digits in one
of its terms; where another term overflowed alone, the sum is finite now.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from ..ir import Block, Builder, Instruction, Value
from ..ops.arithmetic import Add, Multiply, Square, StrongMultiply
from ..ops.literal import number_of, splat
from ..ops.nest import Nest
from ..types import F32, F64

_PRODUCTS: Final = (Multiply, Square, StrongMultiply)

_MOST_FACTORS: Final = 16
"""Factors that a product is taken apart into: with more, it is a factor itself."""

_Factors: TypeAlias = "tuple[str, ...]"
"""The factors of a product in an order of their own: values by their identity, and numbers, of which −0 is not 0."""


def collect_like_terms(nest: Instruction[Nest]) -> None:
    """Rewrite the sums in the body of a nest, of f32 and f64."""
    body = nest.regions[0].entry
    for sum in _sums(body):
        groups: dict[_Factors, list[Value]] = {}
        for term in sum.terms:
            groups.setdefault(_factors(term), []).append(term)
        if len(groups) < len(sum.terms):
            _write(body, sum, list(groups.values()))


@dataclass(frozen=True)
class _Sum:
    """An addition whose operands are others that nothing else uses, and so on, and what is added in the end."""

    root: Instruction
    additions: frozenset[Instruction]
    terms: Sequence[Value]


def _sums(body: Block) -> Iterator[_Sum]:
    """Those of a body that are no part of another; while they are taken, sums that were there are rewritten."""
    for root in list(body.instructions):
        if not _is_addition(root) or _is_part(root):
            continue
        additions, terms, waiting = {root}, list[Value](), list(reversed(root.operands))
        while waiting:
            value = waiting.pop()
            made = value.producer
            if made is not None and _is_addition(made) and value.has_one_use:
                additions.add(made)
                waiting += reversed(made.operands)
            else:
                terms.append(value)
        if sum(isinstance(term.op, _PRODUCTS) for term in terms) > 1:
            yield _Sum(root, frozenset(additions), terms)


def _is_addition(instruction: Instruction) -> bool:
    return isinstance(instruction.op, Add) and instruction.result.tensor.dtype in (F32, F64)


def _is_part(addition: Instruction) -> bool:
    return addition.result.has_one_use and _is_addition(next(iter(addition.result.uses)))


def _factors(product: Value) -> _Factors:
    """What it is the product of, itself if it is none."""
    found, waiting = list[Value](), [product]
    while waiting:
        value = waiting.pop()
        if isinstance(value.op, _PRODUCTS) and value.producer is not None:
            u, v = value.producer.operands[0], value.producer.operands[-1]
            waiting += (u, v)
        else:
            found.append(value)
        if len(found) + len(waiting) > _MOST_FACTORS:
            found = [product]
            break
    return tuple(sorted(_named(value) for value in found))


def _named(factor: Value) -> str:
    number = number_of(factor)
    return str(id(factor)) if number is None else repr(float(number))


def _write(body: Block, sum: _Sum, groups: Sequence[Sequence[Value]]) -> None:
    """The sum of one term of each group, in the order in which they first come."""
    old = body.instructions
    position = {instruction: n for n, instruction in enumerate(old)}
    chosen = [_cheapest(group, sum.additions, position) for group in groups]
    place = position[sum.root]
    body.instructions = old[:place]
    b = Builder(body)
    b.location = sum.root.location
    terms = [_multiple(b, *both) for both in zip(chosen, map(len, groups), strict=True)]
    total = terms[0]
    for term in terms[1:]:
        total = b.emit(Add(), total, term)
    sum.root.result.replace_with(total)
    body.instructions += old[place:]
    unused = set(sum.additions).union(*(_products_in(term) for group in groups for term in group))
    for instruction in sorted(unused, key=position.__getitem__, reverse=True):
        if not instruction.result.uses:
            instruction.erase()
            body.instructions.remove(instruction)


def _cheapest(
    group: Sequence[Value], additions: frozenset[Instruction], position: Mapping[Instruction, int]
) -> Value:
    """The term with the fewest products that nothing but terms of this group uses; the first of several."""
    if len(group) == 1:
        return group[0]
    products = {term: _products_in(term) for term in group}
    every: set[Instruction] = set()
    every.update(*products.values())
    own: set[Instruction] = set()
    for product in sorted(every, key=position.__getitem__, reverse=True):
        users = set(product.result.uses)
        if users <= own or (product.result in products and users <= own | additions):
            own.add(product)
    return min(group, key=lambda term: len(products[term] & own))


def _products_in(term: Value) -> set[Instruction]:
    """The products that a term is made of, itself if it is one."""
    found: set[Instruction] = set()
    waiting = [term]
    while waiting:
        value = waiting.pop()
        made = value.producer
        if made is not None and isinstance(made.op, _PRODUCTS) and made not in found:
            found.add(made)
            waiting += made.operands
            if len(found) > _MOST_FACTORS:
                break
    return found


def _multiple(b: Builder, term: Value, count: int) -> Value:
    """The term so many times; as strong a product as the term, so that `multiply_add` may take it."""
    if count == 1:
        return term
    strong = isinstance(term.op, StrongMultiply)
    number = b.emit(splat(term.tensor, float(count)))
    return b.emit(StrongMultiply() if strong else Multiply(), term, number)
