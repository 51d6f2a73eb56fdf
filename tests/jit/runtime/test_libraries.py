"""The libraries of the process that may have a LAPACK, wherever they lie and whatever their paths are."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import threadpoolctl

from nnkit.jit.runtime import lapack, libraries
from nnkit.jit.runtime.lapack import find_lapack


def test_what_is_no_library_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lapack, "_extensions", list)
    for path in ("", "/nowhere/libblas.so", __file__):
        listed = [{"user_api": "openmp"}, {"user_api": "blas", "filepath": path}]
        monkeypatch.setattr(threadpoolctl, "threadpool_info", lambda listed=listed: listed)
        assert find_lapack.__wrapped__() is None


def test_the_list_of_the_system_where_threadpoolctl_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise UnicodeEncodeError("ascii", "\u043f", 0, 1, "ordinal not in range(128)")

    monkeypatch.setattr(lapack, "_extensions", list)
    known = find_lapack.__wrapped__()
    monkeypatch.setattr(threadpoolctl, "threadpool_info", fail)
    assert find_lapack.__wrapped__() == known
    monkeypatch.setattr(libraries, "_MAPS", Path("/nowhere/maps"))  # as where there is no /proc
    assert find_lapack.__wrapped__() is None


def test_a_mapped_path_of_any_bytes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    maps = tmp_path / "maps"
    maps.write_bytes(
        b"7f0000-7f1000 r-xp 00000000 08:01 77  /a b/\xd0\xbf\xff/libscipy_openblas64_-1.so.3\n"
        b"7f1000-7f2000 r-xp 00000000 08:01 78  /libblas_folder/libm.so.6\n"
        b"7f2000-7f3000 rw-p 00000000 00:00 0 \n"
        b"7f3000-7f4000 rw-p 00000000 00:00 0  [heap]\n"
        b"7f0000-7f1000 r--p 00000000 08:01 77  /a b/\xd0\xbf\xff/libscipy_openblas64_-1.so.3\n"
    )
    monkeypatch.setattr(libraries, "_MAPS", maps)
    (found,) = libraries._mapped_libraries()
    assert os.fsencode(found) == b"/a b/\xd0\xbf\xff/libscipy_openblas64_-1.so.3"
    assert lapack._routines_of(found) is None
    assert lapack._routines_of("/nul\0.so") is None


SOLVE = """
import numpy as np
import nnkit as nk
from nnkit import Tensor2D, f64, fn
x = np.ones((300, 300))
print(fn(Tensor2D[f64], Tensor2D[f64])(lambda x, y: x @ y)(x, x).numpy().sum() == 300.0**3)
try:
    fn(Tensor2D[f64], Tensor2D[f64])(lambda x, y: x @ y)(x, x[:7])
except ValueError as error:
    print(len(ascii(error)) > 0)
identity = np.eye(3)
print((fn(Tensor2D[f64])(lambda x: nk.linalg.inv(x))(identity).numpy() == identity).all())
"""


@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_a_folder_that_the_locale_cannot_encode(tmp_path: Path, locale: str) -> None:
    """NumPy's library is in it, and so are NNKit, and the program."""
    folder = tmp_path / "\u043f\u0430\u043f\u043a\u0430 \u00fc"
    packages = folder / "site"
    packages.mkdir(parents=True)
    installed = Path(np.__file__).parents[1]
    for found in installed.iterdir():
        if found.name in ("numpy", "numpy.libs"):  # a link would be resolved when it is loaded
            shutil.copytree(found, packages / found.name, ignore=shutil.ignore_patterns("tests"))
        elif not found.name.startswith("__editable__"):
            (packages / found.name).symlink_to(found)
    (packages / "nnkit").symlink_to(Path(libraries.__file__).parents[2])
    program = folder / "program.py"
    program.write_text(SOLVE)
    environment = {"LC_ALL": locale, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    environment["PYTHONPATH"] = str(packages)

    def run(*arguments: str | Path) -> subprocess.CompletedProcess[bytes]:
        command = [sys.executable, "-S", *arguments]
        return subprocess.run(command, env=environment, capture_output=True)

    if run("-c", "import numpy").returncode and sys.version_info >= (3, 12) and locale == "C":
        pytest.skip("this Python cannot load NumPy itself from such a folder")
    finished = run(program)
    assert finished.stdout.split() == [b"True"] * 3, finished.stderr.decode()
