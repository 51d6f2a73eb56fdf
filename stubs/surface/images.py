"""Convolutions, pooling and resizing: ranks say whether there is a batch."""

from __future__ import annotations

from collections.abc import Iterator

from .expressions import DIMENSIONS, MAX_RANK, define, plain, refused, rep, tensor, title

NUMBERS = {1: "int | tuple[int]", 2: "int | tuple[int, int]", 3: "int | tuple[int, int, int]"}
"""One for all spatial axes, or one for each."""


def padding(axes: int) -> str:
    """What `padding` can be."""
    pair = ", ".join(["tuple[int, int]"] * axes)
    return f"Literal['same', 'valid'] | {NUMBERS[axes]} | tuple[{pair}]"


def images() -> Iterator[str]:
    yield title("convolutions, pooling, resizing")
    for axes in (1, 2, 3):
        yield from define(f"conv{axes}d", _convolution(axes, ""))
    for axes in (1, 2, 3):
        yield from define(f"conv_transpose{axes}d", _convolution(axes, "output_padding"))
    for axes in (1, 2, 3):
        for name, option in (("max", ""), ("avg", ", count_include_pad: bool = True")):
            number = "N" if name == "max" else "F"
            yield from define(f"{name}_pool{axes}d", _pool(axes, number, option))
    for_each = "float | tuple[float, ...]"
    yield from define("interpolate", _interpolate(for_each))


def _convolution(axes: int, more: str) -> Iterator[str]:
    numbers = NUMBERS[axes]
    options = f"stride: {numbers} = 1, padding: {padding(axes)} = 0"
    if more:
        options += f", {more}: {numbers} = 0, groups: int = 1, dilation: {numbers} = 1"
    else:
        options += f", dilation: {numbers} = 1, groups: int = 1"
    kernel = rep(plain(axes + 2, "F"))
    wanted = refused("KernelOfOneRankMoreThanAnElement")
    yield f"(input: Rep[Y], weight: {wanted}, bias: Rep[M] | None = None, *, {options}) -> Rep[Y]"
    for rank in (axes + 1, axes + 2):
        x = rep(plain(rank, "F"))
        bias = f"{rep(plain(1, 'F'))} | None = None"
        yield f"(input: {x}, weight: {kernel}, bias: {bias}, *, {options}) -> {x}"


def _pool(axes: int, number: str, option: str) -> Iterator[str]:
    numbers = NUMBERS[axes]
    given = (
        f"kernel_size: {numbers}, stride: {numbers} | None = None, *, padding: {padding(axes)} = 0,"
        " ceil_mode: bool = False"
    )
    for rank in range(axes, MAX_RANK + 1):
        lead = DIMENSIONS[: rank - axes]
        x = rep(plain(rank, number)) if not lead else rep(tensor(rank, None, number))
        result = rep(tensor(rank, [*lead, *["Any"] * axes], number))
        yield f"(input: {x}, {given}{option}) -> {result}"


def _interpolate(factors: str) -> Iterator[str]:
    for rank, words in (
        (3, "'nearest', 'linear'"),
        (4, "'nearest', 'linear', 'bilinear', 'bicubic'"),
        (5, "'nearest', 'linear', 'trilinear'"),
    ):
        x, result = (
            rep(tensor(rank, None, "F")),
            rep(tensor(rank, ["I", "J", *["Any"] * (rank - 2)], "F")),
        )
        mode = f"mode: Literal[{words}] = 'nearest', align_corners: bool = False"
        yield f"(input: {x}, size: {NUMBERS[rank - 2]}, *, {mode}) -> {result}"
        yield f"(input: {x}, *, scale_factor: {factors}, {mode}) -> {result}"
