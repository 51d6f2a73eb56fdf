"""Files in and out: texts, outputs that may not be written, and what messages call them."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from .command import InputError, UsageError

STDIN = "-"
"""The name of standard input, and of standard output."""


def file_name(text: str) -> str:
    """The type of an option that names something.  Raises: ArgumentTypeError for no name."""
    if not text:
        raise argparse.ArgumentTypeError("a name is expected, not ''")
    return text


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


def check_outputs(outputs: Sequence[str], sources: Sequence[str]) -> None:
    """Refuse what could not be written, or would be written over something else, before there is any work.

    Raises: UsageError for a file that is named twice, or is one of `sources`; InputError for one that cannot be.
    """
    written = [output for output in outputs if output != STDIN]
    for number, output in enumerate(written):
        if any(_is_same(output, other) for other in written[:number]):
            raise UsageError(f"two outputs would be written to {output}")
        for source in sources:
            if source != STDIN and _is_same(output, source):
                raise UsageError(f"{output} would be written over the input {source}")
    for output in written:
        folder = os.path.dirname(output)
        if os.path.isdir(output) or output.endswith(("/", os.sep)):
            raise InputError(f"cannot write {output}: is a directory")
        if folder and not os.path.isdir(folder):
            raise InputError(f"cannot write {output}: there is no directory {folder}")


def shown(path: str) -> str:
    """What messages call a file; bytes of its name that are not UTF-8 are escaped, as code carries messages, too."""
    return "<stdin>" if path == STDIN else path.encode("utf-8", "backslashreplace").decode()


def _is_same(one: str, other: str) -> bool:
    """Whether two names are of one file, links followed; devices take what they are given."""
    try:
        place = os.path.realpath(one)
        if os.path.exists(place) and not os.path.isfile(place):
            return False
        return place == os.path.realpath(other) or os.path.samefile(one, other)
    except (OSError, ValueError):
        return one == other


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


def _reason(error: OSError | ValueError) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror[:1].lower() + error.strerror[1:]
    return str(error)
