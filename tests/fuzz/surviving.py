"""What must hold for every text: errors of ours that tell the user, and soon, or a result."""

from __future__ import annotations

import inspect
import time
from typing import Any

import numpy as np

from nnkit.core.analysis.call_graph import roots
from nnkit.core.driver.stages import advance
from nnkit.core.errors import InternalError, NNKitError
from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Function, Module
from nnkit.core.ir.surgery import walk
from nnkit.core.passes import Pipeline, run_pipeline
from nnkit.core.stage import Stage
from nnkit.core.text import parse_module, print_module
from nnkit.core.types import ArrayType, TensorType, Type, elements_of
from nnkit.core.verify import verify

LIMIT = 5.0
"""Seconds that a case of a few hundred lines may take."""

_SMALL = 1 << 16
"""Bytes of the tensors that are computed with."""

_BUDGET: dict[str, Any] = (
    {"fuel": 10_000} if "fuel" in inspect.signature(evaluate).parameters else {}
)


def survive(text: str) -> str:
    """Take a text as far as it goes: parse, verify, print, optimise, generate code, evaluate; where it ended.

    Raises: whatever is no error for the user to read.
    """
    start = time.process_time()
    reached = _run(text)
    took = time.process_time() - start
    assert took < LIMIT, f"{reached} after {took:.1f} s"
    return reached


def _run(text: str) -> str:
    reached = "parse"
    try:
        module = parse_module(text)
        reached = "verify"
        verify(module)
        reached = "print"
        assert print_module(parse_module(print_module(module))) == print_module(module)
        reached = "evaluate"
        _evaluate_all(module)
        if module.stage is Stage.RAW:
            reached = "optimize"
            advance(module, Stage.OPTIMIZABLE, run=_run_verified)
            reached = "evaluate again"
            _evaluate_all(module)
        if not module.stage.has_reached(Stage.COMPUTE) and not _is_huge(module):
            reached = "compute"
            advance(module, Stage.COMPUTE, *roots(module), run=_run_verified)
        reached = "end"
    except InternalError:
        raise
    except NNKitError as error:
        assert str(error).strip(), "an error without a message"
    return reached


def _run_verified(module: Module, pipeline: Pipeline) -> None:
    run_pipeline(module, pipeline, verifier=verify, verify=True)


def _evaluate_all(module: Module) -> None:
    for function in list(module.functions.values()):
        if function.body is not None and not _is_huge(module):
            arguments = [_zero(type) for type in function.type.parameters]
            if None not in map(type_name, arguments):
                try:
                    evaluate(module, function.name, *arguments, **_BUDGET)
                except InternalError:
                    raise
                except NNKitError:
                    pass


def type_name(value: Any) -> str | None:
    """None for what stands for no value."""
    return None if value is None else type(value).__name__


def _zero(type: Type) -> Any:
    """A value of this type; None when there is none to be had."""
    elements = elements_of(type) if not isinstance(type, ArrayType) or type.count < 100 else None
    if elements is not None:
        values = tuple(map(_zero, elements))
        return None if any(value is None for value in values) else values
    if isinstance(type, TensorType) and type.bytes <= _SMALL:
        return np.zeros(type.shape, type.dtype.numpy)
    return None


def _is_huge(module: Module) -> bool:
    return any(map(_has_huge, module.functions.values()))


def _has_huge(function: Function) -> bool:
    if function.body is None:
        return False
    values = [*function.parameters, *(r for i in walk(function.body) for r in i.results)]
    return any(isinstance(v.type, TensorType) and v.type.bytes > _SMALL for v in values)
