"""Concrete values: dense tensors of rank 0 to 5, their element types, and named dimensions.

A tensor is a thin immutable wrapper around one ndarray.  It asserts rank and element type where a
value enters the typed world.  Its operators and subscripts (`tensor_operators`) compute with NumPy, by the rules of the
language; fast computing is what staged functions do.  Every NumPy function reads a tensor through `__array__`.

How the classes relate:
    AnyTensor                      any tensor
      Ranked                       one whose rank is known
        Tensor0D (Scalar)
        Batched                    one with a leading axis
          Tensor1D ... Tensor5D

`Tensor2D[f32, Batch, In]` is an annotation; `Tensor2D[f32](array)` makes a tensor and checks the
element type.  The element types are classes as well, so that type checkers can tell them apart, and
calling one makes a scalar: `f32(0.1)`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import FrozenInstanceError
from types import GenericAlias
from typing import Any, ClassVar, NoReturn, TypeVar, cast

import numpy as np

from . import missing_names
from .arrays import adopt, copied, from_numbers, is_array, stored_dtype
from .core import types
from .core.errors import DTypeError, NNKitError, RankError
from .donated_arrays import DonatedArray
from .html import tensor_html
from .staging.extents import SymbolicNumber
from .staging.primitive import located
from .staging.tracebacks import public, public_methods
from .tensor_operators import TensorOperators

_Tensor = TypeVar("_Tensor", bound="AnyTensor")
subscript: Any = cast("Any", classmethod(GenericAlias))
"""What makes a class generic for annotations only."""


class DType:
    """An element type.  Calling it with a number makes a scalar of that type.

    Raises: DTypeError for a number it cannot hold.

    >>> f32(0.5)
    Tensor0D(0.5, f32)
    """

    core: ClassVar[types.DType]
    """The same type as the compiler knows it."""

    @public
    def __new__(cls, x: object, /) -> Tensor0D:  # type: ignore[misc]  # a call makes a tensor
        return Tensor0D(_number(x, cls), cls)


class Number(DType):
    """An element type with arithmetic."""


class Float(Number):
    """A floating-point element type."""


class Integer(Number):
    """A signed integer element type."""


class Logical(DType):
    """The element type of truth values."""


class Numpy(DType):
    """An element type that NumPy has too, so that `.numpy()` can keep it."""

    __class_getitem__ = subscript


class _NoDType:
    """What `np.zeros(3, dtype=bf16)` asks for."""

    @public
    def __get__(self, _: object, __: type[DType]) -> NoReturn:
        raise DTypeError(
            "NumPy has no bf16\n  help: compute in float32, and make a tensor of lists, Tensor1D(values.tolist(), bf16)"
        )


class f16(Float, Numpy):
    """IEEE half precision: 11 significant bits, up to 65504."""

    core = types.F16
    dtype = np.dtype(np.float16)


class bf16(Float):
    """The upper half of an f32: 8 significant bits, the range of f32.

    NumPy lacks it: a bf16 tensor holds bit patterns as uint16, and `np.asarray` gives f32 values.
    """

    core = types.BF16
    dtype = _NoDType()


class f32(Float, Numpy):
    """IEEE single precision: 24 significant bits."""

    core = types.F32
    dtype = np.dtype(np.float32)


class f64(Float, Numpy):
    """IEEE double precision: 53 significant bits."""

    core = types.F64
    dtype = np.dtype(np.float64)


class i8(Integer, Numpy):
    """Integers from -128 to 127."""

    core = types.I8
    dtype = np.dtype(np.int8)


class i32(Integer, Numpy):
    """Integers of 32 bits."""

    core = types.I32
    dtype = np.dtype(np.int32)


class i64(Integer, Numpy):
    """Integers of 64 bits."""

    core = types.I64
    dtype = np.dtype(np.int64)


class boolean(Logical, Numpy):
    """True or False, one byte each."""

    core = types.BOOL
    dtype = np.dtype(np.bool_)


class Dim(int):
    """A named dimension for the type checker: `class Batch(Dim): ...`; its size is not part of it."""


class _Annotation(GenericAlias):
    """`Tensor2D[f32, Batch]`: an annotation, and a constructor that checks the element type."""

    @public
    def __call__(
        self, x: object, dtype: type[DType] | None = None, /, *, copy: bool | None = None
    ) -> Any:
        declared = next(iter(self.__args__), None)
        if not (isinstance(declared, type) and issubclass(declared, DType)):
            declared = dtype
        if dtype not in (None, declared):
            raise DTypeError(f"{self} cannot be made with the element type {dtype}")
        return cast("type[AnyTensor]", self.__origin__)(x, declared, copy=copy)


@public_methods
class AnyTensor(TensorOperators):
    """A dense tensor of any rank and element type.

    Its value does not change (docs/decisions/0053): an array that can be written to is copied, and what it gives out is
    read-only.  `==` compares element by element, as in NumPy; so the hash is that of the object.
    """

    __slots__ = ("_array",)
    _array: types.Array
    rank: ClassVar[int]

    def __init__(
        self, x: object, dtype: type[DType] | None = None, /, *, copy: bool | None = None
    ) -> None:
        """The tensor of an array's values, or of nested lists of numbers, rounded to `dtype`.

        An array is copied if anybody may write to it (`copy=True`: always).  With `copy=False` its memory is shared,
        if it is contiguous and in native byte order: who writes to it then changes the tensor.
        Raises: RankError, DTypeError when the array is of another rank or element type (nothing is
        converted), ShapeError for ragged lists.
        """
        name = type(self).__name__
        if not hasattr(self, "rank"):
            raise RankError(f"{name} has no rank of its own: call one of Tensor0D to Tensor5D")
        core = None if dtype is None else _core(dtype)
        is_given = not isinstance(x, AnyTensor)
        if isinstance(x, AnyTensor):
            core = core or stored_dtype(x._array)
            x = x._array
        if is_array(x):
            array = adopt(x, name=name, rank=self.rank, dtype=core, copy=is_given and copy)
        elif core is None:
            raise DTypeError(
                f"cannot make a {name} of Python numbers without an element type\n"
                f"  help: say which, {name}(..., f32)"
            )
        else:
            array = from_numbers(x, name=name, rank=self.rank, dtype=core)
        object.__setattr__(self, "_array", array)

    def __getattr__(self, name: str) -> NoReturn:
        words = f"a {type(self).__name__} has no {name!r}"
        found = "" if name.startswith("_") else missing_names.of_tensor(name, dir(type(self)))
        raise AttributeError(missing_names.with_help(words, found))

    @property
    def dtype(self) -> type[DType]:
        """The element type."""
        return DTYPES[stored_dtype(self._array)]

    @property
    def shape(self) -> tuple[int, ...]:
        """The extent of each axis."""
        return self._array.shape

    @property
    def ndim(self) -> int:
        """The rank."""
        return self._array.ndim

    @property
    def size(self) -> int:
        """Number of elements."""
        return self._array.size

    @property
    def is_donated(self) -> bool:
        """Whether it was donated to a call, which may have put a result in its place."""
        return isinstance(cast("object", self._array), DonatedArray)

    @staticmethod
    def _wrapped(array: types.Array) -> AnyTensor:
        return wrap(array)

    def numpy(self) -> types.Array:
        """A read-only array of the tensor's memory; `np.array(tensor)` is a copy to write to.

        Raises: DTypeError for bf16, which NumPy lacks: `np.asarray(tensor)` gives f32 values.
        """
        if stored_dtype(self._array) is types.BF16:
            raise DTypeError(
                "NumPy has no bf16\n  help: np.asarray(tensor) gives the values as float32"
            )
        return _read_only(self._array)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> types.Array:
        stored = stored_dtype(self._array)
        if copy is False and stored.numpy != stored.storage:
            raise ValueError("the values of a bf16 tensor cannot be seen without a copy")
        return np.array(stored.load(_read_only(self._array)), dtype=dtype, copy=copy)

    def __dlpack__(self, **options: Any) -> Any:
        self.numpy()  # refuses bf16
        return self._array.__dlpack__(**options)  # many readers refuse what is read-only

    def __dlpack_device__(self) -> tuple[int, int]:
        kind, index = self._array.__dlpack_device__()
        return int(kind), int(index)

    def __repr__(self) -> str:
        name, stored = type(self).__name__, cast("object", self._array)
        if isinstance(stored, DonatedArray):
            return f"{name}(donated to {stored.function} as {stored.argument})"
        values: types.Array = np.asarray(self)
        text = np.array2string(values, separator=", ", prefix=f"{name}(")
        elided = values.size > np.get_printoptions()["threshold"]
        shape = f", shape={self.shape}" if elided or not values.size else ""
        return f"{name}({text}, {self.dtype.__name__}{shape})"

    def _repr_html_(self) -> str:
        words = f"{type(self).__name__}[{self.dtype.__name__}] of shape {list(self.shape)}"
        return tensor_html(words, self)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise FrozenInstanceError(f"a tensor is immutable: cannot set {name!r}")

    def __delattr__(self, name: str) -> NoReturn:
        raise FrozenInstanceError(f"a tensor is immutable: cannot delete {name!r}")

    def __copy__(self: _Tensor) -> _Tensor:
        return self

    def __deepcopy__(self: _Tensor, memo: dict[int, Any]) -> _Tensor:
        return type(self)(copied(self._array), self.dtype, copy=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._array.view(), self.dtype)

    @public
    def __class_getitem__(cls, arguments: Any) -> GenericAlias:
        """An annotation: the element type, then names of dimensions."""
        alias = _Annotation(cls, arguments)
        names = len(alias.__args__) - 1
        if names > getattr(cls, "rank", 3):
            raise TypeError(f"{cls.__name__} has {cls.rank} dimensions to name, got {names}")
        return alias


class Ranked(AnyTensor):
    """A tensor whose rank is known."""

    __slots__ = ()


@public_methods
class Batched(Ranked):
    """A tensor with a leading axis: of rank 1 or more."""

    __slots__ = ()

    def __bool__(self) -> NoReturn:
        raise RankError(
            f"a tensor of shape {list(self.shape)} is neither true nor false\n"
            "  help: np.any(tensor) or np.all(tensor)"
        )

    def __float__(self) -> NoReturn:
        raise self._no_number("float()")

    def __int__(self) -> NoReturn:
        raise self._no_number("int()")

    def __complex__(self) -> NoReturn:
        raise self._no_number("complex()")

    def __round__(self, ndigits: int | None = None) -> NoReturn:
        help = f"`np.round(x{'' if ndigits is None else f', {ndigits}'})` rounds each element"
        raise located(RankError(f"round() takes a scalar, not a {self._words}"), help)

    def _no_number(self, what: str) -> NNKitError:
        help = "one element, `x[0]`, or all of them as Python numbers, `x.tolist()`"
        return located(RankError(f"{what} takes a scalar, not a {self._words}"), help)

    @property
    def _words(self) -> str:
        return f"tensor of shape {list(self.shape)}"


@public_methods
class Tensor0D(Ranked):
    """A scalar: `float(t)`, `int(t)` and `bool(t)` give its value."""

    __slots__ = ()
    rank = 0

    def __float__(self) -> float:
        return float(np.asarray(self).item())

    def __int__(self) -> int:
        return int(np.asarray(self).item())

    def __round__(self, ndigits: int | None = None) -> Any:
        return round(np.asarray(self).item(), ndigits)

    def __bool__(self) -> bool:
        return bool(np.asarray(self).item())

    def __index__(self) -> int:
        if not stored_dtype(self._array).is_integer:
            raise DTypeError(f"an index is an integer, not a scalar of {self.dtype.__name__}")
        return int(self)


class Tensor1D(Batched):
    """A vector.

    >>> Tensor1D(np.arange(3)).dtype.__name__
    'i64'
    """

    __slots__ = ()
    rank = 1


class Tensor2D(Batched):
    """A matrix.

    >>> Tensor2D([[0, 1]], f32)
    Tensor2D([[0., 1.]], f32)
    """

    __slots__ = ()
    rank = 2


class Tensor3D(Batched):
    """A tensor of rank 3."""

    __slots__ = ()
    rank = 3


class Tensor4D(Batched):
    """A tensor of rank 4."""

    __slots__ = ()
    rank = 4


class Tensor5D(Batched):
    """A tensor of rank 5, as a batch of volumes is."""

    __slots__ = ()
    rank = 5


Scalar = Tensor0D
Bool: Any = Tensor0D.__class_getitem__(boolean)

RANKED: tuple[type[Ranked], ...] = (Tensor0D, Tensor1D, Tensor2D, Tensor3D, Tensor4D, Tensor5D)
"""The class for each rank."""
DTYPES: Mapping[types.DType, type[DType]] = {
    dtype.core: dtype for dtype in (f16, bf16, f32, f64, i8, i32, i64, boolean)
}
"""The class for each element type of the compiler."""


def wrap(array: types.Array) -> AnyTensor:
    """The tensor around a storage array (contiguous, native, bf16 as uint16): nothing is checked."""
    cls = RANKED[array.ndim]
    tensor = cls.__new__(cls)
    object.__setattr__(tensor, "_array", array)
    return tensor


def _read_only(array: types.Array) -> types.Array:
    """The same memory, which cannot be written to by this array."""
    view = array.view()
    view.flags.writeable = False
    return view


def named(x: _Tensor, *dims: type[Dim]) -> _Tensor:
    """The same tensor; for the type checker its dimensions have names now.

    Raises: RankError when the number of names is not the rank.
    """
    if len(dims) != x.rank:
        raise RankError(f"a tensor of rank {x.rank} cannot take {len(dims)} names of dimensions")
    return x


def _core(dtype: object) -> types.DType:
    core = getattr(dtype, "core", None)
    if not isinstance(core, types.DType):
        raise DTypeError(f"an element type is one of {_NAMES}, got {dtype!r}")
    return core


def _number(x: object, dtype: type[DType]) -> object:
    """A Python or NumPy number, for its value only."""
    _core(dtype)
    if isinstance(x, SymbolicNumber):
        return cast("object", x.known("a concrete tensor"))
    return cast("object", x.item()) if isinstance(x, np.generic) else x


_NAMES = ", ".join(dtype.__name__ for dtype in DTYPES.values())
