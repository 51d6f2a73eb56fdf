"""The plugin for mypy, by one run over a program whose marked lines say what is flagged."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).parent / "typing" / "programs.py"
ROOT = Path(__file__).parent.parent.parent.parent
CONFIG = f"[mypy]\nstrict = true\nmypy_path = {ROOT}\nplugins = nnkit.mypy\n"


def test_the_plugin_flags_exactly_the_marked_lines(tmp_path: Path) -> None:
    (tmp_path / "mypy.ini").write_text(CONFIG)
    command = [sys.executable, "-m", "mypy", "--no-error-summary", "--cache-dir", "cache"]
    run = subprocess.run([*command, str(PROGRAM)], capture_output=True, text=True, cwd=tmp_path)
    assert not run.stderr, run.stderr
    printed = re.findall(r"programs\.py:(\d+)", run.stdout)
    assert max(map(printed.count, printed)) <= 10  # lines of output
    for mark, kind in (("M", "error"), ("N", "note")):
        flagged: dict[int, str] = {}
        of_kind = rf"programs\.py:(\d+): {kind}: (.*)$"
        for line, words in re.findall(of_kind, run.stdout, re.MULTILINE):
            flagged[int(line)] = f"{flagged.get(int(line), '')} {words}"
        marked = {
            number: found[1]
            for number, line in enumerate(PROGRAM.read_text().splitlines(), 1)
            if (found := re.search(rf"# {mark}: (.*?)(  #.*)?$", line))
        }
        assert kind == "note" or flagged.keys() == marked.keys(), run.stdout
        for number, words in marked.items():
            assert words in flagged[number], run.stdout
