"""`dlc`: object code, libraries and headers that C programs use."""

from __future__ import annotations

import ctypes
import platform
import shutil
import struct
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.tools.running import Finished, run

MODEL = """\
module "model"

struct $Layer { #w: <30 x 40 x f32>, #b: <40 x f32> }

func @layer: (<20 x 30 x f32>, $Layer) -> <20 x 40 x f32> {
'entry(%x: <20 x 30 x f32>, %l: $Layer):
    %w = extract #w from %l: $Layer
    %b = extract #b from %l: $Layer
    %p = dot %x: <20 x 30 x f32>, %w: <30 x 40 x f32>
    %s = add %p: <20 x 40 x f32>, %b: <40 x f32>
    %y = tanh %s: <20 x 40 x f32>
    return %y: <20 x 40 x f32>
}

[gradient @layer wrt 1]
func @layer_gradient: (<20 x 30 x f32>, $Layer) -> $Layer

func @pick: (<3 x f64>, i64) -> f64 {
'entry(%x: <3 x f64>, %i: i64):
    %y = gather %x: <3 x f64> at %i: i64 along 0
    return %y: f64
}

func @several: (<2 x i32>, bool, f16, bf16) -> (<2 x i32>, bool, (f16, bf16)) {
'entry(%n: <2 x i32>, %t: bool, %h: f16, %k: bf16):
    %m = negate %n: <2 x i32>
    %u = not %t: bool
    %a = add %h: f16, 1: f16
    %c = multiply %k: bf16, 2: bf16
    return (%m: <2 x i32>, %u: bool, (%a: f16, %c: bf16): (f16, bf16)): (<2 x i32>, bool, (f16, bf16))
}

func @constant: () -> <600 x f64> {
'entry():
    %0 = literal <CONSTANT>: <600 x f64>
    %1 = literal <CONSTANT>: <600 x f64>
    %2 = dot %0: <600 x f64>, %1: <600 x f64>
    %3 = divide %0: <600 x f64>, %2: f64
    return %3: <600 x f64>
}

func @"exp": (f64) -> f64 {
'entry(%int: f64):
    %y = exp %int: f64
    return %y: f64
}

func @large: (<100 x 100 x f32>) -> f32 {
'entry(%x: <100 x 100 x f32>):
    %y = dot %x: <100 x 100 x f32>, %x: <100 x 100 x f32>
    %z = dot %y: <100 x 100 x f32>, %y: <100 x 100 x f32>
    %r = reduce %z: <100 x 100 x f32> by add along 0, 1
    return %r: f32
}
""".replace("CONSTANT", ", ".join(f"{number}.5" for number in range(600)))

PROGRAM = r"""
#include <stdio.h>
#include <string.h>
#include "model.h"

static float x[20 * 30], w[30 * 40], b[40], y[20 * 40], gw[30 * 40], gb[40];

int main(void) {
    int i;
    double v[3] = {1.5, 2.5, 3.5}, picked = 0, e, one = 1;
    int64_t index = 2;
    int32_t n[2] = {3, -4}, m[2], code;
    uint8_t t = 1, u;
    uint16_t h = 0x3c00, k = 0x3f80, a, c;
    static double constants[600];
    for (i = 0; i < 20 * 30; i++) x[i] = (float)(i % 7 - 3) / 8;
    for (i = 0; i < 30 * 40; i++) w[i] = (float)(i % 11 - 5) / 16;
    for (i = 0; i < 40; i++) b[i] = (float)i / 64;
    if (layer(x, w, b, y) != 0) return 1;
    if (layer_gradient(x, w, b, gw, gb) != 0) return 2;
    for (i = 0; i < 20 * 40; i++) printf("%.9g ", y[i]);
    for (i = 0; i < 30 * 40; i++) printf("%.9g ", gw[i]);
    for (i = 0; i < 40; i++) printf("%.9g ", gb[i]);
    if (pick(v, &index, &picked) != 0) return 3;
    printf("%.17g ", picked);
    if (several(n, &t, &h, &k, m, &u, &a, &c) != 0) return 4;
    printf("%d %d %d %d %d ", m[0], m[1], u, a, c);
    if (constant(constants) != 0) return 5;
    printf("%.17g ", constants[1]);
    if (exp_(&one, &e) != 0) return 6;
    printf("%.17g\n", e);
    index = 3;
    code = pick(v, &index, &picked);
    printf("%d %s\n", (int)code, model_message(code));
    return strcmp(model_message(0), "") == 0 && strcmp(model_message(-1), "out of memory") == 0
        && strcmp(model_message(99), "") == 0 ? 0 : 7;
}
"""

