"""Contractions: sums of products over shared axes.

They become matrix products where they are some (`core.ops.einsum`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from .core.errors import ShapeError
from .core.ir import Builder, Value
from .core.ops import Convolve
from .core.ops.einsum import einsum as einsum_rule
from .core.ops.movement import Reverse, reshaped
from .functions import stack
from .reps import as_rep
from .shaping import moveaxis
from .staging import primitive
from .staging.primitive import (
    MAX_RANK,
    dtype_error,
    normalize_axis,
    rank_error,
    shape_error,
    staging_error,
)
from .staging.rep import Rep
from .staging.spec import TensorSpec, as_tuple

_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def einsum(subscripts: Any, /, *operands: Any, rank: int | None = None) -> Rep:
    """Σ of the products of the operands over the labels that are not in the result, by NumPy's rules.

    Without `->`, the result has the labels that occur once, in alphabetical order; a label that an operand has twice
    takes its diagonal; `...` stands for leading axes that broadcast, as do axes of extent 1.  Type checkers know the
    rank of the result of common strings; of others if `rank` says it, which is checked, and take it for any without.

    Example: `nk.einsum("ij,kj->ik", m, m, rank=2)`
    """
    if not isinstance(subscripts, str):
        raise staging_error(
            f"einsum takes a string like 'ij,jk->ik' first, not {subscripts!r}",
            "labels in lists are not taken: write them as letters",
        )
    reps = [as_rep(operand) for operand in operands]
    specs = _numeric("einsum", reps)
    inputs, output = _parsed(subscripts, [spec.rank for spec in specs])
    if rank is not None and rank != len(output):
        raise rank_error(
            f"einsum: '{subscripts}' gives a tensor of rank {len(output)}, not of rank {rank}"
        )
    return _contracted("einsum", reps, inputs, output)


def tensordot(a: Any, b: Any, axes: Any = 2) -> Rep:
    """Σ over the last `axes` axes of a and the first of b, or over those that a pair of tuples names.

    Example: `nk.tensordot(m, s, axes=((0,), (1,)))`
    """
    reps = as_rep(a), as_rep(b)
    ranks = [spec.rank for spec in _numeric("tensordot", reps)]
    if primitive.is_index(axes):
        if not 0 <= axes <= min(ranks):
            raise rank_error(f"tensordot: axes={axes} of tensors of rank {ranks[0]} and {ranks[1]}")
        pairs = [list(range(ranks[0] - axes, ranks[0])), list(range(axes))]
    else:
        pairs = _pairs(axes, ranks)
    inputs = [list(_LETTERS[: ranks[0]]), list(_LETTERS[ranks[0] : sum(ranks)])]
    for one, other in zip(*pairs, strict=True):
        inputs[1][other] = inputs[0][one]
    output = "".join(
        label for label in inputs[0] + inputs[1] if (label in inputs[0]) is not (label in inputs[1])
    )
    return _contracted("tensordot", reps, ["".join(labels) for labels in inputs], output)


def _pairs(axes: Any, ranks: Sequence[int]) -> list[list[int]]:
    """The axes of both sides that are summed over."""
    words = (
        "tensordot: axes is a number of axes, or a pair of an axis or a tuple of axes for each side"
    )
    sides = as_tuple(axes)
    if len(sides) != 2:
        raise rank_error(f"{words}, not {axes!r}")
    pairs = [
        [primitive.normalize_axis(axis, rank) for axis in as_tuple(side)]
        for side, rank in zip(sides, ranks, strict=True)
    ]
    if len(pairs[0]) != len(pairs[1]) or any(len(set(pair)) != len(pair) for pair in pairs):
        raise rank_error(f"{words}, as many of each and none twice, not {axes!r}")
    return pairs


def inner(a: Any, b: Any, /) -> Rep:
    """Σ over the last axes of both; of a scalar and a tensor their product.

    Example: `nk.inner(m, x)`
    """
    reps = as_rep(a), as_rep(b)
    ranks = [spec.rank for spec in _numeric("inner", reps)]
    if 0 in ranks:
        return reps[0] * reps[1]
    labels = _LETTERS[: sum(ranks) - 1]
    one, other = labels[: ranks[0]], labels[ranks[0] :] + labels[ranks[0] - 1]
    return _contracted("inner", reps, [one, other], one[:-1] + other[:-1])


def outer(a: Any, b: Any) -> Rep:
    """All products of an element of a and one of b, both in row-major order.

    Shapes: a (n), b (m) → (n, m); of n and m elements whatever the ranks.

    Example: `nk.outer(x, y)`
    """
    reps = [rep.reshape(-1) for rep in _tensors("outer", a, b)]
    return _contracted("outer", reps, ["a", "b"], "ab")


def cross(
    a: Any,
    b: Any,
    axisa: int = -1,
    axisb: int = -1,
    axisc: int = -1,
    axis: int | None = None,
) -> Rep:
    """The cross products of vectors of three numbers, which lie along `axis`; the other axes broadcast.

    They lie along `axisa` of a, `axisb` of b and `axisc` of the result where there is no `axis`.

    Shapes: a (…, 3), b (…, 3) → (…, 3).
    Raises: ShapeError for vectors of another length.

    Example: `nk.cross(m[:, :3], x[:3])`
    """
    one, other = _tensors("cross", a, b)
    most = max(one.ndim, other.ndim)
    if not min(one.ndim, other.ndim):
        raise rank_error("cross takes vectors, or tensors of vectors along an axis, not scalars")
    if axis is not None:
        axisa = axisb = axisc = axis
    p, q = _components(one, axisa), _components(other, axisb)
    parts = [p[i] * q[j] - p[j] * q[i] for i, j in ((1, 2), (2, 0), (0, 1))]
    return stack(parts, axis=axisc if axisc < 0 else normalize_axis(axisc, most))


def _components(x: Rep, axis: int) -> list[Any]:
    """The three parts along an axis, which is reshaped to 3, so that another extent is an error."""
    last = moveaxis(x, axis, -1)
    three = last.reshape(*last.shape[:-1], 3)
    return [three[..., k] for k in range(3)]


def vdot(a: Any, b: Any, /) -> Rep:
    """Σ of the products of all elements, both in row-major order.

    Example: `nk.vdot(x, y)`
    """
    reps = [rep.reshape(-1) for rep in _tensors("vdot", a, b)]
    return reps[0] @ reps[1]


def kron(a: Any, b: Any) -> Rep:
    """Kronecker product: a copy of b for each element of a, times it.

    Shapes: a (n, m), b (k, l) → (n · k, m · l); missing leading axes count as 1.

    Example: `nk.kron(s, s)`
    """
    reps = _tensors("kron", a, b)
    specs = _numeric("kron", reps)
    spec = TensorSpec(max(spec.rank for spec in specs), specs[0].dtype)

    def build(b: Builder, x: Value, y: Value) -> Value:
        shapes = [(*[1] * (spec.rank - v.tensor.rank), *v.tensor.shape) for v in (x, y)]
        sides = [reshaped(b, v, shape) for v, shape in zip((x, y), shapes, strict=True)]
        one, other = _LETTERS[: spec.rank], _LETTERS[spec.rank : 2 * spec.rank]
        output = "".join(a + c for a, c in zip(one, other, strict=True))
        found = einsum_rule(b, *sides, inputs=[one, other], output=output)
        return reshaped(b, found, [n * m for n, m in zip(*shapes, strict=True)])

    return Rep(primitive.shape_dependent("kron", build, [rep.expression for rep in reps], spec))


def convolve(a: Any, v: Any, mode: str = "full") -> Rep:
    """Σₖ a[k] · v[n − k] of two vectors: at all places where they overlap, `mode="valid"` where they do wholly, and
    with `"same"` at as many in the middle as the longer one has.

    Example: `nk.convolve(x, y, "same")`
    """
    return _slid("convolve", a, v, mode, turned=True)


def correlate(a: Any, v: Any, mode: str = "valid") -> Rep:
    """Σₖ a[n + k] · v[k] of two vectors; `mode` is that of `convolve`.

    Example: `nk.correlate(x, y, "full")`
    """
    return _slid("correlate", a, v, mode, turned=False)


def _slid(name: str, x: Any, y: Any, mode: str, *, turned: bool) -> Rep:
    """One vector along the other, the shorter one as kernel."""
    reps = _tensors(name, x, y)
    for spec in _numeric(name, reps):
        if spec.rank != 1:
            raise rank_error(f"{name} takes two vectors, not a {spec.words}")
    if mode not in ("full", "same", "valid"):
        raise shape_error(f"{name}: mode is 'full', 'same' or 'valid', not {mode!r}")
    build = partial(_slide, mode=mode, turned=turned, name=name)
    spec = primitive.tensor_of(reps[0].expression, name)
    return Rep(primitive.shape_dependent(name, build, [rep.expression for rep in reps], spec))


def _slide(b: Builder, x: Value, y: Value, mode: str, turned: bool, name: str) -> Value:
    """NumPy exchanges the two where y is the longer one: a correlation comes out turned around."""
    sizes = x.tensor.size, y.tensor.size
    if 0 in sizes:
        raise ShapeError(f"{name}: a vector is empty: {list(sizes)} elements")
    exchanged = sizes[1] > sizes[0]
    long, short = (y, x) if exchanged else (x, y)
    if turned:
        short = b.emit(Reverse((0,)), short)
    reach = min(sizes) - 1
    # NumPy keeps the earlier of the two middles of a convolution, and so the later one where it turns the result
    low = {"full": reach, "valid": 0, "same": (reach + 1) // 2}[mode]
    high = {"full": reach, "valid": 0, "same": reach // 2}[mode]
    signal, kernel = (reshaped(b, v, (1, 1, v.tensor.size)) for v in (long, short))
    found = b.emit(Convolve(padding=((low, high),)), signal, kernel)
    found = reshaped(b, found, (found.tensor.size,))
    return b.emit(Reverse((0,)), found) if exchanged and not turned else found


def _tensors(name: str, x: Any, y: Any) -> list[Rep]:
    reps = [as_rep(x), as_rep(y)]
    _numeric(name, reps)
    return reps


def _numeric(name: str, reps: Sequence[Rep]) -> list[TensorSpec]:
    """The types of tensors of numbers.  Raises: DTypeError when they differ."""
    specs = [primitive.tensor_of(rep.expression, name) for rep in reps]
    for spec in specs:
        if not spec.dtype.is_numeric:
            raise dtype_error(f"{name} takes numbers, not {spec.words}", "cast it, `x.cast(dtype)`")
        if spec.dtype is not specs[0].dtype:
            raise dtype_error(
                f"{name} takes tensors of one element type, not {specs[0].words} and {spec.words}",
                "cast one of them, `x.cast(dtype)`",
            )
    return specs


def _contracted(name: str, reps: Sequence[Rep], inputs: Sequence[str], output: str) -> Rep:
    if len(output) > MAX_RANK:
        raise rank_error(
            f"{name}: the result would have rank {len(output)}; tensors have at most {MAX_RANK}"
        )
    dtype = primitive.tensor_of(reps[0].expression, name).dtype
    rule: Callable[..., Value] = partial(einsum_rule, inputs=inputs, output=output)
    operands = [rep.expression for rep in reps]
    return Rep(primitive.shape_dependent(name, rule, operands, TensorSpec(len(output), dtype)))


def _parsed(subscripts: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """The labels of the operands and of the result, a letter for each axis.

    Raises: StagingError when the string is none of these; RankError when an operand has another rank.
    """
    text = subscripts.replace(" ", "")
    if not re.fullmatch(r"[a-zA-Z.,]*(->[a-zA-Z.]*)?", text):
        raise _unclear(
            subscripts, "labels are letters, and '->' stands once, before those of the result"
        )
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if any(term.replace("...", "", 1).count(".") for term in (*terms, right)):
        raise _unclear(subscripts, "an ellipsis is '...', once in each operand")
    if len(terms) != len(ranks):
        raise _unclear(subscripts, f"it has {len(terms)} operands, and {len(ranks)} are given")
    spare = iter(
        sorted(
            set("zyxwvutsrqponmlkjihgfedcbaZYXWVUTSRQPONMLKJIHGFEDCBA") - set(text), reverse=True
        )
    )
    hidden = "".join(
        next(spare) for _ in range(MAX_RANK)
    )  # the axes of an ellipsis, the last one last
    inputs: list[str] = []
    widest = 0
    for position, (term, rank) in enumerate(zip(terms, ranks, strict=True)):
        count = rank - len(term.replace("...", ""))
        if count < 0 or (count and "..." not in term):
            raise rank_error(
                f"einsum: '{term}' in '{subscripts}' stands for {len(term.replace('...', ''))} axes, and operand "
                f"{position} has rank {rank}"
            )
        widest = max(widest, count)
        inputs.append(term.replace("...", hidden[MAX_RANK - count :]))
    spread = hidden[MAX_RANK - widest :]
    if arrow:
        if widest and "..." not in right:
            raise _unclear(
                subscripts,
                "the axes of '...' must be in the result: write '...' there, or sum before",
            )
        output = right.replace("...", spread)
    else:
        once = sorted(label for label in set(left) - set(".,") if left.count(label) == 1)
        output = spread + "".join(once)
    for label in output:
        if output.count(label) > 1:
            raise _unclear(subscripts, f"'{label}' is twice in the result")
        if not any(label in labels for labels in inputs):
            raise _unclear(subscripts, f"'{label}' of the result is in no operand")
    return inputs, output


def _unclear(subscripts: str, why: str) -> Exception:
    return staging_error(f"einsum cannot read '{subscripts}': {why}")
