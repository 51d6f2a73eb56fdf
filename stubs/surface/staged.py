"""Rep: operators, shapes and reductions."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from .application import calls, descriptor, subscripts
from .control import traversals
from .custom_rules import rule_methods
from .everyday import squeezes
from .expressions import (
    COMMON_FIRST,
    LITERALS,
    MAX_LISTED,
    MAX_RANK,
    MAX_RESULTS,
    RANKS,
    VARIABLES,
    any_axis,
    axis_literal,
    batched,
    commas,
    define_for_tensors,
    dims,
    for_either,
    ints,
    lifted,
    masked,
    method,
    names,
    plain,
    refused,
    rep,
    template,
    tensor,
    title,
    tup,
    without,
    without_data,
)
from .methods import methods, transposed_matrices

OPERATORS = {
    "add": "Number",
    "sub": "Number",
    "mul": "Number",
    "truediv": "Float",
    "floordiv": "Integer",
    "mod": "Integer",
    "pow": "Number",
    "and": "Integer",
    "or": "Integer",
    "xor": "Integer",
    "lshift": "Integer",
    "rshift": "Integer",
}
LOGIC = ("and", "or", "xor")
"""Operators that also take truth values."""
OF_STRUCTS = ("add", "sub", "mul", "truediv", "pow")
"""Operators that also go through a struct, leaf by leaf."""
REDUCTIONS = {
    "sum": "Number",
    "prod": "Number",
    "max": "Number",
    "min": "Number",
    "mean": "Float",
    "var": "Float",
    "std": "Float",
    "all": "Logical",
    "any": "Logical",
}
CLASSES = {"sum": "Sum", "mean": "Sum", "var": "Spread", "std": "Spread"}
"""Of the object that a reduction is, where it has more options than others."""
ACCUMULATE = ", accumulate: type[Float] | None = None"
DDOF = ", ddof: float = 0"


def _set() -> Iterator[str]:
    """A field of a struct, replaced.  The first overload for mypy is a refusal."""
    lens, content = "(self: Rep[S], field: Lens[S, Any, R]", refused("ContentOfTheField")
    fitting = f"{lens}, value: R, /) -> Rep[S]"
    mypy = [f"{lens}, value: {content}, /) -> Rep[S]", fitting]
    yield from for_either(method("set", mypy), method("set", [fitting]), indent="    ")


def staged_class() -> Iterator[str]:
    yield title("staged values")
    yield "class ShapeOfRep:   # the extents: ints, as many as axes"
    ranked = [
        f"(self, x: {rep(tensor(r))}, owner: Any = None, /) -> {ints(r)}" for r in COMMON_FIRST
    ]
    yield from method("__get__", ranked)
    yield from transposed_matrices()
    yield from subscripts()
    yield from _places_by_rank()
    yield from template("rep")
    yield from calls()
    yield from rule_methods()
    yield from _set()
    yield from method(
        "unpack",
        # the first is for results that a checker knows nothing of, as those of `vmap` with `in_axes`
        ["(self: Rep[Never]) -> Any"]
        + [
            f"(self: {rep(tup(names('A', n)))}) -> {tup(names('A', n, 'Rep[{}]'))}"
            for n in range(2, MAX_RESULTS + 1)
        ]
        + ["(self: Rep[tuple[R, ...]]) -> tuple[Rep[R], ...]"],
    )
    yield from _arithmetic()
    yield "    @property"
    yield "    def at(self) -> At[X]: ..."
    yield from _comparisons()
    yield from _matmul()
    yield from _reductions()
    yield from _shapes()
    yield from methods()
    yield from traversals()


def reductions() -> Iterator[str]:
    """The one table of all reductions: as a method's object, and as a function's."""
    yield "class Reduce(Generic[X]):"
    yield from method("__call__", _reduce_cases("self: Reduce[{}]", "D"))
    yield "class Sum(Generic[X]):"
    yield from method("__call__", _reduce_cases("self: Sum[{}]", "D", ACCUMULATE))
    yield "class Spread(Generic[X]):"
    yield from method("__call__", _reduce_cases("self: Spread[{}]", "D", DDOF))
    for name, (dtype, wanted, more) in REDUCTION_FUNCTIONS.items():
        yield f"class {name}:"
        refusal = (
            f"(self, a: {refused(wanted)}, axis: int | tuple[int, ...], *,"
            f" keepdims: bool = False{more}) -> Any"
        )
        result = "i64" if name == "Count" else dtype
        cases = _reduce_cases("self, a: Rep[{}]", dtype, more, result)
        yield from method("__call__", without_data([refusal, *cases]))


REDUCTION_FUNCTIONS = {
    "ReduceFloat": ("F", "FloatsWithThatAxis", ""),
    "SpreadFloat": ("F", "FloatsWithThatAxis", DDOF),
    "ReduceNumber": ("N", "NumbersWithThatAxis", ""),
    "SumNumber": ("N", "NumbersWithThatAxis", ACCUMULATE),
    "ReduceLogical": ("boolean", "TruthValuesWithThatAxis", ""),
    "Count": ("D", "TensorWithThatAxis", ""),
}
"""The classes of reductions as functions: the elements that they take, how a refusal calls them, further options."""


def indexing() -> Iterator[str]:
    """k subscripts take ELEM k times; each slice among them puts one unnamed dimension back (UP)."""
    for k in range(1, MAX_RANK + 1):
        for slices in range(k + 1):
            me = "Y"
            for _ in range(slices):
                me = lifted(me)
            patterns = [
                ["slice[Any, Any, Any]" if place in at else "Index" for place in range(k)]
                for at in itertools.combinations(range(k), slices)
            ]
            index = " | ".join(p[0] if k == 1 else tup(p) for p in patterns)
            yield f"(self: View[{batched(me, k)}], i: {index}, /) -> Rep[Y]"


def _arithmetic() -> Iterator[str]:
    """The right operand has the same type, is smaller, or is a Python number.

    `__radd__` also takes the case where the left operand has the lower rank.
    """
    yield from for_either(_operators_by_row(), _operators_beside(), indent="    ")
    yield from _signs()


def _operators_by_row() -> Iterator[str]:
    """For mypy, to which a union of operands does not tell what `tanh(v)` in `m + tanh(v)` is."""
    for operator, family in OPERATORS.items():
        same = f"(self: View[AnyTensor[{family}]], o: Rep[X], /) -> Rep[X]"
        row = VARIABLES[family]
        other = [
            f"(self: View[{batched(row, depth, family)}], o: Rep[{row}], /) -> Rep[X]"
            for depth in RANKS[1:]
        ]
        other += _with_literals(family)
        operands = ("Rep[X]", "float", "Rep[Tensor0D[Any]]") if operator in OF_STRUCTS else ()
        struct = [f"(self: View[Struct], o: {operand}, /) -> Rep[X]" for operand in operands]
        yield from method(f"__{operator}__", [*_logical(operator), same, *other, *struct])
        yield from method(f"__r{operator}__", [*other, *struct[1:]])


def _operators_beside() -> Iterator[str]:
    """For pyright, which tries every overload where a type has an `Any`, as one without names of dimensions has."""
    for operator, family in OPERATORS.items():
        tensors = f"(self: View[Beside[{family}, OPERAND]], o: View[OPERAND], /) -> Rep[X]"
        other = [tensors, *_with_literals(family)]
        kind = f"AnyTensor[{family}]"
        if operator in OF_STRUCTS:
            kind += " | Struct"
            other.append("(self: View[Struct], o: float | Rep[Tensor0D[Any]], /) -> Rep[X]")
        same = f"(self: View[{kind}], o: Rep[X], /) -> Rep[X]"
        yield from method(f"__{operator}__", [*_logical(operator), same, *other])
        yield from method(f"__r{operator}__", other)


def _with_literals(family: str) -> list[str]:
    return [
        f"(self: View[AnyTensor[{literal_family}]], o: {literal}, /) -> Rep[X]"
        for literal_family, literal in LITERALS.items()
        if family in (literal_family, "Number")
    ]


def _logical(operator: str) -> list[str]:
    signature = "(self: View[AnyTensor[Logical]], o: Rep[X], /) -> Rep[X]"
    return [signature] if operator in LOGIC else []


def _signs() -> Iterator[str]:
    for operator, family in {
        "pos": "Number",
        "neg": "Number",
        "abs": "Number",
        "invert": "Logical | Integer",
    }.items():
        structs = " | Struct" if family == "Number" else ""
        yield from method(
            f"__{operator}__", [f"(self: View[AnyTensor[{family}]{structs}]) -> Rep[X]"]
        )


def _comparisons() -> Iterator[str]:
    others = [("Any", "Rep[X]"), ("D", "Rep[Tensor0D[D]]"), *LITERALS.items()]
    for operator in ("lt", "le", "gt", "ge", "eq", "ne"):
        yield from method(
            f"__{operator}__",
            [
                f"(self: View[{masked(dtype, 'M')}], o: {other}, /) -> Rep[M]"
                for dtype, other in others
            ],
            note="  # type: ignore[override, misc]",
        )


def _matmul() -> Iterator[str]:
    yield from method("__matmul__", [f"(self: {a}, o: {b}, /) -> {c}" for a, b, c in _products()])


def matrix_product() -> Iterator[str]:
    """`matmul`, which is `@` with a type to accumulate in."""
    yield from define_for_tensors(
        "matmul", [f"(x: {a}, y: {b}, /, *{ACCUMULATE}) -> {c}" for a, b, c in _products()]
    )


def _products() -> Iterator[tuple[str, str, str]]:
    """The types of the operands and of the result, for all ranks."""
    cases: list[tuple[list[str], list[str], list[str]]] = [
        (["K"], ["K"], []),
        (["K"], ["K", "J"], ["J"]),
        (["I", "K"], ["K"], ["I"]),
        (["I", "K"], ["K", "J"], ["I", "J"]),
    ]
    for lead in (["P"], ["P", "Q"], ["P", "Q", "U"]):
        cases += [
            ([*lead, "I", "K"], ["K"], [*lead, "I"]),
            ([*lead, "I", "K"], ["K", "J"], [*lead, "I", "J"]),
            ([*lead, "I", "K"], [*lead, "K", "J"], [*lead, "I", "J"]),
        ]
    for axes in cases:
        left, right, result = (rep(tensor(len(names), names, "N")) for names in axes)
        yield left, right, result


def _reductions() -> Iterator[str]:
    for name, family in REDUCTIONS.items():
        yield "    @property"
        kind = CLASSES.get(name, "Reduce")
        yield f"    def {name}(self: View[AnyTensor[{family}]]) -> {kind}[X]: ..."
    yield "    argmax: Places"
    yield "    argmin: Places"
    yield from method("ravel", ["(self: View[AnyTensor[D]]) -> Rep[Tensor1D[D]]"])


_DROPPED = "axis: None = None, *, keepdims: Literal[False] = False"


def places() -> Iterator[str]:
    """`argmax` and `argmin` as functions."""
    for name in ("argmax", "argmin"):
        yield from define_for_tensors(name, _places("a: {}"))


def _places(me: str) -> Iterator[str]:
    """The index along an axis, or among all elements."""
    whole = me.format("View[AnyTensor[Number]]")
    yield f"({whole}, {_DROPPED}) -> Rep[Tensor0D[i64]]"
    for r in RANKS:
        one = me.format(rep(tensor(r, None, "N")))
        yield from (f"({one}, {options}) -> {made}" for options, made in _places_along(r))


def _places_along(r: int) -> Iterator[tuple[str, str]]:
    """The options and the result for a tensor of that rank, but for the index among all elements."""
    drop, keep = "*, keepdims: Literal[False] = False", "*, keepdims: Literal[True]"
    if r > MAX_LISTED:
        yield f"axis: {any_axis(r)}, {drop}", rep(plain(r - 1, "i64"))
        yield f"axis: {any_axis(r)} | None = None, {keep}", rep(plain(r, "i64"))
        return
    for i in range(r):
        axis = f"axis: {axis_literal(i, r)}"
        kept = tensor(r, ["Any" if k == i else d for k, d in enumerate(dims(r))], "i64")
        yield f"{axis}, {drop}", rep(without(r, i, dtype="i64"))
        yield f"{axis}, {keep}", rep(kept)
    yield f"axis: None = None, {keep}", rep(plain(r, "i64"))


def _places_by_rank() -> Iterator[str]:
    """`argmax` and `argmin` as methods."""
    kinds: dict[str, str] = {}
    for r in COMMON_FIRST:
        generic = commas(["N", *dims(r)])
        yield f"class Places{r}D(Generic[{generic}]):"
        whole = f"(self, {_DROPPED}) -> Rep[Tensor0D[i64]]"
        along = [f"(self, {options}) -> {made}" for options, made in _places_along(r)]
        yield from method("__call__", [*along, whole])
        kinds[f"View[{tensor(r, None, 'N')}]"] = f"Places{r}D[{generic}]"
    yield from descriptor("Places", kinds, "the index of an extremum")


def _reduce_cases(me: str, dtype: str, more: str = "", result: str | None = None) -> Iterator[str]:
    """Over all axes, or any of them in increasing order; kept ones lose their name."""
    made = result or dtype
    keep, drop = f"*, keepdims: Literal[True]{more}", f"*, keepdims: Literal[False] = False{more}"
    for r in RANKS:
        whole = me.format(tensor(r, None, dtype))
        yield f"({whole}, axis: None = None, {drop}) -> {rep(tensor(0, None, made))}"
    for r in RANKS:
        if r > MAX_LISTED:
            yield from _unnamed_reductions(r, me, dtype, made, keep, drop)
            continue
        whole = me.format(tensor(r, None, dtype))
        yield f"({whole}, axis: None = None, {keep}) -> {rep(plain(r, made))}"
        for count in range(r, 0, -1):
            for axes in itertools.combinations(range(r), count):
                literals = [axis_literal(axis, r) for axis in axes]
                axis = tup(literals) if count > 1 else f"{literals[0]} | {tup(literals)}"
                kept = ["Any" if i in axes else d for i, d in enumerate(dims(r))]
                yield f"({whole}, axis: {axis}, {drop}) -> {rep(without(r, *axes, dtype=made))}"
                yield f"({whole}, axis: {axis}, {keep}) -> {rep(tensor(r, kept, made))}"


def _unnamed_reductions(
    r: int, me: str, dtype: str, made: str, keep: str, drop: str
) -> Iterator[str]:
    """As `_reduce_cases`, by the number of axes alone."""
    whole, kept = me.format(plain(r, dtype)), rep(plain(r, made))
    for count in range(r, 0, -1):
        several = tup([any_axis(r)] * count)
        axis = several if count > 1 else f"{any_axis(r)} | {several}"
        yield f"({whole}, axis: {axis}, {drop}) -> {rep(plain(r - count, made))}"
    some = f"{any_axis(r)} | tuple[{any_axis(r)}, ...] | None = None"
    yield f"({whole}, axis: {some}, {keep}) -> {kept}"


def _shapes() -> Iterator[str]:
    yield "    @property"
    yield "    def T(self: Rep[Tensor2D[D, I, J]]) -> Rep[Tensor2D[D, J, I]]: ..."
    yield from method("transpose", _transposes())
    yield from method(
        "reshape",
        [
            f"({commas(['self: View[AnyTensor[D]]', *given, '/'])}) -> {rep(plain(r))}"
            for r in RANKS
            for given in ([f"d{i}: int" for i in range(r)], [f"shape: {ints(r)}"])
        ],
    )
    yield from method(
        "named",
        [
            f"(self: {rep(plain(r))}, {commas(f'd{i}: type[{d}]' for i, d in enumerate(dims(r)))}, /)"
            f" -> {rep(tensor(r))}"
            for r in RANKS[1:]
        ],
    )
    yield from method(
        "expand_dims",
        [
            f"(self: {rep(tensor(r))}, axis: {axis_literal(i, r + 1)})"
            f" -> {rep(tensor(r + 1, [*dims(r)[:i], 'Any', *dims(r)[i:]]))}"
            for r in RANKS[:-1]
            for i in range(r + 1)
        ],
    )
    yield from method("squeeze", squeezes("self: {}"))
    for name in ("cast", "astype"):
        yield from method(
            name,
            [
                f"(self: {rep(tensor(r))}, dtype: type[E]) -> {rep(tensor(r, None, 'E'))}"
                for r in RANKS
            ],
        )


def _transposes() -> Iterator[str]:
    """Reversed axes without arguments, else the permutation written out."""
    for r in RANKS[2:]:
        yield f"(self: {rep(tensor(r))}) -> {rep(tensor(r, dims(r)[::-1]))}"
    for r in RANKS[MAX_LISTED + 1 :]:
        axes = commas(f"p{i}: int" for i in range(r))
        yield f"(self: {rep(plain(r))}, {axes}, /) -> {rep(plain(r))}"
        yield f"(self: {rep(plain(r))}, axes: {ints(r)}, /) -> {rep(plain(r))}"
    for r in RANKS[2 : MAX_LISTED + 1]:
        for permutation in itertools.permutations(range(r)):
            axes = commas(f"p{i}: Literal[{p}]" for i, p in enumerate(permutation))
            result = tensor(r, [dims(r)[p] for p in permutation])
            yield f"(self: {rep(tensor(r))}, {axes}, /) -> {rep(result)}"
            written = tup([f"Literal[{p}]" for p in permutation])
            yield f"(self: {rep(tensor(r))}, axes: {written}, /) -> {rep(result)}"
