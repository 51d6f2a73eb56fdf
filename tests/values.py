"""Numbers and arrays that break careless laws, and the comparison that sees every bit."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from hypothesis import strategies as st

from nnkit.core.types import Array, DType, Shape, TensorType, Type, elements_of

Draw: TypeAlias = Callable[[st.SearchStrategy[Any]], Any]

SPECIAL = (0.0, -0.0, 1.0, -1.0, 2.0, 0.5, -0.75, 3.0, math.inf, -math.inf, math.nan)
"""What floating-point laws stumble over; the least subnormal and the largest number join them."""
TAME = (1.0, -1.0, 0.5, 2.0, -0.75, 0.25, 1.5, -0.375)


def numbers(dtype: DType, *, tame: bool) -> tuple[Any, ...]:
    """The elements of `dtype` to choose from."""
    if dtype.kind == "boolean":
        return (False, True)
    if dtype.is_integer:
        info = np.iinfo(dtype.numpy)
        return (1, 2, -1, 3, -2) if tame else (0, 1, 2, -1, 3, -5, int(info.min), int(info.max))
    if tame:
        return TAME
    tiny, large = {
        "f16": (6e-8, 65504.0),
        "bf16": (2.0**-133, 2.0**127),
        "f32": (2.0**-149, 2.0**127),
        "f64": (5e-324, 1.7976931348623157e308),
    }[dtype.name]
    return (*SPECIAL, tiny, -tiny, large)


def shapes() -> st.SearchStrategy[Shape]:
    """Shapes of rank 0 to 3, with empty and unit axes."""
    extents = st.sampled_from((2, 3, 1, 4, 0))
    return st.lists(extents, max_size=3).map(tuple)


@st.composite
def tensor_types(draw: Draw, dtypes: Sequence[DType]) -> TensorType:
    """Small tensors of one of `dtypes`."""
    return TensorType(draw(shapes()), draw(st.sampled_from(list(dtypes))))


@st.composite
def arguments_of(draw: Draw, type: Type, *, tame: bool = False) -> Any:
    """What the evaluator takes for a parameter of `type`."""
    elements = elements_of(type)
    if elements is not None:
        return tuple(draw(arguments_of(element, tame=tame)) for element in elements)
    assert isinstance(type, TensorType)
    return draw(arrays(type, tame=tame))


@st.composite
def arrays(draw: Draw, type: TensorType, *, tame: bool = False) -> Array:
    """Elements of `type`, among them those that break careless laws unless `tame`."""
    choices = numbers(type.dtype, tame=tame)
    picks = draw(st.lists(st.integers(0, len(choices) - 1), min_size=type.size, max_size=type.size))
    values = np.array([choices[pick] for pick in picks], type.dtype.numpy).reshape(type.shape)
    return type.dtype.round(values)


def same_bits(one: Any, other: Any) -> bool:
    """Whether results are equal in type, shape and every bit; any NaN equals any NaN."""
    if isinstance(one, tuple) or isinstance(other, tuple):
        return (
            isinstance(one, tuple)
            and isinstance(other, tuple)
            and len(one) == len(other)
            and all(map(same_bits, one, other))
        )
    a, b = np.asarray(one), np.asarray(other)
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind != "f":
        return bool(np.array_equal(a, b))
    same = (a == b) & (np.signbit(a) == np.signbit(b))
    return bool(np.all(same | (np.isnan(a) & np.isnan(b))))


def flat(data: Any) -> tuple[Array, ...]:
    """The arrays inside tuples, left to right."""
    if not isinstance(data, tuple):
        return (data,)
    return tuple(leaf for element in data for leaf in flat(element))
