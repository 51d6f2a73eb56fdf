"""Python functions become expressions, expressions become IR.

Read `spec` (what is known while staging) and `expression` (the DAG), `primitive` (its nodes by family),
`rep` (the operators users write) with `indexing`, `aggregates` and `static`, `lambdas` (functions and their
gradients) with `recursion`, `control` (choices and loops) with `carry` and `traversal`, and `specialize`
(shapes flow in, IR comes out) with `nesting` and `explanation`.  `location` says where in the user's file
all this happens.
"""
