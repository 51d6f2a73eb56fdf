"""Extents: the sizes of staged tensors, as symbolic integers that are constants once shapes are known.

1. `x.shape[k]` reads the shape of the expression of `x`.  Arithmetic makes trees of such: integers (`Extent`), real
   numbers (`Ratio`), truth values (`Condition`).
2. A node that needs them (`size_dependent`) has the tensors whose shapes they read as further operands, so that these
   are captured and passed along as all operands are.  At specialisation it computes the numbers from their types.
3. Where Python itself asks for a number, `known_shapes` finds the shapes of the call at hand.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final, NoReturn, TypeAlias, cast

import numpy as np

from ..core.errors import ShapeError, StagingError
from ..core.ir import Builder, Value
from ..core.types import Shape
from .expression import Expression, Parameter, ShapeDependent
from .known_shapes import is_traced_for_shapes, known_shape, shapes_in_sight
from .location import current_location, with_location
from .spec import Spec
from .tracing import make

ShapeLookup: TypeAlias = Callable[[Expression], Shape]
_Binary: TypeAlias = Callable[[Any, Any], Any]
_Method: TypeAlias = Callable[["SymbolicNumber", object], Any]


def _method(symbol: str, *, is_reflected: bool = False) -> _Method:
    """The method for an operator of Python; of its right operand, if it is reflected."""

    def operate(self: SymbolicNumber, other: object) -> Any:
        return self._with(symbol, other, is_reflected=is_reflected)

    return operate


class SymbolicNumber:
    """A number that is computed from shapes: a leaf of a `tensor`, or a function of operands."""

    __slots__ = ("_compute", "_operands", "_text", "tensors")
    example: ClassVar[Any]
    """A number of the kind, where no more than the kind is asked for."""

    def __init__(self, compute: Callable[..., Any], text: str, operands: tuple[Any, ...]) -> None:
        self._compute = compute
        self._text = text
        self._operands = operands
        self.tensors = tensors_in(operands)
        """Those whose shapes it reads."""

    def value(self, shape_of: ShapeLookup) -> Any:
        """The number, where tensors have these shapes.  Raises: ShapeError for a division by zero."""

        def compute(node: SymbolicNumber, operands: list[Any]) -> Any:
            return node._compute(*operands)

        try:
            return self._folded(shape_of, compute)
        except ZeroDivisionError:
            raise ShapeError(f"{self.words} divides by zero") from None

    def known(self, what: str) -> Any:
        """The number for the shapes of the call at hand, which `what` asks for.

        Raises: NeedsShapes to begin the trace again with these.
        """
        return self.value(lambda tensor: known_shape(tensor, self.words, what))

    def _folded(
        self,
        leaf: Callable[[Expression], Any],
        combine: Callable[[SymbolicNumber, list[Any]], Any],
    ) -> Any:
        """Combined from the leaves up, each node once, and without recursion: a loop may have made a deep tree."""
        done: dict[int, Any] = {}
        stack: list[SymbolicNumber] = [self]
        while stack:
            node = stack[-1]
            inside = [one for one in node._operands if isinstance(one, SymbolicNumber)]
            missing = [one for one in inside if id(one) not in done]
            if missing:
                stack.extend(missing)
                continue
            stack.pop()
            if id(node) not in done:
                operands = [_operand(one, done, leaf) for one in node._operands]
                done[id(node)] = combine(node, operands)
        return done[id(self)]

    def _with(self, symbol: str, other: object, *, is_reflected: bool = False) -> Any:
        """The operator `symbol` of Python on this and `other`."""
        function = _OPERATORS[symbol]
        if isinstance(other, np.ndarray):
            number: Any = self.known("an operator of NumPy")
            return function(other, number) if is_reflected else function(number, other)
        if not is_plain_number(other) and not isinstance(other, SymbolicNumber):
            return NotImplemented
        operands = (other, self) if is_reflected else (self, other)
        if symbol in _BITWISE and not _are_whole(operands):
            return NotImplemented
        return _KINDS.get(symbol, _number_kind)(operands, symbol)(function, symbol, operands)

    __add__: ClassVar[_Method] = _method("+")
    __radd__: ClassVar[_Method] = _method("+", is_reflected=True)
    __sub__: ClassVar[_Method] = _method("-")
    __rsub__: ClassVar[_Method] = _method("-", is_reflected=True)
    __truediv__: ClassVar[_Method] = _method("/")
    __rtruediv__: ClassVar[_Method] = _method("/", is_reflected=True)
    __floordiv__: ClassVar[_Method] = _method("//")
    __rfloordiv__: ClassVar[_Method] = _method("//", is_reflected=True)
    __mod__: ClassVar[_Method] = _method("%")
    __rmod__: ClassVar[_Method] = _method("%", is_reflected=True)
    __pow__: ClassVar[_Method] = _method("**")
    __rpow__: ClassVar[_Method] = _method("**", is_reflected=True)
    __and__: ClassVar[_Method] = _method("&")
    __rand__: ClassVar[_Method] = _method("&", is_reflected=True)
    __or__: ClassVar[_Method] = _method("|")
    __ror__: ClassVar[_Method] = _method("|", is_reflected=True)
    __xor__: ClassVar[_Method] = _method("^")
    __rxor__: ClassVar[_Method] = _method("^", is_reflected=True)
    __lshift__: ClassVar[_Method] = _method("<<")
    __rlshift__: ClassVar[_Method] = _method("<<", is_reflected=True)
    __rshift__: ClassVar[_Method] = _method(">>")
    __rrshift__: ClassVar[_Method] = _method(">>", is_reflected=True)

    def __mul__(self, other: object) -> Any:
        if isinstance(other, list | tuple | str | bytes):
            return cast("Any", other) * self.known("a sequence of that length")
        return self._with("*", other)

    def __rmul__(self, other: object) -> Any:
        if isinstance(other, list | tuple | str | bytes):
            return self * other
        return self._with("*", other, is_reflected=True)

    def __divmod__(self, other: object) -> Any:
        return self // cast("Any", other), self % cast("Any", other)

    def __rdivmod__(self, other: object) -> Any:
        return cast("Any", other) // self, cast("Any", other) % self

    def __lt__(self, other: object) -> Any:
        return self._with("<", other)

    def __le__(self, other: object) -> Any:
        return self._with("<=", other)

    def __gt__(self, other: object) -> Any:
        return self._with(">", other)

    def __ge__(self, other: object) -> Any:
        return self._with(">=", other)

    def __eq__(self, other: object) -> Any:
        return self._with("==", other)

    def __ne__(self, other: object) -> Any:
        return self._with("!=", other)

    def __hash__(self) -> int:
        return hash(self.known("a hash, as for a key of a dict,"))

    def __neg__(self) -> Any:
        return 0 - self

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return type(self)(abs, "abs", (self,))

    def __bool__(self) -> bool:
        return bool(self.known("a Python `if`, `while`, `and`, `or` or `not`"))

    def __call__(self, *_: object) -> NoReturn:
        """As PyTorch's `x.size(0)`."""
        raise with_location(
            StagingError("a size is a number, not a function"),
            current_location(),
            "`x.shape` has all sizes, `x.shape[0]` is that of axis 0, and `x.size` counts the elements",
        )

    def __int__(self) -> int:
        return int(self.known("an int of Python"))

    def __float__(self) -> float:
        return float(self.known("a float of Python"))

    def __complex__(self) -> complex:
        return complex(float(self))

    def __ceil__(self) -> Any:
        return Extent(math.ceil, "ceil", (self,))

    def __floor__(self) -> Any:
        return Extent(math.floor, "floor", (self,))

    def __trunc__(self) -> Any:
        return Extent(math.trunc, "trunc", (self,))

    def __round__(self, digits: int | None = None) -> Any:
        return (
            Extent(round, "round", (self,))
            if digits is None
            else Ratio(round, "round", (self, digits))
        )

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self.known("a function of NumPy"), dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """Functions and operators of NumPy compute with the number."""

        def number(size: SymbolicNumber) -> Any:
            return size.known(f"np.{ufunc.__name__}")

        return getattr(ufunc, method)(*(resolved(one, number) for one in inputs), **options)

    def __copy__(self) -> SymbolicNumber:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> SymbolicNumber:
        return self

    def __format__(self, how: str) -> str:
        return format(self.known("a format"), how) if how else repr(self)

    @property
    def words(self) -> str:
        """How it is computed, as `x.shape[0] + 1`."""
        shown: str = self._folded(_name, _in_words)
        return shown

    def __repr__(self) -> str:
        """The number where the function is traced for known shapes, or a tensor has no name to speak of its size by."""
        shown = self.words
        is_wanted = "…" in shown or is_traced_for_shapes()
        shapes = shapes_in_sight(self.tensors) if is_wanted else None
        if shapes is None:
            return shown
        found = dict(zip(self.tensors, shapes, strict=True))
        return repr(self.value(lambda tensor: found[tensor]))


