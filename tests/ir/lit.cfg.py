"""`lit tests/ir` runs the RUN lines of every program here; pytest runs the same ones in its own process."""

import re
import sys
from pathlib import Path
from typing import Any

import lit.formats  # type: ignore[import-not-found, unused-ignore]

config: Any = globals()["config"]  # lit puts it there

_HERE = Path(__file__).resolve().parent
_ROOT = _HERE.parent.parent

config.name = "nnkit"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".dl"]
config.test_source_root = str(_HERE)
config.test_exec_root = str(_ROOT / "build" / "lit")
config.environment["PYTHONPATH"] = str(_ROOT)
config.environment["PYTHONUTF8"] = "1"

# a word by itself, not a part of a path; `not` is lit's own
for tool, module in {
    "dlopt": "nnkit.tools.dlopt",
    "dlc": "nnkit.tools.dlc",
    "filecheck": "filecheck",
}.items():
    word = rf"(?<![^\s|;&(]){tool}(?![^\s|;&)])"
    command = f"{re.escape(sys.executable)} -m {module}"
    config.substitutions.append((word, command))
