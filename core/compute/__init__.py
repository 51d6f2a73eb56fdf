"""Stage compute: tensor ops become loop nests, and nests that belong together become one.

Read `generate` with `products`, and `ops` (the one library op of this stage).  Fusion: `scalars` (what it works on),
`lift`, `survey`, `cluster`, `cost`, `outside`, then `fuse` itself and `rebuild`; `address` serves all.
"""

from .fuse import fuse
from .generate import generate_compute
from .ops import MatrixProduct

__all__ = ["MatrixProduct", "fuse", "generate_compute"]
