"""Memory in compiled code: random programs, every kind of value in memory, global variables across calls."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from nnkit.core.driver.stages import advance
from nnkit.core.errors import TrapError
from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Module
from nnkit.core.ops import ALL, Power
from nnkit.core.stage import Stage
from nnkit.core.text import parse_module
from nnkit.core.types import DTYPES
from nnkit.core.verify import verify
from nnkit.jit.emit.byte_memory import variable_symbol
from nnkit.jit.emit.program import emit_program
from nnkit.jit.emit.writer import ModuleWriter
from nnkit.jit.executable import host_target
from nnkit.jit.llvm import host_engine
from tests.core.passes.memory_programs import memory_programs
from tests.core.passes.pointer_programs import pointer_programs
from tests.programs import Program, flat, graphs, programs

from .lowering import check, parsed, scheduled_module
from .running import CheckFailed, call, run

COUNT = max(8, settings().max_examples // 8)


def agrees(module: Module, arguments: list[Any], level: int) -> None:
    """Assert that the late stages and compiled code give what the program gives as it is written."""
    data = flat(tuple(arguments))
    wanted = flat(evaluate(module, "main", *arguments))
    for stage in Stage:
        advance(module, stage, "main", level=level, target=host_target())
        verify(module)
        if stage.has_reached(Stage.COMPUTE):
            same(flat(evaluate(module, "main", *data)), wanted)
    same(run(module.functions["main"], list(data), module.functions), wanted)


def same(found: Any, wanted: Any) -> None:
    for x, y in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(x, y)


@settings(max_examples=COUNT, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    text=st.one_of(pointer_programs(), memory_programs()),
    x=st.integers(0, 1),
    level=st.integers(0, 3),
)
def test_random_programs_of_pointers(text: str, x: int, level: int) -> None:
    module = parse_module(text)
    try:
        evaluate(module, "main", x)
    except TrapError:
        reject()
    agrees(module, [np.asarray(x)], level)


EXACT = {"arithmetic", "comparison", "movement", "slicing", "indexing", "casting"}
OPS = [op for op in ALL if op.__module__.rpartition(".")[2] in EXACT and op is not Power]
"""What gives the same bits in whatever order it is computed."""


@settings(max_examples=COUNT, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    program=st.one_of(
        programs(control=True, memory=True, ops=OPS),
        graphs(control=True, memory=True, ops=OPS),
    ),
    level=st.integers(0, 2),
)
def test_random_programs_with_control_flow_enums_and_variables(
    program: Program, level: int
) -> None:
    agrees(program.module, list(program.arguments), level)


# Every kind of value in memory.


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 5), (0,), (70,)], ids=str)
def test_tensors_lie_in_memory_as_they_are(dtype: Any, shape: tuple[int, ...]) -> None:
    type = f"<{' x '.join(map(str, shape))} x {dtype}>" if shape else str(dtype)
    random = np.random.default_rng(len(shape))
    x = dtype.round(random.integers(0, 2, shape).astype(np.float64))
    check(
        f"""
func @f: ({type}) -> ({type}, {type}, {type}) {{
'entry(%x: {type}):
    %p = allocateHeap {type} count 3: i64
    %q = offset %p: *{type} by 2: i64
    store %x: {type} to %q: *{type}
    %a = load %p: *{type}
    %b = load %q: *{type}
    copy from %q: *{type} to %p: *{type} count 1: i64
    %c = load %p: *{type}
    deallocate %p: *{type}
    %r = literal (%a: {type}, %b: {type}, %c: {type}): ({type}, {type}, {type})
    return %r: ({type}, {type}, {type})
}}
""",
        x,
    )


def test_aggregates_of_aggregates_lie_in_memory() -> None:
    check(
        """
