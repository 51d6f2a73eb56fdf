"""Batching: a function for all elements of a batch at once, beside differentiation.

Read `batch` (declarations get bodies), `differing` (which values differ among the elements), `body` (functions copied
with batched values), `rules` (one instruction), `control_flow` (choices and loops), `custom_rules` (functions that have
rules of their derivatives), `totality` (what may run though it was not asked for) and `element_loop` (what runs for one
element after the other).
"""
