"""What work stands in the inner loops of a nest, and what outside of them: the text of its kernel says."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from nnkit.core.ir.builder import Builder
from nnkit.core.ir.instruction import Value
from nnkit.core.ir.module import Function
from nnkit.core.ops.arithmetic import Add, Multiply
from nnkit.core.ops.combinator import Combinator
from nnkit.core.ops.literal import splat
from nnkit.core.ops.nest import Bounds, Loaded
from nnkit.core.ops.transcendental import Sqrt
from nnkit.core.types import F32, I32, TensorType
from nnkit.jit.emit.program import emit_program
from nnkit.jit.emit.writer import ModuleWriter

from .running import WIDE, Decisions, agree, sample, scheduled
from .test_nests_in_every_order import D0, D1, D2, access, f32, i32, mapped, product, total, written


def blocks(function: Function, *, fma: bool = False) -> list[str]:
    """The blocks of the kernel, in order."""
    module = ModuleWriter(fma=fma)
    emit_program(module, function, "kernel")
    body = module.text().split("entry:\n", 1)[1].split("\n}", 1)[0]
    return re.split(r"^[\w.]+:$", body, flags=re.MULTILINE)


def innermost(function: Function, *, fma: bool = False) -> str:
    """The block with the most loops around it: of these kernels, the one that branches to itself last."""
    return [block for block in blocks(function, fma=fma) if " phi " in block][-1]


def test_invariant_loads_and_work_leave_the_inner_loop() -> None:
    def body(b: Builder, at: Sequence[Value], u: Value, v: Value) -> Value:
        return b.emit(Add(), b.emit(Sqrt(), u), v)

    build = mapped((6, 64), [access(D0), access(D0, D1)], written((6, 64), D0, D1), body)
    function = scheduled([f32(6), f32(6, 64)], build, Decisions(vector=1, lanes=16))
    inner = innermost(function)
    assert inner.count("load") == 1
    assert "sqrt" not in inner and "shufflevector" not in inner


def test_neighbours_share_their_address() -> None:
    reads = [access(D0), access(D0 + 1), access(D0 + 2)]

    def build(b: Builder, x: Value) -> Sequence[Value]:
        return mapped((100,), reads, written((100,), D0), total)(b, x, x, x)

    inner = innermost(scheduled([f32(102)], build))
    assert len(re.findall(r"getelementptr float", inner)) == 2  # x and the result
    assert "i64 4" in inner and "i64 8" in inner


def test_a_product_that_is_summed_is_fused() -> None:
    output = written((8, 16), D0, D1, by=Combinator.ADD)
    build = mapped((8, 16, 32), [access(D0, D2), access(D2, D1)], output, product)
    types, decided = [f32(8, 32), f32(32, 16)], Decisions((0, 1, 2), 1, 16)
    function = scheduled(types, build, decided, target=replace(WIDE, fma=True))
    inner = innermost(function, fma=True)
    assert inner.count("llvm.fma.v16f32") == 1 and "fmul" not in inner and "store" not in inner
    inner = innermost(scheduled(types, build, decided), fma=False)
    assert "fma" not in inner and inner.count("fmul") == inner.count("fadd") == 1


def test_an_index_is_checked_where_it_is_read() -> None:
    reads = [access(D0), access(Loaded(0), D1, bounds=Bounds.CHECK)]
    build = mapped((6, 64), reads, written((6, 64), D0, D1))
    inner = innermost(scheduled([i32(6), f32(4, 64)], build, Decisions(vector=1, lanes=16)))
    assert "icmp uge" not in inner and inner.count("load") == 1


def test_what_nothing_needs_is_not_computed() -> None:
    def body(b: Builder, at: Sequence[Value], u: Value, v: Value) -> Value:
        b.emit(Multiply(), u, v)
        return u

    build = mapped((64,), [access(D0), access(D0)], written((64,), D0), body)
    inner = innermost(scheduled([f32(64), f32(64)], build))
    assert "fmul" not in inner and inner.count("load") == 1


def test_splats_take_no_memory() -> None:
    type = TensorType((64,), F32)

    def build(b: Builder, x: Value) -> Sequence[Value]:
        ones = b.emit(splat(type, 2.0))
        return mapped((64,), [access(D0), access(D0)], written((64,), D0), product)(b, x, ones)

    function = scheduled([type], build, Decisions(vector=0, lanes=16))
    assert "constant" not in "".join(blocks(function))
    agree(function, [sample(type)])


def test_an_index_that_is_a_literal_is_a_number() -> None:
    def build(b: Builder, x: Value) -> Sequence[Value]:
        two = b.emit(splat(TensorType((), I32), 2))
        reads = [access(), access(Loaded(0), D0, bounds=Bounds.CHECK)]
        return mapped((21,), reads, written((21,), D0))(b, two, x)

    function = scheduled([f32(4, 21)], build, Decisions(vector=0, lanes=16))
    assert "icmp uge" not in "".join(blocks(function))
    agree(function, [sample(f32(4, 21))])


def test_a_covered_result_is_not_filled() -> None:
    for by in (None, Combinator.ADD):
        output = written((6, 5), D0, D1, by=by)
        function = scheduled([f32(6, 5)], mapped((6, 5), [access(D0, D1)], output))
        assert "memset" not in "".join(blocks(function))


def test_a_loop_of_one_step_is_no_loop() -> None:
    function = scheduled(
        [f32(10)], mapped((10,), [access(D0)], written((10,), D0)), Decisions(vector=0, lanes=16)
    )
    assert len(blocks(function)) == 1