CC = shutil.which("cc")
needs_compiler = pytest.mark.skipif(CC is None, reason="there is no C compiler")
Array = np.ndarray[Any, Any]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dlc")
    (folder / "model.dl").write_text(MODEL)
    return folder


def dlc(*arguments: str | Path) -> Finished:
    finished = run("dlc", *map(str, arguments))
    assert finished.code == 0, finished.err
    assert not finished.err
    return finished


def compile_c(*arguments: str | Path) -> None:
    assert CC is not None
    subprocess.run([CC, *map(str, arguments)], check=True)


def inputs() -> tuple[Array, Array, Array]:
    x = ((np.arange(600) % 7 - 3) / 8).astype(np.float32).reshape(20, 30)
    w = ((np.arange(1200) % 11 - 5) / 16).astype(np.float32).reshape(30, 40)
    return x, w, (np.arange(40) / 64).astype(np.float32)


def expected() -> tuple[Array, Array, Array]:
    """The layer and its gradient, by NumPy."""
    x, w, b = inputs()
    y = np.tanh(x.astype(np.float64) @ w + b)
    slope = 1 - y * y
    return y, x.T @ slope, slope.sum(0)


@needs_compiler
@pytest.mark.parametrize("level", ["0", "1", "2", "3"])
def test_a_c_program_calls_the_object(folder: Path, level: str) -> None:
    work = folder / f"O{level}"
    work.mkdir()
    dlc(folder / "model.dl", f"-O{level}", "--header", "-o", work / "model.o")
    (work / "main.c").write_text(PROGRAM)
    strict = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic"]
    compile_c(*strict, "-I", work, work / "main.c", work / "model.o", "-lm", "-o", work / "main")
    finished = subprocess.run([work / "main"], capture_output=True, text=True, check=False)
    assert finished.returncode == 0
    first, second = finished.stdout.splitlines()
    numbers = np.array(list(map(float, first.split())))
    for wanted in expected():
        found, numbers = numbers[: wanted.size], numbers[wanted.size :]
        np.testing.assert_allclose(found, wanted.ravel(), rtol=2e-5, atol=1e-5)
    total = sum((number + 0.5) ** 2 for number in range(600))
    halves = [0x4000, 0x4000]  # 2 as f16 and as bf16
    rest = [3.5, -3, 4, 0, *halves, 1.5 / total, np.e]
    np.testing.assert_allclose(numbers, rest, rtol=1e-15)
    assert second == f"1 {folder}/model.dl, line 20: an index is out of range"


@needs_compiler
def test_the_header_is_c99_and_cpp(folder: Path) -> None:
    header = dlc(folder / "model.dl", "--emit", "header").out
    (folder / "alone.h").write_text(header)
    (folder / "twice.c").write_text('#include "alone.h"\n#include "alone.h"\nint unused;\n')
    shutil.copy(folder / "twice.c", folder / "twice.cpp")
    flags = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-c"]
    compile_c("-std=c99", *flags, folder / "twice.c", "-o", folder / "c.o")
    if shutil.which("c++"):
        command = [
            "c++",
            "-std=c++11",
            *flags,
            str(folder / "twice.cpp"),
            "-o",
            str(folder / "cpp.o"),
        ]
        subprocess.run(command, check=True)
    assert (
        "int32_t layer(const float *x, const float *l_w, const float *l_b, float *result);"
        in header
    )
    assert "<20 x 30 x f32>, 600 elements" in header


HOSTILE = """\
module "*/ int x; /* ??/ \\\\"
struct $P { #"a b": f32, #class: f32 }
func @int: (f32, f32, $P) -> (f32, $P) {
'entry(%for: f32, %"é*/": f32, %result_0: $P):
    return (%for: f32, %result_0: $P): (f32, $P)
}
func @"int_": (f32) -> f32 {
'entry(%x: f32):
    return %x: f32
}
func @"9 lives": () -> () {
'entry():
    return (): ()
}
func @nothing: (f32) -> f32 {
'entry(%x: f32):
    return %x: f32
}
func @"a-b": (f32) -> f32 {
'entry(%x: f32):
    return %x: f32
}
func @a_b: (f32) -> f32 {
'entry(%"x 1": f32):
    return %"x 1": f32
}
func @é: (f32) -> f32 {
'entry(%_: f32):
    %y = negate %_: f32
    return %y: f32
}
"""


