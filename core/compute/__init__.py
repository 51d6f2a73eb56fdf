"""Stage compute: lowers tensor ops to loop nests, and fuses nests.

Read `lower_memory` (aggregates and memory to bytes), `bodies` (the blocks to generate code for), `generate` with
`products`, and `ops` (the library ops of this stage).
Fusion: `scalars` (what it works on), `normalized_nest`, `block_uses`, `cluster`, `fusion_cost`, `fusion_bounds`, then
`fuse` itself and `emit_clusters`; `address` serves all.

Nothing is imported here: who knows of the ops of this stage need not load what makes them.
"""
