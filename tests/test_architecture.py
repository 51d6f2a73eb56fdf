"""Imports flow one way: nnkit → staging → core ← jit; inside core from types to schedule."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.rows import each

ROOT = Path(__file__).parent.parent
ALLOWED = {
    "nnkit": {"nnkit", "staging", "core"},
    "staging": {"staging", "core"},
    "core": {"core"},
    "jit": {"jit", "core"},
}
EXTERNAL = {
    "nnkit": {"numpy", "typing_extensions"},
    "staging": {"numpy", "typing_extensions"},
    "core": {"numpy", "typing_extensions"},
    "jit": {"numpy", "typing_extensions", "llvmlite", "threadpoolctl"},
}
SEES_MYPY = Path("nnkit/mypy")
"""What mypy loads, and nothing else."""
SEES_JIT = {
    Path("nnkit/native_code.py"),
    Path("nnkit/tools/build.py"),
    Path("nnkit/tools/native.py"),
}
LATE = {
    # which alone sees jit, so that LLVM loads on first use
    Path("nnkit/compile.py"): "nnkit.native_code",
    # what generates and schedules code, so that `dlopt -O2` starts without it
    Path("core/driver/stages.py"): "nnkit.core.driver.lowering",
}
"""The files with a late import, and of what."""
BY_NAME = {
    Path("nnkit/__init__.py"),  # public names, when they are first used
    Path("nnkit/introspection.py"),  # what a pickled function is called
    Path("nnkit/tools/command.py"),  # what the options of a tool ask for
    Path("jit/entry/capi.py"),  # NumPy, as it is built
    Path(
        "jit/runtime/libraries.py"
    ),  # threadpoolctl, which sets a variable of the environment meanwhile
}
"""Files that import a module by its name as text, where no checker follows."""
LAYERS = [
    {
        *{
            "errors",
            "types",
            "round_to_odd",
            "location",
            "signal_handlers",
            "stage",
            "garbage",
            "thread_stack",
            "generated_methods",
            "lazy_dataclass",
        },
        "host_calls",
    },
    {"ir"},
    {"ops"},
    {"analysis"},
    {"text", "verify", "passes", "autodiff", "batching", "compute", "evaluate"},
    {"kernels", "schedule"},
    {"driver"},
]
"""Of core: a module imports from its own layer or one above."""
CLASS_TESTS = 146
"""How often code outside of `core/ops` and `core/kernels` may ask of which class an op is: where the class is the
subject, as in a law."""
SIDES = {"text", "passes", "autodiff", "compute"}
"""Packages of one layer that do not know each other."""
FILES = [
    path.relative_to(ROOT)
    for package in ALLOWED
    for path in sorted((ROOT / package).rglob("*.py"))
    if not any(parent.is_symlink() for parent in path.parents)
]


def module_of(path: Path) -> list[str]:
    """The dotted name, from the import package on: core/ir/value.py is nnkit.core.ir.value."""
    parts = path.with_suffix("").parts
    parts = parts[:-1] if parts[-1] == "__init__" else parts
    return list(parts) if parts[0] == "nnkit" else ["nnkit", *parts]


def imports(path: Path) -> Iterator[tuple[str, ast.stmt]]:
    """Every absolute name a file imports, with its statement."""
    package = module_of(path) if path.name == "__init__.py" else module_of(path)[:-1]
    for node in ast.walk(ast.parse((ROOT / path).read_text())):
        match node:
            case ast.Import():
                yield from ((alias.name, node) for alias in node.names)
            case ast.ImportFrom(module=str(module), level=0):
                yield from ((f"{module}.{alias.name}", node) for alias in node.names)
            case ast.ImportFrom(module=module, level=level):
                base = [*package[: len(package) - level + 1], *([module] if module else [])]
                yield from ((".".join([*base, alias.name]), node) for alias in node.names)
            case _:
                pass


def house(name: str) -> str:
    """Which of the four folders a name of ours lies in."""
    _, _, inside = name.partition(".")
    second = inside.split(".")[0]
    return second if second in ALLOWED else "nnkit"


def part(name: list[str]) -> str:
    """The part of core a module belongs to: the ops of a stage are ops, wherever they lie."""
    return "ops" if name[3:4] in (["ops"], ["guarded_ops"], ["access_ops"]) else name[2]


def layer(name: str) -> int:
    return next(i for i, parts in enumerate(LAYERS) if name in parts)


@each("path", FILES, ids=str)
def test_imports_follow_the_layers(path: Path) -> None:
    home = path.parts[0]
    allowed = ALLOWED[home] | ({"jit"} if path in SEES_JIT else set())
    for name, _ in imports(path):
        top = name.split(".")[0]
        assert top not in {"core", "staging", "jit"}, f"{name} is imported as nnkit.{name}"
        if top == "nnkit":
            assert house(name) in allowed, f"{path} must not import {name}"
        else:
            known = top in EXTERNAL[home] or top in sys.stdlib_module_names
            known |= top == "mypy" and path.is_relative_to(SEES_MYPY)
            assert known, f"{path} must not import {name}"


@each("path", [path for path in FILES if path.parts[0] == "core"], ids=str)
def test_core_is_layered(path: Path) -> None:
    if path == Path("core/__init__.py"):
        return
    here = part(module_of(path))
    for name, _ in imports(path):
        parts = name.split(".")
        if parts[:2] == ["nnkit", "core"]:
            there = part(parts)
            assert layer(there) <= layer(here), f"{path} must not import {name}"
            if {here, there} <= SIDES:
                assert here == there, f"{path} must not import {name}"


@each("path", FILES, ids=str)
def test_imports_stand_at_the_top(path: Path) -> None:
    tree = ast.parse((ROOT / path).read_text())
    top = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    late = [name for name, node in imports(path) if ast.dump(node) not in map(ast.dump, top)]
    assert {*late} == ({LATE[path]} if path in LATE else set())
    assert "TYPE_CHECKING" not in (ROOT / path).read_text()


@each("path", FILES, ids=str)
def test_few_files_import_by_name(path: Path) -> None:
    text = (ROOT / path).read_text()
    assert "__import__(" not in text
    assert ("import_module(" in text) == (path in BY_NAME)


def names_in(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def op_classes() -> set[str]:
    """The names of the classes of ops, forms among them."""
    trees = [ast.parse((ROOT / path).read_text()) for path in FILES if path.parts[0] == "core"]
    defined = [node for tree in trees for node in tree.body if isinstance(node, ast.ClassDef)]
    found = {"Op"}
    while more := {c.name for c in defined if found & set().union(*map(names_in, c.bases))} - found:
        found |= more
    return found


def class_tests(path: Path, classes: set[str]) -> Iterator[ast.AST]:
    """Where a file asks of which class an op is: isinstance, issubclass, `case`, and what compares classes.

    A tuple or set of classes that has a name, here or in `core/ops`, stands for them.
    """
    tree = ast.parse((ROOT / path).read_text())
    names = [name.split(".") for name, _ in imports(path)]
    known = {name[-1] for name in names if "core" in name[1:2] and {"ir", "ops"} & {*name}}
    known = {name for name in known if name in classes or name.isupper()} - {"ALL", "PROGRAM"}
    for node in tree.body:
        if isinstance(node, ast.Assign) and names_in(node.value) & known:
            known |= set().union(*map(names_in, node.targets))
        if isinstance(node, ast.AnnAssign) and node.value and names_in(node.value) & known:
            known |= names_in(node.target)
    for node in ast.walk(tree):
        match node:
            case ast.Call(ast.Name("isinstance" | "issubclass"), [_, asked]):
                compared = [asked]
            case ast.MatchClass(asked):
                compared = [asked]
            case ast.Compare(ast.Call(ast.Name("type")) | ast.Attribute(attr="__class__")):
                compared = node.comparators
            case _:
                continue
        if any(names_in(asked) & known for asked in compared):
            yield node


def test_generic_code_asks_ops_and_not_for_their_classes() -> None:
    classes = op_classes()
    about_ops = {("core", "ops"), ("core", "kernels")}
    outside = [path for path in FILES if path.parts[:2] not in about_ops]
    found = {
        path: count for path in outside if (count := sum(1 for _ in class_tests(path, classes)))
    }
    assert sum(found.values()) <= CLASS_TESTS, found


def test_the_links_are_relative() -> None:
    for name in ("staging", "core", "jit"):
        link = ROOT / "nnkit" / name
        assert link.is_symlink() and str(link.readlink()) == f"../{name}"
