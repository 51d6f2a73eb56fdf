"""From what a user holds to the array a tensor keeps: C-contiguous, aligned, in native byte order.

An array is copied, unless it has that form already and nobody can write to its memory, or sharing it is asked
for.  Its element type is never converted: that would hide a mistake.
Python numbers have no element type of their own, so lists of them are rounded to the one asked for.
"""

from __future__ import annotations

import itertools
import numbers
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeGuard, cast

import numpy as np
import numpy.typing as npt

from .core.errors import DTypeError, RankError, ShapeError
from .core.round_to_odd import odd_double
from .core.types import BF16, BOOL, F16, F32, F64, I8, I32, I64, Array, DType

SURFACE = (F16, BF16, F32, F64, I8, I32, I64, BOOL)
"""The element types a user can name."""

_CACHE_LINE = 64
"""Bytes of a line of the caches, on all machines that code is made for."""

_LEAST_ALIGNED = 512
"""Bytes of an array from which its place in memory matters more than making a view of it."""


def surface_name(dtype: DType) -> str:
    """The name of an element type in the user's language."""
    return "boolean" if dtype is BOOL else dtype.name


def is_array(data: object) -> bool:
    """Whether `data` has an element type already (an ndarray, a NumPy scalar, another library's)."""
    return isinstance(data, (np.ndarray, np.generic)) or hasattr(data, "__array__")


def is_masked(data: object) -> bool:
    """Whether `data` is a masked array; who has one has loaded their module, which takes 15 ms and a use of `np.ma`."""
    module: Any = sys.modules.get("numpy.ma")
    return module is not None and isinstance(data, module.MaskedArray)


def adopt(
    data: Any, *, name: str, rank: int, dtype: DType | None, copy: bool | None = None
) -> Array:
    """The storage array for an array of `data`'s element type.

    It shares memory where the layout allows, and nobody can write to it or it is not to be a `copy`.
    """
    if is_masked(data):
        raise DTypeError(
            f"cannot make a {name} of a masked array: a tensor has no holes\n"
            "  help: fill it first, array.filled(value)"
        )
    array = np.asarray(data)
    if array.ndim != rank:
        raise RankError(
            f"cannot make a {name} of an array of shape {list(array.shape)}: "
            f"it has rank {array.ndim} instead of {rank}"
        )
    stored = _as_storage(array, name, dtype)
    if not (stored.flags.c_contiguous and stored.flags.aligned) or copy is True:
        return copied(stored)
    is_own = stored is not array and stored.flags.owndata  # converted just now
    if copy is False or is_own or _is_frozen(stored):
        return stored.view()
    return copied(stored)


def copied(array: Array) -> Array:
    """A copy in C order that begins with a cache line, unless it is small: vectors then lie in one line each."""
    if array.nbytes < _LEAST_ALIGNED:
        return np.array(array, order="C", copy=True)
    memory = np.empty(array.nbytes + _CACHE_LINE, np.uint8)
    first = -memory.__array_interface__["data"][0] % _CACHE_LINE
    made = memory[first : first + array.nbytes].view(array.dtype).reshape(array.shape)
    made[...] = array
    return made


def _is_frozen(array: Array) -> bool:
    """Whether nobody can write to its memory: no array or buffer that it is a view of can."""
    base: Any = array
    while isinstance(base, np.ndarray):
        if base.flags.writeable:
            return False
        base = cast("Any", base.base)
    if base is None:
        return True
    try:
        return memoryview(base).readonly
    except TypeError:  # no buffer: whoever owns the memory may write to it
        return False


def is_storage(array: Array) -> bool:
    """Whether an array has the form that a tensor keeps."""
    dtype = array.dtype
    return array.flags.num & _FORM == _FORM and (
        id(dtype) in _SHARED or (dtype.char in _BY_CHAR and dtype.isnative)
    )


def from_numbers(data: object, *, name: str, rank: int, dtype: DType) -> Array:
    """The storage array of (nested sequences of) Python numbers, rounded to `dtype`."""
    shape, flat = _flatten(data, name, rank)
    return _round(flat, dtype).reshape(shape)


def stored_dtype(array: Array) -> DType:
    """The element type of a storage array."""
    return _BY_CHAR[array.dtype.char]


def _as_storage(array: Array, name: str, dtype: DType | None) -> Array:
    found = _element_type(array.dtype, bits_are_bf16=dtype is BF16)
    if found is None or dtype not in (None, found):
        wanted = name if dtype is None else f"{name}[{surface_name(dtype)}]"
        raise DTypeError(
            f"cannot make a {wanted} of an array of {array.dtype}: {_why(array.dtype, found)}\n"
            f"  help: {_help(dtype)}"
        )
    if array.dtype.kind == "V":  # bfloat16 as registered by other libraries: the same bits
        return array.view(np.uint16)
    if not array.dtype.isnative:
        return array.astype(found.storage)
    if array.dtype.num != found.storage.num:  # C's long and long long: one type, two numbers
        return array.view(found.storage)
    return array


def _element_type(dtype: np.dtype[Any], *, bits_are_bf16: bool) -> DType | None:
    if dtype.num in _BY_NUMBER:
        return _BY_NUMBER[dtype.num]
    is_bf16 = dtype.name == "bfloat16" or (bits_are_bf16 and dtype.num == BF16.storage.num)
    return BF16 if is_bf16 else None


