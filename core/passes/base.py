"""The base classes of passes: frozen dataclasses whose fields are their options.

A pass changes IR in place, keeps its meaning bit for bit (unless its text says otherwise), and says
whether it changed anything.  Run twice, it changes nothing the second time.

What it knows about the program it asks the `Analyses` that it is given, which outlive it; what it asks them
before it changes a function holds for the function as it was.

What it needs, keeps and costs stands in its docstring, which `describe` reads; `docs/passes.md` is made from that.
"""

from __future__ import annotations

import abc
import inspect
from typing import ClassVar, TypeAlias

from ..analysis import Analyses, Analysis
from ..errors import InternalError
from ..ir import Function, Module
from ..lazy_dataclass import dataclass


@dataclass(frozen=True)
class FunctionPass(abc.ABC):
    """A pass that looks at one function at a time."""

    name: ClassVar[str]
    """As the pipeline, the command line and error messages call it."""
    preserves_analyses: ClassVar[Analysis] = Analysis.NONE
    """What still holds of a function that it has changed."""

    @abc.abstractmethod
    def run(self, function: Function, analyses: Analyses) -> bool:
        """Improve `function`, which has a body; whether it changed.

        Only if the pass asks again about what it changed must it make `analyses` forget that.
        """


@dataclass(frozen=True)
class ModulePass(abc.ABC):
    """A pass that needs to see all functions together."""

    name: ClassVar[str]
    preserves_analyses: ClassVar[Analysis] = Analysis.NONE
    """What still holds of the functions that it has changed."""
    forgets: ClassVar[bool] = False
    """Whether it makes the analyses forget each function that it changes, so that others stay known."""

    @abc.abstractmethod
    def run(self, module: Module, analyses: Analyses) -> bool:
        """Improve `module`; whether it changed."""


Pass: TypeAlias = FunctionPass | ModulePass


def apply_pass(a_pass: Pass, module: Module, analyses: Analyses | None = None) -> bool:
    """Run the pass on all of `module`; whether it changed anything.

    `analyses` are what is known about the module, before and afterwards; without them nothing is.
    """
    analyses = Analyses(module) if analyses is None else analyses
    if isinstance(a_pass, ModulePass):
        changed = a_pass.run(module, analyses)
        touched = list(module.functions.values()) if changed and not a_pass.forgets else []
    else:
        functions = [f for f in module.functions.values() if f.body is not None]
        touched = [function for function in functions if a_pass.run(function, analyses)]
        changed = bool(touched)
    analyses.settle(touched, preserved=a_pass.preserves_analyses)
    return changed


@dataclass(frozen=True)
class Description:
    """What the docstring of a pass says: the first sentence, the rest of the prose, and the named lines."""

    summary: str
    details: str
    requires: str
    preserves: str
    cost: str
    source: str = ""


def describe(pass_class: type[FunctionPass] | type[ModulePass]) -> Description:
    """What a pass says about itself.  Raises: InternalError when it leaves out something it must say."""
    summary, _, rest = inspect.cleandoc(pass_class.__doc__ or "").partition("\n")
    prose: list[str] = []
    named: dict[str, str] = {}
    key = ""
    for line in rest.splitlines():
        head, colon, text = line.partition(": ")
        if colon and head in _NAMED:
            key, named[head] = head, text
        elif key and line.startswith(" "):
            named[key] = f"{named[key]} {line.strip()}"
        else:
            key = ""
            prose.append(line)
    missing = [head for head in _NAMED[:-1] if not named.get(head)]
    if missing or not summary:
        raise InternalError(f"the pass {pass_class.name!r} does not say: {', '.join(missing)}")
    return Description(
        summary.strip(),
        "\n".join(prose).strip(),
        *(named.get(head, "") for head in _NAMED),
    )


_NAMED = ("Requires", "Preserves", "Cost", "Source")
