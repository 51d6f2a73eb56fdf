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

All avoid overflow where the result does not; the mean of nothing is NaN.  sum, product, min, max and relu take
integers too.  `core.passes.expand` writes the compositions out, so that they are differentiated and optimised
as any other program.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar, TypeAlias

from ..errors import RankError, ShapeError, VerifyError
from ..ir.graph import Emitter, Op, Pure, Value
from ..stage import Stage, Stages
from ..types import F32, Array, Kind, TensorType
from .arithmetic import Add, Divide, Maximum, Minimum, Multiply, Negate, Relu, Square, Subtract
from .casting import DataTypeCast
from .combinator import Combinator
from .comparison import Equal, GreaterThan, LessThan, Select
from .expansion import evaluate_expansion, nest_expansion, result_of_expansion
from .forms import check_kind
from .formulas import number
from .movement import reshaped
from .reduction import Reduce
from .special import Erfc
from .stopping import StopGradient, StraightThrough
from .transcendental import Exp, Log, Log1p, Sqrt

Rule: TypeAlias = Callable[..., Value]

_FLOAT: tuple[Kind, ...] = ("float",)
_NUMERIC: tuple[Kind, ...] = ("float", "integer")


@dataclass(frozen=True)
class Definition:
    """What a builtin accepts, and what it is made of."""

    rule: Rule
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
            check_kind(f"builtin {self.builtin}", operand.dtype, definition.accepts)
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

    def nest(self, b: Emitter, *operands: Value) -> Value:
        return nest_expansion(self.expand, b, operands)

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


def _sigmoid(b: Emitter, x: Value) -> Value:
    """1 / (1 + e⁻ˣ); for negative x eˣ − eˣ · (eˣ / (1 + eˣ)), whose rounding errors count less than the quotient's."""
    is_negative = b.emit(LessThan(), x, number(b, x, 0))
    small = b.emit(Exp(), b.emit(Select(), x, b.emit(Negate(), x), is_negative))
    one = number(b, x, 1)
    part = b.emit(Divide(), one, b.emit(Add(), small, one))
    product = b.emit(Multiply(), small, part)
    lower = b.emit(Subtract(), small, b.emit(Multiply(), small, product))
    # the derivatives of that are dearer, and no better
    lower = b.emit(StraightThrough(), lower, product)
    return b.emit(Select(), lower, part, is_negative)


def _relu(b: Emitter, x: Value) -> Value:
    return b.emit(Relu(), x)


def _softplus(b: Emitter, x: Value) -> Value:
    """max(x, 0) + log(1 + e⁻ˡˣˡ), by choices: |x| and a maximum would have derivatives of kinks at 0."""
    zero = number(b, x, 0)
    above = b.emit(GreaterThan(), x, zero)
    small = b.emit(Exp(), b.emit(Select(), b.emit(Negate(), x), x, above))
    return b.emit(Add(), b.emit(Select(), x, zero, above), b.emit(Log1p(), small))


def _silu(b: Emitter, x: Value) -> Value:
    bounded, argument = _bounded(b, x, 800)
    return b.emit(Multiply(), bounded, _sigmoid(b, argument))


def _gelu(b: Emitter, x: Value) -> Value:
    """By erfc, which has all its digits where Φ vanishes."""
    bounded, argument = _bounded(b, x, 40)
    scaled = b.emit(Multiply(), argument, number(b, x, -math.sqrt(0.5)))
    return b.emit(
        Multiply(), b.emit(Multiply(), bounded, number(b, x, 0.5)), b.emit(Erfc(), scaled)
    )


def _bounded(b: Emitter, x: Value, end: float) -> tuple[Value, Value]:
    """x, but not below −end, and what also is not above: both for x · f(x) with f 0 and 1 beyond the ends.

    Its product with ∞ would be NaN, or that of its derivative.
    """
    low, high = number(b, x, -end), number(b, x, end)
    bounded = b.emit(Select(), low, x, b.emit(LessThan(), x, low))
    return bounded, b.emit(Select(), high, bounded, b.emit(GreaterThan(), bounded, high))


def _softmax(b: Emitter, x: Value) -> Value:
    powers = b.emit(Exp(), _shifted(b, x))
    return b.emit(Divide(), powers, _summed_last(b, powers))


def _log_softmax(b: Emitter, x: Value) -> Value:
    shifted = _shifted(b, x)
    return b.emit(Subtract(), shifted, b.emit(Log(), _summed_last(b, b.emit(Exp(), shifted))))


def _log_sum_exp(b: Emitter, x: Value) -> Value:
    """Shifted by the maximum; −∞ where all elements are −∞."""
    top = b.emit(StopGradient(), _along_last(b, Combinator.MAX, x))
    zero, nothing = number(b, x, 0), number(b, x, -math.inf)
    is_nothing = b.emit(Equal(), top, nothing)
    shift = b.emit(Select(), zero, top, is_nothing)
    difference = b.emit(Subtract(), x, shift)
    # 0 where they are equal, also infinities
    gap = b.emit(Select(), zero, difference, b.emit(Equal(), x, shift))
    total = _summed_last(b, b.emit(Exp(), b.emit(StraightThrough(), gap, difference)))
    logarithm = b.emit(Log(), b.emit(Select(), number(b, x, 1), total, is_nothing))
    value = b.emit(Select(), nothing, b.emit(Add(), logarithm, shift), is_nothing)
    return reshaped(b, value, x.tensor.shape[:-1])


