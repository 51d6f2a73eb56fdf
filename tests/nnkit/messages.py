"""How the tests of messages say what a message must be, and the programs that they misuse.

A row is a function that fails, the class of the error, its first line, the text over the caret, and what its
notes contain.
"""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from nnkit import Field, NNKitError, Rep, Scalar, Struct, Tensor1D, Tensor2D, f32, i32, staged

F1, F2 = Tensor1D[f32], Tensor2D[f32]


class Layer(Struct):
    w: Field[Tensor2D[f32]]
    b: Field[Tensor1D[f32]]


class Other(Struct):
    w: Field[Tensor2D[f32]]


class Count(Struct):
    n: Field[Scalar[i32]]
    x: Field[Tensor1D[f32]]


def ones(*shape: int) -> Any:
    return np.ones(shape, np.float32)


def layer() -> Layer:
    return Layer(ones(2, 3), ones(3))


V, M, N, L = ones(3), ones(2, 3), np.arange(3, dtype=np.int32), np.array([True, False, True])


@staged
def f(x: Rep[F2], w: Rep[F2], b: Rep[F2]) -> Rep[F2]:
    return x @ w + b


@staged
def integers(n: Rep[Tensor1D[i32]]) -> Rep[Scalar[i32]]:
    return n.sum()


@staged
def loss(p: Rep[Layer], x: Rep[F2]) -> Rep[Scalar[f32]]:
    return (x @ p[Layer.w] + p[Layer.b]).sum()


@staged
def pair(x: Rep[F1], n: Rep[Tensor1D[i32]]) -> tuple[Rep[F1], Rep[Tensor1D[i32]]]:
    return x, n


@staged
def counted(c: Rep[Count]) -> Rep[F1]:
    return c[Count.x]


def body(constant: str) -> str:
    """What is marked of a lambda that returns a constant, to which the byte code of 3.12 gives no columns."""
    return "lambda" if sys.version_info[:2] == (3, 12) else constant


COMPREHENSION = "x" if sys.version_info >= (3, 13) else "[-y for y in x]"
"""What is marked where `[-y for y in x]` asks x for an iterator: before 3.13, Python's byte code has the
columns of the whole comprehension there."""


def on(body: Any, *arguments: Any) -> Callable[[], Any]:
    """Running a staged function."""
    return lambda: staged(body)(*arguments)


Run = Callable[[], Any]


@dataclass(frozen=True)
class Row:
    """A program that fails, and how."""

    run: Run
    error: type[NNKitError]
    message: str
    caret: str
    notes: tuple[str, ...]

    def check(self, file: str) -> None:
        """Run it, and compare everything that the user sees; the place must be in `file`."""
        with pytest.raises(self.error) as caught:
            self.run()
        error, message = caught.value, str(caught.value)
        assert type(error) is self.error
        assert self.message in message.split("\n")[0]
        place, marked = marked_text(message)
        names = "|".join(re.escape(name) for name in (file, "messages.py"))
        assert re.fullmatch(rf"({names}):\d+", place), message
        assert not self.caret or marked == self.caret, message
        notes = "\n".join(getattr(error, "__notes__", []))
        for note in self.notes:
            assert note in notes, f"{note!r} is not in\n{notes}"
        shown = "".join(traceback.format_exception_only(error))
        assert not any(name in shown for name in ("<locals>", "_dispatch", "StagedFunction"))
        assert not message.split("\n")[0].endswith(".")


class Table(dict[str, Row]):
    """Rows by name."""

    def row(
        self, name: str, error: type[NNKitError], message: str, caret: str = "", *notes: str
    ) -> Callable[[Run], Run]:
        """Adds the program it is called with, or decorates."""

        def add(run: Run) -> Run:
            assert name not in self, name
            self[name] = Row(run, error, message, caret, notes)
            return run

        return add


def marked_text(message: str) -> tuple[str, str]:
    """The place and the text that the carets mark."""
    lines = message.split("\n")
    at = next(k for k, line in enumerate(lines) if line.strip() and set(line.strip()) == {"^"})
    start = lines[at].index("^")
    return lines[at - 1].strip().split("  ")[0], lines[at - 1][start : start + lines[at].count("^")]
