"""Writes docs/passes.md, the reference of all passes, from their classes, their laws and their tests.

    python docs/generate_passes.py         write it
    python docs/generate_passes.py FILE    write it into FILE instead

What a pass does, requires, preserves and costs is its class's docstring; laws are the comments of `core/passes/rules`.
The example of a pass is the function @example of `tests/ir/passes/<pass>.dl`, by the first RUN line there; the steps of
the demonstration are the RUN lines of `tests/ir/slides_steps.dl`.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import io
import re
import sys
import tokenize
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from nnkit.core.analysis import Analysis  # noqa: E402
from nnkit.core.analysis.call_graph import reachable  # noqa: E402
from nnkit.core.driver.stages import passes_to  # noqa: E402
from nnkit.core.ir import Module  # noqa: E402
from nnkit.core.passes import ALL, FunctionPass, ModulePass, run_pipeline  # noqa: E402
from nnkit.core.passes.base import describe  # noqa: E402
from nnkit.core.stage import Stage  # noqa: E402
from nnkit.core.text import parse_module, print_function, print_module  # noqa: E402
from nnkit.core.verify import verify  # noqa: E402
from nnkit.tools.passes import options_of, passes_of  # noqa: E402
from nnkit.tools.statistics import HEADS, Statistics, measure, notes  # noqa: E402
from tests.ir.run_lines import run_lines  # noqa: E402

PassClass = type[FunctionPass] | type[ModulePass]
PAGE = ROOT / "docs" / "passes.md"
PROGRAMS = ROOT / "tests" / "ir" / "passes"
SLIDES = ROOT / "tests" / "ir" / "slides_steps.dl"
RULES = "nnkit.core.passes.rules."

HEAD = """# Passes

What the optimiser does: every pass with what it needs, keeps and costs, the laws it follows, and an example. Written by
`docs/generate_passes.py` from the classes in `core/passes`; [add-a-pass.md](add-a-pass.md) says how to add one,
[tools.md](tools.md) how to run one.

Counts are those of `dlopt --stats`: *instructions* in the text, and the *flops* and *bytes* of one call. Flops are
operations on elements, where a division counts 5 and `exp` 15; bytes are those of the tensors that instructions read
and write; `n` stands for a number of rounds that the program does not say.

*Analyses kept* are those that still hold of a function after the pass has changed it: control *flow*, *effects*,
and *aliases* (`core/analysis/manager.py`).  Of a function that it did not
change all are kept, unless the pass, as `inline`, speaks of the module as a whole.
"""


SCALING = """## Compile time

Passes take time in proportion to the program, but for the factors that their *cost* names. This is what
`python -m benchmarks.scaling` measured on one core of an AMD EPYC, one run of each, while the other core was busy too:
CPU seconds of the passes / of everything that `dlopt` does (reading, verifying, optimising, verifying again, printing)
by the number of instructions. Garbage collection is off while it measures. The exponent is that of the growth of
everything from 10,000 to 100,000, where 1 is linear.

`straight` is one block, `nested` has loops in choices in loops, `calls` is a chain of functions, `blocks` branches, and
`memory` loads and stores. At `-O3`, `inline` may add 50,000 instructions to a small program, and twice its length to a
large one: that is why the `calls` of 1,000 take so much longer than those of 100, and its exponent says little.

`-O2`:

|  | 10 | 100 | 1,000 | 10,000 | 100,000 | exponent |
|---|---:|---:|---:|---:|---:|---:|
| straight | 0.00035 / 0.00093 | 0.0012 / 0.0035 | 0.0095 / 0.029 | 0.091 / 0.28 | 1.3 / 3.4 | 1.08 |
| nested | 0.00093 / 0.0035 | 0.0034 / 0.0071 | 0.027 / 0.054 | 0.3 / 0.58 | 3.9 / 7.1 | 1.08 |
| calls | 0.00087 / 0.003 | 0.0025 / 0.0065 | 0.019 / 0.051 | 0.21 / 0.54 | 2.5 / 5.8 | 1.03 |
| blocks | 0.0025 / 0.0053 | 0.0054 / 0.0092 | 0.044 / 0.077 | 0.71 / 1.1 | 7.3 / 11 | 1.01 |
| memory | 0.0012 / 0.0037 | 0.0022 / 0.0052 | 0.015 / 0.036 | 0.19 / 0.41 | 2.4 / 4.8 | 1.06 |

`-O3`:

