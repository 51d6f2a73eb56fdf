"""Carried values of control flow: a Rep or nested tuples of Reps, flattened and unflattened."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from types import FunctionType, MethodType
from typing import Any, Final, TypeAlias

from ..core.errors import DTypeError, NNKitError, RankError
from ..core.lazy_dataclass import dataclass
from .aggregates import element_of
from .expression import Expression
from .number_help import typed_number
from .primitive import located, staging_error
from .rep_base import RepBase, constant_of, is_number, rep_of
from .spec import Spec, TensorSpec, TupleSpec, is_tuple
from .spec import with_article as with_article
from .user_calls import call_user

TreeStructure: TypeAlias = "tuple[TreeStructure, ...] | None"
"""The structure of nested tuples: one Rep (None), or a tuple of structures."""


@dataclass(frozen=True)
class Carry:
    """A flattened value: its expressions, and the tree structure of the user's value."""

    parts: tuple[Expression, ...]
    shape: TreeStructure

    @property
    def specs(self) -> tuple[Spec, ...]:
        """The types of the parts."""
        return tuple(part.type for part in self.parts)

    @property
    def spec(self) -> Spec:
        """Its type."""
        return _type(iter(self.specs), self.shape)

    @property
    def words(self) -> str:
        """Its type, as users read it."""
        return self.spec.words

    def of(self, parts: Sequence[Expression]) -> Any:
        """Unflatten other parts by the same structure."""
        return _unflatten(iter(parts), self.shape)

    def like(self, other: Carry) -> bool:
        """Whether both have the same structure and types."""
        return self.specs == other.specs and _same(self.shape, other.shape)

    def mismatch(self, other: Carry, message: str, of_loop: bool = False) -> NNKitError:
        """The error for `other` in the place of this: of rank, or of type."""
        if self.words == other.words:
            return staging_error(
                f"{message}: one is a Rep of a tuple, the other a tuple of Reps",
                "take the Rep apart, `pair.unpack()`",
            )
        of_rank = len(self.parts) == len(other.parts) and any(
            isinstance(a, TensorSpec) and isinstance(b, TensorSpec) and a.rank != b.rank
            for a, b in zip(self.specs, other.specs, strict=True)
        )
        if not of_loop:
            return located(RankError(message) if of_rank else DTypeError(message), OF_BRANCHES)
        return located(
            RankError(message) if of_rank else DTypeError(message),
            OF_LOOPS if of_rank else OF_LOOPS_OF_TYPES,
        )


OF_BRANCHES: Final = (
    "return the same from both, of the same types; `select(condition, a, b)` chooses element by element, "
    "and broadcasts"
)
"""What to do about branches of `cond` that return something else."""
OF_LOOPS: Final = (
    "what is carried keeps its shape: start with one of the shape of the next, `nk.zeros(...)`, and write to a part, "
    "`x.at[i].set(v)`; what grows is stacked by `scan`"
)
OF_LOOPS_OF_TYPES: Final = (
    "what is carried keeps its type: `.cast(dtype)` what the body returns, or what it starts with"
)
"""What to do about a loop whose body returns something else than it takes."""

NO_CARRY = Carry((), ())
"""That of a loop which carries nothing but the refs that its body changes."""


class UntypedNumberError(DTypeError):
    """A Python number, which has no element type, where a Rep is needed, `at` these positions of nested tuples."""

    def __init__(self, what: str, number: float, at: tuple[int, ...]) -> None:
        shown = f"the Python number {number!r}, which has no element type of its own"
        super().__init__(f"{what} {shown}")
        self.number = number
        self.at = at

    def beside(self, like: Spec | None) -> NNKitError:
        """The error to show, whose help names the type of what stands beside the number."""
        for position in self.at:
            inside = like.elements if isinstance(like, TupleSpec) else ()
            like = inside[position] if position < len(inside) else None
        return located(DTypeError(*self.args), typed_number(self.number, like))


def carry_of(value: object, what: str, like: Spec | None = None) -> Carry:
    """Flatten a Rep or nested tuples of Reps; concrete tensors become constants.

    Raises: StagingError for what has no parts, DTypeError for a Python number; its help names the type of `like`.
    """
    try:
        return carry_or_number_of(value, what)
    except UntypedNumberError as error:
        raise error.beside(like) from None


def carry_or_number_of(value: object, what: str) -> Carry:
    """The same where the expected types are not known yet. Raises: UntypedNumberError for a Python number."""
    parts: list[Expression] = []
    shape = _flatten(value, what, parts, ())
    return Carry(tuple(parts), shape)


