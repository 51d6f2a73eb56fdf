"""Choices and questions, rearrangements and makers, differences and interpolation."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .expressions import (
    COMMON_FIRST,
    COMMON_LAST,
    MAX_LISTED,
    RANKS,
    any_axis,
    axis_literal,
    commas,
    define_for_tensors,
    dims,
    ints,
    masked,
    method,
    operands,
    plain,
    refused,
    rep,
    tensor,
    title,
    tup,
    without,
)
from .functions import binary, by_sizes
from .sorting import indices, square_or_not

_CLOSE = "rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False"
_ENDS = "left: {0} | None = None, right: {0} | None = None"


def everyday() -> Iterator[str]:
    yield title("choices, rearrangements, differences")
    yield from _choices()
    yield from _questions()
    yield from _axes()
    yield from _pieces()
    yield from _makers()
    yield from _differences()


def _choices() -> Iterator[str]:
    yield from define_for_tensors("where", _where())
    yield from define_for_tensors("clip", clips())
    yield from define_for_tensors("round", ["(a: Rep[NT], decimals: int = 0) -> Rep[NT]"])
    ends = "nan: float = 0.0, posinf: float | None = None, neginf: float | None = None"
    yield from define_for_tensors(
        "nan_to_num", [f"(x: Rep[NT], copy: bool = True, {ends}) -> Rep[NT]"]
    )


def clips() -> Iterator[str]:
    """Of `clip`, whose bounds have two names; the second ones by keyword only, also behind one by position."""
    yield from bounded("a_min", "a_max")
    yield from bounded("*, min", "max")
    yield from bounded("a_min", "*, max")


def bounded(low: str, high: str) -> Iterator[str]:
    """By bounds of these names: at least one tensor, never in a union, as unions of type variables overlap with all."""
    bounds = [
        f"{low}: {{0}}, {high}: {{0}}",
        f"{low}: {{0}}, {high}: {{1}} = None",
        f"*, {high}: {{0}}",
    ]
    if "*" in high:
        del bounds[1:]
    elif "*" not in low:
        bounds.append(f"{low}: {{1}}, {high}: {{0}}")
    family = {"FT": "float", "ZT": "int"}
    rows = [
        f"(a: {large}, {bound.format(small, 'None')}) -> {large}"
        for r in RANKS[1:]
        for large in [rep(tensor(r, None, "N"))]
        for small in operands(r, "N")
        for bound in bounds
    ]
    likes = [f"(a: Rep[NT], {bound.format('Rep[NT]', 'None')}) -> Rep[NT]" for bound in bounds]
    mixed = [
        f"(a: Rep[{like}], {low}: {one}, {high}: {other}) -> Rep[{like}]"
        for like, number in family.items()
        for one, other in ((number, f"Rep[{like}]"), (f"Rep[{like}]", number))
    ]
    default = "" if "*" in high else " | None = None"
    numbers = [
        f"(a: Rep[{like}], {low}: {number}{default}, {high}: {number}{default}) -> Rep[{like}]"
        for like, number in family.items()
    ]
    yield from [*rows, *likes, *mixed, *numbers]


def _where() -> Iterator[str]:
    """As `select`; besides the condition, or one of the choices, may be of lower rank; y may be left out, or both."""
    yield f"(condition: Rep[M], x: Rep[Y], y: {refused('TensorsLikeTheMask')}, /) -> Rep[Y]"
    yield from by_sizes("condition", "x", "y")
    for r in COMMON_LAST:
        value = rep(tensor(r))
        for mask in [f"condition: {one}" for one in _masks(r)]:
            for dtype, literal in (("F", "float"), ("Z", "int")):
                number = rep(tensor(r, None, dtype))
                yield f"({mask}, x: {number}, y: {literal}, /) -> {number}"
                yield f"({mask}, x: {literal}, y: {number}, /) -> {number}"
            yield f"({mask}, x: {value}, y: {value}, /) -> {value}"
        for row in operands(r):
            mask = f"condition: {rep(plain(r, 'boolean'))}"
            yield f"({mask}, x: {row}, y: {value}, /) -> {value}"
            yield f"({mask}, x: {value}, y: {row}, /) -> {value}"
    yield from _where_or_zero()
    yield from indices("condition", ", /")


def _masks(r: int) -> list[str]:
    """The conditions for a choice of that rank."""
    own = [rep(tensor(r, None, "boolean"))] if r <= MAX_LISTED else []
    return [*operands(r, "boolean"), *own]


def _where_or_zero() -> Iterator[str]:
    """Of a condition and one choice; the one of lower rank has the last axes of the other."""
    yield "(condition: bool, x: Rep[TT], /) -> Rep[TT]"
    for r in COMMON_LAST:
        for mask in _masks(r):
            yield f"(condition: {mask}, x: {rep(tensor(r))}, /) -> {rep(tensor(r))}"
        for row in operands(r):
            mask = f"condition: {rep(tensor(r, None, 'boolean'))}"
            yield f"({mask}, x: {row}, /) -> {rep(tensor(r))}"


def _questions() -> Iterator[str]:
    for name in ("isnan", "isfinite", "isinf", "signbit"):
        yield from define_for_tensors(name, [f"(x: View[{masked('Number', 'M')}], /) -> Rep[M]"])
    yield from define_for_tensors("logical_not", [f"(x: View[{masked('Any', 'M')}], /) -> Rep[M]"])
    yield "class LogicalFunction:"
    pairs = [
        (f"x: {one}, y: {other}", r)
        for r in RANKS
        for x, y in [(rep(tensor(r)), rep(tensor(r, None, "E")))]
        for one, other in [
            (x, y),
            *((x, low) for low in operands(r, "E")),
            *((low, y) for low in operands(r)),
        ]
    ]
    yield from method(
        "__call__", [f"(self, {pair}, /) -> {rep(tensor(r, None, 'boolean'))}" for pair, r in pairs]
    )
    for name in ("logical_and", "logical_or", "logical_xor"):
        yield f"{name}: LogicalFunction"
    close = [
        f"({_renamed(pair)}, {_CLOSE}) -> {rep(tensor(r, None, 'boolean'))}" for pair, r in pairs
    ]
    numbers = [
        f"(a: {rep(tensor(r, None, 'F'))}, b: float, {_CLOSE}) -> {rep(tensor(r, None, 'boolean'))}"
        for r in RANKS
    ]
    yield from define_for_tensors("isclose", [*close, *numbers])
    floats = "View[AnyTensor[F]]"
    scalar = "Rep[Tensor0D[boolean]]"
    yield from define_for_tensors(
        "allclose", [f"(a: {floats}, b: {floats} | float, {_CLOSE}) -> {scalar}"]
    )
    shifts = [signature.replace("(x:", "(self, x:", 1) for signature in binary("Integer")]
    bits = "(self, x: Rep[LT], y: Rep[LT], /) -> Rep[LT]"
    yield "class ShiftFunction:"
    yield from method("__call__", shifts)
    yield "class BitwiseFunction:"
    yield from method("__call__", [shifts[0], bits, *shifts[1:]])
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
        yield f"{name}: BitwiseFunction"
    for name in ("left_shift", "right_shift"):
        yield f"{name}: ShiftFunction"
    yield from define_for_tensors(
        "bitwise_not", [f"(x: Rep[{like}], /) -> Rep[{like}]" for like in ("ZT", "LT")]
    )


def _renamed(pair: str) -> str:
    """Two operands of any dtypes as two of floats, called as NumPy does those of `isclose`."""
    names = {"x:": "a:", "y:": "b:", "[D": "[F", "[E": "[F"}
    return re.sub("|".join(map(re.escape, names)), lambda found: names[found[0]], pair)


def _axes() -> Iterator[str]:
    yield from define_for_tensors(
        "expand_dims",
        [
            f"(a: {rep(tensor(r))}, axis: {axis_literal(i, r + 1)})"
            f" -> {rep(tensor(r + 1, [*dims(r)[:i], 'Any', *dims(r)[i:]]))}"
            for r in RANKS[:-1]
            for i in range(r + 1)
        ]
        + [
            f"(a: {rep(plain(r))}, axis: tuple[int, int]) -> {rep(plain(r + 2))}"
            for r in RANKS[:-2]
        ],
    )
    yield from define_for_tensors("squeeze", squeezes("a: {}"))
    yield from define_for_tensors("ravel", ["(a: View[AnyTensor[D]]) -> Rep[Tensor1D[D]]"])
    yield from define_for_tensors("swapaxes", swaps("axis1: int, axis2: int"))
    several = "int | tuple[int, ...]"
    yield from define_for_tensors("moveaxis", swaps(f"source: {several}, destination: {several}"))


def swaps(axes: str) -> Iterator[str]:
    """Of `swapaxes` and `moveaxis`."""
    for r in COMMON_FIRST[:-1]:
        yield f"(a: {rep(plain(r))}, {axes}) -> {rep(plain(r))}"


def squeezes(me: str) -> Iterator[str]:
    """Without an axis; without all axes of extent 1 the rank is not known to checkers."""
    for r in RANKS[1:]:
        for i in range(r):
            one = me.format(rep(tensor(r)))
            yield f"({one}, axis: {axis_literal(i, r)}) -> {rep(without(r, i))}"
    for r in RANKS[2:]:
        one = me.format(rep(plain(r)))
        yield f"({one}, axis: tuple[int, int]) -> {rep(plain(r - 2))}"
    yield f"({me.format('View[AnyTensor[Any]]')}, axis: None = None) -> Any"


def _pieces() -> Iterator[str]:
    yield from define_for_tensors("array_split", splits())
    yield from define_for_tensors("repeat", repeats())
    yield from define_for_tensors(
        "tile",
        [f"(A: {rep(plain(r))}, reps: int) -> {rep(plain(max(r, 1)))}" for r in RANKS]
        + [
            f"(A: {rep(plain(r))}, reps: {ints(k)}) -> {rep(plain(max(r, k)))}"
            for r in RANKS
            for k in RANKS[1:]
        ],
    )
    shifts, axes = "Shift | tuple[Shift, ...]", "int | tuple[int, ...]"
    yield "Shift: TypeAlias = int | View[Tensor0D[i32]] | View[Tensor0D[i64]] | View[Tensor0D[i8]]"
    yield from define_for_tensors(
        "roll", [f"(a: Rep[Y], shift: {shifts}, axis: {axes} | None = None) -> Rep[Y]"]
    )


def repeats() -> Iterator[str]:
    """Of `repeat`: staged numbers take the extent of the result."""
    staged = "repeats: Rep[Tensor0D[Z]] | Rep[Tensor1D[Z]]"
    for number, total in (
        ("repeats: int | Sequence[int]", "*, total_repeat_length: int | None = None"),
        (staged, "*, total_repeat_length: int"),
    ):
        yield f"(a: View[AnyTensor[D]], {number}, axis: None = None, {total}) -> Rep[Tensor1D[D]]"
        for r in COMMON_FIRST[:-1]:
            yield f"(a: {rep(plain(r))}, {number}, axis: {any_axis(r)}, {total}) -> {rep(plain(r))}"


def splits() -> Iterator[str]:
    """The pieces of a tensor along an axis."""
    for r in COMMON_FIRST[:-1]:
        pieces = f"tuple[{rep(plain(r))}, ...]"
        yield f"(ary: {rep(plain(r))}, indices_or_sections: int | Sequence[int], axis: int = 0) -> {pieces}"


def _makers() -> Iterator[str]:
    yield from define_for_tensors("eye", square_or_not())
    end, made = "Rep[Tensor0D[F]]", "Rep[Tensor1D[F]]"
    options = "num: int = 50, endpoint: bool = True, *"
    yield from define_for_tensors(
        "linspace",
        [
            f"(start: float, stop: float, {options}, dtype: None = None) -> Rep[Tensor1D[f32]]",
            f"(start: {end}, stop: {end} | float, {options}, dtype: None = None) -> {made}",
            f"(start: float, stop: {end}, {options}, dtype: None = None) -> {made}",
            f"(start: View[Tensor0D[Any]] | float, stop: View[Tensor0D[Any]] | float, {options}, dtype: type[F])"
            f" -> {made}",
        ],
    )
    yield from define_for_tensors(
        "meshgrid",
        [
            f"({commas(f'x{k}: Rep[Tensor1D[D]]' for k in range(n))}, /, *, indexing: Literal['xy', 'ij'] = 'xy')"
            f" -> {tup([rep(plain(n))] * n)}"
            for n in RANKS[1:]
        ],
    )


def _differences() -> Iterator[str]:
    yield from define_for_tensors(
        "diff",
        [
            f"(a: {rep(plain(r))}, n: int = 1, axis: {any_axis(r)} = -1, {ends}) -> {rep(plain(r))}"
            for r in COMMON_FIRST[:-1]
            for end in [f"float | Rep[Tensor0D[D]] | {rep(plain(r))} | None = None"]
            for ends in [f"prepend: {end}, append: {end}"]
        ],
    )
    yield from define_for_tensors("trapezoid", _trapezoid())
    points = "xp: Rep[Tensor1D[F]], fp: Rep[Tensor1D[F]]"
    ends = _ENDS.format("Rep[Tensor0D[F]] | float")
    yield from define_for_tensors(
        "interp",
        [
            f"(x: {rep(tensor(r, None, 'F'))}, {points}, {ends}, period: float | None = None)"
            f" -> {rep(tensor(r, None, 'F'))}"
            for r in RANKS
        ],
    )
    numbers = [
        f"(p: Sequence[{number}], x: Rep[{like}]) -> Rep[{like}]"
        for number, like in (("float", "FT"), ("int", "ZT"))
    ]
    vectors = [
        f"(p: Rep[Tensor1D[N]], x: {rep(tensor(r, None, 'N'))}) -> {rep(tensor(r, None, 'N'))}"
        for r in RANKS
    ]
    yield from define_for_tensors("polyval", [*vectors, *numbers])


def _trapezoid() -> Iterator[str]:
    for r in COMMON_FIRST[:-1]:
        points = f"x: {rep(plain(1, 'F'))} | {rep(plain(r, 'F'))} | None = None"
        for i in reversed(range(r)):
            axis = f"axis: {axis_literal(i, r)}"
            last = f"{axis} = -1" if i == r - 1 else f"*, {axis}"
            yield (
                f"(y: {rep(tensor(r, None, 'F'))}, {points}, dx: float = 1.0, {last})"
                f" -> {rep(without(r, i, dtype='F'))}"
            )
