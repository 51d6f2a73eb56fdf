"""Staged functions as the user holds them: called with Reps they stage, called with values they run.

A call with concrete values goes straight to native code of the specialisation used last.  Only when that
finds other shapes, or something that is not yet a plain tensor, does it come back to Python, to `dispatch`.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from threading import RLock
from typing import Any, ClassVar, get_type_hints

from .compile import Specialization, assembly_text, compiled, llvm_text
from .conversion import Argument, annotated, argument, declared_type
from .core.errors import StagingError
from .core.text import print_module
from .staging import lambdas
from .staging.expression import Build, Expression, Trace, current_trace, make
from .staging.lambdas import FunctionResult, Gradient, Lambda, Stageable, call
from .staging.location import DefinitionLocation
from .staging.primitive import located
from .staging.rep import Rep as StagedRep
from .staging.rep import constant_of, is_number, is_operand
from .staging.spec import Spec, StructSpec, TupleSpec, as_tuple
from .structs import Struct, fields


class Rep(StagedRep):
    """A staged value; `Rep[Tensor2D[f32]]` is its annotation."""

    __slots__ = ()

    def __call__(self, *_: object) -> Any:
        raise located(
            StagingError(f"a {self.spec.words} cannot be called: it is no staged function")
        )

    def eval(self) -> Any:
        """The value, computed now.  Raises: StagingError when it depends on a parameter."""
        trace = Trace("eval", (), result=self.spec, output=self.expression)
        return _evaluated(trace)


def _evaluated(trace: Trace) -> Any:
    assert trace.output is not None
    if trace.output.trace is not None:
        raise located(
            StagingError("this Rep has no value: it depends on parameters of a staged function"),
            "return it from the function and call that with concrete tensors",
        )
    return compiled(Specialization(trace, (), ()), _no_fallback, "eval")()


def _no_fallback(*_: object) -> Any:
    raise StagingError("eval takes no arguments")


class StagedFunction(Rep):
    """A staged function.  `f(x)` and `f[x]` are the same."""

    __slots__ = ("__weakref__", "_entry", "_expands", "_lock", "_programs", "stageable")
    is_function: ClassVar[bool] = True

    def __init__(self, stageable: Stageable) -> None:
        self.stageable = stageable
        self._programs: dict[tuple[Any, ...], Callable[..., Any]] = {}
        self._entry: Callable[..., Any] = self._dispatch
        self._expands = False
        self._lock = RLock()

    def __call__(self, *arguments: Any) -> Any:
        """Stage a call (all arguments Reps), or run (all concrete)."""
        return self._entry(*arguments)

    def __getitem__(self, key: Any, /) -> Any:
        return self._entry(*key) if type(key) is tuple else self._entry(key)

    def __getattr__(self, name: str) -> Any:
        if name == "expression":
            shown = self.stageable.name
            raise located(
                StagingError(f"{shown} is a staged function, not a tensor"),
                f"call it, {shown}(...)",
            )
        raise AttributeError(name)

    def __repr__(self) -> str:
        return (
            f"<staged function {self.stageable.name}({', '.join(self.stageable.parameter_names)})>"
        )

    def ir(self, *arguments: Any, stage: str = "raw") -> str:
        """The IR for arguments of these shapes (tensors, structs, or `spec(shape, dtype)`).

        `stage`: raw, optimizable, optimized, compute or schedule.
        """
        return print_module(self._specialization(arguments).module(stage)[0])

    def llvm(self, *arguments: Any) -> str:
        """The LLVM IR of the compiled function for arguments of these shapes."""
        return llvm_text(self._specialization(arguments))

    def asm(self, *arguments: Any) -> str:
        """Its machine code, as assembly."""
        return assembly_text(self._specialization(arguments))

    def compile(self, *arguments: Any) -> None:
        """Compile for arguments of these shapes, without running."""
        self._program(self._arguments(arguments))

    def _dispatch(self, *arguments: Any) -> Any:
        staged = any(isinstance(value, StagedRep) for value in arguments)
        if staged or (not arguments and current_trace() is not None):
            return self._stage(arguments)
        if self._expands:
            return self._expand([_constant(one.value) for one in self._arguments(arguments)])
        try:
            taken = self._arguments(arguments)
            program = self._program(taken)
        except FunctionResult:
            self._expands = True
            return self._dispatch(*arguments)
        self._entry = program
        return program(*(one.value for one in taken))

    def _stage(self, arguments: Sequence[Any]) -> Any:
        reps = [value if isinstance(value, StagedRep) else _constant(value) for value in arguments]
        if self._expands or any(rep.is_function for rep in reps):
            return self._expand(reps)
        try:
            callee = self.stageable.callee(tuple(rep.spec for rep in reps))
        except FunctionResult:
            self._expands = True
            return self._expand(reps)
        return Rep(call(callee, [rep.expression for rep in reps]))

    def _expand(self, reps: Sequence[StagedRep]) -> Any:
        """Run the Python function here and now: its arguments or its result are functions."""
        if not isinstance(self.stageable, Lambda):
            raise located(
                StagingError("the gradient of a function that takes or returns functions")
            )
        return _as_rep(self.stageable.function(*reps), self.stageable)

    def _arguments(self, values: Sequence[Any]) -> list[Argument]:
        names = self.stageable.parameter_names
        if len(values) != len(names):
            raise lambdas.arity_error(self.stageable.name, len(names), len(values))
        declared = declared_of(self.stageable)
        for name, value in zip(names, values, strict=True):
            if isinstance(value, StagedRep):
                raise StagingError(
                    f"argument {name} is a Rep: concrete values or specs are needed here"
                )
        return [
            argument(value, spec, name)
            for value, spec, name in zip(values, declared, names, strict=True)
        ]

    def _specialization(self, values: Sequence[Any]) -> Specialization:
        return self._specialize(self._arguments(values))

    def _specialize(self, taken: Sequence[Argument]) -> Specialization:
        specs = tuple(one.spec for one in taken)
        callee = self.stageable.callee(specs)
        if callee.captures:
            raise StagingError(
                f"{self.stageable.name} uses Reps of the staged function it was made in: it runs only there"
            )
        return Specialization(callee, specs, tuple(shape for one in taken for shape in one.shapes))

    def _program(self, taken: Sequence[Argument]) -> Callable[..., Any]:
        key = tuple((one.spec, *one.shapes) for one in taken)
        known = self._programs.get(key)
        if known is None:
            with self._lock:
                known = self._programs.get(key)
                if known is None:
                    specialization = self._specialize(taken)
                    known = compiled(specialization, self._dispatch, self.stageable.name)
                    self._programs[key] = known
        return known


def staged(function: Callable[..., Any], /) -> StagedFunction:
    """Make a Python function over Reps a staged function: traced once per types of its arguments.

    Raises: StagingError for parameters that cannot be staged (keyword-only, `*args`).
    """
    if isinstance(function, StagedFunction):
        return function
    hints = _hints(function, sys._getframe(1).f_locals)
    names = _parameters(function)
    return StagedFunction(
        Lambda(
            function,
            getattr(function, "__name__", "function"),
            names,
            tuple(annotated(hints.get(name)) for name in names),
            annotated(hints.get("return")),
            Rep,
            _location(function),
        )
    )


def fn(*types: Any) -> Callable[[Callable[..., Any]], StagedFunction]:
    """Stage a lambda whose parameters have these concrete types: `fn(Float2D)(lambda x: x @ x)`."""

    def stage(function: Callable[..., Any], /) -> StagedFunction:
        names = _parameters(function)
        if len(names) != len(types):
            raise StagingError(
                f"fn names {len(types)} types and the function has {len(names)} parameters"
            )
        declared = tuple(declared_type(type) for type in types)
        name = getattr(function, "__name__", "function")
        return StagedFunction(
            Lambda(function, name, names, declared, None, Rep, _location(function))
        )

    return stage


def const(value: Any, /) -> Rep:
    """A concrete value as a staged one: a tensor, an array, a struct or a tuple of them.

    The data is copied.  Raises: DTypeError for a Python number, which has no element type of its own.
    """
    if isinstance(value, StagedRep):
        return Rep(value.expression)
    return Rep(_constant_expression(value))


def tup(*reps: Any) -> Rep:
    """Several staged values as one."""
    parts = [_constant(rep).expression for rep in reps]
    spec = TupleSpec(tuple(part.type for part in parts))
    return Rep(make(Build(spec), parts, spec))


def build(cls: type[Struct], /, *bindings: Any) -> Rep:
    """A staged struct of its fields: `build(Params, Params.w << w, Params.b << b)`.

    Raises: StagingError when a field is missing or given twice.
    """
    given: dict[str, Expression] = {}
    for binding in bindings:
        name = binding.lens.name
        if not issubclass(cls, binding.lens.owner) or name not in {
            lens.name for lens in fields(cls)
        }:
            raise located(StagingError(f"{binding.lens!r} is not a field of {cls.__name__}"))
        if name in given:
            raise located(StagingError(f"field {name} of {cls.__name__} is given twice"))
        given[name] = _constant(binding.value).expression
    missing = [lens.name for lens in fields(cls) if lens.name not in given]
    if missing:
        raise located(StagingError(f"field {', '.join(missing)} of {cls.__name__} is missing"))
    parts = [given[lens.name] for lens in fields(cls)]
    _check_fields(cls, parts)
    spec = StructSpec(cls, tuple((lens.name, given[lens.name].type) for lens in fields(cls)))
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
                    f"field {name} of {cls.__name__} is a {wanted.words}, not a {part.type.words}"
                )
            )


def declared_of(stageable: Stageable) -> tuple[Spec | None, ...]:
    """What is promised of the parameters, before any argument is seen."""
    if isinstance(stageable, Lambda):
        return stageable.declared
    if isinstance(stageable, Gradient):
        inner = declared_of(stageable.of)
        return (*inner, None) if stageable.seedable else inner
    return (None,) * len(stageable.parameter_names)


def _constant(value: Any) -> StagedRep:
    return value if isinstance(value, StagedRep) else Rep(_constant_expression(value))


def _constant_expression(value: Any) -> Expression:
    if isinstance(value, Struct):
        parts = [_constant_expression(part) for part in value._fields]
        named = zip(fields(type(value)), parts, strict=True)
        struct = StructSpec(type(value), tuple((lens.name, part.type) for lens, part in named))
        return make(Build(struct), parts, struct)
    if isinstance(value, tuple):
        parts = [_constant_expression(part) for part in as_tuple(value)]
        several = TupleSpec(tuple(part.type for part in parts))
        return make(Build(several), parts, several)
    if is_number(value) or not is_operand(value):
        raise located(
            StagingError(f"{value!r} cannot be a constant: it has no element type"),
            "say which, for example const(f32(0.1)) or const(Tensor1D([1, 2], i32))",
        )
    return constant_of(value)


def _as_rep(returned: Any, stageable: Lambda) -> Any:
    if isinstance(returned, StagedRep) and returned.is_function:
        return returned
    return Rep(lambdas.result_of(returned, stageable.name, stageable.location))


def _parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    """The parameters to stage: those without a default, which is a constant of the function."""
    given = inspect.signature(function).parameters.values()
    staged = [parameter for parameter in given if parameter.default is parameter.empty]
    for parameter in staged:
        if parameter.kind not in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            raise StagingError(
                f"parameter {parameter.name} of {getattr(function, '__name__', 'the function')} cannot be "
                "staged: a staged function has a fixed number of positional parameters"
            )
    return tuple(parameter.name for parameter in staged)


def _hints(function: Callable[..., Any], scope: Mapping[str, Any]) -> dict[str, Any]:
    """The annotations, resolved where the function is defined."""
    if not getattr(function, "__annotations__", None):
        return {}
    try:
        return get_type_hints(function, localns=dict(scope))
    except NameError as error:
        raise StagingError(
            f"the annotations of {function.__name__} name {error.name}, which is not defined here\n"
            "  help: define or import it before the function, not only for typing"
        ) from None


def _location(function: Callable[..., Any]) -> DefinitionLocation | None:
    code = getattr(function, "__code__", None)
    return DefinitionLocation(code) if code is not None else None
