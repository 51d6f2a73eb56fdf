"""A library at work in a process of its own, which the benchmark asks for one batch at a time.

So the libraries take turns on the same machine, and none is disturbed by the threads, the allocator or the
garbage of another.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from .problems import PROBLEMS
from .timing import batch

Arrays = list[np.ndarray[Any, Any]]


class Failure(Exception):
    """What a library said when it could not do it."""


class Worker:
    """One mode of one library."""

    def __init__(self, package: str, mode: str) -> None:
        context = get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, package, mode), daemon=True)
        self._process.start()
        theirs.close()

    def first(self, problem: str) -> Arrays:
        """Build a problem and call it once.  Raises: Failure."""
        results: Arrays = self._ask(problem)
        return results

    def batch(self, count: int) -> float:
        """Seconds per call of the problem built last.  Raises: Failure."""
        seconds: float = self._ask(count)
        return seconds

    def close(self) -> None:
        """End the process."""
        self._connection.close()
        self._process.join()

    def _ask(self, request: str | int) -> Any:
        self._connection.send(request)
        try:
            done, answer = self._connection.recv()
        except EOFError:
            raise Failure("its process ended") from None
        if not done:
            raise Failure(answer)
        return answer


def _serve(connection: Connection, package: str, mode: str) -> None:
    """Answer until the other side closes: a name builds that problem, a number is a batch of it."""
    workloads = importlib.import_module(f"benchmarks.workloads_{package}")
    problems = {problem.name: problem for problem in PROBLEMS}
    call: Callable[[], Any] = tuple
    while True:
        try:
            request = connection.recv()
        except EOFError:
            return
        try:
            if isinstance(request, int):
                answer: Any = batch(call, request)
            else:
                call = workloads.BUILD[request](problems[request].arrays(), mode)
                answer = workloads.to_numpy(call())
        except Exception as error:  # whatever another library raises is a reason to report
            said = str(error).strip().partition("\n")[0]
            connection.send((False, f"{type(error).__name__}: {said}"))
        else:
            connection.send((True, answer))
