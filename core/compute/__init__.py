"""Stage compute: tensor ops become loop nests, and nests that belong together become one.

Read `words` (what is no tensor becomes words), `bodies` (what is generated for), `generate` with `products`, and
`ops` (the library ops of this stage).
Fusion: `scalars` (what it works on), `lift`, `survey`, `cluster`, `cost`, `outside`, then `fuse` itself and
`rebuild`; `address` serves all.
"""

from .fuse import fuse
from .generate import generate_compute
from .ops import Call, CallAddress, MatrixProduct
from .words import lower_memory

__all__ = ["Call", "CallAddress", "MatrixProduct", "fuse", "generate_compute", "lower_memory"]
