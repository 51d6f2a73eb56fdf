"""Products for guard pages: on both sides of every size from which kernels compute them, or compute them in parts.

A case is a form (`FORMS`: matrices, vectors, batches), of operands that are stored transposed or computed before, and
an epilogue (`EPILOGUES`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from nnkit.core.ir import Builder, Value
from nnkit.core.ops import Add, DataTypeCast, Dot, Maximum, Reduce, Tanh, Transpose
from nnkit.core.ops.combinator import Combinator
from nnkit.core.ops.contraction import LEAST_PRODUCT
from nnkit.core.schedule.long_sums import LONG
from nnkit.core.types import BF16, F16, F32, F64, DType, Shape, TensorType

from .guarded_programs import Case, Random, operand, pick, upto

FLOATS = (F64, F32, F16, BF16)
IN_KERNELS = (F32, F64)


@dataclass(frozen=True)
class Sizes:
    """Of one product: m x k by k x n."""

    m: int
    k: int
    n: int


Form: TypeAlias = Callable[[Random, Sizes], tuple[Shape, Shape]]


def _matrices(_: Random, s: Sizes) -> tuple[Shape, Shape]:
    return (s.m, s.k), (s.k, s.n)


def _row(_: Random, s: Sizes) -> tuple[Shape, Shape]:
    return (1, s.k), (s.k, s.n)


def _column(_: Random, s: Sizes) -> tuple[Shape, Shape]:
    return (s.m, s.k), (s.k, 1)


def _vector_by_matrix(_: Random, s: Sizes) -> tuple[Shape, Shape]:
    return (s.k,), (s.k, s.n)


def _matrix_by_vector(_: Random, s: Sizes) -> tuple[Shape, Shape]:
    return (s.m, s.k), (s.k,)


def _batch(random: Random, s: Sizes) -> tuple[Shape, Shape]:
    count = upto(random, 1, 3)
    return (count, s.m, s.k), (count, s.k, s.n)


def _tall(random: Random, s: Sizes) -> tuple[Shape, Shape]:
    """One product of all rows of the batch."""
    count = upto(random, 2, 3)
    return (count, -(-s.m // count), s.k), (s.k, s.n)


def _batch_by_vector(random: Random, s: Sizes) -> tuple[Shape, Shape]:
    count = upto(random, 2, 3)
    return (count, -(-s.m // count), s.k), (s.k,)


def _one_by_batch(random: Random, s: Sizes) -> tuple[Shape, Shape]:
    left: list[Shape] = [(s.m, s.k), (s.k,)]
    return pick(random, left), (upto(random, 2, 3), s.k, s.n)


def _broadcast_batches(random: Random, s: Sizes) -> tuple[Shape, Shape]:
    return (upto(random, 1, 2), 1, s.m, s.k), (upto(random, 1, 3), s.k, s.n)


FORMS: dict[Form, tuple[bool, bool]] = {
    _matrices: (True, True),
    _row: (False, True),
    _column: (True, False),
    _vector_by_matrix: (False, True),
    _matrix_by_vector: (True, False),
    _batch: (True, True),
    _tall: (True, True),
    _batch_by_vector: (True, False),
    _one_by_batch: (True, True),
    _broadcast_batches: (True, True),
}
"""Whether m and n of a form may be other than 1."""


def sizes(random: Random, extent: int, form: Form, *, long: bool) -> Sizes:
    """Of which one is the extent, and another such that the work is a little less or more than a threshold.

    That is what kernels compute, or if `long` what they sum in one part.
    """
    has_m, has_n = FORMS[form]
    if long:
        return _divided(random, min(extent, 8) if has_m else 1, min(extent, 8) if has_n else 1)
    free = [*(["m"] if has_m else []), "k", *(["n"] if has_n else [])]
    names = [str(name) for name in random.permutation(free)]
    found = {"m": 1, "k": 1, "n": 1, names[0]: extent}
    for name in names[1:-1]:
        found[name] = upto(random, 2, 70)
    least = -(-LEAST_PRODUCT // math.prod(found.values()))
    found[names[-1]] = max(1, least + pick(random, [-1, -1, 0, 1, 5, 17]))
    return Sizes(found["m"], found["k"], found["n"])


def _divided(random: Random, m: int, n: int) -> Sizes:
    """Around what is summed in one part; not much more than that, as only the last part is a part of it."""
    if m * n == 1:
        m = 64
    return Sizes(m, LONG + pick(random, [0, 1, 3, 17, 1024, LONG + 5]), n)


# Epilogues.

Epilogue: TypeAlias = Callable[[Builder, Value, Sequence[Value]], list[Value]]


def _alone(b: Builder, y: Value, others: Sequence[Value]) -> list[Value]:
    return [y]


def _bias(b: Builder, y: Value, others: Sequence[Value]) -> list[Value]:
    return [b.emit(Maximum(), b.emit(Add(), y, others[0]), others[1])]


def _bias_and_rows(b: Builder, y: Value, others: Sequence[Value]) -> list[Value]:
    z = b.emit(Tanh(), b.emit(Add(), y, others[0]))
    return [z, b.emit(Reduce(Combinator.ADD, (z.tensor.rank - 1,)), z)]


def _columns(b: Builder, y: Value, others: Sequence[Value]) -> list[Value]:
    return [b.emit(Reduce(Combinator.MAX, (0,)), y)]


def _cast(b: Builder, y: Value, others: Sequence[Value]) -> list[Value]:
    target = F32 if y.tensor.dtype != F32 else BF16
    return [b.emit(DataTypeCast(target), y), y]


def _swapped(b: Builder, y: Value, others: Sequence[Value]) -> list[Value]:
    """The transpose of a product is the product of the transposes."""
    return [_transposed(b, y)]


def _again(b: Builder, y: Value, others: Sequence[Value]) -> list[Value]:
    """Times its own transpose, or itself if it is a vector, so that a product reads the arena."""
    other = _transposed(b, y)
    is_wide = y.tensor.rank == 1 or y.tensor.shape[-1] >= y.tensor.shape[-2]
    return [b.emit(Dot(), y, other) if is_wide else b.emit(Dot(), other, y)]


EPILOGUES: tuple[Epilogue, ...] = (
    _alone, _alone, _bias, _bias_and_rows, _columns, _cast, _swapped, _again,
)  # fmt: skip


def _transposed(b: Builder, x: Value) -> Value:
    rank = x.tensor.rank
    return b.emit(Transpose(_swap(tuple(range(rank)))), x) if rank > 1 else x


def _swap(shape: Shape) -> Shape:
    return (*shape[:-2], *shape[-2:][::-1])


def product(number: int, extent: int, dtype: DType, form: Form) -> Case:
    """One product of a form."""
    random = np.random.default_rng([number, extent, FLOATS.index(dtype), [*FORMS].index(form)])
    is_long = (number + extent + FLOATS.index(dtype)) % 6 == 0
    shapes = form(random, sizes(random, extent, form, long=is_long))
    stored = [bool(random.random() < 0.4) and len(shape) > 1 for shape in shapes]
    before = [bool(random.random() < 0.2) for _ in shapes]
    epilogue, fused = pick(random, EPILOGUES), bool(random.random() < 0.7)
    factors = [
        TensorType(_swap(shape) if swapped else shape, dtype)
        for shape, swapped in zip(shapes, stored, strict=True)
    ]
    last = Dot().infer(*(TensorType(shape, dtype) for shape in shapes)).shape[-1:]
    types = (*factors, TensorType(last, dtype), TensorType((), dtype))

    def build(b: Builder, *xs: Value) -> Sequence[Value]:
        used = [_transposed(b, x) if swapped else x for x, swapped in zip(xs, stored, strict=False)]
        used = [b.emit(Tanh(), x) if first else x for x, first in zip(used, before, strict=True)]
        return epilogue(b, b.emit(Dot(), *used), xs[2:])

    arrays = tuple(operand(random, type) for type in types)
    words = " by ".join(
        type.words + " transposed" * swapped for type, swapped in zip(factors, stored, strict=True)
    )
    made = ", computed" * any(before) + ("" if fused else ", not fused")
    name = f"#{number} {form.__name__.strip('_')}: {words}, {epilogue.__name__.strip('_')}{made}"
    return Case(name, types, arrays, build, fused=fused, op=form.__name__.strip("_"))


def products(extents: Sequence[int], rounds: int, share: float = 1.0) -> Iterator[Case]:
    """Every form with every float type and extent, `rounds` times, or a `share` of that."""
    random = np.random.default_rng(0)
    for number in range(rounds):
        for extent in extents:
            for dtype in FLOATS:
                for form in FORMS:
                    if random.random() < share:
                        yield product(number, extent, dtype, form)
