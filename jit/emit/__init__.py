"""A scheduled function as LLVM IR text.

Read `writer` (with `values` and `instructions`: the text itself), `elements` and `scalar` (what a number and an op
are in registers; `math` has the functions), then the way of a nest: `steps` (what is planned), `addresses` and
`plan` (planning it), `loops`, `memory`, `point` and `nest` (writing it).  `library` and `scan` write the
ops that are no nests, `checks` reports bad indices, and `program` puts it all together.
"""
