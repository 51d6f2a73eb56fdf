"""Optimising takes time in proportion to the program: 10,000 instructions in under two seconds.

Seconds depend on the machine and on what else it does; how many functions Python calls does not, so growth is
seen in that number where it can be.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping

import pytest

from benchmarks.scaling import KINDS, Measured, exponent, measure, table
from nnkit.core.driver.stages import OPTIMIZABLE
from nnkit.core.passes import run_pipeline
from nnkit.core.text import parse_module, print_module
from nnkit.core.verify import verify

SECONDS = 2.0
"""For the passes of -O2 on 10,000 instructions, on the machine whose calibration takes `LOOP`."""
LOOP = 0.025
SHARED = 1.5
"""How much longer the same work takes on a core whose caches and units others use too: the loop fits into the first."""
RATIO = 15.0
"""How much longer ten times as many instructions may take."""
MOST_GROWTH = 4.6
"""How many times the calls there may be for a program four times as long: n log n, and what comes in steps."""
TRIES = 6
"""Other programs make measurements longer, never shorter: the best of several counts."""


def calibration() -> float:
    """CPU seconds of a loop that does what passes do: makes objects, looks them up, and throws them away."""
    best = 1.0
    for _ in range(3):
        start = time.process_time()
        known: dict[tuple[int, str], list[int]] = {}
        for number in range(100_000):
            known.setdefault((number % 1000, "x"), []).append(number)
        best = min(best, time.process_time() - start)
    return best


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [10, 100, 1_000])
def test_programs_have_the_size_that_was_asked_for(kind: str, count: int) -> None:
    module = parse_module(KINDS[kind](count))
    verify(module)
    measured = measure(KINDS[kind](count))
    assert count * 0.8 <= measured.instructions <= count * 1.25 + 16
    assert 0 < measured.passes < measured.whole


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_optimising_is_linear_and_quick(kind: str) -> None:
    texts = [KINDS[kind](count) for count in (1_000, 10_000)]
    small, large = (measure(text) for text in texts)
    most = SHARED * SECONDS * max(1.0, calibration() / LOOP)
    growth = RATIO / 10 * large.instructions / small.instructions
    times = [[small.passes], [large.passes]]
    while len(times[0]) < TRIES and (
        min(times[1]) > most or min(times[1]) > growth * min(times[0])
    ):
        for found, text in zip(times, texts, strict=True):
            found.append(measure(text).passes)
    assert min(times[1]) < most
    assert min(times[1]) < growth * min(times[0])


@pytest.mark.parametrize("level", [2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_grows_in_proportion(kind: str, level: int) -> None:
    assert growth_of(KINDS[kind], 500, level) < MOST_GROWTH


def growth_of(program: Callable[[int], str], count: int, level: int) -> float:
    """How many times as many functions are called, Python's and C's, when the program is four times as long."""
    for size in (20, count):  # what is made on first use
        take_through(program(size), level)
    small, large = (calls_of(take_through, program(size), level) for size in (count, 4 * count))
    return large / small


def take_through(text: str, level: int) -> None:
    module = parse_module(text)
    verify(module)
    run_pipeline(module, OPTIMIZABLE[level], verify=False)
    print_module(module)


def calls_of(work: Callable[..., object], *arguments: object) -> int:
    """How many functions `work` calls."""
    count = 0

    def event(frame: object, kind: str, argument: object) -> None:
        nonlocal count
        count += 1

    before = sys.getprofile()
    sys.setprofile(event)
    try:
        work(*arguments)
    finally:
        sys.setprofile(before)
    return count


def function(parameters: str, body: str, result: str = "%r: f32") -> str:
    """A module with a function @f of named parameters."""
    types = ", ".join(parameter.partition(": ")[2] for parameter in parameters.split(", "))
    returned = result.partition(": ")[2]
    head = f"func @f: ({types}) -> {returned} {{\n'entry({parameters}):"
    return f'module "m"\n{head}\n{body}\nreturn {result}\n}}\n'


def numbered(line: str, count: int) -> str:
    """A line for each number; `{k}` is the number, `{m}` that before it."""
    return "\n".join(line.format(k=k, m=k - 1, h=k // 2) for k in range(1, count + 1))


def one_value(count: int) -> str:
    """One value used by all instructions."""
    return function(
        "%x: f32, %r0: f32",
        numbered("%r{k} = add %x: f32, %r{m}: f32", count),
        f"%r{count}: f32",
    )


def wide_struct(count: int) -> str:
    """A struct of many fields, all of them looked at."""
    fields = ", ".join(f"#a{k}: f32" for k in range(1, count + 1))
    body = numbered("%a{k} = extract #a{k} from %s: $S\n%r{k} = add %a{k}: f32, %r{m}: f32", count)
    text = function("%s: $S, %r0: f32", body, f"%r{count}: f32")
    return text.replace("func", f"struct $S {{ {fields} }}\nfunc", 1)


def updates(count: int) -> str:
    """A struct changed again and again, and looked at in between."""
    lines = numbered(
        "%e{k} = extract #a from %s{m}: $S\n%s{k} = insert %e{k}: f32 to %s{m}: $S at #b", count
    )
    body = f"{lines}\n%r = extract #b from %s{count}: $S"
    return function("%s0: $S", body).replace("func", "struct $S { #a: f32, #b: f32 }\nfunc", 1)


def all_fields_in_turn(count: int) -> str:
    """A struct of which each field is looked at and set."""
    fields = ", ".join(f"#a{k}: f32" for k in range(1, count // 3 + 1))
    step = """%e{k} = extract #a{k} from %s{m}: $S
        %n{k} = sin %e{k}: f32
        %s{k} = insert %n{k}: f32 to %s{m}: $S at #a{k}"""
    text = function("%s0: $S", numbered(step, count // 3), f"%s{count // 3}: $S")
    return text.replace("func", f"struct $S {{ {fields} }}\nfunc", 1)


def many_functions(count: int) -> str:
    """Functions that nobody calls."""
    one = "func @f{k}: (f32) -> f32 {{\n'entry(%x: f32):\n%r = sin %x: f32\nreturn %r: f32\n}}"
    return f'module "m"\n{numbered(one, count)}\n'


def row_of_blocks(count: int) -> str:
    """Blocks one after the other that use values of blocks far before."""
    body = numbered("branch 'b{k}\n'b{k}:\n%r{k} = sin %r{h}: f32", count)
    return function("%r0: f32", body, f"%r{count}: f32")


def choices_used_late(count: int) -> str:
    """Choices whose results are all needed at the end."""
    choice = """conditional %c: bool then 't{k} else 'j{k}(%r0: f32)
        't{k}:
            %a{k} = sin %r0: f32
            branch 'j{k}(%a{k}: f32)
        'j{k}(%q{k}: f32):"""
    sums = numbered("%r{k} = add %q{k}: f32, %r{m}: f32", count // 5)
    return function(
        "%r0: f32, %c: bool", f"{numbered(choice, count // 5)}\n{sums}", f"%r{count // 5}: f32"
    )


def many_cases(count: int) -> str:
    """A choice between very many blocks, each of which computes something."""
    cases = [f"?c{k}" for k in range(count // 4)]
    ways = " ".join(f"case {case} '{case[1:]}" for case in cases)
    blocks = "\n".join(
        f"'{case[1:]}:\n%y{k} = add %x: f32, {k}: f32\nbranch 'end(%y{k}: f32)"
        for k, case in enumerate(cases)
    )
    text = function("%e: $E, %x: f32", f"branchEnum %e: $E {ways}\n{blocks}\n'end(%r: f32):")
    return text.replace("func", f"enum $E {{ {', '.join(cases)} }}\nfunc", 1)


def loops_in_a_row(count: int) -> str:
    """Loops, each of which needs what the one before gave."""
    loop = """branch 'h{k}(%r{m}: f32)
        'h{k}(%p{k}: f32):
            %c{k} = lessThan %p{k}: f32, {k}: f32
            conditional %c{k}: bool then 'b{k} else 'x{k}
        'b{k}:
            %a{k} = add %p{k}: f32, 1: f32
            branch 'h{k}(%a{k}: f32)
        'x{k}:
            %r{k} = sin %p{k}: f32"""
    return function("%r0: f32", numbered(loop, count // 7), f"%r{count // 7}: f32")


def long_literal(count: int) -> str:
    """A tensor written out."""
    type = f"<{count} x f32>"
    body = f"%r = literal <{', '.join(['1.5'] * count)}>: {type}"
    return function(f"%x: {type}", body, f"%r: {type}")


def cells(count: int) -> str:
    """Memory for many values at once."""
    made = numbered("%p{k} = allocateStack f32 count 1\nstore %r0: f32 to %p{k}: *f32", count // 4)
    read = numbered("%l{k} = load %p{k}: *f32\n%r{k} = add %l{k}: f32, %r{m}: f32", count // 4)
    return function("%r0: f32", f"{made}\n{read}", f"%r{count // 4}: f32")


def one_cell(count: int) -> str:
    """One value in memory, read and written by turns."""
    step = "%l{k} = load %p: *f32\n%a{k} = sin %l{k}: f32\nstore %a{k}: f32 to %p: *f32"
    begin = "%p = allocateStack f32 count 1\nstore %x: f32 to %p: *f32"
    body = f"{begin}\n{numbered(step, count // 3)}\n%r = load %p: *f32"
    return function("%x: f32", body)


SHAPES: Mapping[str, Callable[[int], str]] = {
    program.__name__: program
    for program in (
        one_value, wide_struct, updates, all_fields_in_turn, many_functions, row_of_blocks, choices_used_late,
        many_cases, loops_in_a_row, long_literal, cells, one_cell,
    )
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_unlucky_programs_grow_in_proportion(shape: str) -> None:
    assert growth_of(SHAPES[shape], 500, 2) < MOST_GROWTH


def test_the_table_has_a_row_for_each_kind() -> None:
    rows = {kind: [Measured(10, 0.001, 0.01), Measured(100, 0.01, 0.02)] for kind in KINDS}
    head, line, *found = table(rows, (10, 100)).splitlines()
    assert head == "|  | 10 | 100 | exponent |" and line == "|---|---:|---:|---:|"
    assert found == [f"| {kind} | 0.001 / 0.01 | 0.01 / 0.02 | 0.30 |" for kind in KINDS]


def test_a_single_program_does_not_grow() -> None:
    assert str(exponent([Measured(10, 0.001, 0.01)])) == "nan"
