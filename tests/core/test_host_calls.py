"""Calls from C into Python and the other way round, without compiled code between."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from nnkit.core.errors import TrapError
from nnkit.core.host_calls import c_function, call_c, guarded, loaded, take_raised, tensor_at
from nnkit.core.types import BF16, F32, F64, FunctionType, TensorType, TupleType, scalar


def test_tensors_in_memory() -> None:
    stored = np.arange(6, dtype=np.float32).reshape(2, 3)
    seen = loaded(stored.ctypes.data, TensorType((2, 3), F32))
    assert (seen == stored).all() and not seen.flags.writeable
    tensor_at(stored.ctypes.data, TensorType((2, 3), F32))[0, 0] = 7
    assert stored[0, 0] == 7
    halves = BF16.store(np.array([1.5, -2.0], np.float32))
    assert loaded(halves.ctypes.data, TensorType((2,), BF16)).tolist() == [1.5, -2.0]
    assert loaded(stored.ctypes.data, TensorType((0, 3), F32)).shape == (0, 3)


def test_what_is_raised_is_kept_for_the_caller() -> None:
    def fail() -> None:
        raise KeyboardInterrupt("now")

    assert guarded(lambda: None) == 0 and guarded(fail) == 1
    assert str(take_raised()) == "now" and take_raised() is None


X, S = TensorType((2,), F64), scalar(BF16)


def both(x: Any, s: Any) -> Any:
    if s > 2:
        raise ValueError("too large")
    return x * s, s + 1.0


def test_there_and_back() -> None:
    type = FunctionType((X, S), TupleType((X, S)))
    function = c_function(both, "both", type)
    address = ctypes.cast(function, ctypes.c_void_p).value or 0
    y, t = call_c(address, "both", type, [np.array([1.0, 2.0]), np.float32(1.5)])
    assert y.tolist() == [1.5, 3.0] and t == 2.5
    with pytest.raises(ValueError, match="too large"):
        call_c(address, "both", type, [np.zeros(2), np.float32(3.0)])


def test_a_code_of_c() -> None:
    function = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(lambda _: 5)
    address = ctypes.cast(function, ctypes.c_void_p).value or 0
    with pytest.raises(TrapError, match="the extern function @f failed with the code 5"):
        call_c(address, "f", FunctionType((), X), [])
