"""What optimising takes, from 10 to 100,000 instructions: `python -m benchmarks.scaling [--most N] [--level 0..3]`.

Three kinds of programs, made of the same ten instructions, of which one is computed twice, one is needed by nobody,
and two undo each other:

    straight    one block
    nested      loops in choices in loops, eight deep; one such nest after the other
    calls       functions of ten instructions, each of which calls the one before and a small one

Each is read, verified, optimised and printed, as `dlopt -O2` does; what the passes take is listed by itself.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from nnkit.core.ir import Module
from nnkit.core.ir.surgery import walk
from nnkit.core.passes import Pipeline, run_pipeline
from nnkit.core.text import parse_module, print_module
from nnkit.core.verify import verify
from nnkit.lowering import pipeline_to

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


KINDS: Mapping[str, Callable[[int], str]] = {
    "straight": straight,
    "nested": nested,
    "calls": calls,
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
        run_pipeline(module, pipeline or pipeline_to("optimizable", (), level=level))
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


def table(measured: Mapping[str, Sequence[Measured]]) -> str:
    """One row for each size, in Markdown: seconds and µs per instruction of each kind."""
    heads = [f"{kind}: {what}" for kind in measured for what in ("instructions", "passes", "all")]
    lines = [f"| {' | '.join(heads)} |", f"|{'---:|' * len(heads)}"]
    for row in zip(*measured.values(), strict=True):
        cells = [
            text
            for one in row
            for text in (f"{one.instructions:,}", _cell(one, one.passes), _cell(one, one.whole))
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(measured: Measured, seconds: float) -> str:
    return f"{seconds:.3g} s, {1e6 * seconds / measured.instructions:.0f} µs"


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
    parser.add_argument("--level", type=int, default=2, choices=range(4), help="as dlopt -O")
    options = parser.parse_args(arguments)
    sizes = [size for size in SIZES if size <= options.most]
    measure(straight(100), options.level)  # what is made on first use
    measured = {
        kind: [measure(program(size), options.level) for size in sizes]
        for kind, program in KINDS.items()
    }
    print(table(measured))


if __name__ == "__main__":
    main(sys.argv[1:])
