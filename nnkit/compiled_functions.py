"""Staged functions and their native code: what is compiled for which arguments, and what of it can be shown."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from types import BuiltinFunctionType, MappingProxyType
from typing import Any, ClassVar, Final

from .compile import Program, Specialization
from .conversion import shapes_of, signature_of, spec_of
from .core.errors import InternalError
from .forking import COMPILING
from .html import IRText
from .memory_analysis import MemoryAnalysis
from .progress import Progress
from .redefinitions import Watched, watched_by
from .specializations import Specializations
from .staging.epochs import EPOCH
from .staging.known_shapes import notes_of_shapes
from .staging.primitive import staging_error
from .staging.recursion import is_unfinished
from .staging.staged_functions import is_staged_function
from .staging.tracebacks import public
from .staging.user_calls import call_on_new_stack, call_with_large_stack, staging_lock
from .static_parameters import WithStatics

_MOST_AGAIN: Final = 50
"""Calls that are begun anew inside of each other, as what they depend on changes while they are compiled."""


class _Again(threading.local):
    """How many there are on this thread."""

    count = 0


_AGAIN: Final = _Again()

_NO_STATICS: Mapping[str, Any] = MappingProxyType({})


class WithCode(WithStatics):
    """Base of staged functions: what concerns the code that is compiled for them.

    Calls go to `_entry`: native code if there is some, which hands on to `_dispatch` what it does not take.
    """

    __slots__ = ("_entry", "_programs", "_watched")
    is_variant: ClassVar[bool] = False
    """Whether it was made of a staged function for the same Python function."""
    _entry: Callable[..., Any]
    _programs: Specializations
    _watched: Watched | None

    def _begin_without_code(self) -> None:
        """Let nothing be compiled: calls are dispatched."""
        self._programs = Specializations(self._dispatch)
        self._entry = self._dispatch
        self._watched = None

    def _dispatch(self, *arguments: Any, **keywords: Any) -> Any:
        """A call that no native code takes."""
        raise NotImplementedError("of StagedFunction")

    def _values(self, arguments: Sequence[Any], *, specs: bool = False) -> list[Any]:
        """The arguments as compiled code reads them; `specs` of arrays may stand for them."""
        raise NotImplementedError("of StagedFunction")

    def _of_data(self, arguments: Sequence[Any]) -> WithCode:
        """The function of the other parameters, once those that are functions are given."""
        raise NotImplementedError("of StagedFunction")

    @public
    def ir(self, *arguments: Any, stage: str = "raw", **statics: Any) -> str:
        """The IR for arguments of these shapes (tensors, structs, or `spec(shape, dtype)`).

        `stage`: raw, optimizable, optimized, compute or schedule.  Comments in front name the functions that are traced
        for each shapes, and the lines that need a size as a Python int.
        """
        shown = self._inspected(arguments, statics)
        notes = [f"// {note}\n" for note in notes_of_shapes(shown.callee)]
        return IRText("".join(notes) + shown.text(stage))

    @public
    def llvm(self, *arguments: Any, **statics: Any) -> str:
        """The LLVM IR of the compiled function for arguments of these shapes."""
        return IRText(self._inspected(arguments, statics).llvm())

    @public
    def asm(self, *arguments: Any, **statics: Any) -> str:
        """Its machine code, as assembly."""
        inspected = self._inspected(arguments, statics)
        with COMPILING:
            return IRText(inspected.assembly())

    @public
    def memory_analysis(self, *arguments: Any, **statics: Any) -> MemoryAnalysis:
        """What a call with arguments of these shapes takes of memory: arguments, results, temporaries, at most."""
        return self._inspected(arguments, statics).memory()

    @public
    def compile(self, *arguments: Any, **statics: Any) -> None:
        """Compile for arguments of these shapes, without running."""
        if statics or self._has_static(arguments):
            of, data = self._variant_and_data(arguments, dict(statics))
            of.compile(*data)
            return
        if any(map(is_staged_function, arguments)):
            data = [one for one in arguments if not is_staged_function(one)]
            return self._of_data(arguments).compile(*data)
        values = self._values(arguments, specs=True)
        key = tuple(map(signature_of, values))
        if self._programs.find(key) is None:
            self._compile(key, values)
        return None

    def cache_size(self) -> int:
        """How many compiled specialisations there are, for these static arguments; `set_cache_limit` bounds it.

        Calls with `out=` have their own.
        """
        return len(self._programs)

    def clear_cache(self) -> None:
        """Drop all compiled specialisations; the next calls trace and compile anew."""
        self._drop_code()
        EPOCH.number += 1

    def _drop_code(self) -> None:
        with COMPILING:
            self._entry = self._dispatch
            self._programs.clear()
            self._watched = None

    def specialized(self, arguments: Sequence[Any]) -> tuple[Specialization, list[Any]]:
        """What a call with this data runs, and the arguments as it reads them."""
        values = self._values(arguments)
        specialization, watched = call_with_large_stack(self._recorded, values)
        with COMPILING:
            self._watch(watched)
        return specialization, values

    def _inspected(
        self, arguments: Sequence[Any], statics: Mapping[str, Any] = _NO_STATICS
    ) -> Specialization:
        """What is shown for these arguments, some of which may be functions."""
        if statics or self._has_static(arguments):
            of, data = self._variant_and_data(arguments, dict(statics))
            return of._inspected(data)
        if any(map(is_staged_function, arguments)):
            data = [one for one in arguments if not is_staged_function(one)]
            return self._of_data(arguments)._inspected(data)
        values = self._values(arguments, specs=True)
        return call_with_large_stack(self._traced, values)

    def forget_what_changed(self) -> None:
        """Drop all that is compiled, if something that it depends on has been redefined."""
        if self._watched is not None and self._watched.have_changed():
            self._drop_code()

    @public
    def _refuse(self, *arguments: Any, **keywords: Any) -> Any:
        """The code for these arguments does not take them.

        The stack of this thread is too small for it, or another thread has changed what it depends on.
        """
        self._values(arguments)  # which have been donated meanwhile, perhaps
        if not _AGAIN.count:
            return call_on_new_stack(self._once_more, 1, arguments, keywords)
        if _AGAIN.count < _MOST_AGAIN and (self._watched is None or self._watched.variables()):
            return self._once_more(_AGAIN.count + 1, arguments, keywords)
        raise InternalError(
            f"{self.stageable.name} does not take arguments of the types and shapes it was compiled for, or "
            "another thread changed them during the call"
        )

    def _once_more(self, count: int, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        """The call, of so many that have been begun anew."""
        before, _AGAIN.count = _AGAIN.count, count
        try:
            return self._dispatch(*arguments, **keywords)
        finally:
            _AGAIN.count = before

    def _traced(self, values: Sequence[Any]) -> Specialization:
        """The specialisation, with the clock that runs from now on."""
        progress = Progress(self.stageable.name)
        with staging_lock(), progress.tracing():
            found = self._specialization(values)
        return replace(found, progress=progress)

    def _recorded(self, values: Sequence[Any]) -> tuple[Specialization, Watched]:
        """The specialisation, and what its programs depend on: of this trace, not of one that another thread makes."""
        with staging_lock():
            found = self._traced(values)
            return found, watched_by(found.callee, self.stageable, is_variant=self.is_variant)

    def _specialization(self, values: Sequence[Any]) -> Specialization:
        specs = tuple(map(spec_of, values))
        shapes = tuple(shape for value in values for shape in shapes_of(value))
        callee = self.stageable.callee(specs, shapes)
        if is_unfinished(callee):
            raise staging_error(
                f"{self.stageable.name} is called with concrete values while it is staged: it cannot "
                "run yet",
                "call it with Reps; `const(value)` makes one",
            )
        if callee.captures:
            raise staging_error(
                f"{self.stageable.name} uses Reps of the staged function it was made in: "
                "it runs only there",
                "call it with Reps, inside that function",
            )
        return Specialization(callee, specs, shapes)

    def _compile(
        self,
        key: Hashable,
        values: Sequence[Any],
        compiled: Callable[[Specialization], Program] | None = None,
    ) -> Program:
        """A new specialisation, which becomes the first to be tried; `compiled` is `_native`, or another way to."""
        # runs the user's function: not under the lock
        specialization, read = call_with_large_stack(self._recorded, values)
        with COMPILING:
            known = self._programs.find(key)
            if known is None:
                watched = self._watch(read)
                known = (compiled or self._native)(replace(specialization, watched=watched))
                if (
                    watched.have_changed()
                ):  # by another thread: right for this call, which began before
                    return known
                self._programs.add(key, known)
                self._enter(known)
            return known

    def _watch(self, found: Watched) -> Watched:
        """What programs depend on: for other types of arguments, tracing may have read more."""
        if self._watched is None or not self._watched.covers(found):
            found.before, self._watched = self._watched, found
        return self._watched

    def _enter(self, program: Program) -> None:
        """Let calls go to native code first, unless there is something that only Python can look at."""
        if program.is_guarded:
            head = self._programs.head
            self._entry = head if isinstance(head, BuiltinFunctionType) else public(head)

    def _native(self, specialization: Specialization) -> Program:
        return specialization.compiled(self._refuse, self.stageable.name)
