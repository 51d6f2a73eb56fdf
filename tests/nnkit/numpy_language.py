"""What the names of `program_texts` mean, in the language and in NumPy.

`staged_program(text)` and `numpy_program(text)` are the function `main` of such a text.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final

import numpy as np

import nnkit as nk
from nnkit import Field, Rep, Scalar, Struct, Tensor1D, Tensor2D, f32, f64, i64
from nnkit.core.types import Array

AT: Final = np.array([0, 2, 0])
"""Indices, of which one is there twice."""

COUNTS: Final = np.array([2, 0, 3])


class Pair(Struct):
    row: Field[Tensor1D[f64]]
    number: Field[Scalar[f64]]


class Pair32(Struct):
    row: Field[Tensor1D[f32]]
    number: Field[Scalar[f32]]


def _ruled() -> dict[str, Any]:
    """Functions with rules, which are right."""

    @nk.staged
    def by_jvp(x: Any) -> Any:
        return nk.sin(x) * x

    @by_jvp.defjvp
    def _(x: Any, dx: Any) -> Any:
        return (nk.cos(x) * x + nk.sin(x)) * dx

    @nk.staged
    def by_vjp(x: Any) -> Any:
        return nk.tanh(x)

    @by_vjp.defvjp
    def _(x: Any, seed: Any) -> Any:
        return ((1.0 - nk.square(nk.tanh(x))) * seed,)

    @nk.staged
    def by_both(x: Any) -> Any:
        return nk.sin(x) * 0.5

    @by_both.defjvp
    def _(x: Any, dx: Any) -> Any:
        return nk.cos(x) * dx * 0.5

    by_both.defvjp(lambda x: (by_both(x), nk.cos(x)), lambda saved, seed: (saved * seed * 0.5,))
    return {"by_jvp": by_jvp, "by_vjp": by_vjp, "by_both": by_both}


def _rooted(a: Any) -> Any:
    """√a, until it stays the same."""
    close = 8 * np.finfo(a.spec.dtype.numpy).eps
    return nk.while_loop(lambda x: nk.abs(x * x - a) > close * a, lambda x: (x + a / x) * 0.5, a)


def _solved(a: Any) -> Any:
    """The same as a fixed point."""
    return nk.fixed_point(lambda x, a: (x + a / x) * 0.5, a, a)


def _mask(dtype: Any) -> Any:
    """Of dropout."""
    kept = nk.random.uniform(nk.const(nk.random.key(3)), (3,), dtype=dtype) < 0.7
    return nk.select(kept, nk.full((3,), 1 / 0.7, dtype), nk.zeros((3,), dtype))


def staged_program(
    text: str, *, dtype: Any = f64, schedule: Any = None, name: str = "main"
) -> nk.callables.StagedFunction:
    pair = Pair if dtype is f64 else Pair32
    numpy = np.float64 if dtype is f64 else np.float32
    space: dict[str, Any] = {name: getattr(nk, name) for name in nk.__all__} | _ruled()
    space |= {
        "Number": Scalar[dtype], "Vector": Tensor1D[dtype], "Matrix": Tensor2D[dtype], "Count": Scalar[i64],
        "Pair": pair, "ROW": pair.row, "NUMBER": pair.number, "Rep": Rep, "SCHEDULE": schedule,
        "AT": nk.const(nk.Tensor1D(AT)), "COUNTS": nk.const(nk.Tensor1D(COUNTS)), "absolute": nk.abs,
        "real": lambda x: nk.const(dtype(x)), "whole": lambda x: nk.const(i64(x)),
        "row": lambda x: nk.const(Tensor1D(np.full(3, x, numpy))),
        "table": lambda x: nk.const(Tensor2D(np.full((3, 3), x, numpy))),
        "pair": lambda row, number: nk.build(pair, pair.row << row, pair.number << number),
        "wide": lambda i: i.cast(i64), "as_real": lambda i: i.cast(dtype), "argmax": lambda x: x.argmax(0),
        "outer": lambda x, y: x.reshape(3, 1) * y.reshape(1, 3), "stacked": lambda *xs: nk.stack(xs),
        "taken": nk.take, "mask": lambda: _mask(dtype),
        "put": lambda x, i, y: x.at[i].set(y), "added": lambda x, i, y: x.at[i].add(y),
        "multiplied": lambda x, i, y: x.at[i].multiply(y),
        "greatest": lambda x, i, y: x.at[i].max(y), "least": lambda x, i, y: x.at[i].min(y),
        "mapped": lambda xs, f: xs.map(f), "folded": lambda xs, c, f, **more: xs.fold(c, f, **more),
        "scanned": _scanned, "rooted": _rooted, "solved": _solved,
    }  # fmt: skip
    return _run(text, space)[name]


def _scanned(xs: Any, c: Any, f: Any, **more: Any) -> Any:
    carry, rows = xs.scan(c, f, **more)
    return carry, rows.tensor()


def _run(text: str, space: dict[str, Any]) -> dict[str, Any]:
    """With lines that messages can show."""
    file = f"<program {hash(text):x}>"
    text = f"from __future__ import annotations\n{text}\n"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    exec(compile(text, file, "exec"), space)
    return space


class Held:
    """A ref."""

    def __init__(self, x: Any) -> None:
        self.array = np.array(x)

    def __getitem__(self, key: Any) -> Any:
        return np.copy(self.array[key])[()]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.array[key] = value


def _updated(change: Callable[[Array, Any, Any], None]) -> Callable[..., Any]:
    def update(x: Any, at: Any, y: Any) -> Any:
        x = np.copy(x)
        change(x, at, y)
        return x

    return update


def _put(x: Array, at: Any, y: Any) -> None:
    x[at] = y


def _fori(low: int, high: int, body: Callable[..., Any], *init: Any, checkpoint: Any = None) -> Any:
    carry = init
    for i in range(int(low), int(high)):
        carry = (body(i, *carry),)[: len(init)]
    return carry[0] if init else None


def _while_loop(test: Any, body: Any, carry: Any, checkpoint: Any = None) -> Any:
    while test(carry):
        carry = body(carry)
    return carry


def _folded(xs: Any, carry: Any, f: Any, checkpoint: Any = None) -> Any:
    for x in xs:
        carry = f(carry, x)
    return carry


def _numpy_scanned(xs: Any, carry: Any, f: Any, checkpoint: Any = None) -> Any:
    rows: list[Any] = []
    for x in xs:
        carry, y = f(carry, x)
        rows.append(y)
    return carry, np.stack(rows)


def _vmap(f: Callable[..., Any], *, in_axes: Sequence[int | None], out_axes: int) -> Any:
    def each(*arguments: Any) -> Any:
        rows: list[Any] = []
        for k in range(3):
            row = [
                x if axis is None else np.take(x, k, axis)
                for x, axis in zip(arguments, in_axes, strict=True)
            ]
            rows.append(f(*row))
        if isinstance(rows[0], tuple):
            return tuple(np.stack(column, out_axes) for column in zip(*rows, strict=True))
        return np.stack(rows, out_axes)

    return each


def _check(condition: Any, message: str) -> None:
    assert condition, message


@cache
def _numpy_mask() -> Array:
    return np.asarray(nk.staged(lambda: _mask(f64))())


def numpy_program(text: str, name: str = "main") -> Callable[..., Any]:
    """In f64."""
    space: dict[str, Any] = {name: getattr(np, name) for name in (
        "sin", "cos", "tanh", "exp", "sqrt", "square", "log", "absolute", "maximum", "minimum", "argmax",
        "outer",
    )}  # fmt: skip
    space |= {
        "AT": AT, "COUNTS": COUNTS, "ROW": 0, "NUMBER": 1, "SCHEDULE": None,
        "staged": lambda f: f, "checkpoint": lambda f: f, "check": _check,
        "real": np.float64, "whole": int, "row": lambda x: np.full(3, x), "table": lambda x: np.full((3, 3), x),
        "pair": lambda row, number: (row, number), "wide": int, "as_real": float,
        "select": lambda c, x, y: np.where(c, x, y)[()],
        "stacked": lambda *xs: np.stack(xs), "taken": lambda x, at: x[at], "mask": _numpy_mask,
        "by_jvp": lambda x: np.sin(x) * x, "by_vjp": np.tanh, "by_both": lambda x: np.sin(x) * 0.5,
        "rooted": np.sqrt, "solved": np.sqrt,
        "put": _updated(_put), "added": _updated(np.add.at), "multiplied": _updated(np.multiply.at),
        "greatest": _updated(np.maximum.at), "least": _updated(np.minimum.at), "ref": Held,
        "cond": lambda c, then, otherwise: then() if c else otherwise(), "fori": _fori,
        "while_loop": _while_loop, "mapped": lambda xs, f: np.stack([f(x) for x in xs]),
        "folded": _folded, "scanned": _numpy_scanned, "vmap": _vmap,
    }  # fmt: skip
    return _run(text, space)[name]
