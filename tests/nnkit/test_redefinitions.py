"""Redefinition, as in cells of a notebook: what a staged function used is recompiled, never silently the old one."""

from __future__ import annotations

import functools
import gc
import sys
import threading
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import nnkit as nk
from nnkit import Rep, Tensor1D, f64, staged
from nnkit.forking import COMPILING

V = Tensor1D[f64]
X = Tensor1D(np.array([1.0, 2.0]))

SETUP = """
import functools
import numpy as np
import nnkit as nk
from nnkit import Rep, Tensor1D, f64
import settings

V = Tensor1D[f64]
RATE = 3.0
NAMES = ("a", 1)

def helper(a):
    return deeper(a) * RATE

def deeper(a):
    return a

class Model:
    def forward(self, a):
        return helper(a)

model = Model()

def make(k):
    def closed(a):
        return a * k
    def change(value):
        nonlocal k
        k = value
    return closed, change

closed, change = make(3.0)
"""
DEFINITIONS = {
    "constant": "a * RATE",
    "helper": "helper(a)",
    "method": "model.forward(a)",
    "class": "Model().forward(a)",
    "module": "a * settings.rate * RATE / 3.0",
    "nested": "(lambda b: helper(b))(a)",
    "partial": "functools.partial(helper)(a)",
    "list": "[helper(one) for one in [a]][0]",
    "closure": "closed(a) * RATE / 3.0",
}


class Notebook:
    """Cells that are executed one after the other in one namespace."""

    def __init__(self, *cells: str) -> None:
        self.scope: dict[str, Any] = {"__name__": "__main__"}
        for cell in cells:
            self.run(cell)

    def run(self, cell: str) -> None:
        exec(compile(cell, "<cell>", "exec"), self.scope)

    def values(self, call: str) -> Any:
        return eval(call, self.scope | {"X": X}).numpy().tolist()


@pytest.fixture
def settings() -> Iterator[Any]:
    module = types.ModuleType("settings")
    vars(module)["rate"] = 3.0
    sys.modules["settings"] = module
    yield module
    del sys.modules["settings"]


@pytest.mark.usefixtures("settings")
def test_what_was_used_is_recompiled() -> None:
    """By the function, by one that calls it, by its derivative and its batch."""
    functions = [
        f"@nk.staged\ndef {name}_(a: Rep[V]) -> Rep[V]:\n    return {body}\n"
        for name, body in DEFINITIONS.items()
    ]
    total = " + ".join(f"{name}_(a)" for name in DEFINITIONS)
    notebook = Notebook(
        SETUP,
        *functions,
        f"@nk.staged\ndef g(a: Rep[V]) -> Rep[V]:\n    return {total}\n",
        "slope, batch = nk.gradient(of=g, wrt=0), nk.vmap(g)",
    )

    def found() -> dict[str, float]:
        """Each is a constant times its argument, (1, 2)."""
        calls = {name: f"{name}_(X)" for name in DEFINITIONS}
        calls |= {"g": "g(X)", "slope": "slope(X)", "batch": "batch(X.numpy()[None])"}
        return {name: np.ravel(notebook.values(call))[0] for name, call in calls.items()}

    def expected(each: dict[str, float]) -> dict[str, float]:
        return each | dict.fromkeys(("g", "slope", "batch"), sum(each.values()))

    assert found() == expected(dict.fromkeys(DEFINITIONS, 3.0))
    notebook.run("RATE = 5.0\nother = 1")
    assert found() == expected(dict.fromkeys(DEFINITIONS, 5.0))
    notebook.run(
        "RATE = 3.0\ndef deeper(a):\n    return a * 2.0\nsettings.rate *= 2.0\nchange(6.0)"
    )
    assert found() == expected(dict.fromkeys(DEFINITIONS, 6.0) | {"constant": 3.0})


