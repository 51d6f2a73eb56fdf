"""The examples do what they promise, and the README tells the truth: its code runs, its messages are real."""

from __future__ import annotations

import os
import re
import runpy
import shlex
import struct
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.M | re.S)
"""Kind and text of every block of code, in order; what a `python` block prints is the `text` after it."""
TOUR = BLOCKS[[kind for kind, _ in BLOCKS].index("python")][1]


def run(*command: str | Path, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(EXAMPLES)])}
    return subprocess.run(
        [sys.executable, *map(str, command)],
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment,
    )


def check_types(folder: Path, **programs: str) -> str:
    """What mypy --strict says about programs, each shown as model.py."""
    for name, program in programs.items():
        (folder / f"{name}.py").write_text(program)
    (folder / "mypy.ini").write_text(f"[mypy]\nstrict = true\nmypy_path = {ROOT}:{EXAMPLES}\n")
    files = [f"{name}.py" for name in programs]
    cache = folder.parent / "mypy"  # of all tests here: the stubs are read once
    said = run("-m", "mypy", "--cache-dir", cache, *files, folder=folder)
    assert not said.stderr, said.stderr
    return re.sub(r"^\w+\.py:", "model.py:", said.stdout, flags=re.M)


PROGRAMS = {
    "accumulate": r"^16 parts and the whole differ by \de-0[6-9] at most; loss 1\.\d+ to 0\.\d+$",
    "kepler": r"^eccentricity 0\.(59|60)\d\d, phase 0\.(39|40)\d\d from 100 angles",
    "particle": r"^5: the charge at -0\.26652340522\d misses by \d\.\d\de-1\d$",
    "logistic": r"^100% of the \d+ of which the model is sure$",
    "ode": r"^12: +0\.\d+ at \[1\.[01]\d+ +0\.[34]\d+ +0\.[34]\d+ +0\.(09|10)\d*",
    "lstm": r"^1500: error 0\.00\d\d$",
    "tree": r"^(99\.\d|100\.0)% of formulas of 9 to 40 joints read right$",
}
"""Programs about derivatives, and what the last lines of each say."""


@pytest.mark.parametrize("name", ["digits", *PROGRAMS])
def test_the_examples_are_short(name: str) -> None:
    assert len((EXAMPLES / f"{name}.py").read_text().splitlines()) <= 120


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_about_derivatives(name: str) -> None:
    """They check what they found, and have drawn the picture that they say they draw."""
    picture = EXAMPLES / f"out/{name}.png"
    picture.unlink(missing_ok=True)
    finished = run(EXAMPLES / f"{name}.py")
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert re.search(PROGRAMS[name], finished.stdout, re.M), finished.stdout
    draws = "draw_curves(" in (EXAMPLES / f"{name}.py").read_text()
    assert picture.exists() == draws


MODELS = {
    "bundle_adjustment": r"^9: misses by \d\.\d\de-1\d$",
    "convnet": r"^9[6-9]\.\d% of 360 unseen digits read right$",
    "gaussian_process": r"^at 2\.5: 0\.(5|6)\d ± 0\.0\d, at 12: -?\d\.\d\d ± 0\.[4-9]\d$",
    "lstm": r"^1000: error 0\.00\d\d$",
    "mixture": r"^log-likelihood -3\.\d\d\d a point$",
    "mlp": r"^9[6-9]\.\d% of 360 unseen digits read right$",
    "newton": r"^7: loss  21\.23094, gradient \d\.\de-0[89]$",
    "ode": r"^ 80: +0\.[45]\d+ at \[0\.9\d+ +0\.3\d+ ",
    "transformer": r"^400: loss 0\.000\d$",
    "vae": r"^30: bound 2[2-6]\.\d\d$",
}
"""Models beside PyTorch's, and what a line of each says."""


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_models_learn(name: str) -> None:
    finished = run(EXAMPLES / f"models/{name}.py")
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert re.search(MODELS[name], finished.stdout, re.M), finished.stdout


def test_the_page_of_models_counts_their_lines_and_none_is_longer() -> None:
    """All lines, and in brackets those that are not blank."""
    rows = re.findall(
        r"\[(\w+)\.py\].*\| (\d+) \((\d+)\) \| (\d+) \((\d+)\) \|",
        (EXAMPLES / "models/README.md").read_text(),
    )
    assert sorted(name for name, *_ in rows) == sorted(MODELS)
    for name, *shown in rows:
        counts: list[int] = []
        for folder in ("models", "pytorch"):
            lines = (EXAMPLES / folder / f"{name}.py").read_text().splitlines()
            counts += [len(lines), sum(map(bool, lines))]
        assert counts == [*map(int, shown)], name
        ours, ours_not_blank, theirs, theirs_not_blank = counts
        assert ours <= theirs and ours_not_blank <= theirs_not_blank, f"{name}.py is longer"


