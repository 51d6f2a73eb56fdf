"""The tool side of GradBench: its messages, and its values against NumPy, which knows nothing of our derivatives.

Derivatives are compared with those of the definitions by complex steps, f(x + ih) = f(x) + ih f'(x), exact to
rounding, or with a closed form.
"""

from __future__ import annotations

import io
import json
import math
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from shutil import which
from typing import Any

import numpy as np
import pytest

from benchmarks.gradbench import ba, gmm, inputs, protocol, times
from benchmarks.gradbench.__main__ import MODULES
from benchmarks.gradbench.protocol import respond, serve

ROOT = Path(__file__).parent.parent
TOLERANCE = 1e-8
STEP = 1e-30
"""Of complex steps: its square is no part of the real value any more."""
ONCE = {"min_runs": 1, "min_seconds": 0}


def ask(module: str, function: str, given: Any) -> Any:
    """The output of an evaluate message."""
    given = given | ONCE if isinstance(given, dict) else given
    message = {"id": 1, "kind": "evaluate", "module": module, "function": function, "input": given}
    response = respond(json.dumps(message), MODULES)
    assert response["success"], response
    return response["output"]


def assert_close(found: Any, expected: Any) -> None:
    """|x - y| / max(1, |x| + |y|) < 1e-8 of every number; NaN is not close to anything."""
    x, y = np.asarray(found, np.float64), np.asarray(expected, np.float64)
    assert x.shape == y.shape
    distance = np.abs(x - y) / np.maximum(1, np.abs(x) + np.abs(y))
    assert np.all(distance < TOLERANCE), distance.max()


