"""Code of `dlc --cpu native` writes what it was asked to, and nothing else of its caller's memory."""

from __future__ import annotations

import platform
import shutil
import sys
from pathlib import Path

import pytest

from tests.jit.guard_pages import survey
from tests.tools.running import run

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64" or sys.platform != "linux", reason="guard pages of x86-64 Linux"
)

CASTS = [
    ("i64", "i32"), ("i64", "i16"), ("i64", "i8"), ("i32", "i16"), ("i32", "i8"), ("i16", "i8"),
    ("f32", "bf16"), ("f32", "f16"), ("f64", "f32"), ("i64", "bool"), ("i8", "i64"),
]  # fmt: skip
COLUMNS = (1, 2, 3, 5, 9, 15, 17, 33, 65)


def program() -> str:
    """Casts beside a reduction of what is cast, and softmax, of rows with all tails."""
    parts = ['module "edges"\n']
    for n in COLUMNS:
        for source, target in CASTS:
            x, y, m = f"<2 x {n} x {source}>", f"<2 x {n} x {target}>", f"<2 x {source}>"
            parts.append(
                f"func @cast_{source}_{target}_{n}: ({x}) -> ({y}, {m}) {{\n"
                f"'entry(%x: {x}):\n"
                f"    %y = dataTypeCast %x: {x} to {target}\n"
                f"    %m = reduce %x: {x} by min along 1\n"
                f"    return (%y: {y}, %m: {m}): ({y}, {m})\n}}\n"
            )
        parts += [
            f"func @softmax_{dtype}_{n}: (<2 x {n} x {dtype}>) -> <2 x {n} x {dtype}> {{\n"
            f"'entry(%x: <2 x {n} x {dtype}>):\n"
            f'    %y = builtin "softmax"(%x: <2 x {n} x {dtype}>) -> <2 x {n} x {dtype}>\n'
            f"    return %y: <2 x {n} x {dtype}>\n}}\n"
            for dtype in ("bf16", "f32")
        ]
    return "".join(parts)


@pytest.mark.parametrize("kind", ["shared", "object"])
def test_native_code_stays_inside_of_its_callers_tensors(kind: str, tmp_path: Path) -> None:
    if kind == "shared" and shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    text, library = (
        tmp_path / "edges.dl",
        tmp_path / ("edges.so" if kind == "shared" else "edges.o"),
    )
    text.write_text(program())
    emit = "shared" if kind == "shared" else "obj"
    made = run("dlc", str(text), "--cpu", "native", "--emit", emit, "-o", str(library))
    assert made.code == 0, made.err
    found = survey("tests.tools.guarded_library", str(text), str(library))
    assert not found.failures, "\n".join(map(str, found.failures))
    assert found.cases == len(COLUMNS) * (len(CASTS) + 2)
