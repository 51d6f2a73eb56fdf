"""A library at work in a process of its own, which the benchmark asks for one batch at a time.

So the libraries take turns on the same machine, and none is disturbed by the threads, the allocator or the
garbage of another.
"""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from types import MappingProxyType
from typing import Any

import numpy as np

from .problems import ABLATED
from .timing import batch

Arrays = list[np.ndarray[Any, Any]]


class Failure(Exception):
    """What a library said when it could not do it."""


POOLS = ("NNKIT", "OPENBLAS", "OMP", "MKL")
"""Whose threads a variable `…_NUM_THREADS` counts; JAX makes as many as it has cores."""


class Worker:
    """One mode of one library, on so many cores, with as many threads; `cpu` counts seconds of the process.

    Those of several threads add up, so they say nothing of how long several took.
    """

    def __init__(
        self,
        package: str,
        mode: str,
        *,
        threads: int = 1,
        cpu: bool = False,
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        context = get_context("spawn")
        self._connection, theirs = context.Pipe()
        arguments = (theirs, package, mode, cpu and threads == 1)
        self._process = context.Process(target=_serve, args=arguments, daemon=True)
        with confined(threads, environment):
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


@contextmanager
def confined(threads: int, environment: Mapping[str, str] = MappingProxyType({})) -> Iterator[None]:
    """Processes that are started inside have so many cores, the last ones, and libraries as many threads."""
    cores, before = os.sched_getaffinity(0), dict(os.environ)
    os.sched_setaffinity(0, sorted(cores)[-threads:])
    os.environ.update({f"{pool}_NUM_THREADS": str(threads) for pool in POOLS} | dict(environment))
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)
        os.environ.clear()
        os.environ.update(before)


def _serve(connection: Connection, package: str, mode: str, cpu: bool) -> None:
    """Answer until the other side closes: a name builds that problem, a number is a batch of it."""
    workloads = importlib.import_module(f"benchmarks.workloads_{package}")
    problems = {problem.name: problem for problem in ABLATED}
    call: Callable[[], Any] = tuple
    clock = time.process_time if cpu else time.perf_counter
    while True:
        try:
            request = connection.recv()
        except EOFError:
            return
        try:
            if isinstance(request, int):
                answer: Any = batch(call, request, clock=clock)
            else:
                problem = problems[request]
                call = workloads.BUILD[problem.kind or problem.name](problem.arrays(), mode)
                answer = workloads.to_numpy(call())
        except Exception as error:  # whatever another library raises is a reason to report
            said = str(error).strip().partition("\n")[0]
            connection.send((False, f"{type(error).__name__}: {said}"))
        else:
            connection.send((True, answer))