def test_a_staged_function_is_redefined() -> None:
    define = "@nk.staged\ndef f(a: Rep[V], k: float = 1.0) -> Rep[V]:\n    return a * {} * k\n"
    use = (
        "@nk.staged\ndef g(a: Rep[V]) -> Rep[V]:\n    return nk.checkpoint(f)(a) + nk.gradient(of=f, wrt=0)(a, k=2.0)\n"
        "@nk.staged\ndef h(a: Rep[V]) -> Rep[V]:\n    return nk.cond(a.sum() > 0.0, lambda: g(a), lambda: a)\n"
    )
    notebook = Notebook(
        "import nnkit as nk\nfrom nnkit import *", "V = Tensor1D[f64]", define.format("2.0"), use
    )
    assert notebook.values("h(X)") == [6.0, 8.0] and notebook.values("g(X)") == [6.0, 8.0]
    notebook.run(define.format("4.0"))
    assert notebook.values("h(X)") == [12.0, 16.0] and notebook.values("g(X)") == [12.0, 16.0]
    assert notebook.values("f.partial(k=3.0)(X)") == [12.0, 24.0]


def test_what_only_some_types_of_arguments_or_ways_to_call_read() -> None:
    notebook = Notebook(
        "from nnkit import *\nK, J, L = 3.0, 3.0, 3.0",
        "@staged\ndef one(a):\n    return a * K",
        "@staged\ndef two(a):\n    return a * J",
        "@staged\ndef f(a):\n    return one(a) if a.ndim == 1 else two(a)",
        "@staged\ndef g(a):\n    return a * L",
    )
    f, g, out, matrix = notebook.scope["f"], notebook.scope["g"], np.zeros(2), np.ones((2, 2))
    for k, (first, second, third) in enumerate([(3.0, 3.0, 3.0), (3.0, 5.0, 3.0), (7.0, 5.0, 9.0)]):
        notebook.run(f"K, J, L, {f'other{k}'} = {first}, {second}, {third}, 1")
        notebook.scope.update(
            {f"many{k}{n}": n for n in range(500)}
        )  # the dictionary moves its keys
        for _ in range(2):
            assert f(X).numpy()[0] == first and f(matrix).numpy()[0, 0] == second
            g(X, out=out)
            assert out[0] == third


def test_halves_that_were_made_before_a_change_are_an_error() -> None:
    """Called, and in another function that was traced before."""
    notebook = Notebook(
        "import nnkit as nk\nfrom nnkit import *\nK = 3.0",
        "@staged\ndef f(a):\n    return (a * a * K).sum()",
        "split = nk.split(f)\nhalves = split.at(nk.spec((2,), f64))",
        "@staged\ndef g(a):\n    return halves.forward(a)[0]",
    )
    for call in ("g(X)", "halves.forward(X)[0]", "split.forward(X)[0]"):
        assert notebook.values(call) == 15.0
    notebook.run("K = 5.0")
    for call in ("g(X)", "halves.forward(X)[0]") * 2:
        with pytest.raises(nk.StagingError, match="made before K, which the function reads"):
            notebook.values(call)
    assert notebook.values("split.forward(X)[0]") == 25.0


def test_other_ways_to_run_know_it_too() -> None:
    notebook = Notebook(
        SETUP.replace("import settings", ""),
        "@nk.staged\ndef f(a: Rep[V], n: int = 1):\n    return a * (RATE * n)",
    )
    f = notebook.scope["f"]
    out, split = np.zeros(2), nk.split(f)
    ways: list[Callable[[], Any]] = [
        lambda: f(X), lambda: f(X, n=1), lambda: f(X, n=2) / 2, lambda: f[X], lambda: f(X.numpy()),
        lambda: f(X, out=out), lambda: out.copy(), lambda: split.forward(X)[0],
        lambda: nk.donate(f, 0)(Tensor1D(X.numpy().copy())),
    ]  # fmt: skip

    def found() -> list[list[float]]:
        return [np.asarray(way()).tolist() for way in ways if way is not ways[2]]

    assert found() == [[3.0, 6.0]] * 8 and f(X, n=2).numpy().tolist() == [6.0, 12.0]
    text = f.ir(X)
    notebook.run("RATE = 4.0")
    assert found() == [[4.0, 8.0]] * 8 and f(X, n=2).numpy().tolist() == [8.0, 16.0]
    assert f.ir(X) != text


