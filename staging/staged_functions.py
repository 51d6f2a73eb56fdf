"""Staged functions: a Python function is traced once per set of argument types; calls of it stay calls in the IR.

`PythonFunction` traces a Python function; derivatives of staged functions (`derivatives`) can be called as well.  All
give a `Callee` for the types of the arguments; the same types give the same callee, so the IR has one function for all
its calls.
"""

from __future__ import annotations

import abc
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, Final, TypeVar

from ..core.errors import DTypeError, NNKitError, RankError, ShapeError, StagingError
from ..core.lazy_dataclass import dataclass
from ..core.location import HasLocation
from .calls_at_hand import CALLED, AtHand
from .carry import kind, with_article
from .epochs import this_epoch
from .expression import (
    Callee,
    CalleeKey,
    Expression,
    MakeAggregate,
    Parameter,
    Shapes,
    StagedCall,
    Trace,
    TracedBody,
    free_expressions,
)
from .known_shapes import NeedsShapes, ShapeRequest, type_lookup
from .location import with_location
from .named_dimensions import NamedDimensions
from .number_help import typed_number
from .primitive import located
from .reads import RECORDED, Reads, reads_of
from .recursion import (
    UnknownResultError,
    discard,
    finish,
    in_progress,
    is_unfinished,
    join_member,
    note_recursion,
    note_site,
    plain,
    unfinished,
)
from .reflective_code import warn_of_many
from .refs import Ref
from .rep import Rep
from .rep_base import is_number
from .spec import (
    CallableSpec,
    FunctionSpec,
    Spec,
    TensorSpec,
    TupleSpec,
    difference,
    fits,
    is_open,
    is_tuple,
)
from .tracing import active_traces, check_alive, keep, make, tracing
from .user_calls import call_user, python_recursion_error, staging_lock

_Callee = TypeVar("_Callee", bound=Callee)


class FunctionResult(StagingError):
    """A staged function returns another one: calls of it are inlined while tracing, and have no IR of their own."""

    def __init__(self, message: str, function: Any) -> None:
        super().__init__(message)
        self.function = function


class Stageable(abc.ABC):
    """Something that can be called in staged code."""

    name: str
    parameter_names: tuple[str, ...]
    location: HasLocation | None = None
    """Where the Python function is defined."""

    def help_of(self, number: int) -> str:
        """What may help if the shape of argument `number` does not fit; nothing by default."""
        return ""

    @abc.abstractmethod
    def callee(self, specs: tuple[Spec, ...], shapes: Shapes | None = None) -> Callee:
        """What a call with arguments of these types calls, for all shapes or, where it needs sizes, for `shapes` alone.

        Raises: StagingError for a wrong number of arguments, RankError or DTypeError when one is not
        what the function declares; NeedsShapes where shapes are needed and not given.
        """


@dataclass(eq=False)
class RuleFunctions:
    """The rules of derivatives that a function has been given; what is made of it has the same."""

    jvp: Stageable | None = None
    vjp: Stageable | None = None
    saving: Stageable | None = None
    help_of_captures: str = "pass it as an argument"
    """What to write where the function uses a value of an enclosing one, by which it has no derivative."""

    def __bool__(self) -> bool:
        return self.jvp is not None or self.vjp is not None


