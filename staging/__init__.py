"""Python functions become expressions, expressions become IR.

Read `spec` (what is known while staging) and `expression` (the DAG), `primitive` (its nodes by family),
`rep` (the operators users write) with `indexing`, `aggregates`, `static` and `extents` (sizes), `staged_functions`
(functions and their gradients) with `recursion`, `control_flow` (choices and loops) with `carry` and `stacked`, and
`specialize` (shapes flow in, IR comes out) with `specialize_control_flow` and `explanation`.  `location` says where in
the user's file all this happens.
"""
