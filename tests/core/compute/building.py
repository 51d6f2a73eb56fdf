"""Programs for the tests of nests, and how their stages are compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from nnkit.core.compute.fuse import fuse
from nnkit.core.compute.generate import generate_compute
from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Builder, Instruction, Module, Value, finish_function, start_function
from nnkit.core.ops import (
    Add,
    Combinator,
    DataTypeCast,
    Divide,
    Equal,
    Erf,
    Exp,
    Iota,
    Log,
    Multiply,
    Negate,
    Nest,
    PadShape,
    Reduce,
    Return,
    Select,
    Square,
    Subtract,
    constant,
)
from nnkit.core.stage import Stage
from nnkit.core.types import F32, I64, Array, TensorType, one_or_tuple, scalar
from nnkit.core.verify import verify

TOLERANCES = {2: 2e-2, 4: 1e-3, 8: 1e-9}
"""By bytes per element: reductions may be summed in another order."""


def module_of(
    build: Callable[..., Value | Sequence[Value]], *types: TensorType, name: str = "main"
) -> Module:
    """A module whose only function `build(builder, *parameters)` writes."""
    b = start_function(types)
    built = build(b, *b.block.arguments)
    values = [built] if isinstance(built, Value) else built
    b.emit_many(Return(), values)
    module = Module(stage=Stage.OPTIMIZED)
    module.add(finish_function(name, b, one_or_tuple([value.type for value in values])))
    return module


def results(module: Module, arguments: Sequence[Array], name: str = "main") -> list[Array]:
    """What the reference evaluator returns, tensor by tensor."""
    found = evaluate(module, name, *arguments)
    return list(found) if isinstance(found, tuple) else [found]


def assert_close(
    expected: Sequence[Array], actual: Sequence[Array], *, sums_at_poles: bool = False
) -> None:
    """Equal in shape and type, exactly for integers, to rounding for floats.

    A sum of nothing but −0 is a zero of either sign: with `sums_at_poles`, infinities may differ in theirs.
    """
    assert len(expected) == len(actual)
    for one, other in zip(expected, actual, strict=True):
        one, other = np.asarray(one), np.asarray(other)
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        if one.dtype.kind == "f":
            tolerance = TOLERANCES[one.dtype.itemsize]
            if sums_at_poles:
                other = np.where(np.isinf(one) & np.isinf(other), one, other)
            np.testing.assert_allclose(other, one, rtol=tolerance, atol=tolerance)
        else:
            np.testing.assert_array_equal(other, one)


def arguments_for(module: Module, seed: int = 0, name: str = "main") -> list[Array]:
    """Random arguments: floats between −1 and 1, integers from 0 to 4."""
    rng = np.random.default_rng(seed)
    made: list[Array] = []
    for parameter in module.functions[name].parameters:
        type = parameter.tensor
        low, high = (-1.0, 1.0) if type.dtype.is_float else (0, 5)
        made.append(type.dtype.round(np.asarray(rng.uniform(low, high, type.shape))))
    return made


def fused(module: Module) -> Module:
    """The module after generation and fusion, which must keep its results."""
    arguments = arguments_for(module)
    expected = results(module, arguments)
    generate_compute(module)
    verify(module)
    assert_close(expected, results(module, arguments))
    fuse(module)
    verify(module)
    assert_close(expected, results(module, arguments))
    return module


def nests(module: Module, name: str = "main") -> list[Instruction]:
    """The nests of the function, in order."""
    return [i for i in module.functions[name].entry.instructions if isinstance(i.op, Nest)]


def body_names(nest: Instruction) -> list[str]:
    """The names of the ops in the body of a nest."""
    return [i.op.name for i in nest.regions[0].entry.instructions[:-1]]


def f32(*shape: int) -> TensorType:
    return TensorType(shape, F32)


def softmax(b: Builder, x: Value) -> Value:
    """Of the rows of a matrix."""
    peak = b.emit(PadShape(1), b.emit(Reduce(Combinator.MAX, (1,)), x))
    e = b.emit(Exp(), b.emit(Subtract(), x, peak))
    return b.emit(Divide(), e, b.emit(PadShape(1), b.emit(Reduce(Combinator.ADD, (1,)), e)))


def cross_entropy_gradient(b: Builder, x: Value, labels: Value) -> list[Value]:
    """The mean cross entropy of rows of logits, and softmax minus one-hot, over the number of rows."""
    rows, classes = x.tensor.shape
    peak = b.emit(PadShape(1), b.emit(Reduce(Combinator.MAX, (1,)), x))
    shifted = b.emit(Subtract(), x, peak)
    e = b.emit(Exp(), shifted)
    total = b.emit(PadShape(1), b.emit(Reduce(Combinator.ADD, (1,)), e))
    log_p = b.emit(Subtract(), shifted, b.emit(Log(), total))
    classes_at = b.emit(Iota((classes,), 0, I64))
    hot = b.emit(Equal(), classes_at, b.emit(PadShape(1), b.emit(DataTypeCast(I64), labels)))
    zero, share = constant(b, scalar(F32), 0), constant(b, scalar(F32), 1 / rows)
    chosen = b.emit(Reduce(Combinator.ADD, (0, 1)), b.emit(Select(), log_p, zero, hot))
    loss = b.emit(Negate(), b.emit(Multiply(), chosen, share))
    one = constant(b, scalar(F32), 1)
    difference = b.emit(Subtract(), b.emit(Divide(), e, total), b.emit(Select(), one, zero, hot))
    return [loss, b.emit(Multiply(), difference, share)]


def gelu_value_and_gradient(b: Builder, x: Value) -> list[Value]:
    """Σ x·Φ(x), and Φ(x) + x·φ(x)."""
    half, root = constant(b, scalar(F32), 0.5), constant(b, scalar(F32), 0.70710678)
    scaled = b.emit(Multiply(), x, root)
    phi = b.emit(
        Multiply(),
        b.emit(Add(), b.emit(Erf(), scaled), constant(b, scalar(F32), 1)),
        half,
    )
    total = b.emit(Reduce(Combinator.ADD, (0,)), b.emit(Multiply(), x, phi))
    density = b.emit(Exp(), b.emit(Negate(), b.emit(Square(), scaled)))
    density = b.emit(Multiply(), density, constant(b, scalar(F32), 0.39894228))
    return [total, b.emit(Add(), phi, b.emit(Multiply(), x, density))]
