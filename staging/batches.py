"""Batched staged functions as things to call: `vmap`.

For the types of its arguments a batch gives a callee, as a Python function does; the IR declares it, `[batch @f …]`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from ..core.errors import NNKitError, RankError, ShapeError
from ..core.lazy_dataclass import dataclass
from .carry import with_article
from .expression import BatchCallee, CalleeKey, Shapes
from .location import current_location
from .primitive import MAX_RANK, located, rank_error, unsupported_error
from .recursion import is_unfinished
from .spec import FunctionSpec, SequenceSpec, Spec, StructSpec, TensorSpec, TupleSpec, leaves
from .staged_functions import Stageable, known_or_made, with_definition, with_shape_help

Axes = tuple[int | None, ...]


@dataclass(eq=False)
class Batch(Stageable):
    """`of` for all elements of a batch at once.

    `in_axes` has, for each parameter, the axis of its argument that the elements lie along, or None; `out_axes` the
    same of each result, or one for all.  Negative ones count from the end.
    """

    of: Stageable
    in_axes: Axes
    out_axes: int | Axes | None
    axis_name: str | None
    name: str
    parameter_names: tuple[str, ...] = field(init=False)
    callees: dict[CalleeKey, BatchCallee] = field(default_factory=dict[CalleeKey, BatchCallee])

    def __post_init__(self) -> None:
        self.parameter_names = self.of.parameter_names
        self.location = self.of.location

    def help_of(self, number: int) -> str:
        return shape_help(self.parameter_names[number:], self.in_axes[number : number + 1])

    def callee(self, specs: tuple[Spec, ...], shapes: Shapes | None = None) -> BatchCallee:
        return known_or_made(self, self.callees, specs, shapes, self._make)

    def _make(self, specs: tuple[Spec, ...], shapes: Shapes | None) -> BatchCallee:
        along = [
            None if isinstance(spec, FunctionSpec) else self.axis_of(k, spec)
            for k, spec in enumerate(specs)
        ]
        inner = tuple(
            spec if axis is None else with_rank(spec, -1)
            for spec, axis in zip(specs, along, strict=True)
        )
        try:
            primal = self.of.callee(inner, _of_one_element(shapes, specs, along))
        except ShapeError as error:
            raise with_shape_help(error, shape_help(self.parameter_names, self.in_axes)) from None
        if is_unfinished(primal):
            raise unsupported_error(
                f"{primal.name} uses a batch of itself, which is not supported",
                "batch another function, or this one outside of it",
            )
        into = self.places(primal.result)
        data = [k for k, spec in enumerate(specs) if not isinstance(spec, FunctionSpec)]
        return BatchCallee(
            self.name,
            specs,
            lifted_result(primal.result, into),
            captures=primal.captures,
            location=current_location(),
            parameter_names=self.parameter_names,
            primal=primal,
            along=(*(along[k] for k in data), *(None for _ in primal.captures)),
            into=into,
            axis=self.axis_name,
            data_names=tuple(self.parameter_names[k] for k in data),
            shapes=None if primal.shapes is None else shapes,
        )

    def axis_of(self, number: int, spec: Spec) -> int | None:
        """The axis of argument `number`, of this type, counted from the front.

        Raises: RankError when it has none.
        """
        axis = self.in_axes[number]
        if axis is None:
            return None
        found = {from_front(axis, leaf.rank) for leaf in leaves(spec)}
        if None in found or not found:
            name = self.parameter_names[number]
            raise self._refused(
                RankError(
                    f"{self.name} takes the elements of the batch from axis {axis} of {name}, which is "
                    f"{with_article(spec.words)}: {_what_it_has(spec, axis)}"
                )
            )
        if len(found) > 1:
            raise self._refused(
                RankError(
                    f"axis {axis} of {self.parameter_names[number]} is another one in each of its tensors: count "
                    "from the front"
                )
            )
        return found.pop()

    def places(self, result: Spec) -> Axes:
        """Where the batch's axis stands in each result.  Raises: RankError where it cannot."""
        results = result.elements if isinstance(result, TupleSpec) else (result,)
        asked = self.out_axes
        axes = asked if isinstance(asked, tuple) else (asked,) * len(results)
        if len(axes) != len(results):
            raise self._refused(
                RankError(
                    f"out_axes={asked} is of {len(axes)} results, and {self.of.name} returns {len(results)}"
                )
            )
        found: list[int | None] = []
        for k, (axis, spec) in enumerate(zip(axes, results, strict=True)):
            if axis is None:
                found.append(None)
                continue
            ranks = {leaf.rank for leaf in leaves(spec)}
            places = {from_front(axis, rank + 1) for rank in ranks}
            if None in places or len(places) > 1:
                which = f"result {k}" if len(results) > 1 else "the result"
                raise self._refused(
                    RankError(
                        f"out_axes={axis} is no place for an axis in {which} of {self.of.name}, "
                        f"{with_article(spec.words)} for each element"
                    )
                )
            if max(ranks, default=0) >= MAX_RANK:
                raise rank_error(
                    f"{self.name} would return a tensor of rank {max(ranks) + 1}; tensors have at most {MAX_RANK}"
                )
            found.append(places.pop() if places else 0)
        return tuple(found)

    def _refused(self, error: NNKitError) -> NNKitError:
        return with_definition(located(error), self)


