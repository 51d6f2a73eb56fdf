"""Checks and output in compiled code, at every level of optimisation, and in files for C."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.tools.running import run as run_tool

PROGRAM = """module "model"
stage raw
func @f: (f64) -> f64 {
'entry(%x: f64):
    %zero = literal 0.0: f64
    %positive = greaterThan %x: f64, %zero: f64
    check %positive: bool because "x is not positive"
    %y = sqrt %x: f64
    return %y: f64
}
"""

MAIN = """
#include <stdio.h>
#include "model.h"
int main(void) {
    double x = 4, y;
    if (f(&x, &y)) return 1;
    printf("%g\\n", y);
    x = -4;
    printf("%s\\n", model_message(f(&x, &y)));
    return 0;
}
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_a_check_of_an_object_file_returns_its_code(tmp_path: Path) -> None:
    (tmp_path / "model.dl").write_text(PROGRAM)
    (tmp_path / "main.c").write_text(MAIN)
    made = run_tool("dlc", str(tmp_path / "model.dl"), "--header", "-o", str(tmp_path / "model.o"))
    assert made.code == 0, made.err
    parts = [str(tmp_path / name) for name in ("main.c", "model.o")]
    subprocess.run(["cc", "-o", str(tmp_path / "main"), *parts, "-lm"], check=True)
    done = subprocess.run([str(tmp_path / "main")], capture_output=True, text=True, check=True)
    first, second = done.stdout.splitlines()
    assert first == "2" and second.endswith("x is not positive")


def test_output_is_not_for_object_files(tmp_path: Path) -> None:
    text = PROGRAM.replace(
        'check %positive: bool because "x is not positive"', 'print "{}" of %x: f64'
    )
    (tmp_path / "model.dl").write_text(text)
    made = run_tool("dlc", str(tmp_path / "model.dl"), "-o", str(tmp_path / "model.o"))
    assert made.code != 0
    assert (
        "print needs Python, which compiled files do without" in made.err and "model.dl" in made.err
    )
