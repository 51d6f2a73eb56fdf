"""Words: what is left after lowering, what is checked and what is not, and what is refused."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from nnkit.core.compute.lower_memory.lower import lower_memory
from nnkit.core.driver.stages import advance, passes_to
from nnkit.core.errors import TrapError, UnsupportedError
from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Module
from nnkit.core.ir.surgery import walk
from nnkit.core.ops.byte_memory import CheckAddress, ReadBytes
from nnkit.core.passes.base import apply_pass
from nnkit.core.passes.isolate import Isolate
from nnkit.core.passes.pipeline import run_pipeline
from nnkit.core.stage import Stage
from nnkit.core.text import parse_module, print_module
from nnkit.core.types import TensorType
from nnkit.core.verify import verify
from tests.core.passes.memory_programs import memory_programs
from tests.core.passes.pointer_programs import pointer_programs
from tests.programs import Program, flat, programs, same_bits

COUNT = max(8, settings().max_examples // 4)

HEAD = 'module "m"\nstage raw\nstruct $P { #a: f32, #b: <3 x f32> }\nvar @g: $P\n'


def lowered(text: str) -> Module:
    module = parse_module(HEAD + text)
    verify(module)
    module.stage = Stage.OPTIMIZABLE
    apply_pass(Isolate(), module)
    assert lower_memory(module)
    verify(module)
    again = parse_module(print_module(module))
    verify(again)
    assert print_module(again) == print_module(module)
    return module


def count(module: Module, name: str = "f") -> Counter[str]:
    body = module.functions[name].body
    assert body is not None
    return Counter(i.op.name for i in walk(body))


def outcome(module: Module, x: int) -> Any:
    """The result, or what stops the program, without the place."""
    try:
        return flat(evaluate(module, "main", x))
    except TrapError as error:
        return str(error).split("\n")[0].split(":")[0]


@settings(max_examples=COUNT, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=memory_programs(), x=st.integers(0, 1))
def test_lowered_programs_do_the_same_to_memory(text: str, x: int) -> None:
    module = parse_module(text)
    verify(module)
    wanted = outcome(module, x)
    module.stage = Stage.OPTIMIZABLE
    apply_pass(Isolate(), module)
    assert lower_memory(module)
    verify(module)
    found = outcome(module, x)
    assert found == wanted if isinstance(wanted, str) else same_bits(found, wanted)


@settings(max_examples=COUNT, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=st.one_of(pointer_programs(), memory_programs()), x=st.integers(0, 1))
def test_random_programs_mean_the_same_and_hold_tensors_only(text: str, x: int) -> None:
    module = parse_module(text)
    wanted = outcome(module, x)
    assume(not isinstance(wanted, str))
    advance(module, Stage.OPTIMIZED, "main")
    assert lower_memory(module, ("main",))
    verify(module)
    assert same_bits(flat(evaluate(module, "main", x)), wanted)
    for function in module.functions.values():
        for instruction in walk(function.body) if function.body is not None else ():
            assert all(
                isinstance(operand.type, TensorType) for operand in instruction.operands
            ) or (instruction.op.name in ("return", "extract"))


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs(control=True))
def test_programs_of_tensors_stay_as_they_are(program: Program) -> None:
    program.module.stage = Stage.OPTIMIZABLE
    run_pipeline(program.module, passes_to(Stage.OPTIMIZED, program.entry))
    text = print_module(program.module)
    assert not lower_memory(program.module, (program.entry,))
    assert print_module(program.module) == text


def test_known_addresses_are_not_checked() -> None:
    module = lowered("""
func @f: (f32) -> f32 {
'entry(%x: f32):
    %g = literal @g: *$P
    %a = elementPointer %g: *$P at #b, 1
    store %x: f32 to %a: *f32
    %p = allocateStack $P count 2
    %q = offset %p: *$P by 1: i64
    %b = elementPointer %q: *$P at #a
    store %x: f32 to %b: *f32
    %y = load %a: *f32
    return %y: f32
}
""")
    assert not count(module)["checkAddress"]


def test_an_unknown_address_is_checked_once_in_a_block() -> None:
    module = lowered("""
func @f: (*$P) -> f32 {
'entry(%p: *$P):
    %a = elementPointer %p: *$P at #a
    %b = elementPointer %p: *$P at #b, 1
    %x = load %a: *f32
    %y = load %b: *f32
    store %x: f32 to %b: *f32
    %c = greaterThan %x: f32, %y: f32
    %z = if %c: bool -> f32 {
    't():
        %u = load %a: *f32
        yield %u: f32
    } else {
    'e():
        yield %x: f32
    }
    return %z: f32
}
""")
    body = module.functions["f"].body
    assert body is not None
    checks = [i for i in walk(body) if isinstance(i.op, CheckAddress)]
    reads = [i.op.offset for i in walk(body) if isinstance(i.op, ReadBytes)]
    assert len(checks) <= 2 and sorted(reads) == [0, 0, 8]


def test_what_is_stored_where_nothing_was_allocated_hits_nobody_else() -> None:
    """The evaluator of bytes stops at a write outside of a block; compiled code would not."""
    module = lowered("""func @f: (i64) -> f32 {
'b(%n: i64):
    %p = allocateHeap $P count %n: i64
    %v = literal {#a = 1: f32, #b = 2: <3 x f32>}: $P
    store %v: $P to %p: *$P
    %q = load %p: *$P
    %a = extract #a from %q: $P
    deallocate %p: *$P
    return %a: f32
}
""")
    assert [float(evaluate(module, "f", n)) for n in (0, 1, 2)] == [1, 1, 1]


def test_enums_without_values_take_no_memory() -> None:
    module = parse_module("""module "m"
stage raw
enum $C { ?red(), ?green() }
func @f: (bool) -> bool {
'entry(%b: bool):
    %c = if %b: bool -> $C {
    't():
        %r = literal ?red(): $C
        yield %r: $C
    } else {
    'e():
        %g = literal ?green(): $C
        yield %g: $C
    }
    %is = isCase ?green of %c: $C
    return %is: bool
}
""")
    assert lower_memory(module)
    verify(module)
    assert not count(module)["allocateBytes"]
    for given_value in (True, False):
        assert evaluate(module, "f", given_value) == (not given_value)


REFUSED = {
    "@f takes a *f32: what is called from outside": """
func @f: (*f32) -> f32 {
'entry(%p: *f32):
    %x = load %p: *f32
    return %x: f32
}""",
    "@f returns a stack: what is called from outside": """
func @f: () -> (f32, stack) {
'entry():
    %s = createStack
    %r = literal (1.0: f32, %s: stack): (f32, stack)
    return %r: (f32, stack)
}""",
    "make it a tensor, or leave it in memory": """
func @f: () -> f32 {
'entry():
    %p = allocateHeap [100000 x f32] count 1: i64
    %a = load %p: *[100000 x f32]
    %x = extract 5 from %a: [100000 x f32]
    return %x: f32
}""",
    "the global variables take": """
var @huge: <2000000000 x i8>
func @f: () -> i8 {
'entry():
    %p = literal @huge: *<2000000000 x i8>
    %q = elementPointer %p: *<2000000000 x i8> at 0
    %x = load %q: *i8
    return %x: i8
}""",
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_is_refused_says_what_to_do(message: str) -> None:
    module = parse_module('module "m"\nstage raw\n' + REFUSED[message])
    with pytest.raises(UnsupportedError, match=re.escape(message)):
        lower_memory(module, ("f",))
