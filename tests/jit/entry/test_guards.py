"""Guards say of variables whether they are what they were, by words in memory."""

from __future__ import annotations

import ctypes
from types import CellType
from typing import Any

import numpy as np
import pytest

from nnkit.jit.entry.guards import Guard, can_guard

pytestmark = pytest.mark.skipif(not can_guard(), reason="another layout of objects")


def holds(guard: Guard) -> bool:
    """As native code reads it: one pair after the other."""
    return all(
        ctypes.c_int64.from_address(int(at)).value == word for at, word in guard.pairs
    ) and all(
        ctypes.string_at(int(at), int(size)) == ctypes.string_at(int(was), int(size))
        for at, was, size in guard.blocks
    )


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
    assert Guard([(scope, 1, value)]).update([(scope, 1, value)]) is False


class Settings:
    def __init__(self) -> None:
        self.rate: object = 1.5
        self.other: object = object()


class InSlots:
    __slots__ = ("a", "b", "z")


class MoreSlots(InSlots):
    __slots__ = ("c",)


@pytest.mark.parametrize("name", ["z", "b", "a", "c"])
def test_slots_lie_where_they_are_looked_for(name: str) -> None:
    held = MoreSlots()
    for each in ("z", "b", "a", "c"):
        setattr(held, each, object())
    guard = Guard([(held, name, getattr(held, name))])
    assert guard.update([(held, name, getattr(held, name))])
    assert holds(guard) and len(guard.pairs) == 1
    before = getattr(held, name)
    setattr(held, name, object())
    assert not holds(guard)
    setattr(held, name, before)
    assert holds(guard)


def set_item(holder: Any, key: Any, value: Any) -> None:
    holder[key] = value


def test_what_lies_inside_of_values() -> None:
    """Each of these is seen, and so is that it is undone; what else changes there is not."""
    settings, numbers, items = Settings(), {1: 2.5, "x": 3.5}, [1.5, 2.5]
    held: dict[Any, Any] = vars(settings)
    array, small = np.arange(5, dtype=np.float32), np.ones(3, np.int8)
    large, view, long = np.zeros(3000), np.zeros((4, 6))[:, ::-2], [object() for _ in range(100)]

    def helper() -> int:
        return 1

    code, few, many = helper.__code__, {1.5, 2.5}, set(range(20))
    variables: list[Any] = [
        (held, "rate", settings.rate), (numbers, 1, numbers[1]), (numbers, ..., None), (helper, None, code),
        (few, ..., None), (many, ..., None),
        *((one, ..., None) for one in (items, array, small, large, view, long)),
    ]  # fmt: skip
    guard = Guard(variables)
    assert guard.update(variables) and holds(guard)
    settings.other = None
    assert holds(guard)
    changes: list[tuple[Any, Any, Any, Any]] = [
        (setattr, settings, "rate", 7.5), (set_item, numbers, 1, 7.5), (set_item, items, 1, 7.5),
        *((set_item, array, k, 7.5) for k in range(5)), (set_item, small, 2, 7),
        *((set_item, large, k, 7.5) for k in (0, 1777, 2999)), (set_item, long, 77, None),
        *((set_item, view, k, 7.5) for k in ((0, 0), (3, 2))), (set_item, numbers, "x", 7.5),
        (setattr, helper, "__code__", holds.__code__),
    ]  # fmt: skip
    for change, holder, name, value in changes:
        before = getattr(holder, name) if change is setattr else holder[name]
        change(holder, name, value)
        assert not holds(guard), (holder, name)
        change(holder, name, before)
        assert holds(guard)
    groups: list[tuple[Any, Any]] = [(few, 1.5), (many, 7)]
    for group, other in groups:
        group.discard(other)
        assert not holds(guard)
        group.add(99)
        assert not holds(guard)
        group.discard(99)
        group.add(other)
        assert guard.update(variables) and holds(guard)
    for longer, add in ((items, lambda: items.append(1.5)), (numbers, lambda: numbers.update(y=1))):
        add()
        assert not holds(guard)
        longer.popitem() if isinstance(longer, dict) else longer.pop()
    vars(settings).update(
        {f"v{k}": k for k in range(50)}
    )  # its keys are not those of the class any more
    assert guard.update(variables) and holds(guard)
    settings.rate = 2.5
    assert not holds(guard)