def test_what_is_the_same_or_not_read_is_not_recompiled() -> None:
    traces: list[int] = []
    scope: dict[str, Any] = {}
    notebook = Notebook("")
    notebook.scope |= {"traces": traces, "staged": staged, "scope": scope}
    notebook.run(
        "RATE, NAMES, count = 0.5, ('a', 1), 0\n"
        "@staged\ndef f(a):\n    global count\n    count += 1\n    traces.append(count)\n"
        "    return a * RATE if NAMES else a.other"
    )
    f = notebook.scope["f"]
    f(X)
    entry = f._entry
    for cell in (
        "RATE = 0.25 + 0.25",
        "NAMES = ('a', 1)",
        "other = 3",
        "a = 1",
        "count = 5",
        "del other",
    ):
        notebook.run(cell)
        f(X)
    notebook.scope.update({f"many{k}": k for k in range(2000)})  # the dictionary moves its keys
    f(X)
    assert (
        traces == [1] and f._entry is entry and type(entry).__name__ == "builtin_function_or_method"
    )
    f(np.ones((2, 2)))
    assert traces == [1, 6]
    for cell in (
        "RATE = 1",
        "RATE = True",
        "RATE = 1.0",
        "RATE = -0.0",
        "RATE = 0.0",
        "NAMES = ('a', True)",
    ):
        notebook.run(cell)
        if "RATE = " not in cell or "." in cell:
            f(X)
    assert len(traces) == 6


INSIDE = """
import numpy as np, nnkit as nk
from nnkit import *
V = Tensor1D[f64]
class Model:
    shared = 3.0
    def __init__(self):
        self.rate, self.part, self.calls, self.log, self.cache = 3.0, {"w": [3.0]}, 0, [], {}
        self.among = {1.0, 2.0}
    def forward(self, a):
        self.calls += 1
        self.log.append(self.calls)
        self.cache[self.calls] = a
        return self.inside(a)
    def inside(self, a):
        return (lambda: a * self.rate)()
    @property
    def twice(self):
        return self.rate * 2.0
    def __call__(self, a):
        return a * self.rate
model, TABLE, NAMED, ARRAY, LARGE = Model(), [3.0], {1: 3.0}, np.full(3, 3.0, np.float32), np.full(1 << 15, 3.0)
AMONG, MANY = {1.0, 2.0}, set(range(200))
@nk.staged
def inner(a: Rep[V], m: Model) -> Rep[V]:
    return a * m.rate
@nk.staged
def middle(a: Rep[V], *, m: Model) -> Rep[V]:
    return a * float(len(m.among) + 1)
@nk.staged
def outer(a: Rep[V], m: Model) -> Rep[V]:
    return middle(a, m=m)
SMALL, SHAPED, VIEW = np.array([3, 3], np.int8), np.zeros(3), np.full((2, 3), 3.0)[:, ::2]
"""
PLACES = {
    "attribute": ("a * model.rate", "model.rate = 5.0"),
    "method": ("model.forward(a)", "model.rate = 5.0"),
    "property": ("a * model.twice / 2.0", "model.rate = 5.0"),
    "class": ("a * Model.shared", "Model.shared = 5.0"),
    "class by object": ("a * model.shared", "Model.shared = 5.0"),
    "inside": ("a * model.part['w'][0]", "model.part['w'][0] = 5.0"),
    "list": ("a * TABLE[0]", "TABLE[0] = 5.0"),
    "length": ("a * 3.0 * len(TABLE)", "TABLE.append(3.0)"),
    "dict": ("a * NAMED[1]", "NAMED[1] = 5.0"),
    "sum": ("a * sum(NAMED.values())", "NAMED[7] = 2.0"),
    "set": ("a * sum(AMONG)", "AMONG.discard(1.0); AMONG.add(3.0)"),
    "large set": ("a * (3.0 if 7 in MANY else 5.0)", "MANY.remove(7); MANY.add(300)"),
    "method of a set": ("a * float(len(AMONG) + 1)", "AMONG |= {7.0, 8.0}"),
    "static": ("inner(a, model)", "model.rate = 5.0"),
    "static set": ("outer(a, model)", "model.among.update({7.0, 8.0})"),
    "array": ("a * float(ARRAY[2])", "ARRAY[2] = 5.0"),
    "large": ("a * float(LARGE[9])", "LARGE *= 5.0 / 3.0"),
    "small": ("a * float(SMALL[1])", "SMALL[1] = 5"),
}


