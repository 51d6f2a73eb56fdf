"""Staged functions: a Python function is run once per set of argument types, and calls of it stay calls.

`Lambda` traces a Python function, `Gradient` names the gradient of a staged function.  Both give a
`Callee` for the types of the arguments; the same types give the same callee, so the IR has one function
for all its calls.
"""

from __future__ import annotations

import abc
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..core.errors import DTypeError, NNKitError, RankError, StagingError
from ..core.location import HasLocation
from .expression import (
    Build,
    Call,
    Callee,
    Expression,
    GradientCallee,
    Parameter,
    Trace,
    active_traces,
    at,
    check_alive,
    free_expressions,
    make,
    tracing,
)
from .primitive import located
from .rep import Rep
from .spec import Spec, TensorSpec, TupleSpec, is_tuple

_STAGING = threading.RLock()
"""Held while a Python function is run: it may stage others, so that one lock each could deadlock."""


class FunctionResult(StagingError):
    """A staged function returns another one: calls of it are expanded, they have no IR of their own."""


class Stageable(abc.ABC):
    """Something that can be called in staged code."""

    name: str
    parameter_names: tuple[str, ...]
    location: HasLocation | None = None
    """Where the Python function is defined."""

    @abc.abstractmethod
    def callee(self, specs: tuple[Spec, ...]) -> Callee:
        """What a call with arguments of these types calls.

        Raises: StagingError for a wrong number of arguments, RankError or DTypeError when one is not
        what the function declares.
        """


@dataclass(eq=False)
class Lambda(Stageable):
    """A Python function to be staged.

    `declared` are the types its annotations promise (None where they do not say); `wrap` makes the Rep
    that the function sees.
    """

    function: Callable[..., Any]
    name: str
    parameter_names: tuple[str, ...]
    declared: tuple[Spec | None, ...]
    declared_result: Spec | None
    wrap: Callable[[Expression], Rep]
    location: HasLocation | None = None
    traces: dict[tuple[Spec, ...], Trace] = field(default_factory=dict[tuple[Spec, ...], Trace])

    def callee(self, specs: tuple[Spec, ...]) -> Trace:
        known = self.traces.get(specs)
        if known is not None:
            return known
        self.check(specs)
        with _STAGING:
            known = self.traces.get(specs)
            if known is None:
                known = self.traces[specs] = self._trace(specs)
            return known

    def check(self, specs: tuple[Spec, ...]) -> None:
        """Raises: StagingError, RankError or DTypeError when the arguments are not those declared."""
        if len(specs) != len(self.parameter_names):
            raise arity_error(self, len(specs))
        for name, wanted, given in zip(self.parameter_names, self.declared, specs, strict=True):
            if wanted is not None and wanted != given:
                raise _argument_error(self, name, wanted, given)

    def run(self, reps: Sequence[Rep]) -> Any:
        """What the Python function returns for these arguments.

        Raises: StagingError when it calls itself, or others, without end.
        """
        try:
            return self.function(*reps)
        except RecursionError:
            raise located(
                StagingError(f"staging {self.name} calls functions too deeply for Python"),
                _RECURSION,
            ) from None

    def _trace(self, specs: tuple[Spec, ...]) -> Trace:
        for outer in active_traces():
            if outer.origin is self and outer.parameters == specs:
                raise located(
                    StagingError(f"{self.name} calls itself while it is staged, without end"),
                    _RECURSION,
                )
        trace = Trace(
            self.name,
            specs,
            location=self.location,
            parameter_names=self.parameter_names,
            origin=self,
        )
        with tracing(trace):
            trace.inputs = tuple(
                Expression(Parameter(index, name), (), spec, self.location, trace)
                for index, (name, spec) in enumerate(zip(self.parameter_names, specs, strict=True))
            )
            returned = self.run([self.wrap(one) for one in trace.inputs])
            trace.output = result_of(returned, self.name, self.location)
            check_alive([trace.output], self.location)
        trace.result = trace.output.type
        if self.declared_result not in (None, trace.result):
            assert self.declared_result is not None
            error = at(
                _result_error(self.name, self.declared_result, trace.result), trace.output.location
            )
            raise defined_here(error, self)
        trace.captures = free_expressions(trace.output, trace)
        return trace


_RECURSION = (
    "a staged function runs once, at staging: recursion needs a Python condition that ends it; "
    "use a Python loop for a known number of steps"
)


