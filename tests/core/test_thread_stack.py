"""Where the C stack of a thread ends."""

from __future__ import annotations

import pytest

from nnkit.core.thread_stack import MOST, ROOM, Stack, current_stack

from ..threads import run_in_thread


def in_thread(size: int) -> Stack:
    """The stack of a new thread that asked for `size` bytes."""
    found: list[Stack | None] = []
    run_in_thread(size, lambda: found.append(current_stack()))
    assert found[0] is not None
    return found[0]


@pytest.mark.parametrize("size", [64 << 10, 256 << 10, 8 << 20, 64 << 20])
def test_a_thread_has_about_the_stack_it_asked_for(size: int) -> None:
    stack = in_thread(size)
    assert 0.75 * size <= stack.high - stack.low <= 1.1 * size + (64 << 10)


def test_every_thread_has_its_own() -> None:
    here, other = current_stack(), in_thread(1 << 20)
    assert here is not None
    assert here.high <= other.low or other.high <= here.low


def test_room_is_left_and_no_more_is_used_than_is_reasonable() -> None:
    assert Stack(0, 8 << 20).limit == ROOM
    assert Stack(0, 64 << 10).limit == 16 << 10
    assert Stack(0, 1 << 40).limit == (1 << 40) - MOST + ROOM