@dataclass(eq=False)
class PythonFunction(Stageable):
    """A Python function, which is traced once per set of argument types.

    `declared` are the types its annotations promise (None where they do not say); `attributes` are those of the
    function in the IR.
    """

    function: Callable[..., Any]
    name: str
    parameter_names: tuple[str, ...]
    declared: tuple[Spec | None, ...]
    declared_result: Spec | None
    location: HasLocation | None = None
    attributes: tuple[str, ...] = ()
    is_wrapper: bool = False
    """Whether `function` is NNKit's own, around one of the user's."""
    dimensions: NamedDimensions | None = None
    reads: Reads | None = None
    """What it read when it was traced last."""
    traces: dict[CalleeKey, Trace] = field(default_factory=dict[CalleeKey, Trace])
    needs: dict[tuple[Spec, ...], ShapeRequest] = field(
        default_factory=dict[tuple[Spec, ...], ShapeRequest]
    )
    """For which types of arguments it is traced once per shapes, and why."""
    is_symbolic: bool = False
    """Whether it is traced for all shapes, or not at all."""
    rules: RuleFunctions = field(default_factory=RuleFunctions)

    def callee(self, specs: tuple[Spec, ...], shapes: Shapes | None = None) -> Trace:
        note_use(self)
        known = self.known(specs, shapes)
        if known is not None:
            return known
        self.check(specs)
        with staging_lock():
            known = self.known(specs, shapes)
            if known is not None:
                return known
            if specs not in self.needs:
                try:
                    return self._trace_once(specs, None, shapes)
                except NeedsShapes as error:
                    _note_needs(self.needs, specs, error.request)
            if shapes is None:
                raise NeedsShapes(self.needs[specs])
            return self._trace_once(specs, shapes, shapes)

    def known(self, specs: tuple[Spec, ...], shapes: Shapes | None = None) -> Trace | None:
        """The trace for these types, or for these shapes alone, if it is of this epoch."""
        for key in dict.fromkeys([(specs, None), (specs, shapes)]):
            known = self.traces.get(key)
            if known is not None and known.epoch == this_epoch():
                return known
            if known is not None:
                self.traces.pop(key, None)
        return None

    def check(self, specs: tuple[Spec, ...]) -> None:
        """Raises: StagingError, RankError or DTypeError when the arguments are not those declared."""
        if len(specs) != len(self.parameter_names):
            raise arity_error(self, len(specs))
        for name, wanted, given in zip(self.parameter_names, self.declared, specs, strict=True):
            if wanted is not None and not fits(wanted, given):
                raise argument_error(self, name, wanted, given)

    def run(self, reps: Sequence[Rep]) -> Any:
        """What the Python function returns for these arguments.

        Raises: StagingError when it calls itself, or others, without end.
        """
        before = reads_of(self.function)
        try:
            returned = call_user(self.name, self.function, *reps)
        except RecursionError as error:
            raise python_recursion_error(self.name, error) from None
        reads = reads_of(self.function)
        RECORDED.note_changes_by_tracing(reads.changes_since(before))
        self.reads = RECORDED.add(reads)
        warn_of_many(self.name, self.function, reads)
        return returned

    def _trace_once(
        self, specs: tuple[Spec, ...], shapes: Shapes | None, at_hand: Shapes | None
    ) -> Trace:
        """The trace for these types: the one in progress, or a new one."""
        running = in_progress(self, (specs, shapes))
        if running is None:
            return self._trace(specs, shapes, at_hand or CALLED.arguments_of(self))
        if running in active_traces():
            note_recursion(running)
        else:
            join_member(running)
        return running

    def _trace(self, specs: tuple[Spec, ...], shapes: Shapes | None, at_hand: AtHand) -> Trace:
        """Run the function; twice, if it calls itself before it is known what it returns."""
        trace = self._attempt(specs, shapes, self.declared_result, at_hand)
        assert trace.progress is not None
        if trace.progress.guesses and not trace.progress.assumes:
            discard(trace)
            trace = self._attempt(specs, shapes, trace.result, at_hand)
        for valid in finish(trace):
            assert isinstance(valid.origin, PythonFunction)
            valid.origin.keep(valid)
        return trace

    def keep(self, trace: Trace) -> None:
        """Use `trace` for all calls with arguments of its types."""
        keep_callee(self.traces, trace)

    def _attempt(
        self,
        specs: tuple[Spec, ...],
        shapes: Shapes | None,
        result: Spec | None,
        at_hand: AtHand,
    ) -> Trace:
        """One run, as a function that returns a `result`; None if that is not known."""
        is_known = result is not None and not is_open(result)
        trace = Trace(
            self.name,
            specs,
            location=self.location,
            parameter_names=self.parameter_names,
            origin=self,
            attributes=self.attributes,
            is_wrapper=self.is_wrapper,
            shapes=shapes,
            is_determined=is_known and not isinstance(result, CallableSpec),
            at_hand=at_hand,
        )
        if result is not None and is_known:
            trace.result = result
        arguments = self._arguments(trace)
        if shapes is not None:
            trace.types = type_lookup(trace, shapes)
        try:
            with tracing(trace), unfinished(trace):
                returned = self.run(arguments)
                self._check_function(returned, result)
                trace.output = result_of(returned, self.name, self.location, result)
                check_alive([trace.output], self.location)
                self._check_result(trace, result)
        except UnknownResultError as error:
            if error.trace is not trace:
                raise
            raise with_definition(plain(error), self) from None
        finally:
            trace.types = trace.at_hand = None
        trace.result = trace.output.type
        trace.captures = free_expressions([*trace.effects, trace.output], trace)
        return trace

    def _check_function(self, returned: object, wanted: Spec | None) -> None:
        """Raises: DTypeError when the function returns another one, and says that it returns a value."""
        if wanted is None or isinstance(wanted, CallableSpec) or not is_function(returned):
            return
        error = DTypeError(
            f"{self.name} is declared to return {with_article(wanted.words)} and returns {_function_words(returned)}"
        )
        raise with_definition(
            with_location(error, self.location, "call it, and return what it gives"), self
        )

    def _check_result(self, trace: Trace, wanted: Spec | None) -> None:
        """Raises: RankError or DTypeError when the function returns something else than it says."""
        assert trace.output is not None
        if wanted is not None and not fits(wanted, trace.output.type):
            error = _result_error(self.name, wanted, trace.output.type)
            raise with_definition(with_location(error, trace.output.location), self)

    def _arguments(self, trace: Trace) -> list[Rep]:
        """Symbolic arguments; functions are themselves."""
        arguments: list[Rep] = []
        inputs: list[Expression] = []
        for name, spec in zip(self.parameter_names, trace.parameters, strict=True):
            if isinstance(spec, FunctionSpec):
                arguments.append(spec.function)
                continue
            operation = Parameter(len(arguments), name)
            inputs.append(Expression(operation, (), spec, self.location, trace))
            arguments.append(Rep(inputs[-1]))
        trace.inputs = tuple(inputs)
        return arguments


