"""When the process is not what the native entry assumes, the Python entry is used."""

import gc
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from nnkit.jit.entry import (
    ArrayNode,
    Signature,
    bind,
    entry_text,
    is_supported,
    layout,
    selftest,
    unsupported_reason,
)
from nnkit.jit.llvm import compile_module

from .programs import Memory, copying, explain, refuse

WRONG_OFFSETS = (
    "ARRAY_DATA",
    "ARRAY_RANK",
    "ARRAY_SHAPE",
    "ARRAY_STRIDES",
    "ARRAY_BASE",
    "ARRAY_DTYPE",
    "ARRAY_FLAGS",
    "ARRAY_WEAK_REFERENCES",
    "REFERENCES",
    "TYPE",
    "TUPLE_SIZE",
    "DTYPE_BYTE_ORDER",
    "DTYPE_NUMBER",
)


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    """Test the process anew, before and after."""
    unsupported_reason.cache_clear()
    yield
    unsupported_reason.cache_clear()


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="made for CPython")
def test_this_process_is_supported() -> None:
    assert unsupported_reason() is None
    assert is_supported()


@pytest.mark.parametrize("name", WRONG_OFFSETS)
def test_every_offset_is_tested(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    right: int = getattr(layout, name)
    swapped = 8 if name in ("REFERENCES", "TUPLE_SIZE", "ARRAY_RANK") else right - 8
    monkeypatch.setattr(layout, name, 27 if name == "DTYPE_BYTE_ORDER" else swapped)
    assert not is_supported()


def test_a_tuple_with_another_head(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "TUPLE_ITEMS", 16)
    assert unsupported_reason() == "the items of tuples are elsewhere"


def test_an_array_with_another_head(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "ARRAY_SIZE", 88)
    assert unsupported_reason() == "arrays have a head of 96 bytes"


def free_threaded(patch: pytest.MonkeyPatch) -> None:
    """As 3.13t and later say it, with the GIL off."""
    patch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
    with_the_gil_on(patch)


def with_the_gil_on(patch: pytest.MonkeyPatch) -> None:
    """The same build under `PYTHON_GIL=1`: its objects have the other layout all the same."""
    real = sysconfig.get_config_var
    patch.setattr(
        sysconfig, "get_config_var", lambda name: 1 if name == "Py_GIL_DISABLED" else real(name)
    )


def counting_references(patch: pytest.MonkeyPatch) -> None:
    """`--with-pydebug`."""
    patch.setattr(sys, "gettotalrefcount", lambda: 0, raising=False)


def tracing_references(patch: pytest.MonkeyPatch) -> None:
    """`--with-trace-refs`."""
    patch.setattr(sys, "getobjects", list, raising=False)


def another_interpreter(patch: pytest.MonkeyPatch) -> None:
    """PyPy has an emulation of the C functions, and other objects."""
    patch.setattr(sys.implementation, "name", "pypy")


BUILDS: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], str]] = {
    "free-threaded": (free_threaded, "free-threaded"),
    "free-threaded with the GIL": (with_the_gil_on, "free-threaded"),
    "debug": (counting_references, "debug build"),
    "trace references": (tracing_references, "debug build"),
    "another interpreter": (another_interpreter, "pypy, not cpython"),
}


