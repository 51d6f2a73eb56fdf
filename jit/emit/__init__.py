"""A scheduled function as LLVM IR text.

Read `writer` (with `values` and `instructions`: the text itself), `elements` and `scalar` (what a number and an op
are in registers; `math` has the functions), then the way of a nest: `steps` (what is planned), `addresses` and
`plan` (planning it), `loops`, `memory`, `point` and `nest` (writing it).  `library` and `scan` write the
ops that are no nests, `kernel` knows where values lie, `control` and `calls` write what has bodies and what is
called, `checks` reports what goes wrong, and `program` puts it all together: an op of stage schedule more is one
writer more in its table.
"""
