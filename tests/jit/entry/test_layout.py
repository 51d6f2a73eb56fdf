"""What is assumed of CPython and NumPy."""

import numpy as np
import pytest

from nnkit.jit.entry.layout import fresh_flags, fresh_strides, slot_of, slot_offset, type_numbers
from nnkit.jit.entry.signature import STORAGE
from tests.rows import each

from .programs import Layer, Struct, Tensor, Tensor2D


@each("shape", [(), (1,), (5,), (1, 5), (5, 1), (2, 3), (1, 1, 4, 1), (0,), (3, 0, 2), (0, 0)])
@each("dtype", STORAGE)
def test_what_a_new_array_is_like(dtype: str, shape: tuple[int, ...]) -> None:
    array = np.empty(shape, STORAGE[dtype])
    assert array.flags.num == fresh_flags(shape)
    assert array.strides == fresh_strides(shape, array.itemsize)


@pytest.mark.parametrize("dtype", STORAGE)
def test_type_numbers(dtype: str) -> None:
    assert STORAGE[dtype].num in type_numbers(STORAGE[dtype])


def test_type_numbers_are_of_one_kind_and_size() -> None:
    everything = [number for dtype in STORAGE.values() for number in type_numbers(dtype)]
    assert len(everything) == len({*everything})


def test_a_slot_is_where_its_base_class_has_it() -> None:
    assert slot_offset(Tensor2D, "_array") == slot_offset(Tensor, "_array")
    assert slot_offset(Layer, "_fields") == slot_offset(Struct, "_fields")


class WithProperty:
    """No slot."""

    @property
    def _array(self) -> int:
        return 1


def test_a_class_without_the_slot() -> None:
    for cls in (WithProperty, int, Struct):
        with pytest.raises(TypeError, match="has no slot '_array'"):
            slot_of(cls, "_array")


class OddLayout(dict[str, int]):
    """A slot in a class that is not made as plain objects are."""

    __slots__ = ("_array",)


def test_a_class_that_is_not_a_plain_object() -> None:
    with pytest.raises(TypeError):
        slot_offset(OddLayout, "_array")
