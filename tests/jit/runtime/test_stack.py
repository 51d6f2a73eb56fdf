"""How much stack calls may take."""

from __future__ import annotations

import threading

import pytest

from nnkit.jit.runtime.stack import MOST, stack_bytes


def test_it_is_half_of_what_a_thread_has_at_most() -> None:
    assert 1 << 16 <= stack_bytes() <= MOST // 2


def test_small_threads_make_it_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "stack_size", lambda: 1 << 18)
    assert stack_bytes() == 1 << 17
