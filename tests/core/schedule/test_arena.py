"""The arena never gives the same bytes twice, and joins what is given back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nnkit.core.ir import ALIGNMENT, HEADER_BYTES
from nnkit.core.schedule.arena import Arena, aligned


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5000)), max_size=60))
def test_live_ranges_never_overlap(requests: list[tuple[bool, int]]) -> None:
    arena = Arena()
    live: list[tuple[int, int]] = []
    for is_release, size in requests:
        if is_release and live:
            arena.release(*live.pop(size % len(live)))
            continue
        offset = arena.allocate(size)
        assert offset % ALIGNMENT == 0
        assert offset >= HEADER_BYTES
        assert offset + aligned(size) <= arena.end
        for other, length in live:
            assert offset + aligned(size) <= other or other + aligned(length) <= offset
        live.append((offset, size))


def test_neighbours_join() -> None:
    arena = Arena()
    ranges = [(arena.allocate(64), 64) for _ in range(3)]
    for index in (0, 2, 1):
        arena.release(*ranges[index])
    assert arena.allocate(3 * 64) == ranges[0][0]


def test_the_smallest_hole_that_fits_is_taken() -> None:
    arena = Arena()
    large, _, small, _ = [(arena.allocate(size), size) for size in (640, 64, 128, 64)]
    arena.release(*large)
    arena.release(*small)
    assert arena.allocate(100) == small[0]
    assert arena.allocate(640) == large[0]


def test_the_last_hole_grows() -> None:
    arena = Arena()
    first = arena.allocate(64)
    arena.release(first, 64)
    assert arena.allocate(640) == first
    assert arena.end == first + 640
