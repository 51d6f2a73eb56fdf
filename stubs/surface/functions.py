"""The functions of staged tensors."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import get_args

from nnkit import elementwise

from .expressions import (
    COMMON_FIRST,
    COMMON_LAST,
    LITERALS,
    MAX_LISTED,
    MAX_RANK,
    MAX_RESULTS,
    NOT_DECORATED,
    OTHER_DIMENSIONS,
    PYTHON,
    RANKS,
    VARIABLES,
    any_axis,
    axis_literal,
    commas,
    define,
    define_for_tensors,
    dims,
    names,
    operands,
    plain,
    refused,
    rep,
    shape_of,
    template,
    tensor,
    title,
    tup,
    without,
)

OF_SIZES = ("(x: int, y: int, /) -> int", "(x: float, y: float, /) -> float")
"""What the larger and the smaller one are of two numbers; sizes are ints."""
FULL = "AShapeThenANumberThenAnElementType"


def functions() -> Iterator[str]:
    yield title("functions of staged tensors")
    yield from template("functions")
    for name, function in elementwise_functions().items():
        *operands, result = inspect.get_annotations(function).values()
        family = get_args(result)[0].__name__
        variable = VARIABLES[family]
        one = [f"(x: Rep[{variable}]) -> Rep[{variable}]"]
        sizes = OF_SIZES if name in ("maximum", "minimum") else ()
        yield from define_for_tensors(
            name, [*sizes, *binary(family)] if len(operands) == 2 else one
        )
    yield from define_for_tensors("select", _select())
    yield from _along_an_axis()
    yield from _joins()
    yield from _lookups()
    yield from _makers()
    yield from _losses()
    yield from define_for_tensors(
        "tup",
        [
            f"({commas(f'a{i}: Rep[A{i}]' for i in range(n))}, /) -> {rep(tup(names('A', n)))}"
            for n in range(2, MAX_RESULTS + 1)
        ],
    )


def elementwise_functions() -> dict[str, Callable[..., object]]:
    """Those that `nnkit.elementwise` defines."""
    return {
        name: value
        for name, value in vars(elementwise).items()
        if inspect.isfunction(value) and value.__module__ == elementwise.__name__ and name[0] != "_"
    }


def binary(family: str) -> Iterator[str]:
    """A function of a tensor and a Python number, or one of lower rank; two of one type."""
    yield f"(x: Rep[Y], y: {refused('TensorLikeTheFirst')}, /) -> Rep[Y]"
    for literal_family, literal in LITERALS.items():
        if family in (literal_family, "Number"):
            variable = VARIABLES[literal_family]
            yield f"(x: Rep[{variable}], y: {literal}, /) -> Rep[{variable}]"
            yield f"(x: {literal}, y: Rep[{variable}], /) -> Rep[{variable}]"
    dtype = {"Number": "N", "Float": "F", "Integer": "Z"}[family]
    for high in RANKS[1:]:
        large = rep(tensor(high, None, dtype))
        for small in operands(high, dtype):
            yield f"(x: {large}, y: {small}, /) -> {large}"
            yield f"(x: {small}, y: {large}, /) -> {large}"
    variable = VARIABLES[family]
    yield f"(x: Rep[{variable}], y: Rep[{variable}], /) -> Rep[{variable}]"


def by_sizes(condition: str, first: str, second: str, slash: str = ", /") -> Iterator[str]:
    """A choice by a comparison of sizes, a bool, between two of one type, or a number and a tensor."""
    yield f"({condition}: bool, {first}: Rep[TT], {second}: Rep[TT]{slash}) -> Rep[TT]"
    for family, literal in LITERALS.items():
        value = f"Rep[{VARIABLES[family]}]"
        yield f"({condition}: bool, {first}: {value}, {second}: {literal}{slash}) -> {value}"
        yield f"({condition}: bool, {first}: {literal}, {second}: {value}{slash}) -> {value}"


def _select() -> Iterator[str]:
    yield f"(pred: Rep[M], on_true: Rep[Y], on_false: {refused('TensorsLikeTheMask')}) -> Rep[Y]"
    yield from by_sizes("pred", "on_true", "on_false", "")
    for r in COMMON_LAST:
        mask = f"pred: {rep(tensor(r, None, 'boolean'))}"
        for dtype, literal in (("F", "float"), ("Z", "int")):
            value = rep(tensor(r, None, dtype))
            yield f"({mask}, on_true: {value}, on_false: {literal}) -> {value}"
            yield f"({mask}, on_true: {literal}, on_false: {value}) -> {value}"
        yield f"({mask}, on_true: {rep(tensor(r))}, on_false: {rep(tensor(r))}) -> {rep(tensor(r))}"


def _along_an_axis() -> Iterator[str]:
    """The result is like the argument; one default also serves functions generic in the rank."""
    for name, dtype in {"softmax": "F", "log_softmax": "F", "flip": "D"}.items():
        x, several = ("m", " | tuple[int, ...]") if name == "flip" else ("x", "")
        along = [
            f"({x}: {rep(tensor(r, None, dtype))}, axis: {any_axis(r)}{several}) -> {rep(tensor(r, None, dtype))}"
            for r in COMMON_FIRST[:-1]
        ]
        all_or_last = {
            "F": "(x: Rep[FT]) -> Rep[FT]",
            "D": "(m: Rep[TT], axis: None = None) -> Rep[TT]",
        }
        yield from define_for_tensors(name, [all_or_last[dtype], *along])


def _joins() -> Iterator[str]:
    wanted = refused("TensorsOfOneTypeWithThatAxis")
    # nothing fits it but an empty list
    refusal = "(arrays: Sequence[{wanted}]{slash}, axis: int = 0) -> AtLeastOneTensor"
    joined = [
        f"(arrays: Sequence[{rep(plain(r))}], /, axis: {any_axis(r)} = 0) -> {rep(plain(r))}"
        for r in COMMON_LAST[1:]
    ]
    stacked = [
        f"(arrays: Sequence[{rep(tensor(r))}], axis: {axis_literal(i, r + 1)}{'' if i else ' = 0'})"
        f" -> {rep(tensor(r + 1, [*dims(r)[:i], 'Any', *dims(r)[i:]]))}"
        for r in COMMON_LAST
        if r < MAX_RANK
        for i in reversed(range(r + 1))
    ]
    data = f"(arrays: Sequence[UnstagedData], /, *others: Any, {NOT_DECORATED}, **options: Any) -> Rep[Any]"
    yield from define("concat", [refusal.format(wanted=wanted, slash=", /"), *joined, data])
    yield from define("stack", [refusal.format(wanted=wanted, slash=""), *stacked, data])
    yield from define_for_tensors(
        "pad",
        [
            f"(array: {rep(plain(r, variable))}, pad_width: {widths}, mode: Literal['constant'] = 'constant', *,"
            f" constant_values: {number} = 0) -> {rep(plain(r, variable))}"
            for r in COMMON_FIRST[:-1]
            for widths in [_pad_widths(r)]
            for number, variable in (("float", "F"), ("int", "Z"))
        ],
    )


def _pad_widths(rank: int) -> str:
    """One number or pair for all axes, or a pair for each."""
    pairs = tup(["tuple[int, int]"] * rank)
    return f"int | tuple[int, int] | {pairs} | list[tuple[int, int]]"


def _lookups() -> Iterator[str]:
    yield from define_for_tensors("take", take())
    yield from define_for_tensors(
        "one_hot",
        [
            f"(x: {rep(tensor(r, None, 'Z'))}, num_classes: int, {options})"
            f" -> {rep(tensor(r + 1, extents, dtype))}"
            for r in COMMON_FIRST
            if r < MAX_RANK
            for last in [f"Literal[-1, {r}] = -1"]
            for options, extents, dtype in (
                (f"dtype: type[E], axis: {last}", [*dims(r), "Any"], "E"),
                (f"dtype: None = None, axis: {last}", [*dims(r), "Any"], "f32"),
                ("dtype: type[E], axis: int", ["Any"] * (r + 1), "E"),
                ("dtype: None = None, *, axis: int", ["Any"] * (r + 1), "f32"),
            )
        ],
    )


def take() -> Iterator[str]:
    """The axis is replaced by the axes of the indices."""
    options = "*, mode: IndexMode = 'error', fill_value: Filler = None"
    for r in COMMON_FIRST[:-1]:
        axis = f"axis: {any_axis(r)} = 0"
        yield f"(a: {rep(plain(r))}, indices: int, {axis}, {options}) -> {rep(plain(r - 1))}"
        yield f"(a: {rep(plain(r))}, indices: Sequence[int], {axis}, {options}) -> {rep(plain(r))}"
    for r in COMMON_FIRST[:-1]:
        for axis in range(r):
            for s in range(MAX_RANK - r + 2):
                if max(r, r - 1 + s) > MAX_LISTED:
                    continue
                looked_up = dims(s, OTHER_DIMENSIONS)
                result = tensor(r - 1 + s, [*dims(r)[:axis], *looked_up, *dims(r)[axis + 1 :]])
                yield (
                    f"(a: {rep(tensor(r))}, indices: {rep(tensor(s, looked_up, 'Z'))},"
                    f" axis: {axis_literal(axis, r)}{'' if axis else ' = 0'}, {options})"
                    f" -> {rep(result)}"
                )
    yield from _unnamed_take(options)


def _unnamed_take(options: str) -> Iterator[str]:
    """As `take`, for any axis."""
    for r in RANKS[1:]:
        for s in range(MAX_RANK - r + 2):
            if max(r, r - 1 + s) > MAX_LISTED:
                given = (
                    f"a: {rep(plain(r))}, indices: {rep(plain(s, 'Z'))}, axis: {any_axis(r)} = 0"
                )
                yield f"({given}, {options}) -> {rep(plain(r - 1 + s))}"


def _makers() -> Iterator[str]:
    """From a static shape."""
    yield from _with_narrower("start: int, stop: int | None", define("arange", _arange()))
    for name in ("zeros_like", "ones_like"):
        yield from define_for_tensors(name, _likes())
    yield from define_for_tensors(
        "iota",
        [
            f"(shape: {shape_of(r)}, dtype: type[N], axis: {any_axis(r)} = 0) -> {rep(plain(r, 'N'))}"
            for r in COMMON_FIRST[:-1]
        ],
    )
    for name in ("zeros", "ones"):
        signatures = [
            f"(shape: {shape_of(r)}, dtype: {dtype}) -> {rep(plain(r, made))}"
            for r in COMMON_FIRST
            for dtype, made in (("type[E]", "E"), ("None = None", "f32"))
        ]
        yield from define_for_tensors(name, signatures)
    yield from _with_narrower(
        "fill_value: bool, dtype: None",
        define(
            "full",
            [
                f"(shape: {shape_of(r)}, fill_value: {value}, dtype: {dtype}) -> {rep(plain(r, made))}"
                for r in COMMON_FIRST
                for value, dtype, made in _fillings()
            ]
            + [
                # resembles any call, so that mypy says what full takes rather than list its overloads
                f"(shape: Sequence[{FULL}] | SupportsAbs[{FULL}], fill_value: object = ...,"
                " dtype: object = ...) -> Any"
            ],
        ),
    )
    yield from define_for_tensors(
        "broadcast_to",
        [
            f"(array: {rep(plain(low))}, shape: {shape_of(high)}) -> {rep(plain(high))}"
            for high in COMMON_FIRST
            for low in range(high, -1, -1)
        ],
    )


def _arange() -> Iterator[str]:
    """Of the element type behind the first number, or by its name; of i64 or f32 without one."""
    yield "(start: int, stop: type[N], /) -> Rep[Tensor1D[N]]"
    yield "(start: int, stop: int | None = None, step: int = 1, dtype: None = None) -> Rep[Tensor1D[i64]]"
    yield "(start: float, stop: float | None = None, step: float = 1, dtype: None = None) -> Rep[Tensor1D[f32]]"
    yield "(start: float, stop: float | None, step: float, dtype: type[N]) -> Rep[Tensor1D[N]]"
    yield "(start: float, stop: float | None = None, step: float = 1, *, dtype: type[N]) -> Rep[Tensor1D[N]]"


def _likes() -> Iterator[str]:
    """Of one shape and element type, or another one."""
    yield "(a: Rep[TT], dtype: None = None, *, shape: None = None) -> Rep[TT]"
    for r in COMMON_FIRST:
        yield f"(a: {rep(tensor(r))}, dtype: type[E], *, shape: None = None) -> {rep(tensor(r, None, 'E'))}"
        yield f"(a: View[AnyTensor[D]], dtype: None = None, *, shape: {shape_of(r)}) -> {rep(plain(r))}"
        yield f"(a: View[AnyTensor[Any]], dtype: type[E], *, shape: {shape_of(r)}) -> {rep(plain(r, 'E'))}"


def _with_narrower(mark: str, lines: Iterator[str]) -> Iterator[str]:
    """Where bools or ints have another element type than what they are for the checkers, ints or floats."""
    overload, muted = "@overload", "  # type: ignore[overload-overlap]"
    for line in lines:
        if line != overload:
            note = muted if mark in line else ""
            yield f"{overload}{note}"
            yield f"{line}{note}"


def _fillings() -> Iterator[tuple[str, str, str]]:
    """A value, an element type, and that of the result."""
    for number, default in (("bool", "boolean"), ("int", "i64"), ("float", "f32")):
        yield number, "None = None", default
        yield number, f"type[{PYTHON[number]}]", PYTHON[number]
    yield "Rep[Tensor0D[D]]", "None = None", "D"
    yield "Rep[Tensor0D[Any]]", "type[E]", "E"


def _entropies(kind: str) -> Iterator[str]:
    """`cross_entropy` by class numbers or probabilities."""
    ignored = "ignore_index: int | None = None, " if kind == "Z" else ""
    smoothing = "label_smoothing: float = 0.0"
    for r in (1, 2):
        x, rows = rep(tensor(r, None, "F")), rep(without(r, r - 1, dtype="F"))
        labels = rep(without(r, r - 1, dtype="Z")) if kind == "Z" else x
        weight = f"weight: {rep(tensor(1, dims(r)[-1:], 'F'))} | None = None"
        given = f"logits: {x}, labels: {labels}, *, {weight}, {ignored}"
        number = "reduction: Literal['mean', 'sum'] = 'mean'"
        yield f"({given}reduction: Literal['none'], {smoothing}) -> {rows}"
        yield f"({given}{number}, {smoothing}) -> Rep[Tensor0D[F]]"


def _losses() -> Iterator[str]:
    for name in ("logsumexp", "norm"):
        yield f"{name}: ReduceFloat"
    classes, probabilities = list(_entropies("Z")), list(_entropies("F"))
    labels = refused("LabelsLikeTheLogits")
    refusal = f"(logits: View[AnyTensor[F]], labels: {labels}, **options: Any) -> Rep[Any]"
    yield from define_for_tensors("cross_entropy", [refusal, *classes, *probabilities])
    option = "*, epsilon: float = 1e-5"
    plain_norm = f"(x: Rep[FT], {option}) -> Rep[FT]"
    scaled = [
        f"(x: {rep(tensor(r, None, 'F'))}, scale: {last}, offset: {last}, {option})"
        f" -> {rep(tensor(r, None, 'F'))}"
        for r in COMMON_LAST[1:]
        for last in [rep(tensor(1, dims(r)[-1:], "F"))]
    ]
    wanted = refused("VectorsLikeTheLastAxis")
    refusal = f"(x: Rep[Y], scale: {wanted}, offset: Rep[M], {option}) -> Rep[Y]"
    yield from define_for_tensors("layer_norm", [refusal, plain_norm, *scaled])
