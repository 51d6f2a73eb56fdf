"""docs/glossary.md: few names, all of them there; and no name of the project has two meanings."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs/glossary.md").read_text()
ENTRIES = re.findall(r"^- `(\w+)` \(`([\w/]+\.py)`\): (.+)$", PAGE, re.MULTILINE)
SHARED = {"DType", "Key", "Linear", "Symbol"}
"""Names that several modules define: element types, the compiler's and the language's, and aliases of one type each.

A linear op is called as in the theory of derivatives, a layer as in PyTorch.
"""


def test_the_page_is_short() -> None:
    assert 20 <= len(ENTRIES) <= 40
    assert len(ENTRIES) == len(re.findall(r"^- ", PAGE, re.MULTILINE)), "an entry of another form"


@pytest.mark.parametrize(("name", "file", "text"), ENTRIES)
def test_an_entry_is_one_sentence_on_what_is_there(name: str, file: str, text: str) -> None:
    assert text.endswith(".") and ". " not in text
    assert name in dict(definitions(ROOT / file))


def definitions(path: Path) -> Iterator[tuple[str, ast.stmt]]:
    """The classes, functions, constants and types that a file defines."""
    for node in ast.parse(path.read_text()).body:
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
                yield name, node
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name, node
            case _:
                pass


def is_type(node: ast.stmt) -> bool:
    """Whether a definition is that of a class or of a name for a type."""
    return isinstance(node, ast.ClassDef) or (
        isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "TypeAlias"
    )


def test_a_name_of_a_type_has_one_meaning() -> None:
    homes: dict[str, list[str]] = defaultdict(list)
    for package in ("core", "jit", "staging", "nnkit"):
        for path in sorted((ROOT / package).rglob("*.py")):
            if not any(parent.is_symlink() for parent in path.parents):
                for name, node in definitions(path):
                    if is_type(node) and not name.startswith("_"):
                        homes[name].append(str(path.relative_to(ROOT)))
    twice = {name: found for name, found in homes.items() if len(found) > 1}
    assert {*twice} <= SHARED, {name: found for name, found in twice.items() if name not in SHARED}
