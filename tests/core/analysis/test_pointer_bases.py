"""Bases of pointers: through steps, choices and loops."""

from __future__ import annotations

from nnkit.core.analysis.pointer_bases import PointerBases, uses_memory
from nnkit.core.ir import Value
from nnkit.core.ir.surgery import walk
from nnkit.core.text import parse_module

TEXT = """module "m"
stage raw
struct $S { #a: f64, #b: <3 x f64> }
func @f: (*f64, bool, i64) -> f64 {
'entry(%given: *f64, %c: bool, %i: i64):
    %stack = allocateStack $S count 2
    %second = offset %stack: *$S by %i: i64
    %inside = elementPointer %second: *$S at #b, %i: i64
    %heap = allocateHeap f64 count %i: i64
    %box = allocateBox f64
    %content = projectBox %box: box{f64}
    %chosen = if %c: bool -> *f64 {
    'then():
        yield %inside: *f64
    } else {
    'else():
        %next = offset %heap: *f64 by 1: i64
        yield %next: *f64
    }
    %carried = for 0: i64 upto %i: i64 carrying %given: *f64 {
    'body(%j: i64, %before: *f64):
        %after = offset %before: *f64 by 1: i64
        yield %after: *f64
    }
    %number = bitCast %heap: *f64 to i64
    %cast = bitCast %number: i64 to *f64
    %x = load %cast: *f64
    return %x: f64
}
"""


def test_what_pointers_lead_into() -> None:
    body = parse_module(TEXT).functions["f"].body
    assert body is not None
    assert uses_memory(body)
    values: dict[str | None, Value] = {x.name: x for x in body.entry.arguments}
    values |= {x.name: x for i in walk(body) for x in i.results}
    values |= {x.name: x for i in walk(body) for r in i.regions for x in r.entry.arguments}
    bases = PointerBases(body)
    expected = {
        "inside": {"stack"},
        "content": {"box"},
        "chosen": {"stack", "heap"},
        "carried": {"given"},
        "before": {"given"},
        "cast": {"cast"},
    }
    for name, wanted in expected.items():
        assert {base.name for base in bases.of(values[name])} == wanted
    known = {
        name for name in ("stack", "heap", "box", "given", "cast") if bases.is_known(values[name])
    }
    assert known == {"stack", "heap", "box", "given"}
