"""What optimising takes, from 10 to 100,000 instructions: `python -m benchmarks.scaling [--most N] [--level 0..3 …]`.

Five kinds of programs, made of the same ten instructions, of which one is computed twice, one is needed by nobody,
and two undo each other:

    straight    one block
    nested      loops in choices in loops, eight deep; one such nest after the other
    calls       functions of ten instructions, each of which calls the one before and a small one
    blocks      blocks that branch: a choice, then a loop, whose values are also used at the end of the function
    memory      loads and stores, of memory that becomes values, of memory that stays, and of both in a choice

Each is read, verified, optimised and printed, as `dlopt` does.  A cell says how many seconds the passes took, and how
many everything did.  The exponent is that of everything, from the last size but one to the last: 1 is linear.
"""

from __future__ import annotations

import argparse
import gc
import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from nnkit.core.driver.stages import OPTIMIZABLE
from nnkit.core.ir import Module
from nnkit.core.ir.surgery import walk
from nnkit.core.passes import Pipeline, run_pipeline
from nnkit.core.text import parse_module, print_module
from nnkit.core.verify import verify

SIZES = (10, 100, 1_000, 10_000, 100_000)
DEPTH = 8
"""How deep bodies lie in each other in a nested program."""


@dataclass(frozen=True)
class Measured:
    """CPU seconds that a program of so many instructions took: the passes, and everything."""

    instructions: int
    passes: float
    whole: float


STEP = """\
    %{n}.a = tanh %{v}: <4 x f32>
    %{n}.b = tanh %{v}: <4 x f32>
    %{n}.c = add %{n}.a: <4 x f32>, %{n}.b: <4 x f32>
    %{n}.d = exp %{v}: <4 x f32>
    %{n}.e = negate %{n}.c: <4 x f32>
    %{n}.f = negate %{n}.e: <4 x f32>
    %{n}.g = multiply %{n}.f: <4 x f32>, %x: <4 x f32>
    %{n}.h = subtract %{n}.g: <4 x f32>, %{v}: <4 x f32>
    %{n}.i = sin %{n}.h: <4 x f32>
    %{n}.j = add %{n}.i: <4 x f32>, %x: <4 x f32>
"""
FUNCTION = """
func @{name}: (<4 x f32>, bool) -> <4 x f32> {{
'entry(%x: <4 x f32>, %yes: bool):
{body}    return %{result}: <4 x f32>
}}
"""
LOOP = """\
    %{n}.r = for 0: i64 upto 10: i64 carrying %{n}.j: <4 x f32> {{
    'body(%{n}.n: i64, %{n}.k: <4 x f32>):
"""
CHOICE = """\
    %{n}.r = if %yes: bool -> <4 x f32> {{
    'then():
"""
BLOCKS = """\
    branch '{n}.begin(%{v}: <4 x f32>)
'{n}.begin(%{n}.p: <4 x f32>):
    conditional %yes: bool then '{n}.one else '{n}.other
'{n}.one():
{body}    branch '{n}.loop(%{n}.j: <4 x f32>, 0: i64)
'{n}.other():
    branch '{n}.loop(%{n}.p: <4 x f32>, 1: i64)
'{n}.loop(%{n}.q: <4 x f32>, %{n}.n: i64):
    %{n}.m = add %{n}.n: i64, 1: i64
    %{n}.t = lessThan %{n}.m: i64, 10: i64
    conditional %{n}.t: bool then '{n}.loop(%{n}.p: <4 x f32>, %{n}.m: i64) else '{n}.end
'{n}.end():
"""
STORE = "    store %{v}: <4 x f32> to %{p}: *<4 x f32>\n"
LOAD = "    %{n} = load %{p}: *<4 x f32>\n"
CALL = "    %{n} = apply @{callee}(%{v}, %yes): (<4 x f32>, bool) -> <4 x f32>\n"


