"""The BLAS that is already in the process."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import threadpoolctl

from nnkit.jit.runtime import blas
from nnkit.jit.runtime.blas import FUNCTIONS, find_blas


def test_the_process_has_a_blas_and_it_is_found_once() -> None:
    found = find_blas()
    assert found is not None
    assert found is find_blas()
    assert set(FUNCTIONS) == set(found.addresses)
    assert all(found.addresses.values())
    assert found.integer_bits in (32, 64)


def test_numpy_says_the_same_of_its_integers() -> None:
    found = find_blas()
    assert found is not None
    configuration = np.show_config(mode="dicts")
    assert isinstance(configuration, dict)
    described = str(configuration["Build Dependencies"]["blas"])
    if "USE64BITINT" in described or "64_" in described:
        assert found.integer_bits == 64


def test_what_is_no_library_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    for path in ("", "/nowhere/libblas.so", __file__):
        listed = [{"user_api": "openmp"}, {"user_api": "blas", "filepath": path}]
        monkeypatch.setattr(threadpoolctl, "threadpool_info", lambda listed=listed: listed)
        assert find_blas.__wrapped__() is None


def test_the_list_of_the_system_where_threadpoolctl_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise UnicodeEncodeError("ascii", "\u043f", 0, 1, "ordinal not in range(128)")

    monkeypatch.setattr(threadpoolctl, "threadpool_info", fail)
    assert find_blas.__wrapped__() == find_blas()
    monkeypatch.setattr(blas, "_MAPS", Path("/nowhere/maps"))  # as where there is no /proc
    assert find_blas.__wrapped__() is None


def test_a_mapped_path_of_any_bytes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    maps = tmp_path / "maps"
    maps.write_bytes(
        b"7f0000-7f1000 r-xp 00000000 08:01 77  /a b/\xd0\xbf\xff/libscipy_openblas64_-1.so.3\n"
        b"7f1000-7f2000 r-xp 00000000 08:01 78  /libblas_folder/libm.so.6\n"
        b"7f2000-7f3000 rw-p 00000000 00:00 0 \n"
        b"7f3000-7f4000 rw-p 00000000 00:00 0  [heap]\n"
        b"7f0000-7f1000 r--p 00000000 08:01 77  /a b/\xd0\xbf\xff/libscipy_openblas64_-1.so.3\n"
    )
    monkeypatch.setattr(blas, "_MAPS", maps)
    (found,) = blas._mapped_libraries()
    assert os.fsencode(found) == b"/a b/\xd0\xbf\xff/libscipy_openblas64_-1.so.3"
    assert blas._functions_of(found) is None
    assert blas._functions_of("/nul\0.so") is None


PRODUCT = """
import numpy as np
from nnkit import Tensor2D, f32, fn
x = np.ones((300, 300), np.float32)
print(fn(Tensor2D[f32], Tensor2D[f32])(lambda x, y: x @ y)(x, x).numpy().sum() == 300.0**3)
try:
    fn(Tensor2D[f32], Tensor2D[f32])(lambda x, y: x @ y)(x, x[:7])
except ValueError as error:
    print(len(ascii(error)) > 0)
from nnkit.jit.runtime.blas import find_blas
print(find_blas() is not None)
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
    (packages / "nnkit").symlink_to(Path(blas.__file__).parents[2])
    program = folder / "program.py"
    program.write_text(PRODUCT)
    environment = {"LC_ALL": locale, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    environment["PYTHONPATH"] = str(packages)

    def run(*arguments: str | Path) -> subprocess.CompletedProcess[bytes]:
        command = [sys.executable, "-S", *arguments]
        return subprocess.run(command, env=environment, capture_output=True)

    if run("-c", "import numpy").returncode and sys.version_info >= (3, 12) and locale == "C":
        pytest.skip("this Python cannot load NumPy itself from such a folder")
    finished = run(program)
    assert finished.stdout.split() == [b"True"] * 3, finished.stderr.decode()


@pytest.mark.parametrize("spelling", blas._SPELLINGS, ids="{0[0]}NAME{0[1]}".format)
def test_every_spelling_of_its_functions(
    spelling: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same library with its functions under other names; one that lacks a function is none."""
    path = next(filter(blas._functions_of, blas.libraries()))
    library, known = ctypes.CDLL(path), blas._SPELLINGS
    real = {
        name: next(f for p, s in known if (f := getattr(library, f"{p}{name}{s}", None)))
        for name in blas.FUNCTIONS
    }
    found = blas._functions_of(path)
    assert found is not None
    if found.integer_bits != 64 and "64" in spelling[1]:
        pytest.skip("its integers have 32 bits, and the names say 64")
    named = {f"{spelling[0]}{name}{spelling[1]}": function for name, function in real.items()}
    renamed = SimpleNamespace(**named)
    monkeypatch.setattr(blas.ctypes, "CDLL", lambda _: renamed)
    monkeypatch.setattr(blas, "is_wide", lambda _: found.integer_bits == 64)
    again = blas._functions_of(path)
    assert again is not None and again.integer_bits == found.integer_bits
    assert {name: again.addresses[name] for name in blas.FUNCTIONS} == {
        name: found.addresses[name] for name in blas.FUNCTIONS
    }
    delattr(renamed, f"{spelling[0]}dgemm{spelling[1]}")
    assert blas._functions_of(path) is None
