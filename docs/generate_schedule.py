"""Writes docs/schedule.md, which follows one product with bias and activation through every rewrite of its loops.

    python docs/generate_schedule.py         write it
    python docs/generate_schedule.py FILE    write it into FILE instead

Nothing there is written by hand but the sentences between: the compiler's own policy (`core/kernels/tiles.py`) runs
for a small imaginary machine, and each rewrite that it calls is followed by the loops as they are then. The evaluator
runs them each time: the result stays.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from nnkit.core.compute import products  # noqa: E402
from nnkit.core.driver.stages import advance  # noqa: E402
from nnkit.core.evaluate import evaluate  # noqa: E402
from nnkit.core.ir import (  # noqa: E402
    Instruction,
    Module,
    Placement,
    finish_function,
    start_function,
)
from nnkit.core.ir.placement import output  # noqa: E402
from nnkit.core.ir.surgery import clone_instructions  # noqa: E402
from nnkit.core.kernels import tiles  # noqa: E402
from nnkit.core.ops import Return  # noqa: E402
from nnkit.core.schedule import product_kernels  # noqa: E402
from nnkit.core.schedule.plan import schedule  # noqa: E402
from nnkit.core.schedule.target import Target  # noqa: E402
from nnkit.core.stage import Stage  # noqa: E402
from nnkit.core.text import parse_module, print_function, print_module  # noqa: E402
from nnkit.core.verify import verify  # noqa: E402

PAGE = ROOT / "docs" / "schedule.md"

PROGRAM = """module "layer"
stage raw

func @layer: (<8 x 6 x f32>, <6 x 10 x f32>, <10 x f32>) -> <8 x 10 x f32> {
'entry(%x: <8 x 6 x f32>, %w: <6 x 10 x f32>, %b: <10 x f32>):
    %0 = dot %x: <8 x 6 x f32>, %w: <6 x 10 x f32>
    %1 = add %0: <8 x 10 x f32>, %b: <10 x f32>
    %2 = tanh %1: <8 x 10 x f32>
    return %2: <8 x 10 x f32>
}
"""

MACHINE = Target(vector_bytes=16, registers=8, fma=True)
"""So small that the tiles are short: eight registers of four f32."""

HEAD = """# A product with bias and activation, from three loops to register tiles

What stage schedule does to `tanh(x @ w + b)`, one rewrite after the other. Written by `docs/generate_schedule.py`,
which runs the compiler's own policy ([tiles.py](../core/kernels/tiles.py)) and prints the loops behind each rewrite
that it calls; the evaluator ran each of these texts, with the result of the first, to rounding. The machine is an
imaginary one, with eight vector registers of four f32, so that tiles are short. A rewrite that changes nothing here is
not shown. The layer is so small that it is a kernel here only: 8 rows, 6 inputs, and 10 outputs, which are two vectors
and a half.

`dlopt --stage schedule FILE` prints the last step for any program and the machine that it runs on;
`f.ir(x, stage="schedule")` does for a staged function. Why kernels are made so is in
[0061](decisions/0061-kernels-are-explicit-loops.md); the rewrites are in [core/kernels](../core/kernels), one file
each, with what makes them legal.
"""

SAYS = {
    "build_product": (
        "Three loops",
        "The product is what its definition says: a sum for each row and column. The nest that alone reads it (bias "
        "and `tanh`, the *epilogue*) stands behind the sum, in the same loops, so the product itself is never stored.",
    ),
    "distribute": (
        "Distribute",
        "What takes long to compute, as `tanh` does, becomes a loop of its own, behind that over the sums. Sums lie in "
        "a local buffer meanwhile, which has an element for each iteration, so that the loop over sums can be made a "
        "multiple of registers at a time, and the other one is short. What takes an instruction or two stays.",
    ),
    "widen_rows": (
        "Room between rows",
        "Rows of the buffer will lie below each other: a vector more for each keeps those that are 2 or 4 KB long "
        "from excluding each other from the nearest cache.",
    ),
    "peel": (
        "Peel",
        "The first iterations of a loop become one of their own, so that those are a multiple of what comes next; the "
        "others follow in a loop of theirs.",
    ),
    "split": (
        "Split",
        "Iterations in runs: a loop over runs, with a loop over one run in it. Nothing is computed in another order.",
    ),
    "vectorise": (
        "Vectorise",
        "The iterations of the inner loop become the lanes of vectors; the loop over the sum stays where it is, so "
        "that each lane adds up the products of its own column, in the order of before. Where a run is shorter than a "
        "vector, only the first lanes are loaded and stored.",
    ),
    "unroll_and_jam": (
        "Unroll and jam",
        "The iterations stand side by side, and the loops in them become one that does the work of all. Now there are "
        "as many sums at a time as the tile has elements.",
    ),
    "cse": (
        "Common subexpressions",
        "What is computed or loaded twice is computed or loaded once.",
    ),
    "shorten_live_ranges": (
        "Order",
        "Instructions are ordered depth first from what they are for, so that each value is made shortly before it is "
        "used: LLVM keeps the order, and has a register for each.",
    ),
}
"""Heading and sentences of a step, by the function that makes it; said when it comes first."""


@dataclass
class Recorder:
    """Follows the kernel while it is rewritten."""

    arguments: list[Any]
    kernel: Instruction | None = None
    expected: Any = None
    steps: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    def watched(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, after each call of which the kernel is looked at."""

        def call(*arguments: Any, **options: Any) -> Any:
            made = function(*arguments, **options)
            if name == "build_product":
                self.kernel = arguments[0].block.instructions[-1]
            self.look(name)
            return made

        return call

    def look(self, name: str) -> None:
        """Verify, evaluate and print the kernel, if it is another one than before."""
        assert self.kernel is not None
        module = alone(self.kernel)
        verify(module)
        found = evaluate(module, "layer", *self.arguments)
        if self.expected is None:
            self.expected = found
        np.testing.assert_allclose(found, self.expected, rtol=1e-5, atol=1e-6)
        text = print_function(module.functions["layer"])
        if not self.steps or self.steps[-1][1] != text:
            self.steps.append((name, text))


