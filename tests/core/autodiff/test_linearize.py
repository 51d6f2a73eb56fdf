"""The reverse sweep over one function."""

from __future__ import annotations

import pytest

from nnkit.core import ops
from nnkit.core.autodiff.activity import Activity
from nnkit.core.autodiff.cotangent_arithmetic import CotangentArithmetic
from nnkit.core.autodiff.linearize import Linearized, linearize
from nnkit.core.autodiff.pullback import PullbackKey
from nnkit.core.autodiff.tangent_types import TangentTypes
from nnkit.core.autodiff.tapes import Tapes
from nnkit.core.ir import Builder, Function, Module, Value
from nnkit.core.passes import Flatten, apply_pass

from .building import call, define, tensor


def arithmetic(module: Module) -> CotangentArithmetic:
    return CotangentArithmetic(TangentTypes(module))


def sweep(module: Module, function: Function, wanted: int) -> Linearized:
    """The sweep over a function without calls, seeded by a parameter."""

    def seed(b: Builder) -> dict[int, Value]:
        return {0: b.argument(tensor())}

    with pytest.raises(StopIteration) as finished:
        linearize(function, wanted, seed, Activity(module), Tapes(module), arithmetic(module)).send(
            None
        )
    found = finished.value.value
    assert isinstance(found, Linearized)
    return found


def test_the_two_halves() -> None:
    module = Module()
    f = define(module, "f", [tensor()], lambda x: x.apply(ops.Sin()) * x)
    work = sweep(module, f, 0b1)
    forward = [i.op.name for i in work.forward(set())]
    backward = [i.op.name for i in work.backward.block.instructions]
    assert forward == ["sin", "multiply"]
    assert backward == ["strongMultiply", "strongMultiply", "cos", "strongMultiply", "add"]
    assert work.adjoints[work.copy.arguments[0]] is not None


def test_instructions_that_nothing_wanted_reaches_are_not_visited() -> None:
    module = Module()
    f = define(
        module, "f", [tensor(), tensor()], lambda x, y: x * y.apply(ops.Exp()).apply(ops.Sin())
    )
    work = sweep(module, f, 0b01)
    assert "cos" not in [i.op.name for i in work.backward.block.instructions]
    assert work.adjoints[work.copy.arguments[1]] is None


def test_a_call_asks_for_the_pullback_it_needs() -> None:
    module = Module()
    f = define(module, "f", [tensor(), tensor()], lambda x, y: (x * y, x))
    g = define(module, "g", [tensor(), tensor()], lambda x, y: call(f, x, y.apply(ops.Floor()))[0])
    apply_pass(Flatten(), module)
    asking = linearize(
        g,
        0b01,
        lambda b: {0: b.argument(tensor())},
        Activity(module),
        Tapes(module),
        arithmetic(module),
    )
    assert asking.send(None) == PullbackKey("f", wanted=0b01, seeded=0b01)
