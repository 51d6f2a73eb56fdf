"""What compiled code calls to print, called directly."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from nnkit.core.ops import Print
from nnkit.core.types import BF16, F32, TensorType
from nnkit.jit.emit.steps import PrintSite
from nnkit.jit.runtime.printing import guarded, print_function, take_raised, tensor_at


def test_tensors_in_memory() -> None:
    stored = np.arange(6, dtype=np.float32).reshape(2, 3)
    seen = tensor_at(stored.ctypes.data, TensorType((2, 3), F32))
    assert (seen == stored).all() and not seen.flags.writeable
    halves = BF16.store(np.float32([1.5, -2.0]))
    assert tensor_at(halves.ctypes.data, TensorType((2,), BF16)).tolist() == [1.5, -2.0]
    assert tensor_at(stored.ctypes.data, TensorType((0, 3), F32)).shape == (0, 3)


def test_a_site_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    type = TensorType((2,), F32)
    function = print_function([PrintSite(Print("never"), ()), PrintSite(Print("{}!\n"), (type,))])
    x = np.float32([1.0, 2.5])
    operands = (ctypes.c_void_p * 1)(x.ctypes.data)
    assert function(1, ctypes.addressof(operands)) == 0
    assert capsys.readouterr().out == "[1.  2.5]!\n"


def test_what_is_raised_is_kept_for_the_caller() -> None:
    def fail() -> None:
        raise KeyboardInterrupt("now")

    assert guarded(lambda: None) == 0 and guarded(fail) == 1
    assert str(take_raised()) == "now"
