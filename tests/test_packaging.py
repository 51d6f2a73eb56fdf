"""The wheel: built in both usual ways, installed in a new environment, used outside the checkout."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
VERSIONS = re.findall(r":: Python :: (\d+\.\d+)$", "\n".join(PROJECT["classifiers"]), re.MULTILINE)
"""Of Python, that are tested."""
LEFT_OUT = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "__pycache__")
PROGRAM = """
import sys
from pathlib import Path
import numpy as np
import nnkit as nk
from nnkit import Rep, Tensor1D, Tensor2D, f32

assert "llvmlite" not in sys.modules, "import nnkit must not load LLVM"
assert Path(nk.__file__).is_relative_to(sys.prefix), nk.__file__

@nk.staged
def f(x: Rep[Tensor2D[f32]], w: Rep[Tensor2D[f32]], b: Rep[Tensor1D[f32]]) -> Rep[Tensor2D[f32]]:
    return nk.tanh(x @ w + b)

x, w, b = np.ones((2, 3), np.float32), np.full((3, 4), 0.1, np.float32), np.ones(4, np.float32)
y = f(Tensor2D(x), Tensor2D(w), Tensor1D(b))
np.testing.assert_allclose(y.numpy(), np.tanh(x @ w + b), rtol=1e-5)
print("works")
"""


def run(*command: str | Path, cwd: Path) -> str:
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    environment["PIP_DISABLE_PIP_VERSION_CHECK"] = "1"
    finished = subprocess.run(command, cwd=cwd, capture_output=True, text=True, env=environment)
    assert finished.returncode == 0, f"{command}\n{finished.stdout}\n{finished.stderr}"
    return finished.stdout


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tree, so that nothing is built in the checkout."""
    copied = tmp_path_factory.mktemp("source") / "nnkit"
    return shutil.copytree(ROOT, copied, symlinks=True, ignore=LEFT_OUT)


@pytest.fixture(scope="module")
def wheel(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder, ".", cwd=source)
    (built,) = folder.glob("*.whl")
    return built


def contents(archive: Path) -> set[str]:
    with zipfile.ZipFile(archive) as opened:
        return {name for name in opened.namelist() if ".dist-info/" not in name}


def expected_contents() -> set[str]:
    package = ROOT / "nnkit"
    folders = [package, *(package / link.name for link in package.iterdir() if link.is_symlink())]
    return {
        str(path.relative_to(ROOT))
        for folder in folders
        for pattern in ("*.py", "*.pyi", "py.typed")
        for path in folder.rglob(pattern)
    }


def test_a_wheel_has_one_package(wheel: Path) -> None:
    assert contents(wheel) == expected_contents()
    assert {name.split("/")[0] for name in contents(wheel)} == {"nnkit"}


def test_the_metadata_says_what_is_needed(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        (name,) = (name for name in opened.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = Parser().parsestr(opened.read(name).decode())
    needed = [need for need in metadata.get_all("Requires-Dist", []) if "extra ==" not in need]
    assert sorted(needed) == sorted(PROJECT["dependencies"])
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == f">={VERSIONS[0]}"


def test_readme_and_makefile_say_the_versions_of_the_metadata() -> None:
    *others, last = VERSIONS
    assert f"Python {', '.join(others)} or {last}" in (ROOT / "README.md").read_text()
    major, minor = VERSIONS[0].split(".")
    assert f"sys.version_info < ({major}, {minor})" in (ROOT / "Makefile").read_text()


def test_build_makes_the_same_wheel_from_the_source_archive(
    source: Path, wheel: Path, tmp_path: Path
) -> None:
    run(sys.executable, "-m", "build", "--outdir", tmp_path, cwd=source)
    (rebuilt,) = tmp_path.glob("*.whl")
    assert len(list(tmp_path.glob("*.tar.gz"))) == 1
    assert contents(rebuilt) == contents(wheel)


def new_environment(folder: Path, *installed: str | Path) -> Path:
    """The Python of one with this package, and the dependencies of the environment here: they are not fetched again."""
    run(sys.executable, "-m", "venv", "new", cwd=folder)
    python = folder / "new" / "bin" / "python"
    run(python, "-m", "pip", "install", "-q", "--no-deps", *installed, cwd=folder)
    paths = {"base": str(folder / "new"), "platbase": str(folder / "new")}
    packages = Path(sysconfig.get_path("purelib", "venv", vars=paths))
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python


def test_the_wheel_works_in_a_new_environment(wheel: Path, tmp_path: Path) -> None:
    python = new_environment(tmp_path, wheel)
    (tmp_path / "program.py").write_text(PROGRAM)
    assert run(python, "program.py", cwd=tmp_path) == "works\n"


def test_both_checkers_find_an_editable_install_from_any_folder(
    source: Path, tmp_path: Path
) -> None:
    python = new_environment(tmp_path, "--editable", source)
    (tmp_path / "program.py").write_text(
        "import nnkit as nk\nreveal_type(nk.zeros((2,), nk.f32))\n"
    )
    revealed = "Rep[Tensor1D[f32, Any]]"
    mypy = [sys.executable, "-m", "mypy", "--strict", "--python-executable", python]
    assert revealed in run(*mypy, "program.py", cwd=tmp_path).replace("nnkit.", "")
    pyright = [sys.executable, "-m", "pyright", "--pythonpath", python]
    assert revealed in run(*pyright, "program.py", cwd=tmp_path)
