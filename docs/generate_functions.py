"""Writes docs/functions.md, the reference of every public name, from the modules that define them.

python docs/generate_functions.py         write it
python docs/generate_functions.py FILE    write it into FILE instead

Names, and the order of sections, are those of `nnkit._HOMES`; signatures and words are those of the docstrings.  The
example of a name is the doctest in its docstring, or else a line `Example: ...` there with an expression, or else its
line in `docs/examples_of_functions.py`.  Expressions are compiled together, as one staged function.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import inspect
import io
import re
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import numpy as np
from derivatives_of_functions import derivative_of
from examples_of_functions import EXAMPLES, PARAMETERS, SETTING
from shapes_of_functions import shapes_of

import nnkit as nk
from nnkit import elementwise

PAGE = Path(__file__).parent / "functions.md"
STUB = Path(nk.__file__).with_suffix(".pyi")
POINTS = np.array([-1, 0, 0.5, 2])
"""Where the page has values and derivatives of elementwise functions."""
TITLES = {
    "elementwise": "Elementwise functions",
    "functions": "Shapes, indices, makers",
    "reductions": "Reductions and running reductions",
    "choices": "Choices, questions and bits",
    "shaping": "Rearrangements and makers",
    "interpolation": "Differences and interpolation",
    "composed": "Functions along axes",
    "control": "Choices and loops",
    "callables": "Staged functions",
    "lambdas": "Staged lambdas",
    "differentiation": "Gradients",
    "jacobian_products": "Jacobian-vector products",
    "jacobians": "Jacobians and Hessians",
    "linearization": "Linearization",
    "splitting": "The halves of a gradient",
    "residuals": "What halves keep",
    "checkpointing": "Checkpointing",
    "batching": "Batches",
    "linalg": "Linear algebra",
    "random": "Random numbers",
    "distributions": "Dropout",
    "reps": "Staged values",
    "tensors": "Tensors and element types",
    "structs": "Structs",
    "struct_fields": "Fields of structs",
    "tree": "Trees of tensors",
    "nn": "Layers of networks",
    "optim": "Optimizers",
    "core.errors": "Errors",
    "checking_gradients": "Checking derivatives",
    "core.ir.loop_schedules": "Schedules of loops",
    "conversion": "Shapes without data",
    "debugging": "Debugging",
    "differentiating_as": "Derivatives of another function",
    "donation": "Donated arguments",
    "effects": "Effects",
    "fixed_points": "Fixed points",
    "foreign_functions": "Functions of C and Python",
    "specializations": "The cache of compiled functions",
    "staging.at": "Updates of parts",
    "staging.refs": "Mutable arrays",
    "staging.stacked": "Stacked results",
}
"""Of modules; the others have the first line of their docstring."""
FIRST = ("elementwise", "functions", "composed")
"""The sections that most readers look for."""
HEAD = """# Functions

Every public name: its signature, what it is, its shapes and its derivative where that is a convention, and an example
that was run. In a line of shapes a letter is an extent with one meaning in each form, of which there may be several,
`…` and `p…` are any axes, and the name of a parameter is its value; the lines are tested. Written by
`docs/generate_functions.py` from the docstrings. What functions are at edges, and how exact,
[semantics.md](semantics.md) says; types in full are in `nnkit/__init__.pyi`; what can be differentiated by what, and
how that is tested, [features.md](features.md).

Examples that are expressions stand in a staged function of these parameters:

```python
{parameters}
```

Before each program there are these lines:

