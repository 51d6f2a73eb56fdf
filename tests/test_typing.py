"""What both type checkers accept and reject, and that the stubs say what exists.

Programs in `typing/` are read by mypy --strict and pyright strict.  `# E` ends a line that both must
flag, `# E:mypy` or `# E:pyright` one that only that checker does; no other line may be flagged.
`good_holes.py` has wrong programs that both accept, and the run time does not.  The code of
`docs/typing.md` is one more program, with `# rejected` for `# E`, and what its text blocks say the
checkers print is what they print.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

import pytest

import nnkit
from nnkit import NNKitError
from tests.rows import each

ROOT = Path(__file__).parent.parent
PROGRAMS = sorted((Path(__file__).parent / "typing").glob("*.py"))
STUBS = {
    "nnkit": "__init__.pyi",
    "nnkit.linalg": "linalg.pyi",
    "nnkit.random": "random.pyi",
    "nnkit.tree": "tree.pyi",
    "nnkit.optim": "optim.pyi",
    "nnkit.nn": "nn/__init__.pyi",
}
STRICT = {
    "typeCheckingMode": "strict",
    # of the interpreter whose packages are read: NumPy 2.5's stubs are in the syntax of 3.12
    "pythonVersion": f"3.{sys.version_info.minor}",
    "reportUnusedExpression": "none",
    "reportUnknownVariableType": "error",
    "reportUnusedVariable": "none",
}
CHECKERS = ("mypy", "pyright")
PAGE = (ROOT / "docs" / "typing.md").read_text()
DOCUMENTED = "documented.py"
"""The name of the program that is the code of the page."""
STUB = "stubs"
"""What is flagged in the stubs is here."""
Flagged = dict[str, dict[int, list[str]]]
"""Per file name, per line: the messages."""


MYPY = """\
[mypy]
strict = true
[mypy-nnkit.*]
# an override is flagged on one of two lines, depending on the version of mypy
warn_unused_ignores = false
"""


def run_mypy(folder: Path, *arguments: str) -> str:
    config = folder / "mypy.ini"
    config.write_text(MYPY)
    command = [sys.executable, "-m", "mypy", "--config-file", str(config), "--no-error-summary"]
    environment = os.environ | {"MYPYPATH": str(folder)}
    run = subprocess.run(
        [*command, "--cache-dir", str(folder / "cache"), "--hide-error-context", *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment,
    )
    assert not run.stderr, run.stderr
    return run.stdout


def run_pyright(folder: Path, *included: str) -> Flagged:
    config = STRICT | {"include": list(included), "extraPaths": ["."]}
    (folder / "pyrightconfig.json").write_text(json.dumps(config))
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "--outputjson"]
    run = subprocess.run([*command, "-p", str(folder)], capture_output=True, text=True)
    flagged: Flagged = defaultdict(dict)
    for found in json.loads(run.stdout)["generalDiagnostics"]:
        if found["severity"] == "error":
            file, line = Path(found["file"]), found["range"]["start"]["line"] + 1
            name = file.name if file.parent.name == "programs" else STUB
            flagged[name].setdefault(line, []).append(found["message"])
    return flagged


def copy_stubs(folder: Path) -> None:
    """The typed face alone, as an installed package would show it, and no line that spares mypy its overloads."""
    package = folder / "nnkit"
    package.mkdir()
    for name in STUBS.values():
        text = (ROOT / "nnkit" / name).read_text().replace("# mypy: ignore-errors\n", "")
        (package / name).parent.mkdir(exist_ok=True)
        (package / name).write_text(text)
    (package / "py.typed").touch()


@pytest.fixture(scope="module")
def flagged(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Flagged]:
    """Both checkers once, over all programs and the stubs together."""
    folder = tmp_path_factory.mktemp("programs")
    copy_stubs(folder)
    (folder / "programs").mkdir()
    for path in PROGRAMS:
        shutil.copy(path, folder / "programs")
    (folder / "programs" / DOCUMENTED).write_text(documented())
    by_mypy: Flagged = defaultdict(dict)
    names = [*(path.name for path in PROGRAMS), DOCUMENTED]
    with ThreadPoolExecutor(1) as beside:
        by_pyright = beside.submit(run_pyright, folder, "programs", "nnkit")
        output = run_mypy(folder, "nnkit", *(f"programs/{name}" for name in names))
    assert all(re.match(r"(nnkit|programs)/\S+:\d+: ", line) for line in output.splitlines())
    said = re.findall(r"^(nnkit|programs)/(\S+?):(\d+): (error|note): (.*)$", output, re.M)
    for part, file, line, kind, message in said:
        name = file if part == "programs" else STUB
        if kind == "error" or int(line) in by_mypy[name]:  # of some notes the line is another one
            by_mypy[name].setdefault(int(line), []).append(message)
    return {"mypy": by_mypy, "pyright": by_pyright.result()}


def fenced(language: str) -> list[str]:
    """The blocks of a language in the page."""
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def documented() -> str:
    """The code of the page, as one program."""
    return "\n".join(fenced("python"))


def matching(text: str, mark: str) -> set[int]:
    """The numbers of the lines that end with the mark."""
    lines = enumerate(text.splitlines(), 1)
    return {number for number, line in lines if re.search(rf"{mark}\s*$", line)}


def expected(path: Path, checker: str) -> set[int]:
    return matching(path.read_text(), f"# E(:{checker})?")


@pytest.mark.slow
@pytest.mark.parametrize("checker", CHECKERS)
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_a_checker_flags_exactly_the_marked_lines(
    path: Path, checker: str, flagged: dict[str, Flagged]
) -> None:
    found, marked = flagged[checker][path.name], expected(path, checker)
    assert path.stem.startswith("good") == (not marked)
    unexpected = {line: found[line] for line in found.keys() - marked}
    assert (marked - found.keys(), unexpected) == (set(), {})


@pytest.mark.slow
@pytest.mark.parametrize("checker", CHECKERS)
def test_a_checker_names_the_remedy(checker: str, flagged: dict[str, Flagged]) -> None:
    """In at most ten lines; the remedy stands before the mark.

    pyright says twice of any class that `int` and `complex` take none of it, in nine lines and ten:
    see 0057.
    """
    [path] = [path for path in PROGRAMS if path.name == "bad_words.py"]
    named = {
        number: found[1]
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if (found := re.search(rf"# (?:in {checker}: )?(\S+) # E(?::{checker})?$", line))
    }
    messages = flagged[checker][path.name]
    wordless = {n: messages[n] for n, remedy in named.items() if remedy not in "".join(messages[n])}
    assert named and not wordless
    printed = {n: "\n".join(dict.fromkeys(messages[n])) for n in messages}
    long = {n: text for n, text in printed.items() if text.count("\n") + 1 > 10}
    twice = matching(path.read_text(), r"^ *(int|complex)\(.*")
    assert long.keys() <= (twice if checker == "pyright" else set())
    assert all(printed[n].count("\n") + 1 <= 20 for n in twice)


@pytest.mark.slow
@pytest.mark.parametrize("checker", CHECKERS)
def test_the_page_for_users_says_what_is_rejected(
    checker: str, flagged: dict[str, Flagged]
) -> None:
    found = flagged[checker][DOCUMENTED]
    assert found.keys() == matching(documented(), f"# rejected(:.*| by {checker})?")
    printed = {message.split("\n")[0] for messages in found.values() for message in messages}
    quoted = re.findall(rf"^{checker}: (.*)$", "".join(fenced("text")), re.MULTILINE)
    missing = [quote for quote in quoted if not any(quote in message for message in printed)]
    assert quoted and not missing


@pytest.mark.slow
@pytest.mark.parametrize("checker", CHECKERS)
def test_the_stubs_themselves_are_clean(checker: str, flagged: dict[str, Flagged]) -> None:
    """With mypy's overlap check of overloads, which the stub switches off for those who use it."""
    assert flagged[checker][STUB] == {}


