"""Products with Jacobians and Hessians: jvp, vjp and hvp, which never make the matrix; and Taylor series.

Each is a staged function around a declared tangent or gradient.  Which results of the function can be differentiated is
known once it is traced, so the declaration is made then, of all results with floats.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from .callables import StagedFunction, check_staged
from .core.analysis.derivatives import MAX_ORDER
from .declared_types import declared_result
from .derivative_checks import (
    check_callee,
    check_declared,
    check_promised,
    check_results,
    checked_policy,
    has_floats,
    promised_callee,
)
from .functions import zeros_like
from .reps import tup
from .staging.calls_at_hand import callee_for
from .staging.derivatives import Derivative, Gradient, TangentMap, finished_callee, results_of
from .staging.expression import Callee, MakeAggregate
from .staging.primitive import differentiation_error, staging_error
from .staging.rep import Rep
from .staging.spec import FunctionSpec, Spec, StructSpec, TupleSpec
from .staging.staged_functions import (
    FunctionResult,
    PythonFunction,
    Stageable,
    argument_error,
)
from .staging.tracing import make
from .static_parameters import passing_statics
from .wrt import Selection, select


@passing_statics
def jvp(of: StagedFunction, *, wrt: Any = None) -> StagedFunction:
    """Forward mode: `(value, tangent)` of `of` at its arguments along tangents, which follow them.

    The tangents are of the parameters `wrt`, in that order and of their types; all parameters by default.  The tangent
    of the result is of the type of the result; integers in it have zeros.  `wrt` is what `gradient` takes.
    Raises: DifferentiationError for an index out of range or given twice, or a parameter without floats.
    """
    check_staged(of, "jvp")
    selection = select(of, wrt)
    _check_now(selection)
    names = tuple(f"d{name}" for name in selection.names)

    def pushed(primals: Sequence[Rep], tangents: Sequence[Rep]) -> Any:
        return _value_and_tangent(made.stageable, selection, primals, tangents)

    made = _with_given(of, "jvp", names, selection.declared, pushed)
    return made


@passing_statics
def taylor(of: StagedFunction, *, order: int, wrt: Any = None) -> StagedFunction:
    """The Taylor series of `of` at its arguments x along directions v, which follow them: `(c₀, c₁, …, c_order)`.

    f(x + t·v) = c₀ + c₁·t + c₂·t² + …, so c₀ is the value, c₁ what `jvp` gives, and k! · cₖ the k-th derivative by t.
    The directions are of the parameters `wrt`, in that order and of their types; all parameters by default.  Each
    coefficient is of the type of the result; integers in it have zeros.  `wrt` is what `gradient` takes.
    Instructions grow as the square of the order, where those of tangents of tangents are multiplied for each.
    Raises: DifferentiationError for an order that is no number from 0 to 100, for an index out of range or given twice,
    or a parameter without floats.
    """
    check_staged(of, "taylor")
    _check_order(order)
    selection = select(of, wrt)
    _check_now(selection)
    names = tuple(f"d{name}" for name in selection.names)

    def expanded(primals: Sequence[Rep], directions: Sequence[Rep]) -> Any:
        if not order:
            return (of(*primals),)
        return tuple(
            tup(*one) if isinstance(one, tuple) else one
            for one in _series(made.stageable, selection, primals, directions, order)
        )

    made = _with_given(of, "taylor", names, selection.declared, expanded)
    return made


@passing_statics
def vjp(of: StagedFunction, *, wrt: Any = None, save: Any = "auto") -> StagedFunction:
    """Reverse mode: the cotangents of the parameters `wrt`, for a seed, which is the last argument.

    The seed is of the type of the result, a tuple if that is one; integers in it are not read.  One index gives one
    cotangent, a tuple of indices, and the default, all parameters, a tuple.  `save` is that of `gradient`.
    Raises: DifferentiationError for an index out of range or given twice, or a parameter without floats.
    """
    check_staged(of, "vjp")
    selection, policy = select(of, wrt), checked_policy(save)
    _check_now(selection)

    def pulled(primals: Sequence[Rep], seeds: Sequence[Rep]) -> Any:
        passed, (seed,) = selection.arguments(primals), seeds
        primal = _callee(made.stageable, selection.of, passed)
        if seed.spec != primal.result:
            raise argument_error(made.stageable, "seed", primal.result, seed.spec)
        sources = _sources(primal)
        each = seed.unpack() if isinstance(primal.result, TupleSpec) else (seed,)
        derivative = Gradient(
            selection.of.stageable,
            selection.indices,
            sources,
            made.stageable.name,
            check_callee,
            seedable=True,
            save=policy,
        )
        found = StagedFunction(derivative)(*passed, *(each[k] for k in sources))
        return _shaped(found, selection)

    made = _with_given(of, "vjp", ("seed",), [declared_result(of.stageable)], pulled)
    return made


@passing_statics
def hvp(of: StagedFunction, *, wrt: Any = 0, from_: int = 0) -> StagedFunction:
    """The product of the Hessian of a scalar result with a vector, forward over reverse; no Hessian is made.

    The vector follows the arguments: one tangent for each parameter of `wrt`, as of `jvp`.  One index gives one
    product, a tuple of indices a tuple.  `from_` picks the result.
    Raises: DifferentiationError for an index out of range or given twice, a parameter without floats, or when the
    result is not a scalar.
    """
    check_staged(of, "hvp")
    selection = select(of, wrt)
    check_results(from_)

    def check(callee: Callee, request: Derivative) -> None:
        check_callee(callee, request, "hvp")

    name = f"{of.stageable.name}_grad"
    slope = Gradient(selection.of.stageable, selection.indices, (from_,), name, check)
    check_promised(slope, selection.of)
    inner = Selection(StagedFunction(slope), selection.indices, selection.single, selection.places)
    names = tuple(f"d{name}" for name in selection.names)

    def pushed(primals: Sequence[Rep], tangents: Sequence[Rep]) -> Any:
        _, product = _value_and_tangent(made.stageable, inner, primals, tangents)
        one_of_tuple = not selection.single and len(selection.indices) == 1
        return (product,) if one_of_tuple else product

    made = _with_given(of, "hvp", names, selection.declared, pushed)
    return made


def _with_given(
    of: StagedFunction,
    what: str,
    names: tuple[str, ...],
    declared: Sequence[Spec | None],
    body: Callable[[Sequence[Rep], Sequence[Rep]], Any],
) -> StagedFunction:
    """A staged function of the parameters of `of`, and then of those that are called `names`."""
    count = len(of.stageable.parameter_names)
    return StagedFunction(
        PythonFunction(
            lambda *arguments: body(arguments[:count], arguments[count:]),
            f"{of.stageable.name}_{what}",
            (*of.stageable.parameter_names, *names),
            (*of.declared, *declared),
            None,
            is_wrapper=True,
        )
    )


def _check_order(order: Any) -> None:
    """Raises: DifferentiationError for what is no order of a series."""
    if isinstance(order, bool) or not isinstance(order, int) or not 0 <= order <= MAX_ORDER:
        raise differentiation_error(
            f"order={order!r} is no order of a Taylor series: they are 0, the value alone, to {MAX_ORDER}"
        )


def _check_now(selection: Selection) -> None:
    """As much as the annotations say."""
    promised = promised_callee(selection.of)
    if promised is not None:
        _sources(promised)
    check_declared(selection.of, selection.indices)


def _sources(primal: Callee) -> tuple[int, ...]:
    """The results that have derivatives.  Raises: DifferentiationError when none has."""
    results = results_of(primal)
    found = tuple(k for k, result in enumerate(results) if has_floats(result))
    if not found:
        raise differentiation_error(
            f"the result of {primal.name} is a {primal.result.words}: only floats have derivatives",
            "cast it to a float type inside the function",
        )
    return found


def _callee(made: Stageable, of: StagedFunction, passed: Sequence[Rep]) -> Callee:
    """What is differentiated for these arguments."""
    specs = tuple(FunctionSpec(rep) if rep.is_function else rep.spec for rep in passed)
    try:
        given = [rep.expression for rep in passed if not rep.is_function]
        return callee_for(of.stageable, partial(finished_callee, of.stageable, specs), given)
    except FunctionResult:
        raise staging_error(
            f"{made.name} returns staged functions: only a function of tensors, structs "
            "and tuples has derivatives",
            "differentiate the function that is returned",
        ) from None


def _value_and_tangent(
    made: Stageable, selection: Selection, primals: Sequence[Rep], tangents: Sequence[Rep]
) -> tuple[Any, Any]:
    """What `selection.of` returns, and its tangent of the same type."""
    value, tangent = _series(made, selection, primals, tangents, 1)
    return value, tangent


def _series(
    made: Stageable,
    selection: Selection,
    primals: Sequence[Rep],
    tangents: Sequence[Rep],
    order: int,
) -> list[Any]:
    """What `selection.of` returns, and the coefficients 1 to `order` of its series, all of the same type."""
    passed = selection.arguments(primals)
    primal = _callee(made, selection.of, passed)
    sources, count = _sources(primal), len(results_of(primal))
    derivative = TangentMap(
        selection.of.stageable,
        selection.indices,
        sources,
        made.name,
        check_callee,
        tuple(range(count)),
        order=order,
    )
    found = StagedFunction(derivative)(*passed, *tangents).unpack()
    values = found[len(sources) * order :]
    every: list[tuple[Rep, ...]] = [values]
    for k in range(order):
        by_source = dict(zip(sources, found[k * len(sources) :], strict=False))
        every.append(
            tuple(
                by_source[k] if k in by_source else _zeros(value) for k, value in enumerate(values)
            )
        )
    if isinstance(primal.result, TupleSpec):
        return list(every)
    return [one for (one,) in every]


def _shaped(found: Rep, selection: Selection) -> Any:
    """One derivative, or a tuple of them, as it was asked for."""
    if len(selection.indices) > 1 or selection.single:
        return found
    return (found,)


def _zeros(rep: Rep) -> Rep:
    """Zeros in place of all tensors inside."""
    match rep.spec:
        case TupleSpec():
            return tup(*map(_zeros, rep.unpack()))
        case StructSpec(cls, fields) as spec:
            parts = [_zeros(rep[getattr(cls, name)]).expression for name, _ in fields]
            return Rep(make(MakeAggregate(spec), parts, spec))
        case _:
            return zeros_like(rep)
