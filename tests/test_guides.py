"""docs/guides: the programs of each page run, one block after the other, and print what the page says.

What stands behind a `print(…)` as a comment is what it prints, if that is one line.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGES = sorted((Path(__file__).parent.parent / "docs" / "guides").glob("*.md"))
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PRINTS = re.compile(r"^print\(.*\)  # (.*)$", re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_runs(
    page: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks = BLOCK.findall(page.read_text())
    assert blocks, f"{page.name} has no program"
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "guide"}
    for number, block in enumerate(blocks):
        program = tmp_path / f"{page.stem}_{number}.py"  # so that messages can show its lines
        program.write_text(block)
        exec(compile(block, str(program), "exec"), names)
    printed = capsys.readouterr().out.splitlines()
    for expected in PRINTS.findall("".join(blocks)):
        assert expected in printed
