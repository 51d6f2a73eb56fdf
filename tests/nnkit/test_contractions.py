"""Contractions against NumPy: a table, and strings of all kinds at random."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nnkit as nk
from nnkit import DTypeError, RankError, ShapeError, StagingError, staged
from nnkit.core.types import Array

from .function_laws import Row, check
from .messages import Table, on, ones

random = np.random.default_rng(6)
A, B, C = random.normal(size=(3, 4)), random.normal(size=(4, 5)), random.normal(size=(2, 3, 4))
S, V, W = random.normal(size=(3, 3)), random.normal(size=4), random.normal(size=2)
SUBSCRIPTS: dict[str, tuple[Array, ...]] = {
    "ij,jk->ik": (A, B),
    "ij,jk": (A, B),
    "ji,kj->ki": (A, S),
    "ii": (S,),
    "ii->i": (S,),
    "iij->j": (random.normal(size=(3, 3, 4)),),
    "iji->ji": (random.normal(size=(3, 4, 3)),),
    "ij->ji": (A,),
    "ba": (A,),
    "ij->": (A,),
    "i,i": (V, V),
    "i,j->ji": (V, W),
    "ij,j->i": (A, V),
    "bij,bjk->bik": (C, random.normal(size=(2, 4, 3))),
    "bij,jk->bik": (C, B),
    "bij,bj->bi": (C, random.normal(size=(2, 4))),
    "bij,bij->b": (C, C),
    "ij,jk,kl->il": (A, B, random.normal(size=(5, 2))),
    "i,ij,j": (random.normal(size=3), A, V),
    "i,j,k->kij": (V, W, W),
    "...ij,...jk->...ik": (C, B),
    "...i->...": (C,),
    "i...,...i": (random.normal(size=(3, 2)), random.normal(size=(2, 3))),
    "ij,ij->ij": (A, random.normal(size=(1, 4))),
    "ij,jk->ik ": (random.normal(size=(3, 1)), B),
    " b...,...b->...": (C, C.transpose(1, 2, 0)),
    ",ij->ij": (np.array(2.0), A),
    "ab,ab,ab->a": (A, A, A),
}


def test_laws_of_einsum() -> None:
    check(
        {
            text: Row(
                lambda *xs, text=text: nk.einsum(text, *xs),
                lambda *xs, text=text: np.einsum(text.replace(" ", ""), *xs),
                operands,
                tolerance=1e-13,
            )
            for text, operands in SUBSCRIPTS.items()
        }
    )


def test_laws_of_products() -> None:
    rows = {
        "tensordot": Row(nk.tensordot, np.tensordot, (C, random.normal(size=(3, 4, 2)))),
        "tensordot of one axis": Row(
            lambda x, y: nk.tensordot(x, y, 1), lambda x, y: np.tensordot(x, y, 1), (C, B)
        ),
        "tensordot of none": Row(
            lambda x, y: nk.tensordot(x, y, 0), lambda x, y: np.tensordot(x, y, 0), (A, W)
        ),
        "tensordot of pairs": Row(
            lambda x, y: nk.tensordot(x, y, ((2, 1), (-1, 0))),
            lambda x, y: np.tensordot(x, y, ((2, 1), (-1, 0))),
            (C, random.normal(size=(3, 2, 4))),
        ),
        "tensordot of an axis each": Row(
            lambda x, y: nk.tensordot(x, y, (0, 1)), lambda x, y: np.tensordot(x, y, (0, 1)), (A, S)
        ),
        "inner": Row(nk.inner, np.inner, (C, A)),
        "inner of vectors": Row(nk.inner, np.inner, (V, V)),
        "inner of a scalar": Row(nk.inner, np.inner, (np.array(2.0), A)),
        "outer": Row(nk.outer, np.outer, (V, A)),
        "vdot": Row(nk.vdot, np.vdot, (A, A.reshape(4, 3) + 1.0)),
        "cross": Row(nk.cross, np.cross, (S, V[:3])),
        "cross along an axis": Row(
            lambda x, y: nk.cross(x, y, axis=1),
            lambda x, y: np.cross(x, y, axis=1),
            (C, C * C),
        ),
        "kron": Row(nk.kron, np.kron, (A, S)),
        "kron of ranks": Row(nk.kron, np.kron, (W, A)),
        "integers": Row(
            lambda n: nk.einsum("ij,kj->ik", n, n),
            lambda n: np.einsum("ij,kj->ik", n, n),
            (np.arange(6).reshape(2, 3),),
        ),
    }
    for ours, name in itertools.product((nk.convolve, nk.correlate), ("full", "same", "valid")):
        for one, other in ((5, 3), (5, 2), (4, 2), (4, 4), (2, 5), (3, 4), (1, 1)):
            oracle = getattr(np, ours.__name__)
            rows[f"{ours.__name__}, {name}, {one} and {other}"] = Row(
                lambda x, y, ours=ours, mode=name: ours(x, y, mode),
                lambda x, y, oracle=oracle, mode=name: oracle(x, y, mode),
                (random.normal(size=one), random.normal(size=other)),
                tolerance=1e-13,
                order=2 if (one, other) in ((5, 3), (2, 5)) else 0,
                batched=None if (one, other) == (5, 2) else (),
            )
    check(rows)


@st.composite
def contractions(draw: Any) -> tuple[str, list[Array]]:
    """Subscripts, and operands of small extents, some of them 1 or 0."""
    extents = {label: draw(st.sampled_from([1, 2, 3, 2, 3, 0])) for label in "abcd"}
    terms = draw(st.lists(st.text("abcd", max_size=3), min_size=1, max_size=3))
    spread = draw(st.booleans())
    terms = [draw(st.sampled_from([term, f"...{term}"])) if spread else term for term in terms]
    shared = draw(st.integers(1, 3))
    shapes = [
        [*([shared] if "..." in term else []), *(extents[label] for label in term if label != ".")]
        for term in terms
    ]
    text = ",".join(terms)
    if draw(st.booleans()):
        present = sorted({*text} - {*",."})
        kept = draw(st.lists(st.sampled_from(present), unique=True, max_size=3)) if present else []
        text += "->" + ("..." if "..." in text else "") + "".join(kept)
    numbers = np.random.default_rng(len(text))
    return text, [numbers.integers(-3, 4, shape).astype(float) for shape in shapes]


@settings(max_examples=5, deadline=None)
@given(st.lists(contractions(), min_size=8, max_size=8))
def test_random_subscripts(several: list[tuple[str, list[Array]]]) -> None:
    several = [(text, xs) for text, xs in several if np.ndim(np.einsum(text, *xs)) <= 4]
    many = staged(lambda: nk.tup(*(nk.einsum(text, *map(nk.const, xs)) for text, xs in several)))
    for (text, xs), found in zip(several, many() if len(several) > 1 else (), strict=False):
        wanted = np.einsum(text, *xs)
        assert np.asarray(found).shape == wanted.shape, text
        np.testing.assert_array_equal(np.asarray(found), wanted, err_msg=text)


def test_matrix_products_are_made_of_dot() -> None:
    @staged
    def scores(x: Any, y: Any) -> Any:
        return nk.einsum("bqhd,bkhd->bhqk", x, y)

    given = np.ones((2, 3, 4, 5), np.float32)
    assert scores.ir(given, given).count(" dot ") == 1
    chain = staged(lambda x, y, z: nk.einsum("ij,jk,k->i", x, y, z))
    assert "<30 x 30 x f32> = dot" not in chain.ir(ones(30, 30), ones(30, 30), ones(30))


ROWS = Table()
row = ROWS.row
M, N, L = ones(2, 3), np.arange(3, dtype=np.int32), np.array([True, False])

# fmt: off

row("labels that differ", ShapeError, "einsum: 'j' is 3 and 2, in operand 1 of shape [2, 3]",
    'nk.einsum("ij,jk", x, x)')(on(lambda x: nk.einsum("ij,jk", x, x), M))
row("diagonal", ShapeError, "einsum: 'i' is 2 and 3, in operand 0 of shape [2, 3]")(on(lambda x: nk.einsum("ii", x), M))
row("diagonal of one row", ShapeError, "einsum: 'i' is 1 and 3 in one operand of shape [1, 3]")(
    on(lambda x: nk.einsum("ii", x), ones(1, 3)))
row("rank of an operand", RankError, "einsum: 'ijk' in 'ijk->i' stands for 3 axes, and operand 0 has rank 2")(
    on(lambda x: nk.einsum("ijk->i", x), M))
row("rank of an ellipsis", RankError, "einsum: 'ij...k' in 'ij...k' stands for 3 axes, and operand 0 has rank 2")(
    on(lambda x: nk.einsum("ij...k", x), M))
row("number of operands", StagingError, "einsum cannot read 'ij,jk': it has 2 operands, and 1 are given")(
    on(lambda x: nk.einsum("ij,jk", x), M))
row("characters", StagingError, "einsum cannot read 'ij+k': labels are letters, and '->' stands once")(
    on(lambda x: nk.einsum("ij+k", x), M))
row("two arrows", StagingError, "einsum cannot read 'ij->j->i'")(on(lambda x: nk.einsum("ij->j->i", x), M))
row("dots", StagingError, "einsum cannot read '..i': an ellipsis is '...', once in each operand")(
    on(lambda x: nk.einsum("..i", x), M))
row("twice in the result", StagingError, "einsum cannot read 'ij->ii': 'i' is twice in the result")(
    on(lambda x: nk.einsum("ij->ii", x), M))
row("in no operand", StagingError, "einsum cannot read 'ij->ik': 'k' of the result is in no operand")(
    on(lambda x: nk.einsum("ij->ik", x), M))
row("lost ellipsis", StagingError, "einsum cannot read '...j->j': the axes of '...' must be in the result")(
    on(lambda x: nk.einsum("...j->j", x), M))
row("no string", StagingError, "einsum takes a string like 'ij,jk->ik' first")(on(lambda x: nk.einsum(x, x), M))
row("declared rank", RankError, "einsum: 'ij->i' gives a tensor of rank 1, not of rank 2",
    'nk.einsum("ij->i", x, rank=2)')(on(lambda x: nk.einsum("ij->i", x, rank=2), M))
row("rank 6", RankError, "einsum: the result would have rank 6; tensors have at most 5")(
    on(lambda x: nk.einsum("ij,kl,mn->ijklmn", x, x, x), M))
row("truth values", DTypeError, "einsum takes numbers, not Tensor1D[boolean]", "", "help: cast it")(
    on(lambda x: nk.einsum("i->", x), L))
row("types", DTypeError, "outer takes tensors of one element type, not Tensor2D[f32] and Tensor1D[i32]",
    "nk.outer(x, n)", "help: cast one")(on(lambda x, n: nk.outer(x, n), M, N))
row("axes of tensordot", RankError, "tensordot: axes=3 of tensors of rank 2 and 2", "nk.tensordot(x, x, 3)")(
    on(lambda x: nk.tensordot(x, x, 3), M))
row("pairs of tensordot", RankError, "tensordot: axes is a number of axes, or a pair of an axis or a tuple of axes")(
    on(lambda x: nk.tensordot(x, x, ((0, 1), (0,))), M))
row("convolve of matrices", RankError, "convolve takes two vectors, not a Tensor2D[f32]", "nk.convolve(x, x)")(
    on(lambda x: nk.convolve(x, x), M))
row("mode", ShapeError, "correlate: mode is 'full', 'same' or 'valid', not 'all'")(
    on(lambda x: nk.correlate(x[0], x[0], "all"), M))
row("empty", ShapeError, "convolve: a vector is empty: [3, 0] elements", "nk.convolve(x, x[:0])")(
    on(lambda x: nk.convolve(x, x[:0]), ones(3)))

# fmt: on


@pytest.mark.parametrize("name", ROWS)
def test_message(name: str) -> None:
    ROWS[name].check("test_contractions.py")
