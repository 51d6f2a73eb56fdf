"""`dlopt` as a process: files and pipes, and errors without tracebacks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nnkit.core.errors import InternalError
from nnkit.core.ir import Module
from nnkit.core.passes import ALL
from nnkit.tools import optimize
from tests.tools.running import dlopt_of, run

TEXT = """\
module "m"

func @f: (f32) -> f32 {
'entry(%x: f32):
    %y = square %x: f32
    return %y: f32
}
"""
ROOT = Path(__file__).parent.parent.parent


def start(*arguments: str, tool: str = "dlopt") -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", f"nnkit.tools.{tool}", *arguments]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, cwd=ROOT)


def test_reads_stdin_and_writes_stdout() -> None:
    for arguments in ([], ["-"]):
        finished = dlopt_of(TEXT, *arguments)
        assert finished.code == 0 and not finished.err
        assert "%y = square %x: f32" in finished.out
        assert dlopt_of(finished.out).out == finished.out


def test_line_ends_marks_and_encodings() -> None:
    plain = dlopt_of(TEXT).out
    assert dlopt_of(TEXT.replace("\n", "\r\n")).out == plain
    assert dlopt_of(b"\xef\xbb\xbf" + TEXT.encode()).out == plain
    assert dlopt_of(TEXT.replace("%y", "%größe")).out == plain.replace("%y", "%größe")
    finished = dlopt_of(TEXT.encode("utf-16"))
    assert finished.code == 1
    assert finished.err == "dlopt: error: <stdin> is not UTF-8 text: byte 0xff at offset 0\n"


def test_several_files_go_on_after_one_that_fails(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.dl").write_text(TEXT.replace('"m"', f'"{name}"'))
    (tmp_path / "b.dl").write_text("module")
    finished = run("dlopt", *(str(tmp_path / f"{name}.dl") for name in "abc"))
    assert finished.code == 1
    assert finished.out.index('module "a"') < finished.out.index('module "c"')
    assert f"{tmp_path}/b.dl" in finished.err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--frobnicate"], 2, "unrecognized arguments: --frobnicate"),
        (["--stage", "last"], 2, "invalid choice: 'last'"),
        (["-p", ""], 2, "there is no pass ''"),
        (["-p", "dce,,cse"], 2, "there is no pass ''"),
        (["-p", "diferentiate"], 2, "did you mean 'differentiate'?"),
        (["-O"], 2, "expected one argument"),
        (["-", "-"], 2, "standard input can be read once"),
        (["-o", "a", "-o", "b"], 2, "-o is given 2 times for 1 inputs"),
        (["-o", ""], 2, "argument -o: a name is expected, not ''"),
        ([""], 2, "argument FILE: a name is expected, not ''"),
        (["a", "b", "-o", "c", "-o", "./c"], 2, "two outputs would be written to ./c"),
        (["a", "b", "-o", "b", "-o", "c"], 2, "b would be written over the input b"),
        (["-o", "nowhere/a"], 1, "cannot write nowhere/a: there is no directory nowhere"),
        (["--with", "jit"], 2, "give one with --run"),
        (["--run", "@f(1)", "--tolerance", "1"], 2, "--tolerance is for --with both"),
        (
            ["--run", "@f(1)", "--with", "both", "--tolerance", "-1"],
            2,
            "a number of ulps is expected",
        ),
        (
            ["--run", "@f(1)", "--with", "both", "--tolerance", "x"],
            2,
            "a number of ulps is expected",
        ),
        (["/"], 1, "cannot read /: is a directory"),
        (["a\0b"], 1, "cannot read"),
        (["x" * 5000], 1, "file name too long"),
        (["-o", "/"], 1, "cannot write /: is a directory"),
        (["--run", ""], 1, "a call of a function @… was expected"),
        (["--run", "@f(1" + "(" * 10_000], 1, "was expected"),
        (["--run", "@f(1e999)"], 1, "is beyond every element type"),
        (["--run", "@f(1: $Missing)"], 1, "the module has no type $Missing"),
    ],
)
def test_messages(arguments: list[str], code: int, message: str) -> None:
    finished = dlopt_of(TEXT, *arguments)
    assert finished.code == code, finished.err
    assert finished.err.startswith("dlopt: ") and message in finished.err, finished.err


def test_a_file_may_be_written_over_by_its_own_result(tmp_path: Path) -> None:
    file = tmp_path / "m.dl"
    file.write_text(TEXT.replace("    %y", "  %y"))
    finished = run("dlopt", str(file), "-o", str(file))
    assert finished.code == 0, finished.err
    assert file.read_text() == dlopt_of(TEXT).out
    devices = run("dlopt", str(file), str(file), "-o", os.devnull, "-o", os.devnull)
    assert devices.code == 0, devices.err


def test_lines_of_standard_input_are_shown() -> None:
    finished = dlopt_of(TEXT.replace("return", "%z = exp"))
    assert finished.code == 1
    assert "    at: <stdin>:4  'entry(%x: f32):\n                   ^^^^^^" in finished.err
    finished = dlopt_of(TEXT.replace("square %x: f32", "add %x: f32, <1, 2>: <2 x f64>"))
    assert "<stdin>, line 5, column" in finished.err and "<2 x f64>" in finished.err
    assert "f64[2]" not in finished.err, "types are spelled as in the text"


def test_every_pass_has_a_name_of_its_own_that_the_tool_takes() -> None:
    assert set(optimize.PASSES) == {each.name for each in ALL} | {"differentiate"}
    assert len(optimize.PASSES) == len(ALL) + 1
    finished = dlopt_of(TEXT, *(f"-p{name}" for name in optimize.PASSES), "--verify-each")
    assert finished.code == 0, finished.err


def test_help_has_examples() -> None:
    for tool in ("dlopt", "dlc"):
        finished = run(tool, "--help")
        assert finished.code == 0 and "examples:" in finished.out
        options = [word for word in finished.out.split() if word.startswith("--")]
        assert len(options) > 4


def test_a_bug_of_ours_is_said_to_be_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(module: Module, *_: object, **__: object) -> None:
        raise RecursionError("too deep")

    monkeypatch.setattr(optimize, "transform", broken)
    finished = dlopt_of(TEXT, "-O2")
    assert finished.code == 3
    assert "dlopt: internal error: <stdin>: RecursionError: too deep" in finished.err
    assert "test_dlopt.py:" in finished.err and "please report it" in finished.err

    def refused(module: Module, *_: object, **__: object) -> None:
        raise InternalError("after pass 'cse': it is broken")

    monkeypatch.setattr(optimize, "transform", refused)
    finished = dlopt_of(TEXT, "-O2")
    assert finished.code == 3
    assert "internal error: <stdin>: after pass 'cse': it is broken" in finished.err


def test_a_closed_pipe_ends_the_process_quietly() -> None:
    process = start()
    assert process.stdin and process.stdout and process.stderr
    process.stdout.close()
    process.stdin.write(TEXT.encode())
    process.stdin.close()
    assert process.wait(30) == 141
    assert process.stderr.read() == b""
    process.stderr.close()


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_an_interrupt_ends_the_process_with_a_word() -> None:
    # what runs in the background of a shell ignores interrupts, and hands that on
    ours = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        process = start()
    finally:
        signal.signal(signal.SIGINT, ours)
    time.sleep(2)  # it waits for input by then
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert errors == b"dlopt: interrupted\n"


IMPOSSIBLE = (
    TEXT
    + """
