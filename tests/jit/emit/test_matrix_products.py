"""Matrix products by the BLAS, and scans, against the evaluator."""

from __future__ import annotations

import platform
import sys

import numpy as np
import pytest

from nnkit.core.errors import InternalError
from nnkit.core.ir.builder import start_function
from nnkit.core.ir.module import Function, Module
from nnkit.core.ir.placement import Placement, arena, output
from nnkit.core.ops.combinator import Combinator
from nnkit.core.ops.scan import Scan
from nnkit.core.schedule.ops import Gemm
from nnkit.core.schedule.plan import schedule
from nnkit.core.schedule.target import Target
from nnkit.core.stage import Stage
from nnkit.core.types import BF16, BOOL, F16, F32, F64, I32, I64, DType, Shape, TensorType
from nnkit.core.verify import verify
from nnkit.jit.emit import matrix_products, program
from nnkit.jit.emit.program import emit_program
from nnkit.jit.emit.writer import ModuleWriter
from nnkit.jit.llvm import host_machine
from nnkit.jit.runtime.blas import Blas, find_blas
from tests.jit.guard_pages import HOST, engine_for
from tests.jit.guarded_products import FORMS, IN_BLAS, products
from tests.jit.guarded_sweep import sweep

from .running import agree, compare, finish, run, sample
from .test_polls import polling_everywhere

SHAPES: list[tuple[Shape, Shape]] = [
    ((3, 4), (4, 5)),
    ((1, 7), (7, 5)),
    ((6, 7), (7, 1)),
    ((1, 7), (7, 1)),
    ((1, 1), (1, 1)),
    ((64, 33), (33, 17)),
    ((2, 3, 4), (4, 5)),
    ((2, 3, 4), (2, 4, 5)),
    ((3, 4), (2, 4, 5)),
    ((2, 1, 3, 4), (5, 4, 2)),
    ((2, 1, 3, 4), (1, 5, 4, 2)),
    ((2, 5, 3, 4), (1, 1, 4, 1)),
    ((0, 4), (4, 5)),
    ((3, 0), (0, 5)),
    ((2, 3, 0), (0, 1)),
    ((0, 3, 4), (4, 5)),
]


def product(
    a: Shape, b: Shape, transposed: tuple[bool, bool], dtype: DType, chunk: int = 0
) -> Function:
    """A function of two operands, stored transposed where said."""
    stored = [
        TensorType((*shape[:-2], shape[-1], shape[-2]) if flip else shape, dtype)
        for shape, flip in zip((a, b), transposed, strict=True)
    ]
    builder = start_function(stored)
    placement = Placement((output(0),), (arena(64),) if chunk else ())
    op = Gemm(*transposed, chunk=chunk)
    made = builder.emit_many(op, builder.block.arguments, placement=placement)
    return finish(builder, made)


@pytest.mark.parametrize("dtype", [F32, F64], ids=str)
@pytest.mark.parametrize(("a", "b"), SHAPES, ids=str)
def test_gemm(a: Shape, b: Shape, dtype: DType) -> None:
    for transpose_a in (False, True):
        for transpose_b in (False, True):
            function = product(a, b, (transpose_a, transpose_b), dtype)
            arrays = [sample(p.tensor, seed) for seed, p in enumerate(function.parameters)]
            agree(function, arrays, exact=False)


def test_products_with_vectors_are_right_in_parts() -> None:
    """In one part, in parts of rows, and of rows and columns, with what is left at both ends."""
    for m, k in ((30, 300), (31, 300), (7, 4_003)):
        for flip in (False, True):
            for a, b in (((m, k), (k, 1)), ((k, m), (m, 1)), ((1, k), (k, m)), ((1, m), (m, k))):
                function = product(a, b, (flip, flip), F32)
                arrays = [sample(p.tensor, seed) for seed, p in enumerate(function.parameters)]
                agree(function, arrays, exact=False)


