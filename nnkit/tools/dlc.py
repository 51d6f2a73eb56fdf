"""`dlc`: compiles a module to object code, a library, or what lies between, with a C header."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from .command import STDIN, UsageError, load, run_tool, write_output
from .dlopt import LEVELS, Parser

KINDS = {
    "ir": "", "compute": "", "schedule": "", "llvm": "", "header": "",
    "asm": ".s", "bc": ".bc", "obj": ".o", "shared": ".so",
}  # fmt: skip
"""What can be made, and how a file of it is called; text without a name of its own goes to stdout."""

EXAMPLES = """\
examples:
  dlc model.dl --header                  model.o and model.h
  dlc model.dl --emit shared --header -o libmodel.so
                                         a library that C and ctypes load, and libmodel.h
  dlc model.dl -O3 --cpu native --emit asm -o -
                                         assembly for this very machine, on standard output
  dlc model.dl --target aarch64-linux-gnu --emit obj
  dlc model.dl --emit schedule           the loops and the places of all buffers

  cc main.c model.o -lm                  main.c includes model.h

exit codes: 0 done, 1 wrong input, 2 wrong command line, 3 a bug of NNKit
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool; the exit code."""
    return run_tool("dlc", lambda: _work(_parser().parse_args(argv)))


def _parser() -> Parser:
    parser = Parser(
        prog="dlc",
        description="Compile a module of NNKit's IR.  Every function with a body becomes a C function.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add(
        "file",
        nargs="?",
        default=STDIN,
        metavar="FILE",
        help="text of a module; '-' or none: standard input",
    )
    add("-O", dest="level", default="2", metavar="0..3", help="how much to optimise; 2 by default")
    add("--emit", choices=KINDS, default="obj", help="what to make; obj by default")
    add("--header", action="store_true", help="write a C header beside the output")
    add("-o", dest="output", metavar="FILE",
        help="where to write; '-': standard output; by default the input's name with another suffix")  # fmt: skip
    add(
        "--target",
        metavar="TRIPLE",
        help="the machine to compile for, as aarch64-linux-gnu; by default this one",
    )
    add(
        "--cpu",
        metavar="CPU",
        help="its processor, 'native' for this one; by default what all of its kind can do",
    )
    return parser


def _work(options: argparse.Namespace) -> int:
    if options.level not in LEVELS:
        raise UsageError(f"there is no level -O{options.level}: the levels are -O0 to -O3")
    output = _output(options)
    header = _header(options, output)
    module = load("modules").read_module(options.file)
    build: Any = load("build")
    made = build.compile_module(
        module, options.emit, level=int(options.level), triple=options.target, cpu=options.cpu
    )
    if options.emit == "shared":
        build.link(made.data, output, options.target)
    else:
        write_output(output, made.data)
    if header:
        write_output(header, made.header)
    return 0


def _output(options: argparse.Namespace) -> str:
    suffix = KINDS[options.emit]
    output: str | None = options.output
    if output is None and not suffix:
        return STDIN
    if output is None:
        if options.file == STDIN:
            raise UsageError(f"--emit {options.emit} of standard input needs -o")
        return str(PurePath(PurePath(options.file).name).with_suffix(suffix))
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
    path = str(PurePath(output).with_suffix(".h"))
    if path == output:
        raise UsageError(f"the header would be written over {output}")
    return path


if __name__ == "__main__":
    sys.exit(main())