@needs_compiler
def test_names_that_c_does_not_allow(tmp_path: Path) -> None:
    (tmp_path / "hostile.dl").write_text(HOSTILE)
    dlc(tmp_path / "hostile.dl", "--header", "-o", tmp_path / "hostile.o")
    header = (tmp_path / "hostile.h").read_text()
    for prototype in (
        "int__2(const float *for_,",
        "int_(const float *x,",  # what C allows keeps its name
        "f9_lives(void)",
        "nothing_(",
        "a_b_2(const float *x,",
        "a_b(const float *x_1,",
    ):
        assert prototype in header, header
    (tmp_path / "main.c").write_text(
        '#include "hostile.h"\nint main(void) { float x = 1, y; return f9_lives() + f(&x, &y) + (y != -1); }\n'
    )
    strict = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic"]
    compile_c(*strict, tmp_path / "main.c", tmp_path / "hostile.o", "-o", tmp_path / "main")
    assert subprocess.run([tmp_path / "main"], check=False).returncode == 0


@pytest.mark.parametrize("name", ["a\udcffb.dl", "é.dl", 'a"b\\.dl', "%s.dl", "-x.dl"])
def test_names_of_files_go_into_messages(tmp_path: Path, name: str) -> None:
    try:
        (tmp_path / name).write_text(MODEL)
    except (OSError, UnicodeError):
        pytest.skip("the file system does not take this name")
    for kind in ("llvm", "schedule", "asm"):
        finished = run("dlc", "--emit", kind, "-o", "-", "--", str(tmp_path / name))
        assert finished.code == 0, finished.err


@pytest.fixture(scope="module")
def library(folder: Path) -> ctypes.CDLL:
    if CC is None:
        pytest.skip("there is no C compiler")
    dlc(folder / "model.dl", "--emit", "shared", "-o", folder / "libmodel.so")
    return ctypes.CDLL(str(folder / "libmodel.so"))


def call(function: Any, *arrays: Array) -> int:
    code: int = function(*(array.ctypes.data_as(ctypes.c_void_p) for array in arrays))
    return code


def test_a_library_works_with_ctypes(library: ctypes.CDLL) -> None:
    y = np.zeros((20, 40), np.float32)
    assert call(library.layer, *inputs(), y) == 0
    np.testing.assert_allclose(y, expected()[0], rtol=1e-5, atol=1e-6)


def test_two_threads_call_at_once(library: ctypes.CDLL) -> None:
    # the arena of this function is larger than what lies on the stack
    def work(seed: int) -> bool:
        x = np.random.default_rng(seed).integers(-2, 3, (100, 100)).astype(np.float32)
        wanted = (x.astype(np.float64) @ x) @ (x @ x)
        result = np.zeros((), np.float32)
        return all(
            call(library.large, x, result) == 0
            and np.isclose(result, wanted.sum(), rtol=1e-3, atol=1)
            for _ in range(5)
        )

    with ThreadPoolExecutor(2) as pool:
        assert all(pool.map(work, range(4)))


def test_only_the_functions_and_the_c_library_are_named(library: ctypes.CDLL, folder: Path) -> None:
    nm = shutil.which("nm")
    if nm is None:
        pytest.skip("there is no nm")
    dlc(folder / "model.dl", "-o", folder / "named.o")
    listed = subprocess.run([nm, folder / "named.o"], capture_output=True, text=True, check=True)
    rows = [line.split()[-2:] for line in listed.stdout.splitlines()]
    public = {name for kind, name in rows if kind.isupper() and kind != "U"}
    assert public == {
        "layer", "layer_gradient", "pick", "several", "constant", "exp_", "large", "model_message",
    }  # fmt: skip
    needed = {name for kind, name in rows if kind == "U"}
    libgcc = {"__extendhfsf2", "__truncsfhf2", "__truncsfbf2"}
    assert needed <= {"malloc", "free", "memset", "memcpy", "fma", "fmaf", *libgcc}, needed


def elf_machine(code: bytes) -> int:
    assert code[:6] == b"\x7fELF\x02\x01", "64 bits, little-endian"
    machine: int = struct.unpack_from("<H", code, 18)[0]
    return machine