def test_what_changes_inside_of_values_is_recompiled() -> None:
    """And only then: not where tracing itself, or nobody who reads it, has changed it."""
    bodies = {name.replace(" ", "_"): place for name, place in PLACES.items()}
    cells = [
        f"@nk.staged\ndef {name}_(a: Rep[V]):\n    return {body}"
        for name, (body, _) in bodies.items()
    ]
    cells += ["bound_, object_ = nk.staged(model.forward), nk.staged(model)"]
    cells += ["@nk.staged\ndef shape_(a: Rep[V]):\n    return a * float(SHAPED.shape[0])"]
    method, shape = PLACES["method"], ("", "SHAPED[0] = 1.0")
    more = {"bound": method, "object": method, "shape": shape}
    for name, (_, change) in {**bodies, **more}.items():
        notebook = Notebook(INSIDE, *cells)
        function = notebook.scope[f"{name}_"]
        assert notebook.values(f"{name}_(X)") == [3.0, 6.0]
        entry = function._entry
        notebook.run("model.calls, model.other, other = 7, 1, 2\nmodel.log.clear()")
        assert notebook.values(f"{name}_(X)") == [3.0, 6.0]
        assert function._entry is entry and type(entry).__name__ == "builtin_function_or_method"
        notebook.run(change)
        factor = {"length": 6.0, "shape": 3.0, "large": 3.0 * (5.0 / 3.0)}.get(name, 5.0)
        assert notebook.values(f"{name}_(X)") == [factor, 2 * factor], name
        assert function._entry is not entry or name == "shape"


HOST = """
import numpy as np, nnkit as nk
from nnkit import *
V = Tensor1D[f64]
class Log:
    def __init__(self):
        self.count = 0
log, calls, table, last = Log(), [], {}, np.zeros(1)
def host(x):
    log.count += 1
    calls.append(log.count)
    table[log.count] = x
    last[0] = log.count
    return x
@nk.staged
def same(a: Rep[V]) -> Rep[V]:
    return a
@nk.staged
def f(a: Rep[V]) -> Rep[V]:
    return nk.callback(host, same)(a)
"""


def test_what_a_callback_changes_is_no_constant() -> None:
    notebook = Notebook(HOST)
    assert notebook.values("f(X)") == [1.0, 2.0]
    entry = notebook.scope["f"]._entry
    for _ in range(3):
        notebook.values("f(X)")
    assert notebook.scope["log"].count == len(notebook.scope["calls"]) == 4
    assert notebook.scope["f"]._entry is entry and notebook.scope["last"] == [4.0]


def test_an_array_that_is_not_in_one_piece_is_looked_at_by_python() -> None:
    notebook = Notebook(INSIDE, "@nk.staged\ndef f(a: Rep[V]):\n    return a * float(VIEW[0, 0])")
    assert notebook.values("f(X)") == [3.0, 6.0]
    notebook.run("VIEW[0, 0] = 5.0")
    assert "5.0" in notebook.scope["f"].ir(X)


def test_code_that_is_replaced_in_place() -> None:
    """As `%autoreload` does with the functions of a module."""
    module: Any = types.ModuleType("reloaded")
    exec("def helper(a):\n    return a * 2.0", vars(module))
    notebook = Notebook("from nnkit import *", "@staged\ndef f(a):\n    return helper(a)")
    notebook.scope["helper"] = module.helper
    assert notebook.values("f(X)") == [2.0, 4.0]
    again: dict[str, Any] = {}
    exec("def helper(a):\n    return a * 3.0", again)
    module.helper.__code__ = again["helper"].__code__
    assert notebook.values("f(X)") == [3.0, 6.0]


