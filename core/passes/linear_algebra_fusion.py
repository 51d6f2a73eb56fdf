"""Linear-algebra fusion: a sum of products is one product of concatenations.

    x·w + y·u  =  [x y] · [w]
                          [u]

1. A *sum* is a tree of additions whose inner results nobody else uses; its terms are what is added.
2. Terms that are matrix products of one shape, used only here, are candidates.
3. One product replaces them if it pays: concatenating reads and writes the factors once more, and adding
   reads and writes products.  What moves fewer elements is taken.

Source: Wei, Schwartz & Adve 2017, "DLVM", where the pass is named; the products of recurrent networks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import ClassVar

from ..ir import Block, Builder, Instruction, Value
from ..lazy_dataclass import dataclass
from ..ops import Add, Concatenate, Dot
from .reassociate import Reassociate, Reassociation


@dataclass(frozen=True)
class LinearAlgebraFusion(Reassociate):
    """Computes sums of matrix products as one product, where that moves less data.

    Without `fast_math` only sums of integers, since another order of additions rounds differently.

    Requires: nothing.
    Preserves: every bit of integers; of floats, with `fast_math`, the result up to rounding.
    Cost: linear.
    """

    name: ClassVar[str] = "linear-algebra-fusion"

    def regroupings(self, block: Block) -> Mapping[Instruction, Reassociation]:
        here = {result for i in block.instructions for result in i.results}
        inside: set[Instruction] = set()
        found: dict[Instruction, Reassociation] = {}
        for instruction in reversed(block.instructions):
            if not isinstance(instruction.op, Add) or instruction in inside:
                continue
            if not self.may_regroup(instruction.result):
                continue
            terms = _terms(instruction, here, inside)
            products = [x for x in terms if _is_product(x, instruction.result, here)]
            if len(products) > 1 and _pays(products):
                others = [x for x in terms if x not in products]
                found[instruction] = partial(_fused, products=products, others=others)
        return found


def _terms(
    root: Instruction,
    here: set[Value],
    inside: set[Instruction],
) -> list[Value]:
    """What is added up, left to right; the additions inside go into `inside`."""
    terms: list[Value] = []
    pending = [*reversed(root.operands)]
    while pending:
        value = pending.pop()
        producer = value.producer
        if (
            producer is not None
            and isinstance(producer.op, Add)
            and value in here
            and value.has_one_use
            and value.type == root.result.type
        ):
            inside.add(producer)
            pending.extend(reversed(producer.operands))
        else:
            terms.append(value)
    return terms


def _is_product(value: Value, total: Value, here: set[Value]) -> bool:
    """Whether a term is a product of matrices, or of equal batches of them, that only the sum uses."""
    producer = value.producer
    if producer is None or not isinstance(producer.op, Dot) or value not in here:
        return False
    u, v = (x.tensor for x in producer.operands)
    return (
        value.has_one_use
        and value.type == total.type
        and u.rank == v.rank >= 2
        and u.shape[:-2] == v.shape[:-2]
    )


def _pays(products: Sequence[Value]) -> bool:
    """Whether concatenating the factors moves fewer elements than adding the products."""
    # each factor is read and written; each sum reads two products and writes one
    factors = sum(x.tensor.size for p in products for x in _factors(p))
    return 2 * factors < 3 * (len(products) - 1) * products[0].tensor.size


def _factors(product: Value) -> tuple[Value, Value]:
    assert product.producer is not None
    u, v = product.producer.operands
    return u, v


def _fused(b: Builder, products: Sequence[Value], others: Sequence[Value]) -> Value:
    """The product of the concatenations, and the other terms added to it in their order."""
    rank = products[0].tensor.rank
    left = b.emit(Concatenate(rank - 1), *(_factors(p)[0] for p in products))
    right = b.emit(Concatenate(rank - 2), *(_factors(p)[1] for p in products))
    total = b.emit(Dot(), left, right)
    for term in others:
        total = b.emit(Add(), total, term)
    return total
