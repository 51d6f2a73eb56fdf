"""The stack memory of a function: what is allocated for the whole call, as LLVM's `alloca`s at its start.

What is given back is used again for the next allocation of the same type: local buffers of loops, of which those of one
kernel after the other would add up.
"""

from __future__ import annotations

from typing import Final

from .values import PTR, LLVMType, Register


class StackFrame:
    """What has been asked for so far."""

    __slots__ = ("_allocations", "_released")

    def __init__(self) -> None:
        self._allocations: list[tuple[LLVMType, int, int]] = []
        self._released: list[int] = []

    @property
    def bytes(self) -> int:
        """Of all of it."""
        return sum(type.size * count for type, count, _ in self._allocations)

    @property
    def lines(self) -> list[str]:
        """The text."""
        return [
            f"  %${number} = alloca {type.text}, i64 {count}, align {align}"
            for number, (type, count, align) in enumerate(self._allocations)
        ]

    def allocate(self, type: LLVMType, count: int, align: int) -> Register:
        """Memory for so many values."""
        for number in self._released:
            known, most, aligned = self._allocations[number]
            if (known, aligned) == (type, align) and type.size * count >= _LEAST_SHARED:
                self._released.remove(number)
                self._allocations[number] = type, max(count, most), align
                return _address(number)
        self._allocations.append((type, count, align))
        return _address(len(self._allocations) - 1)

    def release(self, memory: Register) -> None:
        """Give back what was allocated and nothing uses any more."""
        number = int(memory.text.removeprefix("%$"))
        type, count, _ = self._allocations[number]
        if type.size * count >= _LEAST_SHARED:
            self._released.append(number)


_LEAST_SHARED: Final = 512
"""Bytes: LLVM keeps what is smaller in registers, if it is used in one place."""


def _address(number: int) -> Register:
    return Register(f"%${number}", PTR)
