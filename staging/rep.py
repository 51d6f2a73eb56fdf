"""Rep: a staged value, and the operators of the language on it.

A Rep stands for a value that is not there yet: operators on Reps build expressions.  Python numbers
take the element type of the tensor beside them; concrete tensors and arrays become constants.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import GenericAlias
from typing import Any, ClassVar, NoReturn, TypeAlias, cast

import numpy as np

from ..core.errors import NNKitError
from ..core.ops import (
    Abs,
    Add,
    And,
    BitwiseAnd,
    BitwiseOr,
    BitwiseXor,
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
    ShiftLeft,
    ShiftRight,
    SqueezeShape,
    Subtract,
)
from ..core.types import BOOL
from . import control_flow, primitive
from .aggregates import FieldLens, element_of, field_of, set_field
from .at import At, index_expression
from .expression import Expression, Trace, depends_on_parameters
from .extents import Extent, extents_of, product
from .indexing import without_new_axes
from .leafwise import is_aggregate, is_operand, staged_leafwise, staged_leafwise_unary
from .methods import Methods
from .primitive import INTEGERS_OF_NUMPY, dtype_error, rank_error, staging_error
from .rep_base import REFLECTED, constant_of, help_for_missing, is_number, rep_of, value_of
from .rep_text import described, instead_of, not_there, numpy_words, offered
from .scheduled_loops import scheduled
from .spec import StructSpec, TensorSpec, TupleSpec, as_tuple
from .stacked import Stacked, filter_rows
from .static import core_dtype, sizes_of
from .tracebacks import public_methods
from .updates import read

_Operator: TypeAlias = Callable[["Rep", object], "Rep"]


def _operator(op: Elementwise, *, is_reflected: bool = False) -> _Operator:
    """The method for an operator of Python; of its right operand, if it is reflected."""

    def operate(self: Rep, other: object, /) -> Rep:
        if not is_operand(other):
            return cast("Rep", NotImplemented)
        if is_aggregate(self) or is_aggregate(other):
            both = (other, self) if is_reflected else (self, other)
            return Rep(staged_leafwise(op, *both))
        pair = self.expression, self.lift(other)
        operands = reversed(pair) if is_reflected else pair
        help = "" if not isinstance(other, np.integer) else INTEGERS_OF_NUMPY
        return Rep(primitive.elementwise(op, *operands, help=help))

    return operate


def _by_dtype(
    logical: Elementwise, bitwise: Elementwise, *, is_reflected: bool = False
) -> _Operator:
    """The method for an operator of Python that works on truth values, and on the bits of integers."""

    def operate(self: Rep, other: object, /) -> Rep:
        spec = self.spec
        is_logical = not isinstance(spec, TensorSpec) or spec.dtype is BOOL
        return _operator(logical if is_logical else bitwise, is_reflected=is_reflected)(self, other)

    return operate


def _power(self: Rep, other: object, /) -> Rep:
    """`self ** other`; integers to a negative number would be fractions."""
    spec = self.spec
    if isinstance(spec, TensorSpec) and spec.dtype.is_integer and is_number(other) and other < 0:
        raise dtype_error(
            f"integers have no negative powers: {spec.words} ** {other}", "cast it, `x.cast(dtype)`"
        )
    return _operator(Power())(self, other)


@public_methods
class Rep(Methods):
    """A staged value; `Rep[Tensor2D[f32]]` is its annotation."""

    __slots__ = ()
    __class_getitem__: ClassVar[Any] = cast("Any", classmethod(GenericAlias))

    def lift(self, other: object, what: str = "an operator") -> Expression:
        """`other` as an operand beside this tensor, whose element type a Python number takes."""
        if isinstance(other, Rep):
            return other.expression
        if is_number(other):
            return primitive.literal(other, primitive.tensor_of(self.expression, what).dtype)
        return constant_of(other)

    def _unary(self, op: Elementwise) -> Rep:
        unary = staged_leafwise_unary if is_aggregate(self) else primitive.elementwise
        return Rep(unary(op, self.expression))

    __add__: ClassVar[_Operator] = _operator(Add())
    __radd__: ClassVar[_Operator] = _operator(Add(), is_reflected=True)
    __sub__: ClassVar[_Operator] = _operator(Subtract())
    __rsub__: ClassVar[_Operator] = _operator(Subtract(), is_reflected=True)
    __mul__: ClassVar[_Operator] = _operator(Multiply())
    __rmul__: ClassVar[_Operator] = _operator(Multiply(), is_reflected=True)
    __truediv__: ClassVar[_Operator] = _operator(Divide())
    __rtruediv__: ClassVar[_Operator] = _operator(Divide(), is_reflected=True)
    __floordiv__: ClassVar[_Operator] = _operator(FloorDivide())
    __rfloordiv__: ClassVar[_Operator] = _operator(FloorDivide(), is_reflected=True)
    __mod__: ClassVar[_Operator] = _operator(Modulo())
    __rmod__: ClassVar[_Operator] = _operator(Modulo(), is_reflected=True)
    __pow__: ClassVar[_Operator] = _power
    __rpow__: ClassVar[_Operator] = _operator(Power(), is_reflected=True)
    __and__: ClassVar[_Operator] = _by_dtype(And(), BitwiseAnd())
    __rand__: ClassVar[_Operator] = _by_dtype(And(), BitwiseAnd(), is_reflected=True)
    __or__: ClassVar[_Operator] = _by_dtype(Or(), BitwiseOr())
    __ror__: ClassVar[_Operator] = _by_dtype(Or(), BitwiseOr(), is_reflected=True)
    __xor__: ClassVar[_Operator] = _by_dtype(NotEqual(), BitwiseXor())
    __rxor__: ClassVar[_Operator] = _by_dtype(NotEqual(), BitwiseXor(), is_reflected=True)
    __lshift__: ClassVar[_Operator] = _operator(ShiftLeft())
    __rlshift__: ClassVar[_Operator] = _operator(ShiftLeft(), is_reflected=True)
    __rshift__: ClassVar[_Operator] = _operator(ShiftRight())
    __rrshift__: ClassVar[_Operator] = _operator(ShiftRight(), is_reflected=True)
    __lt__: ClassVar[_Operator] = _operator(LessThan())
    __le__: ClassVar[_Operator] = _operator(LessThanOrEqual())
    __gt__: ClassVar[_Operator] = _operator(GreaterThan())
    __ge__: ClassVar[_Operator] = _operator(GreaterThanOrEqual())
    __eq__: ClassVar[_Operator] = _operator(Equal())  # type: ignore[assignment]  # an expression
    __ne__: ClassVar[_Operator] = _operator(NotEqual())  # type: ignore[assignment]  # an expression
    __hash__ = object.__hash__

    def __matmul__(self, other: object, /) -> Rep:
        if not is_operand(other):
            return cast("Rep", NotImplemented)
        return Rep(primitive.dot(self.expression, self.lift(other)))

    def __rmatmul__(self, other: object, /) -> Rep:
        if not is_operand(other):
            return cast("Rep", NotImplemented)
        return Rep(primitive.dot(self.lift(other), self.expression))

    def __neg__(self) -> Rep:
        return self._unary(Negate())

    def __pos__(self) -> Rep:
        return self

    def __abs__(self) -> Rep:
        return self._unary(Abs())

    def __invert__(self) -> Rep:
        spec = self.spec
        is_integer = isinstance(spec, TensorSpec) and spec.dtype.is_integer
        return self ^ -1 if is_integer else self._unary(Not())

    def __copy__(self) -> Rep:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Rep:
        return self

    def __reduce__(self) -> NoReturn:
        raise staging_error("a Rep cannot be pickled: it means something only while staging")

    def __getitem__(self, key: Any, /) -> Rep:
        """A field of a struct, an element of a tuple, or elements and slices of a tensor."""
        match self.spec:
            case StructSpec():
                return Rep(field_of(self.expression, key))
            case TupleSpec():
                return Rep(element_of(self.expression, key))
            case spec if hasattr(key, "owner"):
                raise staging_error(f"{key!r} is a field of a struct, and this is a {spec.words}")
            case _:
                old, places = without_new_axes(key, self.expression)
                part = read(self.expression, old, index_expression)
                for place in places:
                    part = primitive.expand(part, place)
                return Rep(part)

    def __setitem__(self, key: object, value: object, /) -> NoReturn:
        raise staging_error(
            "a Rep cannot be written to: it is a value, as a number is",
            "`x.at[i].set(value)` makes a new one, `ref(x)` a mutable array; a struct has `set`",
        )

    def __delitem__(self, key: object, /) -> NoReturn:
        raise staging_error("elements of a Rep cannot be deleted", "take a slice")

    def __getattr__(self, name: str) -> Any:
        reason = ": it is not known while staging" if name in _UNKNOWN else ""
        if name in _OF_TENSORS:
            reason = f": it is a {self.spec.words}"
        words = f"a Rep has no {name!r}{reason}"
        if name.startswith("_"):
            raise AttributeError(words)
        shown = help_for_missing(self, name)
        match self.spec:
            case StructSpec(cls, fields) if name in dict(fields):
                words = f"a Rep has no {name!r}: fields of a staged struct are items"
                shown = f"`p[{cls.__name__}.{name}]` for p.{name}"
            case TensorSpec() if name == "tensor":
                words = "a Rep has no 'tensor': it is one; what scan has stacked has that"
                shown = "leave it out"
            case _:
                pass
        raise AttributeError(f"{words}\n  help: {shown}" if shown else words)

    @property
    def at(self) -> At:
        """Parts of the tensor: `x.at[i].set(v)` is the tensor with v in that place; also add, multiply, min, max."""
        primitive.tensor_of(self.expression, "at")
        return At(self)

    def set(self, lens: FieldLens, value: object, /) -> Rep:
        """The struct with one field replaced."""
        return Rep(set_field(self.expression, lens, value))

    def unpack(self) -> tuple[Rep, ...]:
        """The elements of a tuple."""
        if not isinstance(self.spec, TupleSpec):
            raise staging_error(f"only a tuple can be unpacked, not a {self.spec.words}")
        return tuple(self[position] for position in range(len(self.spec.elements)))

    def map(self, fn: Any, /) -> Rep:
        """`fn` of every element along the leading axis, stacked.

        An element is what `x[i]` is.  Of a tuple of tensors, as `zip` makes one, it is the tuple of their elements.
        """
        return Rep(control_flow.map_rows("map", self, fn))

    def fold(self, init: Any, fn: Any, /, *, checkpoint: Any = None) -> Any:
        """`fn(… fn(fn(init, x[0]), x[1]) …, x[n - 1])`; `init` is a Rep, or a tuple of Reps.

        `checkpoint` is that of `while_loop`.
        """
        return scheduled("fold", checkpoint, lambda: control_flow.fold(self, init, fn))

    def scan(self, init: Any, fn: Any, /, *, checkpoint: Any = None) -> tuple[Any, Stacked]:
        """As `fold`, of a function that returns the next carry and a tensor: the last carry, and all of these."""

        def loop() -> tuple[Any, Rep]:
            carry, stacked = control_flow.scan(self, init, fn)
            return carry, Rep(stacked)

        carry, stacked = scheduled("scan", checkpoint, loop)
        return carry, Stacked(stacked)

    def filter(self, predicate: Any, /) -> tuple[Rep, Rep]:
        """The elements of which `predicate` is true, then zeros up to the same extent; and how many there are."""
        kept, count = filter_rows(self, predicate)
        return Rep(kept), Rep(count)

    @property
    def T(self) -> Rep:
        """The transposed matrix."""
        rank = primitive.tensor_of(self.expression, "T").rank
        if rank != 2:
            raise rank_error(
                f"only a matrix has a T, not a {self.spec.words}", "transpose(1, 0, ...)"
            )
        return self.transpose(1, 0)

    def transpose(self, *permutation: Any) -> Rep:
        """Axis k of the result is axis `permutation[k]`, ints or a tuple of them; all axes reversed by default."""
        rank = primitive.tensor_of(self.expression, "transpose").rank
        axes = tuple(primitive.normalize_axis(axis, rank) for axis in _spread(permutation))
        return Rep(primitive.transpose(self.expression, axes or tuple(reversed(range(rank)))))

    def reshape(self, *dims: Any) -> Rep:
        """The same elements in row-major order, in a shape of sizes or a tuple of them; one extent may be −1."""
        return Rep(primitive.reshape(self.expression, sizes_of(_spread(dims), "reshape", least=-1)))

    @property
    def shape(self) -> tuple[Extent, ...]:
        """The extents of the tensor, as symbolic integers: they go wherever a size or a number goes."""
        rank = self.ndim
        return extents_of(self.expression, rank)

    @property
    def size(self) -> Any:
        """How many elements there are."""
        return product(self.shape)

    @property
    def ndim(self) -> int:
        """How many axes there are."""
        if self.is_function or not isinstance(self.spec, TensorSpec):
            raise AttributeError  # as `hasattr` expects it; in words by `__getattr__`
        return self.spec.rank

    def expand_dims(self, axis: int) -> Rep:
        """One new axis of extent 1."""
        rank = primitive.tensor_of(self.expression, "expand_dims").rank
        return Rep(primitive.expand(self.expression, primitive.normalize_axis(axis, rank + 1)))

    def squeeze(self, axis: Any = None) -> Rep:
        """Without these axes, which have extent 1; without all such by default, for which it is traced by shapes."""
        rank = primitive.tensor_of(self.expression, "squeeze").rank
        if axis is None:
            axis = tuple(k for k, extent in enumerate(self.shape) if int(extent) == 1)
        result = self.expression
        for position in reversed(primitive.normalize_axes(axis, rank)):
            result = primitive.apply(SqueezeShape(position), result)
        return Rep(result)

    def named(self, *dims: Any) -> Rep:
        """The same value; its dimensions have names for the type checker now."""
        rank = primitive.tensor_of(self.expression, "named").rank
        if len(dims) != rank:
            raise rank_error(f"a tensor of rank {rank} cannot take {len(dims)} names of dimensions")
        return self

    def cast(self, dtype: Any) -> Rep:
        """Each element converted: to integers towards zero, to boolean by comparing with 0."""
        return Rep(primitive.cast(self.expression, core_dtype(dtype)))

    def eval(self) -> Any:
        """The value, computed now.  Raises: StagingError when it depends on a parameter."""
        if depends_on_parameters(self.expression):
            raise staging_error(
                "this Rep has no value: it depends on parameters of a staged function",
                "return it from the function and call that with concrete tensors",
            )
        return value_of(Trace("eval", (), result=self.spec, output=self.expression))

    def __call__(self, *_: object, **__: object) -> Any:
        raise staging_error(f"a {self.spec.words} cannot be called: it is no staged function")

    def ir(self, *_: object, stage: str = "raw") -> str:
        """Only staged functions have IR."""
        raise self._no_function("IR")

    def llvm(self, *_: object) -> str:
        """Only staged functions have code."""
        raise self._no_function("code")

    def asm(self, *_: object) -> str:
        """Only staged functions have code."""
        raise self._no_function("code")

    def memory_analysis(self, *_: object) -> Any:
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
        return staging_error(f"a {self.spec.words} is no staged function: it has no {what}")

    def __format__(self, how: str, /) -> str:
        if how:
            raise staging_error(
                f"a Rep has no digits for {how!r}: it stands for a value that is not there yet",
                "`nk.print(x)` shows the value when the program runs",
            )
        return repr(self)

    def __bool__(self) -> bool:
        if self.is_function:  # it is there, as any function
            return True
        raise staging_error(
            "a Rep has no truth value: it stands for a value that is not there yet",
            "choose with `cond(condition, lambda: a, lambda: b)`, element by element with `select`, `maximum` "
            "or `minimum`, repeat with `while_loop`; Python's if, while, and, or, not run while staging: combine "
            "conditions with `&`, `|` and `~`, and assert with `nk.check(condition, message)`",
        )

    def __iter__(self) -> Iterator[Rep]:
        if isinstance(self.spec, TupleSpec):
            return iter(self.unpack())
        raise staging_error(
            "a Rep cannot be iterated: its rows are not there while staging",
            "`x.map(fn)`, `x.fold(init, fn)`, `x.scan(init, fn)` go along the leading axis, `fori` over a "
            "range, `x.sum()` and `x.max()` are Python's sum and max; `for i in range(len(x))` writes the body "
            "once for each row, and traces for each shapes",
        )

    def __contains__(self, _: object) -> NoReturn:
        raise staging_error(
            "a Rep cannot be searched: its elements are not known while staging",
            "`(x == value).any()`",
        )

    def __len__(self) -> int:
        if isinstance(self.spec, TupleSpec):
            return len(self.spec.elements)
        if not self.shape:
            raise rank_error("a scalar has no len()")
        return int(self.shape[0])

    def __float__(self) -> NoReturn:
        raise not_there("float()")

    def __int__(self) -> NoReturn:
        raise not_there("int()")

    def __index__(self) -> NoReturn:
        raise not_there("an index or range()")

    def __complex__(self) -> NoReturn:
        raise not_there("complex()")

    def __round__(self, _: object = None) -> NoReturn:
        raise not_there("round()", "`nk.round(x)`")

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        raise not_there("a NumPy function")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """`array + rep` is a ufunc of NumPy; others have no value to work on."""
        operator = REFLECTED.get(ufunc) if method == "__call__" and not options else None
        if operator is None or isinstance(inputs[0], Rep):
            raise not_there(f"np.{ufunc.__name__}", instead_of(self, ufunc.__name__))
        return getattr(inputs[1], operator)(inputs[0])

    def __array_function__(self, function: Any, *_: Any) -> NoReturn:
        raise not_there(numpy_words(function), instead_of(self, function.__name__))

    def __repr__(self) -> str:
        return described(self)

    def __dir__(self) -> list[str]:
        return offered(self)


@rep_of.register
def _rep_of(expression: Expression) -> Rep:
    return Rep(expression)


_UNKNOWN = ("numpy", "item", "tolist")
"""What only a concrete tensor has."""
_OF_TENSORS = ("shape", "size", "ndim")
"""What tuples and structs do not have."""


def _spread(given: tuple[Any, ...]) -> tuple[Any, ...]:
    """Several arguments, or the tuple that is the only one."""
    return as_tuple(given[0]) if len(given) == 1 else given
