"""Stack promotion: which allocations move, and which have to stay."""

from __future__ import annotations

import pytest

from nnkit.core.errors import TrapError
from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Module
from nnkit.core.ir.surgery import walk
from nnkit.core.passes.base import apply_pass
from nnkit.core.passes.stack_promotion import StackPromotion
from nnkit.core.text import parse_module
from nnkit.core.verify import verify


def promoted(body: str) -> tuple[Module, bool]:
    """The module of `@f(%x: i64, %c: bool)` with `body`, and whether the pass changed it."""
    text = f"func @f: (i64, bool) -> i64 {{\n'entry(%x: i64, %c: bool):\n{body}\n}}"
    module = parse_module(f'module "m"\nstage raw\n{text}')
    changed = apply_pass(StackPromotion(), module)
    verify(module)
    assert not apply_pass(StackPromotion(), module)
    return module, changed


def opcodes(module: Module) -> list[str]:
    body = module.functions["f"].body
    assert body is not None
    return [i.op.name for i in walk(body)]


def test_memory_that_is_given_back_at_the_end() -> None:
    module, changed = promoted("""
        %p = allocateHeap i64 count 3: i64
        %e = offset %p: *i64 by 2: i64
        for 0: i64 upto 4: i64 {
        'b(%i: i64):
            %a = load %e: *i64
            %b = add %a: i64, %x: i64
            store %b: i64 to %e: *i64
            yield
        }
        %r = load %e: *i64
        deallocate %p: *i64
        return %r: i64""")
    assert changed
    assert "allocateStack" in opcodes(module) and "deallocate" not in opcodes(module)
    assert evaluate(module, "f", 3, True) == 12


def test_memory_that_is_never_given_back() -> None:
    module, changed = promoted("""
        %p = allocateHeap i64 count 1: i64
        store %x: i64 to %p: *i64
        %r = load %p: *i64
        return %r: i64""")
    assert changed and "allocateHeap" not in opcodes(module)


@pytest.mark.parametrize(
    "body",
    [
        # as much as the running program says
        "%p = allocateHeap i64 count %x: i64\n store %x: i64 to %p: *i64",
        # too much for a stack
        "%p = allocateHeap i64 count 1000000: i64\n store %x: i64 to %p: *i64",
        # allocated in every iteration
        "for 0: i64 upto %x: i64 {\n'b(%i: i64):\n %p = allocateHeap i64 count 1: i64\n"
        " store %i: i64 to %p: *i64\n yield\n}",
        # kept by somebody else
        "%p = allocateHeap i64 count 1: i64\n %pp = allocateStack *i64 count 1\n store %p: *i64 to %pp: **i64",
        # given back in one case only
        "%p = allocateHeap i64 count 1: i64\n if %c: bool {\n't():\n deallocate %p: *i64\n yield\n"
        "} else {\n'e():\n yield\n}",
        # given back twice, which is an error that must stay one
        "%p = allocateHeap i64 count 1: i64\n deallocate %p: *i64\n deallocate %p: *i64",
    ],
)  # fmt: skip
def test_memory_that_has_to_stay_where_it_is(body: str) -> None:
    _, changed = promoted(f"{body}\n return %x: i64")
    assert not changed


def test_the_stack_takes_no_more_than_its_room() -> None:
    """What was given back in between lasts until the function returns, once it is on the stack."""
    one = (
        "%p{0} = allocateHeap <1000 x i64> count 1: i64\n%v{0} = load %p{0}: *<1000 x i64>\n"
        "deallocate %p{0}: *<1000 x i64>\n"
    )
    module, changed = promoted("".join(map(one.format, range(100))) + "return %x: i64")
    on_the_stack = opcodes(module).count("allocateStack")
    assert changed and on_the_stack == StackPromotion().most // 8000
    assert opcodes(module).count("deallocate") == 100 - on_the_stack


def test_a_use_after_it_was_given_back_stays_an_error() -> None:
    module, changed = promoted("""
        %p = allocateHeap i64 count 1: i64
        deallocate %p: *i64
        %r = load %p: *i64
        return %r: i64""")
    assert not changed
    with pytest.raises(TrapError):
        evaluate(module, "f", 1, True)


def test_large_arrays_are_not_walked_through() -> None:
    rows = "".join(f"%a{k} = allocateStack [1000000 x f32] count 1\n" for k in range(1000))
    module, changed = promoted(f"{rows} %p = allocateHeap i64 count 1: i64\n return %x: i64")
    assert not changed and opcodes(module).count("allocateHeap") == 1