def test_what_is_made_of_a_function_that_has_been_redefined_is_an_error() -> None:
    """At each call, until it is made anew; unless the old function is kept under another name."""
    define = "@nk.staged\ndef f(a: Rep[V]) -> Rep[V]:\n    return a * {}"
    notebook = Notebook(
        "import nnkit as nk\nfrom nnkit import *\nV = Tensor1D[f64]", define.format("2.0")
    )
    make = "df, batch, late = nk.gradient(of=f, wrt=0), nk.vmap(f), nk.gradient(of=f, wrt=0)\ngiven = nk.donate(f, 0)"
    notebook.run(make)
    calls: dict[str, Any] = {"df(X)": [2.0, 2.0], "batch(X.numpy()[None])": [[2.0, 4.0]]}
    calls["given(Tensor1D(X.numpy().copy()))"] = [2.0, 4.0]
    for call, value in calls.items():
        assert notebook.values(call) == value
    notebook.run(define.format("2.0"))  # the same once more
    notebook.run("f, kept = 3, f")
    for call, value in calls.items():
        assert notebook.values(call) == value
    notebook.run("del kept\n" + define.format("5.0"))
    for call in [*calls, "late(X)"] * 2:
        with pytest.raises(
            nk.StagingError,
            match=r"(f_\w+|donate.f.) is made of f as it was defined at <cell>:\d, and f has",
        ) as raised:
            notebook.values(call)
        assert "old_f = f" in str(raised.value.__notes__)
    notebook.run(make + "\nold = f\n" + define.format("7.0"))
    for call, value in {**calls, "late(X)": [2.0, 2.0]}.items():
        assert notebook.values(call) == (np.array(value) * 2.5).tolist()
    assert notebook.values("nk.gradient(of=old, wrt=0)(X)") == [5.0, 5.0]
    notebook.run("del old\n" + define.format("9.0"))
    with pytest.raises(nk.StagingError, match="defined anew"):
        notebook.values("df(X)")


def test_functions_that_a_loop_defines_are_no_redefinitions() -> None:
    notebook = Notebook("import nnkit as nk\nfrom nnkit import *\nV = Tensor1D[f64]\nmade = []")
    notebook.run(
        "for k in (1.0, 2.0):\n"
        "    @nk.staged\n    def f(a: Rep[V], k: float = k) -> Rep[V]:\n        return a * k\n"
        "    made.append(nk.gradient(of=f, wrt=0))"
    )
    assert [notebook.values(f"made[{k}](X)") for k in (0, 1)] == [[1.0, 1.0], [2.0, 2.0]]


def test_what_is_gone_is_an_error_of_python() -> None:
    notebook = Notebook("from nnkit import *", "K = 2.0\n@staged\ndef f(a):\n    return a * K")
    assert notebook.values("f(X)") == [2.0, 4.0]
    notebook.run("del K")
    with pytest.raises(NameError):
        notebook.values("f(X)")
    notebook.run("K = 3.0")
    assert notebook.values("f(X)") == [3.0, 6.0]


def test_variables_of_enclosing_functions() -> None:
    def made() -> tuple[Any, Any]:
        k = 1.0

        @staged
        def f(a: Rep[V]) -> Rep[V]:
            return a * k

        def change(value: float) -> None:
            nonlocal k
            k = value

        return f, change

    f, change = made()
    assert f(X).numpy().tolist() == [1.0, 2.0]
    change(4.0)
    assert f(X).numpy().tolist() == [4.0, 8.0]

    loops: list[Any] = []
    for k in (1.0, 2.0):
        loops.append(staged(lambda a: a * k))  # noqa: B023  # as a user would write it
        assert loops[-1](X).numpy().tolist() == [k, 2 * k]
    assert loops[0](X).numpy().tolist() == [2.0, 4.0]  # what Python would say


