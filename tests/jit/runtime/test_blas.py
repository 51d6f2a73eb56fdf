"""The BLAS that is already in the process."""

from __future__ import annotations

import numpy as np
import pytest

from nnkit.jit.runtime import blas
from nnkit.jit.runtime.blas import FUNCTIONS, THREAD_CONTROL, find_blas


def test_the_process_has_a_blas_and_it_is_found_once() -> None:
    found = find_blas()
    assert found is not None
    assert found is find_blas()
    assert set(FUNCTIONS) <= set(found.addresses) <= {*FUNCTIONS, *THREAD_CONTROL}
    assert all(found.addresses.values())
    assert found.integer_bits in (32, 64)


def test_numpy_says_the_same_of_its_integers() -> None:
    found = find_blas()
    assert found is not None
    configuration = np.show_config(mode="dicts")
    assert isinstance(configuration, dict)
    described = str(configuration["Build Dependencies"]["blas"])
    if "USE64BITINT" in described or "64_" in described:
        assert found.integer_bits == 64


def test_what_is_no_library_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    for path in ("", "/nowhere/libblas.so", __file__):
        listed = [{"user_api": "openmp"}, {"user_api": "blas", "filepath": path}]
        monkeypatch.setattr(blas.threadpoolctl, "threadpool_info", lambda listed=listed: listed)
        assert find_blas.__wrapped__() is None
