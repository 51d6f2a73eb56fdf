"""Laws of every elementwise function."""

from __future__ import annotations

import pytest

from nnkit.core.ops import Add, Broadcast, Exp, Multiply, PadShape, Select
from nnkit.core.passes import Canonicalize, apply_pass
from nnkit.core.types import BOOL, F32, TensorType
from tests.core.passes.laws import Law, check, full, module_of, rows

X = TensorType((3, 4), F32)
ROW = TensorType((4,), F32)
COLUMN = TensorType((3, 1), F32)
ONE = TensorType((), F32)

LAWS = rows(
    (
        "x + broadcast(y) = x + y",
        [X, ROW],
        lambda b, x, y: b.emit(Add(), x, b.emit(Broadcast((3, 4)), y)),
        "add",
    ),
    (
        "broadcast(x) + y = x + y",
        [COLUMN, ROW],
        lambda b, x, y: b.emit(Add(), b.emit(Broadcast((3, 4)), x), y),
        "add",
    ),
    (
        "exp(broadcast(x))",
        [ROW],
        lambda b, x: b.emit(Exp(), b.emit(Broadcast((3, 4)), x)),
        "exp broadcast",
    ),
    (
        "a product of broadcasts",
        [ROW, ONE],
        lambda b, x, y: b.emit(
            Multiply(), b.emit(Broadcast((3, 4)), x), b.emit(Broadcast((3, 1)), y)
        ),
        "multiply broadcast",
    ),
    (
        "a leading axis of extent 1",
        [X, ROW],
        lambda b, x, y: b.emit(Add(), x, b.emit(PadShape(0), y)),
        "add",
    ),
    (
        "the axis is the only one",
        [ROW],
        lambda b, x: b.emit(Exp(), b.emit(PadShape(0), x)),
        "shapeCast exp",
    ),
    (
        "a trailing axis stays",
        [X, TensorType((3,), F32)],
        lambda b, x, y: b.emit(Add(), x, b.emit(PadShape(1), y)),
        "shapeCast add",
    ),
    (
        "a broadcast condition",
        [X, TensorType((4,), BOOL)],
        lambda b, x, c: b.emit(Select(), x, full(b, x, 0), b.emit(Broadcast((3, 4)), c)),
        "select",
    ),
    ("nothing is broadcast", [X, X], lambda b, x, y: b.emit(Add(), x, y), "add"),
)


@pytest.mark.parametrize("law", LAWS)
def test_law(law: Law) -> None:
    check(law)


def test_a_splat_becomes_a_scalar() -> None:
    module = module_of([X], lambda b, x: b.emit(Add(), x, full(b, x, 2.5)))
    assert apply_pass(Canonicalize(), module)
    (_, two, _, _) = [*module.functions["main"].entry.instructions, None][:4]
    add = next(i for i in module.functions["main"].entry.instructions if isinstance(i.op, Add))
    assert add.operands[1].type == ONE and two is not None