|  | 10 | 100 | 1,000 | 10,000 | 100,000 | exponent |
|---|---:|---:|---:|---:|---:|---:|
| straight | 0.00051 / 0.0013 | 0.0015 / 0.0039 | 0.011 / 0.031 | 0.16 / 0.38 | 1.4 / 3.5 | 0.96 |
| nested | 0.0009 / 0.0026 | 0.0033 / 0.0068 | 0.028 / 0.057 | 0.36 / 0.67 | 4.6 / 8 | 1.08 |
| calls | 0.0015 / 0.004 | 0.012 / 0.021 | 0.79 / 1.1 | 1.1 / 1.7 | 5.9 / 10 | 0.78 |
| blocks | 0.0021 / 0.0045 | 0.0053 / 0.0091 | 0.046 / 0.078 | 0.48 / 0.8 | 7.4 / 11 | 1.14 |
| memory | 0.00098 / 0.0029 | 0.0023 / 0.0054 | 0.016 / 0.038 | 0.16 / 0.38 | 2.3 / 4.6 | 1.08 |
"""


@dataclass(frozen=True)
class Example:
    """A module as text before and after some passes, and its numbers; `command` are the passes."""

    command: str
    before: str
    after: str
    numbers: tuple[Statistics, Statistics]


def example_of(pass_class: PassClass) -> Example:
    """What a pass does to the @example of its program."""
    path = PROGRAMS / f"{pass_class.name}.dl"
    text = run_lines(path)[0].text
    command = re.search(r"-p ('[^']+'|\S+)", text)
    assert command is not None, f"{path.name} does not begin with a run of a pass"
    module = parse_module(path.read_text(), str(path))
    left_out = reachable(module, ["near_miss"]) - reachable(module, ["example"])
    for name in left_out:
        del module.functions[name]
    # nor does a pass hear of what is left out
    return run_example(module, command[1].replace(",near_miss", ""), ("example",))


def run_example(module: Module, command: str, entries: tuple[str, ...]) -> Example:
    """Run the passes that `command` names; the module is used up."""
    before, numbers = _shown(module), measure(module, entries)
    run_pipeline(module, passes_of(command.strip("'")), verifier=verify, verify=True)
    return Example(command, before, _shown(module), (numbers, measure(module, entries)))


def themes_of(pass_class: PassClass) -> list[ModuleType]:
    """The files of laws that a pass applies: those that the laws in its own file come from."""
    names: dict[str, None] = {}
    for value in vars(sys.modules[pass_class.__module__]).values():
        if isinstance(value, Mapping) and all(isinstance(key, type) for key in value):
            found = [law for laws in value.values() if isinstance(laws, tuple) for law in laws]
            names.update(dict.fromkeys(law.__module__ for law in found if callable(law)))
    return [importlib.import_module(name) for name in names if name.startswith(RULES)]


def laws_in(theme: ModuleType) -> list[str]:
    """The laws of a file: the comments in its functions that have a line to themselves."""
    source = inspect.getsource(theme)
    inside = {
        line
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    laws: list[str] = []
    last = -1
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        line = token.start[0]
        alone = token.line.lstrip().startswith("#")
        if token.type == tokenize.COMMENT and alone and line in inside:
            text = token.string.removeprefix("#").strip()
            if line == last + 1:
                laws[-1] += f" {text}"
            else:
                laws.append(text)
            last = line
    return laws


def kept_analyses(pass_class: PassClass) -> str:
    """What a pass leaves known of a function that it changes."""
    kept = pass_class.preserves_analyses
    names = [analysis.name or "" for analysis in Analysis if analysis in kept]
    return "all" if kept is Analysis.ALL else ", ".join(names).lower() or "none"


def where_tested(pass_class: PassClass) -> list[Path]:
    """Where a pass is tested: the file of its name, its program, and properties of all."""
    module = pass_class.__module__.rpartition(".")[2]
    found = [
        ROOT / "tests" / "core" / "passes" / f"test_{module}.py",
        PROGRAMS / f"{pass_class.name}.dl",
    ]
    return [path for path in found if path.exists()]


def render() -> str:
    """The whole page."""
    lines = [HEAD, *_table(), "", "## Stages and levels", "", *_levels(), "", SCALING]
    for pass_class in ALL:
        lines += [*_section(pass_class), ""]
    lines += ["## Laws", "", *_laws(), "", *_slides()]
    return "\n".join(lines).rstrip() + "\n"


def _table() -> Iterator[str]:
    yield "| pass | what it does | requires | preserves | analyses kept | cost | laws | tests |"
    yield "|---|---|---|---|---|---|---|---|"
    for pass_class in ALL:
        said = describe(pass_class)
        laws = [f"[{_title(theme)}](#{_title(theme)})" for theme in themes_of(pass_class)]
        tests = [f"[{path.name}]({_link(path)})" for path in where_tested(pass_class)]
        kept = kept_analyses(pass_class)
        cells = [said.summary, said.requires, said.preserves, kept, said.cost]
        cells += [", ".join(laws) or "–", ", ".join(tests)]
        name = pass_class.name
        yield f"| [{name}](#{name}) | {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"


def _levels() -> Iterator[str]:
    yield "What brings a module from the stage before to each, by the list in `core/driver/stages.py`:"
    yield ""
    yield "| stage | level | passes |"
    yield "|---|---|---|"
    for stage in Stage.RAW.steps_to(Stage.SCHEDULE):
        lists = [", ".join(f"`{p.name}`" for p in passes_to(stage, level=n)) for n in range(4)]
        for text in dict.fromkeys(lists):
            levels = [str(n) for n in range(4) if lists[n] == text]
            yield f"| {stage.value} | -O{', '.join(levels)} | {text} |"


def _section(pass_class: PassClass) -> Iterator[str]:
    said, example = describe(pass_class), example_of(pass_class)
    yield f"## {pass_class.name}"
    yield ""
    yield said.summary
    yield ""
    if said.details:
        yield from (said.details, "")
    for head, text in (
        ("Requires", said.requires),
        ("Preserves", said.preserves),
        ("Analyses kept of a function that it changes", kept_analyses(pass_class)),
        ("Cost", said.cost),
        ("Source", said.source),
    ):
        if text:
            yield f"- {head}: {text}"
    options = options_of(pass_class())
    if options:
        yield f"- Options: {', '.join(f'`{key}` ({_default(value)})' for key, value in options.items())}"
    yield ""
    yield from _example(example)


def _example(example: Example) -> Iterator[str]:
    yield f"`dlopt -p {example.command} --stats` makes of"
    yield from ("", "```", example.before, "```", "", "this:", "", "```", example.after, "```", "")
    yield from _counts(example)


def _counts(example: Example) -> Iterator[str]:
    before, after = example.numbers
    yield f"| | {' | '.join(HEADS)} |"
    yield "|---|---:|---:|---:|"
    for title, one in (("before", before), ("after", after)):
        yield f"| {title} | {' | '.join(map(str, one.whole.counts))} |"
    for note in notes([before.whole, after.whole]):
        yield from ("", note)


def _laws() -> Iterator[str]:
    themes = {theme: None for pass_class in ALL for theme in themes_of(pass_class)}
    for theme in themes:
        yield f"### {_title(theme)}"
        yield ""
        yield from (inspect.getdoc(theme) or "", "")
        yield from (f"- {law}" for law in laws_in(theme))
        yield ""


def _slides() -> Iterator[str]:
    """The demonstration: each step with what it made of the function."""
    yield "## The slides' demonstration"
    yield ""
    yield (
        "Differentiation of x·w + b, algebra simplification, dead-code elimination: the function that wants the "
        "gradients is left with one `transpose`, and without the `dot` of the forward pass. Shown is what a step "
        "changed."
    )
    module = parse_module(SLIDES.read_text(), str(SLIDES))
    done = 0
    texts: dict[str, str] = {}
    for command in steps():
        passes = passes_of(command)[done:] if command else []
        done += len(passes)
        if not passes:
            title = "As it is written"
        else:
            run_pipeline(module, passes, verifier=verify, verify=True)
            title = f"After `{'`, `'.join(a_pass.name for a_pass in passes)}`"
        old, texts = texts, {name: print_function(f) for name, f in module.functions.items()}
        changed = [text for name, text in texts.items() if old.get(name) != text]
        yield from ("", f"### {title}", "", "```", "\n".join(changed).rstrip(), "```", "")
        gone = [f"@{name}" for name in old if name not in texts]
        if gone:
            yield from (f"{' and '.join(gone)} are removed.", "")
        measured = measure(module, ("gradients",)).functions["gradients"]
        counts = zip(measured.counts, HEADS, strict=True)
        yield f"@gradients: {', '.join(f'{count} {head}' for count, head in counts)}."


def steps() -> list[str]:
    """The passes of each step, each list an extension of the one before; none at first."""
    found = [re.search(r"-p ('[^']+'|\S+)", line.text) for line in run_lines(SLIDES)]
    return [match[1].strip("'") if match else "" for match in found]


def _shown(module: Module) -> str:
    """The text without the head that all modules have."""
    text = print_module(module)
    return text.partition("\n\n")[2].rstrip() if module.functions else text


def _default(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case None | ():
            return "none"
        case _:
            return str(value)


def _title(theme: ModuleType) -> str:
    return theme.__name__.rpartition(".")[2].replace("_", "-")


def _link(path: Path) -> str:
    return f"../{path.relative_to(ROOT)}"


def main() -> None:
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else PAGE
    path.write_text(render())


if __name__ == "__main__":
    main()