@pytest.mark.parametrize(
    ("triple", "machine"),
    [("aarch64-linux-gnu", 183), ("x86_64-linux-gnu", 62), ("riscv64-linux-gnu", 243)],
)
def test_objects_for_other_machines(folder: Path, triple: str, machine: int) -> None:
    dlc(folder / "model.dl", "--target", triple, "-o", folder / "cross.o")
    assert elf_machine((folder / "cross.o").read_bytes()) == machine


@pytest.mark.parametrize("cpu", [[], ["--cpu", "sifive-u74"]])
def test_objects_for_riscv_pass_floats_in_registers(folder: Path, cpu: list[str]) -> None:
    target = ["--target", "riscv64-linux-gnu", *cpu]
    dlc(folder / "model.dl", *target, "-o", folder / "cross.o")
    flags = struct.unpack_from("<I", (folder / "cross.o").read_bytes(), 48)[0]
    assert flags == 0x5, "EF_RISCV_RVC and EF_RISCV_FLOAT_ABI_DOUBLE"
    assembly = dlc(folder / "model.dl", *target, "--emit", "asm", "-o", "-").out
    assert "fmul.s" in assembly and "__mulsf3" not in assembly


@pytest.mark.parametrize(
    ("triple", "magic"),
    [
        ("x86_64-windows-msvc", b"\x64\x86"),
        ("x86_64-w64-mingw32", b"\x64\x86"),
        ("aarch64-pc-windows-msvc", b"\x64\xaa"),
        ("arm64-macos", b"\xcf\xfa\xed\xfe"),
        ("x86_64-apple-macosx14.0", b"\xcf\xfa\xed\xfe"),
        ("aarch64-none-elf", b"\x7fELF"),
        ("x86_64-linux-musl", b"\x7fELF"),
    ],
)
def test_objects_have_the_format_of_the_system(folder: Path, triple: str, magic: bytes) -> None:
    dlc(folder / "model.dl", "--target", triple, "-o", folder / "cross.o")
    assert (folder / "cross.o").read_bytes().startswith(magic)


def test_text_for_aarch64_has_its_vectors_and_nothing_of_x86(folder: Path) -> None:
    target = ["--target", "aarch64-linux-gnu"]
    llvm = dlc(folder / "model.dl", *target, "--emit", "llvm").out
    assert 'target triple = "aarch64-unknown-linux-gnu"' in llvm and "x86" not in llvm
    # vectors of kernels may take several registers
    assert "<4 x float>" in llvm and "<16 x float>" not in llvm
    assembly = dlc(folder / "model.dl", *target, "--emit", "asm", "-o", "-").out
    assert ".4s" in assembly


def test_the_cpu_decides_the_width(folder: Path) -> None:
    target = ["--target", "x86_64-linux-gnu", "--emit", "asm", "-o", "-"]
    widest = {"": "xmm", "x86-64-v3": "ymm", "skylake-avx512": "zmm"}
    for cpu, register in widest.items():
        text = dlc(folder / "model.dl", *target, *(["--cpu", cpu] if cpu else [])).out
        others = {"xmm", "ymm", "zmm"} - {register}
        assert register in text
        assert not any(other in text for other in others if other > register), cpu


