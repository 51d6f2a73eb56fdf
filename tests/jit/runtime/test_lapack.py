"""The LAPACK that is found is that of NumPy, has every routine, and is not taken where it has another interface."""

from __future__ import annotations

import _ctypes

import pytest

from nnkit.jit.runtime import lapack
from nnkit.jit.runtime.lapack import ROUTINES, find_lapack


def test_every_routine_is_found_once() -> None:
    found = find_lapack()
    assert found is not None
    assert found is find_lapack()
    assert set(found.addresses) == {letter + name for letter in "sd" for name in ROUTINES}
    assert all(found.addresses.values())
    assert found.integer_bits in (32, 64)


def test_it_is_found_through_the_module_that_calls_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the LAPACK is no library that threadpoolctl knows."""
    monkeypatch.setattr(lapack, "libraries", list)
    assert find_lapack.__wrapped__() == find_lapack()


def test_a_process_without_one_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lapack, "_extensions", list)
    for library in ("/nowhere/libblas.so", _ctypes.__file__):
        monkeypatch.setattr(lapack, "libraries", lambda library=library: [library])
        assert find_lapack.__wrapped__() is None
