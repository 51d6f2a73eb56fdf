"""What the tools cost to start: which modules a run loads, and the time of a process."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
TEXT = """\
module "m"

func @f: (f32) -> f32 {
'entry(%x: f32):
    %y = square %x: f32
    return %y: f32
}
"""
LANGUAGE = ["nnkit.staging", "nnkit.callables", "nnkit.tensors"]
NATIVE = ["nnkit.jit", "llvmlite"]
GENERATION = [
    "nnkit.core.driver.lowering",
    "nnkit.core.compute.generate",
    "nnkit.core.schedule.plan",
]
OPTIMIZATION = ["nnkit.core.passes", "nnkit.core.autodiff.reverse", "nnkit.core.evaluate"]
LEFT_OUT = {
    "dlopt m.dl": [*LANGUAGE, *NATIVE, *GENERATION, *OPTIMIZATION],
    "dlopt m.dl -O2": [*LANGUAGE, *NATIVE, *GENERATION],
    "dlopt m.dl -p cse,dce --verify-each --stats": [*LANGUAGE, *NATIVE, *GENERATION],
    "dlopt m.dl --run @f(2)": [*LANGUAGE, *NATIVE, *GENERATION],
    "dlopt m.dl --stage compute": [*LANGUAGE, *NATIVE],
    "dlc m.dl -o m.o": LANGUAGE,
}
"""What a command does not load, by the names of modules or packages."""
NUMPY = 0.15
"""Seconds that a process computes which only imports NumPy, on a shared core of a machine for which the limits are."""
NOTHING_LOADED = ["dlopt --help", "dlc --help", "dlopt --frobnicate", "dlopt - -", "dlc -O9 m.dl"]
"""Commands that are answered by the options alone."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small module, and beside it the compiled code of all that is run."""
    folder = tmp_path_factory.mktemp("start")
    (folder / "m.dl").write_text(TEXT)
    return folder


def start(command: str, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """A process of its own, whose Python files are compiled at most once."""
    tool, *arguments = command.split()
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"PYTHONPYCACHEPREFIX": str(folder / "compiled"), "PYTHONPATH": str(ROOT)}
    started = [sys.executable, *options, "-m", f"nnkit.tools.{tool}", *arguments]
    return subprocess.run(started, capture_output=True, text=True, cwd=folder, env=environment)


def loaded(command: str, folder: Path) -> set[str]:
    """The modules that a command imports; it has run as wanted, or refuses the command line."""
    finished = start(command, folder, "-X", "importtime")
    expected = 0 if command in LEFT_OUT or "--help" in command else 2
    assert finished.returncode == expected, finished.stderr[-1000:]
    return set(re.findall(r"^import time:.*\| +(\S+)$", finished.stderr, re.MULTILINE))


@pytest.mark.parametrize("command", NOTHING_LOADED)
def test_options_are_answered_without_the_compiler(command: str, folder: Path) -> None:
    names = loaded(command, folder)
    assert "numpy" not in names and "dataclasses" not in names
    ours = {name for name in names if name.startswith("nnkit.") and ".tools" not in name}
    assert ours == {"nnkit.core", "nnkit.core.errors", "nnkit.core.stage"}


@pytest.mark.parametrize("command", LEFT_OUT)
def test_a_command_loads_what_it_needs(command: str, folder: Path) -> None:
    names = loaded(command, folder)
    assert "nnkit.core.text.parser" in names
    unneeded = [
        name
        for name in sorted(names)
        for left_out in LEFT_OUT[command]
        if f"{name}.".startswith(f"{left_out}.")
    ]
    assert not unneeded


def seconds(command: str, folder: Path) -> float:
    """Of a tool, when it has run as wanted."""

    def run() -> None:
        finished = start(command, folder)
        assert finished.returncode == 0, finished.stderr

    return seconds_of(run)


def seconds_of(process: Callable[[], object]) -> float:
    """The least of some processes, by the time they compute: others may use the machine too."""
    times: list[float] = []
    for _ in range(9):
        before = os.times()
        process()
        after = os.times()
        used = after.children_user + after.children_system
        times.append(used - before.children_user - before.children_system)
    return min(times)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "limit", "idle"),
    [
        ("dlopt --help", 0.15, 0.02),
        ("dlc --help", 0.15, 0.02),
        ("dlopt m.dl", 0.45, 0.15),
        ("dlopt m.dl -O2", 0.45, 0.20),
        ("dlopt m.dl --run @f(2)", 0.45, 0.20),
    ],
)
def test_a_process_is_done_at_once(command: str, limit: float, idle: float, folder: Path) -> None:
    """0.3 s are promised; a shared core counts up to half as much again for the same work, a slow one more."""
    loads_numpy = [sys.executable, "-c", "import numpy"]
    slow = seconds_of(lambda: subprocess.run(loads_numpy, check=True)) / NUMPY
    assert seconds(command, folder) < limit * max(1.0, slow), f"{idle} s on an idle machine"
