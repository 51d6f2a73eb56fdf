"""Stage schedule: loops, vectors, groups and memory decided for a target, so that nothing is left to jit.

Read `ops` (what a scheduled program is made of) and `target`, then `plan` (the way there) with `collapse`,
`product_kernels`, `loops`, `group`, `buffer_assignment`, `idle_outputs` and `arena`; `memory_use` adds up what was
planned.  What a kernel is made of, and the rewrites that schedule it, are in `core.kernels`.
"""
