"""What instructions do besides computing their results."""

from __future__ import annotations

import enum


class Effect(enum.Flag):
    """What an instruction does besides computing its results."""

    NONE = 0
    READ = enum.auto()
    """Reads memory or a stack that others may write."""
    WRITE = enum.auto()
    """Writes memory or a stack, gives memory back, or takes a random number."""
    ALLOCATE = enum.auto()
    """Makes memory: may go if nobody uses it, and is never merged with another."""
    TRAP = enum.auto()
    """Stops the program."""
    CALL = enum.auto()
    """Does what the function it calls does; any of the above if that is not known."""