@pytest.mark.parametrize("dtype", [F32, F64], ids=str)
@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((7, 5), (5, 3)),
        ((3, 5), (5, 7)),
        ((1, 9), (9, 8)),
        ((8, 9), (9, 1)),
        ((2, 6, 4), (2, 4, 5)),
        ((3, 700), (700, 4)),
    ],
    ids=str,
)
@pytest.mark.parametrize("nanoseconds", [1, 3])
def test_long_products_are_the_same_in_parts(
    a: Shape, b: Shape, dtype: DType, nanoseconds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of rows or columns of the result, each in a call of the BLAS of its own, with polls between them."""
    for transpose_a in (False, True):
        for transpose_b in (False, True):
            for chunk in (0, 3):
                function = product(a, b, (transpose_a, transpose_b), dtype, chunk)
                arrays = [sample(p.tensor, seed) for seed, p in enumerate(function.parameters)]
                whole = run(function, arrays)
                with polling_everywhere():
                    monkeypatch.setattr(matrix_products, "MOST_IN_ONE_CALL", nanoseconds)
                    compare(function, whole, run(function, arrays), exact=False)
                    monkeypatch.undo()


def test_products_between_guard_pages_lie_on_both_sides_of_all_thresholds() -> None:
    """Of each form there are nests, calls of the BLAS, and sums of calls; of those with a vector all are nests."""
    made = {form.__name__.strip("_"): set[str]() for form in FORMS}
    swapped = set[tuple[bool, bool]]()
    for case in products(range(1, 19), 1):
        if case.types[0].dtype not in IN_BLAS:
            continue
        function = case.function(Target())
        calls = [i.op for i in function.entry.instructions if isinstance(i.op, Gemm)]
        made[case.op].update("in chunks" if op.chunk else "at once" for op in calls)
        made[case.op].update([] if calls else ["nest"])
        swapped.update((op.transpose_a, op.transpose_b) for op in calls)
    for form, (has_m, has_n) in FORMS.items():
        wanted = {"nest", "at once", "in chunks"} if has_m and has_n else {"nest"}
        assert made[form.__name__.strip("_")] == wanted, form
    assert len(swapped) == 4


@pytest.mark.skipif(
    platform.machine() != "x86_64" or sys.platform != "linux", reason="guard pages of x86-64 Linux"
)
@pytest.mark.parametrize("cpu", ["haswell", HOST])
def test_products_stay_inside_of_their_tensors(cpu: str) -> None:
    """What the BLAS reads too; a short form of `tests/fuzz/test_guard_pages.py`."""
    if engine_for(cpu).target.vector_bytes > host_machine().vector_bytes:
        pytest.skip("this machine has no such vectors")
    extents, share = (4, 17), 0.5
    found = sweep("products", cpu, extents, share=share)
    assert not found.failures, "\n".join(map(str, found.failures))
    assert found.cases == sum(1 for _ in products(extents, 1, share))


def test_a_product_without_a_blas_is_a_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "find_blas", lambda: None)
    with pytest.raises(InternalError, match="there is no BLAS"):
        emit_program(ModuleWriter(), product((2, 3), (3, 2), (False, False), F32), "f")


def test_a_product_of_integers_is_a_bug() -> None:
    with pytest.raises(InternalError, match="the BLAS has no product of i32"):
        emit_program(ModuleWriter(), product((2, 3), (3, 2), (False, False), I32), "f")


def test_a_blas_of_32_bit_integers() -> None:
    """The call is right for both widths: this one's functions read the low halves of their arguments."""
    found = find_blas()
    assert found is not None
    module = ModuleWriter()
    function = product((3, 4), (4, 5), (False, False), F32)
    emit_program(module, function, "f", blas=Blas(found.addresses, 32))
    assert "i32 3, i32 5, i32 4" in module.text()


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [((7,), 0), ((5, 19), 0), ((5, 19), 1), ((3, 4, 70), 1), ((2, 0), 1), ((0, 3), 1), ((4, 1), 1)],
    ids=str,
)
@pytest.mark.parametrize(
    ("by", "dtype"),
    [
        (Combinator.ADD, F32),
        (Combinator.ADD, F64),
        (Combinator.ADD, BF16),
        (Combinator.ADD, I32),
        (Combinator.MULTIPLY, I64),
        (Combinator.MAX, F16),
        (Combinator.MIN, F32),
        (Combinator.OR, BOOL),
    ],
    ids=str,
)
def test_scan(
    by: Combinator, dtype: DType, shape: Shape, axis: int, reverse: bool, exclusive: bool
) -> None:
    type = TensorType(shape, dtype)
    agree(scanned(Scan(by, axis, reverse, exclusive), type), [sample(type)], exact=False)


def scanned(op: Scan, type: TensorType) -> Function:
    """A function that scans."""
    builder = start_function([type])
    function = finish(builder, builder.emit_many(op, builder.block.arguments))
    module = Module(stage=Stage.COMPUTE)
    module.add(function)
    schedule(module, Target(vector_bytes=64))
    verify(module)
    return function


@pytest.mark.parametrize("shape", [(20,), (20, 19)], ids=str)
@pytest.mark.parametrize("dtype", [F16, BF16, F32, F64], ids=str)
@pytest.mark.parametrize("by", [Combinator.MAX, Combinator.MIN], ids=str)
def test_running_extremes_order_zeros(by: Combinator, dtype: DType, shape: Shape) -> None:
    type = TensorType(shape, dtype)
    function = scanned(Scan(by, 0), type)
    random = np.random.default_rng(4).random(shape)
    x = np.select([random < 0.1, random < 0.5, random < 0.9], [-1.0, -0.0, 0.0], 1.0)
    agree(function, [x.astype(dtype.numpy)])
