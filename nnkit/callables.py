"""Staged functions as users call them: with Reps they trace, with concrete values they compile and run.

A call with concrete values goes straight to native code:
1. The entry of the specialisation compiled last checks the arguments itself.
2. What does not fit it, it hands on to the one compiled before, and so on for a few.
3. The last of them calls `_dispatch`, which makes tensors of what is none yet and finds the specialisation
   by their shapes, or compiles a new one.  What it finds takes them, or it is a bug: nothing is dispatched twice.

A call that is given no data at all says nothing of which of the two is meant: it stages while a function is being
staged, and runs otherwise.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, overload

from . import missing_names
from .annotations import is_of_data, named_dimensions
from .calls_with_out import WithOut
from .compile import Specialization
from .compiled_functions import WithCode
from .conversion import (
    CONVERTED,
    annotated,
    concrete,
    constant_expression,
    signature_of,
)
from .core.errors import NNKitError
from .declared_types import declared_of
from .documentation import Documentation, ModuleName, unfit
from .introspection import (
    StaticSignature,
    hints_of,
    location_of,
    name_of,
    named,
    signature_of_names,
    static_signature,
)
from .partial_functions import rest_names, with_functions, with_rest
from .reps import const_beside
from .staging import staged_functions
from .staging.calls_at_hand import callee_for
from .staging.custom_rules import set_jvp, set_vjp
from .staging.named_dimensions import NamedDimensions
from .staging.primitive import located, staging_error
from .staging.rep import Rep
from .staging.spec import FunctionSpec, Spec
from .staging.staged_functions import (
    FunctionResult,
    PythonFunction,
    Stageable,
    call,
    is_staged_function,
    note_use,
)
from .staging.tracebacks import end_at_user, public
from .staging.tracing import active_traces, current_trace
from .static_parameters import Statics, bound, family_of, unwrapped, with_values


class StagedFunction(WithOut):
    __module__ = ModuleName(__name__)
    __doc__: Any = Documentation("A staged function.  `f(x)` and `f[x]` are the same.")
    __slots__ = (
        "__weakref__", "_bound", "_curried", "_places", "_wholes", "declared", "stageable",
    )  # fmt: skip
    is_function: ClassVar[bool] = True

    def __init__(self, stageable: Stageable) -> None:
        self.statics = None
        self.replace_with(stageable)

    def replace_with(self, stageable: Stageable) -> None:
        """Make this the staged function for `stageable`."""
        self.stageable = stageable
        self.declared = declared_of(stageable)
        self._places = [
            f"argument {name} of {stageable.name}" for name in stageable.parameter_names
        ]
        self._begin_without_code()
        self._curried: dict[Hashable, Sequence[str]] = {}
        self._wholes: dict[Sequence[str], StagedFunction] = {}
        self._bound: dict[tuple[FunctionSpec | None, ...], StagedFunction] = {}

    __call__: Any = vars(WithCode)["_entry"]
    """Stage a call (all arguments Reps), or run (all concrete); `out=` are arrays to write the results to.

    It is the slot of `_entry`, so that Python calls what lies there: a method in Python would add 180 ns to each call.
    """

    def __getitem__(self, key: Any, /) -> Any:
        try:
            return self._entry(*key) if type(key) is tuple else self._entry(key)
        except NNKitError as error:
            end_at_user(error)
            raise

    @public
    def __getattr__(self, name: str) -> Any:
        if name == "expression":
            shown = self.stageable.name
            raise staging_error(
                f"{shown} is a staged function, not a tensor", f"call it, {shown}(...)"
            )
        if name in ("__name__", "__qualname__"):
            return self.stageable.name
        if isinstance(self.stageable, PythonFunction):
            if name == "__wrapped__":
                return unwrapped(self.stageable.function)
        elif (
            name == "__signature__"
        ):  # `inspect.signature` asks; where something is wrapped, it asks that
            statics = self.statics.family.parameters if self.statics is not None else ()
            return signature_of_names(self.stageable.parameter_names, statics)
        raise missing_names.of_function(name, dir(type(self)))

    def __repr__(self) -> str:
        statics = self.statics.words if self.statics is not None else ()
        names = ", ".join((*self.stageable.parameter_names, *statics))
        return f"<staged function {self.stageable.name}({names})>"

    def __reduce__(self) -> Any:
        """By name, as Python functions are.  Raises: StagingError for one without."""
        if self.statics is not None and self.statics.family.root is not self:
            return bound, (self.statics.family.root, dict(self.statics.values))
        function = self.__wrapped__ if isinstance(self.stageable, PythonFunction) else None
        name = getattr(function, "__module__", ""), getattr(function, "__qualname__", "")
        if not all(name) or named(*name) is not self:
            raise staging_error(
                f"{self.stageable.name} cannot be pickled: it is not found by name in a module",
                "define it at the top of a module",
            )
        return named, name

    @public
    def defjvp(self, rule: Callable[..., Any], /) -> StagedFunction:
        """Compute tangents of this function by `rule`, which is given the arguments and a tangent of each.

        It returns the tangent of the result.  Tangents are of the types of what they belong to; integers in them are
        zeros.  Cotangents are computed by the transpose of the rule, unless there is a `defvjp`.  Derivatives of higher
        order are those of the rule.  A decorator; give it before the function is differentiated.
        Raises: StagingError, RankError or DTypeError for other parameters; a rule that returns something else is an
        error of the derivative, and so is one to be transposed that is not linear in the tangents.
        """
        made = staged(rule)
        self._give_rules(set_jvp, made)
        return made

    @public
    def defvjp(
        self, fwd: Callable[..., Any], bwd: Callable[..., Any] | None = None, /
    ) -> StagedFunction:
        """Compute cotangents of the arguments by one function of these and of the result's cotangent, or by two.

        One, `@f.defvjp`, is given the arguments and the cotangent.  Two, `f.defvjp(fwd, bwd)`, are `fwd`, which takes
        the arguments and returns the result and what is saved, and `bwd`, which takes what is saved and the cotangent.
        Either returns a tuple with a cotangent for each argument; integers in it are not read.  `fwd` gets the result
        by calling the function, whose derivatives it then has.  Tangents are computed by the transpose of the rule,
        unless there is a `defjvp`.
        Raises: as `defjvp`.
        """
        first = staged(fwd)
        if bwd is None:
            self._give_rules(set_vjp, first, None)
        else:
            self._give_rules(set_vjp, staged(bwd), first)
        return first

    @public
    def eval(self) -> Any:
        """What a function of no parameters returns, computed now; another one has no value of its own."""
        return self.expression if self.stageable.parameter_names else self._run()

    def _drop_code(self) -> None:
        super()._drop_code()
        self._bound.clear()
        self._wholes.clear()
        self._curried.clear()

    @public
    def _dispatch(self, *arguments: Any, **keywords: Any) -> Any:
        is_plain = not keywords and not self._has_static(arguments)
        reps = [value for value in arguments if isinstance(value, Rep)]
        is_data = is_plain and bool(arguments) and not reps
        values = self._values(arguments) if is_data else []
        is_converted = any(map(operator.is_not, values, arguments))
        if is_converted and self._programs and not CONVERTED.now:
            CONVERTED.now = True  # what comes back from there is not sent there again
            try:  # where native code looks first whether something has changed, in less time
                return self._entry(*values)
            finally:
                CONVERTED.now = False
        self.forget_what_changed()
        if keywords:
            return self._with_keywords(arguments, keywords)
        if not is_plain:
            of, data = self._variant_and_data(arguments, {})
            return of._entry(*data)
        if not is_data:
            return self._apply(arguments, reps)
        key = tuple(map(signature_of, values))
        program = self._programs.find(key)
        if program is not None:
            self._enter(program)
            return program.call(*values)
        if key not in self._curried:
            try:
                return self._compile(key, values).call(*values)
            except FunctionResult as result:
                self._note_rest(key, result)
        return Application(self._whole(self._curried[key]), values, self._curried[key])

    def _with_keywords(self, arguments: Sequence[Any], keywords: dict[str, Any]) -> Any:
        if [*keywords] == ["out"] and not self._has_static(arguments):
            return self._write_to(keywords["out"], arguments)
        of, data = self._variant_and_data(arguments, keywords)
        return of._entry(*data, **keywords)

    def _apply(self, arguments: Sequence[Any], reps: Sequence[Rep]) -> Any:
        """Functions are among the arguments, or Reps of values, or there are none.

        Reps of values stage a call, and so does everything while a function is being staged.
        """
        functions = all(rep.is_function for rep in reps)
        if not functions or current_trace() is not None:
            return self._stage(arguments)
        if len(reps) == len(arguments):
            made = self._stage(arguments)
            if made.is_function:
                return made
            return (self._of_data(arguments) if arguments else self)._run()
        given = [one for one in arguments if not isinstance(one, Rep)]
        return self._of_data(arguments)(*given)

    def _run(self) -> Any:
        """What this function of no parameters returns, as data."""
        self.forget_what_changed()
        return (self._programs.find(()) or self._compile((), ())).call()

    def _of_data(self, arguments: Sequence[Any]) -> StagedFunction:
        """The function of the other parameters, once those that are functions are given."""
        self._check_arity(arguments)
        fixed = tuple(FunctionSpec(a) if is_staged_function(a) else None for a in arguments)
        known = self._bound.get(fixed)
        if known is None:
            if len(self._bound) >= _MOST_BOUND:
                self._bound.clear()
            known = StagedFunction(with_functions(self, self.stageable, self.declared, fixed))
            self._bound[fixed] = known
        return known

    def _whole(self, names: Sequence[str]) -> StagedFunction:
        """The function of this one's parameters and those of the function it returns, which are `names`."""
        known = self._wholes.get(names)
        if known is None:
            known = StagedFunction(with_rest(self, self.stageable, self.declared, names))
            self._wholes[names] = known
        return known

    def _check_arity(self, arguments: Sequence[Any]) -> None:
        if len(arguments) != len(self.stageable.parameter_names):
            known = self.statics.family.parameters if self.statics else ()
            detail = unfit(self.stageable.parameter_names, tuple(arguments), *known)
            raise staged_functions.arity_error(self.stageable, len(arguments), detail)

    def _values(self, arguments: Sequence[Any], *, specs: bool = False) -> list[Any]:
        """The arguments as compiled code reads them."""
        self._check_arity(arguments)
        values: list[Any] = []
        for value, declared, place in zip(arguments, self.declared, self._places, strict=True):
            try:
                values.append(concrete(value, declared, place, specs))
            except NNKitError as error:
                defined = staged_functions.with_definition(located(error), self.stageable)
                help = self.stageable.help_of(len(values))
                raise staged_functions.with_shape_help(defined, help) from None
        return values

    def _stage(self, arguments: Sequence[Any]) -> Any:
        reps = self._reps(arguments)
        specs = tuple(FunctionSpec(rep) if rep.is_function else rep.spec for rep in reps)
        if specs in self._curried:
            return self._expand(reps)
        given = [rep.expression for rep in reps if not rep.is_function]
        try:
            callee = callee_for(self.stageable, partial(self.stageable.callee, specs), given)
        except FunctionResult as result:
            self._note_rest(specs, result)
            return self._expand(reps)
        return Rep(call(callee, given))

    def _reps(self, arguments: Sequence[Any]) -> list[Rep]:
        """The arguments of a staged call; concrete ones become constants."""
        self._check_arity(arguments)
        return [
            value if isinstance(value, Rep) else const_beside(value, declared, place)
            for value, declared, place in zip(arguments, self.declared, self._places, strict=True)
        ]

    def _expand(self, reps: Sequence[Rep]) -> Any:
        """The function that this one returns: its Python function is run here and now.

        Once for the same arguments, so that a recursion by way of what it returns has an end.
        """
        stageable = self.stageable
        assert isinstance(stageable, PythonFunction)
        note_use(stageable)
        key = stageable, *(FunctionSpec(r) if r.is_function else r.expression for r in reps)
        for trace in active_traces():
            if key in trace.expanded:
                return trace.expanded[key]
        made = staged(stageable.run(reps))
        here = current_trace()
        if here is not None:
            here.expanded[key] = made
        return made

    def _note_rest(self, key: Hashable, result: FunctionResult) -> None:
        """Arguments of these types give a function."""
        rest = rest_names(self.stageable, result.function)
        if len(self._curried) >= _MOST_BOUND:
            self._curried.clear()
        self._curried[key] = rest


