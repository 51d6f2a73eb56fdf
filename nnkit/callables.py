"""Staged functions as the user holds them: called with Reps they stage, called with values they run.

A call with concrete values goes straight to native code:
1. The entry of the specialisation compiled last checks the arguments itself.
2. What does not fit it, it hands on to the one compiled before, and so on for a few.
3. The last of them calls `_dispatch`, which makes tensors of what is none yet and finds the specialisation
   by their shapes, or compiles a new one.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Hashable, Sequence
from importlib import import_module
from threading import RLock
from typing import Any, ClassVar, NoReturn

from .compile import Specialization
from .conversion import (
    annotated,
    concrete,
    constant_expression,
    declared_type,
    shapes_of,
    signature_of,
    spec_of,
    tensor_from,
)
from .core.errors import NNKitError, StagingError
from .declarations import hints_of, location_of, name_of, parameters_of
from .staging import lambdas
from .staging.expression import Build, Expression, Trace, depends_on_parameters, make
from .staging.lambdas import FunctionResult, Gradient, Lambda, Stageable, call
from .staging.primitive import located
from .staging.rep import Rep as StagedRep
from .staging.spec import Spec, StructSpec, TupleSpec
from .structs import Binding, Struct, fields


class Rep(StagedRep):
    """A staged value; `Rep[Tensor2D[f32]]` is its annotation."""

    __slots__ = ()

    @classmethod
    def constant(cls, value: Any) -> Expression:
        """A concrete tensor or array as a constant, copied so that later writes do not matter."""
        try:
            return constant_expression(tensor_from(value, "a constant"))
        except NNKitError as error:
            raise located(error) from None

    def __call__(self, *_: object, **__: object) -> Any:
        raise located(
            StagingError(f"a {self.spec.words} cannot be called: it is no staged function")
        )

    def eval(self) -> Any:
        """The value, computed now.  Raises: StagingError when it depends on a parameter."""
        if depends_on_parameters(self.expression):
            raise located(
                StagingError(
                    "this Rep has no value: it depends on parameters of a staged function"
                ),
                "return it from the function and call that with concrete tensors",
            )
        trace = Trace("eval", (), result=self.spec, output=self.expression)
        return Specialization(trace, (), ()).compiled(_no_arguments, "eval")()

    def ir(self, *_: object, stage: str = "raw") -> str:
        """Only staged functions have IR."""
        raise self._no_function("IR")

    def llvm(self, *_: object) -> str:
        """Only staged functions have code."""
        raise self._no_function("code")

    def asm(self, *_: object) -> str:
        """Only staged functions have code."""
        raise self._no_function("code")

    def compile(self, *_: object) -> None:
        """Only staged functions can be compiled."""
        raise self._no_function("code")

    def _no_function(self, what: str) -> NNKitError:
        return located(StagingError(f"a {self.spec.words} is no staged function: it has no {what}"))


def _no_arguments(*_: object) -> NoReturn:
    raise StagingError("a value is evaluated without arguments")


class StagedFunction(Rep):
    """A staged function.  `f(x)` and `f[x]` are the same."""

    __slots__ = (
        "__weakref__", "_chained", "_entry", "_expands", "_lock", "_places", "_programs", "declared",
        "stageable",
    )  # fmt: skip
    is_function: ClassVar[bool] = True

    def __init__(self, stageable: Stageable) -> None:
        self.stageable = stageable
        self.declared = declared_of(stageable)
        self._places = [
            f"argument {name} of {stageable.name}" for name in stageable.parameter_names
        ]
        self._programs: dict[Hashable, Callable[..., Any]] = {}
        self._entry: Callable[..., Any] = self._dispatch
        self._chained = 0
        self._expands = False
        self._lock = RLock()

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Stage a call (all arguments Reps), or run (all concrete)."""
        return self._entry(*arguments, **keywords)

    def __getitem__(self, key: Any, /) -> Any:
        return self._entry(*key) if type(key) is tuple else self._entry(key)

    def __getattr__(self, name: str) -> Any:
        if name == "expression":
            shown = self.stageable.name
            raise located(
                StagingError(f"{shown} is a staged function, not a tensor"),
                f"call it, {shown}(...)",
            )
        if name in ("__name__", "__qualname__"):
            return self.stageable.name
        if name == "__wrapped__" and isinstance(self.stageable, Lambda):
            return self.stageable.function
        raise AttributeError(f"a staged function has no attribute {name!r}")

    def __repr__(self) -> str:
        names = ", ".join(self.stageable.parameter_names)
        return f"<staged function {self.stageable.name}({names})>"

    def __reduce__(self) -> Any:
        """By name, as Python functions are.  Raises: StagingError for one without."""
        function = self.stageable.function if isinstance(self.stageable, Lambda) else None
        name = getattr(function, "__module__", ""), getattr(function, "__qualname__", "")
        if not all(name) or _named(*name) is not self:
            raise located(
                StagingError(
                    f"{self.stageable.name} cannot be pickled: it is not found by name in a module"
                ),
                "define it at the top of a module",
            )
        return _named, name

    def eval(self) -> Any:
        """A function has no value of its own."""
        return self.expression

    def ir(self, *arguments: Any, stage: str = "raw") -> str:
        """The IR for arguments of these shapes (tensors, structs, or `spec(shape, dtype)`).

        `stage`: raw, optimizable, optimized, compute or schedule.
        """
        return self._specialization(self._values(arguments, specs=True)).text(stage)

    def llvm(self, *arguments: Any) -> str:
        """The LLVM IR of the compiled function for arguments of these shapes."""
        return self._specialization(self._values(arguments, specs=True)).llvm()

    def asm(self, *arguments: Any) -> str:
        """Its machine code, as assembly."""
        return self._specialization(self._values(arguments, specs=True)).assembly()

    def compile(self, *arguments: Any) -> None:
        """Compile for arguments of these shapes, without running."""
        values = self._values(arguments, specs=True)
        key = tuple(map(signature_of, values))
        if key not in self._programs:
            self._compile(key, values)

    def _dispatch(self, *arguments: Any, **keywords: Any) -> Any:
        if keywords:
            raise located(
                StagingError(
                    f"{self.stageable.name} takes its arguments by position, not by name "
                    f"({', '.join(keywords)})"
                )
            )
        if not arguments or any(isinstance(value, StagedRep) for value in arguments):
            return self._stage(arguments)
        values = self._values(arguments)
        if self._expands:
            return self._expand([Rep(constant_expression(value)) for value in values])
        if self._programs and any(map(operator.is_not, values, arguments)):
            return self._entry(*values)  # where they fit now, or come back as they are
        key = tuple(map(signature_of, values))
        program = self._programs.get(key)
        if program is None:
            try:
                program = self._compile(key, values)
            except FunctionResult:
                self._expands = True
                return self._dispatch(*arguments)
        elif len(self._programs) > _LONGEST_CHAIN:
            self._entry = program
        return program(*values)

    def _values(self, arguments: Sequence[Any], *, specs: bool = False) -> list[Any]:
        """The arguments as compiled code reads them."""
        names = self.stageable.parameter_names
        if len(arguments) != len(names):
            raise lambdas.arity_error(self.stageable, len(arguments))
        try:
            return [
                concrete(value, declared, place, specs)
                for value, declared, place in zip(
                    arguments, self.declared, self._places, strict=True
                )
            ]
        except NNKitError as error:
            raise lambdas.defined_here(located(error), self.stageable) from None

    def _stage(self, arguments: Sequence[Any]) -> Any:
        reps = self._reps(arguments)
        if self._expands or any(rep.is_function for rep in reps):
            return self._expand(reps)
        try:
            callee = self.stageable.callee(tuple(rep.spec for rep in reps))
        except FunctionResult:
            self._expands = True
            return self._expand(reps)
        return Rep(call(callee, [rep.expression for rep in reps]))

    def _reps(self, arguments: Sequence[Any]) -> list[StagedRep]:
        """The arguments of a staged call; concrete ones become constants."""
        if len(arguments) != len(self.stageable.parameter_names):
            raise lambdas.arity_error(self.stageable, len(arguments))
        return [
            value if isinstance(value, StagedRep) else const_beside(value, declared, name)
            for value, declared, name in zip(
                arguments, self.declared, self.stageable.parameter_names, strict=True
            )
        ]

    def _expand(self, reps: Sequence[StagedRep]) -> Any:
        """Run the Python function here and now: its arguments or its result are functions."""
        stageable = self.stageable
        if not isinstance(stageable, Lambda):
            raise located(
                StagingError(
                    f"{stageable.name} takes or returns staged functions: only a function of tensors, "
                    "structs and tuples has a gradient"
                ),
                "close over the functions instead",
            )
        returned = stageable.run(reps)
        if isinstance(returned, StagedRep) and returned.is_function:
            return returned
        try:
            return Rep(lambdas.result_of(returned, stageable.name, stageable.location))
        except FunctionResult:
            raise located(
                StagingError(f"{stageable.name} returns a tuple with a staged function in it"),
                "return one function, or a tuple of tensors",
            ) from None

    def _specialization(self, values: Sequence[Any]) -> Specialization:
        specs = tuple(map(spec_of, values))
        callee = self.stageable.callee(specs)
        if callee.captures:
            raise located(
                StagingError(
                    f"{self.stageable.name} uses Reps of the staged function it was made in: "
                    "it runs only there"
                ),
                "call it with Reps, inside that function",
            )
        return Specialization(callee, specs, tuple(s for value in values for s in shapes_of(value)))

    def _compile(self, key: Hashable, values: Sequence[Any]) -> Callable[..., Any]:
        """A new specialisation, which becomes the first to be tried."""
        specialization = self._specialization(
            values
        )  # runs the user's function: not under the lock
        with self._lock:
            known = self._programs.get(key)
            if known is None:
                chains = self._chained < _LONGEST_CHAIN
                fallback = self._entry if chains else self._dispatch
                known = specialization.compiled(fallback, self.stageable.name)
                self._programs[key] = self._entry = known
                self._chained = self._chained + 1 if chains else 1
            return known


