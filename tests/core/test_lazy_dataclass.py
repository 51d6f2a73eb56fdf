"""Dataclasses with methods that are compiled on first use: as those of the standard library, whose they replace."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from dataclasses import FrozenInstanceError, field
from threading import Thread
from typing import Any, ClassVar

import pytest

from nnkit.core.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Point:
    """Found by pickle."""

    x: int
    tags: tuple[str, ...] = ()


def family(decorator: Any) -> dict[str, Any]:
    """Classes with all that is used here, made by one decorator or the other."""

    class Base:
        """With a class variable that is no field."""

        unit: ClassVar[str] = "m"

    @decorator(frozen=True)
    class Frozen(Base):
        a: int
        b: tuple[int, ...] = (1, 2)
        c: list[int] = field(default_factory=list[int], compare=False)
        d: str = field(default="d", repr=False)
        by: str = field(default="k", kw_only=True)

    @decorator(frozen=True)
    class Derived(Frozen):
        b: tuple[int, ...] = ()
        e: float = 0.5

    @decorator
    class Plain:
        self: int
        twice: int = field(init=False)
        seen: list[int] = field(default_factory=list[int], init=False)

        def __post_init__(self) -> None:
            vars(self)["twice"] = 2 * vars(self)["self"]

    @decorator(eq=False, slots=True)
    class Slots:
        a: int
        b: int = 3
        c: int = field(default=4, init=False)

    @decorator(frozen=True, slots=True)
    class FrozenSlots:
        a: int
        b: int = 3

    @decorator(frozen=True)
    class Own:
        a: int

        def __repr__(self) -> str:
            return "own"

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 7

    return {cls.__name__: cls for cls in (Frozen, Derived, Plain, Slots, FrozenSlots, Own)}


OURS, THEIRS = family(dataclass), family(dataclasses.dataclass)
VALUES: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("Frozen", (1,), {}),
    ("Frozen", (1, (3,)), {"by": "l", "c": [1]}),
    ("Derived", (1, (3,)), {"e": 1.5}),
    ("Plain", (3,), {}),
    ("Slots", (1,), {"b": 2}),
    ("FrozenSlots", (1,), {}),
    ("Own", (1,), {}),
]


@pytest.mark.parametrize(("name", "arguments", "keywords"), VALUES)
def test_values_are_those_of_the_standard_library(
    name: str, arguments: tuple[Any, ...], keywords: dict[str, Any]
) -> None:
    ours, theirs = (family[name](*arguments, **keywords) for family in (OURS, THEIRS))
    again = OURS[name](*arguments, **keywords)
    assert repr(ours).replace("<locals>", "") == repr(theirs).replace("<locals>", "")
    names = [one.name for one in dataclasses.fields(ours)]
    assert names == [one.name for one in dataclasses.fields(theirs)]
    assert [getattr(ours, one) for one in names] == [getattr(theirs, one) for one in names]
    assert (
        dataclasses.is_dataclass(ours) and OURS[name].__match_args__ == THEIRS[name].__match_args__
    )
    parameters = inspect.signature(OURS[name]).parameters
    assert list(parameters) == list(inspect.signature(THEIRS[name]).parameters)
    assert (ours == again) == (theirs == THEIRS[name](*arguments, **keywords))
    assert ours != theirs or name == "Own"
    hashable = THEIRS[name].__hash__ is not None
    assert (OURS[name].__hash__ is not None) == hashable
    if hashable and ours == again:
        assert hash(ours) == hash(again)
    if OURS[name].__dataclass_params__.frozen:
        for change in (lambda: setattr(ours, names[0], 2), lambda: delattr(ours, names[0])):
            with pytest.raises(FrozenInstanceError, match=f"field '{names[0]}'"):
                change()
    assert hasattr(ours, "__dict__") == hasattr(theirs, "__dict__")


def test_misuse_is_refused_as_by_the_standard_library() -> None:
    for made in (OURS["Frozen"], THEIRS["Frozen"]):
        with pytest.raises(TypeError, match=r"Frozen.__init__\(\) missing 1 required"):
            made()
        with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
            made(1, z=2)
    with pytest.raises(ValueError, match="a default that can change"):

        @dataclass
        class _Changing:
            a: list[int] = []  # noqa: RUF012


def test_both_kinds_of_classes_derive_from_each_other() -> None:
    theirs = dataclasses.dataclass(frozen=True)(
        type("Theirs", (OURS["Frozen"],), {"__annotations__": {"z": int}, "z": 9})
    )
    ours = dataclass(frozen=True)(
        type("Ours", (THEIRS["Frozen"],), {"__annotations__": {"z": int}, "z": 9})
    )
    assert theirs(1).z == ours(1).z == 9 and theirs(1, z=2) == dataclasses.replace(theirs(1), z=2)
    assert hash(ours(1)) == hash(theirs(1))


def test_values_are_copied_and_pickled() -> None:
    point = Point(1, ("a",))
    assert pickle.loads(pickle.dumps(point)) == copy.deepcopy(point) == copy.copy(point) == point


def test_the_first_call_may_come_from_many_threads() -> None:
    made = family(dataclass)["Frozen"]
    found: list[Any] = []
    threads = [Thread(target=lambda: found.append(hash(made(1)))) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 16 and len(set(found)) == 1