_MOST_BOUND = 64
"""Different functions as arguments, for which what is compiled is kept (docs/decisions/0022)."""


class Application(StagedFunction):
    """What a function that returns a function gives the host: it runs when the other arguments are there.

    The first ones are arguments of the compiled code, too: it is not compiled anew for each.
    """

    __slots__ = ("_first", "_function")

    def __init__(
        self, function: StagedFunction, first: Sequence[Any], names: Sequence[str]
    ) -> None:
        stageable = function.stageable

        def rest(*others: Any) -> Any:
            return function(*(Rep(constant_expression(value)) for value in first), *others)

        super().__init__(
            PythonFunction(
                rest, stageable.name, tuple(names), (None,) * len(names), None, is_wrapper=True
            )
        )
        self._function = function
        self._first = tuple(first)

    @public
    def compile(self, *arguments: Any) -> None:
        """Compile for arguments of these shapes, without running."""
        self._function.compile(*self._first, *arguments)

    @public
    def _dispatch(self, *arguments: Any, **keywords: Any) -> Any:
        staging = not arguments and current_trace() is not None
        if keywords or staging or any(isinstance(value, Rep) for value in arguments):
            return super()._dispatch(*arguments, **keywords)
        return self._function(*self._first, *self._values(arguments))

    def _run(self) -> Any:
        return self._function(*self._first)

    def _write_to(self, out: Any, arguments: Sequence[Any]) -> Any:
        return self._function(*self._first, *self._values(arguments), out=out)

    def _specialization(self, values: Sequence[Any]) -> Specialization:
        return self._function._specialization([*self._first, *values])