_LONGEST_CHAIN = 8
"""Specialisations tried in native code, at some 6 ns each, before Python looks among all of them."""


def staged(function: Callable[..., Any], /) -> StagedFunction:
    """Make a Python function over Reps a staged function: traced once per types of its arguments.

    A parameter with a default is no parameter of the staged function: its value is a constant.
    Raises: StagingError for parameters that cannot be staged (keyword-only, `*args`).
    """
    if isinstance(function, StagedFunction):
        return function
    names = parameters_of(function)
    hints = hints_of(function, sys._getframe(1).f_locals)
    declared = tuple(annotated(hints.get(name)) for name in names)
    return _lambda(function, names, declared, annotated(hints.get("return")))


def fn(*types: Any) -> Callable[[Callable[..., Any]], StagedFunction]:
    """Stage a lambda whose parameters have these concrete types: `fn(Float2D)(lambda x: x @ x)`.

    Raises: StagingError when the number of parameters is another one.
    """
    declared = tuple(map(declared_type, types))

    def stage(function: Callable[..., Any], /) -> StagedFunction:
        names = parameters_of(function)
        if len(names) != len(types):
            raise located(
                StagingError(
                    f"fn names {len(types)} types and {name_of(function)} has {len(names)} parameters"
                )
            )
        return _lambda(function, names, declared, None)

    return stage


