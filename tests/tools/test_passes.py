"""What `dlopt` says of passes: their options, what they changed and saved, and what they were given."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

from nnkit.core.analysis import Analyses
from nnkit.core.ir import Module
from nnkit.core.passes import DeadFunctions, Inline, MatrixChain, ModulePass
from nnkit.tools import optimize, passes
from nnkit.tools.command import UsageError
from nnkit.tools.passes import options_of, pass_of, passes_of
from tests.tools.running import dlopt_of

PROGRAM = """\
module "m"

func @f: (<9 x f32>) -> <9 x f32> {
'entry(%x: <9 x f32>):
    %a = exp %x: <9 x f32>
    %b = exp %x: <9 x f32>
    %c = add %a: <9 x f32>, %b: <9 x f32>
    return %c: <9 x f32>
}

func @g: (<9 x f32>, i64) -> <9 x f32> {
'entry(%x: <9 x f32>, %n: i64):
    %y = for 0: i64 upto %n: i64 carrying %x: <9 x f32> {
    'body(%i: i64, %u: <9 x f32>):
        %v = apply @f(%u) -> <9 x f32>
        yield %v: <9 x f32>
    }
    return %y: <9 x f32>
}
"""


def test_options_of_passes() -> None:
    assert passes_of("inline{small=3},matrix-chain{fast-math}, dead-functions{roots=f,@g}") == [
        Inline(small=3), MatrixChain(fast_math=True), DeadFunctions(roots=("f", "g")),
    ]  # fmt: skip
    assert pass_of("inline", "small=none") == pass_of("inline", "") == Inline()
    assert pass_of("matrix-chain", "fast_math=false") == MatrixChain()
    assert options_of(MatrixChain()) == {"fast-math": False}


@pytest.mark.parametrize("name", sorted(passes.PASSES))
def test_every_option_can_be_written(name: str) -> None:
    a_pass = passes.PASSES[name]
    for key, value in options_of(a_pass).items():
        match value:
            case bool():
                text = str(value).lower()
            case tuple():
                text = ",".join(value)
            case _:
                text = str(value).lower()
        assert pass_of(name, f"{key}={text}") == a_pass


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("matrix-chain{fast}", "has no option 'fast', did you mean 'fast-math'?: its options are fast-math"),
        ("cse{deep}", "the pass 'cse' has no option 'deep': it has none"),
        ("inline{small=9 small=10}", "the pass 'inline' is given its option 'small' twice"),
        ("matrix-chain{fast-math=maybe}", "matrix-chain{fast-math} is true or false, not 'maybe'"),
        ("inline{small=-1}", "inline{small} is a number, not '-1'"),
        ("inline{small=}", "inline{small} is a number, not ''"),
        ("inline{small=" + "9" * 99 + "}", "is a number"),
        ("cse{", "passes are written 'name' or 'name{option=value ...}', not 'cse{'"),
        ("cse}", "passes are written"),
        ("cse{}x", "passes are written"),
        ("{}", "there is no pass ''"),
        ("inlin", "there is no pass 'inlin', did you mean 'inline'?\nthe passes are simplify-cfg, "),
    ],
)  # fmt: skip
def test_mistakes_in_options(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        passes_of(text)


def test_changed_functions_are_printed() -> None:
    said = dlopt_of(PROGRAM, "-p", "cse,cse,dead-functions{roots=f}", "--print-changed").err
    first, second = said.split("// after pass ")[1:]
    assert first.startswith("'cse'\nfunc @f: ") and first.count("exp") == 1 and "@g" not in first
    assert second == "'dead-functions': @g removed\n\n"
    unused = f"{PROGRAM}\nvar @unused: f32\n"
    said = dlopt_of(unused, "-p", "dead-functions{roots=f,g}", "--print-changed").err
    assert said == "// after pass 'dead-functions'\nmodule \"m\"\nstage raw\n\n"


def test_times_of_passes() -> None:
    lines = dlopt_of(PROGRAM, "-p", "cse,dce", "--time-passes").err.splitlines()
    assert [line.split()[0] for line in lines] == ["pass", "cse", "dce", "total"]
    assert [line.split()[-1] for line in lines[1:3]] == ["yes", "no"]


def test_statistics() -> None:
    said = dlopt_of(PROGRAM, "-p", "cse", "--stats").err
    assert [line.split("  ")[0].strip() for line in said.splitlines()[:2]] == ["", "2 functions"]
    assert re.search(r"  9 → 8 +279n → 144n +252n → 180n$", said, re.M)
    assert "n: rounds of loops and recursions" in said and "@f" not in said
    lines = dlopt_of(PROGRAM, "-p", "cse", "--stats", "-v").err.splitlines()
    assert re.fullmatch(r"@f +4 → 3 +279 → 144 +252 → 180", lines[2])
    assert re.fullmatch(r"@g +5 +279n → 144n +252n → 180n", lines[3])


def test_statistics_without_passes_and_of_what_goes() -> None:
    said = dlopt_of(PROGRAM, "--stats").err
    assert re.search(r"2 functions +9 +279n +252n$", said, re.M)
    said = dlopt_of(PROGRAM, "-p", "dead-functions{roots=f}", "--stats", "-v").err
    assert re.search(r"^@g +5 → – +279n → – +252n → –$", said, re.M)
    declared = PROGRAM.replace(PROGRAM[PROGRAM.index("func @g") :], "")
    declared += "[gradient @f]\nfunc @df: (<9 x f32>) -> <9 x f32>\n"
    said = dlopt_of(declared, "--stats").err
    assert "not counted: calls of @df" in said


INVALID_PROGRAMS = Path(__file__).parents[1] / "ir" / "verify"

INVALID = """\
module "m"

