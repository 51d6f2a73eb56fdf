"""`docs/functions.md` is what `docs/generate_functions.py` writes now, and has every function of tensors."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import nnkit

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "functions.md"


def test_the_page_is_up_to_date(tmp_path: Path) -> None:
    written = tmp_path / "functions.md"
    generator = str(ROOT / "docs" / "generate_functions.py")
    subprocess.run([sys.executable, generator, str(written)], check=True)
    assert written.read_text() == PAGE.read_text(), "run python docs/generate_functions.py"


def test_the_page_has_every_function() -> None:
    homes: Any = nnkit._HOMES  # type: ignore[attr-defined]
    shown = """batching composed differentiation elementwise functions jacobian_products jacobians linearization
        splitting"""
    named = {name for home in shown.split() for name in homes[home].split()}
    public = {name for name in named if name.islower()}  # the others are classes
    assert set(re.findall(r"^\| `(\w+)\(", PAGE.read_text(), re.M)) == public
