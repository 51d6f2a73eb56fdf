"""The modules in `tests/ir/verify`, each of which parses and breaks the rule whose number it begins with.

`// CHECK:` lines are found in the order of the messages, `// CHECK-NEXT:` in the following line, and
`// CHECK-NOT:` nowhere.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from nnkit.core import verify as verify_package
from nnkit.core.errors import VerifyError
from nnkit.core.text import parse_module, print_module
from nnkit.core.verify import verify, violations

FOLDER = Path(__file__).parents[2] / "ir" / "verify"
FILES = sorted(FOLDER.glob("*.dl"))
CHECK = re.compile(r"^// CHECK(-NEXT|-NOT|): (.*)$", re.MULTILINE)
NOT_IN_TEXT = {1, 2, 4, 6, 16, 17, 19, 20, 25}
"""The rules that no text which parses can break: the parser knows them too."""


def messages(path: Path) -> str:
    with pytest.raises(VerifyError) as caught:
        verify(parse_module(path.read_text(), str(path)))
    return str(caught.value)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_is_wrong_is_said(path: Path) -> None:
    text = path.read_text()
    assert text.startswith("// RUN: not dlopt %s 2>&1 | filecheck %s\n// CHECK: ")
    remaining = messages(path)
    for kind, expected in CHECK.findall(text):
        if kind == "-NOT":
            assert expected not in remaining
            continue
        line, found, remaining = remaining.partition(expected)
        assert found, f"{expected!r} is not in\n{line}"
        assert kind == "" or line.count("\n") == 1


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_violation_is_promised(path: Path) -> None:
    """Nothing else is wrong with these modules: one rule, one message for each place."""
    promised = [expected for kind, expected in CHECK.findall(path.read_text()) if kind == ""]
    found = violations(parse_module(path.read_text(), str(path)))
    assert len(found) == len(promised), "\n".join(found)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_is_wrong_can_be_printed_and_is_still_wrong(path: Path) -> None:
    module = parse_module(path.read_text(), str(path))
    again = parse_module(print_module(module))
    assert len(violations(again)) == len(violations(module))


def test_every_rule_has_a_file() -> None:
    rules = re.findall(r"^\S*\s+(\d+)\. ", verify_package.__doc__ or "", re.MULTILINE)
    numbers = {int(path.stem[:2]) for path in FILES}
    assert numbers | NOT_IN_TEXT == set(map(int, rules))
    assert not numbers & NOT_IN_TEXT
