"""`dlc`: compiles a module to object code, a library, or what lies between, with a C header."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from ..core.stage import Stage
from .command import OptionParser, UsageError, level_of, load, report, run_tool
from .files import STDIN, check_outputs, file_name, shown, write_output

KINDS = {
    **{stage.value: "" for stage in Stage if stage is not Stage.RAW}, "llvm": "", "header": "",
    "asm": ".s", "bc": ".bc", "obj": ".o", "shared": ".so",
}  # fmt: skip
"""What can be made, and how a file of it is called; text without a name of its own goes to stdout."""

EXAMPLES = """\
  dlc model.dl --header                  model.o and model.h
  dlc model.dl --emit shared --header -o libmodel.so
                                         a library that C and ctypes load, and libmodel.h
  dlc model.dl -O3 --cpu native --emit asm -o -
                                         assembly for this very machine, on standard output
  dlc model.dl --target aarch64-linux-gnu --emit obj
  dlc model.dl --emit schedule           the loops and the places of all buffers

  cc main.c model.o -lm                  main.c includes model.h
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool; the exit code."""
    return run_tool(_parser(), _work, argv)


def _parser() -> OptionParser:
    description = (
        "Compile a module of NNKit's IR.  Every function with a body becomes a C function."
    )
    parser = OptionParser("dlc", description, EXAMPLES)
    add = parser.add_argument
    add(
        "file",
        nargs="?",
        default=STDIN,
        type=file_name,
        metavar="FILE",
        help="text of a module; '-' or none: standard input",
    )
    add("-O", dest="level", default="2", metavar="0..3", help="how much to optimise; 2 by default")
    add("--emit", choices=KINDS, default="obj", help="what to make; obj by default")
    add("--header", action="store_true", help="write a C header beside the output")
    add("-o", dest="output", metavar="FILE", type=file_name,
        help="where to write; '-': standard output; by default the input's name with another suffix")  # fmt: skip
    add(
        "--target",
        type=file_name,
        metavar="TRIPLE",
        help="the machine to compile for, as aarch64-linux-gnu; by default this one",
    )
    add(
        "--cpu",
        type=file_name,
        metavar="CPU",
        help="its processor, 'native' for this one; by default what all of its kind can do",
    )
    return parser


def _work(options: argparse.Namespace) -> int:
    options.level = level_of(options.level)
    output = _output(options)
    header = _header(options, output)
    check_outputs([output, *([header] if header else [])], [options.file])
    try:
        _compile(options, output, header)
    except (BrokenPipeError, UsageError):
        raise
    except Exception as error:
        return report("dlc", error, shown(options.file))
    return 0


def _compile(options: argparse.Namespace, output: str, header: str | None) -> None:
    module = load("modules").read_module(options.file)
    build: Any = load("build")
    made = build.compile_module(
        module, options.emit, level=options.level, triple=options.target, cpu=options.cpu
    )
    if options.emit == "shared":
        build.link(made.data, output, options.target)
    else:
        write_output(output, made.data)
    if header:
        write_output(header, made.header)


def _output(options: argparse.Namespace) -> str:
    suffix = KINDS[options.emit]
    output: str | None = options.output
    if output is None and not suffix:
        return STDIN
    if output is None:
        name = PurePath(options.file).name
        if options.file == STDIN or name in ("", ".."):
            raise UsageError(f"--emit {options.emit} of {_source(options.file)} needs -o")
        return str(PurePath(name).with_suffix(suffix))
    if output == STDIN and options.emit == "shared":
        raise UsageError("a shared library is written to a file: give one with -o")
    return output


def _header(options: argparse.Namespace, output: str) -> str | None:
    """Where the header goes; None for none."""
    if not options.header:
        return None
    if output == STDIN:
        raise UsageError(
            "--header needs a file to stand beside: give one with -o, or use --emit header"
        )
    if PurePath(output).name in ("", ".."):
        raise UsageError(f"{output} is a directory: give the name of a file with -o")
    return str(PurePath(output).with_suffix(".h"))


def _source(path: str) -> str:
    return "standard input" if path == STDIN else path


if __name__ == "__main__":
    sys.exit(main())
