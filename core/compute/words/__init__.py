"""Before loop nests: what is no tensor becomes words, and the ops of memory become those on bytes.

Read `layout` (how values lie in memory), `lower` (the way), `context` (what the rules write with), then the rules:
`pointers`, `owned` (boxes, stacks, enums) and `passing` (aggregates, calls, bodies).

Nothing is imported here: who asks how values lie in memory need not load what moves them.
"""
