"""The expression DAG: sharing, traces, free expressions, and errors with their place."""

from __future__ import annotations

from typing import Any

import pytest

from nnkit.core.errors import StagingError
from nnkit.core.ops import Add
from nnkit.core.types import F32
from nnkit.staging.expression import (
    Expression,
    Parameter,
    Primitive,
    Trace,
    depends_on_parameters,
    free_expressions,
)
from nnkit.staging.spec import TensorSpec
from nnkit.staging.tracing import check_alive, current_trace, make, tracing

VECTOR = TensorSpec(1, F32)


def parameter(trace: Trace | None, index: int = 0) -> Expression:
    return Expression(Parameter(index, "x"), (), VECTOR, None, trace)


def test_a_node_belongs_to_the_innermost_trace() -> None:
    outer, inner = Trace("outer", ()), Trace("inner", ())
    assert current_trace() is None
    with tracing(outer):
        x = parameter(outer)
        with tracing(inner):
            assert make(Primitive(Add()), (x, x), VECTOR).trace is inner
        assert make(Primitive(Add()), (x, x), VECTOR).trace is outer
    assert current_trace() is None
    with pytest.raises(StagingError, match="a Rep of outer is used outside of it"):
        check_alive([x], None)


def test_a_trace_ends_also_by_an_error() -> None:
    with pytest.raises(ZeroDivisionError), tracing(Trace("fails", ())):
        1 / 0  # noqa: B018
    assert current_trace() is None


def test_free_expressions_are_those_of_enclosing_traces_in_order_of_use() -> None:
    outer, inner = Trace("outer", ()), Trace("inner", ())
    with tracing(outer):
        x, y = parameter(outer, 0), parameter(outer, 1)
        both = make(Primitive(Add()), (x, y), VECTOR)
        with tracing(inner):
            z = parameter(inner)
            first = make(Primitive(Add()), (y, z), VECTOR)
            second = make(Primitive(Add()), (both, first), VECTOR)
            root = make(Primitive(Add()), (second, y), VECTOR)
    assert free_expressions([root], inner) == (both, y)


def test_dependence_and_depth() -> None:
    x = parameter(None)
    constant: Any = Expression(Primitive(Add()), (), VECTOR, None, None)
    for _ in range(50_000):  # deeper than Python's stack
        x = Expression(Primitive(Add()), (x, x), VECTOR, None, None)
        constant = Expression(Primitive(Add()), (constant, constant), VECTOR, None, None)
    assert depends_on_parameters(x) and not depends_on_parameters(constant)
    assert free_expressions([constant], Trace("t", ())) == ()
