"""Nests and what the schedule decides, in every mode."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest

from nnkit.core.errors import VerifyError
from nnkit.core.ir import Builder, Module, Stage, Value, finish_function, start_function
from nnkit.core.ir.placement import Placement, arena, output
from nnkit.core.kernels.build import KernelBuilder
from nnkit.core.ops import (
    Add,
    Bounds,
    Combinator,
    DataTypeCast,
    Equal,
    Return,
    splat,
)
from nnkit.core.ops.nest import Access, Affine, Index, Loaded, Output, build_nest, coordinate
from nnkit.core.text import parse_module, print_module
from nnkit.core.types import BOOL, F32, I64, TensorType, TupleType, scalar
from nnkit.core.verify import verify
from tests.rows import each

from .laws import check_meaning, error_of

VECTOR = TensorType((4,), F32)
INDICES = TensorType((3,), I64)
BODY = """ {
    'body(%d0: i64, %v: f32):
        yield %v: f32
    }"""


def scheduled(body: str) -> str:
    """A module in stage schedule."""
    return f"""module "m"
stage schedule
func @f: (<4 x f32>) -> <4 x f32> {{
'entry(%x: <4 x f32>):
{body}
    return %x: <4 x f32>
}}
"""


def gather(reads: Bounds, writes: Bounds, combinator: Combinator | None) -> Module:
    """out[i + 1 …] ∘= x[indices[i]]."""
    b = start_function([VECTOR, INDICES], ["x", "indices"])
    x, indices = b.block.arguments
    type = VECTOR
    if combinator is not None and combinator.is_logical:
        type = TensorType((4,), BOOL)

    def body(inner: Builder, at: Sequence[Value], read: Sequence[Value]) -> list[Value]:
        return [inner.emit(Equal(), read[1], read[1]) if type.dtype == BOOL else read[1]]

    written: Index = coordinate(0) + 1 if writes is Bounds.INSIDE else coordinate(0) * 2 + -1
    target = Output(type, (written,), combinator, writes)
    accesses = [(indices, Access((coordinate(0),))), (x, Access((Loaded(0),), reads))]
    [y] = build_nest(b, (3,), accesses, [target], body)
    b.emit_many(Return(), [y])
    module = Module(stage=Stage.COMPUTE)
    module.add(finish_function("f", b, type))
    return module


MODES = list(
    itertools.product(Bounds, (Bounds.INSIDE, Bounds.ZERO, Bounds.CLIP), [None, *Combinator])
)


@each("mode", MODES, ids=lambda mode: "-".join(map(str, mode)))
def test_every_mode_reads_back(mode: tuple[Bounds, Bounds, Combinator | None]) -> None:
    arguments = [np.arange(4, dtype=np.float32), np.array([2, 0, 3])]
    check_meaning(gather(*mode), "f", arguments)


@pytest.mark.parametrize(
    ("index", "text"),
    [
        (Affine(), "0"),
        (Affine(-3), "-3"),
        (coordinate(1), "d1"),
        (coordinate(0) * 2 + coordinate(1) + -3, "2 * d0 + d1 + -3"),
        (coordinate(0) * -1 + 7, "-1 * d0 + 7"),
        (Loaded(0), "read 0"),
    ],
)
def test_an_index_reads_back(index: Index, text: str) -> None:
    b = start_function([INDICES, TensorType((9,), F32)])
    reads = [
        (b.block.arguments[0], Access((Affine(),))),
        (b.block.arguments[1], Access((index,), Bounds.CLIP)),
    ]
    target = Output(TensorType((2, 2), F32), (coordinate(0), coordinate(1)))
    [y] = build_nest(b, (2, 2), reads, [target], lambda _, __, read: [read[1]])
    b.emit_many(Return(), [y])
    module = Module(stage=Stage.COMPUTE)
    module.add(finish_function("f", b, y.type))
    assert f"({text}) clip" in print_module(module)
    again = check_meaning(module, "f", [np.array([1, 2, 0]), np.arange(9, dtype=np.float32)])
    assert again.functions["f"].entry.instructions[0].op == y.op


def test_nests_with_nothing_to_read_and_with_many_results() -> None:
    b = start_function([])
    point = (coordinate(0),)

    def body(inner: Builder, at: Sequence[Value], _: Sequence[Value]) -> list[Value]:
        one = inner.emit(splat(scalar(F32), 1.5))
        return [inner.emit(Add(), inner.emit(DataTypeCast(F32), at[0]), one), at[0]]

    targets = [Output(VECTOR, point), Output(scalar(I64), (), Combinator.MAX)]
    results = build_nest(b, (4,), [], targets, body)
    one = splat(scalar(F32), 1)
    scalars = build_nest(b, (), [], [Output(scalar(F32), ())], lambda i, _, __: [i.emit(one)])
    made = TupleType((VECTOR, scalar(I64), scalar(F32)))
    module = returning(b, [*results, *scalars], made)
    text = print_module(module)
    assert "%0.0.0, %0.0.1 = nest 4 writing <4 x f32> at (d0), i64 at () by max {" in text
    assert "%0.1 = nest scalar writing f32 at () {" in text
    check_meaning(module, "f", [])


def returning(b: Builder, values: Sequence[Value], type: TupleType) -> Module:
    """The module whose function returns these values as one tuple."""
    b.emit_many(Return(), values)
    module = Module(stage=Stage.COMPUTE)
    module.add(finish_function("f", b, type))
    return module


def test_every_decision_of_the_schedule_reads_back() -> None:
    square = TensorType((4, 4), F32)
    b = start_function([square])
    [x] = b.block.arguments
    first = Placement((arena(64),))
    last = Placement((output(0),), (arena(192),))
    body = KernelBuilder([square], [square])
    with body.loop(4, grain=2) as rows:
        row = body.load(body.operands[0], 0, rows.index, lanes=4, steps=(1, 0))
        body.store(row, body.outputs[0], rows.index, 0, steps=(0, 1))
    [y] = body.kernel(b, x)
    b.block.instructions[-1].placement = first
    triangle = KernelBuilder([square], [square])
    (source,), (target,) = triangle.operands, triangle.outputs
    own = triangle.scratch(VECTOR)
    triangle.fill(target, triangle.constant(F32, 0))
    end = triangle.constant(I64, 9)
    with triangle.loop(4, grain=2) as rows, triangle.bounded_loop(rows.index, end, 4) as columns:
        triangle.store(triangle.load(source, rows.index, columns.index), own, columns.index)
        triangle.store(triangle.load(own, columns.index), target, rows.index, columns.index)
    [z] = triangle.kernel(b, y, copies=2)
    b.block.instructions[-1].placement = last
    b.emit_many(Return(), [z])
    module = Module(stage=Stage.SCHEDULE)
    module.add(finish_function("f", b, z.type))
    text = print_module(module)
    assert "parallel 2 {" in text and "into arena 64 {" in text
    assert "upto %3.2: i64 within 0 upto 4 {" in text
    assert "private 2 into output 0 scratch arena 192 {" in text
    again = check_meaning(module, "f", [np.eye(4, dtype=np.float32)])
    assert [i.op for i in again.functions["f"].entry.instructions[:2]] == [
        y.op,
        z.op,
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("nest 4 of %x: <4 x f32> reading (d1) writing <4 x f32> at (d0)", "index d1 leaves the 1 axes"),
        ("nest 5 of %x: <4 x f32> reading (d0) writing <4 x f32> at (d0) zero", "index d0 leaves <4 x f32>"),
        ("nest 4 of %x: <4 x f32> reading (d0, d0) writing <4 x f32> at (d0)", "2 indices for <4 x f32>"),
        ("nest 4 of %x: <4 x f32> writing <4 x f32> at (d0)", "1 operands and 0 accesses"),
        ("nest 4 of %x: <4 x f32> reading (dx) writing <4 x f32> at (d0)", "an index made of coordinates"),
        ("nest 4 of %x: <4 x f32> reading (d99999) writing <4 x f32> at (d0)", "an index made of coord"),
        (f"nest 4 of %x: <4 x f32> reading ({2**62} * d0 + {2**62} * d0) clip writing", "64 bits"),
        ("nest 4 of %x: <4 x f32> reading (d0) into <4 x f32>", "'writing' was expected, not 'into'"),
        ("nest 4 of %x: <4 x f32> reading (d0) writing <4 x f32> (d0)", "'at' was expected, not '('"),
        ("nest 4 of %x: <4 x f32> reading (d0) writing <4 x f32> at (d0) by sum", "'add', 'multiply', 'min'"),
        ("nest -4 writing f32 at ()", "an extent cannot be negative"),
        ("kernel of %x: <4 x f32> writing <4 x f32> into heap 4", "'arena', 'output' or "),
    ],
)  # fmt: skip
def test_a_wrong_nest_is_an_error(line: str, message: str) -> None:
    assert message in error_of(scheduled(f"    %y = {line}{BODY}"))


def test_a_nest_needs_its_body_and_other_ops_have_none() -> None:
    nest = "    %y = nest 4 of %x: <4 x f32> reading (d0) writing <4 x f32> at (d0)"
    assert "'{' was expected, not 'return'" in error_of(scheduled(nest))
    assert "an instruction, a block or '}' was expected, not '{'" in error_of(
        scheduled(f"    %y = negate %x: <4 x f32>{BODY}")
    )
    assert "a block '… was expected, not '}'" in error_of(scheduled(f"{nest} {{ }}"))


def test_a_body_sees_values_around_it_only_for_the_verifier_to_refuse() -> None:
    body = BODY.replace("yield %v: f32", "%z = negate %x: <4 x f32>\n yield %v: f32")
    nest = "    %y = nest 4 of %x: <4 x f32> reading (d0) writing <4 x f32> at (d0)"
    module = parse_module(scheduled(nest + body))
    with pytest.raises(
        VerifyError, match="the operand %x: <4 x f32> comes from outside a closed body"
    ):
        verify(module)