def test_what_is_traced_while_nothing_is_compiled_is_new_too() -> None:
    notebook = Notebook("from nnkit import *", "K = 2.0\n@staged\ndef f(a):\n    return a * K")
    f = notebook.scope["f"]
    assert "2.0" in f.ir(X)
    notebook.run("K = 7.0")
    assert "7.0" in f.ir(X)
    later = staged(lambda a: f(a))
    assert later(X).numpy().tolist() == [7.0, 14.0]
    notebook.run("K = 8.0")
    assert staged(lambda a: f(a))(X).numpy().tolist() == [8.0, 16.0]


def test_a_program_of_many_variables() -> None:
    names = [f"v{k}" for k in range(20)]
    notebook = Notebook("from nnkit import *", "\n".join(f"{name} = 1.0" for name in names))
    notebook.run(f"@staged\ndef f(a):\n    return a * ({' + '.join(names)})")
    assert notebook.values("f(X)") == [20.0, 40.0]
    for k, name in enumerate(names, 1):
        notebook.run(f"{name} = 2.0")
        if k in (1, 9, 20):
            assert notebook.values("f(X)") == [20.0 + k, 40.0 + 2 * k]


def test_functions_are_collected() -> None:
    @staged
    def f(a: Rep[V]) -> Rep[V]:
        return a * float(len(V.__name__))

    f(X)
    gone = weakref.ref(f.stageable)
    del f
    gc.collect()
    assert gone() is None


def test_defaults_and_what_partials_hold_are_watched_inside() -> None:
    config, table = types.SimpleNamespace(rate=1.0, part=types.SimpleNamespace(k=1.0)), [1.0]

    def by_default(a: Rep[V], c: Any = config, *, t: Any = table) -> Rep[V]:
        return a * sum(c.rate * w for w in t)

    def given(c: Any, a: Rep[V], *, d: Any) -> Rep[V]:
        return a * (c.rate * d.part.k)

    first = staged(by_default)
    functions = [
        first,
        staged(functools.partial(given, config, d=config)),
        staged(lambda a: first(a)),
    ]
    for function in functions:
        assert function(X).numpy().tolist() == [1.0, 2.0]
    config.rate = 3.0
    for function in functions:
        assert function(X).numpy().tolist() == [3.0, 6.0]
    config.part.k, table[0] = 2.0, 2.0
    for function in functions:
        assert function(X).numpy().tolist() == [6.0, 12.0]


class Slotted:
    __slots__ = ("part", "rate", "unset")

    def __init__(self) -> None:
        self.rate, self.part = 1.0, types.SimpleNamespace(k=1.0)


class Below(Slotted):
    __slots__ = ("another",)

    def __init__(self) -> None:
        super().__init__()
        self.another = 1.0

    def scaled(self, a: Rep[V]) -> Rep[V]:
        return a * (self.another * self.rate * self.part.k)


def test_attributes_in_slots_are_watched() -> None:
    held = Below()
    functions = [
        staged(lambda a: a * (held.rate * held.another * held.part.k)),
        staged(held.scaled),
    ]
    for name, value in (("rate", 3.0), ("another", 2.0), ("rate", 1.0)):
        before = held.rate * held.another
        for function in functions:
            assert function(X).numpy().tolist() == [before, 2.0 * before]
        setattr(held, name, value)
    held.part.k = 5.0
    for function in functions:
        assert function(X).numpy().tolist() == [10.0, 20.0]


def test_a_trace_that_another_thread_makes_anew_is_not_taken_for_the_one_that_is_compiled() -> None:
    rate, traced = 1.0, threading.Event()

    def scaled(a: Rep[V]) -> Rep[V]:
        found = a * rate
        traced.set()
        return found

    function = staged(scaled)
    caller = threading.Thread(target=function, args=(X,))
    with COMPILING:  # the caller traces, and waits
        caller.start()
        traced.wait()
        rate = 3.0
        assert "3.0" in function.ir(X)  # which traces once more
    caller.join()
    assert function(X).numpy().tolist() == [3.0, 6.0]
