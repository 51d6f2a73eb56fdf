"""Kernels: what compiled code computes is what the evaluator does, to the bit, and products are those of NumPy.

A product is scheduled for several machines, with and without an epilogue, and run on this one.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from nnkit.core.compute.fuse import fuse
from nnkit.core.compute.generate import generate_compute
from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Builder, Module, Stage, Value, finish_function, start_function
from nnkit.core.ir.instruction import Instruction
from nnkit.core.kernels.bounds import accesses_outside
from nnkit.core.kernels.loops import body_of, is_loop, loop_op, loops_of
from nnkit.core.kernels.ops import Kernel, executed
from nnkit.core.ops import (
    Add,
    Combinator,
    DataTypeCast,
    Dot,
    Equal,
    Iota,
    Maximum,
    Multiply,
    Reduce,
    Return,
    Transpose,
    splat,
)
from nnkit.core.schedule import product_plans, row_blocks, shared_loops
from nnkit.core.schedule.target import Target
from nnkit.core.text import parse_module, print_module
from nnkit.core.types import F32, F64, I64, DType, Shape, TensorType, one_or_tuple
from nnkit.core.verify import verify
from tests.core.schedule.decided import decided
from tests.core.schedule.row_programs import RowProgram
from tests.values import same_bits

from .running import run

ROOT = Path(__file__).parents[3]
MACHINES = (
    Target(vector_bytes=64, registers=32, fma=True),
    Target(vector_bytes=32, registers=16, fma=True),
    # operands are packed in blocks, whatever their size
    Target(vector_bytes=64, registers=32, fma=True, l1_bytes=64, l2_bytes=64),
)
SIZES: tuple[tuple[int, int, int], ...] = (
    (64, 33, 80),
    (25, 40, 31),
    (7, 70, 65),
    (130, 16, 16),
    (2, 90, 100),
    (1, 530, 128),
    (16, 530, 17),  # more than are added one by one
    (33, 1026, 3),
    (9, 20, 150),
)
"""Rows, products in a sum, columns."""


def built(
    shapes: tuple[Shape, Shape],
    flips: tuple[bool, bool],
    dtype: DType,
    *,
    epilogue: bool,
    reduced: Sequence[Combinator] = (),
) -> Module:
    """max((a · b + c) · d, -1/2) with 1 added on the diagonal before, or the product alone, of operands that are stored
    transposed where said; with what its rows are reduced to."""
    stored = [(*s[:-2], s[-1], s[-2]) if f else s for s, f in zip(shapes, flips, strict=True)]
    result = (*np.broadcast_shapes(shapes[0][:-2], shapes[1][:-2]), shapes[0][-2], shapes[1][-1])
    types = [TensorType(shape, dtype) for shape in stored]
    if epilogue:
        types += [TensorType(result[-1:], dtype), TensorType(result, dtype)]
    b = start_function(types)
    a, w, *others = b.block.arguments
    y = b.emit(Dot(), *(_turned(b, x) if f else x for x, f in zip((a, w), flips, strict=True)))
    if epilogue:
        bias, scale = others
        row, column = (
            b.emit(Iota(result, axis, I64)) for axis in (-2 % y.tensor.rank, -1 % y.tensor.rank)
        )
        y = b.emit(Add(), y, b.emit(DataTypeCast(dtype), b.emit(Equal(), row, column)))
        y = b.emit(Multiply(), b.emit(Add(), y, bias), scale)
        y = b.emit(Maximum(), y, b.emit(splat(y.tensor, -0.5)))
    rows = [b.emit(Reduce(by, (y.tensor.rank - 1,)), y) for by in reduced]
    b.emit_many(Return(), [y, *rows])
    module = Module(stage=Stage.OPTIMIZED)
    module.add(finish_function("main", b, one_or_tuple([x.type for x in (y, *rows)])))
    return module


def _turned(b: Builder, x: Value) -> Value:
    rank = x.tensor.rank
    return b.emit(Transpose((*range(rank - 2), rank - 1, rank - 2)), x)


def scheduled(module: Module, target: Target) -> list[Instruction]:
    """Bring a module to the end of stage schedule; the kernels of products, and of what follows them."""
    generate_compute(module)
    fuse(module)
    kernels = decided(module, target).kernels
    verify(module)
    for kernel in kernels:
        assert not list(accesses_outside(kernel.regions[0].entry))
    return kernels


def cases() -> Iterator[tuple[tuple[Shape, Shape], tuple[bool, bool], DType, bool, Target]]:
    """Each size with some of the forms, so that each form meets each machine."""
    number = 0
    for m, k, n in SIZES:
        for batch in ((), (3,)):
            for flip in range(4):
                number += 1
                if batch and m * k * n > 50_000:
                    continue
                shapes = ((*batch, m, k), (*(batch if number % 3 else ()), k, n))
                dtype = F64 if number % 4 == 1 else F32
                flips = bool(flip & 1), bool(flip & 2)
                yield shapes, flips, dtype, number % 2 == 0, MACHINES[number % 3]


def test_products_are_kernels_and_right(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads share the loops of all that have two tiles, and each first operand that is stored transposed is turned,
    by blocks of rows where they can be divided, however small they are."""
    monkeypatch.setattr(shared_loops, "LEAST_JOB", 0.0)
    monkeypatch.setattr(shared_loops, "BLOCK", 1.0)
    for least in ("LEAST_PACKED", "LEAST_REUSED", "LEAST_TURNED", "BEYOND_NEAREST", "REPACKED"):
        monkeypatch.setattr(product_plans, f"_{least}", 0)
    random = np.random.default_rng(0)
    found = shared = in_blocks = 0
    for shapes, flips, dtype, epilogue, target in cases():
        shown = f"{shapes} {flips} {dtype} {epilogue} {target}"
        module = built(shapes, flips, dtype, epilogue=epilogue)
        types = [p.tensor for p in module.functions["main"].parameters]
        arrays = [random.standard_normal(t.shape).astype(t.dtype.numpy) for t in types]
        wanted = evaluate(module, "main", *arrays)
        kernels = scheduled(module, target)
        found += len(kernels)
        text = print_module(module)
        assert print_module(parse_module(text)) == text
        shared += any(loop_op(i).grain > 0 for k in kernels for _, i in executed(k) if is_loop(i))
        entries = [kernel.regions[0].entry for kernel in kernels]
        in_blocks += sum(
            len(loops_of(entry)) == 1 and any(x.name == "turned" for x in entry.arguments)
            for entry in entries
        )
        (made,) = run(module.functions["main"], arrays)
        tolerance = 1e-4 if dtype is F32 else 1e-12
        np.testing.assert_allclose(made, wanted, tolerance, tolerance, err_msg=shown)
        if kernels and np.size(wanted) * shapes[0][-1] < 25_000:
            same = evaluate(module, "main", *arrays)
            np.testing.assert_array_equal(made, same, shown)
    assert found > shared > 30
    assert in_blocks > 5, in_blocks


