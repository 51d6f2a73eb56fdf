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

from typing import Final

# offsets of the words in the table above
DETAILS: Final = 0
BUMP_ALLOCATOR: Final = 16
FUEL: Final = 40
OWNER: Final = 48
SIGNALS: Final = 56

# values of `OWNER` that no address of a thread state is
NOBODY: Final = 0
HOLDS_GIL: Final = 1

INTERRUPTED: Final = -1
"""What a kernel returns when a signal's handler raised an exception, which is set; no number of a check."""
