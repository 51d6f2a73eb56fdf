"""From blocks that branch to structured ops, for every graph of blocks.

Read `reducible_graph` (blocks, arcs, and the nest of loops), `statements` (the structured program as statements over
variables), `arrange` (from one to the other), `liveness` (which variables a statement must pass on), then
`emit` (from statements to SSA).
"""

from .arrange import arrange
from .emit import emit
from .liveness import crossing_values, find_needed
from .reducible_graph import graph_of

__all__ = ["arrange", "crossing_values", "emit", "find_needed", "graph_of"]
