"""By how much the resident memory of a process grows in a call, at most: `python -m benchmarks.resident nnkit 3`.

Compilers say what they plan; what products allocate while they run is in no plan.  So a new process compiles a program
of `memory_programs` for its large shapes, and runs it once, between two looks at what Linux counts: pages that the
process has, and the most that it has had (`VmRSS`, `VmHWM`).  Before, it runs it for the small shapes, so that threads
are there.  All memory from 64 KiB on is the system's, and goes back to it.
"""

from __future__ import annotations

import gc
import importlib
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

from .memory_programs import PROGRAMS

_STATUS: Final = Path("/proc/self/status")
_FORGET: Final = Path("/proc/self/clear_refs")
_ALLOCATOR: Final = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}


def resident_bytes(library: str, number: int) -> int:
    """Of program `number`, in a new process.  Raises: RuntimeError with what it said last."""
    run = subprocess.run(
        [sys.executable, "-m", "benchmarks.resident", library, str(number)],
        capture_output=True,
        text=True,
        env=os.environ | _ALLOCATOR,
        check=False,
    )
    if run.returncode:
        raise RuntimeError((run.stderr.strip().splitlines() or ["it failed"])[-1])
    return int(run.stdout.splitlines()[-1])


def main(library: str, number: str) -> None:
    side = importlib.import_module(f"benchmarks.memory_{library}")
    program = PROGRAMS[int(number)]
    side.compiled(program, program.shapes)()
    call = side.compiled(program, program.large)
    gc.collect()
    _FORGET.write_text("5")  # the most that it has had is what it has now
    before = _pages("VmRSS")
    result = call()
    print(_pages("VmHWM") - before)
    del result


def _pages(word: str) -> int:
    """Bytes."""
    found = re.search(rf"{word}:\s*(\d+) kB", _STATUS.read_text())
    if found is None:
        raise RuntimeError(f"the system says no {word}")
    return int(found[1]) * 1024


if __name__ == "__main__":
    main(*sys.argv[1:])