def _mean(b: Emitter, x: Value) -> Value:
    return _narrow(b, _mean_of(b, _wide(b, x)), x)


def _variance(b: Emitter, x: Value) -> Value:
    """The mean of squared distances from the mean."""
    wide = _wide(b, x)
    distance = b.emit(Subtract(), wide, _mean_of(b, wide))
    return _narrow(b, _mean_of(b, b.emit(Square(), distance)), x)


def _l2_norm(b: Emitter, x: Value) -> Value:
    """√Σx², with the derivative 0 at the zero vector, and ±1 by an element that is ±∞."""
    total = _all(b, Combinator.ADD, b.emit(Square(), x))
    zero = number(b, x, 0)
    is_zero = b.emit(Equal(), total, zero)
    root = b.emit(Sqrt(), b.emit(Select(), number(b, x, 1), total, is_zero))
    root = b.emit(Select(), zero, root, is_zero)
    low, high = number(b, x, -math.inf), number(b, x, math.inf)
    ends = b.emit(Select(), b.emit(Negate(), x), zero, b.emit(Equal(), x, low))
    ends = b.emit(Select(), x, ends, b.emit(Equal(), x, high))
    far = _all(b, Combinator.ADD, ends)
    is_far = b.emit(Equal(), total, high)
    return b.emit(StraightThrough(), root, b.emit(Select(), far, root, is_far))


def _mean_of(b: Emitter, x: Value) -> Value:
    return b.emit(Divide(), _all(b, Combinator.ADD, x), number(b, x, x.tensor.size))


def _reduction(combinator: Combinator) -> Rule:
    def rule(b: Emitter, x: Value) -> Value:
        return _all(b, combinator, x)

    return rule


def _extremum(combinator: Combinator, op: Op) -> Rule:
    def rule(b: Emitter, x: Value, *other: Value) -> Value:
        return b.emit(op, x, *other) if other else _all(b, combinator, x)

    return rule


def _all(b: Emitter, combinator: Combinator, x: Value) -> Value:
    return b.emit(Reduce(combinator, tuple(range(x.tensor.rank))), x)


def _along_last(b: Emitter, combinator: Combinator, x: Value) -> Value:
    """Reduced along the last axis, which stays with extent 1."""
    return reshaped(
        b, b.emit(Reduce(combinator, (x.tensor.rank - 1,)), x), (*x.tensor.shape[:-1], 1)
    )


def _summed_last(b: Emitter, x: Value) -> Value:
    return _along_last(b, Combinator.ADD, x)


def _shifted(b: Emitter, x: Value) -> Value:
    """x − max x, the maximum counting as a constant, which is right as it cancels."""
    return b.emit(Subtract(), x, b.emit(StopGradient(), _along_last(b, Combinator.MAX, x)))


def _wide(b: Emitter, x: Value) -> Value:
    """16-bit floats are summed as f32."""
    return b.emit(DataTypeCast(F32), x) if x.tensor.dtype.bits == 16 else x


def _in_f32(rule: Rule) -> Rule:
    """The rule, with 16-bit floats computed as f32: their squares and sums overflow, their errors add up."""

    def wide(b: Emitter, x: Value) -> Value:
        return _narrow(b, rule(b, _wide(b, x)), x)

    return wide


def _narrow(b: Emitter, y: Value, x: Value) -> Value:
    dtype = x.tensor.dtype
    return b.emit(DataTypeCast(dtype), y) if y.tensor.dtype != dtype else y


BUILTINS: Mapping[str, Definition] = MappingProxyType(
    {
        "sigmoid": Definition(_in_f32(_sigmoid)),
        "logistic": Definition(_in_f32(_sigmoid)),
        "relu": Definition(_relu, accepts=_NUMERIC),
        "softplus": Definition(_in_f32(_softplus)),
        "silu": Definition(_in_f32(_silu)),
        "gelu": Definition(_in_f32(_gelu)),
        "softmax": Definition(_in_f32(_softmax), has_axis=True),
        "logSoftmax": Definition(_in_f32(_log_softmax), has_axis=True),
        "logSumExp": Definition(_in_f32(_log_sum_exp), has_axis=True),
        "sum": Definition(_reduction(Combinator.ADD), accepts=_NUMERIC),
        "product": Definition(_reduction(Combinator.MULTIPLY), accepts=_NUMERIC),
        "mean": Definition(_mean),
        "variance": Definition(_variance),
        "l2Norm": Definition(_in_f32(_l2_norm)),
        "min": Definition(_extremum(Combinator.MIN, Minimum()), (1, 2), _NUMERIC),
        "max": Definition(_extremum(Combinator.MAX, Maximum()), (1, 2), _NUMERIC),
    }
)
"""Every builtin, by name."""
