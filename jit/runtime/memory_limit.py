"""How much memory a run may keep: less than there is, as the system ends processes that use more.

Linux promises more memory than it has (it overcommits), so an allocation tells nothing: the system ends the process, or
another one, when the promise is called in.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

_CGROUPS: Final = (
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
)
"""The limits of a container, by versions 2 and 1 of control groups."""

_SHARE: Final = 8
"""An eighth of the memory is left to the rest of the process and to others: about what a desktop takes."""

_UNKNOWN: Final = (1 << 63) - 1
"""Bytes of memory where nobody can tell: no limit."""


def memory_limit(cgroups: Sequence[str] = _CGROUPS) -> int:
    """Bytes: seven eighths of the machine's memory, or of the container's."""
    found = [_machine(), *map(_cgroup, cgroups)]
    least = min((size for size in found if size > 0), default=_UNKNOWN)
    return least if least == _UNKNOWN else least - least // _SHARE


def _machine() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return _UNKNOWN


def _cgroup(path: str) -> int:
    try:
        return int(Path(path).read_text())
    except (OSError, ValueError):  # there is none, or it is `max`
        return _UNKNOWN