@pytest.mark.parametrize("target", [[], ["--target", f"{platform.machine()}-linux-gnu"]])
def test_native_code_runs_here(folder: Path, target: list[str]) -> None:
    if CC is None or platform.system() != "Linux":
        pytest.skip("there is no C compiler, or this is not Linux, which the target names")
    options = ["--emit", "shared", "--cpu", "native", *target]
    dlc(folder / "model.dl", *options, "-o", folder / "native.so")
    y = np.zeros((20, 40), np.float32)
    assert call(ctypes.CDLL(str(folder / "native.so")).layer, *inputs(), y) == 0
    np.testing.assert_allclose(y, expected()[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("level", range(4))
@pytest.mark.parametrize("stage", ["optimizable", "optimized"])
def test_a_text_of_a_stage_becomes_the_same_code(
    folder: Path, tmp_path: Path, stage: str, level: int
) -> None:
    """But for messages, which name lines of the text."""

    def code(path: Path) -> list[str]:
        lines = dlc(path, f"-O{level}", "--emit", "llvm").out.splitlines()
        return [line for line in lines if ' c"' not in line]

    later = tmp_path / "later.dl"
    later.write_text(dlc(folder / "model.dl", f"-O{level}", "--emit", stage).out)
    assert code(later) == code(folder / "model.dl")


def test_kinds(folder: Path) -> None:
    path = folder / "model.dl"
    for stage in ("optimizable", "optimized", "compute"):
        assert f"stage {stage}" in dlc(path, "--emit", stage).out
    schedule = dlc(path, "--emit", "schedule").out
    assert "stage schedule" in schedule
    bitcode = dlc(path, "--emit", "bc", "-o", "-").stdout
    assert bitcode[:4] == b"BC\xc0\xde"
    assert "define i32 @layer(" in dlc(path, "--emit", "llvm").out
    assert dlc(path, "-o", "-").stdout[:4] == b"\x7fELF" or platform.system() != "Linux"


def test_the_default_output_lies_in_the_working_directory(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    dlc(folder / "model.dl", "--header")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.h", "model.o"]


X86, ARM = "x86_64-linux-gnu", "aarch64-linux-gnu"
EMPTY = 'module "m"\n'
POINTER = """\
module "m"
func @f: ((f32) -> f32) -> f32 {
'entry(%g: (f32) -> f32):
    return 1: f32
}
"""


@pytest.mark.parametrize(
    ("text", "arguments", "code", "message"),
    [
        (EMPTY, ["-o", "x.o"], 1, "error: <stdin>: the module has no function with a body"),
        (EMPTY, [], 2, "--emit obj of standard input needs -o"),
        (EMPTY, ["-O9"], 2, "there is no level -O9"),
        (EMPTY, ["--emit", "exe"], 2, "invalid choice: 'exe'"),
        (EMPTY, ["--emit", "shared", "-o", "-"], 2, "a shared library is written to a file"),
        (EMPTY, ["--header", "-o", "-"], 2, "--header needs a file to stand beside"),
        (EMPTY, ["--header", "-o", "a.h"], 2, "two outputs would be written to a.h"),
        (EMPTY, ["--header", "-o", ".."], 2, ".. is a directory"),
        (EMPTY, ["-o", ""], 2, "argument -o: a name is expected, not ''"),
        (EMPTY, ["--target", ""], 2, "argument --target: a name is expected"),
        (EMPTY, ["--cpu", ""], 2, "argument --cpu: a name is expected"),
        (EMPTY, [""], 2, "argument FILE: a name is expected"),
        (EMPTY, ["/"], 2, "--emit obj of / needs -o"),
        (MODEL, ["-o", "tests"], 1, "cannot write tests: is a directory"),
        (MODEL, ["-o", "new/"], 1, "cannot write new/: is a directory"),
        (MODEL, ["--emit", "shared", "-o", "nowhere/x.so"], 1, "there is no directory nowhere"),
        (EMPTY, ["--target", "i686-linux-gnu", "--emit", "llvm"], 1, "with addresses of 64 bits"),
        (EMPTY, ["--target", "armv7-linux-gnueabihf", "--emit", "llvm"], 1, "there is no code for armv7"),
        (EMPTY, ["--target", "x86_64-unknown-linux-gnux32", "--emit", "llvm"], 1, "there is no code for"),
        (EMPTY, ["--target", "nvptx64-nvidia-cuda", "--emit", "llvm"], 1, "there is no code for nvptx64"),
        (EMPTY, ["--target", "\udcff", "--emit", "llvm"], 1, "LLVM has no target '\\udcff'"),
        (MODEL, ["--cpu", "\udcff", "--emit", "llvm"], 1, "LLVM has no CPU '\\udcff'"),
        (EMPTY, ["--target", "foo-bar", "--emit", "asm", "-o", "-"], 1, "LLVM has no target 'foo-bar'"),
        (EMPTY, ["--target", "wasm32", "--emit", "asm", "-o", "-"], 1, "wasm32: the architectures are x86_64"),
        (EMPTY, ["--target", "s390x-linux-gnu", "--emit", "llvm"], 1, "there is no code for s390x-linux-gnu"),
        (EMPTY, ["--cpu", "skylak", "--target", X86, "--emit", "llvm"], 1, "did you mean skylake"),
        (EMPTY, ["--cpu", "i386", "--target", X86, "--emit", "llvm"], 1, "LLVM has no CPU 'i386'"),
        (EMPTY, ["--cpu", "native", "--target", ARM, "--emit", "llvm"], 1, "native is the CPU of this"),
        ("module", ["--emit", "llvm"], 1, "<stdin>, line 1"),
        ('module "m" stage compute', ["--emit", "llvm"], 1, "the module is in stage compute"),
        (POINTER, ["--emit", "llvm"], 1, "has a C interface:\n  @f: a value of type (f32) -> f32"),
        (MODEL, ["-o", "nowhere/x.o"], 1, "cannot write nowhere/x.o: there is no directory nowhere"),
    ],
)  # fmt: skip
def test_messages(text: str, arguments: list[str], code: int, message: str) -> None:
    finished = run("dlc", *arguments, stdin=text)
    assert finished.code == code, finished.err
    assert finished.err.startswith("dlc: ") and message in finished.err, finished.err
    assert "Traceback" not in finished.err


@pytest.mark.parametrize(
    "arguments",
    [
        ["{}/m.dl", "-o", "{}/m.dl"],
        ["{}/m.dl", "-o", "{}/../here/./m.dl"],
        ["{}/m.dl", "-o", "{}/link.o"],
        ["{}/m.dl", "--emit", "optimizable", "-o", "{}/m.dl"],
        ["{}/m.h", "--header", "-o", "{}/m.o"],
    ],
)
def test_no_source_is_written_over(tmp_path: Path, arguments: list[str]) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    for name in ("m.dl", "m.h"):
        (folder / name).write_text(MODEL)
    (folder / "link.o").symlink_to(folder / "m.dl")
    finished = run("dlc", *(argument.format(folder) for argument in arguments))
    assert finished.code == 2 and "would be written over the input" in finished.err
    assert all((folder / name).read_text() == MODEL for name in ("m.dl", "m.h"))
    assert not (folder / "m.o").exists()


def test_no_compiler(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    finished = run("dlc", str(folder / "model.dl"), "--emit", "shared", "-o", str(folder / "x.so"))
    assert finished.code == 1
    assert "a shared library needs a C compiler, and there is no no-such-compiler" in finished.err
    monkeypatch.setenv("CC", f"{sys.executable} -c 'import sys; sys.exit(\"cannot\")'")
    finished = run("dlc", str(folder / "model.dl"), "--emit", "shared", "-o", str(folder / "x.so"))
    assert finished.code == 1 and "cannot link" in finished.err
    monkeypatch.delenv("CC")
    other = "riscv64-linux-gnu"
    finished = run("dlc", str(folder / "model.dl"), "--emit", "shared", "--target", other)
    assert finished.code == 1 and f"set CC, as CC={other}-gcc" in finished.err


RECURSIVE = """\
module "recursive"

func @factorial: (i64) -> i64 {
'entry(%n: i64):
    %c = lessThanOrEqual %n: i64, 1: i64
    conditional %c: bool then 'one() else 'more()
'one():
    return 1: i64
'more():
    %m = subtract %n: i64, 1: i64
    %r = apply @factorial(%m) -> i64
    %p = multiply %n: i64, %r: i64
    return %p: i64
}

func @doubled: (i64, <4 x f32>) -> <4 x f32> {
'entry(%n: i64, %x: <4 x f32>):
    branch 'head(0: i64, %x: <4 x f32>)
'head(%i: i64, %y: <4 x f32>):
    %c = lessThan %i: i64, %n: i64
    conditional %c: bool then 'body() else 'done()
'body():
    %j = add %i: i64, 1: i64
    %z = multiply %y: <4 x f32>, 2: f32
    branch 'head(%j: i64, %z: <4 x f32>)
'done():
    return %y: <4 x f32>
}
"""


@needs_compiler
def test_recursion_and_loops(tmp_path: Path) -> None:
    (tmp_path / "r.dl").write_text(RECURSIVE)
    dlc(tmp_path / "r.dl", "--emit", "shared", "-o", tmp_path / "r.so")
    library = ctypes.CDLL(str(tmp_path / "r.so"))
    number, found = np.array(10), np.array(0)
    assert call(library.factorial, number, found) == 0 and found == 3628800
    x, y = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    assert call(library.doubled, np.array(3), x, y) == 0 and y.tolist() == [0, 8, 16, 24]
    library.recursive_message.restype = ctypes.c_char_p
    code = call(library.factorial, np.array(10**9), found)
    assert b"@factorial is called too deeply" in library.recursive_message(code)
