"""The tensors inside of staged values: tuples and structs taken apart, and put together again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .staging.expression import MakeAggregate
from .staging.rep import Rep
from .staging.spec import Spec, StructSpec, TupleSpec
from .staging.tracing import make


def leaf_reps(rep: Rep) -> list[Rep]:
    """The tensors inside, from left to right."""
    match rep.spec:
        case TupleSpec():
            return [leaf for one in rep.unpack() for leaf in leaf_reps(one)]
        case StructSpec(cls, named):
            return [leaf for name, _ in named for leaf in leaf_reps(rep[getattr(cls, name)])]
        case _:
            return [rep]


def with_leaves(spec: Spec, leaves: Sequence[Rep]) -> Rep:
    """A value of this type with these tensors inside."""
    return _made(spec, iter(leaves))


def _made(spec: Spec, leaves: Iterator[Rep]) -> Rep:
    match spec:
        case TupleSpec(elements):
            inside = elements
        case StructSpec(_, named):
            inside = tuple(one for _, one in named)
        case _:
            return next(leaves)
    parts = [_made(one, leaves).expression for one in inside]
    return Rep(make(MakeAggregate(spec), parts, spec))
