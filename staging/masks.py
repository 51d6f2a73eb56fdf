"""Masks as keys: `x.at[mask].set(value)` changes the elements where the mask is true, by choosing for each of them.

`x[mask]` of a mask that is computed is refused: what it reads has as many elements as the mask has trues, and no extent
depends on data.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from typing_extensions import TypeIs

from ..core.errors import NNKitError, ShapeError
from ..core.ir import Builder, Value
from ..core.ops import Add, Elementwise, Maximum, Minimum, Multiply, Select, ShapeCast, Update
from ..core.types import BOOL, Array
from . import primitive
from .expression import Expression
from .primitive import dtype_error, rank_error, staging_error, unsupported_error
from .rep_base import RepBase, constant_of
from .spec import TensorSpec, dtype_words

_JOINED: Final[dict[Update, Elementwise]] = {
    Update.ADD: Add(),
    Update.MIN: Minimum(),
    Update.MAX: Maximum(),
    Update.MULTIPLY: Multiply(),
}


def mask_of(key: Any) -> Expression | None:
    """The expression of a key that is a mask, a tensor of booleans.

    Raises: UnsupportedError when it stands among others.
    """
    entries = key if _is_tuple(key) else (key,)
    masks = [mask for mask in map(_mask, entries) if mask is not None]
    if masks and len(entries) > 1:
        raise unsupported_error(
            "a mask is a key by itself, not one of several",
            "a mask of all axes: `mask[0].expand_dims(0) & mask[1].expand_dims(1)` or its like",
        )
    return masks[0] if masks else None


def _mask(entry: Any) -> Expression | None:
    if isinstance(entry, RepBase):
        is_mask = isinstance(entry.spec, TensorSpec) and entry.spec.dtype is BOOL
        return entry.expression if is_mask else None
    if is_list(entry):
        is_mask = bool(entry) and all(isinstance(one, bool | np.bool_) for one in entry)
        return constant_of(np.array(entry)) if is_mask else None
    return _mask_of_data(entry) if _is_data(entry) else None


def _mask_of_data(data: Any) -> Expression | None:
    array: Array = np.asarray(data)
    return constant_of(array) if array.dtype == np.bool_ and array.ndim else None


def _is_data(entry: object) -> bool:
    return isinstance(entry, np.ndarray) or hasattr(entry, "_array")


def _is_tuple(key: object) -> TypeIs[tuple[Any, ...]]:
    return isinstance(key, tuple)


def is_list(entry: object) -> TypeIs[list[Any]]:
    """Whether it is a list, of elements that checkers need not know."""
    return isinstance(entry, list)


def no_extent(mask: Expression) -> NNKitError:
    """The error of reading by a mask."""
    words = primitive.tensor_of(mask, "a mask").words
    return staging_error(
        f"x[mask] by a {words} would have as many elements as the mask has trues, and an extent cannot depend on data",
        "`where(mask, x, 0)` keeps the shape, and so does `x.at[mask].set(value)`; `where(mask, x, 0).sum()` "
        "sums the elements; a mask that is an array of NumPy has a known number of them",
    )


def masked(x: Expression, mask: Expression, value: Expression, update: Update) -> Expression:
    """x with the elements where the mask is true updated by a value that is the same for all places of the mask."""
    what = f"at[mask].{update}"
    spec, given = primitive.tensor_of(x, what), primitive.tensor_of(value, what)
    rank = primitive.tensor_of(mask, what).rank
    if rank > spec.rank:
        raise rank_error(f"a mask of rank {rank} is too much for a {spec.words}")
    if given.dtype is not spec.dtype:
        raise dtype_error(
            f"{what} of {dtype_words(spec.dtype)} takes such a value, not {given.words}",
            "cast it, `value.cast(dtype)`",
        )
    if update is not Update.SET and not spec.dtype.is_numeric:
        raise dtype_error(f"{what} takes numbers, not {spec.words}", "`set` writes any elements")
    if given.rank > spec.rank - rank:
        raise rank_error(
            f"{what} by a mask of rank {rank} cannot take {given.words}: which of its elements goes where "
            "depends on data",
            "`where(mask, value, x)` takes a value of the shape of x",
        )

    def build(b: Builder, tensor: Value, places: Value, written: Value) -> Value:
        shape = tensor.tensor.shape
        if places.tensor.shape != shape[:rank]:
            raise ShapeError(
                f"a mask of shape {list(places.tensor.shape)} does not fit {tensor.tensor.words}"
            )
        chosen = b.emit(ShapeCast((*shape[:rank], *(1,) * (len(shape) - rank))), places)
        joined = _JOINED.get(update)
        changed = written if joined is None else b.emit(joined, tensor, written)
        result = b.emit(Select(), changed, tensor, chosen)
        if result.tensor.shape != shape:
            raise ShapeError(
                f"cannot write {written.tensor.words} to {tensor.tensor.words} by a mask"
            )
        return result

    return primitive.shape_dependent("masked", build, (x, mask, value), spec)