class Extent(SymbolicNumber):
    """A symbolic integer: a size, or what is computed from sizes by `+ - * // %`."""

    __slots__ = ()
    example = 1

    def __invert__(self) -> Extent:
        return Extent(operator.invert, "~", (self,))

    def __index__(self) -> int:
        return int(self.known("an int of Python, as range() and lists do,"))


class Ratio(SymbolicNumber):
    """A symbolic real number, such as `1 / n`."""

    __slots__ = ()
    example = 0.5


class Condition(SymbolicNumber):
    """A comparison of sizes as a value; Python's `if` on it has the function traced for each shapes."""

    __slots__ = ()
    example = True

    def __bool__(self) -> bool:
        if self._text in _OF_SAME and self._operands[0] is self._operands[1]:
            return _OF_SAME[self._text]
        return super().__bool__()

    def __invert__(self) -> Condition:
        return Condition(operator.not_, "not", (self,))


Size: TypeAlias = "int | Extent"
"""What functions take as a size."""
ShapeLike: TypeAlias = "Sequence[int | Extent] | int | Extent"
"""What functions take as a shape: sizes, or the one of a vector."""

_PYTHON: Any = operator
_OPERATORS: Final[Mapping[str, _Binary]] = {
    "+": _PYTHON.add,
    "-": _PYTHON.sub,
    "*": _PYTHON.mul,
    "/": _PYTHON.truediv,
    "//": _PYTHON.floordiv,
    "%": _PYTHON.mod,
    "**": _PYTHON.pow,
    "&": _PYTHON.and_,
    "|": _PYTHON.or_,
    "^": _PYTHON.xor,
    "<<": _PYTHON.lshift,
    ">>": _PYTHON.rshift,
    "<": _PYTHON.lt,
    "<=": _PYTHON.le,
    ">": _PYTHON.gt,
    ">=": _PYTHON.ge,
    "==": _PYTHON.eq,
    "!=": _PYTHON.ne,
}
_BITWISE: Final = frozenset(["&", "|", "^", "<<", ">>"])
"""Operators of integers alone."""
_OF_SAME: Final[Mapping[str, bool]] = {"==": True, "<=": True, ">=": True, "!=": False}
"""What comparisons of a number with itself are."""