@pytest.mark.parametrize("name", BUILDS)
def test_a_build_that_is_refused_works_all_the_same(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    change, words = BUILDS[name]
    change(monkeypatch)
    assert words in (unsupported_reason() or "")
    leaf = ArrayNode("f32", (2, 3))
    signature = Signature((leaf,), leaf)
    entry = entry_text(signature, "kernel", "entry")
    assert (entry.name, entry.text, {**entry.symbols}) == ("kernel", "", {})
    module, memory = compile_module(copying(signature, [0]) + entry.text), Memory()
    program = bind(
        module.address(entry.name),
        signature=signature,
        arena=memory.address,
        fallback=refuse,
        explain=explain,
        keep_alive=(module, memory),
    )
    x = np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(program(x), x)


REFUSED = """
import sys, threading
sys._is_gil_enabled = lambda: False
import numpy as np
import nnkit as nk
from nnkit import Rep, Tensor1D, f32

@nk.staged
def f(x: Rep[Tensor1D[f32]]) -> tuple[Rep[Tensor1D[f32]], Rep[Tensor1D[f32]]]:
    return x + 1, x[:1]

wrong = []
def work(k):
    for n in range(1, 30):
        x = np.full(1 + n % 3, k, np.float32)
        y, z = f(x)
        if y.numpy().tolist() != [k + 1.0] * x.size or z.numpy().tolist() != [k]:
            wrong.append((k, n))
threads = [threading.Thread(target=work, args=(k,)) for k in range(16)]
[t.start() for t in threads], [t.join() for t in threads]
from nnkit.jit.entry import unsupported_reason
print(wrong, unsupported_reason(), type(f._entry).__name__)
"""


def test_staged_functions_without_the_gil() -> None:
    """A process that is refused from the start, called from 16 threads, the first call included."""
    finished = subprocess.run([sys.executable, "-c", REFUSED], capture_output=True, text=True)
    reason = "this build of Python is free-threaded: it shares objects without the GIL"
    assert finished.stdout == f"[] {reason} function\n", finished.stderr


INSIDE = """
import sys, warnings
warnings.simplefilter("ignore")  # NumPy says that it is not made for this
sys.path.insert(0, {root!r})
import numpy as np
import nnkit as nk
from nnkit import Tensor1D, f32
from nnkit.jit.entry import unsupported_reason
f = nk.fn(Tensor1D[f32])(lambda x: x + 1)
found = [float(f(np.full(3, k, np.float32)).numpy().sum()) for k in range(100)]
print(unsupported_reason(), found == [3.0 * k + 3 for k in range(100)], flush=True)
"""
IN_A_SUB_INTERPRETER = """
import sys
try:
    import _interpreters
    _interpreters.exec(_interpreters.create("legacy"), sys.argv[1])
except ImportError:
    import _xxsubinterpreters
    _xxsubinterpreters.run_string(_xxsubinterpreters.create(isolated=False), sys.argv[1])
"""


def test_a_sub_interpreter() -> None:
    """One that shares the GIL: into those with their own, NumPy does not load."""
    program = INSIDE.format(root=str(Path(__file__).parents[3]))
    command = [sys.executable, "-W", "ignore", "-c", IN_A_SUB_INTERPRETER, program]
    finished = subprocess.run(command, capture_output=True, text=True)
    assert finished.stdout == "None True\n", finished.stderr


def test_a_count_that_is_not_where_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where references are counted in two words: what an entry writes is not what Python reads."""
    monkeypatch.setattr(sys, "getrefcount", lambda _: 2)
    assert unsupported_reason() == "references are not counted in the word that an entry writes"


def test_the_count_of_an_immortal_object_that_looks_like_one_reference(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It would be taken for an array that nobody else has, as the empty places for results hold None."""
    monkeypatch.setattr(selftest, "word_at", lambda _: 1)
    assert "seems to be referred to once" in next(selftest._immortals())


def test_the_self_test_leaves_counts_as_they_are() -> None:
    shared = (None, True, 0, (), np.ndarray, tuple, SystemError, np.dtype(np.float32))
    gc.collect()  # what other tests left refers to them, too
    before = [sys.getrefcount(item) for item in shared]
    for _ in range(100):
        unsupported_reason.cache_clear()
        assert unsupported_reason() is None
    gc.collect()
    after = [sys.getrefcount(item) for item in shared]
    drift = [y - x for x, y in zip(before, after, strict=True)]
    assert all(abs(change) < 90 for change in drift), drift  # less than one for each time


def test_whatever_goes_wrong_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(np, "__version__", "none")
    assert unsupported_reason() is not None
