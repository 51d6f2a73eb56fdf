"""Specializations: staged functions for arguments of given shapes, which can be compiled.

`native_code` does the work.  It is imported on first use, the one late import there is, so that `import nnkit` loads
neither the passes nor LLVM.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any, Protocol

from .core.garbage import garbage_left
from .core.ir import Function, Module, SavePolicy
from .core.lazy_dataclass import dataclass
from .core.types import FunctionType
from .memory_analysis import MemoryAnalysis
from .progress import Progress
from .redefinitions import Watched
from .staging.expression import Callee, Shapes, Trace
from .staging.halves import LinkableHalves
from .staging.known_shapes import TypeLookup, type_lookup
from .staging.spec import Spec
from .staging.user_calls import call_with_large_stack


class Program(Protocol):
    """Native code of a specialisation, as Python calls it."""

    call: Callable[..., Any]
    """On concrete values."""

    result: Spec
    """The type of the result."""

    result_shapes: Sequence[tuple[int, ...]]
    """Of the tensors in the result, from left to right."""

    is_guarded: bool
    """Whether native code looks at what the program depends on."""

    def followed_by(self, fallback: Callable[..., Any]) -> Callable[..., Any]:
        """The same code, where `fallback` sees to arguments that do not fit."""
        ...

    def drop_kept_results(self) -> None:
        """Free the memory that is kept for the next results."""
        ...


@dataclass(frozen=True)
class Specialization:
    """A callee for arguments of given shapes."""

    callee: Callee
    specs: tuple[Spec, ...]
    shapes: tuple[tuple[int, ...], ...]
    donated: tuple[int, ...] = ()
    """The arguments whose buffers the results may take over."""
    watched: Watched | None = None
    """What native code looks at in each call."""
    progress: Progress | None = field(default=None, compare=False)
    """The clock that has run since tracing began."""

    def module(self, stage: str) -> tuple[Module, Function]:
        """The module as it is at the end of `stage`, and its entry function.

        Raises: StagingError when there is no such stage.
        """
        found: tuple[Module, Function] = _on_stages("module_at", self, stage)
        return found

    def text(self, stage: str) -> str:
        """The module at the end of `stage`, as text."""
        text: str = _on_stages("printed", self, stage)
        return text

    def llvm(self) -> str:
        """The LLVM IR of the kernel."""
        text: str = _on_stages("llvm_text", self)
        return text

    def assembly(self) -> str:
        """The machine code of the kernel."""
        text: str = _on_stages("assembly_text", self)
        return text

    def memory(self) -> MemoryAnalysis:
        """What a call takes of memory."""
        found: MemoryAnalysis = _on_stages("memory_of", self)
        return found

    def halves(
        self, sources: Sequence[int], wrt: Sequence[int], save: SavePolicy
    ) -> tuple[LinkableHalves, FunctionType]:
        """The halves of its gradient, of and by these leaves of results and parameters, and its flat type."""
        found: tuple[LinkableHalves, FunctionType] = _on_stages(
            "halves_of", self, sources, wrt, save
        )
        return found

    def compiled(
        self,
        fallback: Callable[..., Any],
        name: str,
        *,
        given_result: bool = False,
        markers: Sequence[object] = (),
    ) -> Program:
        """Native code on concrete values; `fallback` sees to arguments that do not fit.

        With `given_result` the keyword `out` is a value like the result, to whose arrays it is written.  Tensors in
        donated arguments hold `markers` in place of their arrays after a call.
        """
        program: Program = _on_stages("compiled", self, fallback, name, given_result, markers)
        return program


@type_lookup.register
def _type_lookup(trace: Trace, shapes: Shapes) -> TypeLookup:
    found: TypeLookup = _on_stages("type_lookup_in", trace, shapes)
    return found


def _on_stages(name: str, *arguments: Any) -> Any:
    """What the function of `nnkit.native_code` with this name returns."""
    with garbage_left():  # nearly all that modules make stays
        from . import native_code  # noqa: PLC0415  # the passes and LLVM load when they are needed

    return call_with_large_stack(getattr(native_code, name), *arguments)
