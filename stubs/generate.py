"""Writes the typed face of the package: nnkit/__init__.pyi, those of submodules, and names in nnkit/__init__.py.

    python stubs/generate.py            write them
    python stubs/generate.py FOLDER     write them into FOLDER instead

`surface/` has the sections in the order they appear; its docstring explains how the tables stay
short.  There they are written with plain names.  What must not be importable by users, because it
does not exist at run time (type variables, classes that occur in signatures only), gets its leading
underscore here, at the end.
"""

from __future__ import annotations

import builtins
import re
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

from surface.batching import batching
from surface.contractions import contractions
from surface.control import control
from surface.differentiation import differentiation
from surface.distributions import distributions, dropout
from surface.everyday import everyday
from surface.expressions import REFUSED, template
from surface.functions import elementwise_functions, functions
from surface.images import images
from surface.jacobians import jacobians
from surface.layers import layers
from surface.linear_algebra import linear_algebra
from surface.networks import networks
from surface.reductions import reduction_functions
from surface.sampling import sampling
from surface.sorting import sorting
from surface.splitting import splitting
from surface.staged import matrix_product, reductions, staged_class
from surface.staging import staging
from surface.tensors import dtypes, errors, header, refusals, structs, tensors
from surface.updates import updates

import nnkit

NNKIT = Path(__file__).parent.parent / "nnkit"
SIGNATURES_ONLY = (
    r"ShapeOfRep MatrixTranspose Apply\d Subscripts Attributes NotAnAttribute Conversions WriteNkRound "
    r"WriteNkForNp Fields Elements\dD Items\d? (?:Eigh|QR|SVD|Slogdet)Result "
    r"Places(?:\dD)? Staging View Series "
    r"PartView RefView KeyEntry Key UnknownDType UnknownExtent Reduce ReduceFloat Sum RankTooHigh Fn\d Function\d "
    "LogicalFunction ShiftFunction BitwiseFunction "
    "Spread SpreadFloat ReduceNumber SumNumber ReduceLogical Count "
    "Static Unstaged UnstagedData WriteFieldsOf "
    "PythonFunction FunctionWithStatics\\d WithStatics\\d FunctionOfMore\\d NoLambda Unnamed "
    "DataclassInstance LoopByMapFoldOrScanOver Beside SgdOptimizer MomentumOptimizer AdamOptimizer RATE "
    "Index Slice Whole IndexMode WriteMode SumMode Filler Shift Stage Argument From SavePolicy LayerPadding LSTMState"
).split()
"""As regular expressions."""


def exported() -> Iterator[str]:
    """What `from nnkit import *` brings: no name of a builtin."""
    homes: dict[str, str] = vars(nnkit)["_HOME_OF"]
    names = [repr(name) for name in ["__version__", *homes] if not hasattr(builtins, name)]
    yield "__all__ = ["
    yield textwrap.fill(", ".join(names), 96, initial_indent="    ", subsequent_indent="    ") + ","
    yield "]"


Section = Callable[[], Iterator[str]]


def tree() -> Iterator[str]:
    """The submodule `nnkit.tree`."""
    yield from template("tree")


def optim() -> Iterator[str]:
    """The submodule `nnkit.optim`."""
    yield from template("optim")


FILES: dict[str, list[Section]] = {
    "__init__.pyi": [
        header,
        dtypes,
        tensors,
        structs,
        refusals,
        staged_class,
        updates,
        reductions,
        functions,
        networks,
        sorting,
        dropout,
        contractions,
        reduction_functions,
        images,
        everyday,
        matrix_product,
        staging,
        control,
        differentiation,
        jacobians,
        batching,
        splitting,
        errors,
        exported,
    ],
    "random.pyi": [sampling, distributions],
    "linalg.pyi": [linear_algebra],
    "tree.pyi": [tree],
    "optim.pyi": [optim],
    "nn/__init__.pyi": [layers],
}


def render(sections: list[Section]) -> str:
    """The text of one stub."""
    text = "\n".join(line for section in sections for line in section()) + "\n"
    variables = re.findall(r"^(\w+) = (?:TypeVar|ParamSpec)", text, re.MULTILINE)
    private = "|".join([*variables, *SIGNATURES_ONLY, *REFUSED])
    # not in quotes, and not parameters such as NumPy's `N: int`
    return re.sub(rf'(?<!\[")(?<!= ")\b({private})\b(?!: int\b)', r"_\1", text)


def named(module: str) -> str:
    """The package's module with the names of all elementwise functions."""
    names = textwrap.fill(" ".join(sorted(elementwise_functions())), 90)
    listed = "\n".join(f"        {line}" for line in names.splitlines())
    return re.sub(r'("elementwise": """\n)[^"]*', lambda found: found[1] + listed, module)


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else NNKIT
    for name, sections in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(render(sections))
    (folder / "__init__.py").write_text(named((NNKIT / "__init__.py").read_text()))


if __name__ == "__main__":
    main()
