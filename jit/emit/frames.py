"""The stack memory of a function: what is allocated for the whole call, as LLVM's `alloca`s at its start."""

from __future__ import annotations

from .values import PTR, LLVMType, Register


class StackFrame:
    """What has been asked for so far."""

    __slots__ = ("_allocations",)

    def __init__(self) -> None:
        self._allocations: list[tuple[LLVMType, int, int]] = []

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
        self._allocations.append((type, count, align))
        return _address(len(self._allocations) - 1)


def _address(number: int) -> Register:
    return Register(f"%${number}", PTR)
