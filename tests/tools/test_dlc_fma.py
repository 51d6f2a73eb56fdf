"""Fused multiply-add is an instruction where the CPU has it, and a call of the C library nowhere."""

from __future__ import annotations

import ctypes
import platform
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Module
from nnkit.core.text import parse_module
from nnkit.core.types import DTYPES, F32, F64, Array, DType
from nnkit.jit.emit.math import FUNCTIONS
from tests.tools.test_dlc import call, dlc, needs_compiler

COUNT = 37
FLOATS = [dtype for dtype in DTYPES.values() if dtype.is_float]
BINARY = (
    "add", "subtract", "multiply", "divide", "floorDivide", "truncateDivide", "modulo", "min", "max", "power",
)  # fmt: skip
UNARY = tuple(name for name in FUNCTIONS if name not in (*BINARY, "logistic", "threefry"))
"""All the others that are ops of floats."""

BODIES = {
    **{name: f"%r = {name} %x: VECTOR" for name in UNARY},
    **{name: f"%r = {name} %x: VECTOR, %y: VECTOR" for name in BINARY},
    "dot": "%r = dot %x: MATRIX, %y: MATRIX",
    "inner": "%r = dot %x: VECTOR, %y: VECTOR",
    "squares": "%s = square %x: MATRIX\n    %r = reduce %s: MATRIX by add along 1",
}
RESULTS = {"dot": "MATRIX", "inner": "SCALAR"}


def function(name: str, dtype: DType) -> str:
    """@name_dtype of what its body names."""
    body = BODIES[name]
    operand = "MATRIX" if "MATRIX" in body else "VECTOR"
    operands = [one for one in ("%x", "%y") if one in body]
    result = RESULTS.get(name, "VECTOR")
    text = f"""
func @{name}_{dtype}: ({", ".join(operand for _ in operands)}) -> {result} {{
'entry({", ".join(f"{one}: {operand}" for one in operands)}):
    {body}
    return %r: {result}
}}
"""
    for word, shape in ("VECTOR", f"{COUNT} x "), ("MATRIX", f"{COUNT} x {COUNT} x "):
        text = text.replace(word, f"<{shape}{dtype}>")
    return text.replace("SCALAR", str(dtype))


MODULE = 'module "fused"\n' + "".join(function(name, dtype) for dtype in FLOATS for name in BODIES)


@dataclass(frozen=True)
class Machine:
    """What `dlc` is asked for, and fused multiply-add in its assembly, if there is one."""

    options: tuple[str, ...]
    fused: str | None


X86 = ("--target", "x86_64-linux-gnu")
MACHINES = {
    "x86-64": Machine(X86, None),
    "x86-64-v3": Machine((*X86, "--cpu", "x86-64-v3"), r"\bvfn?m(add|sub)\d+ps\b"),
    "aarch64": Machine(("--target", "aarch64-linux-gnu"), r"\bfml[as]\b"),
    "riscv64": Machine(("--target", "riscv64-linux-gnu"), r"\bfn?m(add|sub)\.[sd]\b"),
    "riscv64-named": Machine(
        ("--target", "riscv64-linux-gnu", "--cpu", "generic-rv64"), r"\bfn?m(add|sub)\.[sd]\b"
    ),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fused")
    (folder / "fused.dl").write_text(MODULE)
    return folder


@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
def test_an_instruction_or_none_but_no_call(folder: Path, machine: Machine) -> None:
    options = [*machine.options, "--emit", "asm", "-o", "-"]
    assembly = dlc(folder / "fused.dl", *options).out
    assert not re.search(r"\bfmaf?\b", assembly)
    if machine.fused is None:
        assert not re.search(r"\bv?fn?m(add|sub|l[as])", assembly)
    else:
        assert re.search(machine.fused, assembly)


@pytest.fixture(scope="module")
def library(folder: Path) -> ctypes.CDLL:
    dlc(folder / "fused.dl", "--emit", "shared", "-o", folder / "fused.so")
    return ctypes.CDLL(str(folder / "fused.so"))


@cache
def parsed() -> Module:
    return parse_module(MODULE)


def operands(name: str, dtype: DType) -> list[Array]:
    """Numbers that most functions are real for."""
    rng = np.random.default_rng(4)
    shape = (COUNT, COUNT) if "MATRIX" in BODIES[name] else (COUNT,)
    return [dtype.round(rng.uniform(0.1, 2, shape)) for one in ("%x", "%y") if one in BODIES[name]]


@needs_compiler
@pytest.mark.skipif(platform.machine() != "x86_64", reason="elsewhere the least CPU has fma")
@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize(("dtype", "tolerance"), [(F32, 2e-6), (F64, 4e-15)], ids=str)
def test_without_it_results_agree(
    library: ctypes.CDLL, name: str, dtype: DType, tolerance: float
) -> None:
    given = operands(name, dtype)
    wanted = np.asarray(evaluate(parsed(), f"{name}_{dtype}", *given))
    found = np.zeros(wanted.shape, wanted.dtype)
    assert call(library[f"{name}_{dtype}"], *given, found) == 0
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)
