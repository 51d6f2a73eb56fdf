"""Checks and output, as ops: what they accept, and what their facts say."""

from __future__ import annotations

import numpy as np
import pytest

from nnkit.core.errors import DTypeError
from nnkit.core.ir import Effect
from nnkit.core.ops import Check, Print
from nnkit.core.ops.effects import written_literally
from nnkit.core.types import BOOL, F32, I32, PointerType, TensorType, scalar

from .program_samples import Refused, Typed

X = TensorType((2, 3), F32)
SAMPLES = [
    Typed(Check('a "message" of two\nlines'), (scalar(BOOL),), ()),
    Typed(Print("x is {}, i {} {{}}\n"), (X, scalar(I32)), ()),
    Typed(Print("words alone"), (), ()),
]
ERRORS = [
    Refused(Check("m"), (scalar(F32),), "decides by a bool, not by a f32", DTypeError),
    Refused(Check("m"), (TensorType((2,), BOOL),), "decides by a bool", DTypeError),
    Refused(Print("{}"), (PointerType(X),), "writes tensors, not a *", DTypeError),
    Refused(Print("{} {}"), (X,), "has 1 operands, and its template '{} {}'", DTypeError),
    Refused(Print("{0}"), (X,), "not one {} for each", DTypeError),
    Refused(Print("{!r}"), (X,), "not one {} for each", DTypeError),
    Refused(Print("{:3}"), (X,), "not one {} for each", DTypeError),
    Refused(Print("{"), (), "a brace itself is written twice", DTypeError),
]


def test_both_are_kept_and_the_world_sees_them() -> None:
    assert Check.effect is Effect.TRAP and Print.effect is Effect.WRITE
    assert Check.is_observable and Print.is_observable


@pytest.mark.parametrize("words", ["", "{", "}}{{", "{}", "a {b} c"])
def test_words_are_written_as_they_are(words: str) -> None:
    assert Print(written_literally(words)).text([]) == words
    shown = Print(written_literally(words) + "{}").text([np.arange(2.0)])
    assert shown == words + "[0. 1.]"


def test_scalars_are_written_as_numbers() -> None:
    assert Print("{} {}").text([np.asarray(np.float32(0.1)), np.asarray(True)]) == "0.1 True"
