"""Rep: a staged value, and the operators of the language on it.

A Rep stands for a value that is not there yet: operators on Reps build expressions.  Python numbers
take the element type of the tensor beside them; concrete tensors and arrays become constants.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import GenericAlias
from typing import Any, ClassVar, NoReturn, TypeVar, cast

import numpy as np
from typing_extensions import TypeIs

from ..core.errors import DTypeError, RankError, StagingError
from ..core.ops import (
    Abs,
    Add,
    And,
    ArgMax,
    ArgMin,
    Combinator,
    Divide,
    Elementwise,
    Equal,
    FloorDivide,
    GreaterThan,
    GreaterThanOrEqual,
    LessThan,
    LessThanOrEqual,
    Modulo,
    Multiply,
    Negate,
    Not,
    NotEqual,
    Or,
    Power,
    SqueezeShape,
    Subtract,
    composed,
)
from . import primitive
from .aggregates import FieldLens, element_of, field_of, set_field
from .expression import Expression
from .indexing import subscript
from .primitive import located
from .spec import Spec, StructSpec, TupleSpec
from .static import core_dtype, static_shape

_Rep = TypeVar("_Rep", bound="Rep")


class Rep:
    """A staged value; `Rep[Tensor2D[f32]]` is its annotation."""

    __slots__ = ("expression",)
    __class_getitem__: ClassVar[Any] = cast("Any", classmethod(GenericAlias))
    is_function: ClassVar[bool] = False

    def __init__(self, expression: Expression) -> None:
        self.expression = expression

    @property
    def spec(self) -> Spec:
        """What is known of the value: rank and element type."""
        return self.expression.type

    @classmethod
    def constant(cls, value: Any) -> Expression:
        """A concrete tensor or array as a constant; which of them there are, a subclass knows."""
        raise located(DTypeError(f"a {type(value).__name__} cannot be used in a staged function"))

    def lift(self, other: object, what: str = "an operator") -> Expression:
        """`other` as an operand beside this tensor, whose element type a Python number takes."""
        if isinstance(other, Rep):
            return other.expression
        if is_number(other):
            return primitive.literal(other, primitive.tensor_of(self.expression, what).dtype)
        return self.constant(other)

    def _unary(self: _Rep, op: Elementwise) -> _Rep:
        return type(self)(primitive.elementwise(op, self.expression))

    def _binary(self: _Rep, op: Elementwise, other: object) -> _Rep:
        if not is_operand(other):
            return cast("_Rep", NotImplemented)
        return type(self)(primitive.elementwise(op, self.expression, self.lift(other)))

    def _reflected(self: _Rep, op: Elementwise, other: object) -> _Rep:
        if not is_operand(other):
            return cast("_Rep", NotImplemented)
        return type(self)(primitive.elementwise(op, self.lift(other), self.expression))

    def __add__(self: _Rep, other: object, /) -> _Rep:
        return self._binary(Add(), other)

    def __radd__(self: _Rep, other: object, /) -> _Rep:
        return self._reflected(Add(), other)

    def __sub__(self: _Rep, other: object, /) -> _Rep:
        return self._binary(Subtract(), other)

    def __rsub__(self: _Rep, other: object, /) -> _Rep:
        return self._reflected(Subtract(), other)

    def __mul__(self: _Rep, other: object, /) -> _Rep:
        return self._binary(Multiply(), other)

    def __rmul__(self: _Rep, other: object, /) -> _Rep:
        return self._reflected(Multiply(), other)

    def __truediv__(self: _Rep, other: object, /) -> _Rep:
        return self._binary(Divide(), other)

    def __rtruediv__(self: _Rep, other: object, /) -> _Rep:
        return self._reflected(Divide(), other)

    def __floordiv__(self: _Rep, other: object, /) -> _Rep:
        return self._binary(FloorDivide(), other)

    def __rfloordiv__(self: _Rep, other: object, /) -> _Rep:
        return self._reflected(FloorDivide(), other)

    def __mod__(self: _Rep, other: object, /) -> _Rep:
        return self._binary(Modulo(), other)

    def __rmod__(self: _Rep, other: object, /) -> _Rep:
        return self._reflected(Modulo(), other)

    def __pow__(self: _Rep, other: object, /) -> _Rep:
        return self._binary(Power(), other)

    def __rpow__(self: _Rep, other: object, /) -> _Rep:
        return self._reflected(Power(), other)

    def __matmul__(self: _Rep, other: object, /) -> _Rep:
        if not is_operand(other):
            return cast("_Rep", NotImplemented)
        return type(self)(primitive.dot(self.expression, self.lift(other)))

    def __rmatmul__(self: _Rep, other: object, /) -> _Rep:
        if not is_operand(other):
            return cast("_Rep", NotImplemented)
        return type(self)(primitive.dot(self.lift(other), self.expression))

    def __neg__(self: _Rep) -> _Rep:
        return self._unary(Negate())

    def __pos__(self: _Rep) -> _Rep:
        return self

    def __abs__(self: _Rep) -> _Rep:
        return self._unary(Abs())

    def __invert__(self: _Rep) -> _Rep:
        return self._unary(Not())

    def __and__(self: _Rep, other: object, /) -> _Rep:
        return self._binary(And(), other)

    def __rand__(self: _Rep, other: object, /) -> _Rep:
        return self._reflected(And(), other)

    def __or__(self: _Rep, other: object, /) -> _Rep:
        return self._binary(Or(), other)

    def __ror__(self: _Rep, other: object, /) -> _Rep:
        return self._reflected(Or(), other)

    def __xor__(self: _Rep, other: object, /) -> _Rep:
        return (self | other) & ~(self & other)

    def __rxor__(self: _Rep, other: object, /) -> _Rep:
        return self ^ other

    def __lt__(self: _Rep, other: object, /) -> _Rep:
        return self._binary(LessThan(), other)

    def __le__(self: _Rep, other: object, /) -> _Rep:
        return self._binary(LessThanOrEqual(), other)

    def __gt__(self: _Rep, other: object, /) -> _Rep:
        return self._binary(GreaterThan(), other)

    def __ge__(self: _Rep, other: object, /) -> _Rep:
        return self._binary(GreaterThanOrEqual(), other)

    def __eq__(self: _Rep, other: object, /) -> _Rep:  # type: ignore[override]  # an expression
        return self._binary(Equal(), other)

    def __ne__(self: _Rep, other: object, /) -> _Rep:  # type: ignore[override]  # an expression
        return self._binary(NotEqual(), other)

    __hash__ = object.__hash__

    def __copy__(self: _Rep) -> _Rep:
        return self

    def __deepcopy__(self: _Rep, memo: dict[int, Any]) -> _Rep:
        return self

    def __reduce__(self) -> NoReturn:
        raise located(
            StagingError("a Rep cannot be pickled: it means something only while staging")
        )

    def __getitem__(self: _Rep, key: Any, /) -> _Rep:
        """A field of a struct, an element of a tuple, or elements and slices of a tensor."""
        match self.spec:
            case StructSpec():
                return type(self)(field_of(self.expression, key))
            case TupleSpec():
                return type(self)(element_of(self.expression, key))
            case spec if hasattr(key, "owner"):
                raise located(
                    StagingError(f"{key!r} is a field of a struct, and this is a {spec.words}")
                )
            case _:
                return type(self)(subscript(self.expression, key, _index_expression))

    def __setitem__(self, key: object, value: object, /) -> NoReturn:
        raise located(
            StagingError("a Rep cannot be written to: it is a value, as a number is"),
            "`select(where, new, x)` or `concat` make a new one; a struct has `set`",
        )

    def __delitem__(self, key: object, /) -> NoReturn:
        raise located(StagingError("elements of a Rep cannot be deleted"), "take a slice")

    def __getattr__(self, name: str) -> Any:
        reason = ": it is not known while staging" if name in _UNKNOWN else ""
        raise AttributeError(f"a Rep has no {name!r}{reason}", name=name, obj=self)

    def set(self: _Rep, lens: FieldLens, value: object, /) -> _Rep:
        """The struct with one field replaced."""
        return type(self)(set_field(self.expression, lens, value))

    def unpack(self: _Rep) -> tuple[_Rep, ...]:
        """The elements of a tuple."""
        if not isinstance(self.spec, TupleSpec):
            raise located(StagingError(f"only a tuple can be unpacked, not a {self.spec.words}"))
        return tuple(self[position] for position in range(len(self.spec.elements)))

    def sum(self: _Rep, axis: Any = None, *, keepdims: bool = False) -> _Rep:
        """Σ along the axes (all by default)."""
        return self._reduce(Combinator.ADD, axis, keepdims)

    def prod(self: _Rep, axis: Any = None, *, keepdims: bool = False) -> _Rep:
        """Π along the axes (all by default)."""
        return self._reduce(Combinator.MULTIPLY, axis, keepdims)

    def max(self: _Rep, axis: Any = None, *, keepdims: bool = False) -> _Rep:
        """Largest element along the axes; NaN wins; −∞ or the smallest integer of none."""
        return self._reduce(Combinator.MAX, axis, keepdims)

    def min(self: _Rep, axis: Any = None, *, keepdims: bool = False) -> _Rep:
        """Smallest element along the axes; NaN wins; +∞ or the largest integer of none."""
        return self._reduce(Combinator.MIN, axis, keepdims)

    def all(self: _Rep, axis: Any = None, *, keepdims: bool = False) -> _Rep:
        """Whether all are true; true of none."""
        return self._reduce(Combinator.AND, axis, keepdims)

    def any(self: _Rep, axis: Any = None, *, keepdims: bool = False) -> _Rep:
        """Whether any is true; false of none."""
        return self._reduce(Combinator.OR, axis, keepdims)

    def _reduce(self: _Rep, combinator: Combinator, axis: Any, keepdims: bool) -> _Rep:
        return type(self)(primitive.reduce(self.expression, combinator, axis, keepdims))

    def mean(self: _Rep, axis: Any = None, *, keepdims: bool = False) -> _Rep:
        """Arithmetic mean; NaN of none.  16-bit floats are summed in f32."""
        return self._compose("mean", composed.mean, axis, keepdims)

    def var(self: _Rep, axis: Any = None, *, keepdims: bool = False) -> _Rep:
        """Population variance: the mean of squared distances from the mean."""
        return self._compose("var", composed.variance, axis, keepdims)

    def _compose(self: _Rep, name: str, rule: Any, axis: Any, keepdims: bool) -> _Rep:
        x = self.expression
        return type(self)(primitive.compose_along(name, rule, x, axis, keepdims=keepdims))

    def argmax(self: _Rep, axis: Any = None) -> _Rep:
        """Index (i64) of the first largest element."""
        return type(self)(primitive.arg_extremum(self.expression, ArgMax, axis))

    def argmin(self: _Rep, axis: Any = None) -> _Rep:
        """Index (i64) of the first smallest element."""
        return type(self)(primitive.arg_extremum(self.expression, ArgMin, axis))

    @property
    def T(self: _Rep) -> _Rep:
        """The transposed matrix."""
        rank = primitive.tensor_of(self.expression, "T").rank
        if rank != 2:
            raise located(
                RankError(f"only a matrix has a T, not a {self.spec.words}"), "transpose(1, 0, ...)"
            )
        return self.transpose(1, 0)

    def transpose(self: _Rep, *permutation: int) -> _Rep:
        """Axis k of the result is axis `permutation[k]`; all axes reversed by default."""
        rank = primitive.tensor_of(self.expression, "transpose").rank
        axes = tuple(primitive.normalize_axis(axis, rank) for axis in permutation)
        return type(self)(
            primitive.transpose(self.expression, axes or tuple(reversed(range(rank))))
        )

    def reshape(self: _Rep, *dims: int) -> _Rep:
        """The same elements in row-major order; one extent may be −1."""
        return type(self)(
            primitive.reshape(self.expression, static_shape(dims, "reshape", least=-1))
        )

    def expand_dims(self: _Rep, axis: int) -> _Rep:
        """One new axis of extent 1."""
        rank = primitive.tensor_of(self.expression, "expand_dims").rank
        return type(self)(
            primitive.expand(self.expression, primitive.normalize_axis(axis, rank + 1))
        )

    def squeeze(self: _Rep, axis: int) -> _Rep:
        """Without an axis of extent 1."""
        rank = primitive.tensor_of(self.expression, "squeeze").rank
        return type(self)(
            primitive.apply(SqueezeShape(primitive.normalize_axis(axis, rank)), self.expression)
        )

    def named(self: _Rep, *dims: Any) -> _Rep:
        """The same value; its dimensions have names for the type checker now."""
        rank = primitive.tensor_of(self.expression, "named").rank
        if len(dims) != rank:
            raise located(
                RankError(f"a tensor of rank {rank} cannot take {len(dims)} names of dimensions")
            )
        return self

    def cast(self: _Rep, dtype: Any) -> _Rep:
        """Each element converted: to integers towards zero, to boolean by comparing with 0."""
        return type(self)(primitive.cast(self.expression, core_dtype(dtype)))

    def __bool__(self) -> NoReturn:
        raise located(
            StagingError("a Rep has no truth value: it stands for a value that is not there yet"),
            "choose with `cond(condition, lambda: a, lambda: b)`, element by element with `select`, repeat "
            "with `while_loop`; Python's if, while, and, or, not run while staging",
        )

    def __iter__(self: _Rep) -> Iterator[_Rep]:
        if isinstance(self.spec, TupleSpec):
            return iter(self.unpack())
        raise located(
            StagingError(
                "a Rep cannot be iterated: how many rows it has is not known while staging"
            ),
            "`x.map(fn)`, `x.fold(init, fn)`, `x.scan(init, fn)` go along the leading axis, `fori` over a "
            "range; a Python loop over `x[i]` needs a known range",
        )

    def __contains__(self, _: object) -> NoReturn:
        raise located(
            StagingError("a Rep cannot be searched: its elements are not known while staging"),
            "`(x == value).any()`",
        )

    def __len__(self) -> int:
        if isinstance(self.spec, TupleSpec):
            return len(self.spec.elements)
        raise _not_there("len()")

    def __float__(self) -> NoReturn:
        raise _not_there("float()")

    def __int__(self) -> NoReturn:
        raise _not_there("int()")

    def __index__(self) -> NoReturn:
        raise _not_there("an index or range()")

    def __complex__(self) -> NoReturn:
        raise _not_there("complex()")

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        raise _not_there("a NumPy function")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """`array + rep` is a ufunc of NumPy; others have no value to work on."""
        operator = _REFLECTED.get(ufunc) if method == "__call__" and not options else None
        if operator is None or isinstance(inputs[0], Rep):
            raise _not_there(f"np.{ufunc.__name__}")
        return getattr(inputs[1], operator)(inputs[0])

    def __array_function__(self, function: Any, *_: Any) -> NoReturn:
        raise _not_there(f"np.{function.__name__}")

    def __repr__(self) -> str:
        return f"<Rep of {self.spec.words}>"


_UNKNOWN = ("shape", "size", "numpy", "item", "tolist")
"""What only a concrete tensor has."""
_REFLECTED: Mapping[Any, str] = {
    np.add: "__radd__",
    np.subtract: "__rsub__",
    np.multiply: "__rmul__",
    np.true_divide: "__rtruediv__",
    np.floor_divide: "__rfloordiv__",
    np.remainder: "__rmod__",
    np.power: "__rpow__",
    np.matmul: "__rmatmul__",
    np.bitwise_and: "__rand__",
    np.bitwise_or: "__ror__",
    np.bitwise_xor: "__rxor__",
    np.less: "__gt__",
    np.less_equal: "__ge__",
    np.greater: "__lt__",
    np.greater_equal: "__le__",
    np.equal: "__eq__",
    np.not_equal: "__ne__",
}
"""What an operator of NumPy with an array on its left asks the Rep on its right."""


def is_number(value: object) -> TypeIs[float]:
    """Whether it is a Python number, which has no element type of its own."""
    return isinstance(value, bool | int | float)


def is_operand(value: object) -> bool:
    """Whether an operator takes it: a Rep, a number, a concrete tensor or array."""
    return (
        isinstance(value, Rep | np.ndarray | np.generic)
        or is_number(value)
        or hasattr(value, "_array")
    )


def _index_expression(key: Any) -> Expression | None:
    return key.expression if isinstance(key, Rep) else None


def _not_there(what: str) -> StagingError:
    error = StagingError(f"{what} needs a value, and a Rep has none while staging")
    located(error, "keep computing with Reps, or call the staged function with concrete tensors")
    return error
