"""Queries LLVM's tables for a named CPU: whether it exists, its vector width, whether it has fma.

LLVM ends the process for a CPU that is none of 64 bits, ignores a name it does not know, and has no way to ask for the
width of vectors.  So a process of its own compiles a sum of vectors and a fused multiply-add, and the assembly tells.
"""

from __future__ import annotations

import difflib
import subprocess
import sys
from typing import Final

from ..core.errors import UnsupportedError
from ..core.lazy_dataclass import dataclass
from .emit.values import XMM_BYTES, YMM_BYTES, ZMM_BYTES

_PROBE: Final = """
import sys
from llvmlite import binding
binding.initialize_all_targets()
binding.initialize_all_asmprinters()
triple, cpu, features, text = sys.argv[1:]
machine = binding.Target.from_triple(triple).create_target_machine(cpu=cpu, features=features)
print(machine.emit_assembly(binding.parse_assembly(text)))
"""

_USES: Final = """
define void @f(ptr %p) {
  %x = load <16 x float>, ptr %p
  %y = fadd <16 x float> %x, %x
  store <16 x float> %y, ptr %p
  ret void
}
declare float @llvm.fma.f32(float, float, float)
define float @g(float %x, float %y, float %z) {
  %r = call float @llvm.fma.f32(float %x, float %y, float %z)
  ret float %r
}
"""


@dataclass(frozen=True)
class CPUFeatures:
    """The features of a CPU that code generation depends on."""

    vector_bytes: int
    """The width of vectors."""
    fma: bool
    """Whether x · y + z with one rounding is an instruction, not a call of the C library."""


def find_cpu_features(triple: str, cpu: str, features: str) -> CPUFeatures:
    """The features of a CPU, with `features` beyond those that its name implies.

    Raises: UnsupportedError when LLVM does not know the CPU, or it has no 64 bits.
    """
    found = _probe(triple, cpu, features)
    if found.returncode or "not a recognized processor" in found.stderr:
        near = difflib.get_close_matches(cpu, _names(triple), n=2)
        meant = f"; did you mean {' or '.join(near)}?" if near else ""
        raise UnsupportedError(f"LLVM has no CPU {cpu!r} for {triple}{meant}")
    width = (
        ZMM_BYTES if "%zmm" in found.stdout else YMM_BYTES if "%ymm" in found.stdout else XMM_BYTES
    )
    return CPUFeatures(width, fma="fmaf" not in found.stdout)


def _names(triple: str) -> list[str]:
    """The names of CPUs, as LLVM lists them."""
    listed = _probe(triple, "help", "").stderr.partition("Available features")[0]
    return [line.split()[0] for line in listed.splitlines() if " - " in line]


def _probe(triple: str, cpu: str, features: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", _PROBE, triple, cpu, features, _USES]
    return subprocess.run(command, capture_output=True, text=True, check=False)
