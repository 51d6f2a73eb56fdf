"""Modules: names, and the structs that their types mention."""

from __future__ import annotations

import pytest

from nnkit.core.errors import InternalError
from nnkit.core.ir import Function, Module
from nnkit.core.ir.module import nominals_in
from nnkit.core.types import F32, VOID, FunctionType, StructType, TupleType, scalar

INNER = StructType("Inner", (("x", scalar(F32)),))
OUTER = StructType(
    "Outer", (("pair", TupleType((INNER, INNER))), ("f", FunctionType((INNER,), VOID)))
)


def test_a_name_is_given_once() -> None:
    module = Module()
    function = module.add(Function("f", FunctionType((), VOID)))
    assert module.functions["f"] is function
    with pytest.raises(InternalError, match="@f is already defined"):
        module.add(Function("f", FunctionType((), VOID)))
    assert module.fresh_name("g") == "g"
    assert module.fresh_name("f") == "f_1"
    module.add(Function("f_1", FunctionType((), VOID)))
    assert module.fresh_name("f") == "f_2"


def test_structs_come_after_those_inside_them() -> None:
    type = FunctionType((TupleType((OUTER,)),), INNER)
    assert nominals_in(type) == [INNER, OUTER]
    assert nominals_in(scalar(F32)) == []
    module = Module()
    module.add(Function("f", type))
    assert list(module.structs) == ["Inner", "Outer"]


def test_two_structs_of_one_name_are_refused() -> None:
    module = Module()
    module.add_structs(INNER)
    with pytest.raises(InternalError, match=r"two different types are called \$Inner"):
        module.add_structs(StructType("Inner", ()))


def test_deep_types_take_no_stack() -> None:
    type = TupleType((INNER,))
    for _ in range(400):
        type = TupleType((type,))
    assert nominals_in(type) == [INNER]


def test_a_declaration_has_no_entry() -> None:
    with pytest.raises(InternalError, match="@f is a declaration and has no body"):
        assert Function("f", FunctionType((), VOID)).entry
