"""Copies of functions that compute values again, without what the world outside sees."""

from __future__ import annotations

from nnkit.core.autodiff.recomputation import Recomputation
from nnkit.core.ir.surgery import walk
from nnkit.core.text import parse_module, print_module
from nnkit.core.verify import verify

TEXT = """module "m"
stage raw
func @quiet: (f64) -> f64 {
'entry(%x: f64):
    %y = sin %x: f64
    return %y: f64
}
func @loud: (f64) -> f64 {
'entry(%x: f64):
    print "{}" of %x: f64
    %y = apply @quiet(%x): (f64) -> f64
    return %y: f64
}
func @outer: (f64) -> f64 {
'entry(%x: f64):
    %r = for 0: i64 upto 3: i64 carrying %x: f64 {
    'body(%i: i64, %s: f64):
        %c = equal %s: f64, %s: f64
        check %c: bool because "nan"
        %y = apply @loud(%s): (f64) -> f64
        yield %y: f64
    }
    return %r: f64
}
"""


def test_a_function_without_effects_is_its_own_copy() -> None:
    module = parse_module(TEXT)
    assert Recomputation(module).of_function(module.functions["quiet"]).name == "quiet"
    assert print_module(module) == print_module(parse_module(TEXT))


def test_a_copy_leaves_them_out_in_bodies_and_calls_and_is_made_once() -> None:
    module = parse_module(TEXT)
    before = {name: print_module(module).count(name) for name in ("print", "check ")}
    again = Recomputation(module)
    copy = again.of_function(module.functions["outer"])
    assert again.of_function(module.functions["outer"]) is copy
    verify(module)
    assert [*module.functions] == ["quiet", "loud", "outer", "outer_again", "loud_again"]
    for name in ("outer_again", "loud_again"):
        body = module.functions[name].body
        assert body is not None and not any(i.op.is_observable for i in walk(body))
    assert {name: print_module(module).count(name) for name in before} == before
