"""Reps as the user holds them, and what makes them of concrete values and of parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from .compile import Specialization
from .conversion import concrete, constant_expression, declared_type, tensor_from
from .core.errors import DTypeError, NNKitError, StagingError
from .staging.carry import indefinite
from .staging.expression import Build, Expression, Trace, depends_on_parameters, make
from .staging.lambdas import mismatch
from .staging.primitive import located
from .staging.rep import Rep as StagedRep
from .staging.rep import is_number
from .staging.spec import Spec, StructSpec, TupleSpec
from .staging.traversal import Traversable
from .structs import Binding, Struct, fields


class Rep(Traversable):
    """A staged value; `Rep[Tensor2D[f32]]` is its annotation."""

    __slots__ = ()

    @classmethod
    def constant(cls, value: Any) -> Expression:
        """A concrete tensor or array as a constant, copied so that later writes do not matter."""
        try:
            if isinstance(value, Struct):
                return constant_expression(concrete(value, None, "a constant"))
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
        return Specialization(trace, (), ()).compiled(_no_arguments, "eval").call()

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

    def cache_size(self) -> int:
        """Only staged functions have compiled specialisations."""
        raise self._no_function("code")

    def clear_cache(self) -> None:
        """Only staged functions have compiled specialisations."""
        raise self._no_function("code")

    def _no_function(self, what: str) -> NNKitError:
        return located(StagingError(f"a {self.spec.words} is no staged function: it has no {what}"))


def _no_arguments(*_: object) -> NoReturn:
    raise StagingError("a value is evaluated without arguments")


def const(value: Any, /) -> Rep:
    """A concrete value as a staged one: a tensor, an array, a struct or a tuple of them.

    The data is copied.  Raises: DTypeError for a Python number, which has no element type of its own.
    """
    if isinstance(value, StagedRep):
        return Rep(value.expression)
    return const_beside(value, None, "a constant")


def const_beside(value: Any, declared: Spec | None, place: str) -> Rep:
    """`const` for an argument, `place` in words, whose declared element type a Python number takes."""
    try:
        return Rep(constant_expression(concrete(value, declared, place)))
    except NNKitError as error:
        raise located(error) from None


def as_rep(x: Any) -> Rep:
    """x as a Rep: what is concrete becomes a constant."""
    return x if isinstance(x, Rep) else const(x)


def operands_of(verb: str, x: Any, y: Any) -> tuple[Rep, Rep]:
    """Two tensors, or a tensor and a Python number on either side, as Reps."""
    if is_number(x) and is_number(y):
        raise located(DTypeError(f"cannot {verb} two Python numbers: one must be a tensor"))
    known = as_rep(y if is_number(x) else x)
    return Rep(known.lift(x, verb)), Rep(known.lift(y, verb))


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
            error = mismatch(wanted, part.type)
            raise located(
                error(
                    f"field {name} of {cls.__name__} must be {indefinite(wanted.words)}, and is "
                    f"{indefinite(part.type.words)}"
                )
            )