def straight(count: int) -> str:
    """One block."""
    parts: list[str] = []
    value = _steps(parts, "s", "x", max(1, count // 10))
    return _module(FUNCTION.format(name="f", body="".join(parts), result=value))


def nested(count: int) -> str:
    """Loops in choices in loops, one such nest after the other."""
    parts: list[str] = []
    value = "x"
    for number in range(max(1, round(count / (12 * DEPTH)))):
        value = _nest(parts, f"s{number}_", value, min(DEPTH, max(1, count // 12)))
    return _module(FUNCTION.format(name="f", body="".join(parts), result=value))


def calls(count: int) -> str:
    """A chain of functions."""
    small = FUNCTION.format(name="small", body=STEP.format(n="s", v="x"), result="s.j")
    functions = [small]
    for number in range(max(1, round(count / 13))):
        before = f"f{number - 1}" if number else "small"
        body = [CALL.format(n="p", callee=before, v="x"), STEP.format(n="s", v="p")]
        body.append(CALL.format(n="q", callee="small", v="s.j"))
        functions.append(FUNCTION.format(name=f"f{number}", body="".join(body), result="q"))
    return _module(*functions)


def blocks(count: int) -> str:
    """Choices and loops as a graph of blocks."""
    parts: list[str] = []
    value, sums = "x", ["x"]
    for number in range(max(1, round(count / 23))):
        n = f"s{number}"
        parts.append(BLOCKS.format(n=n, v=value, body=STEP.format(n=n, v=f"{n}.p")))
        parts.append(f"    %{n}.u = negate %{n}.q: <4 x f32>\n")
        value = f"{n}.u"
        sums.append(value)
    for number, term in enumerate(sums):
        before = f"sum{number - 1}" if number else "x"
        parts.append(f"    %sum{number} = add %{before}: <4 x f32>, %{term}: <4 x f32>\n")
    return _module(FUNCTION.format(name="f", body="".join(parts), result=f"sum{len(sums) - 1}"))


def memory(count: int) -> str:
    """Cells on the stack and a variable, written and read by turns."""
    parts: list[str] = ["    %global = literal @cell: *<4 x f32>\n"]
    value = "x"
    for number in range(max(1, round(count / 22))):
        n = f"s{number}"
        parts.append(f"    %{n}.own = allocateStack <4 x f32> count 1\n")
        parts.append(STORE.format(v=value, p=f"{n}.own") + STORE.format(v=value, p="global"))
        parts.append(LOAD.format(n=f"{n}.k", p=f"{n}.own") + STEP.format(n=n, v=f"{n}.k"))
        parts.append(
            f"    if %yes: bool {{\n    'then():\n{STORE.format(v=f'{n}.j', p=f'{n}.own')}"
        )
        parts.append(
            f"{STORE.format(v=f'{n}.i', p='global')}    yield\n    }} else {{\n    'else():\n"
        )
        parts.append("    yield\n    }\n")
        parts.append(LOAD.format(n=f"{n}.l", p=f"{n}.own") + LOAD.format(n=f"{n}.m", p="global"))
        parts.append(f"    %{n}.o = add %{n}.l: <4 x f32>, %{n}.m: <4 x f32>\n")
        value = f"{n}.o"
    function = FUNCTION.format(name="f", body="".join(parts), result=value)
    return _module("var @cell: <4 x f32>\n", function)


KINDS: Mapping[str, Callable[[int], str]] = {
    "straight": straight,
    "nested": nested,
    "calls": calls,
    "blocks": blocks,
    "memory": memory,
}


def measure(text: str, level: int = 2, pipeline: Pipeline | None = None) -> Measured:
    """Take a program through what `dlopt` does with it; seconds are those of this process's CPU time."""
    gc.collect()
    gc.disable()
    try:
        start = time.process_time()
        module = parse_module(text)
        verify(module)
        count = instructions(module)
        before = time.process_time()
        run_pipeline(module, pipeline or OPTIMIZABLE[level])
        after = time.process_time()
        verify(module)
        print_module(module)
        return Measured(count, after - before, time.process_time() - start)
    finally:
        gc.enable()


def instructions(module: Module) -> int:
    """How many there are in all functions."""
    bodies = (function.body for function in module.functions.values())
    return sum(1 for body in bodies if body is not None for _ in walk(body))


def table(measured: Mapping[str, Sequence[Measured]], sizes: Sequence[int]) -> str:
    """One row for each kind, in Markdown: seconds of the passes and of everything, and how they grow."""
    heads = ["", *(f"{size:,}" for size in sizes), "exponent"]
    lines = [f"| {' | '.join(heads)} |", f"|---|{'---:|' * (len(heads) - 1)}"]
    for kind, row in measured.items():
        cells = [kind, *(f"{one.passes:.2g} / {one.whole:.2g}" for one in row)]
        lines.append(f"| {' | '.join([*cells, f'{exponent(row):.2f}'])} |")
    return "\n".join(lines)


def exponent(row: Sequence[Measured]) -> float:
    """How everything grows from the last program but one to the last; not a number for a single program."""
    if len(row) < 2:
        return math.nan
    *_, small, large = row
    return math.log(large.whole / small.whole) / math.log(large.instructions / small.instructions)


def _steps(parts: list[str], prefix: str, value: str, count: int) -> str:
    for number in range(count):
        parts.append(STEP.format(n=f"{prefix}{number}", v=value))
        value = f"{prefix}{number}.j"
    return value


def _nest(parts: list[str], prefix: str, value: str, depth: int) -> str:
    """Bodies in each other, each after ten instructions; what the outermost gives."""
    for level in range(depth):
        n = f"{prefix}{level}"
        parts.append(STEP.format(n=n, v=value))
        parts.append((CHOICE if level % 2 else LOOP).format(n=n))
        value = f"{n}.j" if level % 2 else f"{n}.k"
    for level in reversed(range(depth)):
        n = f"{prefix}{level}"
        parts.append(f"    yield %{value}: <4 x f32>\n    }}")
        if level % 2:
            parts.append(f" else {{\n    'else():\n    yield %{n}.j: <4 x f32>\n    }}")
        parts.append("\n")
        value = f"{n}.r"
    return value


def _module(*functions: str) -> str:
    return 'module "scaling"\nstage raw\n' + "".join(functions)


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scaling", description=__doc__)
    parser.add_argument("--most", type=int, default=SIZES[-1], help="the largest program")
    parser.add_argument("--level", type=int, nargs="+", default=[2, 3], choices=range(4))
    options = parser.parse_args(arguments)
    sizes = [size for size in SIZES if size <= options.most]
    for level in options.level:
        measure(straight(100), level)  # what is made on first use
        measured = {
            kind: [measure(program(size), level) for size in sizes]
            for kind, program in KINDS.items()
        }
        print(f"-O{level}\n\n{table(measured, sizes)}\n", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
