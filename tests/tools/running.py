"""Runs the tools in this process, with streams of their own."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from filecheck.main import main as filecheck

from nnkit.tools import dlc, dlopt


def _filecheck(arguments: Sequence[str]) -> int:
    filecheck(["filecheck", *arguments])
    return 0


MAINS: dict[str, Callable[[Sequence[str]], int]] = {
    "dlopt": dlopt.main,
    "dlc": dlc.main,
    "filecheck": _filecheck,
}


@dataclass(frozen=True)
class Finished:
    """A run of a tool: exit code and what it wrote."""

    code: int
    stdout: bytes
    stderr: bytes

    @property
    def out(self) -> str:
        return self.stdout.decode()

    @property
    def err(self) -> str:
        return self.stderr.decode()


def run(tool: str, *arguments: str, stdin: str | bytes = b"", joined: bool = False) -> Finished:
    """What a tool does; `joined` sends errors to stdout, as `2>&1`."""
    given = stdin.encode() if isinstance(stdin, str) else stdin
    streams = [io.BytesIO(given), io.BytesIO(), io.BytesIO()]
    wrapped = [io.TextIOWrapper(stream, "utf-8", write_through=True) for stream in streams]
    read, write, complain = wrapped
    with _standard(read, write, write if joined else complain):
        try:
            code = MAINS[tool](arguments)
        except SystemExit as end:
            code = int(end.code or 0)
    return Finished(code, *(stream.getvalue() for stream in streams[1:]))


def dlopt_of(text: str | bytes, *arguments: str) -> Finished:
    """`dlopt` of a text on standard input."""
    return run("dlopt", *arguments, stdin=text)


@contextmanager
def _standard(*streams: io.TextIOWrapper) -> Iterator[None]:
    saved = sys.stdin, sys.stdout, sys.stderr
    sys.stdin, sys.stdout, sys.stderr = streams
    try:
        yield
    finally:
        sys.stdin, sys.stdout, sys.stderr = saved
