"""The code by which the thread pool chooses the CPU that a worker wakes on, as LLVM IR (a part of `pool_code`).

A scheduler may wake a worker on the CPU of the thread that called, however idle the others are: there it waits until
that thread has had its share of the CPU, some 3 ms, so that two threads take the time of one for as long.  So who wakes
a worker takes its own CPU, and that of the thread that called, from those that the worker may run on, and gives them
back once it is awake (on Linux), unless somebody has changed its CPUs meanwhile.
"""

from __future__ import annotations

from typing import Final

NO_AFFINITY: Final = """
define internal void @note_thread(ptr %place) nounwind noinline {
  ret void
}
define internal void @note_cpu() nounwind noinline {
  ret void
}
define internal void @wake_elsewhere(ptr %place) nounwind noinline {
  call void @signal(ptr %place)
  ret void
}
"""

AFFINITY: Final = """
declare i32 @gettid()
declare i32 @sched_getcpu()
declare i32 @sched_getaffinity(i32, i64, ptr)
declare i32 @sched_setaffinity(i32, i64, ptr)
declare i32 @memcmp(ptr, ptr, i64)

define internal void @note_thread(ptr %place) nounwind noinline {
entry:
  %thread = call i32 @gettid()
  %thread.at = getelementptr $place, ptr %place, i64 0, i32 1
  store i32 %thread, ptr %thread.at
  ret void
}

define internal void @note_cpu() nounwind noinline {
entry:
  %cpu = call i32 @sched_getcpu()
  store atomic i32 %cpu, ptr $cpu monotonic, align 4
  ret void
}

; Wake a worker on another CPU than this thread's and that of the thread that called, if it may run on others; not so
; where there are more threads than CPUs. Which one it is has been decided when the signal has been given.
define internal void @wake_elsewhere(ptr %place) nounwind noinline {
entry:
  %all = alloca [16 x i64], align 8
  %others = alloca [16 x i64], align 8
  %now = alloca [16 x i64], align 8
  %thread.at = getelementptr $place, ptr %place, i64 0, i32 1
  %thread = load i32, ptr %thread.at
  %spin = load i64, ptr $spin
  %is.crowded = icmp eq i64 %spin, 0
  br i1 %is.crowded, label %anywhere, label %ask
ask:
  %unknown = call i32 @sched_getaffinity(i32 %thread, i64 128, ptr %all)
  %failed = icmp ne i32 %unknown, 0
  br i1 %failed, label %anywhere, label %choose
choose:
  %set = load [16 x i64], ptr %all, align 8
  store [16 x i64] %set, ptr %others, align 8
  %own = call i32 @sched_getcpu()
  call void @take_from(ptr %others, i32 %own)
  %callers = load atomic i32, ptr $cpu monotonic, align 4
  call void @take_from(ptr %others, i32 %callers)
  %refused = call i32 @sched_setaffinity(i32 %thread, i64 128, ptr %others)
  %is.refused = icmp ne i32 %refused, 0
  br i1 %is.refused, label %anywhere, label %elsewhere
anywhere:
  call void @signal(ptr %place)
  ret void
elsewhere:
  call void @signal(ptr %place)
  %lost = call i32 @sched_getaffinity(i32 %thread, i64 128, ptr %now)
  %different = call i32 @memcmp(ptr %now, ptr %others, i64 128)
  %problem = or i32 %lost, %different
  %changed = icmp ne i32 %problem, 0
  br i1 %changed, label %done, label %restore
restore:
  %restored = call i32 @sched_setaffinity(i32 %thread, i64 128, ptr %all)
  br label %done
done:
  ret void
}

define internal void @take_from(ptr %set, i32 %cpu) nounwind noinline {
entry:
  %is.counted = icmp ult i32 %cpu, 1024
  br i1 %is.counted, label %take, label %done
take:
  %number = zext i32 %cpu to i64
  %word = lshr i64 %number, 6
  %bit = and i64 %number, 63
  %at = getelementptr i64, ptr %set, i64 %word
  %before = load i64, ptr %at
  %one = shl i64 1, %bit
  %mask = xor i64 %one, -1
  %without = and i64 %before, %mask
  store i64 %without, ptr %at
  br label %done
done:
  ret void
}
"""