@overload
def staged(function: Callable[..., Any], /, *, shapes: str = "any") -> StagedFunction: ...
@overload
def staged(*, shapes: str) -> Callable[[Callable[..., Any]], StagedFunction]: ...
def staged(function: Callable[..., Any] | None = None, /, *, shapes: str = "any") -> Any:
    """Make a Python function over Reps a staged function: traced once per types of its arguments.

    Where Python needs a size as an int, it is traced once per shapes; with `shapes="symbolic"` that is an error.
    A parameter whose annotation is no Rep, or that has a default, is static: Python's `if` works on it, and for another
    value, which must be hashable, the function is another one.  It may be given by name, and bound by `f.partial`.
    Raises: StagingError for parameters that cannot be staged (a Rep by keyword only, `*args`).
    """
    around = sys._getframe(1).f_locals
    try:
        if shapes not in ("any", "symbolic"):
            raise staging_error(f'shapes is "any" or "symbolic", not {shapes!r}')
        if function is None:
            return partial(_staged, around, shapes == "symbolic")
        return _staged(around, shapes == "symbolic", function)
    except NNKitError as error:
        end_at_user(error)
        raise


@public
def _staged(
    around: Mapping[str, Any], is_symbolic: bool, function: Callable[..., Any]
) -> StagedFunction:
    """The staged function for one defined where the local names are those `around`."""
    if isinstance(function, StagedFunction):
        if is_symbolic:
            raise staging_error(f"{function.stageable.name} is staged already", "say it there")
        return function
    hints = hints_of(function, around)
    signature = static_signature(
        function, lambda name: name in hints and not is_of_data(hints[name])
    )
    taken = [hints.get(name) for name in signature.data]
    dimensions = named_dimensions([*zip(signature.data, taken, strict=True)], hints.get("return"))
    declared = tuple(map(annotated, taken))
    result = annotated(hints.get("return"))
    return staged_with(function, signature, declared, result, dimensions, is_symbolic=is_symbolic)


def staged_with(
    function: Callable[..., Any],
    signature: StaticSignature,
    declared: tuple[Spec | None, ...],
    result: Spec | None,
    dimensions: NamedDimensions | None,
    *,
    is_symbolic: bool = False,
) -> StagedFunction:
    """The staged function for a Python function with these parameters."""
    name, place = name_of(function), location_of(function)

    def made(values: Mapping[str, Any]) -> StagedFunction:
        of_data = with_values(function, name, signature, values)
        made = PythonFunction(of_data, name, signature.data, declared, result, place)
        made.dimensions = dimensions
        made.is_symbolic = is_symbolic
        return StagedFunction(made)

    root = made({})
    if signature.statics:
        root.statics = Statics(family_of(name, signature, root, made))
    return root


def check_staged(of: Any, what: str) -> None:
    """Raises: StagingError, in the name of the function `what`, for what is not a staged function."""
    if not isinstance(of, StagedFunction):
        is_code = callable(of) and not isinstance(of, type)
        shown = f"the function {name_of(of)}" if is_code else f"a {type(of).__name__}"
        help = "decorate it with @nk.staged" if is_code else ""
        raise staging_error(f"{what} takes a staged function, not {shown}", help)
