"""Matrix products, whole and in parts, as kernels of every machine: evaluated, compiled, and as NumPy has them."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator
from contextlib import nullcontext

import numpy as np
import pytest

from nnkit.core.compute import products as compute_products
from nnkit.core.compute.generate import generate_compute
from nnkit.core.compute.ops import MatrixProduct
from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Function, Module, Stage, finish_function, start_function
from nnkit.core.kernels.bounds import accesses_outside
from nnkit.core.kernels.ops import Fma, Kernel, executed
from nnkit.core.ops import Add, Dot, Maximum, Return, Transpose
from nnkit.core.schedule import long_sums, product_plans
from nnkit.core.schedule.long_sums import divide_long_sums
from nnkit.core.schedule.plan import schedule
from nnkit.core.schedule.target import Target
from nnkit.core.types import F32, F64, Array, DType, Shape, TensorType
from nnkit.core.verify import verify
from nnkit.jit.llvm import host_machine
from tests.jit.guard_pages import HOST, engine_for
from tests.jit.guarded_products import FORMS, IN_KERNELS, products
from tests.jit.guarded_sweep import sweep
from tests.jit.sharing import sharing_everything

from .running import run

MACHINES = (
    Target(vector_bytes=64, registers=32, fma=True, threads=2),
    Target(vector_bytes=32, registers=16, fma=True, threads=2),
    Target(vector_bytes=16, threads=2),  # as any x86-64 has, without fma
    # operands are packed and turned, whatever their size
    Target(vector_bytes=32, registers=16, fma=True, l1_bytes=64, l2_bytes=64, threads=2),
    Target(vector_bytes=16, registers=32, l1_bytes=64, l2_bytes=64, threads=2),
)


def stored(shape: Shape, *, turned: bool) -> Shape:
    return (*shape[:-2], shape[-1], shape[-2]) if turned else shape


def draw(random: np.random.Generator) -> tuple[MatrixProduct, Shape, Shape, DType]:
    """A product in parts, of some of the products of its sums, or of all; its operands as they are stored."""
    m, n = (int(random.choice([2, 3, 5, 8, 13, 17, 26])) for _ in range(2))
    length, parts, first, rest = (int(random.integers(low, high)) for low, high in _RANGES)
    is_divided, is_cut = random.random() < 0.7, random.random() < 0.5
    if not is_cut:
        first = rest = 0
    batch: list[Shape] = [(), (), (3,), (1,)]
    shapes = [batch[int(random.integers(4))] for _ in range(2)]
    k = first + length * (parts if is_divided else 1) + rest
    flips = [bool(random.random() < 0.5) for _ in range(2)]
    op = MatrixProduct(
        *flips, first, length if is_divided or is_cut else 0, parts if is_divided else 0
    )
    a = stored((*shapes[0], m, k), turned=flips[0])
    b = stored((*shapes[1], k, n), turned=flips[1])
    return op, a, b, F64 if random.random() < 0.4 else F32


_RANGES = ((1, 40), (1, 4), (0, 20), (0, 20))
"""Of the length of a part, of parts, and of what is left out at both ends."""


def by_numpy(op: MatrixProduct, a: Array, b: Array) -> Array:
    """The products one part after the other, in f64."""
    x = np.swapaxes(a, -1, -2) if op.transpose_a else a
    y = np.swapaxes(b, -1, -2) if op.transpose_b else b
    length = op.length or x.shape[-1] - op.first
    found = []
    for part in range(max(op.parts, 1)):
        at = slice(op.first + part * length, op.first + (part + 1) * length)
        found.append(x[..., at].astype(np.float64) @ y[..., at, :].astype(np.float64))
    return np.stack(found) if op.parts else found[0]


@pytest.mark.parametrize("shares", [False, True])
def test_every_product_is_that_of_numpy(shares: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(product_plans, "_LEAST_TURNED", 16)
    monkeypatch.setattr(product_plans, "_LEAST_REUSED", 16)
    made = set[tuple[object, ...]]()
    for seed in range(30):
        random = np.random.default_rng([seed, shares])
        op, *shapes, dtype = draw(random)
        types = [TensorType(shape, dtype) for shape in shapes]
        b = start_function(types)
        (result,) = b.emit_many(op, b.block.arguments)
        b.emit_many(Return(), [result])
        module = Module(stage=Stage.COMPUTE)
        module.add(finish_function("main", b, result.type))
        verify(module)
        arrays = [random.uniform(-1, 1, shape).astype(dtype.numpy) for shape in shapes]
        wanted = by_numpy(op, *arrays)
        close = 1e-4 if dtype == F32 else 1e-12
        np.testing.assert_allclose(evaluate(module, "main", *arrays), wanted, close, close)
        target = MACHINES[seed % len(MACHINES)]
        with sharing_everything() if shares else nullcontext():
            schedule(module, target)
            verify(module)
            (kernel, *_) = (i for i in module.functions["main"].entry.instructions if i.regions)
            assert isinstance(kernel.op, Kernel)
            assert not list(accesses_outside(kernel.regions[0].entry))
            fuses = any(isinstance(one.op, Fma) for _, one in executed(kernel))
            assert target.fma or not fuses
            name = str(op), str(types), str(target)
            again = evaluate(module, "main", *arrays)
            np.testing.assert_allclose(again, wanted, close, close, err_msg=str(name))
            (found,) = run(module.functions["main"], arrays)
        np.testing.assert_allclose(found, wanted, close, close, err_msg=str(name))
        made.add((op.transpose_a, op.transpose_b, op.parts > 1, fuses))
    assert len({form[:3] for form in made}) == 8 and len({form[3] for form in made}) == 2


def divided(function: Function) -> list[MatrixProduct]:
    """The products of a function in stage compute, long ones in parts."""
    divide_long_sums(function.entry)
    return [i.op for i in function.entry.instructions if isinstance(i.op, MatrixProduct)]


def programs() -> Iterator[tuple[Module, list[Array], Array]]:
    """A product of long sums with what follows it, operands stored transposed where said."""
    for seed in range(40):
        random = np.random.default_rng(seed)
        m, n = (int(random.choice([2, 3, 7, 10, 20, 33, 64])) for _ in range(2))
        k = int(random.integers(150, 900))
        batch: Shape = (2,) if random.random() < 0.2 else ()
        flips = [bool(random.random() < 0.5) for _ in range(2)]
        follows = bool(random.random() < 0.5)
        shapes = (*batch, m, k), (k, n) if random.random() < 0.5 else (*batch, k, n)
        types = [
            TensorType(stored(shape, turned=flip), F32)
            for shape, flip in zip(shapes, flips, strict=True)
        ]
        b = start_function([*types, TensorType((n,), F32)])
        x, y, bias = b.block.arguments
        sides = [
            b.emit(Transpose((*range(v.tensor.rank - 2), v.tensor.rank - 1, v.tensor.rank - 2)), v)
            if flip
            else v
            for v, flip in zip((x, y), flips, strict=True)
        ]
        made = b.emit(Dot(), *sides)
        if follows:
            made = b.emit(Maximum(), b.emit(Add(), made, bias), bias)
        b.emit_many(Return(), [made])
        module = Module(stage=Stage.OPTIMIZED)
        module.add(finish_function("main", b, made.type))
        arrays = [random.uniform(-1, 1, type.shape).astype(np.float32) for type in types]
        arrays.append(random.uniform(-1, 1, n).astype(np.float32))
        left, right = (
            np.swapaxes(v, -1, -2) if flip else v for v, flip in zip(arrays[:2], flips, strict=True)
        )
        wanted = left.astype(np.float64) @ right.astype(np.float64)
        yield module, arrays, np.maximum(wanted + arrays[2], arrays[2]) if follows else wanted


def test_long_sums_have_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal ones, or a rest, or as many as leave no more than a quarter of the operands' room; turned where that is
    better."""
    monkeypatch.setattr(compute_products, "LEAST_PRODUCT", 1)
    monkeypatch.setattr(long_sums, "LONG", 256)
    monkeypatch.setattr(long_sums, "LEAST_PART", 64)
    monkeypatch.setattr(compute_products, "_LEAST_TURNED", 16)
    forms = set[str]()
    for number, (module, arrays, wanted) in enumerate(programs()):
        generate_compute(module)
        made = divided(module.functions["main"])
        forms.add("rest" if len(made) > 1 else "parts" if made[0].parts else "whole")
        schedule(module, MACHINES[number % len(MACHINES)])
        verify(module)
        (found,) = run(module.functions["main"], arrays)
        np.testing.assert_allclose(found, wanted, 1e-4, 1e-4, err_msg=str(number))
    assert forms == {"whole", "parts", "rest"}


