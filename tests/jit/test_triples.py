"""What is left out of the name of a machine is put in, and machines are told apart."""

from __future__ import annotations

import pytest

from nnkit.jit.triples import is_like, normalized


@pytest.mark.parametrize(
    ("triple", "expected"),
    [
        ("aarch64-linux-gnu", "aarch64-unknown-linux-gnu"),
        ("x86_64-unknown-linux-gnu", "x86_64-unknown-linux-gnu"),
        ("x86_64-windows-msvc", "x86_64-pc-windows-msvc"),
        ("x86_64-w64-mingw32", "x86_64-w64-windows-gnu"),
        ("x86_64-mingw32", "x86_64-w64-windows-gnu"),
        ("arm64-macos14.2", "arm64-apple-macos14.2"),
        ("arm64-apple-macosx", "arm64-apple-macosx"),
        ("riscv64-none-elf", "riscv64-unknown-none-elf"),
        ("x86_64", "x86_64"),
    ],
)
def test_parts_that_are_left_out(triple: str, expected: str) -> None:
    assert normalized(triple) == expected
    assert normalized(expected) == expected
    assert is_like(triple, expected)


def test_machines_of_one_kind() -> None:
    assert is_like("arm64-macos", "aarch64-apple-macos14")
    assert is_like("x86_64-linux-musl", "x86_64-unknown-linux-gnu")
    assert not is_like("x86_64-apple-macosx", "x86_64-unknown-linux-gnu")
    assert not is_like("aarch64-linux-gnu", "x86_64-linux-gnu")
