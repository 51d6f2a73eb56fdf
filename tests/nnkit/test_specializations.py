"""What is compiled is kept up to a limit, and whatever goes, calls are answered rightly and nothing stays."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nnkit as nk
from nnkit import Rep, StagingError, Tensor1D, const, f32, set_cache_limit, spec, staged
from nnkit.specializations import _LONGEST_CHAIN, LIMIT, Specializations
from tests.values import same_bits


@pytest.fixture(autouse=True)
def _same_limit() -> Iterator[None]:
    """The limit is that of the process."""
    before = LIMIT.count
    yield
    LIMIT.count = before


def ones(extent: int) -> np.ndarray[Any, Any]:
    return np.ones(extent, np.float32)


class Code:
    """Stands for what is compiled for one key, and is gone when nobody refers to it any more."""

    def __init__(self, key: int, fallback: Callable[..., Any]) -> None:
        self.key = key
        self.fallback = fallback
        self.drops = 0

    def call(self, key: int) -> Any:
        return ("run", key) if key == self.key else self.fallback(key)

    def followed_by(self, fallback: Callable[..., Any]) -> Callable[..., Any]:
        return lambda key: ("run", key) if key == self.key else fallback(key)

    def drop_kept_results(self) -> None:
        self.drops += 1


class Model:
    """A staged function of keys, in Python."""

    def __init__(self) -> None:
        self.known = Specializations(self.dispatch)
        self.compiled: list[tuple[int, weakref.ref[Code]]] = []
        self.passes = 0

    def refuse(self, key: int) -> Any:
        raise AssertionError(f"the code for {key} does not take it")

    def dispatch(self, key: int) -> Any:
        self.passes += 1
        assert self.passes == 1, "a call comes by twice"
        program = self.known.find((key,))
        if program is None:
            code = Code(key, self.refuse)
            self.compiled.append((key, weakref.ref(code)))
            self.known.add((key,), code)
            program = code
        return program.call(key)

    def call(self, key: int) -> None:
        self.passes = 0
        assert self.known.head(key) == ("run", key)

    def alive(self) -> list[int]:
        return [key for key, code in self.compiled if code() is not None]


STEPS = st.one_of(
    st.integers(0, 30).map(lambda key: ("call", key)),
    st.integers(1, 20).map(lambda count: ("limit", count)),
    st.just(("clear", 0)),
)


@given(st.lists(STEPS, max_size=80))
@settings(deadline=None)
def test_any_calls_under_any_limit(steps: list[tuple[str, int]]) -> None:
    """Every call runs the code for its key; what is dropped is gone, the chain included."""
    model = Model()
    set_cache_limit(6)
    for step, number in steps:
        if step == "call":
            before = len(model.compiled)
            model.call(number)
            if len(model.compiled) > before:
                assert len(model.known) <= LIMIT.count
                assert number in model.alive()
        elif step == "limit":
            set_cache_limit(number)
        else:
            model.known.clear()
        alive = model.alive()
        assert len(alive) == len({*alive}) == len(model.known)


def test_what_was_not_used_for_longest_goes() -> None:
    model = Model()
    set_cache_limit(20)
    for key in range(20):
        model.call(key)
    model.call(0)
    model.call(20)
    assert model.alive() == [0, *range(2, 21)]
    for key in range(21, 30):
        model.call(key)
    assert model.alive() == [0, *range(11, 30)]


def test_what_native_code_runs_is_not_dropped() -> None:
    """Its calls are not counted: it stays as long as it is in the chain."""
    model = Model()
    set_cache_limit(12)
    for key in range(12):
        model.call(key)
    for key in range(12, 18):  # 8 to 11 are in the chain, and are called
        for _ in range(3):
            model.call(8)
        model.call(key)
        assert 8 in model.alive()


def test_going_round_makes_fewer_and_fewer_chains() -> None:
    model = Model()
    for _ in range(400):
        for key in range(14):
            model.call(key)
    heads: list[Callable[..., Any]] = []
    for _ in range(10):
        for key in range(14):
            model.call(key)
            heads.append(model.known.head)
    assert len({*map(id, heads)}) < 40


def test_two_of_many_that_are_used_alone_come_into_the_chain() -> None:
    model = Model()
    for key in range(20):
        model.call(key)
    for _ in range(2):
        model.call(1), model.call(5)  # pyright: ignore[reportUnusedExpression]
    model.passes = 0
    assert model.known.head(1) == ("run", 1) and model.known.head(5) == ("run", 5)
    assert model.passes == 0


def test_a_chain_that_ends_keeps_no_results() -> None:
    model = Model()
    for key in range(_LONGEST_CHAIN + 1):
        model.call(key)
    drops = [code().drops for _, code in model.compiled]  # type: ignore[union-attr]
    assert drops == [1] * _LONGEST_CHAIN + [0]


# -------------------------------------------------------------------------------------------- staged functions


@staged
def tripled(x: Rep[Tensor1D[f32]]) -> Rep[Tensor1D[f32]]:
    return x * 3.0


def test_the_limit_of_a_staged_function() -> None:
    tripled.clear_cache()
    assert set_cache_limit(5) == 256
    for extent in (*range(1, 20), *range(19, 0, -1), 3, 3, 12, 3):
        assert same_bits(tripled(ones(extent)).numpy(), ones(extent) * 3)
        assert tripled.cache_size() <= 5
    tripled.compile(spec((40,), f32))
    assert tripled.cache_size() == 5
    tripled.clear_cache()
    assert tripled.cache_size() == 0
    assert same_bits(tripled(ones(2)).numpy(), ones(2) * 3)
    assert tripled.cache_size() == 1


def test_a_limit_of_one() -> None:
    set_cache_limit(1)
    f = staged(lambda x: x + 1.0)
    for extent in (1, 2, 1, 1, 2, 2, 3):
        assert f(ones(extent)).numpy().tolist() == [2.0] * extent
        assert f.cache_size() == 1


def test_a_limit_that_is_none() -> None:
    for count in (0, -1):
        with pytest.raises(ValueError, match="at least 1 specialisation"):
            set_cache_limit(count)
    with pytest.raises(TypeError, match="'str' object cannot be interpreted as an integer"):
        set_cache_limit("many")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    assert LIMIT.count == 256


def test_functions_without_arguments_and_those_that_return_functions() -> None:
    set_cache_limit(2)
    constant = staged(lambda: const(np.float32(2.0)))
    later = staged(lambda x: lambda y: x * y)
    for extent in range(1, 90):  # more than are remembered to return a function
        if extent % 16 == 1:
            assert float(constant()) == 2.0
            assert later(ones(extent))(ones(extent)).numpy().tolist() == [1.0] * extent
        else:
            later(ones(extent))
    assert len(later._curried) <= 64


def test_only_functions_have_a_cache() -> None:
    for ask in (const(ones(2)).cache_size, const(ones(2)).clear_cache):
        with pytest.raises(StagingError, match="no staged function: it has no code"):
            ask()


def test_gradients_by_functions_are_not_kept_without_end() -> None:
    def applied(g: Any, x: Any) -> Any:
        return g(x).sum()

    slope = nk.gradient(of=staged(applied), wrt=1)
    trial = staged(lambda x: [slope(staged(lambda y, k=k: y * k), x) for k in (1.0, 2.0)][1])
    assert trial(ones(2)).numpy().tolist() == [2.0, 2.0]
    for k in range(100):
        staged(lambda x, k=k: slope(staged(lambda y: y * float(k)), x)).ir(spec((2,), f32))
    assert len(slope.stageable.callees) <= 64  # type: ignore[attr-defined]


def test_threads_that_drop_what_others_run() -> None:
    """Each call compiles, or runs what another thread is about to drop."""
    set_cache_limit(3)
    f = staged(lambda x: (x * 2.0 + 1.0, x.sum()))
    wrong: list[object] = []
    barrier = threading.Barrier(16)

    def work(seed: int) -> None:
        extents = np.random.default_rng(seed).integers(1, 7, 25)
        barrier.wait()
        for count, extent in enumerate(map(int, extents)):
            x = np.full(extent, seed + 1, np.float32)
            try:
                given: Any = (x, Tensor1D(x), np.repeat(x, 2)[::2])[count % 3]
                for _ in range(5):
                    y, total = f(given)
                    if y.numpy().tolist() != [2 * seed + 3] * extent or float(total) != x.sum():
                        wrong.append((seed, extent))
                if seed == 0 and count % 8 == 7:
                    f.clear_cache()
            except Exception as error:
                wrong.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert wrong == []
    assert f.cache_size() <= 3


def test_dropped_functions_leave_nothing_in_python() -> None:
    def some() -> Iterator[weakref.ref[Any]]:
        for k in range(3):
            f = staged(lambda x, k=k: x * float(k))
            f(ones(3))
            f(ones(4))
            yield weakref.ref(f)
            yield weakref.ref(f._entry)

    dropped = [*some()]
    gc.collect()
    assert [reference() for reference in dropped] == [None] * 6


MEASURE = """
import gc, sys
import numpy as np
import nnkit as nk
from nnkit import Rep, Tensor1D, f32, staged

def resident():
    gc.collect()
    with open("/proc/self/smaps_rollup") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("Rss"))

def body(x):
    return nk.tanh(x) + 1.0

def shapes(f, first, last):
    for extent in range(first, last):
        f(np.ones(extent, np.float32))

if sys.argv[1] == "shapes":
    nk.set_cache_limit(24)
    f = staged(body)
    shapes(f, 1, 81)
    before = resident()
    shapes(f, 81, 241)
else:
    def some(count):
        for k in range(count):
            shapes(staged(lambda x: body(x) * float(k)), 1, 2)
            k % 10 or gc.collect()
    some(60)
    before = resident()
    some(100)
print(resident() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads what Linux says of a process")
@pytest.mark.parametrize("what", ["shapes", "functions"])
def test_memory_comes_to_rest(what: str) -> None:
    """Of 160 shapes beyond the limit, or 100 functions that are dropped: 55 KiB and 10 KiB of each would stay."""
    command = [sys.executable, "-c", MEASURE, what]
    finished = subprocess.run(
        command, capture_output=True, text=True, cwd=Path(__file__).parents[2]
    )
    assert finished.returncode == 0, finished.stderr
    assert int(finished.stdout) < 600, finished.stdout  # KiB
