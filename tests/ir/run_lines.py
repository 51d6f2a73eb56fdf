"""The RUN lines of a program, as lit has them, run in this process.

    // RUN: dlopt %s -p cse | filecheck %s
    // RUN: not dlopt %s 2>&1 | filecheck %s --check-prefix=ERROR

A line is a pipe of `dlopt`, `dlc` and `filecheck`, each perhaps behind `not`; `%s` is the file, `%t` a name for a
file to write.  A line that ends with a backslash goes on in the next RUN line.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from tests.tools.running import MAINS, Finished, run

_RUN = re.compile(r"RUN:(.*)")


@dataclass(frozen=True)
class RunLine:
    """One command of a file, continued lines joined."""

    path: Path
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path.stem}:{self.line}"


def run_lines(path: Path) -> list[RunLine]:
    """The commands in a file."""
    found: list[RunLine] = []
    pending = ""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = _RUN.search(line)
        if match is None:
            continue
        pending += match[1].strip()
        if pending.endswith("\\"):
            pending = f"{pending[:-1]} "
        else:
            found.append(RunLine(path, number, pending))
            pending = ""
    assert not pending, f"{path}: the last RUN line goes on"
    return found


def execute(line: RunLine, folder: Path) -> None:
    """Run a command.  Raises: AssertionError when one part of the pipe fails, or does not in spite of `not`."""
    stdin = b""
    for part in _parts(line.text.replace("%s", str(line.path)).replace("%t", str(folder / "t"))):
        inverted = part[0] == "not"
        tool, *arguments = part[inverted:]
        assert tool in MAINS, f"{line}: {tool} cannot be run here"
        joined = "2>&1" in arguments
        arguments = [argument for argument in arguments if argument != "2>&1"]
        finished = run(tool, *arguments, stdin=stdin, joined=joined)
        assert (finished.code != 0) == inverted, _failure(line, part, finished)
        stdin = finished.stdout


def _parts(text: str) -> list[list[str]]:
    lexer = shlex.shlex(text, posix=True, punctuation_chars="|")
    lexer.whitespace_split = True
    parts: list[list[str]] = [[]]
    for token in lexer:
        if token == "|":
            parts.append([])
        else:
            parts[-1].append(token)
    assert all(parts), f"a part of the pipe is empty: {text}"
    return parts


def _failure(line: RunLine, part: list[str], finished: Finished) -> str:
    return f"{line}: {' '.join(part)} ended with {finished.code}\n{finished.out}\n{finished.err}"
