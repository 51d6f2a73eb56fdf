"""Functions that DLVM calls builtin: names for compositions of ops.

| builtin                                          | of x                                     | type     |
|--------------------------------------------------|------------------------------------------|----------|
| sigmoid, logistic                                | 1 / (1 + e⁻ˣ)                            | T → T    |
| relu                                             | 0 where x ≤ 0, else x                    | T → T    |
| softplus                                         | log(1 + eˣ)                              | T → T    |
| silu                                             | x · sigmoid(x)                           | T → T    |
| gelu                                             | x · Φ(x), Φ of the normal distribution   | T → T    |
| softmax                                          | exp(x) / Σ exp(x) along the last axis    | T → T    |
| logSoftmax                                       | log softmax(x)                           | T → T    |
| logSumExp                                        | log Σ exp(x) along the last axis         | (…, n) → (…) |
| sum, product, mean, variance, l2Norm             | of all elements                          | T → scalar |
| min, max                                         | of all elements                          | T → scalar |
| min, max                                         | of two tensors that broadcast, by element | T, U → V |

sum, product, min, max and relu take integers too.  What they are made of, `composed` says; `core.passes.expand`
writes it out, so that they are differentiated and optimised as any other program.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import ClassVar, TypeAlias

from ..errors import RankError, ShapeError, VerifyError
from ..ir.instruction import Emitter, Op, Pure, Value
from ..lazy_dataclass import dataclass
from ..stage import Stage, Stages
from ..types import Array, Kind, TensorType
from . import composed
from .arithmetic import Maximum, Minimum, Relu
from .combinator import Combinator
from .expansion import evaluate_expansion, result_of_expansion
from .forms import check_kind
from .reduction import Reduce

BuiltinRule: TypeAlias = Callable[..., Value]

_FLOAT: tuple[Kind, ...] = ("float",)
_NUMERIC: tuple[Kind, ...] = ("float", "integer")


@dataclass(frozen=True)
class Definition:
    """What a builtin accepts, and what it is made of."""

    rule: BuiltinRule
    counts: tuple[int, ...] = (1,)
    accepts: tuple[Kind, ...] = _FLOAT
    has_axis: bool = False
    """Whether it works along the last axis, which must then exist."""


@dataclass(frozen=True)
class Builtin(Pure):
    """A function known by name: `builtin "softmax"(%x: <2 x 3 x f32>) -> <2 x 3 x f32>`."""

    name: ClassVar[str] = "builtin"
    syntax: ClassVar[str] = "builtin {builtin}({operands*}) -> {type}"
    stages: ClassVar[Stages] = frozenset({Stage.RAW})
    not_differentiable: ClassVar[str] = "it is expanded into other ops first, by the pass 'expand'"
    builtin: str
    type: TensorType

    def infer(self, *operands: TensorType) -> TensorType:
        definition = definition_of(self.builtin)
        if len(operands) not in definition.counts:
            counts = " or ".join(map(str, definition.counts))
            some = "operand" if definition.counts == (1,) else "operands"
            raise RankError(f"builtin {self.builtin} takes {counts} {some}, not {len(operands)}")
        for operand in operands:
            check_kind(f"builtin {self.builtin}", operand, definition.accepts)
            if definition.has_axis and not operand.rank:
                raise RankError(
                    f"builtin {self.builtin} works along the last axis, which {operand.words} has not"
                )
        inferred = result_of_expansion(definition.rule, operands)
        if inferred != self.type:
            given = " and ".join(operand.words for operand in operands)
            raise ShapeError(
                f"builtin {self.builtin} of {given} is a {inferred}, not a {self.type}"
            )
        return self.type

    def evaluate(self, *operands: Array) -> Array:
        types = [TensorType(operand.shape, self.type.dtype) for operand in operands]
        return evaluate_expansion(definition_of(self.builtin).rule, types, operands)

    def expand(self, b: Emitter, *operands: Value) -> Value:
        """The same value, by ops that have derivatives."""
        return definition_of(self.builtin).rule(b, *operands)


def definition_of(builtin: str) -> Definition:
    """What a builtin is.  Raises: VerifyError, with names that are near, when there is none."""
    definition = BUILTINS.get(builtin)
    if definition is None:
        near = difflib.get_close_matches(builtin, BUILTINS, 3)
        hint = f"did you mean {' or '.join(near)}? " if near else ""
        raise VerifyError(
            f"there is no builtin {builtin!r}: {hint}builtins are {', '.join(sorted(BUILTINS))}"
        )
    return definition


def _relu(b: Emitter, x: Value) -> Value:
    return b.emit(Relu(), x)


def _of_all(rule: BuiltinRule) -> BuiltinRule:
    """The rule along all axes."""

    def over(b: Emitter, x: Value) -> Value:
        return rule(b, x, range(x.tensor.rank))

    return over


def _along_last(rule: BuiltinRule) -> BuiltinRule:
    """The rule along the last axis."""

    def over(b: Emitter, x: Value) -> Value:
        return rule(b, x, (x.tensor.rank - 1,))

    return over


def _reduction(combinator: Combinator) -> BuiltinRule:

    def rule(b: Emitter, x: Value) -> Value:
        return b.emit(Reduce(combinator, tuple(range(x.tensor.rank))), x)

    return rule


def _extremum(combinator: Combinator, op: Op) -> BuiltinRule:
    def rule(b: Emitter, x: Value, *other: Value) -> Value:
        return b.emit(op, x, *other) if other else _reduction(combinator)(b, x)

    return rule


BUILTINS: Mapping[str, Definition] = MappingProxyType(
    {
        "sigmoid": Definition(composed.sigmoid),
        "logistic": Definition(composed.sigmoid),
        "relu": Definition(_relu, accepts=_NUMERIC),
        "softplus": Definition(composed.softplus),
        "silu": Definition(composed.silu),
        "gelu": Definition(composed.gelu),
        "softmax": Definition(_along_last(composed.softmax), has_axis=True),
        "logSoftmax": Definition(_along_last(composed.log_softmax), has_axis=True),
        "logSumExp": Definition(_along_last(composed.log_sum_exp), has_axis=True),
        "sum": Definition(_reduction(Combinator.ADD), accepts=_NUMERIC),
        "product": Definition(_reduction(Combinator.MULTIPLY), accepts=_NUMERIC),
        "mean": Definition(_of_all(composed.mean)),
        "variance": Definition(_of_all(composed.variance)),
        "l2Norm": Definition(_of_all(composed.norm)),
        "min": Definition(_extremum(Combinator.MIN, Minimum()), (1, 2), _NUMERIC),
        "max": Definition(_extremum(Combinator.MAX, Maximum()), (1, 2), _NUMERIC),
    }
)
"""Every builtin, by name."""
