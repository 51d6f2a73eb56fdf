"""Kernels that become one compute the same, also where results lie in the places of operands, as the kernel allows."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Block, Builder, Module, Stage, finish_function, start_function
from nnkit.core.ir.instruction import Value
from nnkit.core.ir.surgery import clone_module
from nnkit.core.kernels.build import KernelBuilder
from nnkit.core.kernels.indices import IndexSum
from nnkit.core.kernels.loops import take_apart
from nnkit.core.kernels.merge import merge
from nnkit.core.kernels.ops import Fma, ReduceLanes, is_kernel
from nnkit.core.ops import Add, Maximum, Multiply, Return, Subtract
from nnkit.core.text import print_module
from nnkit.core.types import F32, F64, Array, PointerType, TensorType, TupleType
from tests.values import same_bits

LANES = (2, 4, 8)
BINARY = (Add(), Subtract(), Multiply(), Maximum())


def random_kernels(rng: Random) -> Module:
    """A function of a few small kernels, each of which reads some of what there is before it."""
    types = [TensorType((rng.randint(1, 8),), rng.choice((F32, F64, F64))) for _ in range(2)]
    b = start_function([rng.choice(types) for _ in range(3)])
    values = list(b.block.arguments)
    for _ in range(rng.randint(2, 5)):
        made = [rng.choice(types) for _ in range(rng.randint(1, 2))]
        read = rng.sample(values, rng.randint(1, min(3, len(values))))
        build = KernelBuilder([x.tensor for x in read], made)
        written = [write_result(rng, build, y) for y in build.outputs]
        pairs = [
            (x, y)
            for x, operand in enumerate(read)
            for y, (type, is_pointwise) in enumerate(zip(made, written, strict=True))
            if operand.type == type and is_pointwise and len(made) == 1
        ]
        values += build.kernel(b, *read, overwriting=tuple(pairs))
    kernels = [i for i in b.block.instructions if is_kernel(i)]
    returned = [x for one in kernels[:-1] for x in one.results if rng.random() < 0.3]
    return function_of(b, [*returned, *kernels[-1].results])


def write_result(rng: Random, build: KernelBuilder, result: Value) -> bool:
    """All elements of a result; whether each is made of those at its own index, before it is written."""
    type = tensor_of(result)
    (extent,), kind = (
        type.shape,
        rng.choice(("vector",) * 3 + ("loop", "product", "reversed", "lanes")),
    )
    alike = [x for x in build.operands if tensor_of(x) == type]
    others = [x for x in build.operands if tensor_of(x).dtype == type.dtype]
    if kind in ("vector", "lanes") and alike:
        lanes = min(n for n in LANES if n >= extent)
        active = extent if extent < lanes else 0
        loads = [build.load(x, 0, lanes=lanes, steps=(1,), active=active) for x in alike]
        # lanes that are not stored are no zeros
        value = build.emit(Add(), loads[0], build.constant(type.dtype, 1))
        for load in loads[1:] * 2:
            value = build.emit(rng.choice(BINARY), value, load)
        if kind == "lanes":
            total = build.emit(ReduceLanes(), loads[0])
            with build.loop(extent) as loop:
                build.store(total, result, loop.index)
            return False
        build.store(value, result, 0, steps=(1,), active=active)
        return True
    if kind == "reversed" and alike:
        with build.loop(extent) as loop:
            build.store(
                build.load(alike[0], IndexSum(extent - 1, {loop.index: -1})), result, loop.index
            )
        return False
    if kind == "product" and others and extent in LANES:
        x = rng.choice(others)
        start = build.load(x, tensor_of(x).shape[0] - 1)
        zeros = build.emit(Subtract(), start, start)
        with build.loop(tensor_of(x).shape[0], carrying=[zeros]) as loop:
            number = build.load(x, loop.index)
            loop.yields(build.emit(Fma(), number, number, loop.carried[0]))
        with build.loop(extent) as loop:
            build.store(loop_sum(build, loop.index, alike), result, loop.index)
        build.store(build.emit(Add(), build.load(result, 0), zeros), result, 0)
        return False
    with build.loop(extent) as loop:
        build.store(loop_sum(build, loop.index, alike), result, loop.index)
    return True


def loop_sum(build: KernelBuilder, index: Value, alike: Sequence[Value]) -> Value:
    dtype = tensor_of(build.outputs[0]).dtype if not alike else tensor_of(alike[0]).dtype
    value = build.constant(dtype, 3)
    for x in alike:
        value = build.emit(Add(), build.emit(Multiply(), value, build.load(x, index)), value)
    return value


def tensor_of(buffer: Value) -> TensorType:
    assert isinstance(buffer.type, PointerType) and isinstance(buffer.type.pointee, TensorType)
    return buffer.type.pointee


def function_of(b: Builder, results: Sequence[Value]) -> Module:
    """The function `main` of these instructions; what lies where does not matter to the evaluator."""
    b.emit_many(Return(), results)
    types = tuple([x.type for x in results])
    module = Module(stage=Stage.SCHEDULE)
    module.add(finish_function("main", b, types[0] if len(types) == 1 else TupleType(types)))
    return module


def entry_of(module: Module) -> Block:
    body = module.functions["main"].body
    assert body is not None
    return body.entry


def run(module: Module, arguments: Sequence[Array]) -> tuple[Array, ...]:
    found = evaluate(module, "main", *arguments)
    return found if isinstance(found, tuple) else (found,)


def in_place(module: Module, operand: int, result: int) -> Module:
    """The function of one kernel whose result is made in the place of an operand: both are one buffer that it has."""
    module = clone_module(module)
    (kernel, end) = entry_of(module).instructions
    assert is_kernel(kernel)
    count, arguments = len(kernel.operands), kernel.regions[0].entry.arguments
    x, y = arguments[operand], arguments[count + result]
    build = KernelBuilder([z.tensor for z in kernel.operands], list(kernel.op.outputs))
    shared = build.scratch(tensor_of(x))
    copy(build, build.operands[operand], shared)
    scratch = [build.scratch(type) for type in kernel.op.using if isinstance(type, TensorType)]
    for old, new in zip(arguments, (*build.operands, *build.outputs, *scratch), strict=True):
        old.replace_all_uses_with(shared if old in (x, y) else new)
    build.append(take_apart(kernel.regions[0].entry)[0])
    copy(build, shared, build.outputs[result])
    b = start_function([z.tensor for z in kernel.operands])
    made = build.kernel(b, *b.block.arguments)
    return function_of(b, [made[z.index] for z in end.operands])


def copy(build: KernelBuilder, source: Value, target: Value) -> None:
    with build.loop(tensor_of(source).shape[0]) as loop:
        build.store(build.load(source, loop.index), target, loop.index)


@given(st.integers(0, 2**32 - 1))
@settings(phases=[Phase.generate], max_examples=2 * (settings.default or settings()).max_examples)
def test_one_kernel_computes_what_several_do(seed: int) -> None:
    rng = Random(seed)
    module = random_kernels(rng)
    block = entry_of(module)
    data = np.random.default_rng(seed)
    arguments = [
        data.integers(-4, 5, x.tensor.shape).astype(x.tensor.dtype.numpy) for x in block.arguments
    ]
    expected, drawn = run(module, arguments), print_module(module)
    *kernels, end = block.instructions
    block.instructions[:] = [merge([one for one in kernels if is_kernel(one)]), end]
    assert same_bits(run(module, arguments), expected), f"{drawn}\n{print_module(module)}"
    kernel = block.instructions[0]
    assert is_kernel(kernel)
    read = [arguments[block.arguments.index(x)] for x in kernel.operands]
    for operand, result in kernel.op.overwriting:
        found = run(in_place(module, operand, result), read)
        assert same_bits(found, expected), f"{operand}, {result} of\n{print_module(module)}"
