"""Which derivatives a function has: checked when one is made, as far as annotations say, and for every set of types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .callables import StagedFunction
from .core.ir import SavePolicy
from .core.types import F32
from .declared_types import declared_result
from .staging.derivatives import Derivative, results_of
from .staging.expression import Callee
from .staging.primitive import MAX_RANK, differentiation_error, rank_error
from .staging.spec import Spec, TensorSpec, TupleSpec, leaves


def check_results(from_: Any, keeping: tuple[Any, ...] = ()) -> None:
    """Raises: DifferentiationError for what can be no index of a result."""
    for what, index in (("from_", from_), *(("keeping", index) for index in keeping)):
        if isinstance(index, bool) or not isinstance(index, int) or index < 0:
            raise differentiation_error(
                f"{what}={index!r} is no index of a result: they count from 0"
            )
    if len(set(keeping)) != len(keeping):
        raise differentiation_error(f"keeping={keeping} names a result twice")


def checked_policy(save: Any) -> SavePolicy | None:
    """What `save` says; None leaves it to the compiler.

    Raises: DifferentiationError for what is neither a policy nor a number of bytes.
    """
    policies: dict[object, SavePolicy | None] = {"auto": None, "all": "all", "none": "none"}
    if isinstance(save, str) and save in policies:
        return policies[save]
    if isinstance(save, int) and not isinstance(save, bool) and save >= 0:
        return save
    raise differentiation_error(
        f'save={save!r} is no policy: "auto", "all", "none", or a number of bytes to save at most'
    )


def check_promised(request: Derivative, of: StagedFunction) -> None:
    """The same check as later, already now, of what the annotations say."""
    promised = promised_callee(of)
    if promised is not None:
        request.check(promised, request)
    check_declared(of, request.wrt)


def check_declared(of: StagedFunction, wrt: Sequence[int]) -> None:
    """Raises: DifferentiationError for a parameter that is declared to have no floats."""
    known = [index for index in wrt if of.declared[index] is not None]
    check_parameters(_declared_callee(of), known)


def promised_callee(of: StagedFunction) -> Callee | None:
    """What the annotations say of `of`, if they say what it returns."""
    result = declared_result(of.stageable)
    return None if result is None else _declared_callee(of, result)


def _declared_callee(of: StagedFunction, result: Spec | None = None) -> Callee:
    """A callee of the declared types; what is not declared is a number."""
    anything = TensorSpec(0, F32)
    parameters = tuple(spec or anything for spec in of.declared)
    names = of.stageable.parameter_names
    return Callee(of.stageable.name, parameters, result or anything, parameter_names=names)


def check_callee(callee: Callee, request: Derivative, scalar: str = "") -> None:
    """What can only be checked once the types of the arguments and results are known.

    `scalar` is what needs a scalar result, if that does.
    """
    results, name = results_of(callee), callee.name
    indices = [*(("from_", k) for k in request.sources), *(("keeping", k) for k in request.keeping)]
    for what, index in indices:
        if index >= len(results):
            raise differentiation_error(
                f"{what}={index} is out of range: {name} has {len(results)} "
                f"result{'s' * (len(results) != 1)}"
            )
    for source in request.sources:
        if not has_floats(results[source]):
            raise differentiation_error(
                f"result {source} of {name} is a {results[source].words}: only floats have derivatives",
                "cast it to a float type inside the function",
            )
    if scalar:
        _check_scalar(callee, results[request.sources[0]], scalar)
    check_parameters(callee, request.wrt)


def _check_scalar(callee: Callee, found: Spec, what: str) -> None:
    several = isinstance(callee.result, TupleSpec) and what == "value_and_gradient"
    if several or not isinstance(found, TensorSpec) or found.rank:
        returned = callee.result if several else found
        raise differentiation_error(
            f"{what} needs a scalar result and {callee.name} returns a {returned.words}",
            "reduce it, for example `.sum()` or `.mean()`",
        )


def check_parameters(callee: Callee, wrt: Sequence[int]) -> None:
    """Raises: DifferentiationError for a parameter without floats."""
    for index in wrt:
        if not has_floats(callee.parameters[index]):
            raise differentiation_error(
                f"parameter {parameter_name(callee, index)} of {callee.name} is a "
                f"{callee.parameters[index].words}: only floats have derivatives",
                "leave it out of wrt, or cast it to a float type inside the function",
            )


def check_tensors(callee: Callee, request: Derivative, what: str, order: int = 1) -> None:
    """Raises: DifferentiationError, RankError when the `what` of `order` by `wrt` would be no tensor."""
    results = results_of(callee)
    for source in request.sources:
        if not isinstance(results[source], TensorSpec):
            raise differentiation_error(
                f"a {what} is of a tensor, and result {source} of {callee.name} is a "
                f"{results[source].words}",
                "choose a result by from_, or return one tensor",
            )
    for index in request.wrt:
        if not isinstance(callee.parameters[index], TensorSpec):
            raise differentiation_error(
                f"a {what} is by tensors, and parameter {parameter_name(callee, index)} of "
                f"{callee.name} is a {callee.parameters[index].words}",
                "name its fields, wrt=Params.w or wrt=lambda p, x: (p.w, p.b)",
            )
    ranks = [leaves(callee.parameters[index])[0].rank for index in request.wrt]
    largest = max(ranks)
    rank = order * largest + max(leaves(results[k])[0].rank for k in request.sources)
    if rank > MAX_RANK:
        name = parameter_name(callee, request.wrt[ranks.index(largest)])
        raise rank_error(
            f"the {what} of {callee.name} by {name} would have rank {rank}; tensors have at most "
            f"{MAX_RANK}",
            "reshape inside the function, or use jvp, vjp or hvp",
        )


def parameter_name(callee: Callee, index: int) -> str:
    return callee.parameter_names[index] if callee.parameter_names else str(index)


def has_floats(spec: Spec) -> bool:
    """Whether there is anything to differentiate in it."""
    return any(leaf.dtype.is_float for leaf in leaves(spec))