def _lambda(
    function: Callable[..., Any],
    names: tuple[str, ...],
    declared: tuple[Spec | None, ...],
    result: Spec | None,
) -> StagedFunction:
    name, place = name_of(function), location_of(function)
    return StagedFunction(Lambda(function, name, names, declared, result, Rep, place))


def const(value: Any, /) -> Rep:
    """A concrete value as a staged one: a tensor, an array, a struct or a tuple of them.

    The data is copied.  Raises: DTypeError for a Python number, which has no element type of its own.
    """
    if isinstance(value, StagedRep):
        return Rep(value.expression)
    return const_beside(value, None, None)


def const_beside(value: Any, declared: Spec | None, name: str | None) -> Rep:
    """`const` for argument `name`, whose element type a Python number takes."""
    try:
        place = f"argument {name}" if name else "a constant"
        return Rep(constant_expression(concrete(value, declared, place)))
    except NNKitError as error:
        raise located(error) from None


def tup(*reps: Any) -> Rep:
    """Several staged values as one.  Raises: StagingError for none."""
    if not reps:
        raise located(StagingError("tup takes at least one value"))
    parts = [const(rep).expression for rep in reps]
    spec = TupleSpec(tuple(part.type for part in parts))
    return Rep(make(Build(spec), parts, spec))


