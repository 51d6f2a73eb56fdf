"""docs/tour.md: the files it names are there, and what it says to read in them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.rows import each

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs/tour.md").read_text()
FILES = sorted(set(re.findall(r"`((?:core|jit|staging|nnkit|tests)/[\w/]+\.py)`", PAGE)))
NAMED = re.findall(r"`(\w+)`(?:,\s*|\s*\()`((?:core|jit|staging|nnkit)/[\w/]+\.py)`", PAGE)


def test_the_page_names_what_it_meets() -> None:
    assert len(FILES) > 30 and len(NAMED) > 25


@each("file", FILES)
def test_a_file_is_there(file: str) -> None:
    assert (ROOT / file).is_file()


@pytest.mark.parametrize(("name", "file"), NAMED)
def test_what_is_named_is_in_its_file(name: str, file: str) -> None:
    text = (ROOT / file).read_text()
    assert re.search(rf"^(?:async )?(?:def|class) {name}\b|^{name}\s*[:=]", text, re.MULTILINE)
