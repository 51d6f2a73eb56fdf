"""Differentiation, source to source: gradient declarations get bodies, and every op both its directions.

Read `rules` (one op, both directions, from its form, by products in which a zero wins); then
`core.analysis.derivatives` (what is asked for, and its type), `declaration_order`, `activity` and `primal_copy` (what
is differentiated, and where); then `pullback` (how calls are differentiated), `linearize` (the reverse sweep over one
function), `cotangent_arithmetic` (through enums), `reverse_control_flow` and `tapes` (over choices and loops),
`shadows` (what lies in memory), `residuals` (a function cut into forward and backward halves), `pushforward` and
`forward` (tangents), `symmetric` and `higher_order` (derivatives of derivatives); last `reverse` (the pass over a
module).  What derivatives are at ties, kinks and edges: `docs/semantics.md`.

Nothing is imported here: who reads or verifies a declaration needs its type and no more.
"""