def _of_one_element(
    shapes: Shapes | None, specs: Sequence[Spec], along: Sequence[int | None]
) -> Shapes | None:
    """The shapes of arguments without the axes that the elements lie along."""
    if shapes is None:
        return None
    axes = [axis for spec, axis in zip(specs, along, strict=True) for _ in leaves(spec)]
    return tuple(
        shape if axis is None else (*shape[:axis], *shape[axis + 1 :])
        for shape, axis in zip(shapes, axes, strict=True)
    )


def shape_help(names: Sequence[str], axes: Sequence[int | None]) -> str:
    """For those who expect the elements of every argument to be taken where `axes` has none for some of them."""
    same = [name for name, axis in zip(names, axes, strict=False) if axis is None]
    if not same:
        return ""
    return (
        f"in_axes has no axis for {' and '.join(same)}, the same for all elements: "
        "vmap(…, in_axes=0) takes the elements of every argument"
    )


def _what_it_has(spec: Spec, axis: int) -> str:
    ranks = [leaf.rank for leaf in leaves(spec)]
    if not ranks:
        return "it has no tensors"
    if isinstance(spec, TensorSpec):
        return (
            f"its axes are {', '.join(map(str, range(spec.rank)))}"
            if spec.rank
            else "it has no axes"
        )
    return f"it holds a tensor of rank {min(ranks)}"


def from_front(axis: int, rank: int) -> int | None:
    """An axis of a tensor of `rank`, counted from the front; None if there is none."""
    return axis % rank if -rank <= axis < rank else None


def with_rank(spec: Spec, by: int) -> Spec:
    """The same with `by` more axes in each tensor."""
    match spec:
        case TensorSpec():
            return TensorSpec(spec.rank + by, spec.dtype)
        case TupleSpec(elements):
            return TupleSpec(tuple(with_rank(one, by) for one in elements))
        case StructSpec(cls, fields):
            return StructSpec(cls, tuple((name, with_rank(one, by)) for name, one in fields))
        case SequenceSpec(element):
            return SequenceSpec(with_rank(element, by))
        case _:
            return spec


def lifted_result(result: Spec, into: Sequence[int | None]) -> Spec:
    """The type of the results with a batch's axis."""
    if not isinstance(result, TupleSpec):
        return result if into[0] is None else with_rank(result, 1)
    return TupleSpec(
        tuple(
            one if axis is None else with_rank(one, 1)
            for one, axis in zip(result.elements, into, strict=True)
        )
    )