def conform(value: object, shape: TreeStructure) -> object:
    """Unpack a Rep of a tuple where the structure has a tuple."""
    if isinstance(shape, tuple) and isinstance(value, RepBase) and not value.is_function:
        spec = value.spec
        if isinstance(spec, TupleSpec) and len(spec.elements) == len(shape):
            return tuple(rep_of(element_of(value.expression, k)) for k in range(len(shape)))
    return value


def call_function(function: Any, arguments: tuple[Any, ...], what: str) -> Any:
    """Call a user's function.  Raises: StagingError when it is none, or takes another number of arguments."""
    if isinstance(function, RepBase) and function.is_function:
        staged: Any = function
        return staged(*arguments)
    if isinstance(function, RepBase) or not callable(function):
        shown = (
            with_article(function.spec.words) if isinstance(function, RepBase) else kind(function)
        )
        help = "put it into a function, `lambda: value`" if not arguments else ""
        if what.endswith("branch of cond"):
            help += "; `select(condition, a, b)` chooses between values"
        raise staging_error(f"{what} must be a function, and is {shown}", help)
    try:
        inspect.signature(function).bind(*arguments)
    except ValueError:
        pass  # a builtin that does not say: Python will
    except TypeError:
        number = f"{len(arguments)} argument{'s' * (len(arguments) != 1)}"
        name = getattr(function, "__name__", type(function).__name__)
        raise staging_error(
            f"{what} is called with {number if arguments else 'no arguments'}, which "
            f"{name} does not take",
            _of_pairs(function, arguments) or PARAMETERS.get(what, "")
            if arguments
            else "it reads the values around it: `lambda: f(x)`",
        ) from None
    return call_user(what, function, *arguments)


PARAMETERS: Final = {
    "the body of fori": "the number of the iteration and what is carried: `lambda i, x: ...`",
    "the function of map": "one element: `lambda x: ...`; with its number, "
    "`nk.zip_with(x, nk.arange(x.shape[0]), lambda row, i: ...)`",
    "the body of scan": "what is carried and an element: `lambda carry, x: ...`, which returns both",
    "the body of fold": "what is carried and an element: `lambda carry, x: ...`",
    "the body of while_loop": "what is carried, one value or one tuple: `lambda carry: ...`",
    "the test of while_loop": "what is carried, one value or one tuple: `lambda carry: ...`",
}
"""What the functions of loops are given."""


def _of_pairs(function: Any, arguments: tuple[Any, ...]) -> str:
    """What helps a function that takes the elements of several tensors one by one; nothing for another one."""
    *before, last = arguments or (None,)
    if not isinstance(last, RepBase) or not isinstance(last.spec, TupleSpec):
        return ""
    try:
        inspect.signature(function).bind(*before, *last.spec.elements)
    except TypeError:
        return ""
    if before:
        return "the elements are one tuple: take it as the last argument, and apart by `pair[0]`, `pair[1]`"
    return (
        "`zip_with(v, w, fn)` gives `fn` the elements one by one; `map` gives it one tuple, "
        "`lambda pair: ...` with `pair[0]` and `pair[1]`"
    )


def _flatten(
    value: object, what: str, parts: list[Expression], at: tuple[int, ...]
) -> TreeStructure:
    if is_tuple(value) and value:
        return tuple(_flatten(one, what, parts, (*at, k)) for k, one in enumerate(value))
    if isinstance(value, RepBase):
        if value.is_function:
            raise staging_error(
                f"{what} a staged function, not a Rep or a tuple of Reps",
                "which function is called must be known while staging: call it in each branch or step",
            )
        parts.append(value.expression)
        return None
    if is_number(value):
        raise UntypedNumberError(what, value, at)
    if value is None or callable(value) or isinstance(value, _NO_TENSORS):
        raise staging_error(
            f"{what} {kind(value)}, not a Rep or a tuple of Reps",
            "a concrete value becomes one by `const(value)`",
        )
    parts.append(constant_of(value))
    return None


_NO_TENSORS: tuple[type, ...] = (str, list, dict, set, tuple)


def kind(value: object) -> str:
    """What a value that is no Rep is, in words."""
    if value is None:
        return "nothing"
    if isinstance(value, FunctionType | MethodType):
        return "a plain Python function"
    name = type(value).__name__
    return "an empty tuple" if isinstance(value, tuple) and not value else with_article(name)


def _unflatten(parts: Iterator[Expression], shape: TreeStructure) -> Any:
    if isinstance(shape, tuple):
        return tuple(_unflatten(parts, inner) for inner in shape)
    return rep_of(next(parts))


def _type(specs: Iterator[Spec], shape: TreeStructure) -> Spec:
    if isinstance(shape, tuple):
        return TupleSpec(tuple(_type(specs, inner) for inner in shape))
    return next(specs)


def _same(a: TreeStructure, b: TreeStructure) -> bool:
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    return not isinstance(a, tuple) and not isinstance(b, tuple)
