"""Schedules of what loops save for reverse mode, as attributes of the functions that the loops stand in.

    !everySqrt      √n states, each √n iterations apart; those between are computed again, √n at a time
    !binomial_3     three states, wherever they save most: Griewank's schedule

Source: Griewank & Walther 2008, Evaluating Derivatives, §12 (checkpointing schedules).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..lazy_dataclass import dataclass

MOST_SLOTS = 64
"""Of a binomial schedule, which is as many loops in one another: ten iterations each more would reverse 10¹² of them
with a tenth as many, and code grows with each."""

_BINOMIAL = re.compile(r"binomial_([1-9]\d?)")


@dataclass(frozen=True)
class LoopSchedule:
    """So many `slots` for states by a binomial schedule; without, every √n-th state."""

    slots: int | None = None

    @property
    def attribute(self) -> str:
        """As it stands before a function."""
        return "everySqrt" if self.slots is None else f"binomial_{self.slots}"


def schedule_of(attributes: Iterable[str]) -> LoopSchedule | None:
    """The schedule of the loops of a function with these attributes."""
    for attribute in attributes:
        if attribute == "everySqrt":
            return LoopSchedule()
        found = _BINOMIAL.fullmatch(attribute)
        if found is not None and int(found[1]) <= MOST_SLOTS:
            return LoopSchedule(int(found[1]))
    return None
