"""The head of the arena: eight words that a running program shares with whoever called it.

| offset | word      | what it says                                                            | written by          |
|--------|-----------|-------------------------------------------------------------------------|---------------------|
| 0, 8   | `DETAILS` | two numbers that tell more of the check that failed                     | `checks`            |
| 16–32  | `CELLS`   | where the next cell begins, where the chunk ends, the latest chunk      | `cells`             |
| 40     | `FUEL`    | about how many nanoseconds may pass until the next poll                 | `polls`             |
| 48     | `OWNER`   | 0: nobody uses the arena; 1: a call with the GIL; else the thread state | `polls`, the entry  |
|        |           | of a call that gave up the GIL                                          |                     |
| 56     | `SIGNALS` | the clock, in nanoseconds, when signals were last looked for            | `polls`             |
"""

from __future__ import annotations

from typing import Final

DETAILS: Final = 0
CELLS: Final = 16
FUEL: Final = 40
OWNER: Final = 48
SIGNALS: Final = 56

NOBODY: Final = 0
HOLDS_GIL: Final = 1

INTERRUPTED: Final = -1
"""What a kernel returns when a signal's handler raised an exception, which is set; no number of a check."""
