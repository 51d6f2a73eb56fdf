"""What both tools share: options, and every error as a message and an exit code.

| code | |
|---|---|
| 0 | done |
| 1 | the input is wrong, or asks for what NNKit does not do: a located message on stderr |
| 2 | the command line is wrong |
| 3 | a bug of ours |
| 130, 141 | interrupted; nobody reads the output any more |

This file, `files` and the two that read options import nothing of NNKit but the errors, so that `--help` and
mistakes in a command line answer at once.  `load` brings the rest.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from ..core.errors import InternalError, NNKitError, ParseError, VerifyError

_YOUNG = 100_000
"""How many new objects cyclic garbage is looked for after: IR lives long, and is looked through in vain.

Measured on 10,000 instructions, which are brought to stage compute in 8.6 s rather than 12.0 s, with 16 % more memory.
"""


class UsageError(Exception):
    """The command line asks for something that does not exist or does not fit together."""


class InputError(NNKitError, ValueError):
    """A file cannot be read or written."""


def level_of(text: str) -> int:
    """What follows -O as a number.  Raises: UsageError when there is no such level."""
    if text not in ("0", "1", "2", "3"):
        raise UsageError(f"there is no level -O{text}: the levels are -O0 to -O3")
    return int(text)


class OptionParser(argparse.ArgumentParser):
    """The options of a tool, whose help ends with `examples`; errors are exceptions."""

    def __init__(self, tool: str, description: str, examples: str) -> None:
        super().__init__(
            prog=tool,
            description=description,
            epilog=f"examples:\n{examples}\n{_EXIT_CODES}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )

    def error(self, message: str) -> NoReturn:
        raise UsageError(message)


_PIPE_CLOSED, _INTERRUPTED = 128 + 13, 128 + 2
"""The codes of shells for programs that SIGPIPE and SIGINT ended."""

_EXIT_CODES = "exit codes: 0 done, 1 wrong input, 2 wrong command line, 3 a bug of NNKit\n"


def load(name: str) -> Any:
    """A module of this package that brings more of NNKit than its options need."""
    return import_module(f".{name}", __package__)


def run_tool(
    parser: OptionParser, work: Callable[[argparse.Namespace], int], argv: Sequence[str] | None
) -> int:
    """`work` on the options that `argv` gives, its errors as messages on stderr; the exit code."""
    tool = parser.prog
    thresholds = gc.get_threshold()
    gc.set_threshold(_YOUNG)
    try:
        code = work(parser.parse_args(argv))
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except BrokenPipeError:
        _leave_stdout()
        return _PIPE_CLOSED
    except KeyboardInterrupt:
        complain(tool, "interrupted")
        return _INTERRUPTED
    except UsageError as error:
        complain(tool, f"{error}\ntry '{tool} --help'")
        return 2
    except Exception as error:
        return report(tool, error)
    finally:
        gc.set_threshold(*thresholds)


def report(tool: str, error: Exception, file: str = "") -> int:
    """Say on stderr what is wrong, with `file` where the message does not name it; the exit code."""
    place = "" if not file or file in str(error) else f"{file}: "
    match error:
        case InternalError():
            cause = error.__cause__
            inside = f"  {_innermost(cause)}\n" if isinstance(cause, Exception) else ""
            complain(tool, f"internal error: {place}{_message(error)}\n{inside}{_REPORT}")
            return 3
        case NNKitError():
            complain(tool, f"error: {place}{_message(error)}")
            return 1
        case MemoryError():
            complain(tool, f"error: {place}there is not enough memory for this program")
            return 1
        case _:
            problem = f"{type(error).__name__}: {error}"
            complain(tool, f"internal error: {place}{problem}\n  {_innermost(error)}\n{_REPORT}")
            return 3


_REPORT = "this is a bug of NNKit: please report it with the input that shows it"


def _message(error: NNKitError) -> str:
    """What an error says, its notes included, with types as they are written in the IR."""
    notes: Sequence[str] = getattr(error, "__notes__", ())
    text = str(error)
    if not isinstance(error, ParseError | VerifyError):  # which show lines of the text
        spelling = import_module("..core.text.spelling", __package__)  # late: it needs NumPy
        text = spelling.in_text_form(text)
    return "\n".join([text, *notes])


def complain(tool: str, message: str) -> None:
    """Write a message to stderr, whatever characters that can show."""
    print_error(f"{tool}: {message}\n")


def print_error(text: str) -> None:
    """Write `text` to stderr, escaping what its encoding lacks."""
    if sys.stderr is not None:
        encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
        sys.stderr.write(text.encode(encoding, "backslashreplace").decode(encoding))
        sys.stderr.flush()


def _leave_stdout() -> None:
    """Let nothing more go to a pipe that is closed, not even when Python ends and flushes."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
    except (OSError, ValueError):
        pass


def _innermost(error: BaseException) -> str:
    """Where an unexpected error was raised."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    if traceback is None:
        return "nowhere"
    code = traceback.tb_frame.f_code
    return f"{Path(code.co_filename).name}:{traceback.tb_lineno}, in {code.co_name}"
