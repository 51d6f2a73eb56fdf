"""Writes docs/functions.md, the reference of the functions of the language, from the modules that define them.

python docs/generate_functions.py         write it
python docs/generate_functions.py FILE    write it into FILE instead
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

from nnkit import (
    batching,
    composed,
    differentiation,
    elementwise,
    functions,
    jacobian_products,
    jacobians,
    linearization,
    splitting,
)

PAGE = Path(__file__).parent / "functions.md"
HEAD = """# Functions

The functions of staged tensors. Written by `docs/generate_functions.py` from the modules that define them; what they
are at edges, and how exact, [semantics.md](semantics.md) says. Types in full are in `nnkit/__init__.pyi`.
"""

DERIVATIVES = """Of staged functions, and staged functions themselves. `wrt` is the index of a parameter, a tuple of
them, a field `Params.w` of the first one, or a selector `lambda p, x: (x, p.b)`; what they can do, and how it is
tested: [features.md](features.md)."""


BATCHES = """Of a staged function, for all elements of a batch; `axis_sum` and its like stand inside of it."""


def defined_in(module: Any) -> Iterator[tuple[str, Any]]:
    """The public functions of a module, in its order."""
    for name, value in vars(module).items():
        if inspect.isfunction(value) and value.__module__ == module.__name__ and name[0] != "_":
            yield name, value


def elements_of(function: Any) -> str:
    """Which elements an elementwise function takes."""
    (family,) = get_args(inspect.get_annotations(function)["return"])
    return {"Float": "floats", "Integer": "integers", "Number": "numbers"}[family.__name__]


def parameters_of(function: Any) -> str:
    """Its parameters, without types and the marks of what is given by position or by name."""
    return ", ".join(
        str(parameter.replace(annotation=parameter.empty))
        for parameter in inspect.signature(function).parameters.values()
    )


def summary(function: Any) -> str:
    """The first line of its docstring, as a cell of a table."""
    return (inspect.getdoc(function) or "").partition("\n")[0].replace("|", "\\|")


def page() -> Iterator[str]:
    yield HEAD
    yield "## Elementwise\n\nAll broadcast as NumPy does.\n"
    yield "| function | of | is |\n|---|---|---|"
    for name, function in defined_in(elementwise):
        shown = f"`{name}({parameters_of(function)})`"
        yield f"| {shown} | {elements_of(function)} | {summary(function)} |"
    for title, module in (("Shapes, indices, makers", functions), ("Along axes", composed)):
        yield f"\n## {title}\n\n| function | is |\n|---|---|"
        yield from rows(module)
    yield f"\n## Derivatives\n\n{DERIVATIVES}\n\n| function | is |\n|---|---|"
    for module in (differentiation, jacobian_products, jacobians, splitting, linearization):
        yield from rows(module)
    yield f"\n## Batches\n\n{BATCHES}\n\n| function | is |\n|---|---|"
    yield from rows(batching)


def rows(module: Any) -> Iterator[str]:
    for name, function in defined_in(module):
        yield f"| `{name}({parameters_of(function)})` | {summary(function)} |"


def main() -> None:
    (Path(sys.argv[1]) if len(sys.argv) > 1 else PAGE).write_text("\n".join(page()) + "\n")


if __name__ == "__main__":
    main()
