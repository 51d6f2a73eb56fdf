"""The thread pool: every block once, whoever calls, however many at a time, and in children."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from nnkit import UnsupportedError
from nnkit.jit.llvm import compile_module
from nnkit.jit.runtime.pool import Pool, available_cpus, this_pool, thread_count
from nnkit.jit.runtime.pool_code import MOST_BLOCKS, SLEEPING

TEXT = """\
declare void @nnkit.pool.run(ptr, ptr, i64, i64, i64, i64)

define void @run(ptr %function, ptr %context, i64 %first, i64 %count) {
  call void @nnkit.pool.run(ptr %function, ptr %context, i64 %first, i64 %count, i64 1, i64 256)
  ret void
}

define void @limited(ptr %function, ptr %context, i64 %most, i64 %count) {
  call void @nnkit.pool.run(ptr %function, ptr %context, i64 0, i64 %count, i64 1, i64 %most)
  ret void
}

define void @count(ptr %context, i64 %block, i64 %thread) {
  %place = getelementptr i64, ptr %context, i64 %block
  %before = load i64, ptr %place
  %after = add i64 %before, 1
  store i64 %after, ptr %place
  ret void
}

define void @held(ptr %context, i64 %block, i64 %thread) {
  br label %wait
wait:
  %going = load atomic i64, ptr %context monotonic, align 8
  %held = icmp eq i64 %going, 0
  br i1 %held, label %wait, label %go
go:
  call void @count(ptr %context, i64 %block, i64 %thread)
  ret void
}

define void @nested(ptr %context, i64 %block, i64 %thread) {
  %first = mul i64 %block, 10
  call void @nnkit.pool.run(ptr @count, ptr %context, i64 %first, i64 10, i64 0, i64 256)
  ret void
}

define void @meet(ptr %context, i64 %block, i64 %thread) {
entry:
  %wanted = load i64, ptr %context
  %place = getelementptr i64, ptr %context, i64 1
  %before = atomicrmw add ptr %place, i64 1 seq_cst
  br label %wait
wait:
  %turn = phi i64 [ 0, %entry ], [ %next, %wait ]
  %here = load atomic i64, ptr %place seq_cst, align 8
  %next = add i64 %turn, 1
  %missing = icmp slt i64 %here, %wanted
  %early = icmp slt i64 %next, 20000000000
  %again = and i1 %missing, %early
  br i1 %again, label %wait, label %done
done:
  %last = getelementptr i64, ptr %context, i64 2
  %alone = zext i1 %missing to i64
  %noted = atomicrmw add ptr %last, i64 %alone seq_cst
  ret void
}

define void @add(ptr %context, i64 %block, i64 %thread) {
  %place = getelementptr i64, ptr %context, i64 %block
  %before = atomicrmw add ptr %place, i64 1 monotonic
  ret void
}

define void @series(ptr %few, ptr %many, i64 %from, i64 %times) {
entry:
  br label %next
next:
  %turn = phi i64 [ %from, %entry ], [ %following, %next ]
  call void @nnkit.pool.run(ptr @add, ptr %few, i64 0, i64 2, i64 1, i64 256)
  call void @nnkit.pool.run(ptr @add, ptr %many, i64 0, i64 40, i64 1, i64 256)
  %following = add i64 %turn, 1
  %more = icmp slt i64 %following, %times
  br i1 %more, label %next, label %done
done:
  ret void
}

