"""Copies of a primal, and which of their values are active."""

from __future__ import annotations

import pytest

from nnkit.core.autodiff.activity import Activity
from nnkit.core.autodiff.primal_copy import copy_primal
from nnkit.core.errors import UnsupportedError
from nnkit.core.ir import Block, Module
from nnkit.core.passes import Flatten, apply_pass
from nnkit.core.types import I32, TupleType

from .building import define, pack, tensor

PAIR = TupleType((tensor(), tensor(dtype=I32)))


def test_packing_and_unpacking_leave_the_same_value() -> None:
    module = Module()
    f = define(module, "f", [PAIR, tensor()], lambda p, x: pack(pack(p, x)[0], p[0])[1])
    apply_pass(Flatten(), module)
    copy = copy_primal(f, 0b001, Activity(module))
    assert copy.results == (copy.arguments[0],)


def test_the_copy_shares_no_value_with_the_primal() -> None:
    module = Module()
    f = define(module, "f", [tensor()], lambda x: x * x + 1.0)
    copy = copy_primal(f, 1, Activity(module))
    own = {v for i in f.entry.instructions for v in (*i.operands, *i.results)}
    for instruction in copy.builder.block.instructions:
        assert own.isdisjoint((*instruction.operands, *instruction.results))
        assert all(result.producer is instruction for result in instruction.results)


def test_values_that_depend_on_what_is_wanted_are_active() -> None:
    module = Module()
    f = define(module, "f", [PAIR, tensor()], lambda p, x: (p[0] * 2.0, x * p[0], x))
    apply_pass(Flatten(), module)
    by_pair, by_x = (copy_primal(f, wanted, Activity(module)) for wanted in (0b011, 0b100))
    assert [x in by_pair.active for x in by_pair.results] == [True, True, False]
    assert [x in by_pair.active for x in by_pair.arguments] == [True, False, False]
    assert [x in by_x.active for x in by_x.results] == [False, True, True]


def test_a_function_of_several_blocks_is_refused() -> None:
    module = Module()
    f = define(module, "f", [tensor()], lambda x: x * x)
    assert f.body is not None
    f.body.blocks.append(Block(name="other"))
    with pytest.raises(UnsupportedError, match="@f branches between blocks"):
        copy_primal(f, 1, Activity(module))
