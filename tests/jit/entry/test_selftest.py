"""When the process is not what the native entry assumes, the Python entry is used."""

import sys
from collections.abc import Iterator

import numpy as np
import pytest

from nnkit.jit.entry import (
    Leaf,
    Signature,
    bind,
    entry_text,
    is_supported,
    layout,
    unsupported_reason,
)
from nnkit.jit.llvm import compile_module

from .programs import Memory, copying, explain, refuse

WRONG_OFFSETS = (
    "ARRAY_DATA",
    "ARRAY_RANK",
    "ARRAY_SHAPE",
    "ARRAY_STRIDES",
    "ARRAY_BASE",
    "ARRAY_DTYPE",
    "ARRAY_FLAGS",
    "ARRAY_WEAK_REFERENCES",
    "REFERENCES",
    "TYPE",
    "TUPLE_SIZE",
    "DTYPE_BYTE_ORDER",
    "DTYPE_NUMBER",
)


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    """Test the process anew, before and after."""
    unsupported_reason.cache_clear()
    yield
    unsupported_reason.cache_clear()


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="made for CPython")
def test_this_process_is_supported() -> None:
    assert unsupported_reason() is None
    assert is_supported()


@pytest.mark.parametrize("name", WRONG_OFFSETS)
def test_every_offset_is_tested(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    right: int = getattr(layout, name)
    swapped = 8 if name in ("REFERENCES", "TUPLE_SIZE", "ARRAY_RANK") else right - 8
    monkeypatch.setattr(layout, name, 27 if name == "DTYPE_BYTE_ORDER" else swapped)
    assert not is_supported()


def test_a_tuple_with_another_head(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "TUPLE_ITEMS", 16)
    assert unsupported_reason() == "the items of tuples are elsewhere"


def test_an_array_with_another_head(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "ARRAY_SIZE", 88)
    assert unsupported_reason() == "arrays have a head of 96 bytes"


def test_a_debug_build(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "gettotalrefcount", lambda: 0, raising=False)
    assert unsupported_reason() == "this is a debug build of Python"


def test_whatever_goes_wrong_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(np, "__version__", "none")
    assert unsupported_reason() is not None


def test_an_unsupported_process_works_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "gettotalrefcount", lambda: 0, raising=False)
    leaf = Leaf("f32", (2, 3))
    signature = Signature((leaf,), leaf)
    entry = entry_text(signature, "kernel", "entry")
    assert (entry.name, entry.text, {**entry.symbols}) == ("kernel", "", {})
    module, memory = compile_module(copying(signature, [0]) + entry.text), Memory()
    program = bind(
        module.address(entry.name),
        signature=signature,
        arena=memory.address,
        fallback=refuse,
        explain=explain,
        keep_alive=(module, memory),
    )
    x = np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(program(x), x)
