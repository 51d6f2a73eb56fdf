"""The code of the thread pool, as LLVM IR: programs call `run`, each thread runs `worker`.

    run(function, context, first, count, wakes, most)    function(context, first, thread), … (…, first + count - 1, …)

A *job* is such a call.  Its blocks are taken by compare-and-swap on the *ticket*, a word with the number of the job,
how many blocks have been taken at the front, by the thread that called, and how many at the end, by workers.  A worker
that comes late finds another number, and takes nothing.  Taking from both ends gives two threads the same parts of
the data in one job after the other, as far as they are equally fast.  A thread has a number while it runs blocks of a
job: the one that called has 0, workers join it by compare-and-swap on `joined`, a word with the number of the job and
how many threads have one; where `most` have, nobody joins any more.

1. `run` closes the ticket: another number, and all blocks taken.  Then it writes the job, then the ticket.  A worker
   that is late may read what is written of a job with the ticket of the one before, of which it could take blocks that
   are none, and be counted among those of this job, whose end nobody would see; so it reads the ticket again, behind a
   fence, and finds it closed, or new.  Where the pool is in use (by another thread of the program, or by the loop
   that this one is in) or has no workers, it runs all blocks itself: so nobody waits for anybody.
2. Workers look at the ticket for `spin` nanoseconds, then sleep.  `run` wakes two of them, and each that wakes two
   others, as long as there are blocks left: so many cores take the thread that calls no longer than three do.  Where
   all sleep, and the job is not worth waking them (`wakes` is 0), it runs all blocks itself.
3. Who finds no block left adds to `done` how many it has run.  `run` returns when these are all.

A worker that goes to sleep puts its place on a stack, on which the count of sleeping workers is the height: who wakes
one takes the topmost, which slept the shortest, and signals the condition that it has to itself.  It counts itself,
then looks at the ticket; `run` writes the ticket, then looks at the count; all threads see these in one order
(`seq_cst`), so that no job is missed, and the mutex is held from the count to the sleep.

LLVM does not optimize it, which takes 3 ms instead of 15; a job costs 0.1 µs more.
"""

from __future__ import annotations

from string import Template
from typing import Final

from ..llvm import UNOPTIMIZED
from .pool_affinity import AFFINITY, NO_AFFINITY

RUN: Final = "nnkit.pool.run"
WORKER: Final = "nnkit.pool.worker"
STATE: Final = "nnkit.pool.state"
START: Final = "nnkit.pool.start"
CLOCK: Final = "nnkit.pool.clock"

MOST_BLOCKS: Final = (1 << 16) - 1
"""Blocks of a job: as many as the ticket can count."""

MOST_THREADS: Final = 256
"""Twice as many as a job has blocks at most (`shared_loops`)."""

STACK: Final = 1024
"""Offset into the state: the places of the workers that sleep."""
PLACES: Final = STACK + 8 * MOST_THREADS
"""Offset of the places of workers, one behind the other."""
PLACE_BYTES: Final = 192
"""Of a worker's place."""
OWN_WAKE: Final = 64
"""Offset into a place: the condition that the worker sleeps on; 128 bytes."""

STATE_BYTES: Final = PLACES + PLACE_BYTES * MOST_THREADS
"""Room for all that follows and the places."""

THREADS: Final = 0
"""Offset into the state: the number of threads, with the one that calls; 0 before the pool has been started."""
SPIN: Final = 8
"""Nanoseconds that a thread looks for work, or for the end of others' work, before it sleeps."""
BUSY: Final = 64
"""1 while a job runs."""
TICKET: Final = 128
"""The number of the latest job, and how many of its blocks have been taken."""
SLEEPING: Final = 192
"""How many workers sleep."""
CPU: Final = 104
"""Where the thread that called ran when it last woke a worker."""
WAITING: Final = 256
"""1 while the thread that called sleeps."""
MUTEX: Final = 512
"""Where the mutex is; it has 128 bytes, as the conditions have, twice what the C libraries need."""
ENDED: Final = 768
"""The condition that the thread that called sleeps on."""