def test_few_columns_are_rows_of_the_transposed_product() -> None:
    """Where their rows do not fill vectors, and the first operand lies by rows of k."""
    for m, n, is_turned in ((784, 10, True), (784, 16, False), (30, 10, False), (784, 20, True)):
        types = [TensorType((500, m), F32), TensorType((500, n), F32)]
        b = start_function(types)
        x, y = b.block.arguments
        made = b.emit(Dot(), b.emit(Transpose((1, 0)), x), y)
        b.emit_many(Return(), [made])
        module = Module(stage=Stage.OPTIMIZED)
        module.add(finish_function("main", b, made.type))
        random = np.random.default_rng(n)
        arrays = [random.uniform(-1, 1, type.shape).astype(np.float32) for type in types]
        generate_compute(module)
        block = module.functions["main"].entry
        (product,) = (i for i in block.instructions if isinstance(i.op, MatrixProduct))
        assert product.result.tensor.shape == ((n, m) if is_turned else (m, n))
        schedule(module, MACHINES[1])
        (found,) = run(module.functions["main"], arrays)
        np.testing.assert_allclose(found, arrays[0].T @ arrays[1], 1e-4, 1e-4)


def test_products_between_guard_pages_lie_on_both_sides_of_all_thresholds() -> None:
    """Of each form there are nests, kernels, and sums of parts; of those with a vector all are in one part."""
    made = {form.__name__.strip("_"): set[str]() for form in FORMS}
    swapped = set[tuple[bool, bool]]()
    for case in products(range(1, 19), 1):
        if case.types[0].dtype not in IN_KERNELS:
            continue
        module = case.module()
        generate_compute(module)
        ops = divided(module.functions["f"])
        made[case.op].update("in parts" if op.parts else "at once" for op in ops)
        made[case.op].update([] if ops else ["nest"])
        swapped.update((op.transpose_a, op.transpose_b) for op in ops)
    for form, (has_m, has_n) in FORMS.items():
        wanted = {"nest", "at once", *(["in parts"] if has_m and has_n else [])}
        assert made[form.__name__.strip("_")] == wanted, form
    assert len(swapped) == 4


@pytest.mark.skipif(
    platform.machine() != "x86_64" or sys.platform != "linux", reason="guard pages of x86-64 Linux"
)
@pytest.mark.parametrize("cpu", ["x86-64", "haswell", HOST])
def test_products_stay_inside_of_their_tensors(cpu: str) -> None:
    """A short form of `tests/fuzz/test_guard_pages.py`."""
    if engine_for(cpu).target.vector_bytes > host_machine().vector_bytes:
        pytest.skip("this machine has no such vectors")
    extents, share = (4, 17), 0.5
    found = sweep("products", cpu, extents, share=share)
    assert not found.failures, "\n".join(map(str, found.failures))
    assert found.cases == sum(1 for _ in products(extents, 1, share))
