"""`docs/functions.md` is what `docs/generate_functions.py` writes now, and has every public name, with an example."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import nnkit

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "functions.md"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """The page as it would be written now, and what the generator says of it; it runs the examples."""
    path = tmp_path_factory.mktemp("docs") / "functions.md"
    generator = str(ROOT / "docs" / "generate_functions.py")
    run = subprocess.run([sys.executable, generator, str(path)], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return path.read_text(), run.stderr


def test_the_page_is_up_to_date(written: tuple[str, str]) -> None:
    assert written[0] == PAGE.read_text(), "run python docs/generate_functions.py"


def test_every_name_has_a_sentence_and_an_example_that_runs(written: tuple[str, str]) -> None:
    assert written[1] == ""  # else it says which one lacks what


def test_the_page_has_every_public_name() -> None:
    public: set[str] = set()
    for name in {*nnkit.__all__} - {"__version__"}:
        value = getattr(nnkit, name)
        is_module = isinstance(value, ModuleType)
        public |= {f"{name}.{each}" for each in value.__all__} if is_module else {name}
    shown = set(re.findall(r"^(?:### |\| )`([\w.]+)", PAGE.read_text(), re.MULTILINE))
    assert public <= shown, sorted(public - shown)


def test_arguments_with_a_default_are_accepted_by_name() -> None:
    """`where` is NumPy's, which takes its choices by position; `staged` and `Bool` are no functions of arguments."""
    refused: set[str] = set()
    for path, shown in re.findall(r"^### `([\w.]+)\((.*)\)`", PAGE.read_text(), re.MULTILINE):
        value: Any = nnkit
        for part in path.split("."):
            value = getattr(value, part, None)
        if path not in ("where", "staged", "Bool") and callable(value):
            taken = inspect.signature(value).parameters
            for name in re.findall(r"(\w+)=", shown):
                if taken[name].kind is inspect.Parameter.POSITIONAL_ONLY:
                    refused.add(f"{path}({name}=)")
    assert not refused
