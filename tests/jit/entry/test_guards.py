"""Guards say of variables whether they are what they were, by words in memory."""

from __future__ import annotations

import ctypes
from types import CellType
from typing import Any

import pytest

from nnkit.jit.entry.guards import Guard, can_guard

pytestmark = pytest.mark.skipif(not can_guard(), reason="another layout of objects")


def holds(guard: Guard) -> bool:
    """As native code reads it: one pair after the other."""
    return all(ctypes.c_int64.from_address(int(at)).value == word for at, word in guard.pairs)


def test_pairs_are_of_this_value_in_this_place() -> None:
    one, other = object(), object()
    scope: dict[str, Any] = {f"v{k}": k for k in range(20)} | {"x": one, "y": other}
    del scope["v3"]
    cell = CellType(one)
    variables = [(scope, "x", one), (scope, "y", other), (cell, "k", one)]
    guard = Guard(variables)
    assert guard.update(variables) and holds(guard) and len(guard.pairs) == 4
    scope["v4"] = object()
    assert holds(guard)
    for holder, name in ((scope, "x"), (scope, "y")):
        before = holder[name]
        holder[name] = object()
        assert not holds(guard)
        holder[name] = before
        assert holds(guard)
    cell.cell_contents = other
    assert not holds(guard)
    cell.cell_contents = one
    scope |= {f"w{k}": k for k in range(5000)}
    assert not holds(guard) and guard.update(variables) and holds(guard)


def test_what_cannot_be_found_is_said() -> None:
    value = object()
    scope: dict[Any, Any] = {"x": value}
    assert Guard([(scope, "y", value)]).update([(scope, "y", value)]) is False
    scope[1] = 2  # keys that are no texts lie otherwise
    assert Guard([(scope, "x", value)]).update([(scope, "x", value)]) is False
