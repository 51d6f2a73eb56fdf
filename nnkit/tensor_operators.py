"""What concrete tensors can do by themselves: operators, subscripts, iteration, and Python's view of their numbers.

Operators are those of the language: an op checks the operands as while staging, with the same messages, and computes by
its reference semantics in NumPy.  Element types are not promoted; Python numbers take that of the tensor beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NoReturn, TypeAlias, cast

import numpy as np

from .arrays import adopt, is_array, stored_dtype
from .core.errors import DTypeError, IndexOutOfRangeError, NNKitError, RankError, ShapeError
from .core.ir import Op
from .core.ops import (
    Abs,
    Add,
    And,
    BitwiseAnd,
    BitwiseOr,
    BitwiseXor,
    DataTypeCast,
    Divide,
    Dot,
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
    Subtract,
)
from .core.ops.forms import Elementwise, check_kind
from .core.types import BOOL, Array, DType, Kind, TensorType
from .staging.primitive import checked_rank, kinds_of, literal, located
from .staging.rep_base import REFLECTED, is_number, list_error
from .staging.spec import is_tuple
from .staging.tracebacks import public_methods

_Operator: TypeAlias = Callable[["TensorOperators", object], Any]


def _operator(op: Elementwise, *, is_reflected: bool = False) -> _Operator:
    """The method for an operator of Python; of its right operand, if it is reflected."""
    return _method(op, kinds_of(op), is_reflected)


def _method(op: Op, kinds: Sequence[Kind] | None = None, is_reflected: bool = False) -> _Operator:
    """The method for an op of two operands, of elements of these kinds, or of those that it says itself."""

    def operate(self: TensorOperators, other: object, /) -> Any:
        if isinstance(other, list):
            raise list_error(cast("object", other))
        if not _is_operand(other):
            return NotImplemented
        pair = self._array, _stored(other, self)
        return self._computed(op, *(reversed(pair) if is_reflected else pair), kinds=kinds)

    return operate


def _by_dtype(
    logical: Elementwise, bitwise: Elementwise, *, is_reflected: bool = False
) -> _Operator:
    """The method for an operator of Python that works on truth values, and on the bits of integers."""
    on_truth = _operator(logical, is_reflected=is_reflected)
    on_bits = _operator(bitwise, is_reflected=is_reflected)

    def operate(self: TensorOperators, other: object, /) -> Any:
        is_logical = stored_dtype(self._array) is BOOL
        return (on_truth if is_logical else on_bits)(self, other)

    return operate


def _power(self: TensorOperators, other: object, /) -> Any:
    """`self ** other`; integers to a negative number would be fractions."""
    dtype = stored_dtype(self._array)
    if dtype.is_integer and is_number(other) and other < 0:
        raise located(
            DTypeError(f"integers have no negative powers: {dtype} ** {other}"), "`x.cast(f64)`"
        )
    return _operator(Power())(self, other)


@public_methods
class TensorOperators:
    """Operators of a tensor, whose `_array` is the storage array."""

    __slots__ = ()
    _array: Array

    @staticmethod
    def _wrapped(array: Array) -> Any:
        """The tensor around a storage array."""
        raise NotImplementedError("of AnyTensor")

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
    __matmul__: ClassVar[_Operator] = _method(Dot())
    __rmatmul__: ClassVar[_Operator] = _method(Dot(), is_reflected=True)
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
    __eq__: ClassVar[_Operator] = _operator(Equal())
    __ne__: ClassVar[_Operator] = _operator(NotEqual())
    __hash__ = object.__hash__

    def __neg__(self) -> Any:
        return self._computed(Negate(), self._array)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return self._computed(Abs(), self._array)

    def __divmod__(self, other: object) -> tuple[Any, Any]:
        x: Any = self
        return x // other, x % other

    def __rdivmod__(self, other: object) -> tuple[Any, Any]:
        x: Any = self
        return other // x, other % x

    def __invert__(self) -> Any:
        is_integer = stored_dtype(self._array).is_integer
        return self ^ -1 if is_integer else self._computed(Not(), self._array)

    def cast(self, dtype: Any, /) -> Any:
        """Each element converted: to integers towards zero, to boolean by comparing with 0."""
        core = getattr(dtype, "core", None)
        if not isinstance(core, DType):
            raise located(
                DTypeError(f"an element type is wanted, not {dtype!r}"), "for example f32"
            )
        return (
            self
            if core is stored_dtype(self._array)
            else self._computed(DataTypeCast(core), self._array)
        )

    def _computed(self, op: Any, *stored: Array, kinds: Sequence[Kind] | None = None) -> Any:
        """What an op makes of storage arrays.  Raises: as while staging."""
        dtypes = [stored_dtype(one) for one in stored]
        given = [TensorType(one.shape, dtype) for one, dtype in zip(stored, dtypes, strict=True)]
        try:
            if kinds is not None:
                check_kind(op.name, given[0], kinds)
            made: TensorType = op.infer(*given)
        except NNKitError as error:
            of_floats = (
                _OF_FLOATS.get(cast("type[Op]", type(op)), "") if given[0].dtype.is_float else ""
            )
            raise located(error, of_floats or _help_of(error, given)) from None
        checked_rank(made.rank)
        values = op.evaluate(*(dtype.load(one) for one, dtype in zip(stored, dtypes, strict=True)))
        return self._wrapped(made.dtype.store(np.ascontiguousarray(values)).reshape(made.shape))

    def __getitem__(self, key: Any, /) -> Any:
        """Elements and slices, as NumPy's; contiguous ones share memory."""
        array = self._array
        try:
            found: Any = np.asarray(array[_index(key)])
        except IndexError as error:
            if "only integers" in str(error):
                raise located(_no_subscript(key)) from None
            raise located(
                IndexOutOfRangeError(f"{error}: the tensor has shape {list(array.shape)}")
            ) from None
        checked_rank(found.ndim)
        return self._wrapped(found if found.flags.c_contiguous else found.copy())

    def __setitem__(self, key: object, value: object, /) -> NoReturn:
        raise located(
            DTypeError("a tensor is immutable: elements cannot be set"),
            "change a NumPy array, np.array(tensor), and make a tensor of it; `x.at[i].set(v)` in a staged function",
        )

    def __len__(self) -> int:
        if not self._array.shape:
            raise located(RankError("a scalar has no length"))
        return int(self._array.shape[0])

    def __iter__(self) -> Iterator[Any]:
        if not self._array.shape:
            raise located(
                RankError("a scalar has no elements to iterate over"), "float(x) is its value"
            )
        return (self[k] for k in range(len(self)))

    def __contains__(self, value: object) -> bool:
        return bool(np.any(np.asarray(self) == np.asarray(value)))

    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers; of a scalar its value."""
        return np.asarray(self).tolist()

    def item(self) -> Any:
        """The only element as a Python number.  Raises: ShapeError when there are more, or none."""
        if self._array.size != 1:
            raise located(
                ShapeError(
                    f"a tensor of shape {list(self._array.shape)} has not one element but {self._array.size}"
                ),
                "reduce it in a staged function, or tolist()",
            )
        return np.asarray(self).item()

    def __format__(self, text: str) -> str:
        """A scalar as its number, `f"{loss:.3f}"`; other tensors with each element so."""
        if not text:
            return str(self)
        values = np.asarray(self)
        if not values.ndim:
            return format(values.item(), text)

        def shown(one: Any) -> str:
            return format(one.item(), text)

        return np.array2string(values, separator=", ", formatter={"all": shown})

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """`array + tensor` is the operator; other ufuncs of NumPy compute with the array, and return one."""
        name = REFLECTED.get(ufunc) if method == "__call__" and not options else None
        if name is not None and len(inputs) == 2 and not isinstance(inputs[0], TensorOperators):
            return getattr(inputs[1], name)(inputs[0])
        if any(isinstance(one, TensorOperators) for one in options.get("out", ())):
            raise located(
                DTypeError("a tensor is immutable: NumPy cannot write to it"), "leave out `out=`"
            )
        arrays = [np.asarray(one) if isinstance(one, TensorOperators) else one for one in inputs]
        return getattr(ufunc, method)(*arrays, **options)


_OF_FLOATS: Mapping[type[Op], str] = {FloorDivide: "`np.floor(x / y)` of floats"}
"""What to write for an op that is of integers alone."""


def _is_operand(value: object) -> bool:
    return isinstance(value, TensorOperators | np.ndarray | np.generic) or is_number(value)


def _stored(value: object, beside: TensorOperators) -> Array:
    """The storage array of an operand; a number takes the element type of the tensor beside it."""
    if isinstance(value, TensorOperators):
        return value._array
    if is_number(value):
        constant: Any = literal(value, stored_dtype(beside._array)).operation
        return cast("Array", constant.array)
    assert is_array(value)
    try:
        return adopt(value, name="tensor", rank=np.ndim(cast("Any", value)), dtype=None, copy=False)
    except NNKitError as error:
        raise located(error) from None


def _index(key: Any) -> Any:
    """A subscript with arrays in place of tensors."""
    if is_tuple(key):
        return tuple(map(_index, key))
    return np.asarray(key) if isinstance(key, TensorOperators) else key


def _no_subscript(key: Any) -> DTypeError:
    """The error for a subscript of NumPy's that is none, as `x[1.0]` and `x["a"]`."""
    wrong = next((one for one in (key if is_tuple(key) else (key,)) if not _may_index(one)), key)
    return DTypeError(
        f"a subscript is an int, a slice, `...`, None or integers or booleans, not {wrong!r}"
    )


def _may_index(one: object) -> bool:
    if one is None or one is ... or isinstance(one, slice):
        return True
    return bool(np.asarray(one).dtype.kind in "iub" or not np.size(cast("Any", one)))


def _help_of(error: NNKitError, given: list[TensorType]) -> str:
    if not isinstance(error, DTypeError):
        return ""
    one = len({type.dtype for type in given}) == 1
    return f"cast {'it' if one else 'one of them'}, `x.cast(dtype)`"