func @f: (f32) -> f32 {
'entry(%x: f32):
    %y = square %x: f32
}
"""


@dataclass(frozen=True)
class Trusting(ModulePass):
    """A pass that takes for granted that blocks end."""

    name: ClassVar[str] = "trusting"

    def run(self, module: Module, analyses: Analyses) -> bool:
        return any(not f.entry.terminator.operands for f in module.functions.values())


def test_a_pass_that_was_given_invalid_ir_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passes, "PASSES", {**passes.PASSES, "trusting": Trusting()})
    refused = dlopt_of(INVALID, "-p", "trusting")
    assert refused.code == 1 and "violation" in refused.err and "trusting" not in refused.err
    failed = dlopt_of(INVALID, "-p", "trusting", "--no-verify")
    assert failed.code == 1
    assert (
        "pass 'trusting' cannot work on IR that is not valid: module 'm' has 1 violation"
        in failed.err
    )
    assert "terminator" in failed.err or "ends" in failed.err


@pytest.mark.parametrize("name", sorted(passes.PASSES))
def test_no_pass_fails_somewhere_on_invalid_ir(name: str) -> None:
    for text in (
        INVALID,
        INVALID.replace("square", "return"),
        PROGRAM.replace("%b = exp %x", "%b = exp %c"),
    ):
        finished = dlopt_of(text, "-p", name, "--no-verify")
        assert finished.code in (0, 1), finished.err
        assert (
            finished.code == 0 or "IR that is not valid" in finished.err or "line" in finished.err
        )


@pytest.mark.parametrize("path", sorted(INVALID_PROGRAMS.glob("*.dl")), ids=lambda path: path.stem)
@pytest.mark.parametrize("runner", ["evaluator", "jit"])
def test_nothing_runs_unverified(path: Path, runner: str) -> None:
    text = path.read_text()
    for name in re.findall(r"func (@\w+)", text):
        for arguments in ("()", "(1)"):
            finished = dlopt_of(text, "--no-verify", "--run", name + arguments, "--with", runner)
            assert finished.code in (0, 1), finished.err


def test_what_a_call_does_not_need_may_be_invalid() -> None:
    text = PROGRAM + INVALID.replace("@f", "@wrong").removeprefix('module "m"')
    assert dlopt_of(text, "--run", "@f(1)").code == 1
    wrong = dlopt_of(text, "--no-verify", "--run", "@wrong(1)")
    assert wrong.code == 1 and "@wrong: the block" in wrong.err, wrong.err
    finished = dlopt_of(text, "--no-verify", "--run", "@f(1)")
    assert finished.code == 0, finished.err


def test_a_failing_pass_on_valid_ir_is_a_bug_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(module: Module, pipeline: object, **_: object) -> None:
        raise KeyError("oops")

    monkeypatch.setattr(optimize, "run_pipeline", fail)
    for options in ([], ["--no-verify"]):
        finished = dlopt_of(PROGRAM, "-p", "cse", *options)
        assert finished.code == 3 and "KeyError: 'oops'" in finished.err
