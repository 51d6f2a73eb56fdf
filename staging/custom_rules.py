"""Rules that users give for the derivatives of a staged function, traced when a derivative first needs them.

    f: (A, B) -> R
    jvp      (A, B, A, B) -> R            arguments, tangents  ->  tangent of the result
    vjp      (A, B, R) -> (A, B)          arguments, cotangent of the result  ->  cotangents of the arguments
    fwd      (A, B) -> (R, S)             arguments  ->  result, what is saved
    bwd      (S, R) -> (A, B)             what is saved, cotangent of the result  ->  cotangents of the arguments

Arguments that are functions have no tangents.  A rule is staged code; it may call f, and ask for derivatives.
"""

from __future__ import annotations

from typing import Final

from ..core.errors import NNKitError, StagingError
from .called import called_in
from .carry import with_article
from .expression import BatchCallee, Callee, CalleeKey, DerivativeCallee, Shapes, Trace, TracedRules
from .known_shapes import NeedsShapes, type_lookup
from .location import with_location
from .primitive import staging_error
from .spec import CallableSpec, FunctionSpec, Spec, TupleSpec, fits
from .staged_functions import (
    PythonFunction,
    RuleFunctions,
    Stageable,
    mismatch,
    with_definition,
)

MOST_RULES: Final = 256
"""How many rules may be needed by one another, each of a function made in the one before: a tower without an end
has a new one each time.  As many shapes may a recursion have (`staging.specialize`)."""


def set_jvp(of: Stageable, rule: Stageable) -> None:
    """Compute tangents of `of` by `rule`.

    Raises: StagingError, RankError, DTypeError when it takes other parameters, or comes too late.
    """
    rules = _rules_of(of, "defjvp")
    _check_parameters(of, rule, (*of.parameter_names, *(f"d{x}" for x in of.parameter_names)))
    if rules.jvp is not None:
        raise _given_twice(of, "jvp", rules.jvp)
    rules.jvp = rule


def set_vjp(
    of: Stageable,
    rule: Stageable,
    saving: Stageable | None,
    *,
    help_of_captures: str | None = None,
) -> None:
    """Compute cotangents of the arguments of `of` by `rule`, of these or of what `saving` saves.

    `help_of_captures` says what to write where `of` uses values of an enclosing function.
    Raises: StagingError, RankError, DTypeError when they take other parameters, or come too late.
    """
    rules = _rules_of(of, "defvjp")
    if saving is None:
        _check_parameters(of, rule, (*of.parameter_names, "seed"))
    else:
        _check_parameters(of, saving, of.parameter_names)
        _check_parameters(of, rule, ("saved", "seed"))
    if rules.vjp is not None:
        raise _given_twice(of, "vjp", rules.vjp)
    rules.vjp, rules.saving = rule, saving
    rules.help_of_captures = help_of_captures or rules.help_of_captures


def trace_rules(root: Callee) -> None:
    """Trace the rules of all functions that `root` calls, and of those that the rules call.

    Raises: StagingError for rules without end, or values of enclosing functions; RankError or DTypeError for a rule
    that returns something else.
    """
    visited: list[Trace] = []
    try:
        _trace_rules(root, visited)
    except BaseException:
        # what calls a function with a wrong rule has no derivative next time either
        for callee in visited:
            callee.has_traced_rules = False
        raise


def _trace_rules(root: Callee, visited: list[Trace]) -> None:
    pending: list[tuple[Callee, int]] = [(root, 0)]
    while pending:
        callee, depth = pending.pop()
        if isinstance(callee, DerivativeCallee | BatchCallee):
            assert callee.primal is not None
            pending.append((callee.primal, depth))
        elif isinstance(callee, Trace) and not callee.has_traced_rules and callee.output:
            callee.has_traced_rules = True
            visited.append(callee)
            pending += [(called, depth) for called in called_in(callee.output)]
            origin = callee.origin
            if not isinstance(origin, PythonFunction) or not origin.rules:
                continue
            if depth == MOST_RULES:
                raise with_location(
                    StagingError(
                        f"the rules of the derivatives of {callee.name} need one another without end"
                    ),
                    origin.location,
                    "a rule that makes a function with a rule makes another one each time: make it once",
                )
            callee.rules = _traced(callee, origin)
            pending += [(rule, depth + 1) for rule in callee.rules.callees()]


def _traced(callee: Trace, origin: PythonFunction) -> TracedRules:
    """The rules for the types of the arguments of `callee`."""
    rules, specs = origin.rules, callee.parameters
    arguments = tuple(spec for spec in specs if not isinstance(spec, FunctionSpec))
    if callee.captures:
        what = f"{callee.name} has rules of its derivatives and"
        raise _captures(callee, what, rules.help_of_captures)
    made = TracedRules()
    if rules.jvp is not None:
        what = "the tangent of its result"
        shapes = None if callee.shapes is None else callee.shapes * 2
        made.jvp = _rule(rules.jvp, ((*specs, *arguments), shapes), what, callee.result, callee)
    given, shapes = specs, callee.shapes
    results = _shapes_of_result(callee, shapes)
    if rules.saving is not None:
        made.saving = _callee(rules.saving, (specs, shapes), callee)
        given = (_saved(callee, rules.saving, made.saving),)
        saved = _shapes_of_result(made.saving, shapes)
        shapes = None if saved is None or results is None else saved[len(results) :]
    if rules.vjp is not None:
        what = "the cotangents of its arguments, in a tuple,"
        shapes = None if shapes is None or results is None else shapes + results
        given = (*given, callee.result)
        made.vjp = _rule(rules.vjp, (given, shapes), what, TupleSpec(arguments), callee)
    return made