_OFFSETS: Final = {
    "threads": THREADS, "spin": SPIN,
    "busy": BUSY, "function": 72, "context": 80, "first": 88, "count": 96, "cpu": CPU, "most": 112, "joined": 328,
    "ticket": TICKET, "sleeping": SLEEPING, "waiting": WAITING, "done": 320,
    "mutex": MUTEX, "ended": ENDED, "stack": STACK,
}  # fmt: skip
"""Words that threads change while others look at them have a cache line each."""

_PLACE: Final = "{ i64, i32, [52 x i8], [128 x i8] }"
"""A worker's place: 1 if it has been taken from the stack; its number in the system; its condition."""


def pool_text(clock: int, pause: str, *, has_affinity: bool) -> str:
    """The module, with the C library's number of the clock that never goes back, and an instruction that pauses.

    `has_affinity` says whether the C library tells and sets the CPUs of threads.
    """
    places = {
        name: f"getelementptr (i8, ptr @{STATE}, i64 {offset})" for name, offset in _OFFSETS.items()
    }
    text = _TEXT + (AFFINITY if has_affinity else NO_AFFINITY)
    return Template(text).substitute(
        places, clock=clock, pause=pause, unoptimized=UNOPTIMIZED, place=_PLACE
    )


_TEXT: Final = """\
@nnkit.pool.state = external global i8
declare i64 @nnkit.pool.start()
declare i32 @nnkit.pool.clock(i32, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_signal(ptr)
declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.smin.i64(i64, i64)
declare void @llvm.x86.sse2.pause()
declare void @llvm.aarch64.hint(i32)

define void @nnkit.pool.run(ptr %function, ptr %context, i64 %first, i64 %count, i64 %wakes, i64 %most) nounwind {
entry:
  %known = load atomic i64, ptr $threads monotonic, align 8
  %unknown = icmp eq i64 %known, 0
  br i1 %unknown, label %start, label %ask
start:
  %started = call i64 @nnkit.pool.start()
  br label %ask
ask:
  %threads = phi i64 [ %known, %entry ], [ %started, %start ]
  %alone = icmp ult i64 %threads, 2
  %parts = call i64 @llvm.umin.i64(i64 %count, i64 %most)
  %single = icmp ult i64 %parts, 2
  %here = or i1 %alone, %single
  br i1 %here, label %inline, label %consider
consider:
  %workers = sub i64 %threads, 1
  %resting = load atomic i64, ptr $sleeping monotonic, align 8
  %all.rest = icmp uge i64 %resting, %workers
  %short = icmp eq i64 %wakes, 0
  %stay = and i1 %all.rest, %short
  br i1 %stay, label %inline, label %enter
enter:
  %pair = cmpxchg ptr $busy, i64 0, i64 1 acquire monotonic, align 8
  %free = extractvalue { i64, i1 } %pair, 1
  br i1 %free, label %publish, label %inline
inline:
  call void @run_all(ptr %function, ptr %context, i64 %first, i64 %count)
  ret void

publish:
  %before = load atomic i64, ptr $ticket monotonic, align 8
  %last = lshr i64 %before, 32
  %between = add i64 %last, 1
  %shifted = shl i64 %between, 32
  %closed = or i64 %shifted, 4294967295
  store atomic i64 %closed, ptr $ticket monotonic, align 8
  fence release
  store atomic ptr %function, ptr $function monotonic, align 8
  store atomic ptr %context, ptr $context monotonic, align 8
  store atomic i64 %first, ptr $first monotonic, align 8
  store atomic i64 %count, ptr $count monotonic, align 8
  store atomic i64 0, ptr $done monotonic, align 8
  store atomic i64 %most, ptr $most monotonic, align 8
  %job = add i64 %last, 2
  %ticket = shl i64 %job, 32
  %caller = or i64 %ticket, 1
  store atomic i64 %caller, ptr $joined monotonic, align 8
  store atomic i64 %ticket, ptr $ticket seq_cst, align 8
  %number = lshr i64 %ticket, 32
  %sleeping = load atomic i64, ptr $sleeping seq_cst, align 8
  %asleep = icmp ne i64 %sleeping, 0
  br i1 %asleep, label %wake, label %work
wake:
  call void @note_cpu()
  %others = sub i64 %parts, 1
  call void @wake_workers(i64 %others)
  br label %work
work:
  %own = call i64 @take_blocks(i64 %number, ptr %function, ptr %context, i64 %first, i64 %count, i64 65536, i64 0)
  %rest = sub i64 %count, %own
  %mine = icmp eq i64 %rest, 0
  br i1 %mine, label %leave, label %wait
wait:
  call void @wait_for_workers(i64 %rest)
  br label %leave
leave:
  store atomic i64 0, ptr $busy release, align 8
  ret void
}

define internal void @run_all(ptr %function, ptr %context, i64 %first, i64 %count) nounwind noinline {
entry:
  %end = add i64 %first, %count
  %none = icmp sle i64 %count, 0
  br i1 %none, label %done, label %block
block:
  %number = phi i64 [ %first, %entry ], [ %following, %block ]
  call void %function(ptr %context, i64 %number, i64 0)
  %following = add i64 %number, 1
  %more = icmp slt i64 %following, %end
  br i1 %more, label %block, label %done
done:
  ret void
}

; Run blocks of a job as long as there are some; how many have been run. `step` is 65536 at the front, 1 at the end.
define internal i64 @take_blocks(i64 %job, ptr %function, ptr %context, i64 %first, i64 %count, i64 %step, i64 %thread)
    nounwind noinline {
entry:
  br label %look
look:
  %found = phi i64 [ 0, %entry ], [ %found, %take ], [ %more, %taken ]
  %ticket = load atomic i64, ptr $ticket acquire, align 8
  %number = lshr i64 %ticket, 32
  %same = icmp eq i64 %number, %job
  br i1 %same, label %this, label %none
this:
  %shifted = lshr i64 %ticket, 16
  %front = and i64 %shifted, 65535
  %back = and i64 %ticket, 65535
  %gone = add i64 %front, %back
  %left = icmp ult i64 %gone, %count
  br i1 %left, label %take, label %none
take:
  %after = add i64 %ticket, %step
  %pair = cmpxchg ptr $ticket, i64 %ticket, i64 %after acq_rel acquire, align 8
  %won = extractvalue { i64, i1 } %pair, 1
  br i1 %won, label %taken, label %look
taken:
  %at.end = icmp eq i64 %step, 1
  %ahead = add i64 %back, 1
  %from.end = sub i64 %count, %ahead
  %offset = select i1 %at.end, i64 %from.end, i64 %front
  %block = add i64 %first, %offset
  call void %function(ptr %context, i64 %block, i64 %thread)
  %more = add i64 %found, 1
  br label %look
none:
  ret i64 %found
}

; The number of a worker among the threads of a job; -1 if the job is over, or has as many as it may have.
define internal i64 @join(i64 %job) nounwind noinline {
entry:
  %most = load atomic i64, ptr $most monotonic, align 8
  br label %look
look:
  %joined = load atomic i64, ptr $joined monotonic, align 8
  %number = lshr i64 %joined, 32
  %same = icmp eq i64 %number, %job
  %thread = and i64 %joined, 4294967295
  %early = icmp ult i64 %thread, %most
  %free = and i1 %same, %early
  br i1 %free, label %add, label %none
add:
  %after = add i64 %joined, 1
  %pair = cmpxchg ptr $joined, i64 %joined, i64 %after monotonic monotonic, align 8
  %won = extractvalue { i64, i1 } %pair, 1
  br i1 %won, label %known, label %look
known:
  ret i64 %thread
none:
  ret i64 -1
}

; Wake two workers, if there are so many blocks and so many sleep.
define internal void @wake_workers(i64 %blocks) nounwind noinline {
entry:
  %taken = alloca [2 x ptr], align 8
  %count = call i64 @llvm.umin.i64(i64 %blocks, i64 2)
  %locked = call i32 @pthread_mutex_lock(ptr $mutex)
  br label %ask
ask:
  %found = phi i64 [ 0, %entry ], [ %more, %take ]
  %sleeping = load atomic i64, ptr $sleeping monotonic, align 8
  %some = icmp ne i64 %sleeping, 0
  %early = icmp ult i64 %found, %count
  %go.on = and i1 %some, %early
  br i1 %go.on, label %take, label %all
take:
  %top = sub i64 %sleeping, 1
  store atomic i64 %top, ptr $sleeping seq_cst, align 8
  %entry.at = getelementptr ptr, ptr $stack, i64 %top
  %place = load ptr, ptr %entry.at
  store i64 1, ptr %place
  %taken.at = getelementptr ptr, ptr %taken, i64 %found
  store ptr %place, ptr %taken.at
  %more = add i64 %found, 1
  br label %ask
all:
  %unlocked = call i32 @pthread_mutex_unlock(ptr $mutex)
  br label %next
next:
  %number = phi i64 [ 0, %all ], [ %following, %wake ]
  %left = icmp ult i64 %number, %found
  br i1 %left, label %wake, label %done
wake:
  %woken.at = getelementptr ptr, ptr %taken, i64 %number
  %woken = load ptr, ptr %woken.at
  call void @wake_elsewhere(ptr %woken)
  %following = add i64 %number, 1
  br label %next
done:
  ret void
}

define internal void @signal(ptr %place) nounwind noinline {
entry:
  %condition = getelementptr $place, ptr %place, i64 0, i32 3
  %signaled = call i32 @pthread_cond_signal(ptr %condition)
  ret void
}

; Return when so many blocks of the job are done.
define internal void @wait_for_workers(i64 %wanted) nounwind noinline {
entry:
  %now = call i64 @clock()
  %spin = load i64, ptr $spin
  %deadline = add i64 %now, %spin
  br label %look
look:
  %done = load atomic i64, ptr $done acquire, align 8
  %ended = icmp eq i64 %done, %wanted
  br i1 %ended, label %leave, label %again
again:
  %go.on = call i1 @pause_until(i64 %deadline)
  br i1 %go.on, label %look, label %sleep
sleep:
  %locked = call i32 @pthread_mutex_lock(ptr $mutex)
  store atomic i64 1, ptr $waiting seq_cst, align 8
  br label %check
check:
  %last = load atomic i64, ptr $done seq_cst, align 8
  %over = icmp eq i64 %last, %wanted
  br i1 %over, label %awake, label %wait
wait:
  %waited = call i32 @pthread_cond_wait(ptr $ended, ptr $mutex)
  br label %check
awake:
  store atomic i64 0, ptr $waiting seq_cst, align 8
  %unlocked = call i32 @pthread_mutex_unlock(ptr $mutex)
  br label %leave
leave:
  ret void
}

define ptr @nnkit.pool.worker(ptr %place) nounwind "$unoptimized" {
entry:
  call void @note_thread(ptr %place)
  %condition = getelementptr $place, ptr %place, i64 0, i32 3
  %spin = load i64, ptr $spin
  br label %idle
idle:
  %seen = phi i64 [ 0, %entry ], [ %job, %finished ]
  %now = call i64 @clock()
  %deadline = add i64 %now, %spin
  br label %look
look:
  %ticket = load atomic i64, ptr $ticket acquire, align 8
  %number = lshr i64 %ticket, 32
  %new = icmp ne i64 %number, %seen
  br i1 %new, label %work, label %again
again:
  %go.on = call i1 @pause_until(i64 %deadline)
  br i1 %go.on, label %look, label %sleep
sleep:
  %locked = call i32 @pthread_mutex_lock(ptr $mutex)
  %height = atomicrmw add ptr $sleeping, i64 1 seq_cst, align 8
  %later = load atomic i64, ptr $ticket seq_cst, align 8
  %other = lshr i64 %later, 32
  %changed = icmp ne i64 %other, %seen
  br i1 %changed, label %stay, label %rest
stay:
  %uncounted = atomicrmw sub ptr $sleeping, i64 1 seq_cst, align 8
  %left = call i32 @pthread_mutex_unlock(ptr $mutex)
  br label %work
rest:
  %entry.at = getelementptr ptr, ptr $stack, i64 %height
  store ptr %place, ptr %entry.at
  store i64 0, ptr %place
  br label %wait
wait:
  %waited = call i32 @pthread_cond_wait(ptr %condition, ptr $mutex)
  %taken = load i64, ptr %place
  %woken = icmp ne i64 %taken, 0
  br i1 %woken, label %awake, label %wait
awake:
  %unlocked = call i32 @pthread_mutex_unlock(ptr $mutex)
  %current = load atomic i64, ptr $ticket acquire, align 8
  %latest = lshr i64 %current, 32
  call void @wake_others(i64 %latest)
  br label %work
work:
  %job = phi i64 [ %number, %look ], [ %other, %stay ], [ %latest, %awake ]
  %function = load atomic ptr, ptr $function monotonic, align 8
  %context = load atomic ptr, ptr $context monotonic, align 8
  %first = load atomic i64, ptr $first monotonic, align 8
  %count = load atomic i64, ptr $count monotonic, align 8
  fence acquire
  %thread = call i64 @join(i64 %job)
  %late = icmp eq i64 %thread, -1
  br i1 %late, label %finished, label %take
take:
  %own = call i64 @take_blocks(i64 %job, ptr %function, ptr %context, i64 %first, i64 %count, i64 1, i64 %thread)
  %none = icmp eq i64 %own, 0
  br i1 %none, label %finished, label %report
report:
  %before = atomicrmw add ptr $done, i64 %own seq_cst, align 8
  %waiting = load atomic i64, ptr $waiting seq_cst, align 8
  %waits = icmp ne i64 %waiting, 0
  br i1 %waits, label %signal, label %finished
signal:
  %held = call i32 @pthread_mutex_lock(ptr $mutex)
  %signaled = call i32 @pthread_cond_signal(ptr $ended)
  %released = call i32 @pthread_mutex_unlock(ptr $mutex)
  br label %finished
finished:
  br label %idle
}

; Wake two more workers, if the job has blocks for them beside one for this thread.
define internal void @wake_others(i64 %job) nounwind noinline {
entry:
  %sleeping = load atomic i64, ptr $sleeping monotonic, align 8
  %none = icmp eq i64 %sleeping, 0
  br i1 %none, label %done, label %ask
ask:
  %count = load atomic i64, ptr $count monotonic, align 8
  %ticket = load atomic i64, ptr $ticket acquire, align 8
  %number = lshr i64 %ticket, 32
  %same = icmp eq i64 %number, %job
  %shifted = lshr i64 %ticket, 16
  %front = and i64 %shifted, 65535
  %back = and i64 %ticket, 65535
  %gone = add i64 %front, %back
  %blocks.left = sub i64 %count, %gone
  %most = load atomic i64, ptr $most monotonic, align 8
  %others = call i64 @llvm.smin.i64(i64 %blocks.left, i64 %most)
  %left = icmp sgt i64 %others, 1
  %wanted = and i1 %same, %left
  br i1 %wanted, label %wake, label %done
wake:
  %blocks = sub i64 %others, 1
  call void @wake_workers(i64 %blocks)
  br label %done
done:
  ret void
}

; Wait some hundred cycles; whether the deadline is still to come.
define internal i1 @pause_until(i64 %deadline) nounwind noinline {
entry:
  br label %wait
wait:
  %number = phi i64 [ 0, %entry ], [ %following, %wait ]
  $pause
  %following = add i64 %number, 1
  %more = icmp ult i64 %following, 4
  br i1 %more, label %wait, label %ask
ask:
  %now = call i64 @clock()
  %early = icmp slt i64 %now, %deadline
  ret i1 %early
}

define internal i64 @clock() nounwind noinline {
entry:
  %time = alloca [2 x i64], align 8
  %failed = call i32 @nnkit.pool.clock(i32 $clock, ptr %time)
  %seconds = load i64, ptr %time
  %place = getelementptr i8, ptr %time, i64 8
  %rest = load i64, ptr %place
  %whole = mul i64 %seconds, 1000000000
  %sum = add i64 %whole, %rest
  ret i64 %sum
}
"""