@dataclass(eq=False)
class Gradient(Stageable):
    """The gradient of `of` as the IR declares it: derivatives in the order of `wrt`, then kept results."""

    of: Stageable
    wrt: tuple[int, ...]
    source: int | None
    keeping: tuple[int, ...]
    seedable: bool
    name: str
    parameter_names: tuple[str, ...]
    check: Callable[[Callee, Gradient], None]
    """Raises a DifferentiationError when the callee has no such gradient."""
    callees: dict[tuple[Spec, ...], GradientCallee] = field(
        default_factory=dict[tuple[Spec, ...], GradientCallee]
    )

    def callee(self, specs: tuple[Spec, ...]) -> GradientCallee:
        known = self.callees.get(specs)
        if known is None:
            known = self.callees[specs] = self._make(specs)
        return known

    def _make(self, specs: tuple[Spec, ...]) -> GradientCallee:
        if len(specs) != len(self.parameter_names):
            raise arity_error(self, len(specs))
        primal = self.of.callee(specs[:-1] if self.seedable else specs)
        self.check(primal, self)
        results = (
            primal.result.elements if isinstance(primal.result, TupleSpec) else (primal.result,)
        )
        if self.seedable and specs[-1] != results[self.source or 0]:
            raise _argument_error(self, "seed", results[self.source or 0], specs[-1])
        parts = [primal.parameters[i] for i in self.wrt] + [results[i] for i in self.keeping]
        return GradientCallee(
            self.name,
            specs,
            parts[0] if len(parts) == 1 else TupleSpec(tuple(parts)),
            captures=primal.captures,
            location=primal.location,
            parameter_names=self.parameter_names,
            primal=primal,
            wrt=self.wrt,
            source=self.source if isinstance(primal.result, TupleSpec) else None,
            keeping=self.keeping,
            seedable=self.seedable,
        )


def call(callee: Callee, arguments: Sequence[Expression]) -> Expression:
    """A call that stays one; what the callee captures is passed along."""
    return make(Call(callee), (*arguments, *callee.captures), callee.result)


def result_of(returned: Any, name: str, location: HasLocation | None) -> Expression:
    """The expression a staged function returns: a Rep, or a tuple of them."""
    if isinstance(returned, Rep) and returned.is_function:
        raise FunctionResult(f"{name} returns a staged function")
    if isinstance(returned, Rep):
        return returned.expression
    if is_tuple(returned) and returned:
        parts = [result_of(part, name, location) for part in returned]
        spec = TupleSpec(tuple(part.type for part in parts))
        return make(Build(spec), parts, spec)
    raise at(
        StagingError(f"{name} returns {_kind(returned)}, not a Rep or a tuple of Reps"),
        location,
        "return the Rep; a concrete value becomes one by `const(value)`",
    )


def _kind(value: object) -> str:
    if value is None:
        return "nothing"
    if is_tuple(value):
        return "an empty tuple"
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def arity_error(stageable: Stageable, given: int) -> NNKitError:
    """`stageable` is called with a wrong number of arguments."""
    names = stageable.parameter_names
    wanted = f"{len(names)} argument{'s' * (len(names) != 1)} ({', '.join(names)})"
    error = StagingError(
        f"{stageable.name} takes {wanted if names else 'no arguments'}, not {given}"
    )
    help = "stage the bound method, staged(instance.method)" if names[:1] == ("self",) else ""
    return defined_here(located(error, help), stageable)


def defined_here(error: NNKitError, stageable: Stageable) -> NNKitError:
    """`error` with a note that shows the `def`."""
    place = stageable.location.resolve() if stageable.location else None
    if place is not None:
        notes = getattr(error, "__notes__", [])
        notes.insert(
            0, f"  note: {stageable.name} is defined here  {place.excerpt().splitlines()[0]}"
        )
        error.__notes__ = notes
    return error


def _argument_error(stageable: Stageable, name: str, wanted: Spec, given: Spec) -> NNKitError:
    message = f"argument {name} of {stageable.name} is a {wanted.words}, not a {given.words}"
    return defined_here(located(mismatch(wanted, given)(message)), stageable)


def _result_error(function: str, wanted: Spec, given: Spec) -> NNKitError:
    return mismatch(wanted, given)(
        f"{function} is declared to return a {wanted.words} and returns a {given.words}"
    )


def mismatch(wanted: Spec, given: Spec) -> type[NNKitError]:
    """The class of error for one type in the place of another."""
    if (
        isinstance(wanted, TensorSpec)
        and isinstance(given, TensorSpec)
        and wanted.rank != given.rank
    ):
        return RankError
    return DTypeError
