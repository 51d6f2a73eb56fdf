"""The header of the arena: eight words that a running program shares with its caller.

| offset | word             | content                                                   | written by         |
|--------|------------------|-----------------------------------------------------------|--------------------|
| 0, 8   | `DETAILS`        | two operands of the failed check, for its message         | `checks`           |
| 16–32  | `BUMP_ALLOCATOR` | next free address, end of the current chunk, latest chunk | `bump_allocator`   |
| 40     | `FUEL`           | about how many nanoseconds may pass until the next poll   | `polls`            |
| 48     | `OWNER`          | 0: arena unused; 1: a call with the GIL; else the thread  | `polls`, the entry |
|        |                  | state of a call that released the GIL                     |                    |
| 56     | `SIGNALS`        | the clock, in nanoseconds, when signals were last checked | `polls`            |
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ...core.schedule.arena import ALIGNMENT

DETAILS: Final = 0
BUMP_ALLOCATOR: Final = 16
FUEL: Final = 40
OWNER: Final = 48
SIGNALS: Final = 56

NOBODY: Final = 0
HOLDS_GIL: Final = 1

INTERRUPTED: Final = -1
"""What a kernel returns when a signal's handler raised an exception, which is set; no number of a check."""


def aligned_memory(size: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Zeroed memory of `size` bytes that is aligned as arenas and constants are."""
    raw = np.zeros(size + ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + size]
