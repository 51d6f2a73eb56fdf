"""`docs/passes.md` is what `docs/generate_passes.py` writes now, has every pass, and its examples pay."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

from nnkit.core.analysis import Analyses
from nnkit.core.errors import InternalError
from nnkit.core.ir import Function
from nnkit.core.ir.surgery import walk
from nnkit.core.ops import Dot, Transpose
from nnkit.core.passes import ALL, FunctionPass, ModulePass, run_pipeline
from nnkit.core.passes.base import describe
from nnkit.core.passes.rules import FAST_MATH, FINAL, STRICT
from nnkit.core.text import parse_module
from nnkit.core.verify import verify
from nnkit.tools.passes import passes_of

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "passes.md"
GENERATOR = ROOT / "docs" / "generate_passes.py"
sys.path.insert(0, str(GENERATOR.parent))

from generate_passes import PROGRAMS, SLIDES, example_of, laws_in, steps, themes_of, where_tested  # noqa: E402

PREPARES = {
    "canonicalize-cfg",
    "structurize",
    "expand",
    "isolate",
    "split-memory",
    "index-pointers",
    "interleave-stacks",
}
"""Passes that make nothing cheaper by what is counted, but possible, or another layout."""

PassClass = type[FunctionPass] | type[ModulePass]
each_pass = pytest.mark.parametrize("pass_class", ALL, ids=lambda pass_class: pass_class.name)


def sections() -> dict[str, str]:
    """The text under each heading."""
    parts = re.split(r"^## (.*)$", PAGE.read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_the_page_is_up_to_date(tmp_path: Path) -> None:
    written = tmp_path / "passes.md"
    subprocess.run([sys.executable, str(GENERATOR), str(written)], check=True)
    assert written.read_text() == PAGE.read_text(), "run python docs/generate_passes.py"


def test_every_pass_is_listed_and_has_a_program() -> None:
    names = [pass_class.name for pass_class in ALL]
    table = re.findall(r"^\| \[([\w-]+)\]\(#", PAGE.read_text(), flags=re.MULTILINE)
    assert table == names
    assert set(names) <= set(sections())
    assert sorted(path.stem for path in PROGRAMS.glob("*.dl")) == sorted(names)


@each_pass
def test_a_pass_says_what_it_needs_keeps_and_costs(pass_class: PassClass) -> None:
    said, text = describe(pass_class), sections()[pass_class.name]
    assert all(f": {part}" in text for part in (said.requires, said.preserves, said.cost))
    assert said.summary.endswith(".") and said.summary in text
    assert inspect.getdoc(pass_class) and where_tested(pass_class)


@each_pass
def test_an_example_pays_and_is_shown(pass_class: PassClass) -> None:
    example, text = example_of(pass_class), sections()[pass_class.name]
    assert f"```\n{example.before}\n```" in text and f"```\n{example.after}\n```" in text
    assert example.before != example.after
    before, after = (numbers.whole for numbers in example.numbers)
    if pass_class.name not in PREPARES:
        pairs = zip(before.counts, after.counts, strict=True)
        assert any(new.terms < old.terms for old, new in pairs)
    for count in (*before.counts, *after.counts):
        assert f" {count} |" in text


def test_every_law_of_the_rules_is_listed() -> None:
    text = sections()["Laws"]
    themes = {theme for pass_class in ALL for theme in themes_of(pass_class)}
    books = (STRICT, FAST_MATH, FINAL)
    modules = {law.__module__ for book in books for laws in book.values() for law in laws}
    assert modules == {theme.__name__ for theme in themes}
    for theme in themes:
        laws = laws_in(theme)
        assert laws and all(f"- {law}\n" in text for law in laws)
    assert "- x · 1 = x\n" in text and "- (Aᵖ)ᵠ = Aᵖᵠ\n" in text


def test_the_demonstration_ends_with_one_transpose_and_no_forward_product() -> None:
    assert [len(passes_of(step)) if step else 0 for step in steps()] == [0, 1, 2, 3, 5]
    module = parse_module(SLIDES.read_text())
    run_pipeline(module, passes_of(steps()[-1]), verifier=verify, verify=True)
    assert list(module.functions) == ["gradients"]
    body = module.functions["gradients"].body
    assert body is not None
    (transposed,) = [i for i in walk(body) if isinstance(i.op, Transpose)]
    (product,) = [i for i in walk(body) if isinstance(i.op, Dot)]
    assert product.operands[0] is transposed.result


def test_a_pass_that_does_not_say_enough_is_refused() -> None:
    @dataclass(frozen=True)
    class Quiet(FunctionPass):
        """Does nothing.

        Requires: nothing.
        Cost: none.
        """

        name: ClassVar[str] = "quiet"

        def run(self, function: Function, analyses: Analyses) -> bool:
            return False

    with pytest.raises(InternalError, match="'quiet' does not say: Preserves"):
        describe(Quiet)
