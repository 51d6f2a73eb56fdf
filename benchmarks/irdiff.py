"""Compare the LLVM code of two commits: `python -m benchmarks.irdiff BASE [HEAD] [--tests PATH ...]`.

Both trees run the same things with the Python that runs this: the examples, and pytest on the tests that both have.  A
plugin records every LLVM module that they compile, in order.  A test whose code differs is named, with the first
difference; `HEAD` is the working tree unless another commit is named.

1. `git worktree` checks out what is to be compared, in a temporary folder.
2. pytest runs there, with this file as its plugin, hash seeds and Hypothesis's seed fixed.
3. The records, one JSON file a tree, are compared test by test.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Final

RECORD: Final = "NNKIT_IRDIFF"
"""The variable of the environment that names the file to write; a worker of pytest-xdist adds its own name."""

TESTS: Final = (
    "tests/test_examples.py",
    "tests/test_benchmarks.py",
    "tests/ir",
    "tests/nnkit",
    "tests/jit",
)
"""What compiles most: programs as text, the typed language, kernels."""

Record = Mapping[str, Sequence[str]]
"""The LLVM modules that each test compiled."""

_compiled: dict[str, list[str]] = {}
_current = ["collection"]


def pytest_configure() -> None:
    """Record what is compiled from now on."""
    if RECORD not in os.environ:
        return
    llvm = import_module("nnkit.jit.llvm")
    engine: Any = llvm.Engine
    object_code = engine.object_code

    def recorded(self: Any, text: str) -> bytes:
        _compiled.setdefault(_current[0], []).append(text)
        made: bytes = object_code(self, text)
        return made

    engine.object_code = engine.kept_object = recorded


def pytest_runtest_logstart(nodeid: str) -> None:
    """From here on, modules are those of this test."""
    _current[0] = nodeid


def pytest_sessionfinish() -> None:
    """Write what was recorded."""
    if RECORD in os.environ:
        name = os.environ[RECORD] + os.environ.get("PYTEST_XDIST_WORKER", "")
        Path(name).write_text(json.dumps(_compiled))


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n", maxsplit=1)[0])
    parser.add_argument("base", help="the commit to compare with")
    parser.add_argument("head", nargs="?", help="another commit than the working tree")
    parser.add_argument("--tests", nargs="+", default=TESTS, help="what pytest is to run")
    parser.add_argument(
        "--lines", type=int, default=12, help="lines of difference to show for each test"
    )
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        records: list[Record] = []
        for name, commit in (("base", options.base), ("head", options.head)):
            with tree(commit, Path(folder) / name) as root:
                records.append(record(root, options.tests, Path(folder) / f"{name}.json"))
    return report(*records, lines=options.lines)


@contextmanager
def tree(commit: str | None, folder: Path) -> Iterator[Path]:
    """A checkout of `commit`; the working tree for None."""
    if commit is None:
        yield Path.cwd()
        return
    subprocess.run(["git", "worktree", "add", "-q", "--detach", str(folder), commit], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["git", "worktree", "remove", "--force", str(folder)], check=True)


def record(root: Path, tests: Sequence[str], file: Path) -> Record:
    """What the tests compile in the tree at `root`; those that it does not have are left out."""
    plugin = file.with_suffix(".plugin")
    plugin.mkdir()
    (plugin / "irdiff_plugin.py").write_text(Path(__file__).read_text())
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")},
        RECORD: str(file),
        "PYTHONPATH": os.pathsep.join([str(root), str(plugin)]),
        "PYTHONHASHSEED": "0",
    }
    present = [test for test in tests if (root / test.split("::")[0]).exists()]
    options = [
        "-q",
        "-p",
        "irdiff_plugin",
        "-p",
        "no:cacheprovider",
        "--hypothesis-seed=0",
        "-n",
        "2",
        "--dist=loadfile",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *present],
        cwd=root,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    print(f"{root.name}: {done.stdout.strip().splitlines()[-1]}", file=sys.stderr)
    found: dict[str, list[str]] = {}
    for part in sorted(file.parent.glob(f"{file.name}gw*")):
        found.update(json.loads(part.read_text()))
    return found


def report(base: Record, head: Record, *, lines: int) -> int:
    """Say what differs; 1 if anything does."""
    common = [test for test in base if test in head]
    differing = [test for test in common if base[test] != head[test]]
    for test in differing:
        old, new = "\n".join(base[test]).splitlines(), "\n".join(head[test]).splitlines()
        print(f"{test}: {len(old):,} lines before, {len(new):,} now")
        for shown, line in enumerate(difflib.unified_diff(old, new, lineterm="", n=1)):
            if shown > lines + 1:
                break
            if shown > 1:  # the names of the files
                print(f"    {line}")
    modules = sum(len(base[test]) for test in common)
    print(
        f"{len(differing) or 'no'} differences: {len(common):,} tests compile {modules:,} modules; "
        f"{len(base) - len(common):,} tests only before, {len(head) - len(common):,} only now"
    )
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
