"""The IR and everything that is true of it without a machine in mind.

A tour, in the order to read: `errors`, `round_to_odd` (correct rounding) and `types`; `ir` (values, ops,
instructions, modules, the builder);
`ops` (every instruction, defined once: type rule, meaning, derivative, loop nest); `analysis` (control
flow, dominance, effects); `evaluate` (the reference semantics) and `verify` (the rules of the language);
`text` (the text form); `passes` (optimisation); `autodiff` (gradients, source to source) and `batching`; `compute`
(tensor ops become loop nests, which fuse) and `schedule` (loops, vectors and memory are decided); `stage` and
`driver` (the stages in order, and what runs when).
"""
