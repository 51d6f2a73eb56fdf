"""The outputs of `dlc`: text of a stage, code of a target, a linked library."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

from ..core.driver.stages import advance
from ..core.ir import Module
from ..core.lazy_dataclass import dataclass
from ..core.stage import Stage
from ..core.text import print_module
from ..core.types import written
from ..jit.ahead_of_time import (
    LibraryCompiler,
    find_target,
    host_triple,
    schedule_target,
    write_library,
)
from ..jit.header import Interface, header_text, interface_of
from ..jit.triples import is_like
from .command import InputError
from .modules import defined, refuse_return

_TEXTS = {stage.value: stage for stage in Stage}


@dataclass(frozen=True)
class Artifact:
    """A compiled artifact, and its C header."""

    data: str | bytes
    header: str


def compile_module(
    module: Module, kind: str, *, level: int, triple: str | None, cpu: str | None
) -> Artifact:
    """Compile `module`, of a stage that has the types of the C interface, which is used up.

    `kind` is one of `dlc.KINDS`; a shared library is an object still to be linked.
    Raises: InputError when there is nothing to compile or the module is beyond what is asked for, UnsupportedError
        for an unknown target.
    """
    if module.stage.has_reached(Stage.COMPUTE):
        raise InputError(
            f"the module is in stage {module.stage.value}, whose functions have no types of C any more: dlc starts "
            "from the stages raw, optimizable and optimized"
        )
    target = find_target(triple, cpu)
    wanted = _TEXTS.get(kind, Stage.SCHEDULE)
    refuse_return(module.stage, wanted)
    interface = interface_of(module, defined(module))
    if module.stage is Stage.RAW:
        advance(module, Stage.OPTIMIZABLE, level=level)
    header = header_text(interface, ())
    if wanted is not module.stage:
        if not interface.exports:
            raise InputError(_nothing_to_compile(interface))
        exported = (export.name for export in interface.exports)
        advance(module, wanted, *exported, level=level, target=schedule_target(target))
    if kind in _TEXTS:
        return Artifact(print_module(module), header)
    library = write_library(module, interface, target)
    header = header_text(interface, library.messages)
    with LibraryCompiler(library, target, level=level) as emitter:
        match kind:
            case "header":
                return Artifact(header, header)
            case "llvm":
                return Artifact(emitter.llvm(), header)
            case "bc":
                return Artifact(emitter.bitcode(), header)
            case "asm":
                return Artifact(emitter.assembly(), header)
            case _:
                return Artifact(emitter.object_code(), header)


def link(code: bytes, output: str, triple: str | None) -> None:
    """Link an object to a shared library, with the C compiler that `CC` names, or `cc`.

    Raises: InputError when there is no compiler, or it fails.
    """
    given = os.environ.get("CC", "")
    if triple is not None and not given and not is_like(triple, host_triple()):
        raise InputError(
            f"a shared library for {triple} needs a C compiler for it: set CC, as CC={triple}-gcc"
        )
    command = shlex.split(given) or ["cc"]
    if shutil.which(command[0]) is None:
        raise InputError(
            f"a shared library needs a C compiler, and there is no {command[0]}: install one, set CC, or "
            "use --emit obj"
        )
    with tempfile.TemporaryDirectory() as folder:
        object_file = Path(folder) / "module.o"
        object_file.write_bytes(code)
        linked = subprocess.run(
            [*command, "-shared", "-o", os.path.abspath(output), str(object_file), "-lm"],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    if linked.returncode:
        problem = (linked.stderr or linked.stdout).strip()
        raise InputError(f"{' '.join(command)} cannot link {output}:\n{problem}")


def _nothing_to_compile(interface: Interface) -> str:
    if not interface.left_out:
        return "the module has no function with a body: there is nothing to compile"
    reasons = "\n".join(f"  {written('@', name)}: {reason}" for name, reason in interface.left_out)
    return f"no function of the module has a C interface:\n{reasons}"
