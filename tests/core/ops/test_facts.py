"""Laws of what ops state about themselves (docs/decisions/0027), over all samples, both ways where that can be.

1. A class that leaves out a fact without a default cannot be made.
2. What has no effect gives the same result twice, and leaves its operands alone.
3. What commutes gives the same bits when its operands are swapped, and no other elementwise function does.
4. What is exact gives numbers of f16 for numbers of f16, and nothing else does.
5. Only what can fail does, and it does.
6. What is a view gives its first operand, in another shape, and nothing else does.  What is moved gives elements
   of its operands.  Neither computes or moves more than its operands and results have.
7. Constants have no operands.
8. What is read and written through pointers is what lies there before or after, and nothing beside it changes.  A step
   leads into the same memory.  Only what takes room on the stack is gone when the function returns.
9. Derivatives come from the operands that move, and from no others.
10. Bodies belong to structured ops, which say what flows, and to nests.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np
import pytest

from nnkit.core.autodiff.rules import vjp_of
from nnkit.core.errors import NNKitError, TrapError
from nnkit.core.evaluate import evaluate, evaluate_instruction
from nnkit.core.ir import (
    Builder,
    Effect,
    Instruction,
    Module,
    Op,
    Value,
    finish_function,
    start_function,
)
from nnkit.core.ops import (
    ALL,
    PROGRAM,
    Aggregate,
    AllocateHeap,
    Apply,
    Check,
    Elementwise,
    Load,
    Nest,
    Offset,
    Print,
    Return,
    StopGradient,
    Store,
    StraightThrough,
    Structured,
    constant,
)
from nnkit.core.stage import Stage
from nnkit.core.types import (
    I64,
    Array,
    ArrayType,
    FunctionType,
    PointerType,
    StructType,
    TensorType,
    TupleType,
    Type,
    elements_of,
    scalar,
    tensor_bytes,
)
from nnkit.core.verify import verify
from tests.programs import same_bits
from tests.rows import each

from . import test_memory
from .catalogue import SAMPLES
from .program_samples import EVERY_KIND_BUT_MEMORY, TREE, Typed
from .samples import SPECIAL, Sample

OPS = list(dict.fromkeys(type(sample.op) for sample in SAMPLES))
"""Every op of `ALL`, by the law that each has samples."""

SEEDS = range(4)


def samples_of(op: type[Op]) -> list[Sample]:
    return [sample for sample in SAMPLES if type(sample.op) is op]


def instruction_of(sample: Sample) -> Instruction:
    b = Builder()
    b.emit(sample.op, *map(b.argument, sample.types))
    return b.block.instructions[0]


def evaluated(sample: Sample, operands: Sequence[Array]) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(evaluate_instruction(instruction_of(sample), list(operands))[0])


def hostile(type: TensorType, seed: int) -> Array:
    """Numbers that are often too large, too small or none, the ends of the type among them."""
    dtype, rng = type.dtype, np.random.default_rng(seed)
    if dtype.is_integer:
        info = np.iinfo(dtype.numpy)
        pool = np.array([-1, 0, 1, 2, 100, info.min, info.max], dtype.numpy)
    else:
        pool = (
            np.array([False, True]) if dtype.kind == "boolean" else dtype.round(np.array(SPECIAL))
        )
    return rng.choice(pool, type.shape).astype(pool.dtype)


def same(x: Array, y: Array) -> bool:
    """Whether all bits are equal, those of NaNs aside."""
    if x.shape != y.shape or x.dtype != y.dtype:
        return False
    equal = np.array_equal(x, y, equal_nan=x.dtype.kind == "f")
    return (
        equal and np.array_equal(np.signbit(x), np.signbit(y), equal_nan=False)
        if x.dtype.kind == "f"
        else equal
    )


def test_an_op_that_leaves_out_a_fact_cannot_be_imported() -> None:
    with pytest.raises(TypeError, match=r"op 'quiet' \(.*Quiet\) does not state: effect"):

        class Quiet(Op):
            name: ClassVar[str] = "quiet"

    with pytest.raises(TypeError, match=r"op 'free' \(.*Free\) does not state: cost"):

        class Free(Elementwise):
            name: ClassVar[str] = "free"

    class Form(Op):
        """Without an opcode nothing has to be said."""


@each("op", OPS, ids=lambda op: op.name)
def test_what_has_no_effect_gives_the_same_twice(op: type[Op]) -> None:
    for sample in samples_of(op):
        operands = sample.operands()
        before = [x.copy() for x in operands]
        first, second = evaluated(sample, operands), evaluated(sample, operands)
        assert op.effect is Effect.NONE and first.tobytes() == second.tobytes()
        assert all(x.tobytes() == y.tobytes() for x, y in zip(before, operands, strict=True))


def test_the_first_stage_has_the_ops_of_programs() -> None:
    assert all(Stage.RAW in op.stages for op in (*ALL, *PROGRAM))


def pairs(sample: Sample) -> Iterator[tuple[Array, Array]]:
    """Operands that may change places, hostile ones among them."""
    if len(sample.types) == 2 and sample.types[0] == sample.types[1]:
        given = [sample.operands()]
        given += ([hostile(t, 2 * n + k) for k, t in enumerate(sample.types)] for n in SEEDS)
        yield from ((x, y) for x, y in given)


@each("op", OPS, ids=lambda op: op.name)
def test_only_what_commutes_is_the_same_when_swapped(op: type[Op]) -> None:
    found = [
        same(evaluated(sample, (x, y)), evaluated(sample, (y, x)))
        for sample in samples_of(op)
        if op.commutes or issubclass(op, Elementwise)
        for x, y in pairs(sample)
    ]
    assert (bool(found) and all(found)) == op.commutes


def half(sample: Sample, count: int | None) -> Iterator[list[Array]]:
    """All numbers of f16 as f32, or so many of them, for each operand; shuffled for all but the first."""
    numbers = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)
    rng = np.random.default_rng(0)
    for _ in SEEDS:
        rows = [numbers, *(rng.permutation(numbers) for _ in sample.types[1:])]
        chosen = slice(None) if count is None else rng.integers(0, len(numbers), count)
        yield [
            rng.random(row[chosen].shape) < 0.5 if type.dtype.kind == "boolean" else row[chosen]
            for row, type in zip(rows, sample.types, strict=True)
        ]


@pytest.mark.parametrize(
    "op", [op for op in OPS if issubclass(op, Elementwise)], ids=lambda op: op.name
)
def test_only_what_is_exact_gives_numbers_of_f16(op: type[Op]) -> None:
    sample = samples_of(op)[0]
    if sample.types[0].dtype.is_integer:
        return
    found = list[bool]()
    for operands in half(sample, None if op.is_exact else 500):
        with np.errstate(all="ignore"):
            wide = np.asarray(sample.op.evaluate(*operands))
            found.append(
                same(wide, wide.astype(np.float16).astype(wide.dtype))
                if wide.dtype.kind == "f"
                else True
            )
    assert all(found) == op.is_exact


@each("op", OPS, ids=lambda op: op.name)
def test_only_what_can_fail_does(op: type[Op]) -> None:
    for sample in samples_of(op):
        failures = 0
        for seed in SEEDS:
            try:
                evaluated(sample, [hostile(type, seed) for type in sample.types])
            except NNKitError:
                failures += 1
        has_elements = all(type.size for type in sample.types)
        assert bool(failures) == (sample.op.can_fail() and has_elements)


@each("op", OPS, ids=lambda op: op.name)
def test_views_and_what_is_moved(op: type[Op]) -> None:
    views = list[bool]()
    for sample in samples_of(op):
        operands = (
            [hostile(t, k) for k, t in enumerate(sample.types)]
            if op.is_moved
            else sample.operands()
        )
        result = evaluated(sample, operands)
        views.append(bool(operands) and same(result.ravel(), operands[0].ravel()))
        if op.is_moved:
            assert {*result.ravel().tobytes()} <= {*b"".join(x.tobytes() for x in operands)}
        instruction = instruction_of(sample)
        most = sum(tensor_bytes(x.type) for x in (*instruction.operands, *instruction.results))
        assert 0 <= instruction.op.bytes_moved(instruction) <= most
        assert (
            not op.is_view
            or instruction.op.bytes_moved(instruction) == instruction.op.flops(instruction) == 0
        )
    assert all(views) == op.is_view


@each("op", [*ALL, *PROGRAM], ids=lambda op: op.name)
def test_constants_have_no_operands(op: type[Op]) -> None:
    attributes = {name for base in op.__mro__ for name in vars(base).get("__annotations__", {})}
    operands = {*re.findall(r"{(\w+)\*?}", op.syntax)} - attributes
    assert not (op.is_constant and operands)


COUNT = 3
"""Values in each row of memory."""


def made(b: Builder, type: Type, number: int) -> Value:
    """A value that is full of a number; a pointer leads to the first of some that are."""
    if isinstance(type, TensorType):
        return constant(b, type, number)
    if isinstance(type, PointerType):
        start = b.emit(AllocateHeap(type.pointee), constant(b, scalar(I64), COUNT))
        for k, pointer in enumerate(row(b, start)):
            b.emit_many(Store(), [made(b, type.pointee, number + k), pointer])
        return start
    return b.emit(Aggregate(type), *(made(b, x, number) for x in elements_of(type) or ()))  # type: ignore[arg-type]


def row(b: Builder, start: Value) -> list[Value]:
    return [b.emit(Offset(), start, constant(b, scalar(I64), k)) for k in range(COUNT)]


def loaded(b: Builder, start: Value) -> list[Value]:
    return [b.emit(Load(), pointer) for pointer in row(b, start)]


def is_plain(type: Type) -> bool:
    if isinstance(type, PointerType):
        return is_plain(type.pointee)
    return isinstance(type, TensorType | StructType | ArrayType)


IN_MEMORY = [
    sample
    for sample in test_memory.SAMPLES
    if any(isinstance(type, PointerType) for type in sample.types)
    and all(map(is_plain, sample.types))
]


def results_of(b: Builder, *rows: Sequence[Value]) -> list[tuple[object, ...]]:
    """What the rows of values are when the function runs."""
    values = [value for row in rows for value in row]
    b.emit_many(Return(), values)
    module = Module()
    module.add(finish_function("f", b, TupleType(tuple(value.type for value in values))))
    verify(module)
    found = iter(evaluate(module, "f"))
    return [tuple(next(found) for _ in row) for row in rows]


def test_the_samples_of_memory_have_every_kind_of_use() -> None:
    uses, steps = set[str](), set[str]()
    for sample in IN_MEMORY:
        b = Builder()
        b.emit_many(sample.op, [Value(type) for type in sample.types])
        uses |= {sample.op.name} if sample.op.memory_uses(b.block.instructions[0]) else set()
        steps |= {sample.op.name} if sample.op.is_pointer_step else set()
    assert uses == {"load", "store", "copy", "deallocate"} and steps == {"offset", "elementPointer"}


@pytest.mark.parametrize("sample", IN_MEMORY, ids=str)
def test_uses_of_memory_say_what_lies_there(sample: Typed) -> None:
    b = start_function([])
    operands = [made(b, type, 1) for type in sample.types]
    pointers = [x for x in operands if isinstance(x.type, PointerType)]
    before = {pointer: loaded(b, pointer) for pointer in pointers}
    b.emit_many(sample.op, operands)
    instruction = b.block.instructions[-1]
    uses = sample.op.memory_uses(instruction)
    if not uses:
        return
    said = Effect.NONE
    for use in uses:
        said |= use.effect
    assert said == sample.op.effect and {use.pointer for use in uses} == set(pointers)
    assert not any(isinstance(result.type, PointerType) for result in instruction.results)
    if any(use.value is None for use in uses):
        return  # anything may have changed, or be gone
    for use in uses:
        assert use.value is not None
        first, *others = loaded(b, use.pointer)
        (here, value), kept, known = results_of(
            b, (first, use.value), others, before[use.pointer][1:]
        )
        assert same_bits(here, value) and same_bits(kept, known)


@pytest.mark.parametrize(
    "sample", [sample for sample in IN_MEMORY if sample.op.is_pointer_step], ids=str
)
def test_a_step_leads_into_the_same_memory(sample: Typed) -> None:
    b = start_function([])
    operands = [made(b, type, 1) for type in sample.types]
    before = loaded(b, operands[0])
    inside = b.emit(sample.op, *operands)
    assert isinstance(inside.type, PointerType)
    b.emit_many(Store(), [made(b, inside.type.pointee, 9), inside])
    first, last = results_of(b, before, loaded(b, operands[0]))
    assert not same_bits(first, last)


@pytest.mark.parametrize(
    "sample",
    [
        sample
        for sample in test_memory.SAMPLES
        if sample.op.effect & Effect.ALLOCATE and isinstance(sample.results[0], PointerType)
    ],
    ids=str,
)
def test_only_what_takes_room_on_the_stack_is_gone_when_the_function_returns(sample: Typed) -> None:
    (result,) = sample.results
    assert isinstance(result, PointerType)
    if result.pointee not in EVERY_KIND_BUT_MEMORY or result.pointee is TREE:
        return
    module = Module()
    b = start_function([])
    pointer = b.emit(sample.op, *(made(b, type, 1) for type in sample.types))
    b.emit_many(Return(), [pointer])
    module.add(finish_function("g", b, result))
    b = start_function([])
    found = b.emit(Load(), b.emit(Apply("g", FunctionType((), result))))
    b.emit_many(Return(), [found])
    module.add(finish_function("f", b, result.pointee))
    if sample.op.stack_values():
        with pytest.raises(TrapError, match="returned"):
            evaluate(module, "f")
    else:
        evaluate(module, "f")


@each("op", [*ALL, *PROGRAM, Nest], ids=lambda op: op.name)
def test_bodies_belong_to_what_says_what_flows(op: type[Op]) -> None:
    assert bool(op.bodies) == (issubclass(op, Structured | Nest))
    assert op.is_structured == issubclass(op, Structured)
    assert op.is_structured or (op.ends and not op.is_loop)


@pytest.mark.parametrize("op", [StopGradient, StraightThrough], ids=lambda op: op.name)
def test_derivatives_come_from_what_moves(op: type[Op]) -> None:
    for sample in samples_of(op):
        if not sample.types[0].dtype.is_float:
            continue
        b = Builder()
        xs = [b.argument(type) for type in sample.types]
        y = b.emit(sample.op, *xs)
        found = vjp_of(b, sample.op, [y], xs, [b.argument(y.type)])
        moving = sample.op.moving(xs)
        assert [x for x, ct in zip(xs, found, strict=True) if ct is not None] == [*moving] != xs


def test_all_operands_move_where_nothing_else_is_said() -> None:
    assert [op for op in (*ALL, *PROGRAM) if op.moving is not Op.moving] == [
        StopGradient,
        StraightThrough,
        Check,
        Print,
    ]
