"""The stages from a staged function to native code: that all compute the same, and the code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nnkit as nk
from nnkit import Field, Struct, Tensor1D, Tensor2D, f32, f64, gradient, spec, staged
from nnkit.compile import Specialization
from nnkit.conversion import shapes_of, spec_of
from nnkit.core.evaluate import evaluate
from nnkit.core.stage import Stage
from nnkit.core.text import parse_module, print_module
from nnkit.core.types import elements_of


class Params(Struct):
    w: Field[Tensor2D[f64]]
    b: Field[Tensor1D[f64]]


@staged
def loss(p: Any, x: Any) -> Any:
    return nk.square(nk.tanh(x @ p[Params.w] + p[Params.b])).sum()


random = np.random.default_rng(0)
P, X = Params(random.normal(size=(3, 2)), random.normal(size=2)), random.normal(size=(4, 3))


def specialization(function: Any, *arguments: Any) -> Specialization:
    specs = tuple(map(spec_of, arguments))
    shapes = tuple(shape for argument in arguments for shape in shapes_of(argument))
    return Specialization(function.stageable.callee(specs), specs, shapes)


def plain(value: Any) -> Any:
    """A value as the evaluator takes it: tuples of arrays."""
    return tuple(map(plain, value._fields)) if isinstance(value, Struct) else np.asarray(value)


def leaves(value: Any) -> list[Any]:
    parts = value._fields if isinstance(value, Struct) else value
    return (
        [leaf for part in parts for leaf in leaves(part)]
        if isinstance(parts, tuple)
        else [np.asarray(value)]
    )


@pytest.mark.parametrize("stage", [stage.value for stage in Stage])
def test_every_stage_computes_the_same(stage: str) -> None:
    found = specialization(nk.value_and_gradient(of=loss, wrt=0), P, Tensor2D(X))
    module, entry = found.module(stage)
    if stage == "raw":  # the gradient is only declared
        module, entry = specialization(loss, P, Tensor2D(X)).module(stage)
    taken = [plain(P), X]
    if elements_of(entry.type.parameters[0]) is None:
        taken = [*leaves(P), X]
    value, *derivatives = leaves(evaluate(module, entry.name, *taken))
    np.testing.assert_allclose(value, np.asarray(loss(P, X)), 1e-9)
    for got, want in zip(derivatives, leaves(gradient(of=loss, wrt=0)(P, X)), strict=False):
        np.testing.assert_allclose(got, want, 1e-9)
    assert print_module(module).splitlines()[1] == f"stage {stage}"
    assert print_module(parse_module(print_module(module))) == print_module(module)


def test_a_module_is_named_after_its_function_and_has_one_entry() -> None:
    text = loss.ir(P, X)
    assert text.startswith('module "loss"') and text.count("func @loss") == 1
    assert "func @lambda:" in staged(lambda x: x).ir(spec((1,), f32))


def test_two_struct_classes_of_one_name_are_told_apart() -> None:
    def made(dtype: Any) -> Any:
        class Same(Struct):
            x: Field[Tensor1D[dtype]]  # type: ignore[valid-type]

        return Same

    first, second = made(f32), made(f64)

    @staged
    def both(a: Any, b: Any) -> Any:
        return a[first.x].sum().cast(f64) + b[second.x].sum()

    a, b = first(np.ones(2, np.float32)), second(np.ones(3))
    assert float(both(a, b)) == 5.0
    assert both.ir(a, b).count("struct $Same") == 2


def test_the_code_is_text() -> None:
    assert "define i64 @kernel" in loss.llvm(P, X)
    assert "kernel:" in loss.asm(P, X)


def test_every_module_verifies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NNKIT_VERIFY", "1")
    step = gradient(of=loss, wrt=(0, 1), keeping=(0,))
    dp, dx, value = step(P, X)
    assert type(dp) is Params and dx.shape == (4, 3) and value.shape == ()


def test_a_program_of_many_sines_has_the_code_of_sine_a_few_times() -> None:
    def chain(x: Any) -> Any:
        for _ in range(60):
            x = nk.sin(x) + 0.5
        return x

    function = nk.fn(nk.Tensor1D[nk.f64])(chain)
    text = function.llvm(nk.spec((19,), nk.f64))
    assert "@nnkit.sin" in text
    assert len(text) < 20 * len(nk.fn(nk.Tensor1D[nk.f64])(nk.sin).llvm(nk.spec((19,), nk.f64)))
    x = np.linspace(-3, 3, 19)
    expected = x
    for _ in range(60):
        expected = np.sin(expected) + 0.5
    np.testing.assert_allclose(function(x).numpy(), expected, rtol=1e-12)
