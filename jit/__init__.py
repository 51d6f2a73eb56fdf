"""From scheduled IR to machine code: LLVM text is written by `emit`, compiled and loaded by `llvm`.

Read `emit.writer`, then `llvm`.
"""