def build(cls: type[Struct], /, *bindings: Any) -> Rep:
    """A staged struct of its fields: `build(Params, Params.w << w, Params.b << b)`.

    Raises: StagingError when a field is missing or given twice.
    """
    names = [lens.name for lens in fields(cls)]
    given: dict[str, Expression] = {}
    for binding in bindings:
        if not isinstance(binding, Binding):
            raise located(
                StagingError(
                    f"build takes fields with their values, not a {type(binding).__name__}"
                ),
                f"for example {cls.__name__}.{names[0] if names else 'field'} << value",
            )
        name = binding.lens.name
        if not issubclass(cls, binding.lens.owner) or name not in names:
            raise located(
                StagingError(f"{binding.lens!r} is not a field of {cls.__name__}"),
                f"its fields are {', '.join(names)}",
            )
        if name in given:
            raise located(StagingError(f"field {name} of {cls.__name__} is given twice"))
        given[name] = const(binding.value).expression
    missing = [name for name in names if name not in given]
    if missing:
        raise located(StagingError(f"field {', '.join(missing)} of {cls.__name__} is missing"))
    parts = [given[name] for name in names]
    _check_fields(cls, parts)
    spec = StructSpec(cls, tuple((name, given[name].type) for name in names))
    return Rep(make(Build(spec), parts, spec))


def _check_fields(cls: type[Struct], parts: Sequence[Expression]) -> None:
    declared = declared_type(cls)
    if not isinstance(declared, StructSpec):
        return
    for (name, wanted), part in zip(declared.fields, parts, strict=True):
        if part.type != wanted:
            error = lambdas.mismatch(wanted, part.type)
            raise located(
                error(
                    f"field {name} of {cls.__name__} holds a {wanted.words}, not a {part.type.words}"
                )
            )


def declared_of(stageable: Stageable) -> tuple[Spec | None, ...]:
    """What is promised of the parameters, before any argument is seen."""
    if isinstance(stageable, Lambda):
        return stageable.declared
    if isinstance(stageable, Gradient):
        inner = declared_of(stageable.of)
        return (*inner, declared_seed(stageable)) if stageable.seedable else inner
    return (None,) * len(stageable.parameter_names)


def declared_result(stageable: Stageable) -> Spec | None:
    """What is promised of the result."""
    if isinstance(stageable, Lambda):
        return stageable.declared_result
    return None


def declared_seed(gradient: Gradient) -> Spec | None:
    """What is promised of the seed: the type of the result that is differentiated."""
    result = declared_result(gradient.of)
    elements = result.elements if isinstance(result, TupleSpec) else (result,)
    source = gradient.source or 0
    return elements[source] if source < len(elements) else None


def _named(module: str, name: str) -> Any:
    """What a module calls so; None when there is nothing."""
    found: Any = import_module(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found
