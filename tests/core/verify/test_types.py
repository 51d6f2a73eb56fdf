"""Rules 1 to 5."""

from __future__ import annotations

import time

from nnkit.core.ir import (
    Module,
    Variable,
)
from nnkit.core.ops import (
    Aggregate,
    splat,
)
from nnkit.core.types import (
    F32,
    VOID,
    ArrayType,
    BoxType,
    EnumType,
    FunctionType,
    OpaqueType,
    PointerType,
    StructType,
    TensorType,
    TupleType,
    Type,
)
from nnkit.core.verify import verify, violations
from tests.patience import PATIENCE

from .building import (
    S,
    X,
    found,
    function,
    module_of,
)


def test_rule_1_structs() -> None:
    one, other = StructType("S", (("a", X),)), StructType("S", (("a", S),))
    module = module_of(function(lambda b, x: b.emit(Aggregate(other), b.emit(splat(S, 1))), X))
    module.structs["S"] = one
    assert "two different structs are called $S" in found(module)
    twice = StructType("S", (("a", X), ("a", S)))
    assert "two fields of the struct $S have the same name" in found(Module(structs={"S": twice}))
    assert "the struct $S stands in the module as $T" in found(Module(structs={"T": one}))


def enum(name: str, *cases: tuple[str, tuple[Type, ...]]) -> EnumType:
    made = EnumType(name)
    made.define(cases)
    return made


def with_types(*types: Type) -> Module:
    """A module with definitions of these types."""
    module = Module()
    for type in types:
        match type:
            case StructType():
                module.structs[type.name] = type
            case EnumType():
                module.enums[type.name] = type
            case OpaqueType():
                module.aliases[type.name] = type
            case _:
                module.aliases["Alias"] = type
    return module


def test_rule_1_names_of_types() -> None:
    both = with_types(StructType("T", ()), enum("T", ("a", ())))
    assert set(violations(both)) == {"  $T is both a struct and an enum"}
    named = Module(structs={"T": StructType("T", ())}, aliases={"T": S})
    assert found(named) == "  $T is both a struct and a type"
    assert 'the struct $S stands in the module as $"a b"' in found(
        Module(structs={"a b": StructType("S", ())})
    )
    verify(with_types(enum("a b", ("a", ()))))
    module = with_types(enum("E", ("a", ())))
    module.variables["x"] = Variable("x", PointerType(enum("E", ("b", (S,)))))
    assert found(module) == "  @x: two different enums are called $E"


def test_rule_2_cases() -> None:
    twice = enum("E", ("a", ()), ("a", (S,)))
    assert "two cases of the enum $E have the same name" in found(with_types(twice))


def test_rule_3_enums_have_values() -> None:
    endless = enum("E")
    endless.define([("a", (TupleType((S, endless)),)), ("b", (ArrayType(2, endless),))])
    assert "the enum $E has no finite value: every case carries another value of it" in found(
        with_types(endless)
    )
    assert "the enum $N has no finite value: it has no cases" in found(with_types(enum("N")))
    for by_way_of in (PointerType(endless), BoxType(endless), ArrayType(0, endless)):
        endless.define([("a", (S, by_way_of))])
        verify(with_types(endless))


def test_rule_3_long_chains_take_little_time() -> None:
    count = 20_000
    enums = [EnumType(f"E{n}") for n in range(count)]
    for number, one in enumerate(enums):
        one.define([("a", (enums[number + 1],) if number + 1 < count else ()), ("b", (one,))])
    start = time.process_time()
    verify(with_types(*enums))
    assert time.process_time() - start < 3 * PATIENCE


def test_rule_4_opaque_types_are_defined() -> None:
    module = Module(variables={"x": Variable("x", PointerType(OpaqueType("O")))})
    assert found(module) == "  @x: the opaque type $O is not defined"
    module.aliases["O"] = OpaqueType("O")
    verify(module)
    assert "the opaque type $P is not defined" in "".join(
        violations(Module(aliases={"O": OpaqueType("P")}))
    )


def test_rule_5_sizes() -> None:
    large = TensorType((1 << 45,), F32)
    verify(with_types(large))
    for type in (
        TupleType((large, S)),
        ArrayType(2, large),
        StructType("S", (("a", large), ("b", S))),
    ):
        assert "is larger than the address space" in found(with_types(type))
    verify(with_types(TupleType((PointerType(large), S, FunctionType((large,), large)))))
    assert "larger than the address space" in found(with_types(ArrayType(1 << 48, VOID)))


def test_rule_5_parts() -> None:
    doubled: Type = S
    for _ in range(20):
        doubled = TupleType((doubled, doubled))
    verify(with_types(doubled))
    assert "has more than 1048576 parts" in found(with_types(TupleType((doubled, S))))
