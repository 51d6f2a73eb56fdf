"""The scheduling target: machine parameters of the cost model."""

from __future__ import annotations

from ..lazy_dataclass import dataclass


@dataclass(frozen=True)
class Target:
    """A machine, as far as scheduling asks.  The defaults suit any 64-bit machine with 256-bit vectors.

    Units: sizes in bytes.
    """

    vector_bytes: int = 32
    """Width of a vector register; the width of one element turns vectors off."""
    registers: int = 16
    """Number of vector registers."""
    cores: int = 1
    threads: int = 1
    """How many run a parallel loop at most, which each have a place to work in."""
    l1_bytes: int = 32 * 1024
    l2_bytes: int = 1024 * 1024
    """Caches of a core, as far as the order of sums depends on them: they are no machine's, so that numbers depend on
    the width of vectors and not on who computes them."""
    own_l1_bytes: int = 0
    own_l2_bytes: int = 0
    """What to plan with of the machine's own caches, where no number depends on it: what is packed and fetched, and in
    which blocks.  Where it is 0, the two above count."""
    fma: bool = False
    """Whether it multiplies and adds in one instruction, with one rounding."""
    has_lapack: bool = True
    """Whether functions of matrices may call a LAPACK; without one there are none."""

    @property
    def near_l1_bytes(self) -> int:
        """Of the first cache, for what no number depends on."""
        return self.own_l1_bytes or self.l1_bytes

    @property
    def near_l2_bytes(self) -> int:
        """Of the second cache, the same."""
        return self.own_l2_bytes or self.l2_bytes

    def lanes(self, element_bytes: int) -> int:
        """How many elements of that size a vector register holds, at least one."""
        return max(1, self.vector_bytes // element_bytes)
