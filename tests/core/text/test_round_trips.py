"""print ∘ parse ∘ print = print, and what was parsed means the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import nnkit as nk
from nnkit import Field, Rep, Scalar, Struct, Tensor1D, Tensor2D, f32, f64, i32, i64
from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Module, finish_function, start_function
from nnkit.core.ops import Return
from nnkit.core.stage import Stage
from nnkit.core.text import parse_module, print_module
from nnkit.core.types import Array
from nnkit.core.verify import verify
from tests.core.autodiff.building import differentiate
from tests.core.ops.catalogue import SAMPLES
from tests.core.ops.samples import Sample
from tests.programs import Program, programs, same_bits
from tests.rows import each

from .laws import check_meaning, reread

EXAMPLES = max(60, settings().max_examples // 4)

Matrix = Tensor2D[f32]
Vector = Tensor1D[f32]


class Layer(Struct):
    weight: Field[Matrix]
    bias: Field[Vector]


class Network(Struct):
    first: Field[Layer]
    second: Field[Layer]


@nk.staged
def affine(x: Rep[Matrix], layer: Rep[Layer]) -> Rep[Matrix]:
    return x @ layer[Layer.weight] + layer[Layer.bias]


@nk.staged
def network_loss(x: Rep[Matrix], labels: Rep[Tensor1D[i32]], net: Rep[Network]) -> Rep[Scalar[f32]]:
    hidden = nk.relu(nk.layer_norm(affine(x, net[Network.first])))
    return nk.cross_entropy(affine(hidden, net[Network.second]), labels).mean()


@nk.staged
def embedding_loss(table: Rep[Matrix], indices: Rep[Tensor1D[i64]]) -> Rep[Scalar[f32]]:
    rows = nk.take(table, indices, mode="clip") * nk.take(table, indices)
    return nk.cumsum(nk.concat([rows, nk.flip(rows, 0)]), 1).sum()


@nk.staged
def products(a: Rep[Matrix], b: Rep[Matrix]) -> Rep[Matrix]:
    return nk.tanh((a @ b).T @ a)


@nk.staged
def noise(key: Rep[Scalar[i64]]) -> Rep[Matrix]:
    return nk.random.normal(key, (3, 5))


@nk.staged
def shapes(x: Rep[Matrix]) -> Rep[Matrix]:
    parts = nk.stack([x[0], x[1], x[0]], 1)
    return nk.pad(parts, ((1, 0), (0, 2)), constant_values=-1.0).reshape(4, -1) + nk.iota(
        (4, 5), f32, 1
    )


@nk.staged
def statistics(x: Rep[Tensor2D[f64]]) -> tuple[Rep[Tensor1D[f64]], Rep[Tensor2D[f64]]]:
    return nk.logsumexp(x, 0), nk.select(x > 0.0, nk.softmax(x), nk.minimum(x, -0.5))


def floats(*shape: int) -> Array:
    return np.random.default_rng(len(shape)).standard_normal(shape, np.float32)


NETWORK = ((floats(4, 3), floats(3)), (floats(3, 5), floats(5)))
LARGE = floats(32, 32)
PROGRAMS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "network": (
        nk.gradient(of=network_loss, wrt=(2, 0), keeping=(0,)),
        (floats(6, 4), np.array([0, 4, 2, 1, 0, 3], np.int32), NETWORK),
    ),
    "embedding": (
        nk.gradient(of=embedding_loss, wrt=(0,)),
        (floats(4, 3), np.array([0, 3, 3, 1])),
    ),
    "products": (nk.gradient(of=products, wrt=(0, 1), seedable=True), (LARGE, LARGE, LARGE)),
    "noise": (noise, (np.array(7),)),
    "shapes": (shapes, (floats(2, 3),)),
    "statistics": (statistics, (floats(3, 4).astype(np.float64),)),
}


def spec_of(data: Any, type: Any = None) -> Any:
    """What `f.ir` takes for these arguments."""
    if isinstance(data, tuple):
        layers = [Layer(Tensor2D(w, f32), Tensor1D(b, f32)) for w, b in data]
        return Network(*layers)
    names = {"float32": f32, "float64": f64, "int32": i32, "int64": i64}
    return nk.spec(data.shape, names[data.dtype.name])


def flat(data: Any) -> list[Array]:
    return [leaf for part in data for leaf in flat(part)] if isinstance(data, tuple) else [data]


@pytest.mark.parametrize("name", PROGRAMS)
def test_real_programs_read_back_at_every_stage(name: str) -> None:
    function, data = PROGRAMS[name]
    specs = [spec_of(argument) for argument in data]
    results: dict[str, Any] = {}
    for stage in (stage.value for stage in Stage):
        text = function.ir(*specs, stage=stage)
        module, entry = function._specialization(tuple(specs)).module(stage)
        assert print_module(module) == text
        arguments = tuple(flat(data))
        again = reread(module)
        if stage == "raw":
            differentiate(module)
            differentiate(again)
            assert print_module(again) == print_module(module)
        results[stage] = evaluate(module, entry.name, *arguments)
        assert same_bits(evaluate(again, entry.name, *arguments), results[stage])
    for found in results.values():
        for one, other in zip(flat(found), flat(results["raw"]), strict=True):
            np.testing.assert_allclose(one, other, rtol=2e-3, atol=1e-4)


@each("sample", SAMPLES, ids=str)
def test_every_sample_of_an_op_reads_back(sample: Sample) -> None:
    b = start_function(sample.types)
    result = b.emit(sample.op, *b.block.arguments)
    b.emit_many(Return(), [result])
    module = Module()
    module.add(finish_function("f", b, result.type))
    again = check_meaning(module, "f", sample.operands())
    assert again.functions["f"].entry.instructions[0].op == sample.op


@settings(max_examples=EXAMPLES)
@given(program=programs())
def test_random_programs_read_back(program: Program) -> None:
    check_meaning(program.module, program.entry, program.arguments)


def with_locations(text: str) -> Callable[[int], str]:
    module = parse_module(text, "model.dl")
    verify(module)
    instructions = module.functions["f"].entry.instructions

    def excerpt(index: int) -> str:
        location = instructions[index].location
        assert location is not None
        found = location.resolve()
        assert found is not None
        return f"{found.file}:{found.line}:{found.column}-{found.end_column}"

    return excerpt


def test_instructions_know_their_place_in_the_text() -> None:
    excerpt = with_locations(
        'module "m"\nfunc @f: (f32) -> f32 {\n\'b(%x: f32):\n  %y = negate %x: f32\n  return %y: f32\n}\n'
    )
    assert excerpt(0) == "model.dl:4:7-13"
    assert excerpt(1) == "model.dl:5:2-8"