func @g: (f32) -> f32 {
'entry(%x: f32):
    %y = trigamma %x: f32
    return %y: f32
}

[gradient @g wrt 0]
func @g_grad: (f32) -> f32

func @needs_it: (f32) -> f32 {
'entry(%x: f32):
    %y = apply @g_grad(%x): (f32) -> f32
    return %y: f32
}

[gradient @f wrt 0]
func @slope: (f32) -> f32
"""
)


@pytest.mark.parametrize("runner", ["evaluator", "jit", "both"])
@pytest.mark.parametrize(
    "passes",
    [
        "",
        "-O0",
        "-O1",
        "-O2",
        "-O3",
        "-p differentiate",
        "-O2 --stage optimizable",
        "-O2 --stats -v",
    ],
)
def test_a_derivative_that_cannot_be_made_is_no_obstacle_to_calls_of_others(
    passes: str, runner: str
) -> None:
    calls = ["--run", "@f(3)", "--run", "@slope(3)", "--with", runner]
    finished = dlopt_of(IMPOSSIBLE, *passes.split(), *calls)
    assert (finished.code, finished.out) == (0, "9.0: f32\n6.0: f32\n"), finished.err


@pytest.mark.parametrize(
    "options", [["--run", "@needs_it(1)"], ["--run", "@f(3)", "--print-ir"], []]
)
def test_a_derivative_that_cannot_be_made_is_one_to_what_needs_it(options: list[str]) -> None:
    """To a call, and to the module where it is printed."""
    finished = dlopt_of(IMPOSSIBLE, "-O2", *options)
    assert finished.code == 1 and "trigamma cannot be differentiated" in finished.err, finished.err
