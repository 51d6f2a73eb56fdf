"""The stubs of llvmlite say what llvmlite is."""

import subprocess
import sys
from pathlib import Path

from nnkit.jit import llvm

ROOT = Path(llvm.__file__).parents[2]


def test_stubs_match_llvmlite() -> None:
    command = [sys.executable, "-m", "mypy.stubtest", "llvmlite", "--ignore-missing-stub"]
    done = subprocess.run(
        command, cwd=ROOT, env={"MYPYPATH": "stubs"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
