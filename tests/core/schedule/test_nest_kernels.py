"""Nests become kernels with the loops that were decided of them; those that stay have a reason."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from nnkit.core.compute.generate import generate_compute
from nnkit.core.ir import Builder, Instruction, Module, Value
from nnkit.core.kernels.bounds import accesses_outside
from nnkit.core.kernels.ops import Kernel, Loop
from nnkit.core.ops import (
    Abs,
    Add,
    Bounds,
    Broadcast,
    Combinator,
    DataTypeCast,
    Exp,
    Gather,
    Iota,
    LessThan,
    Multiply,
    Nest,
    Reduce,
    Reverse,
    Select,
    Slice,
    Transpose,
    splat,
)
from nnkit.core.schedule.plan import schedule
from nnkit.core.schedule.target import Target
from nnkit.core.text import parse_module, print_module
from nnkit.core.types import BF16, F16, F32, F64, I8, I32, I64, TensorType
from nnkit.core.verify import verify
from tests.core.compute.building import arguments_for, assert_close, f32, fused, module_of, results
from tests.core.schedule.row_programs import RowProgram
from tests.rows import each

TARGETS = (
    Target(vector_bytes=64, registers=32, fma=True),
    Target(vector_bytes=32, fma=True),
    Target(vector_bytes=16),
    Target(vector_bytes=4),
)


def kernels_in(module: Module, target: Target) -> list[Instruction]:
    """The kernels of a module that is scheduled here: they print, parse, and stay inside of their buffers."""
    schedule(module, target)
    verify(module)
    text = print_module(module)
    assert print_module(parse_module(text)) == text
    found = [i for i in module.functions["main"].entry.instructions if isinstance(i.op, Kernel)]
    for kernel in found:
        assert not list(accesses_outside(kernel.regions[0].entry))
    return found


def nests_in(module: Module) -> list[Instruction]:
    """Those that stay."""
    return [i for i in module.functions["main"].entry.instructions if isinstance(i.op, Nest)]


def test_random_programs_keep_their_results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NNKIT_DISABLE", "rows")
    found = 0
    for seed in range(200, 224):
        program = RowProgram(seed)
        module = program.at_compute()
        expected = results(module, program.arguments)
        found += len(kernels_in(module, TARGETS[seed % len(TARGETS)]))
        assert_close(expected, results(module, program.arguments))
    assert found > 40


def _with_bias(b: Builder, x: Value, y: Value) -> list[Value]:
    z = b.emit(Add(), b.emit(Multiply(), x, y), x)
    return [z, b.emit(LessThan(), z, x)]


def _transposed(b: Builder, x: Value) -> Value:
    return b.emit(Add(), x, b.emit(Transpose(), x))


def _strided(b: Builder, x: Value) -> Value:
    part = b.emit(Slice((0, 1), x.tensor.shape, (2, 3)), x)
    return b.emit(Abs(), b.emit(Reverse((1,)), part))


def _numbered(b: Builder, x: Value) -> Value:
    numbers = b.emit(Iota(x.tensor.shape, 1, I64))
    low = b.emit(LessThan(), numbers, b.emit(splat(numbers.tensor, 40)))
    return b.emit(Select(), x, b.emit(DataTypeCast(x.tensor.dtype), numbers), low)


def _repeated(b: Builder, x: Value) -> Value:
    return b.emit(Exp(), b.emit(Broadcast((5, 3)), x))


def _widened(b: Builder, x: Value) -> Value:
    return b.emit(DataTypeCast(F32), b.emit(Multiply(), x, x))


def _total(b: Builder, x: Value) -> Value:
    return b.emit(Reduce(Combinator.ADD, (0,)), x)


def _reduced(b: Builder, x: Value) -> list[Value]:
    """Of rows and of columns: a sum of products, the largest, and one of what was stored as well."""
    y = b.emit(Abs(), x)
    product = b.emit(Reduce(Combinator.ADD, (1,)), b.emit(Multiply(), x, y))
    least = b.emit(Reduce(Combinator.MIN, (0,)), b.emit(Add(), x, y))
    return [y, product, b.emit(Reduce(Combinator.MAX, (1,)), x), least]


def _any(b: Builder, x: Value) -> list[Value]:
    low = b.emit(LessThan(), x, b.emit(splat(x.tensor, -0.9)))
    return [b.emit(Reduce(by, (0, 1)), low) for by in (Combinator.OR, Combinator.AND)]


@each(
    ("build", "types"),
    [
        (_reduced, (f32(5, 70),)),
        (_reduced, (TensorType((70, 6), F64),)),
        (_reduced, (TensorType((3, 45), BF16),)),
        (_reduced, (TensorType((4, 20), I32),)),
        (_reduced, (f32(3, 1000),)),  # sums of blocks
        (_total, (f32(5003),)),  # and of blocks of blocks, with compensation
        (_total, (TensorType((3000,), F16),)),
        (_any, (f32(20, 3),)),
        (_with_bias, (f32(7, 45), f32(45))),
        (_with_bias, (TensorType((7, 1), F64), TensorType((7, 150), F64))),
        (_with_bias, (TensorType((3, 2, 21), F16), TensorType((), F16))),
        (_with_bias, (TensorType((70,), I8), TensorType((70,), I8))),
        (_with_bias, (f32(), f32())),
        (_transposed, (f32(20, 20),)),
        (_strided, (f32(9, 50),)),
        (_strided, (TensorType((4, 40), BF16),)),
        (_numbered, (f32(3, 100),)),
        (_numbered, (f32(5, 7),)),
        (_repeated, (f32(5, 3),)),
        (_widened, (TensorType((33,), BF16),)),
    ],
)
def test_kinds_of_nests_are_kernels(
    build: Callable[..., Value | Sequence[Value]], types: tuple[TensorType, ...]
) -> None:
    for target in TARGETS:
        module = fused(module_of(build, *types))
        arguments = arguments_for(module)
        expected = results(module, arguments)
        assert kernels_in(module, target)
        assert not nests_in(module)
        assert_close(expected, results(module, arguments))


def _gathered(b: Builder, x: Value, i: Value) -> Value:
    return b.emit(Gather(0, Bounds.CHECK), x, i)


def _selected_by_place(b: Builder, x: Value, y: Value) -> Value:
    place = b.emit(LessThan(), b.emit(Iota(x.tensor.shape, 0, I64)), b.emit(splat(x.tensor, 3)))
    return b.emit(Select(), b.emit(DataTypeCast(I32), x), y, place)


@each(
    ("build", "types"),
    [
        (_gathered, (f32(30), TensorType((9,), I64))),
        (_selected_by_place, (TensorType((8,), I64), TensorType((8,), I32))),
        (_total, (f32(0),)),
        (_total, (f32(1_000_000),)),  # threads share it
        (_total, (f32(4000, 300),)),  # sums in memory
    ],
)
def test_what_has_no_form_stays_a_nest(
    build: Callable[..., Value], types: tuple[TensorType, ...]
) -> None:
    module = fused(module_of(build, *types))
    assert not kernels_in(module, TARGETS[0])
    assert len(nests_in(module)) == 1


def test_the_switch_leaves_nests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NNKIT_DISABLE", "nests")
    module = fused(module_of(_transposed, f32(20, 20)))
    assert not kernels_in(module, TARGETS[0])


def test_an_operand_that_is_dead_is_overwritten() -> None:
    def build(b: Builder, x: Value, i: Value) -> Value:
        return b.emit(Exp(), b.emit(Gather(0, Bounds.CHECK), b.emit(Exp(), x), i))

    module = module_of(build, f32(64), TensorType((64,), I64))
    generate_compute(module)
    first, second = kernels_in(module, TARGETS[0])
    assert isinstance(first.op, Kernel) and isinstance(second.op, Kernel)
    assert first.op.overwriting == second.op.overwriting == ((0, 0),)


def _raised(b: Builder, x: Value) -> Value:
    return b.emit(Exp(), x)


def test_threads_share_the_outermost_loop() -> None:
    for shape, wanted in (((300, 1000), [16]), ((300_000,), [987]), ((30, 30), [0])):
        module = fused(module_of(_raised, f32(*shape)))
        (kernel,) = kernels_in(module, TARGETS[0])
        loops = [i.op for i in kernel.regions[0].entry.instructions if isinstance(i.op, Loop)]
        assert [loop.grain for loop in loops] == wanted