struct $A { #a: bool, #b: [2 x (i8, f64)] }
struct $B { #c: [3 x $A], #d: <2 x i16>, #e: void, #f: [0 x f32] }
func @f: (f64, i64) -> (f64, bool, i16, f64) {
'entry(%x: f64, %i: i64):
    %p = allocateStack $B count 2
    %q = offset %p: *$B by 1: i64
    %e = elementPointer %q: *$B at #c, %i: i64, #b, %i: i64, 1
    store %x: f64 to %e: *f64
    %t = elementPointer %q: *$B at #c, 2, #a
    store true: bool to %t: *bool
    %d = elementPointer %q: *$B at #d, 1
    store 7: i16 to %d: *i16
    %b = load %q: *$B
    %c = extract #c, 1 from %b: $B
    %again = insert %c: $A to %b: $B at #c, 0
    store %again: $B to %p: *$B
    %u = load %p: *$B
    %v = extract #c, 0, #b, 1, 1 from %u: $B
    %w = extract #c, 2, #a from %u: $B
    %y = extract #d from %u: $B
    %y1 = slice %y: <2 x i16> from 1 upto 2
    %y0 = shapeCast %y1: <1 x i16> to scalar
    %z = load %e: *f64
    %r = literal (%v: f64, %w: bool, %y0: i16, %z: f64): (f64, bool, i16, f64)
    return %r: (f64, bool, i16, f64)
}
""",
        2.5,
        1,
    )


# What lasts.

COUNTER = """
enum $List { ?none(), ?more(i64, $List) }
var @count: i64
var @seen: $List
func @f: (i64) -> (i64, i64) {
'entry(%n: i64):
    %p = literal @count: *i64
    %old = load %p: *i64
    %new = add %old: i64, 1: i64
    store %new: i64 to %p: *i64
    %q = literal @seen: *$List
    %before = load %q: *$List
    %after = literal ?more(%n: i64, %before: $List): $List
    store %after: $List to %q: *$List
    %last, %sum = while carrying %after: $List, 0: i64 {
    'c(%l: $List, %s: i64):
        %go = isCase ?more of %l: $List
        yield %go: bool
    } do {
    'b(%l: $List, %s: i64):
        %x = payload ?more 0 of %l: $List
        %t = payload ?more 1 of %l: $List
        %u = add %s: i64, %x: i64
        yield %t: $List, %u: i64
    }
    %r = literal (%new: i64, %sum: i64): (i64, i64)
    return %r: (i64, i64)
}
"""


def test_variables_keep_their_values_between_calls_and_what_they_lead_to() -> None:
    module = scheduled_module(COUNTER)
    function = module.functions["f"]
    writer = ModuleWriter()
    program = emit_program(writer, function, "kernel", functions=module.functions)
    compiled = host_engine().compile_module(writer.text(), program.symbols)
    address = compiled.address("kernel")
    for number in range(1, 50):
        found = call(address, program, function, [np.asarray(number)])
        assert [x.tolist() for x in found] == [number, number * (number + 1) // 2]


def test_every_compiled_program_has_variables_of_its_own() -> None:
    module = scheduled_module(COUNTER)
    for _ in range(2):
        found = run(module.functions["f"], [np.asarray(3)], module.functions)
        assert [x.tolist() for x in found] == [1, 3]


@pytest.mark.parametrize("name", ["x", "nnkit.random.seed", "a b", "ä", "", "_61_", "%s"])
def test_variables_have_names_that_llvm_reads(name: str) -> None:
    symbol = variable_symbol(name)
    assert symbol.isascii() and all(c.isalnum() or c in "._" for c in symbol)


def test_different_variables_have_different_names() -> None:
    names = ["a", "A", "_", "__", "_5f_", "a b", "a_20_b", "ä", "_e4_", "a.b", "a_b"]
    assert len({variable_symbol(name) for name in names}) == len(names)


def test_memory_does_not_grow() -> None:
    """A million bytes for each of some thousand calls, in each of the ways there are to ask for them."""
    text = """
enum $List { ?none(), ?more(<16 x f64>, $List) }
func @many: (i64) -> i64 {
'entry(%n: i64):
    %x = literal undefined: <16 x f64>
    %none = literal ?none(): $List
    %s = createStack
    %l = for 0: i64 upto %n: i64 carrying %none: $List {
    'b(%i: i64, %t: $List):
        %p = allocateStack <16 x f64> count 1
        store %x: <16 x f64> to %p: *<16 x f64>
        %c = literal ?more(%x: <16 x f64>, %t: $List): $List
        push %x: <16 x f64> to %s: stack
        %h = allocateHeap <1000 x f64> count 1: i64
        deallocate %h: *<1000 x f64>
        %b = allocateBox <1000 x f64>
        release %b: box{<1000 x f64>}
        yield %c: $List
    }
    destroyStack %s: stack
    %is = isCase ?more of %l: $List
    %r = select 1: i64, 0: i64 by %is: bool
    return %r: i64
}
func @f: (i64) -> i64 {
'entry(%n: i64):
    %r = for 0: i64 upto 2: i64 carrying 0: i64 {
    'b(%i: i64, %a: i64):
        %x = apply @many(%n): (i64) -> i64
        %s = add %a: i64, %x: i64
        yield %s: i64
    }
    return %r: i64
}
"""
    module = scheduled_module(text)
    function = module.functions["f"]
    writer = ModuleWriter()
    program = emit_program(writer, function, "kernel", functions=module.functions)
    compiled = host_engine().compile_module(writer.text(), program.symbols)
    address = compiled.address("kernel")

    def repeat(count: int) -> None:
        for _ in range(count):
            assert call(address, program, function, [np.asarray(1000)]) == [2]

    repeat(20)
    before = _resident()
    repeat(300)  # of a megabyte and more each
    assert _resident() - before < 20e6


def _resident() -> float:
    """Bytes of memory that the process has."""
    with open("/proc/self/statm") as file:
        return float(file.read().split()[1]) * 4096


def test_deep_recursion_over_memory_is_found() -> None:
    module = parsed("""
func @down: (i64, *i64) -> i64 {
'entry(%n: i64, %p: *i64):
    %q = allocateStack i64 count 100
    %m = add %n: i64, 1: i64
    store %m: i64 to %q: *i64
    %r = apply @down(%m, %q): (i64, *i64) -> i64
    return %r: i64
}
func @f: (i64) -> i64 {
'entry(%n: i64):
    %p = allocateStack i64 count 1
    %r = apply @down(%n, %p): (i64, *i64) -> i64
    return %r: i64
}
""")
    advance(module, Stage.SCHEDULE, "f", target=host_target())
    with pytest.raises(CheckFailed) as failed:
        run(module.functions["f"], [np.asarray(0)], module.functions)
    assert "@down is called too deeply" in str(failed.value.error)


ODD = {
    "enums whose default carries values": """
enum $E { ?num(i64, <2 x f32>), ?nil(), ?fn((i64) -> i64), ?st(stack, box{i64}) }
var @e: $E
func @g: ($E) -> i64 {
'entry(%e: $E):
    %a = payload ?num 0 of %e: $E
    %b = payload ?num 1 of %e: $E
    %is = isCase ?num of %e: $E
    %nil = isCase ?nil of %e: $E
    %x = select 10: i64, 20: i64 by %is: bool
    %y = select 100: i64, 200: i64 by %nil: bool
    %s = reduce %b: <2 x f32> by add along 0
    %t = dataTypeCast %s: f32 to i64
    %u = add %a: i64, %x: i64
    %v = add %u: i64, %y: i64
    %w = add %v: i64, %t: i64
    return %w: i64
}
func @f: (i64) -> (i64, i64, i64, i64) {
'entry(%n: i64):
    %p = literal @e: *$E
    %z = load %p: *$E
    %r0 = apply @g(%z): ($E) -> i64
    %v = literal <1.0, 2.0>: <2 x f32>
    %num = literal ?num(%n: i64, %v: <2 x f32>): $E
    %r1 = apply @g(%num): ($E) -> i64
    %nil = literal ?nil(): $E
    %r2 = apply @g(%nil): ($E) -> i64
    %u = literal undefined: $E
    %r3 = apply @g(%u): ($E) -> i64
    %r = literal (%r0: i64, %r1: i64, %r2: i64, %r3: i64): (i64, i64, i64, i64)
    return %r: (i64, i64, i64, i64)
}
""",
    "cells made behind function values": """
enum $L { ?nil(), ?cons(i64, $L) }
func @mk: (i64) -> i64 {
'entry(%n: i64):
    %nil = literal ?nil(): $L
    %c = literal ?cons(%n: i64, %nil: $L): $L
    %d = literal ?cons(%n: i64, %c: $L): $L
    %t = payload ?cons 1 of %d: $L
    %x = payload ?cons 0 of %t: $L
    return %x: i64
}
func @id: ((i64) -> i64) -> (i64) -> i64 {
'entry(%f: (i64) -> i64):
    return %f: (i64) -> i64
}
func @f: (i64) -> i64 {
'entry(%n: i64):
    %m = literal @mk: (i64) -> i64
    %k = literal @id: ((i64) -> i64) -> (i64) -> i64
    %g = apply %k(%m): ((i64) -> i64) -> (i64) -> i64
    %r = apply %g(%n): (i64) -> i64
    return %r: i64
}
""",
    "aggregates on stacks and through function values": """
struct $S { #a: (i64, <2 x f32>), #v: void }
func @swap: ($S, [2 x i64]) -> ([2 x i64], $S) {
'entry(%s: $S, %a: [2 x i64]):
    %r = literal (%a: [2 x i64], %s: $S): ([2 x i64], $S)
    return %r: ([2 x i64], $S)
}
func @f: (i64) -> (i64, <2 x f32>) {
'entry(%n: i64):
    %st = createStack
    %v = literal <1.0, 2.0>: <2 x f32>
    %t = literal (%n: i64, %v: <2 x f32>): (i64, <2 x f32>)
    %e = literal undefined: void
    push %e: void to %st: stack
    %s = literal {#a = %t: (i64, <2 x f32>), #v = %e: void}: $S
    push %s: $S to %st: stack
    %s2 = pop $S from %st: stack
    %e2 = pop void from %st: stack
    %a = literal [%n: i64, 7: i64]: [2 x i64]
    %f = literal @swap: ($S, [2 x i64]) -> ([2 x i64], $S)
    %q = apply %f(%s2, %a): ($S, [2 x i64]) -> ([2 x i64], $S)
    %x = extract 0, 1 from %q: ([2 x i64], $S)
    %y = extract 1, #a, 1 from %q: ([2 x i64], $S)
    destroyStack %st: stack
    %r = literal (%x: i64, %y: <2 x f32>): (i64, <2 x f32>)
    return %r: (i64, <2 x f32>)
}
""",
    "effects in the condition of a loop": """
func @f: (i64) -> i64 {
'entry(%n: i64):
    %s = createStack
    push %n: i64 to %s: stack
    %c = while carrying 0: i64 {
    'c(%k: i64):
        %x = pop i64 from %s: stack
        %y = subtract %x: i64, 1: i64
        push %y: i64 to %s: stack
        %m = greaterThan %y: i64, 0: i64
        yield %m: bool
    } do {
    'b(%k: i64):
        %l = add %k: i64, 1: i64
        yield %l: i64
    }
    destroyStack %s: stack
    return %c: i64
}
""",
}


@pytest.mark.parametrize("name", ODD)
def test_unusual_programs(name: str) -> None:
    check(ODD[name], 5)
