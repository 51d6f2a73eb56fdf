"""Objects bring the conversions of f16 that their machine lacks, and these round as NumPy's do."""

from __future__ import annotations

import ctypes
import platform
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llvmlite import binding

from nnkit.jit.half import NAMES, TEXT, conversions_for
from nnkit.jit.llvm import compile_module
from nnkit.jit.object import find_target
from tests.tools.test_dlc import Array, call, dlc, needs_compiler

LOOP = """
define void @{name}(ptr %from, ptr %to, i64 %count) {{
entry:
  br label %next
next:
  %k = phi i64 [0, %entry], [%more, %next]
  %source = getelementptr {given}, ptr %from, i64 %k
  %x = load {given}, ptr %source
  %y = call {made} @{function}({given} %x)
  %target = getelementptr {made}, ptr %to, i64 %k
  store {made} %y, ptr %target
  %more = add i64 %k, 1
  %again = icmp ult i64 %more, %count
  br i1 %again, label %next, label %done
done:
  ret void
}}
"""
CODE = compile_module(
    TEXT
    + LOOP.format(name="extend", given="half", made="float", function=NAMES[0])
    + LOOP.format(name="cut", given="float", made="half", function=NAMES[1])
)
HALVES = np.arange(2**16, dtype=np.uint16).view(np.float16)
MODULE = """
module "h"

func @sum: (<9 x f16>, <9 x f16>) -> <9 x f16> {
'entry(%x: <9 x f16>, %y: <9 x f16>):
    %z = add %x: <9 x f16>, %y: <9 x f16>
    return %z: <9 x f16>
}

func @wide: (<9 x f16>) -> <9 x f64> {
'entry(%x: <9 x f16>):
    %y = dataTypeCast %x: <9 x f16> to f64
    return %y: <9 x f64>
}

func @narrow: (<9 x f64>) -> <9 x f16> {
'entry(%x: <9 x f64>):
    %y = dataTypeCast %x: <9 x f64> to f16
    return %y: <9 x f16>
}

func @curve: (<9 x f16>) -> <9 x f16> {
'entry(%x: <9 x f16>):
    %y = tanh %x: <9 x f16>
    return %y: <9 x f16>
}
"""


def converted(name: str, given: Array, made: Any) -> Array:
    result = np.empty(given.shape, made)
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
    function(CODE.address(name))(given.ctypes.data, result.ctypes.data, given.size)
    return result


def same(found: Array, expected: Array) -> Array:
    """Bit by bit; of NaNs the sign."""
    whole = f"u{found.itemsize}"
    equal = found.view(whole) == expected.view(whole)
    both = np.isnan(found) & np.isnan(expected) & (np.signbit(found) == np.signbit(expected))
    return np.asarray(equal | both)


def test_every_f16() -> None:
    found = converted("extend", HALVES, np.float32)
    assert same(found, HALVES.astype(np.float32)).all()
    quiet = found.view(np.uint32) & 0x400000
    assert quiet[np.isnan(found)].all()


def test_every_boundary_between_f16s_and_many_f32s() -> None:
    """The numbers half way between two neighbours and those next to them, infinities, NaNs, subnormals."""
    finite = np.sort(HALVES[np.isfinite(HALVES)].astype(np.float64))
    half_ways = np.append((finite[1:] + finite[:-1]) / 2, [65520, -65520]).astype(np.float32)
    near = [np.nextafter(half_ways, np.float32(way), dtype=np.float32) for way in (-1e9, 1e9)]
    anything = np.random.default_rng(0).integers(0, 2**32, 300_000, np.uint32).view(np.float32)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1e-45, -1e-45, 3.4e38])
    x = np.concatenate([half_ways, *near, anything, special.astype(np.float32)])
    with np.errstate(all="ignore"):
        wrong = ~same(converted("cut", x, np.float16), x.astype(np.float16))
    assert not wrong.any(), x[wrong][:10]


@pytest.mark.parametrize(
    ("triple", "cpu", "brought"),
    [
        ("x86_64-linux-gnu", None, True),
        ("x86_64-linux-gnu", "x86-64-v2", True),
        ("x86_64-linux-gnu", "x86-64-v3", False),
        ("x86_64-windows-msvc", None, True),
        ("x86_64-macos", None, True),
        ("riscv64-linux-gnu", None, True),
        ("aarch64-linux-gnu", None, False),
        ("arm64-macos", None, False),
    ],
)
def test_where_they_are_brought(triple: str, cpu: str | None, brought: bool) -> None:
    target = find_target(triple, cpu)
    machine = binding.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu, features=target.features
    )
    assert bool(conversions_for("bitcast i16 %x to half", machine)) == brought
    assert conversions_for("fadd float %x, %y", machine) == ""


@needs_compiler
@pytest.mark.parametrize("triple", ["x86_64-linux-gnu", "riscv64-linux-gnu", "aarch64-linux-gnu"])
def test_objects_need_no_library_of_the_compiler(triple: str, tmp_path: Path) -> None:
    (tmp_path / "h.dl").write_text(MODULE)
    dlc(tmp_path / "h.dl", "--target", triple, "-o", tmp_path / "h.o")
    command = ["nm", "-u", str(tmp_path / "h.o")]
    needed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "hf" not in needed, needed


@needs_compiler
@pytest.mark.skipif(platform.machine() != "x86_64", reason="the code is for x86_64")
def test_a_library_without_the_instructions_computes_the_same(tmp_path: Path) -> None:
    (tmp_path / "h.dl").write_text(MODULE)
    given = [HALVES[start : start + 9].copy() for start in range(0, 2**16 - 9, 601)]
    results: list[bytes] = []
    for cpu in ("x86-64", "native"):
        path = tmp_path / f"{cpu}.so"
        dlc(tmp_path / "h.dl", "--emit", "shared", "--cpu", cpu, "-o", path)
        library, found = ctypes.CDLL(str(path)), b""
        for x in given:
            wide, narrow, total = (np.empty(9, t) for t in (np.float64, np.float16, np.float16))
            assert call(library.wide, x, wide) == 0
            assert same(wide, x.astype(np.float64)).all()
            with np.errstate(all="ignore"):
                other = wide[::-1] * 1.00048828125
                assert call(library.narrow, other, narrow) == 0
                assert same(narrow, other.astype(np.float16)).all()
                assert call(library.sum, x, narrow, total) == 0
                assert same(total, x + narrow).all()
            found += np.nan_to_num(total).tobytes()
        results.append(found)
    assert results[0] == results[1]