def alone(kernel: Instruction) -> Module:
    """A module whose function is a copy of the kernel."""
    b = start_function([operand.tensor for operand in kernel.operands])
    values = dict(zip(kernel.operands, b.block.arguments, strict=True))
    clone_instructions(b.block, [kernel], {**values})
    copy = b.block.instructions[-1]
    copy.placement = Placement((output(0),))
    b.emit_many(Return(), copy.results)
    module = Module("layer", stage=Stage.SCHEDULE)
    module.add(finish_function("layer", b, copy.result.type))
    return module


def recorded() -> tuple[str, list[tuple[str, str]], str]:
    """The program in stage compute, the loops after each rewrite, and the module in stage schedule."""
    rng = np.random.default_rng(0)
    module = parse_module(PROGRAM)
    types = [parameter.tensor for parameter in module.functions["layer"].parameters]
    recorder = Recorder([rng.standard_normal(type.shape).astype(np.float32) for type in types])
    with patch.object(products, "LEAST_PRODUCT", 0):  # from which on a product is more than a nest
        advance(module, Stage.COMPUTE, "layer", target=MACHINE)
    compute = print_module(module)
    watched = {
        name: recorder.watched(name, getattr(tiles, name)) for name in SAYS if name in vars(tiles)
    }
    build = recorder.watched("build_product", product_kernels.build_product)
    # and with nothing tiled before
    watched["_TILED"] = OrderedDict[Any, Any]()
    with (
        patch.multiple(tiles, **watched),
        patch.object(product_kernels, "build_product", build),
    ):
        schedule(module, MACHINE)
    return compute, recorder.steps, print_module(module)


def render() -> str:
    """The page."""
    compute, steps, scheduled = recorded()
    parts = [HEAD, "## Stage compute", _COMPUTE, _fenced(compute)]
    said: set[str] = set()
    for number, (name, text) in enumerate(steps):
        title, sentences = SAYS[name]
        parts.append(f"## {number + 1}. {title}")
        if name not in said:
            parts.append(sentences)
        said.add(name)
        parts.append(_fenced(_body(text)))
    parts += ["## Stage schedule", _SCHEDULE, _fenced(_shortened(scheduled))]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


_COMPUTE = """After optimisation and fusion, a library op and a nest: the product, and what is made of it element by
element."""
_SCHEDULE = """The last step is the kernel of the scheduled program. It has a place for its result; where there were
other kernels and nests, they would have theirs in the arena. jit translates each instruction to LLVM's, and decides
nothing."""


def _body(text: str) -> str:
    """The loops, without the function around them."""
    lines = text.splitlines()
    start = next(n for n, line in enumerate(lines) if "'body(" in line)
    end = max(n for n, line in enumerate(lines) if line.strip() == "}" and n < len(lines) - 2)
    return _dedented(lines[start:end])


def _dedented(lines: list[str]) -> str:
    margin = min(len(line) - len(line.lstrip()) for line in lines if line.strip())
    return "\n".join(line[margin:] for line in lines)


def _shortened(text: str) -> str:
    """The scheduled module without the body of its kernel, which stands above."""
    lines = text.splitlines()
    start = next(n for n, line in enumerate(lines) if "'body(" in line)
    end = max(n for n, line in enumerate(lines) if line == "    }")
    return "\n".join([*lines[:start], "    … as above …", *lines[end:]])


def _fenced(text: str) -> str:
    return "```\n" + text.strip("\n") + "\n```"


def main() -> None:
    """Write the page to the file that is named, or where it belongs."""
    page = Path(sys.argv[1]) if len(sys.argv) > 1 else PAGE
    page.write_text(render())


if __name__ == "__main__":
    main()
