"""Stage compute: tensor ops become loop nests, and nests that belong together become one.

Read `generate`, `ops` (the one library op of this stage), then `fuse` with `scalars`, `lift`, `cluster`,
`survey` and `cost`.
"""

from .fuse import fuse
from .generate import generate_compute
from .ops import MatrixProduct

__all__ = ["MatrixProduct", "fuse", "generate_compute"]
