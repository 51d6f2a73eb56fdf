"""Batches: a function of one element becomes one of all elements at once, `vmap`, and what combines them inside."""

from __future__ import annotations

from typing import Any

from .callables import StagedFunction, check_staged
from .core.errors import RankError
from .core.ops.axis import AxisReduce
from .core.ops.combinator import Combinator
from .declared_types import declared_result
from .reps import as_rep
from .staging import primitive
from .staging.batches import Batch, from_front
from .staging.primitive import located, staging_error
from .staging.rep import Rep
from .staging.spec import Spec, TensorSpec, is_tuple, leaves
from .static_parameters import passing_statics


@passing_statics
def vmap(
    of: StagedFunction,
    /,
    *,
    in_axes: Any = (0, ...),
    out_axes: Any = 0,
    axis_name: str | None = None,
) -> StagedFunction:
    """`of` for all elements of a batch at once, which lie along an axis of its arguments.

    Without `in_axes` that is the first axis of the first argument, and the other arguments are the same for all
    elements; `in_axes=0`, the default of JAX and PyTorch, takes the elements of every argument.  `in_axes` is an axis
    for all arguments, or a tuple with an axis, or None for one that is the same, for each argument (None for all behind
    a `...`); of a struct or tuple it is the axis of each tensor inside.  `out_axes` says the same of the results: None
    for one that does not differ.  What is the same for all elements is computed once.  `axis_name` is what `axis_sum`
    and its like, inside of `of`, call the batch.

    Choices and loops may go another way for each element: then both branches run, and a loop runs until the last
    element is done.  An `of` with effects runs for one element after the other.
    Raises: RankError, StagingError for axes that there are not; ShapeError when extents differ.

    >>> import numpy as np
    >>> from nnkit import Scalar, Tensor1D, f64, fn, vmap
    >>> dot = fn(Tensor1D[f64], Tensor1D[f64])(lambda a, b: a @ b)
    >>> vmap(dot, in_axes=(0, None))(np.eye(2), np.array([3.0, 4.0])).numpy()
    array([3., 4.])
    """
    check_staged(of, "vmap")
    return _made(of, "vmap", in_axes, out_axes, axis_name)


@passing_statics
def vmap2(of: StagedFunction, /, *, axis_name: str | None = None) -> StagedFunction:
    """`of` for all elements of a batch at once, which lie along the first axes of its first two arguments.

    As `vmap(of, in_axes=(0, 0, None, …))`.
    Raises: StagingError for a function of fewer parameters.
    """
    check_staged(of, "vmap2")
    names = of.stageable.parameter_names
    if len(names) < 2:
        raise staging_error(
            f"vmap2 goes along two arguments, and {of.stageable.name} takes {len(names)}",
            "use vmap",
        )
    return _made(of, "vmap2", (0, 0, ...), 0, axis_name)


def axis_sum(x: Any, axis_name: str, /) -> Rep:
    """The sum of `x` over the elements of the batch that `vmap(…, axis_name=…)` calls so; the same for each of them.

    The gradient of one element's function, batched, is that of the sum of all elements' results.
    """
    return _combined("axis_sum", Combinator.ADD, x, axis_name)


def axis_mean(x: Any, axis_name: str, /) -> Rep:
    """The mean of `x`, of floats, over the elements of the batch of that name."""
    total = _combined("axis_mean", Combinator.ADD, x, axis_name)
    spec = total.spec
    if not isinstance(spec, TensorSpec) or not spec.dtype.is_float:
        raise primitive.dtype_error(f"axis_mean takes floats, not a {spec.words}")
    one = Rep(primitive.literal(1, spec.dtype))
    return total / _combined("axis_mean", Combinator.ADD, one, axis_name)


def axis_max(x: Any, axis_name: str, /) -> Rep:
    """The greatest of `x` among the elements of the batch of that name; ties share its derivative evenly."""
    return _combined("axis_max", Combinator.MAX, x, axis_name)


def axis_min(x: Any, axis_name: str, /) -> Rep:
    """The least of `x` among the elements of the batch of that name; ties share its derivative evenly."""
    return _combined("axis_min", Combinator.MIN, x, axis_name)


def _combined(what: str, combinator: Combinator, x: Any, axis_name: object) -> Rep:
    if not isinstance(axis_name, str):
        raise staging_error(f"{what} takes the name of an axis, not {axis_name!r}")
    return Rep(primitive.apply(AxisReduce(combinator, axis_name), as_rep(x).expression, name=what))


def _made(
    of: StagedFunction, what: str, in_axes: Any, out_axes: Any, axis_name: object
) -> StagedFunction:
    stageable = of.stageable
    names = stageable.parameter_names
    axes = in_axes if is_tuple(in_axes) else (in_axes,) * len(names)
    if axes[-1:] == (...,):
        axes = (*axes[:-1], *[None] * (len(names) - len(axes) + 1))
    if len(axes) != len(names):
        raise staging_error(
            f"in_axes={in_axes} is of {len(axes)} arguments, and {stageable.name} takes {len(names)} "
            f"({', '.join(names)})"
        )
    outside = out_axes if is_tuple(out_axes) else (out_axes,)
    for which, given in (("in_axes", axes), ("out_axes", outside)):
        for axis in given:
            if axis is not None and (isinstance(axis, bool) or not isinstance(axis, int)):
                raise staging_error(
                    f"{which} has {axis!r}: an axis is an int, or None where there is none",
                    f"{which}=0, or a tuple with an int or None for each",
                )
    if all(axis is None for axis in axes):
        raise staging_error(
            f"{what} of {stageable.name} goes along no argument: in_axes={in_axes}",
            "name an axis of one, in_axes=0",
        )
    if axis_name is not None and not isinstance(axis_name, str):
        raise staging_error(f"axis_name is a str, not {axis_name!r}")
    _check_declared(of, axes)
    made = Batch(stageable, axes, out_axes, axis_name, f"{stageable.name}_{what}")
    result = declared_result(stageable)
    if result is not None:
        made.places(result)
    return StagedFunction(made)


def _check_declared(of: StagedFunction, axes: tuple[Any, ...]) -> None:
    """Raises: RankError for an axis that no argument of the declared types has."""
    names = of.stageable.parameter_names
    for name, spec, axis in zip(names, of.declared, axes, strict=True):
        ranks = _ranks(spec)
        if axis is None or not ranks:
            continue
        rank = min(ranks) + 1
        if from_front(axis, rank) is None:
            raise located(
                RankError(
                    f"in_axes={axis} for {name}: {of.stageable.name} takes a tensor of rank {rank - 1}, so that a "
                    f"batch of them has the axes 0 to {rank - 1}"
                )
            )


def _ranks(spec: Spec | None) -> list[int]:
    return [] if spec is None else [leaf.rank for leaf in leaves(spec)]