def test_rows_of_products_are_reduced_in_their_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    """On threads, by tiles of several heights, of matrices that are packed and turned, and in a batch."""
    monkeypatch.setattr(shared_loops, "LEAST_JOB", 0.0)
    monkeypatch.setattr(shared_loops, "BLOCK", 1.0)
    monkeypatch.setattr(row_blocks, "_LEAST_SAVED", 1 << 60)
    random = np.random.default_rng(3)
    by = Combinator.ADD, Combinator.MAX
    sizes = ((64, 33, 80), (25, 40, 32), (130, 16, 16), (16, 530, 64), (9, 20, 160))
    taken = shared = 0
    for number, (m, k, n) in enumerate(itertools.chain(sizes, sizes, sizes)):
        batch, dtype = ((), (3,))[number % 2], (F32, F64)[number % 3 == 1]
        flips, target = (number % 4 == 0, number // 5 % 2 == 0), MACHINES[number % 2]
        shapes = (*batch, m, k), (*batch, k, n)
        module = built(shapes, flips, dtype, epilogue=True, reduced=by)
        types = [p.tensor for p in module.functions["main"].parameters]
        arrays = [random.standard_normal(t.shape).astype(t.dtype.numpy) for t in types]
        wanted = evaluate(module, "main", *arrays)
        kernels = scheduled(module, target)
        one = len(module.functions["main"].entry.instructions) == 2
        taken += one
        shared += one and any(loop_op(i).grain > 0 for _, i in executed(kernels[0]) if is_loop(i))
        found = run(module.functions["main"], arrays)
        tolerance = 1e-4 if dtype is F32 else 1e-12
        for made, right, same in zip(found, wanted, evaluate(module, "main", *arrays), strict=True):
            np.testing.assert_allclose(made, right, tolerance, tolerance)
            np.testing.assert_array_equal(made, same, str(number))
    assert taken > shared > 5, (taken, shared)


def test_an_epilogue_is_part_of_its_product_and_may_lie_in_the_place_of_an_operand() -> None:
    module = built(((64, 40), (40, 80)), (False, False), F32, epilogue=True)
    (kernel,) = scheduled(module, MACHINES[0])
    assert isinstance(kernel.op, Kernel)
    assert kernel.op.overwriting == ((3, 0),)
    names = [i.op.name for i in module.functions["main"].entry.instructions]
    assert names == ["kernel", "return"]


def test_kernels_over_rows_compute_what_the_evaluator_does() -> None:
    fetching = Target(vector_bytes=64, fma=True, l2_bytes=6000)
    machines = (*MACHINES[:2], Target(vector_bytes=16), Target(vector_bytes=4), fetching)
    found = 0
    for seed in range(100, 124):
        program = RowProgram(seed)
        module = program.at_compute()
        kernels = decided(module, machines[seed % len(machines)]).kernels
        found += len(kernels)
        if kernels:
            wanted = evaluate(module, "main", *program.arguments)
            wanted = wanted if isinstance(wanted, tuple) else (wanted,)
            for made, one in zip(
                run(module.functions["main"], program.arguments), wanted, strict=True
            ):
                np.testing.assert_array_equal(made, one, str(seed))
    assert found > 8


def test_the_caches_of_a_machine_change_no_bit() -> None:
    """What is read of a machine decides what is packed and fetched and in which blocks, not how sums are added."""
    random = np.random.default_rng(2)
    common = Target(vector_bytes=64, registers=32, fma=True)
    own = replace(common, own_l1_bytes=64, own_l2_bytes=64)
    cases = [
        (((33, 530), (530, 80)), (False, False), True),
        (((130, 300), (300, 70)), (True, False), False),
        (((3, 25, 40), (3, 40, 31)), (False, True), True),
        (((1, 300), (300, 128)), (False, False), True),
    ]
    products = [partial(built, shapes, flips, F32, epilogue=e) for shapes, flips, e in cases]
    rows = [lambda seed=seed: RowProgram(seed).module for seed in range(100, 108)]
    different = 0
    for make in (*products, *rows):
        modules = [make(), make()]
        for module, target in zip(modules, (common, own), strict=True):
            scheduled(module, target)
        different += print_module(modules[0]) != print_module(modules[1])
        arrays = [
            random.standard_normal(p.tensor.shape).astype(p.tensor.dtype.numpy)
            for p in modules[0].functions["main"].parameters
        ]
        found, other = (run(module.functions["main"], arrays) for module in modules)
        for x, y in zip(found, other, strict=True):
            assert same_bits(x, y)
    assert different > 4


def test_every_op_of_kernels_is_translated() -> None:
    module = parse_module((ROOT / "docs/examples/kernels.dl").read_text())
    verify(module)
    function = module.functions["f"]
    random = np.random.default_rng(1)
    arrays = [
        random.standard_normal(p.tensor.shape).astype(np.float32) for p in function.parameters
    ]
    wanted = evaluate(module, "f", *arrays)
    assert isinstance(wanted, tuple)
    for made, one in zip(run(function, arrays), wanted, strict=True):
        np.testing.assert_array_equal(made, one)


@pytest.mark.parametrize("name", ["kernels", "epilogues", "packing"])
def test_each_part_can_be_disabled(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NNKIT_DISABLE", name)
    target = Target(vector_bytes=64, registers=32, fma=True, l2_bytes=64)
    module = built(((64, 40), (40, 80)), (False, False), F32, epilogue=True)
    arrays = [np.ones(p.tensor.shape, np.float32) for p in module.functions["main"].parameters]
    wanted = evaluate(module, "main", *arrays)
    found = [k for k in scheduled(module, target) if isinstance(k.op, Kernel)]
    assert len(found) == (name != "kernels")
    assert all(len(k.operands) == (2 if name == "epilogues" else 4) for k in found)
    assert all(bool(k.op.using) == (name != "packing") for k in found)
    np.testing.assert_array_equal(run(module.functions["main"], arrays)[0], wanted)


def test_threads_share_the_outermost_loop_with_work_for_many() -> None:
    """A line for each product: its shapes, whether the second is stored transposed, and the parallel loops."""
    cases: tuple[tuple[Shape, Shape, bool, list[str]], ...] = (
        ((64, 64), (64, 64), False, []),  # too little work
        ((256, 256), (256, 256), False, ["i", "i"]),  # tiles of one size, and those left
        ((1000, 1000), (1000, 1000), False, ["j"]),  # blocks of columns
        ((6, 1000), (1000, 300), False, ["j"]),
        ((12, 512), (512, 4096), False, ["j"]),  # few rows
        ((40, 32, 128), (40, 128, 64), False, ["b"]),
        ((40, 32, 128), (40, 128, 64), True, ["b"]),
        ((8, 256, 128), (8, 128, 256), False, ["b"]),
        ((2, 256, 256), (2, 256, 256), False, ["i", "i"]),
        ((2, 256, 256), (2, 256, 256), True, ["j"]),
        ((2048, 16), (16, 500), False, ["i", "i"]),
    )
    for a, b, flip, wanted in cases:
        module = built((a, b), (False, flip), F32, epilogue=False)
        (kernel,) = scheduled(module, MACHINES[0])
        blocks, found = [kernel.regions[0].entry], []
        for block in blocks:  # which grows by the loops in it
            for loop in loops_of(block):
                blocks.append(body_of(loop))
                if 0 < loop_op(loop).grain < loop_op(loop).count:
                    found.append(body_of(loop).arguments[0].name)
        assert found == wanted, (a, b, found)
