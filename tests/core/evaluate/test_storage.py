"""Global variables, boxes and stacks."""

from __future__ import annotations

import pytest

from nnkit.core.errors import TrapError
from nnkit.core.evaluate import evaluate

from .running import module_of, run

COUNTER = """var @n: i64
func @next: () -> i64 {
'entry():
    %p = literal @n: *i64
    %x = load %p: *i64
    %y = add %x: i64, 1: i64
    store %y: i64 to %p: *i64
    return %y: i64
}
func @f: () -> (i64, i64, i64) {
'entry():
    %a = apply @next(): () -> i64
    %b = apply @next(): () -> i64
    %c = apply @next(): () -> i64
    return (%a: i64, %b: i64, %c: i64): (i64, i64, i64)
}
"""


def test_variables_last_as_long_as_a_run() -> None:
    module = module_of(COUNTER)
    for _ in range(2):
        assert evaluate(module, "f") == (1, 2, 3)


BOXES = """func @share: (f32) -> f32 {
'entry(%x: f32):
    %b = allocateBox f32
    %p = projectBox %b: box{f32}
    store %x: f32 to %p: *f32
    retain %b: box{f32}
    release %b: box{f32}
    %y = load %p: *f32
    release %b: box{f32}
    return %y: f32
}
func @late: () -> f32 {
'entry():
    %b = allocateBox f32
    %p = projectBox %b: box{f32}
    release %b: box{f32}
    %y = load %p: *f32
    return %y: f32
}
func @twice: () -> void {
'entry():
    %b = allocateBox f32
    release %b: box{f32}
    release %b: box{f32}
    return
}
func @revive: () -> void {
'entry():
    %b = allocateBox f32
    release %b: box{f32}
    retain %b: box{f32}
    return
}
func @null: () -> void {
'entry():
    %b = literal null: box{f32}
    release %b: box{f32}
    return
}
func @project: () -> f32 {
'entry():
    %b = literal null: box{f32}
    %p = projectBox %b: box{f32}
    %y = load %p: *f32
    return %y: f32
}
func @free: () -> void {
'entry():
    %b = allocateBox f32
    %p = projectBox %b: box{f32}
    deallocate %p: *f32
    return
}
func @inner: () -> f32 {
'entry():
    %b = allocateBox f32
    %p = projectBox %b: box{f32}
    store 3: f32 to %p: *f32
    %c = allocateBox box{f32}
    %q = projectBox %c: box{box{f32}}
    store %b: box{f32} to %q: *box{f32}
    release %c: box{box{f32}}
    %y = load %p: *f32
    return %y: f32
}
"""


def test_a_box_lasts_as_long_as_its_owners() -> None:
    assert run(BOXES, "share", 4) == 4


def test_a_box_in_a_box_keeps_its_owner() -> None:
    assert run(BOXES, "inner") == 3


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("late", "load from a box that was released by its last owner"),
        ("twice", "release a box that was released by its last owner"),
        ("revive", "retain a box that was released by its last owner"),
        ("null", "release null"),
        ("project", "load from null"),
        ("free", "deallocate a box: only heap memory is given back"),
    ],
)
def test_wrong_use_of_boxes_stops_the_program(name: str, message: str) -> None:
    with pytest.raises(TrapError, match=message):
        run(BOXES, name)


# a machine for `numbers, +, ×` in postfix notation: its code is an array of enums, its memory a stack
MACHINE = """enum $Code { ?push(f32), ?add, ?multiply }
func @binary: (stack, bool) -> void {
'entry(%s: stack, %is_add: bool):
    %y = pop f32 from %s: stack
    %x = pop f32 from %s: stack
    %a = add %x: f32, %y: f32
    %m = multiply %x: f32, %y: f32
    %z = select %a: f32, %m: f32 by %is_add: bool
    push %z: f32 to %s: stack
    return
}
func @step: (stack, $Code) -> void {
'entry(%s: stack, %c: $Code):
    branchEnum %c: $Code case ?push 'push case ?add 'add case ?multiply 'multiply
'push(%x: f32):
    push %x: f32 to %s: stack
    return
'add():
    %n = apply @binary(%s, true: bool): (stack, bool) -> void
    return
'multiply():
    %k = apply @binary(%s, false: bool): (stack, bool) -> void
    return
}
func @run: ([5 x $Code]) -> f32 {
'entry(%code: [5 x $Code]):
    %s = createStack
    %p = allocateStack [5 x $Code] count 1
    store %code: [5 x $Code] to %p: *[5 x $Code]
    for 0: i64 upto 5: i64 {
    'body(%i: i64):
        %e = elementPointer %p: *[5 x $Code] at %i: i64
        %c = load %e: *$Code
        %n = apply @step(%s, %c): (stack, $Code) -> void
        yield
    }
    %r = pop f32 from %s: stack
    destroyStack %s: stack
    return %r: f32
}
"""


def test_a_stack_machine() -> None:
    def push(number: float) -> tuple[str, tuple[float]]:
        return ("push", (number,))

    code = [push(2), push(3), ("add", ()), push(4), ("multiply", ())]
    assert run(MACHINE, "run", code) == 20
    with pytest.raises(TrapError, match="pop f32 from an empty stack"):
        run(MACHINE, "run", [push(1), ("add", ()), push(1), push(1), push(1)])


STACKS = """func @mixed: () -> (f32, <2 x i64>, stack) {
'entry():
    %s = createStack
    %t = createStack
    push %t: stack to %s: stack
    push 1: <2 x i64> to %s: stack
    push 2: f32 to %s: stack
    %x = pop f32 from %s: stack
    %y = pop <2 x i64> from %s: stack
    %u = pop stack from %s: stack
    return (%x: f32, %y: <2 x i64>, %u: stack): (f32, <2 x i64>, stack)
}
func @type: () -> i64 {
'entry():
    %s = createStack
    push 2: f32 to %s: stack
    %x = pop i64 from %s: stack
    return %x: i64
}
func @gone: () -> void {
'entry():
    %s = createStack
    push 2: f32 to %s: stack
    destroyStack %s: stack
    push 2: f32 to %s: stack
    return
}
func @twice: () -> void {
'entry():
    %s = createStack
    destroyStack %s: stack
    destroyStack %s: stack
    return
}
func @popped: () -> void {
'entry():
    %s = createStack
    destroyStack %s: stack
    %x = pop f32 from %s: stack
    return
}
func @null: () -> void {
'entry():
    %s = literal null: stack
    push 2: f32 to %s: stack
    return
}
"""


def test_stacks_hold_values_of_any_types() -> None:
    x, y, inner = run(STACKS, "mixed")
    assert x == 2 and y.tolist() == [1, 1] and inner.entries == []


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("type", "pop i64 from a stack with a f32 on top"),
        ("gone", "push to a stack that was destroyed"),
        ("twice", "destroy a stack that was destroyed"),
        ("popped", "pop from a stack that was destroyed"),
        ("null", "push to null"),
    ],
)
def test_wrong_use_of_stacks_stops_the_program(name: str, message: str) -> None:
    with pytest.raises(TrapError, match=message):
        run(STACKS, name)