def _number_kind(operands: tuple[Any, ...], symbol: str) -> type[SymbolicNumber]:
    """An integer where all operands are, except of what may be a fraction."""
    whole = _are_whole(operands)
    if symbol == "/" or (
        symbol == "**" and not (isinstance(operands[1], int) and operands[1] >= 0)
    ):
        whole = False
    return Extent if whole else Ratio


def _are_whole(operands: tuple[Any, ...]) -> bool:
    return all(isinstance(one, Extent | Condition | int | np.integer) for one in operands)


def _logical_kind(operands: tuple[Any, ...], symbol: str) -> type[SymbolicNumber]:
    """Of comparisons, and of `& | ^`, which are of bits where an operand is an integer."""
    of_bits = symbol in _BITWISE and not all(isinstance(one, Condition | bool) for one in operands)
    return Extent if of_bits else Condition


_KINDS: Final[Mapping[str, Callable[[tuple[Any, ...], str], type[SymbolicNumber]]]] = dict.fromkeys(
    ["<", "<=", ">", ">=", "==", "!=", "&", "|", "^"], _logical_kind
)


def larger(x: Any, y: Any) -> Any:
    """The larger one of two numbers, any of which may be symbolic; a NaN if there is one."""
    return _chosen("max", _PYTHON.ge, x, y)


def smaller(x: Any, y: Any) -> Any:
    """The smaller one of two numbers, any of which may be symbolic; a NaN if there is one."""
    return _chosen("min", _PYTHON.le, x, y)


def share(whole: Any, count: Any, what: str) -> Any:
    """`whole // count`, any of which may be symbolic.  Raises: ShapeError where that leaves a rest."""

    def divide(whole: Any, count: Any) -> Any:
        if whole % count:
            raise ShapeError(
                f"{what} of width {whole} in {count} parts: {count} does not divide {whole}"
            )
        return whole // count

    if not is_symbolic((whole, count)):
        return divide(whole, count)
    return Extent(divide, "//", (whole, count))


