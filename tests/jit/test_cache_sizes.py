"""Sizes of caches, as systems list them: each of a core, threads counted once, and none where nothing is said."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from nnkit.core.schedule.target import Target
from nnkit.jit.cache_sizes import CacheSizes, cache_sizes, host_cache_sizes
from nnkit.jit.executable import host_target

KIB = 1 << 10

Listed = Mapping[int, Mapping[str, tuple[str, str, str, str]]]
"""By CPU, of each cache its level, type, size and the CPUs that share it."""


def listed(root: Path, cpus: Listed) -> Path:
    """The files in which Linux says this."""
    for cpu, caches in cpus.items():
        for name, words in caches.items():
            folder = root / f"cpu{cpu}" / "cache" / name
            folder.mkdir(parents=True)
            for file, word in zip(("level", "type", "size", "shared_cpu_list"), words, strict=True):
                (folder / file).write_text(word + "\n")
    return root


def test_sizes_are_those_of_a_core(tmp_path: Path) -> None:
    instructions = ("1", "Instruction", "64K", "0")
    one = {
        "index0": ("1", "Data", "48K", "0"),
        "index1": instructions,
        "index2": ("2", "Unified", "2048K", "0"),
        "index3": ("3", "Unified", "480M", "0-63"),
    }
    threads = {
        "index0": ("1", "Data", "32K", "0,64"),
        "index2": ("2", "Unified", "1M", "0,64"),
    }
    cluster = {
        "index0": ("1", "Data", "32K", "8"),
        "index2": ("2", "Unified", "2048K", "8-11"),
    }
    unknown = {
        "index0": ("1", "Data", "much", "0"),
        "index1": instructions,
        "index2": ("2", "Unified", "", "0"),
    }
    tiny = {"index0": ("1", "Data", "1K", "0"), "index2": ("2", "Unified", "4K", "0")}
    cases: list[tuple[Listed, CacheSizes]] = [
        ({0: one}, CacheSizes(48 * KIB, 2048 * KIB)),
        ({0: threads}, CacheSizes(32 * KIB, 1024 * KIB)),
        ({0: one, 4: {}, 8: cluster}, CacheSizes(32 * KIB, 512 * KIB)),
        ({0: one, 8: {}}, CacheSizes(48 * KIB, 2048 * KIB)),
        ({0: {"index0": one["index0"]}}, CacheSizes(48 * KIB, 0)),
        ({0: unknown}, CacheSizes()),
        ({0: tiny}, CacheSizes()),
        ({0: {}}, CacheSizes()),
        ({}, CacheSizes()),
    ]
    for number, (cpus, wanted) in enumerate(cases):
        root = listed(tmp_path / str(number), cpus)
        assert cache_sizes(list(cpus), root) == wanted, cpus


def test_what_is_not_known_is_as_assumed() -> None:
    assert CacheSizes(48 * KIB, 2048 * KIB).planned() == CacheSizes(32 * KIB, 1024 * KIB)
    assert CacheSizes().planned() == CacheSizes()
    assumed, own = Target(), Target(own_l1_bytes=7, own_l2_bytes=9)
    assert (assumed.near_l1_bytes, assumed.near_l2_bytes) == (assumed.l1_bytes, assumed.l2_bytes)
    assert (own.near_l1_bytes, own.near_l2_bytes) == (7, 9)
    target, found = host_target(), host_cache_sizes().planned()
    assert (target.own_l1_bytes, target.own_l2_bytes) == found
    assert (target.l1_bytes, target.l2_bytes) == (assumed.l1_bytes, assumed.l2_bytes)
