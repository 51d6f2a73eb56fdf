"""`dlopt`: reads modules, checks them, runs passes on them, and prints or runs the result."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from ..core.stage import Stage
from .command import OptionParser, UsageError, complain, load, report, run_tool
from .files import STDIN, check_outputs, file_name, shown, write_output

EXAMPLES = """\
  dlopt model.dl                         check a module and print it
  dlopt model.dl -O2                     simplify, differentiate, simplify
  dlopt model.dl -p cse,dce --verify-each --time-passes -o smaller.dl
  dlopt a.dl b.dl -o c.dl -o d.dl        several files, each to its own
  dlopt model.dl -p 'matrix-chain{fast-math}' --stats
                                         an option of a pass; what it saved
  dlopt model.dl --stage compute         loop nests
  dlopt model.dl --run '@f(1, <2, 3>)'   call a function; types come from its signature
  dlopt model.dl --run '@f(1, <2, 3>)' --with both
                                         the evaluator and compiled code must agree
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool; the exit code."""
    return run_tool(_parser(), _work, argv)


def _parser() -> OptionParser:
    description = "Check, transform, print and run modules of NNKit's IR."
    parser = OptionParser("dlopt", description, EXAMPLES)
    add = parser.add_argument
    add("files", nargs="*", metavar="FILE", type=file_name,
        help="text of a module; '-' or none: standard input")  # fmt: skip
    add("-o", dest="outputs", action="append", default=[], metavar="FILE", type=file_name,
        help="where to write, once per input; '-': standard output, the default")  # fmt: skip
    add("-p", dest="steps", action="append", default=[], metavar="PASS[,PASS]...",
        type=lambda names: ("-p", names),
        help="run passes, in the order given; a pass may have options, PASS{NAME=VALUE ...}")  # fmt: skip
    add("-O", dest="steps", action="append", metavar="0..3", type=lambda level: ("-O", level),
        help="run the passes of a level, differentiation among them")  # fmt: skip
    add(
        "--stage",
        choices=[stage.value for stage in Stage],
        help="bring the module to this stage, at the level of the last -O",
    )
    add("--run", dest="calls", action="append", default=[], metavar="CALL",
        help="call a function, @f(1, 2.5, <1, 2>), and print what it returns, not the module")  # fmt: skip
    add("--with", dest="runner", choices=("evaluator", "jit", "both"),
        help="what --run runs: the reference evaluator, compiled code, or both to compare")  # fmt: skip
    add("--tolerance", metavar="ULPS", type=_tolerance,
        help="by how many units in the last place floats may differ with --with both; 0: to the bit; "
        "by default two thirds of the digits agree, which are 256 in f32")  # fmt: skip
    add("--print-ir", action="store_true", help="print the module also with -o or --run")
    add(
        "--print-changed",
        action="store_true",
        help="print functions to stderr after each pass that changed them",
    )
    add("--verify-each", action="store_true", help="verify after every pass")
    add(
        "--no-verify",
        action="store_true",
        help="do not verify the input, nor the result of passes; only what --run runs",
    )
    add("--time-passes", action="store_true", help="print what each pass took to stderr")
    add(
        "--stats",
        action="store_true",
        help="print instructions, flops and bytes before and after to stderr",
    )
    add("-v", "--verbose", action="store_true", help="--stats of every function")
    return parser


def _work(options: argparse.Namespace) -> int:
    files: list[str] = options.files or [STDIN]
    _check(options, files)
    outputs = _outputs(options.outputs, files)
    plan: Any = None
    if options.steps or options.stage or options.stats or options.verbose:
        plan = load("optimize").plan_of(options.steps, options.stage)
    modules = load("modules")
    worst = 0
    for file, output in zip(files, outputs, strict=True):
        try:
            _process(options, modules, plan, file, output)
        except (BrokenPipeError, UsageError):
            raise
        except Exception as error:
            worst = max(worst, report("dlopt", error, shown(file)))
    return worst


def _process(
    options: argparse.Namespace, modules: Any, plan: Any, file: str, output: str | None
) -> None:
    module = modules.read_module(file, verified=not options.no_verify)
    if plan is not None:
        if options.calls and not output and not options.print_ir:
            load("call").drop_unneeded_derivatives(module, options.calls)
        optimize = load("optimize")
        optimize.transform(
            module,
            plan,
            verified=not options.no_verify,
            verify_each=options.verify_each,
            reports=optimize.Reports(
                changes=options.print_changed,
                times=options.time_passes,
                statistics=options.stats or options.verbose,
                verbose=options.verbose,
            ),
        )
    text = modules.print_module(module) if output or options.print_ir or not options.calls else ""
    results = [_run(options, module, call) for call in options.calls]
    if output:
        write_output(output, text)
    if text and (options.print_ir or not output) and output != STDIN:
        write_output(STDIN, text)
    for result in results:
        write_output(STDIN, f"{result}\n")


def _run(options: argparse.Namespace, module: Any, call: str) -> str:
    """What a call returns; how far both runs were apart is said on stderr."""
    runner = options.runner or "evaluator"
    returned = load("call").run_call(
        module, call, runner, tolerance=options.tolerance, verified=not options.no_verify
    )
    if runner == "both":
        said = f"differ by at most {returned.gap}" if returned.gap else "agree to the bit"
        complain("dlopt", f"{call}: the evaluator and compiled code {said}")
    text: str = returned.text
    return text


def _check(options: argparse.Namespace, files: Sequence[str]) -> None:
    """Raises: UsageError for options that do not fit together."""
    if options.verify_each and options.no_verify:
        raise UsageError("--verify-each and --no-verify exclude each other")
    if options.runner and not options.calls:
        raise UsageError("--with says what runs a call: give one with --run")
    if options.tolerance is not None and options.runner != "both":
        raise UsageError("--tolerance is for --with both")
    if files.count(STDIN) > 1:
        raise UsageError("standard input can be read once")


def _tolerance(text: str) -> float:
    try:
        ulps = float(text)
    except ValueError:
        ulps = -1.0
    if not ulps >= 0:
        raise argparse.ArgumentTypeError(f"a number of ulps is expected, not {text!r}")
    return ulps


def _outputs(outputs: Sequence[str], files: Sequence[str]) -> Sequence[str | None]:
    """One for each input, which may be written over by its own output alone."""
    if not outputs:
        return [None] * len(files)
    if len(outputs) != len(files):
        count, inputs = len(outputs), len(files)
        raise UsageError(f"-o is given {count} times for {inputs} inputs: once per input")
    check_outputs(outputs, ())
    for number, output in enumerate(outputs):
        check_outputs([output], [*files[:number], *files[number + 1 :]])
    return outputs


if __name__ == "__main__":
    sys.exit(main())
