"""Ops that act on the world outside: `check` stops the program with a message, `print` writes to standard output.

No derivative passes through them, and they happen once, when values are computed forward: what a derivative
computes again leaves them out (`Op.is_observable`).
"""

from __future__ import annotations

from collections.abc import Sequence
from string import Formatter
from typing import ClassVar

from ..errors import DTypeError
from ..ir.effect import Effect
from ..ir.instruction import Emitter, Op, Value
from ..lazy_dataclass import dataclass
from ..stage import Stage, Stages
from ..types import BOOL, Array, TensorType, Type, scalar


@dataclass(frozen=True)
class Check(Op):
    """Stops the program with a message unless the condition is true."""

    name: ClassVar[str] = "check"
    syntax: ClassVar[str] = "check {condition} because {message}"
    stages: ClassVar[Stages] = frozenset(Stage)
    effect: ClassVar[Effect] = Effect.TRAP
    is_observable: ClassVar[bool] = True
    message: str

    def infer(self, condition: Type) -> tuple[Type, ...]:
        if condition != scalar(BOOL):
            raise DTypeError(f"{self.name} decides by a bool, not by a {condition}")
        return ()

    def moving(self, operands: Sequence[Value]) -> Sequence[Value]:
        return ()

    def jvp(
        self, b: Emitter, ys: Sequence[Value], xs: Sequence[Value], dxs: Sequence[Value | None]
    ) -> tuple[Value | None, ...]:
        return ()


@dataclass(frozen=True)
class Print(Op):
    """Writes `template` to standard output, with the operands in place of its `{}`; a brace itself is written twice."""

    name: ClassVar[str] = "print"
    syntax: ClassVar[str] = "print {template} [of {xs*}]"
    stages: ClassVar[Stages] = frozenset(Stage)
    effect: ClassVar[Effect] = Effect.WRITE
    is_observable: ClassVar[bool] = True
    template: str

    def infer(self, *xs: Type) -> tuple[Type, ...]:
        for x in xs:
            if not isinstance(x, TensorType):
                raise DTypeError(f"{self.name} writes tensors, not a {x}")
        if _places(self.template) != len(xs):
            raise DTypeError(
                f"print has {len(xs)} operands, and its template {self.template!r} not one {{}} for each; a brace "
                "itself is written twice"
            )
        return ()

    def moving(self, operands: Sequence[Value]) -> Sequence[Value]:
        return ()

    def jvp(
        self, b: Emitter, ys: Sequence[Value], xs: Sequence[Value], dxs: Sequence[Value | None]
    ) -> tuple[Value | None, ...]:
        return ()

    def text(self, values: Sequence[Array]) -> str:
        """What is written for these values (of bf16 as f32), which are shown as NumPy shows them."""
        return self.template.format(*(str(value[()]) for value in values))


def written_literally(words: str) -> str:
    """A template for these words themselves."""
    return words.replace("{", "{{").replace("}", "}}")


def _places(template: str) -> int | None:
    """How many `{}` there are; None if there are other braces."""
    try:
        fields = [(name, spec, how) for _, name, spec, how in Formatter().parse(template)]
    except ValueError:
        return None
    places = [field for field in fields if field[0] is not None]
    return len(places) if all(field == ("", "", None) for field in places) else None
