"""What compiled code calls to print, called directly."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from nnkit.core.ops import Print
from nnkit.core.types import F32, TensorType
from nnkit.jit.emit.sites import PrintSite
from nnkit.jit.runtime.printing import print_function


def test_a_site_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    type = TensorType((2,), F32)
    function = print_function([PrintSite(Print("never"), ()), PrintSite(Print("{}!\n"), (type,))])
    x = np.float32([1.0, 2.5])
    operands = (ctypes.c_void_p * 1)(x.ctypes.data)
    assert function(1, ctypes.addressof(operands)) == 0
    assert capsys.readouterr().out == "[1.  2.5]!\n"