_MOST_FUNCTIONS = 64
"""Traces that are kept for different functions as arguments: a lambda is another one at each call
(docs/decisions/0022)."""


_MOST_SHAPES = 256
"""Traces that are kept for different shapes, as many as specialisations (docs/decisions/0022)."""


def keep_callee(known: dict[CalleeKey, _Callee], callee: _Callee) -> None:
    """Add to what is known by the types of parameters: types are few, functions and shapes without end."""
    if _takes_functions(callee.parameters):
        special = [key for key in known if _takes_functions(key[0])]
        if len(special) >= _MOST_FUNCTIONS:
            known.pop(special[0], None)
    if callee.shapes is not None:
        special = [key for key in known if key[1] is not None]
        if len(special) >= _MOST_SHAPES:
            known.pop(special[0], None)
    known[callee.parameters, callee.shapes] = callee


def _note_needs(
    needs: dict[tuple[Spec, ...], ShapeRequest], specs: tuple[Spec, ...], request: ShapeRequest
) -> None:
    while len(needs) >= _MOST_SHAPES:
        del needs[next(iter(needs))]
    needs[specs] = request


def known_or_made(
    function: Stageable,
    known: dict[CalleeKey, _Callee],
    specs: tuple[Spec, ...],
    shapes: Shapes | None,
    make: Callable[[tuple[Spec, ...], Shapes | None], _Callee],
) -> _Callee:
    """What is kept for these types and shapes of arguments, or is made now, if they are as many as parameters."""
    if not active_traces():
        RECORDED.look()
    callee = known.get((specs, None)) or known.get((specs, shapes))
    if callee is None or callee.epoch != this_epoch():
        if len(specs) != len(function.parameter_names):
            raise arity_error(function, len(specs))
        callee = make(specs, shapes)
        keep_callee(known, callee)
    return callee


def note_use(function: PythonFunction) -> None:
    """Note that the trace in progress uses `function`; from outside, look for what has been redefined."""
    for trace in reversed(active_traces()):
        if not isinstance(trace, TracedBody):
            trace.used[function] = None
            return
    if not active_traces():
        RECORDED.look()


def _takes_functions(specs: tuple[Spec, ...]) -> bool:
    return any(isinstance(spec, FunctionSpec) for spec in specs)


def call(callee: Callee, arguments: Sequence[Expression]) -> Expression:
    """A call that stays one; what the callee captures is passed along."""
    node = make(StagedCall(callee), (*arguments, *callee.captures), callee.result)
    if is_unfinished(callee):
        note_site(node, len(arguments), callee)
    if callee.has_effects or is_unfinished(callee):
        keep(node)
    return node


