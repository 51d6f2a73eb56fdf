"""The stack memory of a function: what is allocated for the whole call, as LLVM's `alloca`s at its start."""

from __future__ import annotations

from .values import PTR, LLVMType, Register, llvm_type


class StackFrame:
    """What has been asked for so far."""

    __slots__ = ("_allocations", "_shared")

    def __init__(self) -> None:
        self._allocations: list[tuple[LLVMType, int, int]] = []
        self._shared: int | None = None

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

    def share(self, size: int, align: int) -> Register:
        """So many bytes, until this is asked again: those who need them one after the other have the same."""
        if self._shared is None:
            self._shared = len(self._allocations)
            self._allocations.append((llvm_type("i8"), size, align))
        type, before, alignment = self._allocations[self._shared]
        self._allocations[self._shared] = type, max(before, size), max(alignment, align)
        return _address(self._shared)


def _address(number: int) -> Register:
    return Register(f"%${number}", PTR)
