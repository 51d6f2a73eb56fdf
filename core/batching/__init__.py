"""Batching: a function for all elements of a batch at once, beside differentiation.

Read `batch` (declarations get bodies), `differing` (which values differ among the elements), `body` (functions copied
with batched values), `control_flow` (choices and loops), `custom_rules` (of functions that have rules of their
derivatives) and `element_loop` (what runs for one element after the other).
"""