```python
{setting}
```
"""


@dataclass(frozen=True)
class Entry:
    """A public name with what is said of it."""

    name: str
    value: Any

    @property
    def text(self) -> str:
        """Its docstring: of a constant in a class, what stands for one."""
        if isinstance(self.value, int):
            return "Number of axes."
        return inspect.getdoc(self.value) or ""

    @property
    def is_error(self) -> bool:
        return isinstance(self.value, type) and issubclass(self.value, Exception)

    @property
    def summary(self) -> str:
        """The first line of the docstring."""
        return self.text.partition("\n")[0]

    @property
    def rest(self) -> str:
        """What follows the first line, without examples and errors."""
        words = re.split(r"^>>> ", self.text.partition("\n")[2], maxsplit=1, flags=re.MULTILINE)[0]
        words = (
            words if self.is_error else re.sub(r"^Example: `.*`\.?$", "", words, flags=re.MULTILINE)
        )
        return re.sub(r"(^|(?<=\s))Raises: .*?(\n\n|\Z)", "\n", words, flags=re.DOTALL).strip()

    @property
    def signature(self) -> str:
        """The name as it is called, without types."""
        if not callable(self.value) or isinstance(self.value, type):
            return self.name
        parameters = inspect.signature(self.value).parameters.values()
        shown = ", ".join(
            str(one.replace(annotation=one.empty)) for one in parameters if one.name != "self"
        )
        shown = re.sub(
            r"<class '(?:\w+\.)*(\w+)'>",
            r"\1",
            re.sub(r"=Carry\(.*?\(\)\)|=<object.*?>", "=…", shown),
        )
        shown = re.sub(r"<function (\w+) at 0x\w+>", r"nk.\1", shown)
        return f"{self.name}({shown})"

    @property
    def doctest(self) -> str:
        """The example in the docstring, which has what it prints."""
        found = re.search(r"^>>> .*?(?=\n\n|\Z)", self.text, re.MULTILINE | re.DOTALL)
        return found[0] if found else ""

    @property
    def example(self) -> str:
        """An expression, or a program, of which is known only later what it prints."""
        found = re.search(r"^Example: `(.*)`", self.text, re.MULTILINE)
        return found[1] if found and not self.is_error else EXAMPLES.get(self.name, "")


def sections() -> Iterator[tuple[str, list[Entry]]]:
    """Titles with names."""
    homes: dict[str, str] = vars(nk)["_HOMES"]
    for home in sorted(
        homes, key=lambda home: (home not in FIRST, FIRST.index(home) if home in FIRST else 0)
    ):
        for name in homes[home].split():
            if isinstance(module := getattr(nk, name), ModuleType):
                yield (
                    title_of(name, module),
                    [Entry(f"{name}.{each}", getattr(module, each)) for each in members(module)],
                )
        named = [Entry(name, getattr(nk, name)) for name in homes[home].split()]
        if plain := [entry for entry in named if not isinstance(entry.value, ModuleType)]:
            yield title_of(home, sys.modules[f"nnkit.{home}"]), plain
    yield from methods()


@functools.cache
def public() -> dict[str, Any]:
    """The functions of the package itself, by name."""
    return {entry.name: entry.value for _, entries in sections() for entry in entries}


def members(module: ModuleType) -> list[str]:
    return list(
        getattr(module, "__all__", None) or [name for name in vars(module) if name[0] != "_"]
    )


def title_of(home: str, module: ModuleType) -> str:
    return TITLES.get(home) or (module.__doc__ or home).partition("\n")[0].rstrip(".")


def methods() -> Iterator[tuple[str, list[Entry]]]:
    """Those of staged values and functions, which the stub has in one class, and of tensors."""
    functions = nk.callables.StagedFunction  # type: ignore[attr-defined]
    body = re.search(r"^class Rep\(.*?(?=^class )", STUB.read_text(), re.MULTILINE | re.DOTALL)
    assert body is not None
    typed = dict.fromkeys(
        re.findall(r"^(?: +def |    (?!else))([a-zA-Z]\w*)[(:]", body[0], re.MULTILINE)
    )
    of_functions = set(
        """asm cache_size clear_cache compile defjvp defvjp ir llvm memory_analysis partial""".split()
    )
    values = [
        Entry(f"Rep.{name}", member(nk.Rep, name)) for name in sorted({*typed} - of_functions)
    ]
    yield "Methods of staged values", values
    called = sorted(of_functions & {*typed})
    yield (
        "Methods of staged functions",
        [Entry(f"f.{name}", member(functions, name)) for name in called],
    )
    of_tensors = sorted(name for name in dir(nk.Tensor2D) if name[0] != "_")
    yield (
        "Methods of tensors",
        [Entry(f"t.{name}", member(nk.Tensor2D, name)) for name in of_tensors],
    )


def member(cls: type, name: str) -> Any:
    """As it stands in the class: a property is no value yet."""
    return inspect.getattr_static(cls, name)


def evaluated(expressions: dict[str, str]) -> dict[str, str]:
    """What each expression of staged values is, all computed by one call."""
    given = {name: eval(text, {"np": np}) for name, text in PARAMETERS.items()}
    scope = {
        **vars(nk),
        **{name: getattr(nk, name) for name in nk.__dir__() if name[0] != "_"},
        "nk": nk,
        "np": np,
    }
    structures: dict[str, Any] = {}

    def together(*values: nk.Rep[Any]) -> Any:
        leaves: list[Any] = []
        for name, text in expressions.items():
            try:
                value = eval(text, {**scope, **dict(zip(given, values, strict=True))})
                structures[name] = numbered(value, leaves)
            except Exception as error:
                _failed(name, text, error)
        return nk.tup(*leaves)

    types = [nk.Scalar, nk.Tensor1D, nk.Tensor2D]
    dtypes = {"float32": nk.f32, "int64": nk.i64}
    parameters = [types[value.ndim][dtypes[str(value.dtype)]] for value in given.values()]
    names = ", ".join(given)  # a staged function has no *parameters
    staged = nk.fn(*parameters)(eval(f"lambda {names}: together({names})", {"together": together}))
    results = staged(*given.values())
    return {name: filled(structure, results) for name, structure in structures.items()}


def numbered(value: Any, leaves: list[Any]) -> Any:
    """The value with each Rep in it put among the leaves, and its number in its place."""
    if isinstance(value, tuple | list):
        return [numbered(part, leaves) for part in value]
    leaves.append(value)
    return len(leaves) - 1


def filled(structure: Any, results: Any) -> str:
    """The values in the places of their numbers, as text."""
    if isinstance(structure, list):
        return f"({', '.join(filled(part, results) for part in structure)})"
    shown = np.array2string(
        np.asarray(results[structure]), precision=4, suppress_small=True, separator=", "
    )
    return re.sub(r"(?<=[\[ ]) +", "", shown.replace("\n", " "))


def elementwise_rows(entries: list[Entry]) -> Iterator[str]:
    """A table of functions of one or two tensors, with values and first derivatives at points."""
    values = {entry.name: values_of(entry) for entry in entries}
    together = nk.fn(nk.Tensor1D[nk.f64])(lambda x: nk.tup(*(make(x) for make in values.values())))
    results = together(POINTS)
    floats = [i for i, result in enumerate(results) if np.asarray(result).dtype.kind == "f"]
    _, tangents = nk.jvp(together)(POINTS, np.ones(len(POINTS)))
    shown = ", ".join(f"{x:g}" for x in POINTS)
    yield f"All broadcast as NumPy does. The examples are of x = {shown} (of integers −1, 0, 1, 2)"
    yield "and y = 2; the last column is the derivative by x there.\n"
    yield "Shapes: x (…) → (…); x (…), y (…) → (…), broadcast.\n"
    yield "| function | of | is | example | derivative |\n|---|---|---|---|---|"
    for i, entry in enumerate(entries):
        slope = numbers(np.asarray(tangents[i])) if i in floats else ""
        signature = f"`{entry.signature}`".replace(", /", "")
        of = elements_of(entry.value)
        words = entry.summary.replace("|", "\\|")
        yield f"| {signature} | {of} | {words} | {numbers(np.asarray(results[i]))} | {slope} |"


def values_of(entry: Entry) -> Callable[[Any], Any]:
    """Its example: of one parameter, or of two; of integers where it takes these alone."""
    count = len(inspect.signature(entry.value).parameters)
    integers = elements_of(entry.value) == "integers"

    def made(x: Any) -> Any:
        first = nk.iota((len(POINTS),), nk.i64) - 1 if integers else x
        try:
            return entry.value(first, *[2 if integers else 2.0] * (count - 1))
        except Exception as error:
            _failed(entry.name, f"nk.{entry.name}(x)", error)
            return x

    return made


def elements_of(function: Any) -> str:
    """Which elements an elementwise function takes."""
    hint, *_ = inspect.get_annotations(function).values()
    (family,) = get_args(hint)
    known = {
        "Float": "floats",
        "Integer": "integers",
        "Number": "numbers",
        "Logical": "truth values",
    }
    return known.get(family.__name__, "elements")


def numbers(values: Any) -> str:
    return ", ".join(str(value) if values.dtype.kind == "b" else f"{value:.4g}" for value in values)


def run(entry: Entry) -> str:
    """The program with what it prints: the last expression, or the first line of the error that it raises."""
    source = "\n".join(line[4:] for line in entry.example.split("\n"))
    scope: dict[str, Any] = {"__name__": "__main__"}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), np.printoptions(precision=4, suppress=True):
        exec("\n".join(line[4:] for line in SETTING.splitlines()), scope)
        *statements, last = ast.parse(source).body
        try:
            exec(compile(ast.Module(statements, []), entry.name, "exec"), scope)
            if isinstance(last, ast.Expr):
                value = eval(compile(ast.Expression(last.value), entry.name, "eval"), scope)
                print(*([] if value is None else [rounded(repr(value))]), sep="", end="")
            else:
                exec(compile(ast.Module([last], []), entry.name, "exec"), scope)
        except nk.NNKitError as error:
            if not (entry.is_error or entry.name == "check"):
                _failed(entry.name, entry.example, error)
            print(f"{type(error).__name__}: {error}".split("\n")[0])
        except Exception as error:
            _failed(entry.name, entry.example, error)
    return f"{entry.example}\n{printed.getvalue().rstrip()}".rstrip()


def rounded(text: str) -> str:
    """Digits beyond the fifth are those of a machine."""
    return re.sub(r"-?\d+\.\d{5,}(e[-+]\d+)?", lambda found: f"{float(found[0]):.5g}", text)


def block(entry: Entry, values: dict[str, str]) -> Iterator[str]:
    """The part of the page that is about one name."""
    yield f"\n### `{entry.signature}`\n\n{entry.summary}"
    if entry.rest:
        yield f"\n{textwrap.dedent(entry.rest)}"
    if (line := shapes_of(entry.name, entry.value, entry.text, public())) and (
        "Shapes: " not in entry.rest
    ):
        yield f"\nShapes: {line}."
    if derivative := derivative_of(entry.name, entry.text):
        yield f"\n{derivative}"
    if example := entry.doctest or (run(entry) if entry.example.startswith(">>>") else ""):
        yield f"\n```pycon\n{example}\n```"
    elif entry.name in values:
        yield f"\n`{entry.example}` is `{values[entry.name]}`"


def page() -> Iterator[str]:
    setting = "\n".join(line[4:] for line in SETTING.splitlines())
    parameters = "\n".join(f"{name} = {text}" for name, text in PARAMETERS.items())
    yield HEAD.format(setting=setting, parameters=parameters)
    listed = list(sections())
    every = [entry for _, entries in listed for entry in entries if not entry.doctest]
    expressions = {
        entry.name: entry.example
        for entry in every
        if entry.example and not entry.example.startswith(">>>")
    }
    values = evaluated(expressions)
    for title, entries in listed:
        yield f"\n## {title}\n"
        if table := [entry for entry in entries if is_in_table(entry)]:
            yield from elementwise_rows(table)
        for entry in entries:
            if entry not in table:
                yield from block(entry, values)


def is_in_table(entry: Entry) -> bool:
    """Whether it is made by `nnkit.elementwise`, and has no example of its own."""
    made = (
        inspect.isfunction(entry.value)
        and inspect.unwrap(entry.value).__module__ == elementwise.__name__
    )
    return made and "return" in entry.value.__annotations__ and not (entry.doctest or entry.example)


REMEDY = "give it a docstring with a doctest or a line `Example: ...`, or a line in docs/examples_of_functions.py"


def missing() -> list[str]:
    """The names without a sentence or an example."""
    entries = [entry for _, entries in sections() for entry in entries]
    return [
        entry.name
        for entry in entries
        if not (entry.summary and (entry.doctest or entry.example or is_in_table(entry)))
    ]


_failures: list[str] = []


def _failed(name: str, example: str, error: Exception) -> None:
    _failures.append(f"the example of {name} fails: {type(error).__name__}: {error}\n{example}")


def main() -> None:
    warnings.filterwarnings("ignore", category=nk.PerformanceWarning)  # of `eval` in `together`
    text = "\n".join(page()) + "\n"
    for name in missing():
        print(f"docs/functions.md: {name}: {REMEDY}", file=sys.stderr)
    if _failures:
        raise SystemExit("docs/functions.md: " + "\n\n".join(_failures))
    (Path(sys.argv[1]) if len(sys.argv) > 1 else PAGE).write_text(text)


if __name__ == "__main__":
    main()