def slopes(f: Callable[[Any], Any], x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The derivatives of f by the elements of x, along the first axes."""
    found = []
    for k in range(x.size):
        moved = x.astype(complex)
        moved.flat[k] += 1j * STEP
        found.append(np.imag(f(moved)) / STEP)
    return np.array(found).reshape(*x.shape, *np.shape(f(x)))


# ---------------------------------------------------------------------------------------------- values


def test_hello() -> None:
    """The calls of the eval: each takes what the other one gave."""
    x = 1.0
    for _ in range(4):
        y = ask("hello", "square", x)
        assert y == x * x
        x = ask("hello", "double", y)
        assert x == 2 * y
    assert x == 2.0**15


@pytest.mark.parametrize("n", [1, 2, 1000])
def test_lse(n: int) -> None:
    given = inputs.lse(n)
    for shift in (0.0, 1000.0, -1e5):
        x = np.array(given["x"]) * 10
        shifted = {"x": (x + shift).tolist()}
        assert_close(ask("lse", "primal", shifted), np.log(np.exp(x).sum()) + shift)
        assert_close(ask("lse", "gradient", shifted), np.exp(x) / np.exp(x).sum())


def test_lse_of_equal_numbers() -> None:
    """Where the largest is not unique, it does not matter which one is subtracted."""
    found = ask("lse", "gradient", {"x": [3.0, 3.0, 3.0, 1.0]})
    assert_close(found, np.array([1, 1, 1, np.exp(-2)]) / (3 + np.exp(-2)))


SIZES_OF_MIXTURES = [
    # d, k, n, m, gamma
    (1, 1, 1, 0, 1.0),
    (1, 3, 4, 0, 1.0),
    (2, 1, 5, 2, 0.7),
    (3, 2, 6, 0, 1.0),
    (5, 4, 9, 3, 1.3),
]


@pytest.mark.parametrize(("d", "k", "n", "m", "gamma"), SIZES_OF_MIXTURES)
def test_gmm(d: int, k: int, n: int, m: int, gamma: float) -> None:
    given = inputs.gmm(d, k, n) | {"m": m, "gamma": gamma}
    names = ("alpha", "mu", "q", "l")
    point = {name: np.array(given[name]) for name in names}
    point["l"] = point["l"].reshape(k, d * (d - 1) // 2)
    assert_close(ask("gmm", "objective", given), log_posterior(given, **point).real)
    found = ask("gmm", "jacobian", given)
    assert list(found) == list(names)
    for name in names:
        by = slopes(
            lambda value, name=name: log_posterior(given, **point | {name: value}), point[name]
        )
        assert_close(np.reshape(found[name], by.shape), by)


def log_posterior(given: Any, alpha: Any, mu: Any, q: Any, l: Any) -> Any:
    """By the densities of Gauss and Wishart, with inverses and determinants of the precisions."""
    d, k, n, m, gamma = (given[name] for name in ("d", "k", "n", "m", "gamma"))
    precisions = []
    for c in range(k):
        Q = np.zeros((d, d), complex)
        below = iter(l[c])
        for column in range(d):
            Q[column, column] = np.exp(q[c, column])
            for row in range(column + 1, d):
                Q[row, column] = next(below)
        precisions.append(Q.T @ Q)
    weights = np.exp(alpha) / np.exp(alpha).sum()
    total: Any = 0
    for x in np.array(given["x"]).reshape(n, d):
        density: Any = 0
        for weight, mean, P in zip(weights, mu, precisions, strict=True):
            exponent = -(x - mean) @ P @ (x - mean) / 2
            density += weight * np.exp(exponent) * np.sqrt(np.linalg.det(P) / (2 * np.pi) ** d)
        total += np.log(density)
    freedom = d + m + 1
    log_gamma = d * (d - 1) / 4 * np.log(np.pi)
    log_gamma += sum(math.lgamma((freedom - j) / 2) for j in range(d))
    for P in precisions:
        exponent = m / 2 * np.log(np.linalg.det(P)) - gamma**2 / 2 * np.trace(P)
        total += exponent - freedom * d / 2 * np.log(2) + freedom * d * np.log(gamma) - log_gamma
    return total


@pytest.mark.parametrize(("layers", "characters", "bits"), [(1, 2, 1), (2, 9, 3), (3, 5, 14)])
def test_lstm(layers: int, characters: int, bits: int) -> None:
    given = inputs.lstm(layers, characters, bits)
    names = ("main_params", "extra_params", "state", "sequence")
    main, extra, state, sequence = (np.array(given[name], float) for name in names)
    assert_close(ask("lstm", "objective", given), loss_of_characters(main, extra, state, sequence))
    by_main = slopes(lambda value: loss_of_characters(value, extra, state, sequence), main)
    by_extra = slopes(lambda value: loss_of_characters(main, value, state, sequence), extra)
    assert_close(ask("lstm", "jacobian", given), [*by_main.ravel(), *by_extra.ravel()])


def loss_of_characters(main: Any, extra: Any, state: Any, sequence: Any) -> Any:
    """Layer by layer and character by character."""

    def sigmoid(x: Any) -> Any:
        return 1 / (1 + np.exp(-x))

    states = [*state.astype(complex)]
    total: Any = 0
    for now, following in pairwise(sequence):
        u = now * extra[0]
        for layer in range(len(main) // 2):
            (wf, wi, wo, wc), (bf, bi, bo, bc) = (np.split(main[2 * layer + r], 4) for r in (0, 1))
            h, c = states[2 * layer], states[2 * layer + 1]
            c = c * sigmoid(u * wf + bf) + sigmoid(h * wi + bi) * np.tanh(h * wc + bc)
            h = sigmoid(u * wo + bo) * np.tanh(c)
            states[2 * layer], states[2 * layer + 1], u = h, c, h
        y = u * extra[1] + extra[2]
        total += (following * (y - np.log(2 + np.exp(y).sum()))).sum()
    loss = -total / sequence[1:].size
    return loss if np.iscomplexobj(main) or np.iscomplexobj(extra) else loss.real


@pytest.mark.parametrize(("k", "n", "d"), [(1, 1, 1), (1, 7, 2), (5, 60, 3), (30, 30, 4)])
def test_kmeans(k: int, n: int, d: int) -> None:
    given = inputs.kmeans(k, n, d)
    points, centroids = np.array(given["points"]), np.array(given["centroids"])
    distances = np.square(points[:, None] - centroids).sum(axis=2)
    assert_close(ask("kmeans", "cost", given), distances.min(axis=1).sum())
    chosen = distances.argmin(axis=1)
    means = np.array([points[chosen == j].mean(axis=0) for j in range(k)])
    assert_close(ask("kmeans", "dir", given), centroids - means)


@pytest.mark.parametrize(("n", "m", "p"), [(1, 1, 1), (2, 3, 5), (3, 4, 40)])
@pytest.mark.parametrize("turned", [True, False])
def test_ba(n: int, m: int, p: int, turned: bool) -> None:
    given = inputs.ba(n, m, p)
    if not turned:
        given["cam"][:3] = [0.0] * 3
    point = np.array([*given["cam"], *given["x"], given["w"]])
    expected = error_of_projection(point, given["feat"])
    found = ask("ba", "objective", given)
    assert_close(found["reproj_error"]["elements"], expected.real)
    assert_close(found["w_err"]["element"], 1 - given["w"] ** 2)
    assert found["reproj_error"]["repeated"] == found["w_err"]["repeated"] == p

    block = slopes(lambda value: error_of_projection(value, given["feat"]), point).T
    dense = np.zeros((3 * p, 11 * n + 3 * m + p))
    for i in range(p):
        at = [11 * (i % n) + j for j in range(11)]
        at += [11 * n + 3 * (i % m) + j for j in range(3)] + [11 * n + 3 * m + i]
        dense[2 * i : 2 * i + 2, at] = block
        dense[2 * p + i, 11 * n + 3 * m + i] = -2 * given["w"]
    begins, columns, values = map(np.asarray, ba.run_jacobian(*ba.prepare_jacobian(given)))
    rows = np.repeat(np.arange(3 * p), np.diff(begins))
    assert (begins[0], begins[-1], len(columns), len(values)) == (0, 31 * p, 31 * p, 31 * p)
    assert np.all(np.diff(columns)[np.diff(rows) == 0] > 0)
    made = np.zeros_like(dense)
    made[rows, columns] = values
    assert_close(made, dense)
    sent = ask("ba", "jacobian", given)
    for name, array in (("rows", begins), ("cols", columns), ("vals", values)):
        assert sent[name] == [*array[:30].tolist(), array[-1].item()]


def error_of_projection(point: Any, feature: Any) -> Any:
    """Of one observation: camera, point and weight in a row."""
    r, center, (f, u0, v0, k1, k2), x, w = np.split(point, [3, 6, 11, 14])
    seen = x - center
    if np.all(r.real == 0):
        seen = seen + np.cross(r, seen)
    else:
        angle = np.sqrt(np.sum(r * r))
        axis = r / angle
        cosine, sine = np.cos(angle), np.sin(angle)
        parts = (seen * cosine, np.cross(axis, seen) * sine, axis * (axis @ seen) * (1 - cosine))
        seen = sum(parts)
    q = seen[:2] / seen[2]
    square = np.sum(q * q)
    q = q * (1 + k1 * square + k2 * square**2)
    return w * (q * f + np.array([u0, v0]) - feature)


def test_the_derivatives_are_ours() -> None:
    """The gradient by a mixture is one program of ours, differentiated before it runs."""
    arguments = gmm.prepare(inputs.gmm(2, 2, 3))
    assert "[gradient @log_density wrt" in gmm.slope.ir(*arguments)


SMALL = {"lse": (50,), "gmm": (3, 2, 6), "lstm": (2, 9), "kmeans": (5, 60, 3), "ba": (3, 4, 40)}


@pytest.mark.skipif(which("g++") is None, reason="there is no g++")
@pytest.mark.parametrize("module", SMALL)
def test_the_loops_in_c_compute_the_same(module: str) -> None:
    """What the table compares us with: `compare` times nobody whose results differ from ours."""
    for function in MODULES[module]:
        row = times.compare(module, function, SMALL[module], ["NNKit", "C++"], rounds=1)
        assert not [cell for cell in row.cells.values() if isinstance(cell, str)], row


def test_who_computes_something_else_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    def build(name: str, *_: Any) -> Callable[[], Any]:
        return lambda: [np.array([1.0]), np.array([np.nan if name == "bad" else 2.0])]

    monkeypatch.setattr(times, "build", build)
    row = times.compare("lse", "primal", (3,), ["NNKit", "bad", "C++"], rounds=1)
    assert row.cells["bad"] == "wrong, |x - y| / max(1, |x| + |y|) = nan"
    assert not isinstance(row.cells["NNKit"], str) and not isinstance(row.cells["C++"], str)


# ---------------------------------------------------------------------------------------------- messages


def reply(**message: Any) -> dict[str, Any]:
    return respond(json.dumps(message), MODULES)


def test_messages_that_only_ask_for_their_id() -> None:
    started = reply(id=0, kind="start", eval="lse", config={"n": [1]})
    assert started == {"id": 0, "tool": "nnkit"}
    assert reply(id=7, kind="analysis", of=3, valid=False, error="too far") == {"id": 7}


def test_modules_that_are_there_and_that_are_not() -> None:
    for module in MODULES:
        assert reply(id=1, kind="define", module=module) == {"id": 1, "success": True}
    refused = reply(id=2, kind="define", module="ode")
    assert (refused["id"], refused["success"]) == (2, False)
    assert refused["error"] == "no module 'ode': there are hello, lse, gmm, lstm, kmeans, ba"


def test_functions_that_are_not_there() -> None:
    for module, function, said in (
        ("ode", "primal", "no module 'ode'"),
        ("lse", "jacobian", "no function 'lse.jacobian': there are primal, gradient"),
    ):
        refused = reply(id=5, kind="evaluate", module=module, function=function, input={})
        assert (refused["id"], refused["success"]) == (5, False)
        assert said in refused["error"] and "output" not in refused


@pytest.mark.parametrize(
    ("line", "id", "said"),
    [
        ("", None, "a line of JSON"),
        ("{", None, "a line of JSON"),
        ("[1, 2]", None, "a message is an object"),
        ("null", None, "a message is an object"),
        ('{"kind": "start"}', None, "a message has an id"),
        ('{"id": 4}', 4, "no message of the protocol: {}"),
        ('{"id": 4, "kind": "stop"}', 4, "no message of the protocol: {'kind': 'stop'}"),
        ('{"id": 4, "kind": "define"}', 4, "no message of the protocol: {'kind': 'define'}"),
        ('{"id": 4, "kind": "evaluate", "module": "lse"}', 4, "'module': 'lse'"),
        ('{"id": 4, "kind": "evaluate", "module": "lse", "function": "primal"}', 4, "has an input"),
    ],
)
def test_messages_that_the_protocol_does_not_have(line: str, id: int | None, said: str) -> None:
    response = respond(line, MODULES)
    assert (response["id"], response["success"]) == (id, False)
    assert said in response["error"] and "output" not in response


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "KeyError: 'x'"),
        ({"x": "text"}, "ValueError"),
        ({"x": [[1.0]]}, "RankError"),
        (3, "TypeError"),
        ({"x": [1.0], "min_runs": 0}, "min_runs is a whole number of at least 1, not 0"),
        ({"x": [1.0], "min_runs": 1.5}, "min_runs is a whole number"),
        ({"x": [1.0], "min_runs": True}, "min_runs is a whole number"),
        ({"x": [1.0], "min_seconds": -1}, "min_seconds is finite and not negative, not -1"),
        ({"x": [1.0], "min_seconds": float("inf")}, "min_seconds is finite"),
        ({"x": [1.0], "min_seconds": "1"}, "min_seconds is a number, not '1'"),
    ],
)
def test_inputs_that_a_function_does_not_take(given: Any, said: str) -> None:
    response = reply(id=9, kind="evaluate", module="lse", function="primal", input=given)
    assert (response["id"], response["success"]) == (9, False)
    assert said in response["error"] and "output" not in response


class Clock:
    """Every run takes a second."""

    def __init__(self) -> None:
        self.runs = 0

    def perf_counter_ns(self) -> int:
        self.runs += 1
        return self.runs // 2 * 10**9


@pytest.mark.parametrize(
    ("asked", "runs"),
    [
        ({}, 1),
        ({"min_runs": 3}, 3),
        ({"min_runs": 3, "min_seconds": 0}, 3),
        ({"min_runs": 1, "min_seconds": 4.5}, 5),
        ({"min_runs": 7, "min_seconds": 4.5}, 7),
    ],
)
def test_runs_until_both_minima_are_met(
    asked: dict[str, Any], runs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    function = protocol.Function(
        lambda given: (calls.append("prepare"), given["x"])[1:],
        lambda x: calls.append("run") or x + 1,
        lambda result: calls.append("encode") or [result],
    )
    monkeypatch.setattr(protocol, "time", Clock())
    output, timings = protocol.evaluate(function, {"x": 4} | asked)
    assert output == [5] and calls == ["prepare", *["run"] * runs, "encode"]
    assert timings == [{"name": "evaluate", "nanoseconds": 10**9}] * runs


def test_an_error_while_it_runs_does_not_end_the_session() -> None:
    def fail(x: float) -> float:
        raise ZeroDivisionError("no slope here")

    modules = {"bad": {"f": protocol.Function(lambda given: (given,), fail, float)}}
    lines = [
        {"id": 0, "kind": "evaluate", "module": "bad", "function": "f", "input": 1},
        {"id": 1, "kind": "define", "module": "bad"},
    ]
    answers = io.StringIO()
    serve(io.StringIO("".join(json.dumps(line) + "\n" for line in lines)), answers, modules)
    first, second = map(json.loads, answers.getvalue().splitlines())
    assert first == {"id": 0, "success": False, "error": "ZeroDivisionError: no slope here"}
    assert second == {"id": 1, "success": True}


def test_a_session_in_a_process_of_its_own() -> None:
    """Strict turns: a line is answered before the next one is sent; the end of stdin is the end."""
    with subprocess.Popen(
        [sys.executable, "-m", "benchmarks.gradbench"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    ) as tool:
        assert tool.stdin and tool.stdout

        def turn(message: dict[str, Any] | str) -> Any:
            assert tool.stdin and tool.stdout
            tool.stdin.write((message if isinstance(message, str) else json.dumps(message)) + "\n")
            tool.stdin.flush()
            return json.loads(tool.stdout.readline())

        assert turn({"id": 0, "kind": "start", "eval": "lse"})["tool"] == "nnkit"
        assert turn({"id": 1, "kind": "define", "module": "lse"})["success"]
        given = {"x": [1.0, 2.0], "min_runs": 2, "min_seconds": 0.001}
        asked = {"kind": "evaluate", "module": "lse", "function": "gradient", "input": given}
        answered = turn({"id": 2, **asked, "description": "2"})
        assert_close(answered["output"], [0.26894142137, 0.73105857863])
        assert len(answered["timings"]) >= 2 and all(
            entry["name"] == "evaluate" and entry["nanoseconds"] > 0
            for entry in answered["timings"]
        )
        assert turn({"id": 3, "kind": "analysis", "of": 2, "valid": True}) == {"id": 3}
        assert turn("not JSON")["success"] is False
        assert turn({"id": 4, **asked, "input": {"x": {}}})["success"] is False
        assert turn({"id": 5, **asked})["success"]
        tool.stdin.close()
        assert tool.wait(timeout=20) == 0
