"""Messages of the compiler, as those read them who write IR."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnkit.core.text.spelling import in_text_form
from nnkit.core.types import DTYPES, DType, TensorType


@given(st.sampled_from([*DTYPES.values()]), st.lists(st.integers(0, 1000), max_size=4))
def test_types_are_spelled_as_in_the_text(dtype: DType, shape: list[int]) -> None:
    type = TensorType(tuple(shape), dtype)
    message = f"cannot add {type.words} and ({type.words}, i64): no"
    assert in_text_form(message) == f"cannot add {type} and ({type}, i64): no"


@pytest.mark.parametrize(
    "text", ["%f32[1]", "@g_f32[2]", "f32[", "f32[x]", "f32[1 ,2]", "a <2 x f32>[0]"]
)
def test_everything_else_is_left_alone(text: str) -> None:
    assert in_text_form(text) == text
