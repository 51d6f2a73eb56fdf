"""Compares the results of the evaluator and of compiled code, in ulps.

1. Everything but finite floats must be the same; NaNs are.
2. Finite floats may differ by some units in the last place (ulps), as functions like `exp` are not rounded correctly
   and sums have an order.  By default two thirds of the digits must agree: 8 ulps in bf16, 16 in f16, 256 in f32
   and 262144 in f64.
3. A number that is much smaller than others of its tensor is often what is left when larger ones cancel.  So a unit
   is that of the larger of both numbers, but at least that of an eighth of the tensor's largest one.

0 and −0 are one unit apart.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..core.evaluate import EnumValue
from ..core.lazy_dataclass import dataclass
from ..core.types import Array, DType, EnumType, StructType, TensorType, Type, elements_of, written

_SMALL = 8
"""Numbers that are as many times smaller than the largest are measured in units of larger ones, as what cancels has the
rounding of what it came from. Three binary digits, by choice."""


@dataclass(frozen=True)
class Gap:
    """A place where two results differ: by how many ulps, and how many are allowed."""

    ulps: float
    allowed: float
    place: str
    one: str
    other: str

    @property
    def is_allowed(self) -> bool:
        return self.ulps <= self.allowed

    def __str__(self) -> str:
        """`3 ulps (256 allowed) at #a[2, 1]: 0.5 and 0.5000001788139343`."""
        at = f" at {self.place}" if self.place else ""
        if not math.isfinite(self.ulps):
            return f"{self.one} and {self.other}{at}"
        units = f"{self.ulps:.4g} ulp{'s' * (self.ulps != 1)} ({self.allowed:.9g} allowed)"
        return f"{units}{at}: {self.one} and {self.other}"


def largest_gap(type: Type, one: Any, other: Any, tolerance: float | None = None) -> Gap | None:
    """Where two values of `type` differ most for what is allowed; None if they are the same.

    `tolerance` is how many ulps are allowed; None is the `default_tolerance` of each element type.
    """
    return max(_gaps(type, one, other, tolerance), key=_excess, default=None)


def default_tolerance(dtype: DType) -> int:
    """How many ulps two floats may differ by: two thirds of the digits agree."""
    return 1 << -(-dtype.digits // 3)


def _excess(gap: Gap) -> float:
    return gap.ulps / gap.allowed if gap.allowed else math.inf


def _gaps(type: Type, one: Any, other: Any, tolerance: float | None) -> Iterator[Gap]:
    """The largest gap of each tensor, and all others."""
    pending: list[tuple[str, Type, Any, Any]] = [("", type, one, other)]
    while pending:
        place, current, x, y = pending.pop()
        parts = _parts(current, x, y)
        if isinstance(current, TensorType):
            yield from _between(current, place, np.asarray(x), np.asarray(y), tolerance)
        elif parts is not None:
            inside = [
                (place + name, part, one_part, other_part)
                for name, part, one_part, other_part in zip(*parts, strict=True)
            ]
            pending += reversed(inside)
        elif x != y:
            yield Gap(math.inf, 0, place, str(x), str(y))


def _parts(
    type: Type, x: Any, y: Any
) -> tuple[Sequence[str], Sequence[Type], Sequence[Any], Sequence[Any]] | None:
    """Names, types and values of what two aggregates, or two values of the same case, are made of."""
    match type:
        case EnumType():
            if not (isinstance(x, EnumValue) and isinstance(y, EnumValue) and x.case == y.case):
                return None
            types = type.carried(x.case)
            return _numbered(written("?", x.case), len(types)), types, x.carried, y.carried
        case StructType(fields=fields):
            names = [written("#", name) for name, _ in fields]
            return names, [element for _, element in fields], x, y
        case _:
            elements = elements_of(type)
            if elements is None:
                return None
            return _numbered("", len(elements)), elements, x, y


def _numbered(head: str, count: int) -> list[str]:
    return [f"{head}({number})" for number in range(count)]


def _between(
    type: TensorType, place: str, one: Array, other: Array, tolerance: float | None
) -> Iterator[Gap]:
    if not type.size:
        return
    if type.dtype.is_float:
        ulps = _ulps(type.dtype, one.astype(np.float64), other.astype(np.float64))
        allowed = default_tolerance(type.dtype) if tolerance is None else tolerance
    else:
        ulps, allowed = np.where(one == other, 0.0, np.inf), 0.0
    worst = np.unravel_index(int(np.argmax(ulps)), ulps.shape)
    if ulps[worst]:
        where = f"{place}{list(map(int, worst))}" if worst else place
        yield Gap(float(ulps[worst]), allowed, where, str(one[worst]), str(other[worst]))


def _ulps(dtype: DType, one: Array, other: Array) -> Array:
    """By how many units in the last place elements differ, computed in f64."""
    with np.errstate(all="ignore"):
        finite = np.isfinite(one) & np.isfinite(other)
        sizes = np.where(finite, np.maximum(np.abs(one), np.abs(other)), 0.0)
        _, exponents = np.frexp(np.maximum(sizes, sizes.max() / _SMALL))  # of 0.5 ≤ m < 1
        units = np.ldexp(1.0, np.maximum(exponents - 1, dtype.least_exponent) - (dtype.digits - 1))
        ulps = np.where(finite, np.abs(one - other) / units, np.inf)
    ulps = np.where((one == other) | (np.isnan(one) & np.isnan(other)), 0.0, ulps)
    zeros = (one == 0) & (other == 0) & (np.signbit(one) != np.signbit(other))
    return np.where(zeros, 1.0, ulps)
