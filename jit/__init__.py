"""From scheduled IR to machine code that Python calls.

Read `executable` (the whole way), then `emit` (a scheduled function as LLVM text), `llvm` (compiled and loaded),
`runtime` (what programs find in the process) and `entry` (how Python calls them).  For code that other programs
link: `ahead_of_time`, with `triples` and `cpus` (which machine) and `header` (the C interface).
"""
