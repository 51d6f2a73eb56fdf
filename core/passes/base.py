"""What a pass is: a frozen dataclass whose fields are its options.

A pass changes IR in place, keeps its meaning bit for bit (unless its text says otherwise), and says
whether it changed anything.  Run twice, it changes nothing the second time.
"""

from __future__ import annotations

import abc
from typing import ClassVar, TypeAlias

from ..ir import Function, Module


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
