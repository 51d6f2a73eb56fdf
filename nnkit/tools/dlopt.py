"""`dlopt`: reads modules, checks them, runs passes on them, and prints or runs the result."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from .command import STDIN, UsageError, load, report, run_tool, write_output

STAGES = ("raw", "optimizable", "compute", "schedule")
LEVELS = ("0", "1", "2", "3")

EXAMPLES = """\
examples:
  dlopt model.dl                         check a module and print it
  dlopt model.dl -O2                     simplify, differentiate, simplify
  dlopt model.dl -p cse,dce --verify-each --time-passes -o smaller.dl
  dlopt a.dl b.dl -o c.dl -o d.dl        several files, each to its own
  dlopt model.dl -p 'matrix-chain{fast-math}' --stats
                                         an option of a pass; what it saved
  dlopt model.dl --stage compute         loop nests
  dlopt model.dl --run '@f(1, <2, 3>)'   call a function; types come from its signature
  dlopt model.dl --run '@f(1, <2, 3>)' --with both
                                         the evaluator and compiled code must agree to the bit

exit codes: 0 done, 1 wrong input, 2 wrong command line, 3 a bug of NNKit
"""


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are exceptions."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool; the exit code."""
    return run_tool("dlopt", lambda: _work(_parser().parse_args(argv)))


def _parser() -> Parser:
    parser = Parser(
        prog="dlopt",
        description="Check, transform, print and run modules of NNKit's IR.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("files", nargs="*", metavar="FILE", help="text of a module; '-' or none: standard input")
    add("-o", dest="outputs", action="append", default=[], metavar="FILE",
        help="where to write, once per input; '-': standard output, the default")  # fmt: skip
    add("-p", dest="steps", action="append", default=[], metavar="PASS[,PASS]...",
        type=lambda names: ("-p", names),
        help="run passes, in the order given; a pass may have options, PASS{NAME=VALUE ...}")  # fmt: skip
    add("-O", dest="steps", action="append", metavar="0..3", type=lambda level: ("-O", level),
        help="run the passes of a level, differentiation among them")  # fmt: skip
    add(
        "--stage",
        choices=STAGES,
        help="bring the module to this stage, at the level of the last -O",
    )
    add("--run", dest="calls", action="append", default=[], metavar="CALL",
        help="call a function, @f(1, 2.5, <1, 2>), and print what it returns, not the module")  # fmt: skip
    add("--with", dest="runner", choices=("evaluator", "jit", "both"), default="evaluator",
        help="what --run runs: the reference evaluator, compiled code, or both to compare")  # fmt: skip
    add("--print-ir", action="store_true", help="print the module also with -o or --run")
    add(
        "--print-changed",
        action="store_true",
        help="print functions to stderr after each pass that changed them",
    )
    add("--verify-each", action="store_true", help="verify after every pass")
    add(
        "--no-verify", action="store_true", help="do not verify the input, nor the result of passes"
    )
    add("--time-passes", action="store_true", help="print what each pass took to stderr")
    add(
        "--stats",
        action="store_true",
        help="print instructions, flops and bytes before and after to stderr",
    )
    add("-v", "--verbose", action="store_true", help="with --stats: of every function")
    return parser


def _work(options: argparse.Namespace) -> int:
    files: list[str] = options.files or [STDIN]
    outputs = _outputs(options, len(files))
    if options.verify_each and options.no_verify:
        raise UsageError("--verify-each and --no-verify exclude each other")
    if files.count(STDIN) > 1:
        raise UsageError("standard input can be read once")
    plan: Any = None
    if options.steps or options.stage or options.stats:
        plan = load("optimize").plan_of(options.steps, options.stage)
    modules = load("modules")
    worst = 0
    for file, output in zip(files, outputs, strict=True):
        try:
            _process(options, modules, plan, file, output)
        except (BrokenPipeError, UsageError):
            raise
        except Exception as error:
            worst = max(worst, report("dlopt", error, modules.shown(file)))
    return worst


def _process(
    options: argparse.Namespace, modules: Any, plan: Any, file: str, output: str | None
) -> None:
    module = modules.read_module(file, verified=not options.no_verify)
    if plan is not None:
        optimize = load("optimize")
        optimize.transform(
            module,
            plan,
            verified=not options.no_verify,
            verify_each=options.verify_each,
            reports=optimize.Reports(
                changes=options.print_changed,
                times=options.time_passes,
                statistics=options.stats,
                verbose=options.verbose,
            ),
        )
    results: list[str] = []
    text = modules.print_module(module) if output or options.print_ir or not options.calls else ""
    if options.calls:
        run = load("call").run_call
        results = [run(module, call, options.runner) for call in options.calls]
    if output:
        write_output(output, text)
    if text and (options.print_ir or not output) and output != STDIN:
        write_output(STDIN, text)
    for result in results:
        write_output(STDIN, f"{result}\n")


def _outputs(options: argparse.Namespace, count: int) -> Sequence[str | None]:
    outputs: list[str] = options.outputs
    if not outputs:
        return [None] * count
    if len(outputs) != count:
        raise UsageError(f"-o is given {len(outputs)} times for {count} inputs: once per input")
    named = [output for output in outputs if output != STDIN]
    for output in named:
        if named.count(output) > 1:
            raise UsageError(f"two inputs would be written to {output}")
    return outputs


if __name__ == "__main__":
    sys.exit(main())
