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
    l1_bytes: int = 32 * 1024
    l2_bytes: int = 1024 * 1024
    fma: bool = False
    """Whether it multiplies and adds in one instruction, with one rounding."""
    has_blas: bool = True
    """Whether matrix products may call a BLAS; without one they are loops."""
    has_lapack: bool = True
    """Whether functions of matrices may call a LAPACK; without one there are none."""

    def lanes(self, element_bytes: int) -> int:
        """How many elements of that size a vector register holds, at least one."""
        return max(1, self.vector_bytes // element_bytes)
