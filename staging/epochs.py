"""The epoch of traces: it ends when something that a staged function has read while it was traced is redefined."""

from __future__ import annotations

from typing import Final

from ..core.lazy_dataclass import dataclass


@dataclass(eq=False, slots=True)
class _Epoch:
    number: int = 0


EPOCH: Final = _Epoch()


def this_epoch() -> int:
    """The number of the present epoch."""
    return EPOCH.number
