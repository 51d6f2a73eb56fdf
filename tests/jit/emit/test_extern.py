"""Functions that are defined elsewhere: called as C, found in a library or by address, and linked with."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from nnkit.core.driver.stages import advance
from nnkit.core.errors import TrapError, UnsupportedError
from nnkit.core.evaluate import evaluate
from nnkit.core.stage import Stage
from nnkit.core.text import parse_module
from nnkit.core.verify import verify
from nnkit.jit.executable import host_target
from tests.tools.running import run as run_tool

from .lowering import HEAD, parsed
from .running import CheckFailed, run

CC = shutil.which("cc")
pytestmark = pytest.mark.skipif(CC is None, reason="there is no C compiler")

SOURCE = """
#include <stdint.h>
int32_t twice(const float *x, float *y) { for (int i = 0; i < 4; i++) y[i] = 2 * x[i]; return 0; }
int32_t refuse(const int64_t *x, int64_t *y) { *y = *x + 1; return *x > 3 ? 7 : 0; }
int32_t fill(const int64_t *p, const int64_t *n) {
    for (int64_t i = 0; i < *n; i++) ((double *)*p)[i] = 1.5 * i;
    return 0;
}
static int64_t calls;
int32_t tick(int64_t *n) { *n = ++calls; return 0; }
"""

PROGRAM = """
[extern]
func @twice: (<4 x f32>) -> <4 x f32>
[extern]
func @refuse: (i64) -> i64
[extern]
func @fill: (*f64, i64) -> void
[extern]
func @tick: () -> i64

func @f: (<4 x f32>, i64) -> (<4 x f32>, i64, f64) {
'entry(%x: <4 x f32>, %n: i64):
    %a = add %x: <4 x f32>, 1.0: f32
    %y = apply @twice(%a): (<4 x f32>) -> <4 x f32>
    %z = apply @refuse(%n): (i64) -> i64
    %p = allocateHeap f64 count 10: i64
    %v = apply @fill(%p, 10: i64): (*f64, i64) -> void
    %q = offset %p: *f64 by 5: i64
    %w = load %q: *f64
    deallocate %p: *f64
    %r = literal (%y: <4 x f32>, %z: i64, %w: f64): (<4 x f32>, i64, f64)
    return %r: (<4 x f32>, i64, f64)
}

// called through a value, once per iteration, in order
func @ticks: (i64) -> i64 {
'entry(%n: i64):
    %t = literal @tick: () -> i64
    %first = apply @tick(): () -> i64
    for 0: i64 upto %n: i64 {
    'b(%i: i64):
        %unused = apply %t(): () -> i64
        yield
    }
    %last = apply @tick(): () -> i64
    %r = subtract %last: i64, %first: i64
    return %r: i64
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder = tmp_path_factory.mktemp("extern")
    (folder / "outside.c").write_text(SOURCE)
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-o", str(folder / "outside.so"), str(folder / "outside.c")],
        check=True,
    )
    return ctypes.CDLL(str(folder / "outside.so"))


def addresses(library: ctypes.CDLL) -> dict[str, int]:
    found: dict[str, int] = {}
    for name in ("twice", "refuse", "fill", "tick"):
        found[name] = ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
    return found


@pytest.mark.parametrize("level", range(4))
def test_extern_functions_are_called(library: ctypes.CDLL, level: int) -> None:
    module = parsed(PROGRAM)
    for stage in Stage:
        advance(module, stage, "f", "ticks", level=level, target=host_target())
        verify(module)
    x = np.arange(4, dtype=np.float32)
    externs = addresses(library)
    y, z, w = run(module.functions["f"], [x, np.asarray(2)], module.functions, externs=externs)
    assert y.tolist() == [2, 4, 6, 8] and z == 3 and w == 7.5
    (ticks,) = run(module.functions["ticks"], [np.asarray(9)], module.functions, externs=externs)
    assert ticks == 10
    with pytest.raises(CheckFailed) as failed:
        run(module.functions["f"], [x, np.asarray(4)], module.functions, externs=externs)
    assert isinstance(failed.value.error, TrapError)
    assert str(failed.value.error) == "the extern function @refuse failed with the code 7"


