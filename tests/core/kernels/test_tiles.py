"""Products by register tiles: tiles fit the registers, and the product is the one that was written."""

from __future__ import annotations

import numpy as np
import pytest

from nnkit.core.compute.ops import MatrixProduct
from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Module, Stage, finish_function, start_function
from nnkit.core.ir.placement import Placement, arena, output
from nnkit.core.kernels import products, tile_sizes
from nnkit.core.kernels.access_ops import LoadAt
from nnkit.core.kernels.bounds import accesses_outside
from nnkit.core.kernels.ops import Fma, Loop, executed
from nnkit.core.kernels.pack import SummedRange
from nnkit.core.kernels.products import CHUNK, build_product, chunk_length
from nnkit.core.kernels.tile_sizes import Registers, best_tile
from nnkit.core.kernels.tiles import Packing, tile_product
from nnkit.core.ops import Return
from nnkit.core.types import F32, TensorType
from nnkit.core.verify import verify

AVX512, AVX2, SMALL = Registers(32, 16), Registers(16, 8), Registers(16, 4)


def product(
    m: int,
    k: int,
    n: int,
    *,
    turned: bool = False,
    registers: Registers | None = None,
    packs: bool = False,
) -> Module:
    """A function `main` that is one product, scheduled for these registers, if any."""
    types = [TensorType((m, k), F32), TensorType((n, k) if turned else (k, n), F32)]
    b = start_function(types)
    (made,) = build_product(b, MatrixProduct(transpose_b=turned), b.block.arguments)
    kernel = b.block.instructions[-1]
    if registers is not None:
        packing = Packing(SummedRange(k), int(turned), int(not turned)) if packs or turned else None
        tile_product(kernel, registers, packed=packing, depth=k)
    scratch = tuple(arena(64) for _ in kernel.op.using)
    kernel.placement = Placement((output(0),), scratch)
    b.emit_many(Return(), [made])
    module = Module(stage=Stage.SCHEDULE)
    module.add(finish_function("main", b, made.type))
    return module


def test_tiles_fit_the_registers() -> None:
    for registers in (AVX512, AVX2, SMALL):
        for rows in (1, 2, 5, 16, 64, 100, 1000):
            for columns in (1, 3, 16, 17, 100, 512):
                tile = best_tile(rows, columns, 100, registers)
                read = tile.vectors if rows > 1 else 1
                assert tile.rows * tile.vectors + read + 1 < registers.count
    large = best_tile(512, 512, 512, AVX512)
    assert large.rows * large.vectors >= 24
    few = best_tile(64, 64, 1, AVX512)
    assert few.rows * few.vectors < 24
    assert (best_tile(512, 512, 512, AVX2).unrolled, few.unrolled) == (4, 1)


def test_tiled_products_are_products() -> None:
    random = np.random.default_rng(0)
    sizes = [(1, 5, 1), (3, 7, 5), (6, 4, 33), (13, 9, 17), (17, 3, 40)]
    for m, k, n in sizes:
        for turned in (False, True):
            x = random.integers(-9, 9, (m, k)).astype(np.float32)
            w = random.integers(-9, 9, (k, n)).astype(np.float32)
            for registers, packs in ((AVX512, False), (AVX2, True), (SMALL, False)):
                module = product(m, k, n, turned=turned, registers=registers, packs=packs)
                verify(module)
                kernel = module.functions["main"].entry.instructions[0]
                assert not list(accesses_outside(kernel.regions[0].entry))
                found = evaluate(module, "main", x, w.T if turned else w)
                np.testing.assert_array_equal(found, x @ w)


def test_unrolled_sums_are_added_in_the_same_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """For sums that are whole runs of steps, and others; long ones have chunks."""
    monkeypatch.setattr(
        tile_sizes, "_CODE", 0.0
    )  # as if code cost nothing: it pays in large products only
    monkeypatch.setattr(products, "CHUNK", 32)
    best_tile.cache_clear()
    random = np.random.default_rng(1)
    for m, k, n in ((6, 24, 16), (6, 31, 17), (6, 75, 16)):
        x, w = (random.standard_normal(shape).astype(np.float32) for shape in ((m, k), (k, n)))
        tiled, plain = (product(m, k, n, registers=r, packs=True) for r in (AVX2, None))
        steps = {
            i.op.step
            for _, i in executed(tiled.functions["main"].entry.instructions[0])
            if isinstance(i.op, Loop) and i.operands and i.op.step < chunk_length(k)
        }
        assert max(steps) == 4
        verify(tiled)
        found, expected = (evaluate(one, "main", x, w) for one in (tiled, plain))
        np.testing.assert_array_equal(found, expected)
    best_tile.cache_clear()


def test_a_tile_loads_each_element_once_for_all_its_sums() -> None:
    module = product(64, 500, 64, registers=AVX512)
    kernel = module.functions["main"].entry.instructions[0]
    counts = {
        op: sum(
            n * max(1, i.result.tensor.size // 16)
            for n, i in executed(kernel)
            if isinstance(i.op, op)
        )
        for op in (Fma, LoadAt)
    }
    assert counts[Fma] == 64 * 500 * 64 // 16
    assert counts[LoadAt] < 0.7 * counts[Fma]


def test_long_sums_start_afresh() -> None:
    assert chunk_length(CHUNK) == CHUNK
    for k in (CHUNK + 1, 784, 1024, 5 * CHUNK + 1, 65_537):
        assert CHUNK // 3 < chunk_length(k) <= CHUNK
    kernel = product(2, 1_000, 2).functions["main"].entry.instructions[0]
    innermost = [i.op.count for _, i in executed(kernel) if isinstance(i.op, Loop) and i.operands]
    assert max(innermost) <= CHUNK
