"""What a program pays once: the time to import and to compile, and its peak of memory, each in a new process.

`python -m benchmarks.process nnkit NNKit` is such a process; it prints its measurements as JSON.  It imports
nothing but the standard library before the library it measures.
"""

from __future__ import annotations

import compileall
import functools
import importlib
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

STEPS = 20
MEASURED = {
    "start": "compile the training step, imports included: from nothing to the first result",
    "compile": "the same without imports: build and first call, libraries loaded as needed",
    "import": "import, with what a program uses",
    "memory": f"peak memory of {STEPS} training steps, whole process",
}
FAILED = "failed in a new process"
LATE = {
    "nnkit": ("staged", "Tensor2D", "value_and_gradient", "donate", "nn", "tree", "cross_entropy")
}
"""Names of packages that load their parts when a name is first used, which counts as importing them."""


def measure(package: str, mode: str) -> dict[str, float]:
    """Measure in a new process, with no compiled code left from before.

    Python's own bytecode is there, as installing a package writes it.

    Units: import and compile in seconds, memory in bytes.  Raises: RuntimeError with what it said last.
    """
    write_bytecode()
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryDirectory() as empty:
        fresh = {"TORCHINDUCTOR_CACHE_DIR": empty, "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1"}
        run = subprocess.run(
            [sys.executable, "-m", "benchmarks.process", package, mode],
            capture_output=True,
            text=True,
            env=kept | fresh,
            check=False,
        )
    if run.returncode:
        raise RuntimeError((run.stderr.strip().splitlines() or [FAILED])[-1])
    measured: dict[str, float] = json.loads(run.stdout.splitlines()[-1])
    return measured


@functools.cache
def write_bytecode() -> None:
    """Compile this repository's Python files, as `pip` did with those of the libraries beside it.

    Under PYTHONDONTWRITEBYTECODE=1 an editable installation compiles them in each new process, for 0.6 s.
    """
    root = Path(__file__).parents[1]
    for folder in ("nnkit", "staging", "core", "jit", "benchmarks"):
        compileall.compile_dir(root / folder, quiet=2)


def main(package: str, mode: str) -> None:
    begin = time.perf_counter()
    loaded = importlib.import_module(package)
    for name in LATE.get(package, ()):
        getattr(loaded, name)
    imported = time.perf_counter()
    problems = importlib.import_module("benchmarks.problems")
    workloads = importlib.import_module(f"benchmarks.workloads_{package}")
    (step,) = (problem for problem in problems.PROBLEMS if problem.name == "step")
    arrays = step.arrays()
    building = time.perf_counter()
    call = workloads.BUILD["step"](arrays, mode)
    call()
    built = time.perf_counter()
    for _ in range(STEPS - 1):
        call()
    measured = {"import": imported - begin, "compile": built - building, "memory": peak_memory()}
    measured["start"] = measured["import"] + measured["compile"]
    print(json.dumps(measured))


def peak_memory() -> float:
    """Bytes.  What Linux hands to `getrusage` counts the parent before the new program was loaded."""
    status = Path("/proc/self/status")
    if status.exists():
        found = re.search(r"VmHWM:\s*(\d+) kB", status.read_text())
        if found:
            return int(found[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


if __name__ == "__main__":
    main(*sys.argv[1:])