def test_the_evaluator_runs_the_late_stages_with_the_same_functions() -> None:
    text = (
        PROGRAM[: PROGRAM.index("func @f:")]
        + """
func @f: (<4 x f32>, i64) -> (<4 x f32>, i64) {
'entry(%x: <4 x f32>, %n: i64):
    %y = apply @twice(%x): (<4 x f32>) -> <4 x f32>
    %z = apply @refuse(%n): (i64) -> i64
    %r = literal (%y: <4 x f32>, %z: i64): (<4 x f32>, i64)
    return %r: (<4 x f32>, i64)
}
"""
    )
    module = parse_module(HEAD + text)
    externs = {"twice": lambda x: 2 * x, "refuse": lambda n: n + 1}
    for stage in Stage:
        advance(module, stage, "f")
        y, z = evaluate(module, "f", np.ones(4), 2, externs=externs)
        assert y.tolist() == [2, 2, 2, 2] and z == 3


def test_a_function_that_is_nowhere_is_named() -> None:
    module = parsed("""
[extern]
func @isNowhereToBeFound: (i64) -> i64
func @f: (i64) -> i64 {
'entry(%n: i64):
    %r = apply @isNowhereToBeFound(%n): (i64) -> i64
    return %r: i64
}
""")
    advance(module, Stage.SCHEDULE, "f", target=host_target())
    with pytest.raises(UnsupportedError, match="@isNowhereToBeFound is extern, and no library"):
        run(module.functions["f"], [np.asarray(1)], module.functions)


@pytest.mark.parametrize("type", ["stack", "box{f32}", "(f32) -> f32", "*stack"])
def test_what_c_cannot_read_is_not_given_to_it(type: str) -> None:
    module = parsed(f"""
[extern]
func @g: ({type}) -> f32
func @f: () -> f32 {{
'entry():
    %x = literal undefined: {type}
    %r = apply @g(%x): ({type}) -> f32
    return %r: f32
}}
""")
    advance(module, Stage.OPTIMIZED, "f")
    with pytest.raises(UnsupportedError, match="@g is extern and has a"):
        advance(module, Stage.COMPUTE, "f")


MAIN = """
#include <stdio.h>
#include "model.h"
int main(void) {
    float x[4] = {0, 1, 2, 3}, y[4];
    int64_t n = 2, z;
    double w;
    if (f(x, &n, y, &z, &w)) return 1;
    printf("%g %g %g %g %d %g\\n", y[0], y[1], y[2], y[3], (int)z, w);
    n = 9;
    int32_t code = f(x, &n, y, &z, &w);
    printf("%s\\n", model_message(code));
    n = 5;
    if (ticks(&n, &z)) return 1;
    printf("%d\\n", (int)z);
    return 0;
}
"""


def test_an_object_is_linked_with_them(tmp_path: Path) -> None:
    (tmp_path / "model.dl").write_text('module "model"\n' + PROGRAM)
    (tmp_path / "outside.c").write_text(SOURCE)
    (tmp_path / "main.c").write_text(MAIN)
    made = run_tool("dlc", str(tmp_path / "model.dl"), "--header", "-o", str(tmp_path / "model.o"))
    assert made.code == 0, made.err
    parts = [str(tmp_path / name) for name in ("main.c", "outside.c", "model.o")]
    subprocess.run(
        ["cc", "-Wall", "-Werror", "-o", str(tmp_path / "main"), *parts, "-lm"], check=True
    )
    finished = subprocess.run([str(tmp_path / "main")], capture_output=True, text=True, check=True)
    assert finished.stdout.splitlines() == ["2 4 6 8 3 7.5", "@refuse has failed", "6"]
    made = run_tool(
        "dlc", str(tmp_path / "model.dl"), "--target", "aarch64-linux-gnu", "-o", str(tmp_path / "arm.o")
    )  # fmt: skip
    assert made.code == 0 and (tmp_path / "arm.o").stat().st_size > 0
