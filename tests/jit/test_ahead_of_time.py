"""Object code of programs with memory: variables last and are shared, and what goes wrong is a code."""

from __future__ import annotations

import ctypes
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.tools.running import run

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")

PROGRAM = """
module "memory"

enum $List { ?none(), ?more(i64, $List) }
var @count: i64
var @kept: (i64) -> i64
var @list: $List

func @add: (i64) -> i64 {
'entry(%n: i64):
    %p = literal @count: *i64
    %a = load %p: *i64
    %b = add %a: i64, %n: i64
    store %b: i64 to %p: *i64
    return %b: i64
}
func @current: () -> i64 {
'entry():
    %p = literal @count: *i64
    %a = load %p: *i64
    return %a: i64
}
func @pick: (<3 x f32>, i64) -> f32 {
'entry(%x: <3 x f32>, %i: i64):
    %p = allocateStack <3 x f32> count 1
    store %x: <3 x f32> to %p: *<3 x f32>
    %q = elementPointer %p: *<3 x f32> at %i: i64
    %y = load %q: *f32
    return %y: f32
}
func @stop: (bool) -> i64 {
'entry(%b: bool):
    if %b: bool {
    't():
        trap
        yield
    } else {
    'e():
        yield
    }
    return 1: i64
}
func @half: (i64) -> i64 {
'entry(%n: i64):
    %wrong = lessThan %n: i64, 0: i64
    if %wrong: bool {
    't():
        trap
        yield
    } else {
    'e():
        yield
    }
    %r = divide %n: i64, 2: i64
    return %r: i64
}
func @keep: () -> void {
'entry():
    %p = literal @kept: *(i64) -> i64
    %f = literal @half: (i64) -> i64
    store %f: (i64) -> i64 to %p: *(i64) -> i64
    return
}
func @use: (i64) -> i64 {
'entry(%n: i64):
    %p = literal @kept: *(i64) -> i64
    %f = load %p: *(i64) -> i64
    %r = apply %f(%n): (i64) -> i64
    return %r: i64
}
func @push: (i64) -> void {
'entry(%n: i64):
    %p = literal @list: *$List
    %l = load %p: *$List
    %m = literal ?more(%n: i64, %l: $List): $List
    store %m: $List to %p: *$List
    return
}
func @sum: () -> i64 {
'entry():
    %p = literal @list: *$List
    %l = load %p: *$List
    branch 'next(%l: $List, 0: i64)
'next(%k: $List, %s: i64):
    branchEnum %k: $List case ?none 'done case ?more 'more
'more(%n: i64, %t: $List):
    %u = add %s: i64, %n: i64
    branch 'next(%t: $List, %u: i64)
'done():
    return %s: i64
}
"""


@pytest.fixture(scope="module", params=["0", "2"])
def library(request: Any, tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder: Path = tmp_path_factory.mktemp("object")
    (folder / "memory.dl").write_text(PROGRAM)
    made = run(
        "dlc", str(folder / "memory.dl"), f"-O{request.param}", "--emit", "shared", "--header",
        "-o", str(folder / "libmemory.so"),
    )  # fmt: skip
    assert made.code == 0, made.err
    assert "call them from one thread at a time" in (folder / "libmemory.h").read_text()
    return ctypes.CDLL(str(folder / "libmemory.so"))


def called(library: ctypes.CDLL, name: str, *arguments: Any) -> tuple[int, Any]:
    """The code and the result, which is i64 or f32."""
    result = np.zeros((), np.float32 if name == "pick" else np.int64)
    arrays = [*map(np.asarray, arguments), *([] if name in ("keep", "push") else [result])]
    code = getattr(library, name)(*(ctypes.c_void_p(array.ctypes.data) for array in arrays))
    return code, result[()]


def message(library: ctypes.CDLL, code: int) -> str:
    explain = library.memory_message
    explain.restype = ctypes.c_char_p
    found: bytes = explain(code)
    return found.decode()


def test_variables_last_and_all_functions_share_them(library: ctypes.CDLL) -> None:
    for number in range(1, 6):
        assert called(library, "add", np.int64(2)) == (0, 2 * number)
        assert called(library, "current") == (0, 2 * number)


def test_what_goes_wrong_is_a_code(library: ctypes.CDLL) -> None:
    x = np.array([1, 2, 3], np.float32)
    assert called(library, "pick", x, np.int64(2)) == (0, 3.0)
    code, _ = called(library, "pick", x, np.int64(3))
    assert "load from null, or memory out of bounds" in message(library, code)
    code, _ = called(library, "stop", np.bool_(True))
    assert "the program stopped at a trap" in message(library, code)
    assert called(library, "stop", np.bool_(False)) == (0, 1)


def test_functions_that_are_kept_are_called_from_elsewhere(library: ctypes.CDLL) -> None:
    code, _ = called(library, "use", np.int64(8))
    assert "call null" in message(library, code)
    assert called(library, "keep")[0] == 0
    assert called(library, "use", np.int64(8)) == (0, 4)
    code, _ = called(library, "use", np.int64(-8))
    assert "the program stopped at a trap" in message(library, code)


def test_what_variables_lead_to_lasts(library: ctypes.CDLL) -> None:
    for number in range(1000):
        assert called(library, "push", np.int64(number))[0] == 0
    assert called(library, "sum") == (0, 499500)


def test_an_extern_function_cannot_be_one_that_our_code_needs(tmp_path: Path) -> None:
    (tmp_path / "m.dl").write_text("""module "m"
[extern]
func @calloc: (i64) -> i64
func @f: (i64) -> i64 {
'entry(%n: i64):
    %b = allocateHeap i64 count %n: i64
    deallocate %b: *i64
    %r = apply @calloc(%n): (i64) -> i64
    return %r: i64
}
""")
    made = run("dlc", str(tmp_path / "m.dl"), "-o", str(tmp_path / "m.o"))
    assert made.code == 1 and "choose another name" in made.err


def test_objects_for_other_machines(tmp_path: Path) -> None:
    (tmp_path / "m.dl").write_text(PROGRAM)
    made = run(
        "dlc", str(tmp_path / "m.dl"), "--target", "aarch64-linux-gnu", "-o", str(tmp_path / "m.o")
    )
    assert made.code == 0, made.err
    assert (tmp_path / "m.o").read_bytes()[:4] == b"\x7fELF"
