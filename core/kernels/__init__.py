"""Kernels: the explicit loops over buffers that stage schedule ends in, and the rewrites that schedule them.

Read `ops`, `access_ops` and `guarded_ops` (what a kernel is made of) and `build`; then the rewrites, each in a file of
its name (`split`, `unroll`, `vectorise`, `interchange`, `fuse`, `promote`, `hoist`, `cse`, `order`, `pack`,
`parallelise`), with what makes them legal (`dependence`, `bounds`); last the policies: `products` writes the loops of a
product, `tiles` schedules them; `rows` writes those of nests over the same rows (`row_nests`, `row_sums`, `row_writer`,
`row_passes`).

Nothing is imported here: the text form and the verifier know the
ops of kernels without loading what makes them.
"""
