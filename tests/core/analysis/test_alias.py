"""What is said of two pointers holds for the addresses that they have when the program runs."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from nnkit.core.analysis import Aliases
from nnkit.core.compute.lower_memory.data_layout import DataLayout
from nnkit.core.evaluate import evaluate
from nnkit.core.ops.byte_memory import FIRST_ADDRESS
from nnkit.core.ops.memory import pointee_at
from nnkit.core.text import parse_module
from nnkit.core.types import I64, ArrayType, PointerType, StructType, TensorType, Type, scalar
from nnkit.core.types import TupleType as Tuple
from tests.values import Draw

N = scalar(I64)
ROWS = TensorType((2, 3), I64)
PAIR = Tuple((N, TensorType((3,), I64)))
S = StructType("S", (("a", N), ("b", ROWS), ("c", ArrayType(2, PAIR))))

HEAD = """module "m"
stage raw
struct $S { #a: i64, #b: <2 x 3 x i64>, #c: [2 x (i64, <3 x i64>)] }
"""


@st.composite
def pointers(draw: Draw) -> tuple[str, int]:
    """A program that returns the addresses of some pointers into one allocation, and how many there are."""
    whole = draw(st.sampled_from([ROWS, ROWS, PAIR, S]))
    lines = [f"%p0 = allocateStack {whole} count 3"]
    types: list[Type] = [whole]
    for number in range(1, draw(st.integers(3, 7))):
        source = draw(st.sampled_from([0, len(types) - 1]))
        x, given = types[source], f"%p{source}: *{types[source]}"
        if x == N or draw(st.booleans()):
            by = draw(st.sampled_from(["3", "2", "1", "0", "-1", "%j"]))
            lines.append(f"%p{number} = offset {given} by {by}: i64")
            types.append(x)
            continue
        keys: list[str] = []
        inwards = draw(st.integers(1, 4))
        while x != N and len(keys) < inwards:
            match x:
                case StructType():
                    key = draw(st.sampled_from("abc"))
                    keys.append(f"#{key}")
                    x = pointee_at(x, key)
                case Tuple():
                    position = draw(st.integers(0, 1))
                    keys.append(str(position))
                    x = x.elements[position]
                case _:
                    keys.append(draw(st.sampled_from(["0", "1", "%i: i64"])))
                    x = pointee_at(x, None)
        lines.append(f"%p{number} = elementPointer {given} at {', '.join(keys)}")
        types.append(x)
    count = len(types)
    lines += [f"%n{k} = bitCast %p{k}: *{type} to i64" for k, type in enumerate(types)]
    result = f"({', '.join(['i64'] * count)})"
    values = ", ".join(f"%n{k}: i64" for k in range(count))
    text = "\n    ".join([*lines, f"%r = literal ({values}): {result}", f"return %r: {result}"])
    return (
        f"{HEAD}func @f: (i64, i64) -> {result} {{\n'entry(%i: i64, %j: i64):\n    {text}\n}}\n",
        count,
    )


@given(program=pointers(), i=st.integers(-1, 3), j=st.integers(-1, 3))
def test_places_overlap_only_if_it_is_said(program: tuple[str, int], i: int, j: int) -> None:
    text, count = program
    module = parse_module(text)
    body = module.functions["f"].body
    assert body is not None
    found = {i.result.name: i.result for i in body.entry.instructions if i.results}
    made = [found[f"p{k}"] for k in range(count)]
    aliases, layout = Aliases(body), DataLayout()
    addresses = dict(zip(made, map(int, evaluate(module, "f", i, j)), strict=True))
    for a, b in combinations(made, 2):
        if aliases.is_same(a, b):
            assert addresses[a] == addresses[b]
            assert aliases.may_overlap(a, b)
        if min(addresses[a], addresses[b]) < FIRST_ADDRESS or aliases.may_overlap(a, b):
            continue
        assert isinstance(a.type, PointerType) and isinstance(b.type, PointerType)
        ends = {
            p: addresses[p] + layout.extent(t.pointee).bytes for p, t in ((a, a.type), (b, b.type))
        }
        assert ends[a] <= addresses[b] or ends[b] <= addresses[a], f"{a.name} and {b.name}"