def test_the_stubs_are_up_to_date(tmp_path: Path) -> None:
    generator = ROOT / "stubs" / "generate.py"
    subprocess.run([sys.executable, str(generator), str(tmp_path)], check=True)
    for name in ("__init__.py", *STUBS.values()):
        assert (tmp_path / name).read_text() == (ROOT / "nnkit" / name).read_text(), (
            "run python stubs/generate.py"
        )


def declared(stub: Path) -> set[str]:
    """The public names a stub declares or re-exports."""
    names = declared_in(ast.parse(stub.read_text()).body)
    return {name for name in names if not name.startswith("_") or name == "__version__"}


def declared_in(body: Sequence[ast.stmt]) -> set[str]:
    names: set[str] = set()
    for node in body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
            case ast.If(body=body):
                names |= declared_in(body)
            case ast.ImportFrom(names=aliases):
                names |= {alias.name for alias in aliases if alias.asname == alias.name}
            case _:
                pass
    return names


@pytest.mark.parametrize("module", STUBS)
def test_the_stub_has_the_names_that_exist(module: str) -> None:
    held = importlib.import_module(module)
    public = {name for name in dir(held) if not name.startswith("_") or name == "__version__"}
    modules = {name for name in public if isinstance(getattr(held, name), ModuleType)} - {
        "linalg",
        "nn",
        "optim",
        "random",
        "tree",
    }
    assert public - modules - {"annotations"} == declared(ROOT / "nnkit" / STUBS[module])


