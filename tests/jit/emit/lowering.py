"""Programs as text through every stage: what each computes, and what compiled code does."""

from __future__ import annotations

from typing import Any

import numpy as np

from nnkit.core.compute.fuse import fuse
from nnkit.core.compute.generate import generate_compute
from nnkit.core.compute.lower_memory.lower import lower_memory
from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Module, Stage
from nnkit.core.passes.base import apply_pass
from nnkit.core.passes.isolate import Isolate
from nnkit.core.schedule.plan import schedule
from nnkit.core.schedule.target import Target
from nnkit.core.text import parse_module, print_module
from nnkit.core.types import Array
from nnkit.core.verify import verify

from .running import run

DECISIONS = (
    (False, Target(vector_bytes=64)),
    (True, Target(vector_bytes=64)),
    # caches so small that nests over the same rows run side by side
    (True, Target(l1_bytes=64)),
)
"""Whether nests are fused, and for which machine they are scheduled."""

HEAD = 'module "control"\nstage raw\n'


def parsed(text: str) -> Module:
    """The module whose functions are written in `text`."""
    module = parse_module(HEAD + text)
    verify(module)
    return module


def scheduled_module(text: str, *, fused: bool = True, target: Target = DECISIONS[0][1]) -> Module:
    """The same at the end of stage schedule."""
    module = parsed(text)
    module.stage = Stage.OPTIMIZABLE
    apply_pass(Isolate(), module)
    lower_memory(module)
    generate_compute(module)
    if fused:
        fuse(module)
    schedule(module, target)
    verify(module)
    return module


def flat(result: Any) -> list[Array]:
    """One array per tensor of a result."""
    return list(result) if isinstance(result, tuple) else [result]


def check(text: str, *arguments: Any, exact: bool = True) -> list[Array]:
    """The results of @f, which every stage and compiled code agree on; sums up to rounding unless `exact`."""
    arrays = [np.asarray(argument) for argument in arguments]
    module = parsed(text)
    wanted = flat(evaluate(module, "f", *arrays))
    module.stage = Stage.OPTIMIZABLE
    apply_pass(Isolate(), module)
    assert_stage(module, arrays, wanted, exact=exact)
    lower_memory(module)
    assert_stage(module, arrays, wanted, exact=exact)
    generate_compute(module)
    assert_stage(module, arrays, wanted, exact=exact)
    for fused, target in DECISIONS:
        final = scheduled_module(text, fused=fused, target=target)
        assert_stage(final, arrays, wanted, exact=exact)
        same(run(final.functions["f"], arrays, final.functions), wanted, exact=exact)
    return wanted


def assert_stage(
    module: Module, arrays: list[Array], wanted: list[Array], *, exact: bool = True
) -> None:
    """Assert that a module is sound, can be printed and parsed, and computes what is wanted."""
    verify(module)
    text = print_module(module)
    again = parse_module(text)
    verify(again)
    assert print_module(again) == text
    same(flat(evaluate(again, "f", *arrays)), wanted, exact=exact)


def same(found: list[Array], wanted: list[Array], *, exact: bool = True) -> None:
    for x, y in zip(found, wanted, strict=True):
        if exact:
            np.testing.assert_array_equal(x, y, strict=True)
        else:
            np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6)
