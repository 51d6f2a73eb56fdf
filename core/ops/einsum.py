"""Sums of products over shared axes: Einstein's notation, as transposes, sums and matrix products.

1. An axis that an operand has twice is replaced by its diagonal; one of extent 1 broadcasts: it is dropped where
   another operand has more of it.
2. Axes that one operand alone has, and the result not, are summed at once.
3. Operands are joined two by two, the pair with the least work first.  Axes of both that are needed later are batches;
   those that are not are contracted by `dot`, if both have others besides, and by a fused product and sum otherwise.

Source: Smith & Gray 2018, "opt_einsum" (greedy order).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations

from ..errors import ShapeError
from ..ir.instruction import Emitter, Value
from ..lazy_dataclass import dataclass
from .arithmetic import Multiply
from .combinator import Combinator
from .contraction import Dot
from .movement import permuted, reshaped
from .reduction import Reduce
from .slicing import Slice


@dataclass(frozen=True)
class _Term:
    """A tensor with a label for each axis."""

    value: Value
    labels: str


def einsum(b: Emitter, *operands: Value, inputs: Sequence[str], output: str) -> Value:
    """Σ of the products of the operands over the labels that `output` has not.

    Raises: ShapeError when a label stands for different extents, none of them 1.
    """
    extents = extents_of([x.tensor.shape for x in operands], inputs)
    terms = [
        _spread_removed(b, _diagonal(b, _Term(value, labels)), extents)
        for value, labels in zip(operands, inputs, strict=True)
    ]
    terms = [
        _summed(b, term, output + "".join(other.labels for other in terms if other is not term))
        for term in terms
    ]
    while len(terms) > 1:
        first, second = _cheapest(terms, output, extents)
        rest = [term for term in terms if term is not first and term is not second]
        kept = output + "".join(term.labels for term in rest)
        terms = [*rest, _joined(b, first, second, kept, extents)]
    (term,) = terms
    return _ordered(b, _summed(b, term, output), output)


def extents_of(shapes: Sequence[Sequence[int]], inputs: Sequence[str]) -> dict[str, int]:
    """How many places each label has.  Raises: ShapeError."""
    extents: dict[str, int] = {}
    for position, (shape, labels) in enumerate(zip(shapes, inputs, strict=True)):
        for label, extent in zip(labels, shape, strict=True):
            known = extents.setdefault(label, extent)
            if known == 1:
                extents[label] = extent
            elif extent not in (1, known):
                raise ShapeError(
                    f"einsum: '{label}' is {known} and {extent}, in operand {position} of shape {list(shape)}"
                )
    return extents


def _diagonal(b: Emitter, term: _Term) -> _Term:
    """Each label once: two axes of one label become their diagonal, every (n + 1)-th element of both."""
    value, labels = term.value, term.labels
    while repeated := next((label for label in labels if labels.count(label) > 1), None):
        one = labels.index(repeated)
        other = labels.index(repeated, one + 1)
        rest = [axis for axis in range(len(labels)) if axis not in (one, other)]
        shape = value.tensor.shape
        if shape[one] != shape[other]:
            raise ShapeError(
                f"einsum: '{repeated}' is {shape[one]} and {shape[other]} in one operand of shape {list(shape)}"
            )
        extent, kept = shape[one], [shape[axis] for axis in rest]
        flat = reshaped(b, permuted(b, value, (one, other, *rest)), (extent * extent, *kept))
        value = b.emit(Slice((0,), (extent * extent,), (extent + 1,)), flat) if extent else flat
        labels = repeated + "".join(labels[axis] for axis in rest)
    return _Term(value, labels)


def _spread_removed(b: Emitter, term: _Term, extents: Mapping[str, int]) -> _Term:
    """Without axes of extent 1 of labels that have more places in another operand."""
    shape = term.value.tensor.shape
    kept = [k for k, label in enumerate(term.labels) if shape[k] == extents[label]]
    value = reshaped(b, term.value, tuple(shape[k] for k in kept))
    return _Term(value, "".join(term.labels[k] for k in kept))


def _summed(b: Emitter, term: _Term, kept: str) -> _Term:
    """Without the labels that nothing else needs."""
    axes = tuple(k for k, label in enumerate(term.labels) if label not in kept)
    value = b.emit(Reduce(Combinator.ADD, axes), term.value) if axes else term.value
    return _Term(value, "".join(label for label in term.labels if label in kept))


def _cheapest(
    terms: Sequence[_Term], output: str, extents: Mapping[str, int]
) -> tuple[_Term, _Term]:
    """The two whose join takes the fewest multiplications, and of these makes the smallest result."""

    def cost(pair: tuple[_Term, _Term]) -> tuple[int, int]:
        others = "".join(term.labels for term in terms if term not in pair)
        labels = set(pair[0].labels + pair[1].labels)
        made = [extents[label] for label in labels if label in others + output]
        return math.prod(extents[label] for label in labels), math.prod(made)

    return min(combinations(terms, 2), key=cost)


def _joined(b: Emitter, one: _Term, other: _Term, kept: str, extents: Mapping[str, int]) -> _Term:
    """The product of two, summed over the labels that are in both and not kept."""
    both = [label for label in one.labels if label in other.labels]
    batch = "".join(label for label in both if label in kept)
    inner = "".join(label for label in both if label not in kept)
    rows = "".join(label for label in one.labels if label not in both)
    columns = "".join(label for label in other.labels if label not in both)
    if not inner or (batch and not (rows and columns)):
        return _multiplied(b, one, other, batch + rows + columns, inner)

    def sizes(labels: str) -> tuple[int, ...]:
        return (math.prod(extents[label] for label in labels),) if labels else ()

    left, right = (
        _ordered(b, one, batch + rows + inner),
        _ordered(b, other, batch + inner + columns),
    )
    left = reshaped(b, left, (*sizes(batch), *sizes(rows), *sizes(inner)))
    right = reshaped(b, right, (*sizes(batch), *sizes(inner), *sizes(columns)))
    labels = batch + rows + columns
    shape = tuple(extents[label] for label in labels)
    return _Term(reshaped(b, b.emit(Dot(), left, right), shape), labels)


def _multiplied(b: Emitter, one: _Term, other: _Term, labels: str, inner: str) -> _Term:
    """The product by elements, summed over the inner labels."""
    every = labels + inner
    sides: list[Value] = []
    for term in (one, other):
        own = "".join(label for label in every if label in term.labels)
        value = _ordered(b, term, own)
        extents = dict(zip(own, value.tensor.shape, strict=True))
        sides.append(reshaped(b, value, tuple(extents.get(label, 1) for label in every)))
    return _summed(b, _Term(b.emit(Multiply(), *sides), every), labels)


def _ordered(b: Emitter, term: _Term, labels: str) -> Value:
    """The tensor with its axes in the order of the labels."""
    return permuted(b, term.value, tuple(term.labels.index(label) for label in labels))
