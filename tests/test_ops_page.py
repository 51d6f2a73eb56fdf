"""`docs/ops.md` is what `docs/generate_ops.py` writes now, has every op, and its examples are IR."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from nnkit.core.ir import Op
from nnkit.core.text import parse_module
from nnkit.core.text.control_flow_syntax import BRANCHES, STRUCTURED
from nnkit.core.text.operations import OPS
from nnkit.core.verify import verify
from tests.rows import each

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "ops.md"
GENERATOR = ROOT / "docs" / "generate_ops.py"
sys.path.insert(0, str(GENERATOR.parent))

from generate_ops import OPS as IN_PAGE  # noqa: E402
from generate_ops import Example, derivative, examples  # noqa: E402

EXAMPLES = examples()


def entries() -> dict[str, str]:
    """The text under each heading of an op."""
    parts = re.split(r"^### (\w+)$|^## .*$", PAGE.read_text(), flags=re.MULTILINE)
    return {name: text for name, text in zip(parts[1::2], parts[2::2], strict=True) if name}


def test_the_page_is_up_to_date(tmp_path: Path) -> None:
    written = tmp_path / "ops.md"
    subprocess.run([sys.executable, str(GENERATOR), str(written)], check=True)
    assert written.read_text() == PAGE.read_text(), "run python docs/generate_ops.py"


def test_the_page_has_every_op_that_can_be_written() -> None:
    assert sorted(entries()) == sorted(op.name for op in IN_PAGE)
    assert set(OPS.values()) <= set(IN_PAGE)
    assert {"literal", "apply", *BRANCHES, *STRUCTURED} <= set(entries())


@each("op", IN_PAGE, ids=lambda op: op.name)
def test_examples_are_ir(op: type[Op]) -> None:
    example: Example = EXAMPLES[op]
    verify(parse_module(example.module))
    lines = [line.strip() for line in example.text.splitlines()]
    body = [line.strip() for line in example.module.splitlines()]
    assert any(body[start : start + len(lines)] == lines for start in range(len(body)))
    assert example.text in entries()[op.name]


@each("op", IN_PAGE, ids=lambda op: op.name)
def test_every_op_is_described(op: type[Op]) -> None:
    assert op.__doc__ is not None and not op.__doc__.startswith(f"{op.__name__}(")
    text = entries()[op.name]
    assert op.__doc__.splitlines()[0] in text
    assert f"- Derivative: {derivative(op)}" in text
    assert not op.not_differentiable or op.not_differentiable in text or "after diff" in text
