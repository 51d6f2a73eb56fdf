"""Where violations are: definitions, blocks, declarations and attributes know their place, as instructions do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from nnkit.core.ir import Block, Function, Module
from nnkit.core.ir.surgery import clone_module
from nnkit.core.location import Location
from nnkit.core.text import parse_module
from nnkit.core.verify import violations
from nnkit.core.verify.error_location import location_lines, with_locations


class At(NamedTuple):
    """A place that is known already."""

    place: Location | None

    def resolve(self) -> Location | None:
        return self.place


F = """\
module "m"

func @f: (f32) -> f32 {
'entry(%x: f32):
    return %x: f32
}

"""


def messages(text: str, folder: Path, change: Callable[[Module], Module] = clone_module) -> str:
    """What is wrong with the module that the file `model.dl` holds, or with a copy of it."""
    module = parse_module(text, f"{folder}/model.dl")  # a text that is in no file
    before, after = violations(module), violations(change(module))
    assert after == before
    return "\n".join(before)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            F.replace("    return", "    %y = exp"),
            """\
  @f: the block 'entry does not end with a terminator
    at: model.dl:4  'entry(%x: f32):
                    ^^^^^^""",
        ),
        (
            F.replace("(f32) -> f32", "(f32, f32) -> f32"),
            """\
  @f: the entry takes (f32), the function (f32, f32)
    at: model.dl:4  'entry(%x: f32):
                    ^^^^^^""",
        ),
        (
            F + "[gradient @f]\n  func @df: (f32) -> f64\n",
            """\
  @df: is declared as (f32) -> f64; the gradient is (f32) -> f32
    at: model.dl:9  func @df: (f32) -> f64
                         ^^^""",
        ),
        (
            F + "[tangent @f]\n  func @df: (f32) -> f32\n",
            """\
  @df: is declared as (f32) -> f32; the tangent is (f32, f32) -> f32
    at: model.dl:9  func @df: (f32) -> f32
                         ^^^""",
        ),
        (
            F + "[gradient @f wrt 3]\nfunc @df: (f32) -> f32\n",
            """\
  @df: wrt 3 is out of range: @f has 1 parameter
    at: model.dl:8  [gradient @f wrt 3]
                     ^^^^^^^^""",
        ),
        (
            F + "[gradient @g]\nfunc @df: (f32) -> f32\n",
            """\
  @df: is the gradient of @g, which does not exist
    at: model.dl:8  [gradient @g]
                     ^^^^^^^^""",
        ),
        (
            F.replace("func", "!fast func"),
            """\
  @f: has the attribute !fast; known are !inline, !noinline, !checkpoint
    at: model.dl:3  !fast func @f: (f32) -> f32 {
                    ^^^^^""",
        ),
        (
            F.replace("func", '!inline !"very fast"\nfunc'),
            """\
  @f: has the attribute !"very fast"; known are !inline, !noinline, !checkpoint
    at: model.dl:3  !inline !"very fast"
                            ^^^^^^^^^^^^""",
        ),
        (
            F + "var @v: (<35184372088832 x f32>, f32)\n",
            """\
  @v: a value of type (<35184372088832 x f32>, f32) is larger than the address space
    at: model.dl:8  var @v: (<35184372088832 x f32>, f32)
                        ^^""",
        ),
        (
            F + "struct $S { #a: <35184372088832 x f32>, #b: f32 }\n",
            """\
  a value of type $S is larger than the address space
    at: model.dl:8  struct $S { #a: <35184372088832 x f32>, #b: f32 }
                           ^^""",
        ),
        (
            F + "type $A = (<35184372088832 x f32>, f32)\n",
            """\
  a value of type (<35184372088832 x f32>, f32) is larger than the address space
    at: model.dl:8  type $A = (<35184372088832 x f32>, f32)
                         ^^""",
        ),
        (
            F + "enum $L { ?more(i32, $L) }\n",
            """\
  the enum $L has no finite value: every case carries another value of it
    at: model.dl:8  enum $L { ?more(i32, $L) }
                         ^^""",
        ),
        (
            F + "func @h: (f32) -> f32\n",
            """\
  @h: has neither a body nor a declaration of what it is
    at: model.dl:8  func @h: (f32) -> f32
                         ^^""",
        ),
        (
            F + "[extern]\nfunc @h: ((<35184372088832 x f32>, f32)) -> f32\n",
            """\
  @h: a value of type (<35184372088832 x f32>, f32) is larger than the address space
    at: model.dl:9  func @h: ((<35184372088832 x f32>, f32)) -> f32
                         ^^""",
        ),
        (
            F.replace(
                "    return",
                "    %z = literal undefined: (<35184372088832 x f32>, f32)\n    return",
            ),
            """\
  @f: a value of type (<35184372088832 x f32>, f32) is larger than the address space
    at: model.dl:5  %z = literal undefined: (<35184372088832 x f32>, f32)
                         ^^^^^^^""",
        ),
    ],
)
def test_what_is_wrong_is_shown_in_the_text(text: str, expected: str, tmp_path: Path) -> None:
    assert messages(text, tmp_path) == expected


def test_blocks_in_bodies_have_a_place(tmp_path: Path) -> None:
    inner = """\
    %c = literal true: bool
    %y = if %c: bool -> f32 {
    'then():
        yield %x: f32
    } else {
    'else():
        %z = exp %x: f32
    }
"""
    found = messages(F.replace("    return", f"{inner}    return"), tmp_path)
    assert found == (
        "  @f: the block 'else does not end with a terminator\n"
        "    at: model.dl:10  'else():\n"
        "                     ^^^^^"
    )


def test_the_nearest_place_that_is_known_is_shown() -> None:
    module = parse_module(F, "model.dl")
    function = module.functions["f"]
    function.entry.instructions.pop().erase()
    assert "\n    at: model.dl:4  'entry(%x: f32):\n" in violations(module)[0]
    function.entry.location = None
    assert "\n    at: model.dl:3  func @f" in violations(module)[0]
    function.location = None
    assert violations(module) == ["  @f: the block 'entry does not end with a terminator"]


def test_places_of_messages() -> None:
    place = At(Location("/models/a.dl", 7))
    assert with_locations(["a", "b"], None, place) == ["a\n    at: a.dl:7", "b\n    at: a.dl:7"]
    assert with_locations(["a"], At(None), place) == ["a\n    at: a.dl:7"]
    assert with_locations(["a"], None) == ["a"]
    assert location_lines(At(None)) == location_lines(None) == ""


def test_a_place_that_fails_hides_no_violation() -> None:
    class Broken:
        def resolve(self) -> Location:
            raise ValueError("no such place")

    module = parse_module(F)
    module.functions["f"] = Function("f", module.functions["f"].type, location=Broken())
    assert violations(module) == ["  @f: has neither a body nor a declaration of what it is"]


def test_places_mean_nothing() -> None:
    """A declaration with another place is the same declaration."""
    text = F + "[gradient @f] func @a: (f32) -> f32 [gradient @f] func @b: (f32) -> f32"
    module = parse_module(text)
    one, other = module.functions["a"].declaration, module.functions["b"].declaration
    assert one == other and hash(one) == hash(other)
    assert "location" not in repr(one)
    assert Block().location is None
