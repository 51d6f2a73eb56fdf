"""What a policy saves of a forward half for a backward half that is a function of its own.

    all    what rules use, as it is
    none   nothing: all is computed again from the arguments
    auto   a minimum cut through what is saved, a byte at the price of two operations, and what is computed again
    bytes  the same at the lowest price of a byte at which it saves no more; what room is left holds results beside it

At each price the cut is the best: no choice of as many bytes computes less again.  A call and a loop are computed
again as a whole; what a callee saves is chosen by the same policy, and under a budget all that is used.  What has an
effect is not computed again, so what it gives is always saved.  A tape has no size, and fits into no budget.

Source: Lagrangian relaxation of the choice under a budget, Everett 1963.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

from ..analysis.cost import Costs
from ..analysis.pointer_bases import leads_to_memory
from ..errors import DifferentiationError
from ..ir import Block, Effect, Instruction, Module, SavePolicy, Value
from ..ir.surgery import with_bodies
from ..lazy_dataclass import dataclass
from ..location import located
from ..types import TensorType, tensor_bytes
from .minimum_cut import CostAgain, ResidualChoice, choose_residuals, cost_of_cheap

PRICE = 2
"""Vector operations an element that a byte is worth: it is stored and loaded at some 10 GB/s, 0.2 ns, in which a core
does two of them.  So a sine of f64, 15, is computed again rather than saved, and a product of matrices is not."""

UNIT = 16
"""Parts of an operation in which prices are given, so that a budget may find one below it."""

UNKNOWN_TRIPS = 100
"""Iterations that a loop is taken to have whose trip count is not known: too many to be cheap."""


def choose_by_policy(
    module: Module,
    block: Block,
    needed: Sequence[Value],
    free: Set[Value],
    policy: SavePolicy,
    effectful: Set[str],
) -> ResidualChoice:
    """What of the forward half `block` to save for the use of `needed`; those in `free` are at hand.

    `effectful` are the functions that do more than compute a result.
    Raises: DifferentiationError when the budget is less than the least that has to be saved.
    """
    choice = _Choice(block, needed, _Again(module, effectful).cost)
    match policy:
        case "all":
            return choice.at(0, free)
        case "none":
            return choice.at(None, free)
        case "auto":
            return choice.at(PRICE * UNIT, free)
        case int(budget):
            return choice.within(budget, free)


@dataclass
class _Choice:
    block: Block
    needed: Sequence[Value]
    cost: CostAgain

    def at(self, price: int | None, free: Set[Value]) -> ResidualChoice:
        """The cut when a byte costs `price`, in parts of an operation; None is any price."""

        def cost(instruction: Instruction) -> int | None:
            known = self.cost(instruction)
            return known if known is None or (price is not None and known) else 0

        if price == 0:
            return choose_residuals(self.block, self.needed, free, _saved_always)
        return choose_residuals(self.block, self.needed, free, cost, price or 1)

    def within(self, budget: int, free: Set[Value]) -> ResidualChoice:
        everything, least = self.at(0, free), self.at(None, free)
        if bytes_of(everything.saved) <= budget:
            return everything
        if bytes_of(least.saved) > budget:
            raise _too_few(budget, least.saved)
        over, under, price = 0, 1, 1
        best, dearer = self.at(1, free), everything
        while bytes_of(best.saved) > budget and price < _ANY_PRICE:
            over, dearer, price = price, best, 2 * price
            best = self.at(price, free)
        if bytes_of(best.saved) > budget:
            return self.filled(least, dearer, None, free, budget)
        under = price
        while under - over > 1:
            price = (over + under) // 2
            found = self.at(price, free)
            if bytes_of(found.saved) > budget:
                over, dearer = price, found
            else:
                under, best = price, found
        return self.filled(best, dearer, under, free, budget)

    def filled(
        self,
        best: ResidualChoice,
        dearer: ResidualChoice,
        price: int | None,
        free: Set[Value],
        budget: int,
    ) -> ResidualChoice:
        """`best`, and of what `dearer` saves besides as much as there is room for."""
        room = budget - bytes_of(best.saved)
        chosen: set[Value] = set()
        for value in dearer.saved:
            if value not in best.saved and bytes_of([value]) <= room:
                chosen.add(value)
                room -= bytes_of([value])
        found = self.at(price, free | chosen)
        order = [*self.block.arguments, *(x for i in self.block.instructions for x in i.results)]
        used = {x for i in found.computed for one in with_bodies([i]) for x in one.operands}
        used.update(self.needed)
        wanted = {*found.saved, *(x for x in chosen if x in used)}
        if bytes_of(wanted) > budget:
            return best
        return ResidualChoice([x for x in order if x in wanted], found.computed)


def _too_few(budget: int, least: Sequence[Value]) -> Exception:
    """The error of a budget that is less than the `least` that has to be saved."""
    tapes = [x for x in least if not isinstance(x.type, TensorType)]
    if not tapes:
        return DifferentiationError(
            f"save={budget} bytes are too few: at least {bytes_of(least)} have to be saved"
        )
    error = DifferentiationError(
        f"save={budget} bytes are too few: what has an effect is not run again, and what a loop or recursion saves "
        "whose length is not known before has no size"
    )
    producer = tapes[0].producer
    return located(error, producer.location if producer else None)


_ANY_PRICE = 1 << 40
"""Beyond this, no computation that ends in a day costs more than a byte."""


@dataclass
class _Again:
    """What it costs to compute instructions again, in parts of an operation."""

    module: Module
    effectful: Set[str]

    def __post_init__(self) -> None:
        self.costs = Costs(self.module)
        self.known: dict[Instruction, int | None] = {}

    def cost(self, instruction: Instruction) -> int | None:
        if instruction not in self.known:
            self.known[instruction] = self._cost(instruction)
        return self.known[instruction]

    def _cost(self, instruction: Instruction) -> int | None:
        for one in with_bodies([instruction]):
            if one.op.effect & ~Effect.CALL or one.op.called in self.effectful:
                return None
            if any(leads_to_memory(x.type) for x in (*one.operands, *one.results)):
                return None  # memory may have changed
        terms = self.costs.of_instruction(instruction).flops.terms
        total = sum(term * int(UNKNOWN_TRIPS**k) for k, term in enumerate(terms))
        return UNIT * total


def cost_in_bodies(policy: SavePolicy | None) -> CostAgain:
    """What computing an instruction of a body again costs beside saving it in each iteration."""
    match policy:
        case "all":
            return _saved_always
        case "none":
            return _computed_always
        case _:
            return cost_of_cheap


def _computed_always(instruction: Instruction) -> int | None:
    """Nothing, for whatever has no effect in itself and calls nothing."""
    has_effect = any(one.op.effect is not Effect.NONE for one in with_bodies([instruction]))
    return None if has_effect else 0


def _saved_always(instruction: Instruction) -> int | None:
    return 0 if instruction.op.is_constant else None


def bytes_of(values: Sequence[Value] | Set[Value]) -> int:
    """The bytes of all these tensors; a tape has no size, and counts as more than any budget."""
    return sum(
        tensor_bytes(x.type) if isinstance(x.type, TensorType) else _ANY_PRICE for x in values
    )