def _why(dtype: np.dtype[Any], found: DType | None) -> str:
    if found is None:
        return f"the element types are {', '.join(map(surface_name, SURFACE))}"
    return f"its elements are {surface_name(found)}, and element types are not converted silently"


def _help(dtype: DType | None) -> str:
    if dtype is None:
        return "convert it first, for example array.astype(np.float32)"
    if dtype is BF16:
        return "pass lists of numbers, Tensor1D(array.tolist(), bf16), or the bits as uint16"
    return f"convert it first, array.astype(np.{dtype.numpy.name})"


def _flatten(data: object, name: str, rank: int) -> tuple[tuple[int, ...], list[object]]:
    """Shape and elements, row by row; the shape is that of the first rows and all must have it."""
    rows: list[object] = [data]
    shape: list[int] = []
    for depth in range(rank):
        if not _are_sequences(rows):
            found = next(type(row).__name__ for row in rows if not _is_sequence(row))
            raise RankError(
                f"cannot make a {name} of lists nested {depth} deep: it needs {rank} levels, "
                f"found {found} in place of a list"
            )
        lengths = [len(row) for row in rows]
        if not lengths:
            raise ShapeError(
                f"cannot make a {name} of an empty list: the length of its rows is unknown\n"
                f"  help: {name}(np.zeros((0, ...), dtype)) says the shape"
            )
        if min(lengths) != max(lengths):
            other = next(length for length in lengths if length != lengths[0])
            raise ShapeError(
                f"cannot make a {name} of ragged lists: along axis {depth} one row has "
                f"{lengths[0]} elements and another {other}"
            )
        shape.append(lengths[0])
        rows = list(itertools.chain.from_iterable(rows))
    if not _PLAIN.issuperset(map(type, rows)) and any(map(_is_sequence, rows)):
        raise RankError(
            f"cannot make a {name} of lists nested more than {rank} deep: "
            f"a tensor of rank {rank} has numbers there"
        )
    return tuple(shape), rows


def _is_sequence(row: object) -> TypeGuard[Sequence[object]]:
    if isinstance(row, np.ndarray):
        return cast("npt.NDArray[Any]", row).ndim > 0
    return isinstance(row, Sequence) and not isinstance(row, (str, bytes))


def _are_sequences(rows: Iterable[object]) -> TypeGuard[list[Sequence[object]]]:
    return all(_is_sequence(row) for row in rows)


def _round(flat: list[object], dtype: DType) -> Array:
    """Numbers to storage.  Raises: DTypeError for what is not a number of the kind or range."""
    kinds = set(map(type, flat))
    if not all(issubclass(kind, _NUMBERS[dtype.kind]) for kind in kinds):
        wrong = next(x for x in flat if not isinstance(x, _NUMBERS[dtype.kind]))
        raise DTypeError(f"{surface_name(dtype)} needs {_ARTICLE[dtype.kind]}, got {wrong!r}")
    values = cast("list[Any]", flat)
    if dtype.kind == "float":
        return _round_floats(values, dtype)
    if dtype.kind == "integer":
        _check_range(values, dtype)
    return np.array(values, dtype.storage)


def _check_range(values: list[int], dtype: DType) -> None:
    limits = np.iinfo(dtype.numpy)
    for value in (min(values, default=0), max(values, default=0)):
        if not limits.min <= value <= limits.max:
            raise DTypeError(
                f"{value} is out of range of {dtype.name}: {limits.min} to {limits.max}"
            )


def _round_floats(values: list[float], dtype: DType) -> Array:
    exact_in = float if dtype is F64 else odd_double
    try:
        plain = values if {float}.issuperset(map(type, values)) else [exact_in(x) for x in values]
        exact = np.array(plain, np.float64)
    except OverflowError:
        raise DTypeError(f"an integer is out of range of {dtype.name}") from None
    lost = (np.abs(exact) >= _OVERFLOW[dtype]) & np.isfinite(exact)
    if lost.any():
        raise DTypeError(f"{float(exact[lost][0])!r} is out of range of {dtype.name}")
    return dtype.store(exact)


_NUMBERS: Mapping[str, tuple[type, ...]] = {
    "float": (numbers.Real, np.bool_),
    "integer": (numbers.Integral, np.bool_),
    "boolean": (bool, np.bool_),
}
_ARTICLE = {"float": "a number", "integer": "an integer", "boolean": "True or False"}
_PLAIN = frozenset((float, int, bool))
_OVERFLOW = {d: (2 - 2.0**-d.digits) * 2.0 ** (1 - d.least_exponent) for d in SURFACE if d.is_float}
"""From here on numbers round to infinity: half a unit in the last place beyond the largest."""
_FORM = 0x101
"""NumPy's flags of C-contiguous and aligned arrays (`NPY_ARRAY_CARRAY_RO`)."""
_SHARED = frozenset(id(d.storage) for d in SURFACE)
"""The dtypes that almost all arrays have: found in half the time that asking them takes."""
_BY_CHAR = {d.storage.char: d for d in SURFACE}
_BY_SIZE = {d.storage.itemsize: d for d in (I8, I32, I64)}
_C_INTEGERS = [np.dtype(code) for code in "bilq"]
"""Four types in C, of three sizes."""
_BY_NUMBER: Mapping[int, DType] = {
    **{d.storage.num: d for d in (F16, F32, F64, BOOL)},
    **{c.num: _BY_SIZE[c.itemsize] for c in _C_INTEGERS},
}