@pytest.mark.slow
def test_the_learned_reader_of_formulas_knows_logic() -> None:
    """The truth that the formulas of `tree.py` carry is that of Python's own operators."""
    formula = runpy.run_path(str(EXAMPLES / "tree.py"))["formula"]
    names = ("and", "or", "!=")

    def text(rows: Any, part: int) -> str:
        if part < 0:
            return str(bool(part + 2))
        kind, left, right = (int(k) for k in rows[part])
        return f"({text(rows, left)} {names[kind]} {text(rows, right)})"

    rng = np.random.default_rng(1)
    for joints in range(1, 41):
        rows, truth = formula(rng, joints)
        assert len(rows) == joints and eval(text(rows, 0)) == truth


@pytest.mark.slow
def test_digits_are_learned_twice_the_same() -> None:
    out = EXAMPLES / "out"
    weights: list[bytes] = []
    for _ in range(2):
        for file in out.glob("digits.*"):
            file.unlink()
        finished = run(EXAMPLES / "digits.py")
        assert finished.returncode == 0, finished.stderr
        read_right = re.search(
            r"^([\d.]+)% of 360 held-out digits read right", finished.stdout, re.M
        )
        assert read_right and float(read_right[1]) >= 97
        weights.append((out / "digits.safetensors").read_bytes())
        assert (out / "digits.png").read_bytes().startswith(b"\x89PNG")
    assert weights[0] == weights[1]
    assert struct.unpack("<Q", weights[0][:8])[0] < len(weights[0])


@pytest.mark.slow
def test_the_checker_finds_the_mistake_that_is_shown(tmp_path: Path) -> None:
    program = (EXAMPLES / "digits.py").read_text()
    mistaken = re.sub(r"^( *).*# mistake: (.*)$", r"\1\2", program, flags=re.M)
    assert mistaken != program
    errors = check_types(tmp_path, right=program, wrong=mistaken).splitlines()
    assert len(errors) == 2 and errors[1].startswith("Found 1 error")
    assert 'got "Rep[Tensor0D[i64]]", expected "Rep[Tensor1D[i64, Batch]]"' in errors[0]


def test_the_slides() -> None:
    finished = run(EXAMPLES / "slides.py")
    assert finished.returncode == 0, finished.stderr
    staged, differentiated, optimized, numbers = re.split(
        r"^==== .*$", finished.stdout, flags=re.M
    )[1:]
    assert "apply @f(%x, %w, %b)" in staged and "tanh %0.0" in staged
    assert re.search(r"^\[gradient @g .*wrt 1, 2 .*seedable.*\]$", staged, re.M)
    assert "[gradient" not in differentiated and "func @f_bwd" in differentiated
    assert "apply" not in optimized and optimized.count("func @") == 1
    assert len(re.findall(r"differs from NumPy by at most \d\.\de-0[67]", numbers)) == 3


def test_the_tour_is_short() -> None:
    assert len([line for line in TOUR.splitlines() if line.strip()]) <= 40


def test_the_code_of_the_readme_prints_what_it_says(tmp_path: Path) -> None:
    """Each later block continues the tour; an error it ends in is shown without the traceback."""
    program = ""
    for (kind, text), (_, printed) in pairwise(BLOCKS):
        if kind == "python":
            file = tmp_path / "model.py"
            file.write_text((program or TOUR) + text * bool(program))
            program = program or TOUR
            finished = run(file)
            said = finished.stdout + finished.stderr.replace("nnkit.core.errors.", "")
            assert said.endswith(printed) or printed in said, said
            assert (finished.returncode == 0) == ("Traceback" not in finished.stderr)


def test_the_commands_of_the_readme_print_what_it_says(tmp_path: Path) -> None:
    kinds = dict(BLOCKS)
    (tmp_path / "model.dl").write_text(kinds["dlvm"])
    for command in kinds["console"].split("$ ")[1:]:
        line, _, printed = command.partition("\n")
        tool, *arguments = shlex.split(line)
        finished = run("-m", f"nnkit.tools.{tool}", *arguments, folder=tmp_path)
        assert (finished.returncode, finished.stdout) == (0, printed), finished.stderr
    header = (tmp_path / "model.h").read_text()
    (declaration,) = re.findall(r"`(int32_t layer.*?;)`", README)
    assert declaration in header


@pytest.mark.slow
def test_the_mistakes_of_the_readme_are_found(tmp_path: Path) -> None:
    mistakes: dict[str, str] = {}
    messages: list[str] = []
    for (kind, text), (_, said) in pairwise(BLOCKS):
        if kind == "diff":
            removed, added = (re.search(rf"^{sign}(.*\n)", text, re.M) for sign in (r"-", r"\+"))
            assert removed and added and removed[1] in TOUR
            mistakes[f"mistake{len(messages)}"] = TOUR.replace(removed[1], added[1])
            messages.append(said.strip())
    assert mistakes and check_types(tmp_path, right=TOUR).startswith("Success")
    found = check_types(tmp_path, **mistakes)
    assert [message for message in messages if message not in found] == [], found
