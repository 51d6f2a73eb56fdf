"""What both tools share: files in and out, and every error as a message and an exit code.

| code | |
|---|---|
| 0 | done |
| 1 | the input is wrong, or asks for what NNKit does not do: a located message on stderr |
| 2 | the command line is wrong |
| 3 | a bug of ours |
| 130, 141 | interrupted; nobody reads the output any more |

This file and the two that read options import nothing of NNKit but the errors, so that `--help` and mistakes
in a command line answer at once.  `load` brings the rest.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from ..core.errors import InternalError, NNKitError

STDIN = "-"
"""The name of standard input, and of standard output."""


class UsageError(Exception):
    """The command line asks for something that does not exist or does not fit together."""


class InputError(NNKitError, ValueError):
    """A file cannot be read or written."""


def load(name: str) -> Any:
    """A module of this package that brings more of NNKit than its options need."""
    return import_module(f".{name}", __package__)


def run_tool(tool: str, work: Callable[[], int]) -> int:
    """`work()`, its errors as messages on stderr; the exit code."""
    try:
        code = work()
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except BrokenPipeError:
        _leave_stdout()
        return 141
    except KeyboardInterrupt:
        complain(tool, "interrupted")
        return 130
    except UsageError as error:
        complain(tool, f"{error}\ntry '{tool} --help'")
        return 2
    except Exception as error:
        return report(tool, error)


def report(tool: str, error: Exception, file: str = "") -> int:
    """Say on stderr what is wrong, with `file` where the message does not name it; the exit code."""
    place = "" if not file or file in str(error) else f"{file}: "
    match error:
        case InternalError():
            complain(tool, f"internal error: {place}{error}\n{_REPORT}")
            return 3
        case NNKitError():
            complain(tool, f"error: {place}{error}")
            return 1
        case MemoryError():
            complain(tool, f"error: {place}there is not enough memory for this program")
            return 1
        case _:
            problem = f"{type(error).__name__}: {error}"
            complain(tool, f"internal error: {place}{problem}\n  {_innermost(error)}\n{_REPORT}")
            return 3


_REPORT = "this is a bug of NNKit: please report it with the input that shows it"


def complain(tool: str, message: str) -> None:
    """Write a message to stderr, whatever characters that can show."""
    print_error(f"{tool}: {message}\n")


def print_error(text: str) -> None:
    """Write `text` to stderr, escaping what its encoding lacks."""
    if sys.stderr is not None:
        encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
        sys.stderr.write(text.encode(encoding, "backslashreplace").decode(encoding))
        sys.stderr.flush()


def read_text(path: str) -> str:
    """The text of a file, `-` being stdin.  Raises: InputError when there is no UTF-8 text to be had."""
    try:
        data = _read_stdin() if path == STDIN else Path(path).read_bytes()
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {shown(path)}: {_reason(error)}") from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        where = f"byte 0x{data[error.start]:02x} at offset {error.start}"
        raise InputError(f"{shown(path)} is not UTF-8 text: {where}") from None


def write_output(path: str, data: str | bytes) -> None:
    """Write text as UTF-8, or bytes, to a file or, for `-`, to stdout.  Raises: InputError."""
    if path == STDIN:
        _write_stdout(data)
        return
    encoded = data.encode() if isinstance(data, str) else data
    try:
        Path(path).write_bytes(encoded)
    except (OSError, ValueError) as error:
        raise InputError(f"cannot write {path}: {_reason(error)}") from None


def shown(path: str) -> str:
    """What messages call a file."""
    return "<stdin>" if path == STDIN else path


def _read_stdin() -> bytes:
    if sys.stdin is None:
        raise OSError("standard input is closed")
    stream = getattr(sys.stdin, "buffer", None)
    data: bytes = stream.read() if stream is not None else sys.stdin.read().encode()
    return data


def _write_stdout(data: str | bytes) -> None:
    if sys.stdout is None:
        raise InputError("cannot write to standard output: it is closed")
    stream = getattr(sys.stdout, "buffer", None)
    if stream is None:
        sys.stdout.write(data if isinstance(data, str) else data.decode("latin-1"))
        return
    sys.stdout.flush()
    try:
        stream.write(data.encode() if isinstance(data, str) else data)
        stream.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise InputError(f"cannot write to standard output: {_reason(error)}") from None


def _leave_stdout() -> None:
    """Let nothing more go to a pipe that is closed, not even when Python ends and flushes."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
    except (OSError, ValueError):
        pass


def _reason(error: OSError | ValueError) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror[:1].lower() + error.strerror[1:]
    return str(error)


def _innermost(error: Exception) -> str:
    """Where an unexpected error was raised."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    if traceback is None:
        return "nowhere"
    code = traceback.tb_frame.f_code
    return f"{Path(code.co_filename).name}:{traceback.tb_lineno}, in {code.co_name}"
