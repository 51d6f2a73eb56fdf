"""The messages of GradBench: one line of JSON in, one line out with the same id, until the eval closes its end.

A function of a problem has three parts, of which only `run` is on the clock: `prepare` makes arrays of the decoded
input, `run` computes (compiling at its first call), `encode` makes JSON of the result.  What fails is answered with
`success: false` and the error; the session goes on.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TextIO, cast

TOOL = "nnkit"

Json = Any
"""What `json` reads and writes."""
Modules = Mapping[str, Mapping[str, "Function"]]
"""The functions by name, by the name of their problem."""


class MessageError(ValueError):
    """A message that the protocol does not have."""


@dataclass(frozen=True)
class Function:
    """A function of a problem: from the decoded input of a message to the output of the response."""

    prepare: Callable[[Json], tuple[Any, ...]]
    run: Callable[..., Any]
    encode: Callable[[Any], Json]


def serve(messages: TextIO, responses: TextIO, modules: Modules) -> None:
    """Answer every line of `messages` until there are no more."""
    for line in messages:
        json.dump(respond(line, modules), responses, allow_nan=True)
        responses.write("\n")
        responses.flush()


def respond(line: str, modules: Modules) -> dict[str, Json]:
    """The response to a line; its id is null where the line has none."""
    try:
        message = json.loads(line)
    except ValueError as error:
        return _failure(None, MessageError(f"a message is a line of JSON: {error}"))
    if not isinstance(message, dict):
        return _failure(None, MessageError("a message is an object"))
    message = cast("dict[str, Json]", message)
    try:
        return {"id": message.get("id"), **_answer(message, modules)}
    except Exception as error:  # whatever a program of the benchmark raises
        return _failure(message.get("id"), error)


def evaluate(function: Function, given: Json) -> tuple[Json, list[dict[str, Json]]]:
    """The output, and a timing for each run: `min_runs` and at least `min_seconds` together."""
    min_runs, min_seconds = _repetitions(given)
    arguments = function.prepare(given)
    timings: list[int] = []
    result: Any = None
    while len(timings) < min_runs or sum(timings) < min_seconds * 1e9:
        begin = time.perf_counter_ns()
        result = function.run(*arguments)
        timings.append(time.perf_counter_ns() - begin)
    return function.encode(result), [{"name": "evaluate", "nanoseconds": ns} for ns in timings]


def _answer(message: dict[str, Json], modules: Modules) -> dict[str, Json]:
    """What a response has besides its id."""
    match message:
        case {"id": _, "kind": "start"}:
            return {"tool": TOOL}
        case {"id": _, "kind": "define", "module": str(module)}:
            if module in modules:
                return {"success": True}
            return {"success": False, "error": _unknown("module", module, modules)}
        case {"id": _, "kind": "evaluate", "module": str(module), "function": str(name)}:
            functions = modules.get(module)
            if functions is None:
                raise MessageError(_unknown("module", module, modules))
            if name not in functions:
                raise MessageError(_unknown("function", f"{module}.{name}", functions))
            if "input" not in message:
                raise MessageError("an evaluate message has an input")
            output, timings = evaluate(functions[name], message["input"])
            return {"success": True, "output": output, "timings": timings}
        case {"id": _, "kind": "analysis"}:
            return {}
        case {"id": _}:
            shown = {key: message[key] for key in ("kind", "module", "function") if key in message}
            raise MessageError(f"no message of the protocol: {shown}")
        case _:
            raise MessageError("a message has an id")


def _repetitions(given: Json) -> tuple[int, float]:
    """`min_runs` and `min_seconds` of an input.  That of hello is a number, and runs once."""
    if not isinstance(given, dict):
        return 1, 0.0
    asked = cast("dict[str, Json]", given)
    runs, seconds = asked.get("min_runs", 1), asked.get("min_seconds", 1.0)
    if isinstance(runs, bool) or not isinstance(runs, int) or runs < 1:
        raise MessageError(f"min_runs is a whole number of at least 1, not {runs!r}")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise MessageError(f"min_seconds is a number, not {seconds!r}")
    if not 0 <= seconds < math.inf:
        raise MessageError(f"min_seconds is finite and not negative, not {seconds!r}")
    return runs, float(seconds)


def _unknown(what: str, name: str, known: Mapping[str, object]) -> str:
    return f"no {what} {name!r}: there are {', '.join(known)}"


def _failure(id: Json, error: Exception) -> dict[str, Json]:
    return {"id": id, "success": False, "error": f"{type(error).__name__}: {error}"}