def _shapes_of_result(callee: Callee, shapes: Shapes | None) -> Shapes | None:
    """Those of the tensors that it returns for arguments of `shapes`, if these are known."""
    if shapes is None or not isinstance(callee, Trace) or callee.output is None:
        return None
    return type_lookup(callee, shapes).shapes_of([callee.output])


def _callee(rule: Stageable, key: CalleeKey, of: Callee) -> Callee:
    """Raises: StagingError for a rule that needs sizes as numbers of a function that does not."""
    try:
        return rule.callee(*key)
    except NeedsShapes as error:
        raise error.request.error(
            f" in the rule {rule.name} of {of.name}, which is traced for all shapes",
            f"use the size as it is; or ask for its number in {of.name} as well",
        ) from None


def _rule(rule: Stageable, key: CalleeKey, what: str, wanted: Spec, of: Callee) -> Callee:
    """A rule for arguments of these types, which returns `what`, of the type `wanted`."""
    made = _callee(rule, key, of)
    if made.captures:
        raise _captures(made, f"the rule {made.name} of {of.name}")
    if made.result != wanted:
        found = made.result
        message = (
            f"{made.name} returns {with_article(found.words)}; {what} is {with_article(wanted.words)} "
            f"for {of.name}"
        )
        raise with_definition(with_location(mismatch(wanted, found)(message), made.location), rule)
    return made


def _saved(of: Trace, saving: Stageable, made: Callee) -> Spec:
    """The type of what is saved."""
    if made.captures:
        raise _captures(made, f"the rule {made.name} of {of.name}")
    if (
        isinstance(made.result, TupleSpec)
        and len(made.result.elements) == 2
        and made.result.elements[0] == of.result
    ):
        return made.result.elements[1]
    message = (
        f"{made.name} returns {with_article(made.result.words)}: it gives a pair of the result of {of.name}, "
        f"{with_article(of.result.words)}, and of what is saved"
    )
    raise with_definition(with_location(StagingError(message), made.location), saving)


def _rules_of(of: Stageable, what: str) -> RuleFunctions:
    """Where to put rules.  Raises: StagingError for what has a rule by itself, or has been differentiated."""
    if not isinstance(of, PythonFunction):
        raise staging_error(
            f"{what} gives a rule to a staged function of its own, and {of.name} is a derivative",
            "stage a function that calls it, with @nk.staged",
        )
    if any(trace.has_traced_rules for trace in of.traces.values()):
        raise staging_error(
            f"{what} comes too late: {of.name} has been differentiated already",
            f"give the rule right behind the definition of {of.name}",
        )
    return of.rules


def _check_parameters(of: Stageable, rule: Stageable, names: tuple[str, ...]) -> None:
    """Raises: StagingError, RankError or DTypeError, as far as it is known what `of` takes."""
    assert isinstance(of, PythonFunction)
    if any(spec is None or isinstance(spec, CallableSpec) for spec in of.declared):
        return  # what is a function is known when it is called
    count = len(rule.parameter_names)
    if count != len(names):
        raise with_definition(
            staging_error(
                f"{rule.name} takes {count} argument{'s' * (count != 1)}; the rule of {of.name} is given "
                f"{len(names)}: {', '.join(names)}"
            ),
            rule,
        )
    types = {**dict(zip(of.parameter_names, of.declared, strict=True)), "seed": of.declared_result}
    types.update((f"d{name}", spec) for name, spec in [*types.items()])
    declared = rule.declared if isinstance(rule, PythonFunction) else ()
    for name, parameter, given in zip(names, rule.parameter_names, declared, strict=False):
        wanted = types.get(name)
        if (
            wanted is not None
            and given is not None
            and not (fits(wanted, given) or fits(given, wanted))
        ):
            message = (
                f"parameter {parameter} of {rule.name} is {with_article(given.words)}; the rule of {of.name} is "
                f"given {name}, {with_article(wanted.words)}"
            )
            raise with_definition(
                with_location(mismatch(wanted, given)(message), rule.location), rule
            )


def _given_twice(of: Stageable, kind: str, rule: Stageable) -> NNKitError:
    return staging_error(f"{of.name} has a {kind} already: {rule.name}")


def _captures(callee: Callee, what: str, help: str = RuleFunctions.help_of_captures) -> NNKitError:
    first = callee.captures[0]
    error = StagingError(f"{what} uses a value of an enclosing staged function, which has no rule")
    with_location(error, first.location, help)
    return error
