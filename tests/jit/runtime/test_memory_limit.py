"""The memory that a run may keep."""

from __future__ import annotations

import os
from pathlib import Path

from nnkit.jit.runtime.memory_limit import memory_limit


def test_the_limit_is_within_the_memory_of_the_machine() -> None:
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert physical // 2 < memory_limit([]) < physical


def test_the_least_limit_of_a_container_counts(tmp_path: Path) -> None:
    limits = {"two": "max\n", "one": str(1 << 30), "huge": str(1 << 62), "broken": "", "none": "0"}
    for name, text in limits.items():
        (tmp_path / name).write_text(text)
    paths = [str(tmp_path / name) for name in (*limits, "missing")]
    assert memory_limit(paths) == (1 << 30) - (1 << 27)
    assert memory_limit([paths[0], paths[3], paths[5]]) == memory_limit([])
