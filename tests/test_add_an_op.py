"""`docs/add-an-op.md`, followed literally on a copy of the tree: the op it adds is compiled, and obeys the laws."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "add-an-op.md").read_text()
STEP = re.compile(r"^In `([^`]+)`, before `([^`]+)`\n\n```\w+\n(.*?)```$", re.M | re.S)
COPIED = ("core", "jit", "staging", "nnkit", "stubs", "docs", "tests", "pyproject.toml")
LAWS = (
    "tests/core/ops/test_every_op.py",
    "tests/core/ops/test_transcendental.py",
    "tests/staging/test_primitive.py",
    "tests/jit/emit/test_scalar.py",
    "tests/jit/emit/test_math.py",
    "tests/nnkit/test_derivatives_at_edges.py",
    "tests/test_ops_page.py",
)
GENERATORS = ("stubs/generate.py", "docs/generate_ops.py", "docs/generate_functions.py")
USE = """
import numpy as np, nnkit as nk
exp10 = nk.staged(lambda x: nk.exp10(x))
slope = nk.gradient(of=exp10, wrt=0)
x = np.array([-2.0, 0.0, 3.0])
np.testing.assert_allclose(np.asarray(exp10(x)), [0.01, 1, 1000])
np.testing.assert_allclose(np.asarray(slope(x)), np.log(10) * np.array([0.01, 1, 1000]))
"""


def run(folder: Path, *arguments: str) -> str:
    """What Python prints in the copy, which it imports."""
    environment = os.environ | {"PYTHONPATH": str(folder)}
    command = [sys.executable, *arguments]
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def test_the_page_leads_to_an_op_that_obeys_the_laws(tmp_path: Path) -> None:
    for name in COPIED:
        if (ROOT / name).is_dir():
            # with what is compiled already, but for what another process is just writing
            ignored = shutil.ignore_patterns("*.pyc.*", "nnkit.egg-info")
            shutil.copytree(ROOT / name, tmp_path / name, symlinks=True, ignore=ignored)
        else:
            shutil.copy(ROOT / name, tmp_path / name)
    steps = STEP.findall(PAGE)
    for name, line, code in steps:
        path = tmp_path / name
        text = path.read_text()
        assert len(re.findall(f"^{re.escape(line)}", text, re.M)) == 1, f"{line!r} in {name}"
        gap = "\n\n" if code.startswith(("class", "def")) else ""
        path.write_text(text.replace(f"\n{line}", f"\n{code}{gap}{line}"))
    assert len({name for name, _, _ in steps}) <= 5
    for generator in GENERATORS:
        run(tmp_path, generator)
    for name in ("nnkit/__init__.py", "nnkit/__init__.pyi", "docs/ops.md", "docs/functions.md"):
        assert "exp10" in (tmp_path / name).read_text(), name
    run(tmp_path, "-c", USE)
    found = run(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "exp10", *LAWS)
    assert int(re.findall(r"(\d+) passed", found)[-1]) > 10, found
