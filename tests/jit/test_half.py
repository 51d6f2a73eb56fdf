"""Code brings the conversions of f16 that its machine lacks, and these round as NumPy's do."""

from __future__ import annotations

import ctypes
import platform
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llvmlite import binding

from nnkit.jit.ahead_of_time import find_target
from nnkit.jit.half import CONVERSIONS, conversions_for, missing_conversions
from nnkit.jit.llvm import CompiledModule, compile_module
from tests.jit.guard_pages import CPUS, HOST, engine_for
from tests.tools.test_dlc import Array, call, dlc, needs_compiler

_LOOP = """
define void @{name}(ptr %from, ptr %to, i64 %count) {{
entry:
  br label %next
next:
  %k = phi i64 [0, %entry], [%more, %next]
  %source = getelementptr {given}, ptr %from, i64 %k
  %x = load {given}, ptr %source
  %y = {conversion}
  %target = getelementptr {made}, ptr %to, i64 %k
  store {made} %y, ptr %target
  %more = add i64 %k, 1
  %again = icmp ult i64 %more, %count
  br i1 %again, label %next, label %done
done:
  ret void
}}
"""


def loop(name: str, given: str, made: str, conversion: str) -> str:
    """LLVM IR of a function that converts an array."""
    return _LOOP.format(name=name, given=given, made=made, conversion=conversion)


CALLED = "".join(
    [
        *CONVERSIONS.values(),
        loop("extend", "half", "float", "call float @__extendhfsf2(half %x)"),
        loop("cut", "float", "half", "call half @__truncsfhf2(float %x)"),
        loop("cut.double", "double", "half", "call half @__truncdfhf2(double %x)"),
    ]
).replace("@__", "@our.")  # so that they stand beside those that the machine needs itself
WRITTEN = "".join(
    [
        loop("extend", "half", "float", "fpext half %x to float"),
        loop("cut", "float", "half", "fptrunc float %x to half"),
        loop("cut.double", "double", "half", "fptrunc double %x to half"),
    ]
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


def converted(code: CompiledModule, name: str, given: Array, made: Any) -> Array:
    result = np.empty(given.shape, made)
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
    function(code.address(name))(given.ctypes.data, result.ctypes.data, given.size)
    return result


def compiled(cpu: str) -> CompiledModule:
    """The functions that code brings along, called by name; or as LLVM converts on a machine."""
    return compile_module(CALLED) if cpu == "called" else engine_for(cpu).compile_module(WRITTEN)


def same(found: Array, expected: Array) -> Array:
    """Bit by bit; of NaNs the sign."""
    whole = f"u{found.itemsize}"
    equal = found.view(whole) == expected.view(whole)
    both = np.isnan(found) & np.isnan(expected) & (np.signbit(found) == np.signbit(expected))
    return np.asarray(equal | both)


@pytest.mark.parametrize("cpu", ["called", *(CPUS if platform.machine() == "x86_64" else [HOST])])
class TestRounding:
    def test_every_f16(self, cpu: str) -> None:
        found = converted(compiled(cpu), "extend", HALVES, np.float32)
        assert same(found, HALVES.astype(np.float32)).all()
        quiet = found.view(np.uint32) & 0x400000
        assert quiet[np.isnan(found)].all()

    def test_every_boundary_between_f16s_and_many_others(self, cpu: str) -> None:
        """The numbers half way between two neighbors and those next to them, infinities, NaNs, subnormals."""
        code = compiled(cpu)
        for name, wide in (("cut", np.float32), ("cut.double", np.float64)):
            x = boundaries(np.dtype(wide))
            with np.errstate(all="ignore"):
                wrong = ~same(converted(code, name, x, np.float16), x.astype(np.float16))
            assert not wrong.any(), x[wrong][:10]


def boundaries(wide: np.dtype[Any]) -> Array:
    finite = np.sort(HALVES[np.isfinite(HALVES)].astype(np.float64))
    ties = np.append((finite[1:] + finite[:-1]) / 2, [65520, -65520]).astype(wide)
    near = [np.nextafter(ties, wide.type(way), dtype=wide) for way in (-1e9, 1e9)]
    as_singles = [ties * wide.type(factor) for factor in (1 - 1e-7, 1 + 1e-7, 1 - 1e-8, 1 + 1e-8)]
    random = np.random.default_rng(0)
    bits = random.integers(0, 2 ** (8 * wide.itemsize), 300_000, f"u{wide.itemsize}").view(wide)
    normal = random.normal(0, 1, 300_000) * 2.0 ** np.arange(-30, 20).repeat(6000)
    limits = np.finfo(wide)
    special = [0, np.inf, np.nan, limits.smallest_subnormal, limits.tiny, limits.max, 3.4e38]
    chosen = [ties, *near, *as_singles, bits, normal, special, np.negative(special)]
    with np.errstate(over="ignore"):
        return np.concatenate(chosen, dtype=wide, casting="unsafe")


ALL = tuple(CONVERSIONS)


@pytest.mark.parametrize(
    ("triple", "cpu", "brought"),
    [
        ("x86_64-linux-gnu", None, ALL),
        ("x86_64-linux-gnu", "x86-64-v2", ALL),
        ("x86_64-linux-gnu", "x86-64-v3", ("__truncdfhf2",)),
        ("x86_64-linux-gnu", "x86-64-v4", ("__truncdfhf2",)),
        ("x86_64-linux-gnu", "sapphirerapids", ()),
        ("x86_64-windows-msvc", None, ALL),
        ("x86_64-macos", None, ALL),
        ("riscv64-linux-gnu", None, ALL),
        ("aarch64-linux-gnu", None, ()),
        ("arm64-macos", None, ()),
    ],
)
def test_where_they_are_brought(triple: str, cpu: str | None, brought: tuple[str, ...]) -> None:
    target = find_target(triple, cpu)
    machine = binding.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu, features=target.features
    )
    text = missing_conversions(machine)
    assert (
        tuple(name for name in CONVERSIONS if f"half @{name}" in text or f"float @{name}" in text)
        == brought
    )
    assert conversions_for("bitcast i16 %x to half", machine) == text
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