def _chosen(name: str, is_first: _Binary, x: Any, y: Any) -> Any:
    def choose(x: Any, y: Any) -> Any:
        return x if is_first(x, y) or x != x else y

    if not is_symbolic((x, y)):
        return choose(x, y)
    return _number_kind((x, y), name)(choose, name, (x, y))


def is_plain_number(value: object) -> bool:
    """Whether it is a number of Python or NumPy."""
    return isinstance(value, bool | int | float | np.number)


def extents_of(tensor: Expression, rank: int) -> tuple[Extent, ...]:
    """The shape of a tensor of that rank, symbolically."""
    return tuple(Extent(operator.getitem, "shape", (tensor, axis)) for axis in range(rank))


def product(numbers: Sequence[Any]) -> Any:
    """Of ints and extents: how many elements a tensor of this shape has."""
    return math.prod(numbers[1:], start=numbers[0]) if numbers else 1


def is_symbolic(sizes: object) -> bool:
    """Whether there is a symbolic number in it: see `resolved`."""
    if isinstance(sizes, SymbolicNumber):
        return True
    if isinstance(sizes, slice):
        return any(map(is_symbolic, _ends(sizes)))
    return isinstance(sizes, tuple | list) and any(map(is_symbolic, cast("Sequence[Any]", sizes)))


def tensors_in(sizes: object) -> tuple[Expression, ...]:
    """The tensors whose shapes symbolic numbers in tuples, lists and slices read."""
    found: dict[Expression, None] = {}

    def visit(one: object) -> None:
        if isinstance(one, SymbolicNumber):
            found.update(dict.fromkeys(one.tensors))
        elif isinstance(one, Expression):
            found[one] = None
        elif isinstance(one, slice):
            visit(_ends(one))
        elif isinstance(one, tuple | list):
            for inner in cast("Sequence[Any]", one):
                visit(inner)

    visit(sizes)
    return tuple(found)


def resolved(sizes: Any, value_of: Callable[[SymbolicNumber], Any]) -> Any:
    """The same tuples, lists and slices with a value for each symbolic number in them."""
    if isinstance(sizes, SymbolicNumber):
        return value_of(sizes)
    if isinstance(sizes, slice):
        return slice(*(resolved(end, value_of) for end in _ends(sizes)))
    if isinstance(sizes, tuple | list):
        parts = [resolved(one, value_of) for one in cast("Sequence[Any]", sizes)]
        return parts if isinstance(sizes, list) else tuple(parts)
    return sizes


def examples(sizes: Any) -> Any:
    """A number of the kind of each symbolic one."""
    return resolved(sizes, lambda number: number.example)


def size_dependent(
    name: str, sizes: Any, build: Callable[..., Value], operands: Sequence[Expression], type: Spec
) -> Expression:
    """Instructions that `build(builder, sizes, *values)` emits once the numbers in `sizes` are known."""
    tensors = tensors_in(sizes)
    count = len(operands)

    def build_sized(b: Builder, *values: Value) -> Value:
        shapes = {
            tensor: value.tensor.shape
            for tensor, value in zip(tensors, values[count:], strict=True)
        }
        known = resolved(sizes, lambda number: number.value(shapes.__getitem__))
        return build(b, known, *values[:count])

    return make(ShapeDependent(name, build_sized), (*operands, *tensors), type)


def _ends(part: Any) -> tuple[Any, Any, Any]:
    """Of a slice, which has no types."""
    return part.start, part.stop, part.step


def _operand(one: Any, done: Mapping[int, Any], leaf: Callable[[Expression], Any]) -> Any:
    if isinstance(one, SymbolicNumber):
        return done[id(one)]
    return leaf(one) if isinstance(one, Expression) else one


_LONGEST_TEXT: Final = 200
"""Characters of a number in a message; one that is used twice in each of many steps would fill memory."""


def _name(tensor: Expression) -> str:
    operation = tensor.operation
    return operation.name if isinstance(operation, Parameter) else "(…)"


def _in_words(node: SymbolicNumber, operands: list[Any]) -> str:
    symbol = node._text
    if symbol == "shape":
        return f"{operands[0]}.shape[{operands[1]}]"
    if symbol not in _OPERATORS:
        return f"{symbol}({', '.join(map(str, operands))})"
    left, right = (
        f"({shown})" if isinstance(one, SymbolicNumber) and one._text in _OPERATORS else str(shown)
        for one, shown in zip(node._operands, operands, strict=True)
    )
    text = f"{left} {symbol} {right}"
    return text if len(text) < _LONGEST_TEXT else "…"