define void @alone(ptr %context, i64 %block, i64 %thread) {
entry:
  %most = load i64, ptr %context
  %known = icmp ult i64 %thread, %most
  br i1 %known, label %enter, label %failed
enter:
  %after = add i64 %thread, 1
  %place = getelementptr i64, ptr %context, i64 %after
  %pair = cmpxchg ptr %place, i64 0, i64 1 seq_cst seq_cst
  %free = extractvalue { i64, i1 } %pair, 1
  br i1 %free, label %wait, label %failed
wait:
  %turn = phi i64 [ 0, %enter ], [ %next, %wait ]
  %seen = load volatile i64, ptr %place
  %next = add i64 %turn, 1
  %again = icmp slt i64 %next, 1000
  br i1 %again, label %wait, label %leave
leave:
  store atomic i64 0, ptr %place seq_cst, align 8
  ret void
failed:
  store atomic i64 -1, ptr %context seq_cst, align 8
  ret void
}
"""
"""`count` counts how often each block is run, `nested` does so ten times for a block, `held` once the
first of all counts is no longer 0; `meet` waits until as many blocks have begun as its first word says; `alone` holds
the word of its thread's number, of as many as the first word says, and says -1 where another thread holds it;
`series` has jobs of few blocks, counted by `add`, and of many follow each other; `limited`
has jobs of so many threads at most."""


class Jobs:
    """Functions of C that run jobs."""

    def __init__(self) -> None:
        pool = this_pool()
        assert pool is not None
        self.pool: Pool = pool
        self.module = compile_module(TEXT, pool.symbols)
        types = ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64
        self.run = ctypes.CFUNCTYPE(None, *types)(self.module.address("run"))
        self.limited = ctypes.CFUNCTYPE(None, *types)(self.module.address("limited"))
        self.series = ctypes.CFUNCTYPE(None, *types)(self.module.address("series"))

    def counted(self, name: str, size: int, first: int, count: int, times: int = 1) -> list[int]:
        """How often each of so many elements is counted by jobs."""
        counts = np.zeros(size, np.int64)
        for _ in range(times):
            self.run(self.module.address(name), counts.ctypes.data, first, count)
        found: list[int] = counts.tolist()
        return found


@cache
def jobs() -> Jobs:
    return Jobs()


def at_once(count: int, work: Callable[[], None]) -> None:
    """Have so many threads of Python do the same, beginning together."""
    barrier = threading.Barrier(count)
    failed: list[BaseException] = []

    def run() -> None:
        barrier.wait()
        try:
            work()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed, failed


def test_every_block_runs_once() -> None:
    for first, count in ((0, 0), (0, 1), (3, 2), (0, 7), (5, 1000), (0, MOST_BLOCKS)):
        found = jobs().counted("count", first + count + 1, first, count, times=20)
        assert found == [0] * first + [20] * count + [0]


def test_a_loop_in_a_parallel_loop_runs_on_the_thread_that_meets_it() -> None:
    assert jobs().counted("nested", 500, 0, 50, times=20) == [20] * 500


def check_numbers() -> None:
    """A thread has a number of its own in each job, and there are no more threads than the job may have."""
    here = jobs()
    for most in (1, 2, 3, 9):
        words = np.zeros(1 + most, np.int64)
        for count in 50 * (1, most, 4 * most):
            words[0] = most
            here.limited(here.module.address("alone"), words.ctypes.data, most, count)
            assert words.tolist() == [most] + [0] * most


def test_many_threads_may_call() -> None:
    def work() -> None:
        assert jobs().counted("count", 300, 0, 300, times=50) == [50] * 300
        assert jobs().counted("nested", 300, 0, 30, times=50) == [50] * 300
        check_numbers()

    at_once(16, work)


def test_the_number_of_threads_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NNKIT_NUM_THREADS", raising=False)
    assert thread_count() == min(available_cpus(), 256)
    for text, count in (("", thread_count()), ("1", 1), (" 7 ", 7), ("256", 256)):
        monkeypatch.setenv("NNKIT_NUM_THREADS", text)
        assert thread_count() == count
    for text in ("0", "-1", "two", "1.5", "257", "9" * 5000, "٣"):
        monkeypatch.setenv("NNKIT_NUM_THREADS", text)
        with pytest.raises(UnsupportedError, match="NNKIT_NUM_THREADS is a number from 1 to 256"):
            thread_count()


IN_A_PROCESS = """\
import os, sys
from tests.jit.runtime.test_pool import at_once, check_jobs, check_jobs_of_others, check_series, meet, wait_for_threads
threads = int(sys.argv[1])
at_once(16, check_jobs)
wait_for_threads(threads)
check_jobs_of_others()
meet(threads)
check_series()
for _ in range(3):
    child = os.fork()
    if not child:
        wait_for_threads(1)
        check_jobs()
        wait_for_threads(threads)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    check_jobs()
