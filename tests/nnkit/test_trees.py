"""Functions on trees of tensors, concrete and staged, and what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nnkit as nk
from nnkit import (
    DTypeError,
    Field,
    NNKitError,
    Rep,
    Scalar,
    ShapeError,
    Struct,
    Tensor1D,
    f32,
    f64,
)


class Part(Struct):
    v: Field[Tensor1D[f32]]


class Whole(Struct):
    parts: Field[list[Part]]
    s: Field[Scalar[f32]]


WHOLE = Whole([Part([1.0, 2.0]), Part([3.0])], 4.0)


def test_map_keeps_the_structure() -> None:
    twice = nk.tree.map(lambda x: x * 2.0, WHOLE)
    assert twice == Whole([Part([2.0, 4.0]), Part([6.0])], 8.0)
    assert nk.tree.map(lambda x, y: x + np.asarray(y), WHOLE, twice) == WHOLE * 3
    longer = nk.tree.map(lambda x: np.append(np.asarray(x), 9.0).astype(np.float32), WHOLE.parts)
    assert [one.v.tolist() for one in longer] == [[1.0, 2.0, 9.0], [3.0, 9.0]]
    plain = nk.tree.map(lambda x: x + 1.0, [f32(1.0), (f32(2.0), WHOLE)])
    assert type(plain) is list and type(plain[1]) is tuple
    assert nk.tree.map(nk.zeros_like, WHOLE) == WHOLE * 0
    assert nk.tree.map(lambda x: 0.5, Whole([], 4.0)) == Whole([], 0.5)


def test_leaves_and_reduce() -> None:
    assert [leaf.shape for leaf in nk.tree.leaves(WHOLE)] == [(2,), (1,), ()]
    assert nk.tree.leaves(f32(1.0)) == [1.0]
    assert nk.tree.reduce(lambda total, x: total + x.size, WHOLE, 0) == 4

    @nk.staged
    def total(p: Rep[Whole]) -> Rep[Scalar[f32]]:
        assert len(nk.tree.leaves(p)) == 3
        return nk.tree.reduce(lambda sum_, x: sum_ + x.sum(), p, nk.const(f32(0.0)))

    assert float(total(WHOLE)) == 10.0


def test_of_staged_and_concrete_trees_together() -> None:
    @nk.staged
    def moved(p: Rep[Whole]) -> tuple[Rep[Whole], Rep[Whole]]:
        made: Any = nk.tree.map(lambda x: nk.const(x) * 3.0, WHOLE)
        return nk.tree.map(lambda x, y: x + y, p, WHOLE), made  # type: ignore[call-overload, no-any-return]

    found = moved(WHOLE)
    assert found == (WHOLE * 2, WHOLE * 3)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: nk.tree.map(lambda x, y: x, WHOLE, WHOLE.parts), DTypeError, "a Whole, and tree 2 a tuple"),
        (lambda: nk.tree.map(lambda x, y: x, [f32(1)], [f32(1), f32(2)]), ShapeError, "has 1 values, and tree 2 2"),
        (
            lambda: nk.tree.map(lambda x, y: x, WHOLE, WHOLE.replace(parts=[])),
            ShapeError, "has 2 values at parts, and tree 2 0",
        ),
        (lambda: nk.tree.map(lambda x, y: x, (f32(1),), (WHOLE,)), DTypeError, r"a leaf at \[0\], and tree 2 a Whole"),
        (lambda: nk.tree.map(lambda x: x.cast(f64), WHOLE), DTypeError, r"Part\.v must be a Tensor1D\[f32\]"),
        (lambda: nk.tree.map(lambda x: "text", WHOLE), NNKitError, "got a str"),
    ],
)  # fmt: skip
def test_what_map_refuses(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


def test_asdict() -> None:
    found = nk.asdict(WHOLE)
    assert list(found) == ["parts", "s"] and found["parts"][0]["v"] is WHOLE.parts[0].v
    assert [lens.name for lens in nk.fields(Whole)] == ["parts", "s"]
