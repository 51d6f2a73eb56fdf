"""How much memory a call takes, as the compiler has planned it."""

from __future__ import annotations

from .core.lazy_dataclass import dataclass


@dataclass(frozen=True)
class MemoryAnalysis:
    """What a call of a staged function takes of memory, in bytes: `f.memory_analysis(x)`.

    `alias_bytes` are those of results that lie where donated arguments were.  `is_complete` is False where more is
    allocated while it runs: by recursion, and by gradients of loops whose number of rounds only the run tells.

    Between calls, `temporary_bytes` stay with the function, and up to two arrays of each result (64 MiB in all) are
    kept for the next ones; `f.clear_cache()` gives them back.
    """

    argument_bytes: int
    output_bytes: int
    alias_bytes: int
    temporary_bytes: int
    is_complete: bool

    @property
    def peak_bytes(self) -> int:
        """What a call needs at most besides its arguments: results outside of donated ones, and temporaries."""
        return self.output_bytes - self.alias_bytes + self.temporary_bytes

    def __str__(self) -> str:
        lines = [
            f"{self.argument_bytes} bytes of arguments",
            f"{self.output_bytes} bytes of results, {self.alias_bytes} of them in donated arguments",
            f"{self.temporary_bytes} bytes of temporaries{'' if self.is_complete else ', and more while it runs'}",
            f"{self.peak_bytes} bytes at most besides the arguments",
        ]
        return "\n".join(lines)
