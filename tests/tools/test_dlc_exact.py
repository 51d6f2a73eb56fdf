"""Objects for the least and for this machine compute what the evaluator does, where there is one right result."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest

from nnkit.core.ops import Maximum, Minimum, Modulo, Reinterpret
from nnkit.core.types import BF16, DTYPES, F16, F32, F64, I16, Array, DType
from tests.nearest import all_nearest, operands
from tests.tools.test_dlc import call, dlc, needs_compiler
from tests.values import same_bits

COUNT = 3000
NUMERIC = [dtype for dtype in DTYPES.values() if dtype.is_numeric]
FLOATS = [F16, BF16, F32, F64]
FUNCTION = """
func @{name}: ({inputs}) -> <{count} x {target}> {{
'entry({parameters}):
    %y = {body}
    return %y: <{count} x {target}>
}}
"""


def function(name: str, body: str, source: DType, target: DType, count: int = COUNT) -> str:
    """A function of as many tensors as `body` names."""
    names = [one for one in ("%u", "%v") if one in body]
    type = f"<{count} x {source}>"
    return FUNCTION.format(
        name=name,
        body=body.replace("TYPE", type),
        inputs=", ".join(type for _ in names),
        parameters=", ".join(f"{one}: {type}" for one in names),
        target=target,
        count=count,
    )


def module() -> str:
    functions = [
        function(f"{source}_to_{target}", f"dataTypeCast %u: TYPE to {target}", source, target)
        for source in NUMERIC
        for target in FLOATS
    ]
    for dtype in FLOATS:
        functions += [
            function(f"{op}_{dtype}", f"{op} %u: TYPE, %v: TYPE", dtype, dtype)
            for op in ("min", "max", "modulo")
        ]
    for dtype in (F16, BF16):
        functions.append(
            function(f"bits_{dtype}", "reinterpret %u: TYPE as i16", dtype, I16, 1 << 16)
        )
    return 'module "exact"\n' + "".join(functions)


@pytest.fixture(scope="module", params=[[], ["--cpu", "native"]], ids=["any", "native"])
def library(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> ctypes.CDLL:
    folder: Path = tmp_path_factory.mktemp("exact")
    (folder / "exact.dl").write_text(module())
    dlc(folder / "exact.dl", "--emit", "shared", *request.param, "-o", folder / "exact.so")
    return ctypes.CDLL(str(folder / "exact.so"))


def result(library: ctypes.CDLL, name: str, target: DType, *given: Array) -> Array:
    """What the function stores."""
    found = np.zeros(given[0].shape, target.storage)
    assert call(library[name], *given, found) == 0
    return target.load(found)


@needs_compiler
@pytest.mark.parametrize("target", FLOATS, ids=str)
@pytest.mark.parametrize("source", NUMERIC, ids=str)
def test_casts_round_once(library: ctypes.CDLL, source: DType, target: DType) -> None:
    x = np.resize(operands(source, target, np.random.default_rng(9), 250), COUNT)
    found = result(library, f"{source}_to_{target}", target, source.store(x))
    assert same_bits(found, all_nearest(x.tolist(), target))


@needs_compiler
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_extremes(library: ctypes.CDLL, dtype: DType) -> None:
    rng = np.random.default_rng(1)
    special = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan], dtype.numpy)
    u, v = rng.choice(special, (2, COUNT))
    for op in (Minimum(), Maximum()):
        found = result(library, f"{op.name}_{dtype}", dtype, dtype.store(u), dtype.store(v))
        assert same_bits(found, op.evaluate(u, v))


@needs_compiler
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_remainders(library: ctypes.CDLL, dtype: DType) -> None:
    """Also of numbers next to multiples, of the largest and of the least."""
    rng = np.random.default_rng(8)
    v = np.resize(operands(dtype, dtype, rng, 250), COUNT)
    whole = rng.integers(-50, 50, COUNT)
    with np.errstate(all="ignore"):
        u = np.where(rng.integers(0, 2, COUNT), dtype.round(whole * v), rng.permutation(v))
        wanted = dtype.round(Modulo().evaluate(u, v))
    found = result(library, f"modulo_{dtype}", dtype, dtype.store(u), dtype.store(v))
    np.testing.assert_array_equal(found, wanted)


@needs_compiler
@pytest.mark.parametrize("dtype", [F16, BF16], ids=str)
def test_all_bits_of_16(library: ctypes.CDLL, dtype: DType) -> None:
    stored = np.arange(1 << 16).astype(np.uint16).view(dtype.storage)
    found = result(library, f"bits_{dtype}", I16, stored)
    np.testing.assert_array_equal(found, Reinterpret(I16).evaluate(dtype.load(stored)))
