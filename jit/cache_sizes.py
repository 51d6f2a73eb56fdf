"""What the system says of the caches of a core, and how much of them scheduling plans with.

Linux lists the caches of each CPU in files.  The CPUs that share a first cache are threads of one core; a second one
may be that of several cores, of which each has its part.  Where machines have two kinds of cores, the first and the
last CPU are of different kinds, and the smaller caches count.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

CACHES: Final = Path("/sys/devices/system/cpu")

_UNITS: Final = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
"""Bytes, as Linux writes the sizes of caches."""

_LEAST: Final = 4 << 10, 64 << 10
"""Bytes of a first and of a second cache, below which what the system says is no size."""


class CacheSizes(NamedTuple):
    """Bytes of the data caches of a core; 0 where they are not known."""

    first: int = 0
    second: int = 0

    def planned(self) -> CacheSizes:
        """What decisions reckon with: of the first cache two thirds, of the second one half.

        So they were measured, and what else a loop reads and writes has the rest.
        """
        return CacheSizes(self.first * 2 // 3, self.second // 2)


def cache_sizes(cpus: Sequence[int], root: Path = CACHES) -> CacheSizes:
    """The caches of each of these CPUs, at least; those of which the system says nothing do not count."""
    ends = {cpus[0], cpus[-1]} if cpus else set[int]()
    found = [_of_cpu(root / f"cpu{cpu}" / "cache") for cpu in sorted(ends)]
    return CacheSizes(
        min((one.first for one in found if one.first), default=0),
        min((one.second for one in found if one.second), default=0),
    )


def host_cache_sizes() -> CacheSizes:
    """Those of the CPUs that this process may use."""
    has_affinity = hasattr(os, "sched_getaffinity")
    return cache_sizes(sorted(os.sched_getaffinity(0)) if has_affinity else [0])


def _of_cpu(folder: Path) -> CacheSizes:
    sizes: dict[int, tuple[int, int]] = {}
    for cache in sorted(folder.glob("index*")):
        try:
            level, kind, size, shared = (
                (cache / name).read_text().strip()
                for name in ("level", "type", "size", "shared_cpu_list")
            )
            if kind in ("Data", "Unified"):
                sizes[int(level)] = _bytes_of(size), _count_of(shared)
        except (OSError, ValueError):  # a system that says less, or says it in another way
            continue
    first, threads = sizes.get(1, (0, 1))
    second, sharing = sizes.get(2, (0, threads))
    second //= max(1, sharing // threads)
    least_first, least_second = _LEAST
    return CacheSizes(first * (first >= least_first), second * (second >= least_second))


def _bytes_of(size: str) -> int:
    """`48K` in bytes.  Raises: ValueError."""
    return int(size[:-1]) * _UNITS[size[-1]] if size[-1:] in _UNITS else int(size)


def _count_of(listed: str) -> int:
    """How many CPUs are in a list as `0-3,8`.  Raises: ValueError."""
    count = 0
    for part in listed.split(","):
        low, _, high = part.partition("-")
        count += int(high or low) - int(low) + 1
    return max(1, count)