"""


def meet(threads: int) -> None:
    """Have all threads in one job, each in a block: they sleep when it begins, and the one that calls wakes but two."""
    for _ in range(3):
        wait_for_sleep(threads - 1)
        words = np.array([threads, 0, 0], np.int64)
        jobs().run(jobs().module.address("meet"), words.ctypes.data, 0, threads)
        assert words.tolist() == [threads, threads, 0]


def check_series() -> None:
    """A worker that is late for a job takes none of its blocks for one of the next: that one would never end."""
    few, many = np.zeros(3, np.int64), np.zeros(41, np.int64)
    for _ in range(SERIES):
        jobs().series(few.ctypes.data, many.ctypes.data, 0, 10_000)
    assert few.tolist() == [SERIES * 10_000] * 2 + [0]
    assert many.tolist() == [SERIES * 10_000] * 40 + [0]


SERIES = 100


def wait_for_sleep(workers: int) -> None:
    """Wait until all workers sleep; they take no time of a CPU then."""
    asleep = ctypes.c_int64.from_address(jobs().pool.state.ctypes.data + SLEEPING)
    deadline = time.monotonic() + 20
    while asleep.value != workers:
        assert time.monotonic() < deadline, asleep.value
        time.sleep(0.001)
    before = time.process_time()
    time.sleep(0.02)
    assert time.process_time() - before < 0.01


def check_jobs() -> None:
    """Run some jobs, as the first ones of a process or later."""
    assert jobs().counted("count", 100, 0, 100, times=20) == [20] * 100
    check_numbers()


def check_jobs_of_others() -> None:
    """They begin while another thread of their parent has a job, with blocks that nobody has taken."""
    counts = np.zeros(101, np.int64)
    arguments = jobs().module.address("held"), counts.ctypes.data, 1, 100
    other = threading.Thread(target=lambda: jobs().run(*arguments))
    other.start()
    time.sleep(0.1)
    child = os.fork()
    counts[0] = 1
    if not child:
        check_jobs()
        time.sleep(0.1)
        os._exit(int(counts.sum() != 1))
    other.join()
    assert os.waitpid(child, 0)[1] == 0 and (counts == 1).all()


def wait_for_threads(count: int) -> None:
    """Wait until Linux shows so many threads, also of those that Python says have ended."""
    deadline = time.monotonic() + 20
    while len(os.listdir("/proc/self/task")) != count:
        assert time.monotonic() < deadline, os.listdir("/proc/self/task")
        time.sleep(0.001)


@pytest.mark.skipif(sys.platform != "linux", reason="counts the threads that Linux shows")
@pytest.mark.parametrize("threads", ["1", "7"])
def test_a_process_starts_its_threads_when_16_ask_first_and_so_do_its_children(
    threads: str,
) -> None:
    done = subprocess.run(
        # from Python 3.12 on, forking with threads is warned of
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", IN_A_PROCESS, threads],
        env={**os.environ, "NNKIT_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


KEEPS_AWAY = """
import os, resource, statistics
import numpy as np
import tests.jit.runtime.test_pool as pool
before = {int(task) for task in os.listdir("/proc/self/task")}
pool.jobs().counted("count", 300, 0, 300)
(worker,) = {int(task) for task in os.listdir("/proc/self/task")} - before
allowed = os.sched_getaffinity(0)
here = min(allowed)
os.sched_setaffinity(0, {here})
meet, switches = pool.jobs().module.address("meet"), []
for _ in range(50):
    os.sched_setaffinity(worker, {here})
    pool.jobs().counted("count", 300, 0, 300)  # the worker runs here, or not at all
    pool.wait_for_sleep(1)
    os.sched_setaffinity(worker, allowed)
    words = np.array([2, 0, 0], np.int64)
    before = resource.getrusage(resource.RUSAGE_THREAD).ru_nivcsw
    pool.jobs().run(meet, words.ctypes.data, 0, 2)  # ends when the worker has come
    switches.append(resource.getrusage(resource.RUSAGE_THREAD).ru_nivcsw - before)
    assert os.sched_getaffinity(worker) == allowed
    pool.wait_for_sleep(1)
    pool.jobs().counted("count", 300, 0, 300)
    os.sched_setaffinity(worker, {here})  # by somebody else, perhaps before the worker has run
    pool.wait_for_sleep(1)
    assert os.sched_getaffinity(worker) == {here}
print(statistics.median(switches))
"""


@pytest.mark.skipif(
    sys.platform != "linux" or available_cpus() < 2, reason="takes two CPUs, of Linux"
)
def test_no_worker_is_woken_on_the_cpu_of_the_thread_that_calls() -> None:
    """So that it takes turns with nobody; and each may run on all CPUs that it could before, or that it is told to."""
    done = subprocess.run(
        [sys.executable, "-c", KEEPS_AWAY],
        env={**os.environ, "NNKIT_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "0.0\n", "")
