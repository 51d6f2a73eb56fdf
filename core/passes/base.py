"""What a pass is: a frozen dataclass whose fields are its options.

A pass changes IR in place, keeps its meaning bit for bit (unless its text says otherwise), and says
whether it changed anything.  Run twice, it changes nothing the second time.

What it needs, keeps and costs stands in its docstring, which `describe` reads; `docs/passes.md` is made from that.
"""

from __future__ import annotations

import abc
import inspect
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from ..errors import InternalError
from ..ir import Function, Module


@dataclass(frozen=True)
class FunctionPass(abc.ABC):
    """A pass that looks at one function at a time."""

    name: ClassVar[str]
    """As the pipeline, the command line and error messages call it."""

    @abc.abstractmethod
    def run(self, function: Function, module: Module) -> bool:
        """Improve `function`, which has a body; whether it changed."""

    def run_all(self, module: Module) -> bool:
        """Improve all functions of `module`; a pass can share here what it knows about the module."""
        functions = [f for f in module.functions.values() if f.body is not None]
        changed = [self.run(function, module) for function in functions]
        return any(changed)


@dataclass(frozen=True)
class ModulePass(abc.ABC):
    """A pass that needs to see all functions together."""

    name: ClassVar[str]

    @abc.abstractmethod
    def run(self, module: Module) -> bool:
        """Improve `module`; whether it changed."""


Pass: TypeAlias = FunctionPass | ModulePass


def apply_pass(a_pass: Pass, module: Module) -> bool:
    """Run the pass on all of `module`; whether it changed anything."""
    return a_pass.run(module) if isinstance(a_pass, ModulePass) else a_pass.run_all(module)


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
