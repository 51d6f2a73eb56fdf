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
    MAX_RANK,
    MAX_RESULTS,
    PYTHON,
    RANKS,
    VARIABLES,
    any_axis,
    axis_literal,
    commas,
    define,
    dims,
    ints,
    names,
    plain,
    refused,
    rep,
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
        one = [f"(x: Rep[{variable}], /) -> Rep[{variable}]"]
        sizes = OF_SIZES if name in ("maximum", "minimum") else ()
        yield from define(name, [*sizes, *binary(family)] if len(operands) == 2 else one)
    yield from define("select", _select())
    yield from _along_an_axis()
    yield from _joins()
    yield from _lookups()
    yield from _makers()
    yield from _losses()
    yield from define(
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
        for low in range(high):
            large = rep(tensor(high, None, dtype))
            small = rep(tensor(low, dims(high)[high - low :], dtype))
            yield f"(x: {large}, y: {small}, /) -> {large}"
            yield f"(x: {small}, y: {large}, /) -> {large}"
    variable = VARIABLES[family]
    yield f"(x: Rep[{variable}], y: Rep[{variable}], /) -> Rep[{variable}]"


def by_sizes(condition: str, first: str, second: str) -> Iterator[str]:
    """A choice by a comparison of sizes, a bool, between two of one type, or a number and a tensor."""
    yield f"({condition}: bool, {first}: Rep[TT], {second}: Rep[TT], /) -> Rep[TT]"
    for family, literal in LITERALS.items():
        value = f"Rep[{VARIABLES[family]}]"
        yield f"({condition}: bool, {first}: {value}, {second}: {literal}, /) -> {value}"
        yield f"({condition}: bool, {first}: {literal}, {second}: {value}, /) -> {value}"


def _select() -> Iterator[str]:
    yield f"(pred: Rep[M], a: Rep[Y], b: {refused('TensorsLikeTheMask')}, /) -> Rep[Y]"
    yield from by_sizes("pred", "a", "b")
    for r in COMMON_LAST:
        mask = f"pred: {rep(tensor(r, None, 'boolean'))}"
        for dtype, literal in (("F", "float"), ("Z", "int")):
            value = rep(tensor(r, None, dtype))
            yield f"({mask}, a: {value}, b: {literal}, /) -> {value}"
            yield f"({mask}, a: {literal}, b: {value}, /) -> {value}"
        yield f"({mask}, a: {rep(tensor(r))}, b: {rep(tensor(r))}, /) -> {rep(tensor(r))}"


def _along_an_axis() -> Iterator[str]:
    """The result is like the argument; one default also serves functions generic in the rank."""
    for name, dtype in {"softmax": "F", "log_softmax": "F", "flip": "D"}.items():
        along = [
            f"(x: {rep(tensor(r, None, dtype))}, /, axis: {any_axis(r)}) -> {rep(tensor(r, None, dtype))}"
            for r in COMMON_FIRST[:-1]
        ]
        last = ["(x: Rep[FT], /) -> Rep[FT]"] if dtype == "F" else []
        yield from define(name, [*last, *along])


def _joins() -> Iterator[str]:
    wanted = refused("TensorsOfOneTypeWithThatAxis")
    # nothing fits it but an empty list
    refusal = f"(xs: Sequence[{wanted}], /, axis: int = 0) -> AtLeastOneTensor"
    joined = [
        f"(xs: Sequence[{rep(plain(r))}], /, axis: {any_axis(r)} = 0) -> {rep(plain(r))}"
        for r in COMMON_LAST[1:]
    ]
    stacked = [
        f"(xs: Sequence[{rep(tensor(r))}], /, axis: {axis_literal(i, r + 1)}{'' if i else ' = 0'})"
        f" -> {rep(tensor(r + 1, [*dims(r)[:i], 'Any', *dims(r)[i:]]))}"
        for r in COMMON_LAST
        if r < MAX_RANK
        for i in reversed(range(r + 1))
    ]
    yield from define("concat", [refusal, *joined])
    yield from define("stack", [refusal, *stacked])
    yield from define(
        "pad",
        [
            f"(x: {rep(plain(r, variable))}, widths: {tup(['tuple[int, int]'] * r)}, /, *,"
            f" value: {number} = 0) -> {rep(plain(r, variable))}"
            for r in COMMON_FIRST[:-1]
            for number, variable in (("float", "F"), ("int", "Z"))
        ],
    )


def _lookups() -> Iterator[str]:
    yield from define("take", take())
    yield from define(
        "one_hot",
        [
            f"(indices: {rep(tensor(r, None, 'Z'))}, count: int, /, dtype: type[E])"
            f" -> {rep(tensor(r + 1, [*dims(r), 'Any'], 'E'))}"
            for r in COMMON_FIRST
            if r < MAX_RANK
        ],
    )


def take() -> Iterator[str]:
    """The axis is replaced by the axes of the indices."""
    for r in COMMON_FIRST[:-1]:
        for axis in range(r):
            for s in range(MAX_RANK - r + 2):
                looked_up = dims(s, "PQUV")
                result = tensor(r - 1 + s, [*dims(r)[:axis], *looked_up, *dims(r)[axis + 1 :]])
                yield (
                    f"(x: {rep(tensor(r))}, indices: {rep(tensor(s, looked_up, 'Z'))}, /,"
                    f" axis: {axis_literal(axis, r)}{'' if axis else ' = 0'}, *,"
                    f" mode: IndexMode = 'error', fill_value: Filler = None) -> {rep(result)}"
                )


def _makers() -> Iterator[str]:
    """From a static shape."""
    yield from define(
        "iota",
        [
            f"(shape: {ints(r)}, /, dtype: type[N], axis: {any_axis(r)} = 0) -> {rep(plain(r, 'N'))}"
            for r in COMMON_FIRST[:-1]
        ],
    )
    for name in ("zeros", "ones"):
        signatures = [
            f"(shape: {ints(r)}, dtype: type[E]) -> {rep(plain(r, 'E'))}" for r in COMMON_FIRST
        ]
        yield from define(name, signatures)
    yield from define(
        "full",
        [
            f"(shape: {ints(r)}, fill_value: {number}, dtype: type[{variable}])"
            f" -> {rep(plain(r, variable))}"
            for r in COMMON_FIRST
            for number, variable in PYTHON.items()
        ]
        + [
            # resembles any call, so that mypy says what full takes rather than list its overloads
            f"(shape: Sequence[{FULL}] | SupportsAbs[{FULL}], fill_value: object = ...,"
            " dtype: object = ...) -> Any"
        ],
    )
    yield from define(
        "broadcast_to",
        [
            f"(x: {rep(plain(low))}, shape: {ints(high)}, /) -> {rep(plain(high))}"
            for high in COMMON_FIRST
            for low in range(high, -1, -1)
        ],
    )


def _entropies(kind: str) -> Iterator[str]:
    """`cross_entropy` by class numbers or probabilities."""
    ignored = "ignore_index: int | None = None, " if kind == "Z" else ""
    smoothing = "label_smoothing: float = 0.0"
    for r in (1, 2):
        x, rows = rep(tensor(r, None, "F")), rep(without(r, r - 1, dtype="F"))
        labels = rep(without(r, r - 1, dtype="Z")) if kind == "Z" else x
        weight = f"weight: {rep(tensor(1, dims(r)[-1:], 'F'))} | None = None"
        given = f"logits: {x}, labels: {labels}, /, *, {weight}, {ignored}"
        number = "reduction: Literal['mean', 'sum'] = 'mean'"
        yield f"({given}reduction: Literal['none'], {smoothing}) -> {rows}"
        yield f"({given}{number}, {smoothing}) -> Rep[Tensor0D[F]]"


def _losses() -> Iterator[str]:
    for name in ("logsumexp", "norm"):
        yield f"{name}: ReduceFloat"
    classes, probabilities = list(_entropies("Z")), list(_entropies("F"))
    labels = refused("LabelsLikeTheLogits")
    refusal = f"(logits: View[AnyTensor[F]], labels: {labels}, /, **options: Any) -> Rep[Any]"
    yield from define("cross_entropy", [refusal, *classes, *probabilities])
    option = "*, epsilon: float = 1e-5"
    plain_norm = f"(x: Rep[FT], /, {option}) -> Rep[FT]"
    scaled = [
        f"(x: {rep(tensor(r, None, 'F'))}, scale: {last}, offset: {last}, /, {option})"
        f" -> {rep(tensor(r, None, 'F'))}"
        for r in COMMON_LAST[1:]
        for last in [rep(tensor(1, dims(r)[-1:], "F"))]
    ]
    wanted = refused("VectorsLikeTheLastAxis")
    refusal = f"(x: Rep[Y], scale: {wanted}, offset: Rep[M], /, {option}) -> Rep[Y]"
    yield from define("layer_norm", [refusal, plain_norm, *scaled])
