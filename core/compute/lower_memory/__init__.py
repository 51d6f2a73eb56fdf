"""Lowers aggregates, pointers and memory operations to bytes and machine words.

Read `data_layout` (how values lie in memory), `lower` (the way), `context` (what the rules write with), then the rules:
`pointers`, `heap_objects` (boxes, stacks, enums) and `flatten_values` (aggregates, calls, bodies).

Nothing is imported here: who asks how values lie in memory need not load what moves them.
"""