def parameters(node: ast.FunctionDef) -> list[str]:
    """Names of keyword parameters: what a caller can write, other than names that are messages."""
    arguments = node.args
    names = [argument.arg for argument in [*arguments.args, *arguments.kwonlyargs]]
    return [name for name in names if not name.startswith("_")]


@pytest.mark.parametrize("module", STUBS)
def test_keyword_parameters_have_the_names_that_exist(module: str) -> None:
    runtime = importlib.import_module(module)
    for node in ast.parse((ROOT / "nnkit" / STUBS[module]).read_text()).body:
        if isinstance(node, ast.FunctionDef):
            code = inspect.unwrap(getattr(runtime, node.name)).__code__
            known = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
            missing = set(parameters(node)) - set(known)
            assert not missing, f"{node.name} has no parameter {missing}"


def holes() -> dict[str, Callable[[], object]]:
    """The wrong programs that both checkers accept."""
    held = runpy.run_path(str(Path(__file__).parent / "typing" / "good_holes.py"))
    return {name: held[name] for name in held if "_" in name.strip("_")}


@pytest.mark.parametrize("hole", holes().values(), ids=holes())
def test_the_run_time_refuses_what_checkers_miss(hole: Callable[[], object]) -> None:
    with pytest.raises((NNKitError, TypeError)):
        hole()


@pytest.mark.parametrize(
    "path", [path for path in PROGRAMS if path.stem.startswith("good")], ids=lambda path: path.stem
)
def test_accepted_programs_run(path: Path) -> None:
    """Their definitions: staging is lazy, annotations and decorators are not."""
    runpy.run_path(str(path))


def test_the_code_of_the_page_runs(tmp_path: Path) -> None:
    """Its definitions, as of the accepted programs."""
    program = tmp_path / DOCUMENTED
    program.write_text(documented())
    runpy.run_path(str(program))


@each("name", sorted(declared(ROOT / "nnkit" / STUBS["nnkit"]) - {"__version__"}))
def test_every_public_name_has_a_docstring(name: str) -> None:
    """Editors show it: the stub has none of its own, so that they find it beside the code."""
    assert inspect.getdoc(getattr(nnkit, name))
