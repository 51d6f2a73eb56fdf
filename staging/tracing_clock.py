"""How far the trace in progress is, for whom it takes long: counts operations, and has a clock looked at now and then.

There is one for all threads, as one at a time traces (`user_calls.staging_lock`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final

from ..core.lazy_dataclass import dataclass

_EACH: Final = 256
"""Operations from one look at the clock to the next: some 8 ms."""


@dataclass(eq=False, slots=True)
class TracingClock:
    """Who is told of the operations that are traced."""

    operations: int = 0
    report: Callable[[int], None] | None = None

    def count(self) -> None:
        """Note one more operation."""
        self.operations += 1
        if self.report is not None and not self.operations % _EACH:
            self.report(self.operations)

    @contextmanager
    def reporting(self, report: Callable[[int], None]) -> Generator[None]:
        """While this lasts, `report` is told now and then how many there are.  The caller holds the lock."""
        before = self.operations, self.report
        self.operations, self.report = 0, report
        try:
            yield
        finally:
            self.operations, self.report = before


TRACING: Final = TracingClock()