def result_of(
    returned: Any, name: str, location: HasLocation | None, wanted: Spec | None = None
) -> Expression:
    """The expression a staged function returns: a Rep, or a tuple of them; `wanted` is the type it declares."""
    if is_function(returned):
        raise FunctionResult(f"{name} returns a staged function", returned)
    if isinstance(returned, Rep):
        return returned.expression
    if is_tuple(returned) and returned:
        if any(map(is_function, returned)):
            raise with_location(
                StagingError(f"{name} returns a tuple with a staged function in it"),
                location,
                "return one function, or a tuple of tensors",
            )
        inside = wanted.elements if isinstance(wanted, TupleSpec) else ()
        fitting = inside if len(inside) == len(returned) else (None,) * len(returned)
        parts = [
            result_of(part, name, location, one)
            for part, one in zip(returned, fitting, strict=True)
        ]
        spec = TupleSpec(tuple(part.type for part in parts))
        return make(MakeAggregate(spec), parts, spec)
    raise with_location(
        StagingError(f"{name} returns {kind(returned)}, not a Rep or a tuple of Reps"),
        location,
        typed_number(returned, wanted)
        if is_number(returned)
        else "return what it holds, `ref.value`"
        if isinstance(returned, Ref)
        else RETURNED.get(
            _class_of(returned), "return the Rep; a concrete value becomes one by `const(value)`"
        ),
    )


def _class_of(value: object) -> type[Any]:
    return type(value)


RETURNED: Final[Mapping[type, str]] = {
    list: "return a tuple of them; tensors of one shape are one tensor by `stack`",
    dict: "return a tuple of them, or a struct, `build(P, P.w << w, P.b << b)`",
}
"""What to return in place of a collection of Python's."""


def is_staged_function(value: object) -> bool:
    """Whether it is a staged function."""
    return isinstance(value, Rep) and value.is_function


def is_function(value: object) -> bool:
    """Whether it is a function, staged or one of Python to be staged."""
    return is_staged_function(value) or inspect.isfunction(value) or inspect.ismethod(value)


def _function_words(function: object) -> str:
    made = "staged function" if is_staged_function(function) else "function"
    return f"the {made} {getattr(function, '__name__', '')}".rstrip()


def arity_error(stageable: Stageable, given: int, detail: str = "") -> NNKitError:
    """`stageable` is called with a wrong number of arguments."""
    names = stageable.parameter_names
    wanted = f"{len(names)} argument{'s' * (len(names) != 1)} ({', '.join(names)})"
    wanted = wanted if names else "no arguments"
    error = StagingError(f"{stageable.name} takes {wanted}, not {given}{detail}")
    help = "stage the bound method, staged(instance.method)" if names[:1] == ("self",) else ""
    return with_definition(located(error, help), stageable)


def with_definition(error: NNKitError, stageable: Stageable) -> NNKitError:
    """`error` with a note that shows the `def`."""
    place = stageable.location.resolve() if stageable.location else None
    if place is not None:
        notes = getattr(error, "__notes__", [])
        notes.insert(
            0, f"  note: {stageable.name} is defined here  {place.excerpt().splitlines()[0]}"
        )
        error.__notes__ = notes
    return error


def with_shape_help(error: NNKitError, help: str) -> NNKitError:
    """`error` with a note, if shapes or ranks do not fit and there is a help for it."""
    note = f"  help: {help}"
    if help and isinstance(error, ShapeError) and note not in getattr(error, "__notes__", []):
        error.add_note(note)
    return error


def argument_error(stageable: Stageable, name: str, wanted: Spec, given: Spec) -> NNKitError:
    """The argument for parameter `name` of `stageable` is of another type."""
    shown = (
        _function_words(given.function)
        if isinstance(given, FunctionSpec)
        else difference(wanted, given)
    )
    message = (
        f"argument {name} of {stageable.name} must be {with_article(wanted.words)}, and is {shown}"
    )
    return with_definition(located(mismatch(wanted, given)(message)), stageable)


def _result_error(function: str, wanted: Spec, given: Spec) -> NNKitError:
    return mismatch(wanted, given)(
        f"{function} is declared to return {with_article(wanted.words)} and returns {difference(wanted, given)}"
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
