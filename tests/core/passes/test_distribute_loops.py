"""Loop distribution: which products leave a loop, which stay, and that results stay the same."""

from __future__ import annotations

import numpy as np
import pytest

from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Module
from nnkit.core.ir.surgery import walk_blocks
from nnkit.core.passes.base import apply_pass
from nnkit.core.passes.dce import DeadCode
from nnkit.core.passes.distribute_loops import FEW_BYTES, DistributeLoops
from nnkit.core.text import parse_module
from nnkit.core.verify import verify

ROUNDS, WIDTH = 6, 10

HEAD = """
func @f: (<6 x 10 x f64>, <10 x 6 x f64>, <10 x 10 x f64>, <10 x f64>, <6 x 3 x 10 x f64>, i64) -> <10 x f64> {
'entry(%x: <6 x 10 x f64>, %xt: <10 x 6 x f64>, %w: <10 x 10 x f64>, %h0: <10 x f64>, %b: <6 x 3 x 10 x f64>, %n: i64):
"""
LOOP = """
    %last = for {lower}: i64 upto {upper}: i64 carrying %h0: <10 x f64> {{
    'body(%i: i64, %h: <10 x f64>):
{lines}
        %s = add %h: <10 x f64>, %a: <10 x f64>
        %t = tanh %s: <10 x f64>
        yield %t: <10 x f64>
    }}
    return %last: <10 x f64>
}}
"""
ROW = "%r = gather %x: <6 x 10 x f64> at %i: i64 along 0 bounds inside\n"
PRODUCT = "%a = dot %r: <10 x f64>, %w: <10 x 10 x f64>"

TAKEN = {
    "rows": (0, 6, ROW + PRODUCT),
    "columns": (
        0,
        6,
        "%r = gather %xt: <10 x 6 x f64> at %i: i64 along 1 bounds inside\n" + PRODUCT,
    ),
    "some of the rows": (1, 5, ROW + PRODUCT),
    "a matrix times rows": (0, 6, ROW + "%a = dot %w: <10 x 10 x f64>, %r: <10 x f64>"),
    "what is computed of rows": (
        0,
        6,
        ROW.replace("%r", "%q") + "%e = exp %q: <10 x f64>\n"
        "%k = dataTypeCast %i: i64 to f64\n%r = multiply %e: <10 x f64>, %k: f64\n" + PRODUCT,
    ),
    "of what a product gave": (
        0,
        6,
        ROW + "%p = dot %r: <10 x f64>, %w: <10 x 10 x f64>\n%q = sin %p: <10 x f64>\n"
        "%a = dot %q: <10 x f64>, %w: <10 x 10 x f64>",
    ),
    "rows of several": (
        0,
        6,
        "%m = gather %b: <6 x 3 x 10 x f64> at %i: i64 along 0 bounds inside\n"
        "%p = dot %m: <3 x 10 x f64>, %w: <10 x 10 x f64>\n"
        "%a = reduce %p: <3 x 10 x f64> by add along 0",
    ),
    "beside a loop with two results": (
        0,
        6,
        ROW + "%j, %k = for 0: i64 upto %i: i64 carrying %i: i64, %n: i64 {\n"
        "'inner(%l: i64, %c: i64, %d: i64):\n%o = add %c: i64, %d: i64\nyield %d: i64, %o: i64\n}\n"
        + PRODUCT,
    ),
    "a constant matrix": (
        0,
        6,
        ROW + "%c = literal 0.5: <10 x 10 x f64>\n%a = dot %r: <10 x f64>, %c: <10 x 10 x f64>",
    ),
}
LEFT = {
    "a product of what is carried": (0, 6, "%a = dot %h: <10 x f64>, %w: <10 x 10 x f64>"),
    "three rounds": (0, 3, ROW + PRODUCT),
    "rounds that are not counted": (0, "%n", ROW + PRODUCT),
    "a row that might be outside": (0, 6, ROW.replace("bounds inside", "") + PRODUCT),
    "a matrix of each round": (
        0,
        6,
        "%m = gather %b: <6 x 3 x 10 x f64> at %i: i64 along 0 bounds inside\n"
        "%q = literal 1.0: <3 x f64>\n%a = dot %q: <3 x f64>, %m: <3 x 10 x f64>",
    ),
}


def program(case: tuple[int, object, str]) -> Module:
    lower, upper, lines = case
    text = HEAD + LOOP.format(lower=lower, upper=upper, lines=lines)
    return parse_module(f'module "m"\nstage raw\n{text}')


def products_inside(module: Module) -> int:
    body = module.functions["f"].body
    assert body is not None
    return sum(
        i.op.name == "dot" for block in list(walk_blocks(body))[1:] for i in block.instructions
    )


@pytest.mark.parametrize("case", TAKEN.values(), ids=TAKEN)
def test_products_of_rows_leave_the_loop(case: tuple[int, object, str]) -> None:
    module, changed = program(case), program(case)
    assert apply_pass(DistributeLoops(), changed)
    verify(changed)
    assert not apply_pass(DistributeLoops(), changed)
    apply_pass(DeadCode(), changed)
    verify(changed)
    assert products_inside(changed) == 0
    rng = np.random.default_rng(0)
    shapes = [x.type.shape for x in module.functions["f"].parameters[:5]]  # type: ignore[union-attr]
    arguments = [rng.normal(size=shape) for shape in shapes]
    was, now = (evaluate(m, "f", *arguments, 6) for m in (module, changed))
    np.testing.assert_allclose(np.asarray(now), np.asarray(was), rtol=1e-13)


@pytest.mark.parametrize("case", LEFT.values(), ids=LEFT)
def test_other_products_stay(case: tuple[int, object, str]) -> None:
    module = program(case)
    assert not apply_pass(DistributeLoops(), module)
    verify(module)


def test_a_result_of_all_rounds_that_is_too_large_is_not_made() -> None:
    rounds = FEW_BYTES // (10 * 8)  # by a small matrix
    text = (HEAD + LOOP).replace("<6 x 10", f"<{rounds + 1} x 10")
    for upper, is_taken in ((rounds // 2, True), (rounds + 1, False)):
        lines = (ROW + PRODUCT).replace("<6 x 10", f"<{rounds + 1} x 10")
        source = (
            text.replace("{lower}", "0").replace("{upper}", str(upper)).replace("{lines}", lines)
        )
        module = parse_module(
            'module "m"\nstage raw\n' + source.replace("{{", "{").replace("}}", "}")
        )
        assert apply_pass(DistributeLoops(), module) == is_taken


def test_a_body_may_yield_what_nothing_carried_enters() -> None:
    loop = LOOP.replace("add %h: <10 x f64>", "add %a: <10 x f64>")
    text = HEAD + loop.format(lower=0, upper=6, lines=ROW + PRODUCT)
    module = parse_module(f'module "m"\nstage raw\n{text}')
    assert apply_pass(DistributeLoops(), module)
    verify(module)
