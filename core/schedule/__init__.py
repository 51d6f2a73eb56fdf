"""Stage schedule: loops, vectors, groups and memory decided for a target, so that nothing is left to jit.

Read `ops` (what a scheduled program is made of) and `target`, then `plan` (the way there) with `collapse`,
`loops`, `group`, `buffer_assignment` and `arena`.
"""
