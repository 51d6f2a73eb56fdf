"""Stage compute: tensor ops become loop nests, and nests that belong together become one.

Read `words` (what is no tensor becomes words), `bodies` (what is generated for), `generate` with `products`, and
`ops` (the library ops of this stage).
Fusion: `scalars` (what it works on), `lift`, `survey`, `cluster`, `cost`, `outside`, then `fuse` itself and
`rebuild`; `address` serves all.

Nothing is imported here: who knows of the ops of this stage need not load what makes them.
"""
