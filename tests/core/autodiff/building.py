"""Programs of the tests, written with Python's operators, and what is done with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nnkit.core import ops
from nnkit.core.analysis.derivatives import derivative_type
from nnkit.core.autodiff import reverse
from nnkit.core.evaluate import evaluate
from nnkit.core.ir import (
    Builder,
    Function,
    GradientOf,
    Module,
    Op,
    Value,
    finish_function,
    start_function,
)
from nnkit.core.ops.aggregate import packed, unpacked
from nnkit.core.passes import Flatten, apply_pass
from nnkit.core.types import F64, DType, TensorType, TupleType, Type, scalar
from nnkit.core.verify import verify

Number = float | int


@dataclass(frozen=True)
class Term:
    """A value under construction, with arithmetic."""

    b: Builder
    value: Value

    def apply(self, op: Op, *others: Term | Number) -> Term:
        """`op` of this and others; numbers become scalars of this element type."""
        operands = [self._operand(other) for other in others]
        return Term(self.b, self.b.emit(op, self.value, *operands))

    def _operand(self, other: Term | Number) -> Value:
        if isinstance(other, Term):
            return other.value
        return ops.constant(self.b, scalar(self.value.tensor.dtype), other)

    def __add__(self, other: Term | Number) -> Term:
        return self.apply(ops.Add(), other)

    def __sub__(self, other: Term | Number) -> Term:
        return self.apply(ops.Subtract(), other)

    def __mul__(self, other: Term | Number) -> Term:
        return self.apply(ops.Multiply(), other)

    def __truediv__(self, other: Term | Number) -> Term:
        return self.apply(ops.Divide(), other)

    def __matmul__(self, other: Term) -> Term:
        return self.apply(ops.Dot(), other)

    def __getitem__(self, key: int | str) -> Term:
        return self.apply(ops.Extract((key,)))

    def sum(self, *axes: int) -> Term:
        """Over all axes when none is named."""
        return self.reduce(ops.Combinator.ADD, *axes)

    def max(self, *axes: int) -> Term:
        return self.reduce(ops.Combinator.MAX, *axes)

    def reduce(self, combinator: ops.Combinator, *axes: int) -> Term:
        return self.apply(ops.Reduce(combinator, axes or tuple(range(self.value.tensor.rank))))


Body = Callable[..., "Term | Sequence[Term]"]


def define(module: Module, name: str, parameters: Sequence[Type], body: Body) -> Function:
    """Add a function; several terms are returned as a tuple."""
    b = start_function(parameters, [f"p{index}" for index in range(len(parameters))])
    made = body(*(Term(b, argument) for argument in b.block.arguments))
    terms = [made] if isinstance(made, Term) else list(made)
    result = terms[0] if len(terms) == 1 else pack(*terms)
    b.emit_many(ops.Return(), unpacked(b, result.value))
    return module.add(finish_function(name, b, result.value.type))


def pack(*terms: Term, type: Any = None) -> Term:
    """A tuple, or the struct `type`, of the terms."""
    values = [term.value for term in terms]
    made = type or TupleType(tuple(value.type for value in values))
    return Term(terms[0].b, terms[0].b.emit(ops.Aggregate(made), *values))


def call(function: Function, *arguments: Term) -> Term:
    """Apply a function of the module, a declaration perhaps."""
    b = arguments[0].b
    op = ops.Apply(function.name, function.type)
    results = b.emit_many(op, [argument.value for argument in arguments])
    return Term(b, packed(b, function.type.result, results))


def declare(module: Module, name: str, primal: str, **options: Any) -> Function:
    """Add a gradient declaration: options are those of `GradientOf`; of several results, of the first."""
    given = module.functions[primal].type
    if isinstance(given.result, TupleType):
        options = {"sources": (0,), **options}
    declaration = GradientOf(primal, **options)
    type = derivative_type(given, declaration)
    return module.add(Function(name, type, declaration=declaration))


def differentiate(module: Module) -> None:
    """The pass, and whether what it makes keeps the rules of the IR."""
    apply_pass(Flatten(), module)
    reverse.differentiate(module)
    verify(module)


def gradient_of(parameters: Sequence[Type], body: Body, **options: Any) -> Module:
    """A module with `@f` and its gradient `@df`, differentiated."""
    module = Module()
    define(module, "f", parameters, body)
    declare(module, "df", "f", **options)
    differentiate(module)
    return module


def count(function: Function) -> Counter[str]:
    """How often each op stands in the function."""
    return Counter(instruction.op.name for instruction in function.entry.instructions)


def calls(function: Function) -> Counter[str]:
    """How often each function is called in the function."""
    return Counter(i.op.callee for i in function.entry.instructions if isinstance(i.op, ops.Apply))


def size(function: Function) -> int:
    """Number of instructions."""
    return len(function.entry.instructions)


def tensor(*shape: int, dtype: DType = F64) -> TensorType:
    """A tensor type, f64 unless told."""
    return TensorType(shape, dtype)


def finite_differences(
    module: Module, name: str, arguments: Sequence[Any], position: int, step: float = 1e-6
) -> Any:
    """∂ Σ @name / ∂ argument number `position`, by central differences in f64."""
    x = np.asarray(arguments[position], np.float64)
    slopes = np.zeros_like(x)
    for index in np.ndindex(x.shape):
        ends = []
        for sign in (1, -1):
            moved = x.copy()
            moved[index] += sign * step
            changed = [*arguments[:position], moved, *arguments[position + 1 :]]
            ends.append(float(np.sum(evaluate(module, name, *changed))))
        slopes[index] = (ends[0] - ends[1]) / (2 * step)
    return slopes
