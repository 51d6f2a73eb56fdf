"""A scheduled function as LLVM IR text.

Read `writer` (with `values` and `instructions`: the text itself), `elements` and `scalar` (what a number and an op
are in registers; `math` has the functions), then a kernel: `element_access`, `kernel_addresses` and `kernels`, which
translate it instruction by instruction, and `parallel`.  `matrix_products`, `scan` and `sorting` write the ops that are
no kernels, `function_emitter` knows where values lie, `structured_ops` and `calls` write what
has bodies and what is called, `checks` reports what goes wrong, and `program` puts it all together: an op of stage
schedule more is one more entry in its table.
"""
