"""Numbers in place of pointers: loops and choices pass none on, where it is known what they lead on from."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings

from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Module
from nnkit.core.ir.surgery import walk
from nnkit.core.passes.base import apply_pass
from nnkit.core.passes.index_pointers import IndexPointers
from nnkit.core.text import parse_module
from nnkit.core.types import PointerType
from nnkit.core.verify import verify
from tests.core.autodiff.memory_programs import memory_programs


def passed(module: Module) -> int:
    """How many pointers instructions with bodies of effects pass on."""
    body = module.functions["main"].body
    assert body is not None
    return sum(
        isinstance(result.type, PointerType)
        for instruction in walk(body)
        for result in instruction.results
        if instruction.op.is_loop
    )


@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=settings().max_examples // 5)
@given(memory_programs())
def test_loops_carry_no_pointers_and_do_the_same(text: str) -> None:
    plain, module = parse_module(text), parse_module(text)
    apply_pass(IndexPointers(), module)
    verify(module)
    assert passed(module) == 0
    assert not apply_pass(IndexPointers(), module)
    for k in range(3):
        assert evaluate(module, "main", 0.7, -0.4, k) == evaluate(plain, "main", 0.7, -0.4, k)


NULLS = """module "m"
stage raw
func @main: (i64, bool) -> i64 {
'entry(%n: i64, %c: bool):
    %p = allocateStack i64 count 4
    store 5: i64 to %p: *i64
    %q = offset %p: *i64 by 1: i64
    store 7: i64 to %q: *i64
    %a, %b = while carrying %p: *i64, %q: *i64 {
    'more(%r: *i64, %s: *i64):
        %v = load %r: *i64
        %m = lessThan %v: i64, %n: i64
        yield %m: bool
    } do {
    'body(%r: *i64, %s: *i64):
        %t, %u = if %c: bool -> *i64, *i64 {
        'then():
            yield %s: *i64, %r: *i64
        } else {
        'else():
            %far = offset %s: *i64 by 1: i64
            store 100: i64 to %far: *i64
            %null = literal null: *i64
            yield %far: *i64, %null: *i64
        }
        yield %t: *i64, %u: *i64
    }
    %x = load %a: *i64
    return %x: i64
}
"""


def test_choices_in_loops_and_null() -> None:
    plain, module = parse_module(NULLS), parse_module(NULLS)
    assert apply_pass(IndexPointers(), module)
    verify(module)
    assert passed(module) == 0
    for n, c in ((3, True), (6, True), (6, False), (3, False)):
        assert evaluate(module, "main", n, c) == evaluate(plain, "main", n, c)
