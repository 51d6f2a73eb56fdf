"""What convolutions, pooling and resizing are told of each spatial axis: numbers, and padding.

`padding` is a number for both ends of all axes, one for each axis, a pair (low, high) for each axis, `"valid"` for
none, or `"same"`, with which a result has ⌈extent / stride⌉ places.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn, TypeAlias

from .core.errors import ShapeError
from .staging import primitive
from .staging.primitive import rank_error, shape_error
from .staging.spec import as_tuple

Pairs: TypeAlias = "tuple[tuple[int, int], ...]"


def per_axis(name: str, what: str, value: Any, count: int, *, least: int = 1) -> tuple[int, ...]:
    """A number for each of `count` spatial axes, of one for all or one for each."""
    given = as_tuple(value)
    given = given * count if len(given) == 1 else given
    if len(given) != count:
        raise rank_error(f"{name}: {what} has {len(given)} entries for {count} spatial axes")
    for number in given:
        if not primitive.is_index(number):
            raise shape_error(f"{name}: {what} is an int or a tuple of ints, not {value!r}")
        if number < least:
            raise shape_error(f"{name}: {what} is {number}, not at least {least}")
    return tuple(map(int, given))


def padding_of(name: str, padding: Any, count: int) -> Pairs | None:
    """(low, high) for each spatial axis; None for `"same"`, which depends on the extents."""
    if isinstance(padding, str):
        match padding.lower():
            case "same":
                return None
            case "valid":
                return ((0, 0),) * count
            case _:
                _unknown(name, padding)
    given = as_tuple(padding)
    given = given * count if len(given) == 1 else given
    if len(given) != count:
        raise rank_error(
            f"{name}: padding has {len(given)} entries for {count} spatial axes",
            "a pair (low, high) stands for each axis: ((1, 2),) for one",
        )
    pairs: list[tuple[int, int]] = []
    for entry in given:
        ends = as_tuple(entry)
        ends = ends * 2 if len(ends) == 1 else ends
        if len(ends) != 2 or not all(map(primitive.is_index, ends)):
            _unknown(name, padding)
        if min(ends) < 0:
            raise shape_error(f"{name}: padding is {min(ends)}, not at least 0")
        pairs.append((int(ends[0]), int(ends[1])))
    return tuple(pairs)


def _unknown(name: str, padding: object) -> NoReturn:
    raise shape_error(
        f"{name}: padding is 'same', 'valid', an int, or an int or a pair of ints for each axis, not {padding!r}"
    )


def same_padding(extents: Sequence[int], reach: Sequence[int], strides: Sequence[int]) -> Pairs:
    """What puts a window of `reach` at ⌈extent / stride⌉ places; of an odd number one more at the end."""
    pairs: list[tuple[int, int]] = []
    for extent, length, stride in zip(extents, reach, strides, strict=True):
        total = max((-(-extent // stride) - 1) * stride + length - extent, 0)
        pairs.append((total // 2, total - total // 2))
    return tuple(pairs)


def check_reach(
    name: str, what: str, extents: Sequence[int], reach: Sequence[int], padding: Pairs
) -> None:
    """Raises: ShapeError where a window is longer than a padded axis."""
    for axis, (extent, length, (low, high)) in enumerate(zip(extents, reach, padding, strict=True)):
        if length > low + extent + high:
            padded = f" with its padding {(low, high)}" if low or high else ""
            raise ShapeError(
                f"{name}: {what} covers {length} places of spatial axis {axis}, which has {extent}{padded}"
            )
