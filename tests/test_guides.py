"""docs/guides: the programs of each page run, one block after the other, and print what the page says.

What stands behind a `print(…)` as a comment is what it prints, if that is one line.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import nnkit as nk

DOCS = Path(__file__).parent.parent / "docs"
GUIDES = sorted((DOCS / "guides").glob("*.md"))
PAGES = [*GUIDES, DOCS / "ten-programs.md"]
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


def test_a_guide_is_a_page() -> None:
    long = {page.name for page in GUIDES if len(page.read_text().splitlines()) > 80}
    assert not long, f"more than a page: {sorted(long)}"


MISSING = {
    "nk.associative_scan": "lax.associative_scan",
    "nk.erfinv": "erf_inv",
    "nk.fft": "fft",
    "nk.nn.BatchNorm": "layer and RMS norms",
    "nk.nn.ConvTranspose2d": "transposed convolutions",
    "nk.nn.TransformerEncoderLayer": "transformer layers",
    "nk.optim.lbfgs": "L-BFGS",
    "nk.random.gamma": "gamma, beta and Poisson",
    "nk.random.poisson": "gamma, beta and Poisson",
    "nk.c64": "Complex numbers",
    "nk.u8": "unsigned integers",
}
"""What the guides say that one will miss, and in which words: who adds it takes it out of both."""


def test_what_one_will_miss_is_missing() -> None:
    words = "".join(page.read_text() for page in GUIDES)
    for name, said in MISSING.items():
        *path, last = name.split(".")[1:]
        module: Any = nk
        for each in path:
            module = getattr(module, each)
        assert not hasattr(module, last), f"there is {name}: mend the guides in docs/guides"
        assert said in words
