"""What LLVM knows of a CPU by name: whether there is one, and how wide its vectors are.

LLVM ends the process for a CPU that is none of 64 bits, ignores a name it does not know, and has no way to ask for the
width of vectors.  So a process of its own compiles a sum of vectors, and the assembly tells.
"""

from __future__ import annotations

import difflib
import subprocess
import sys
from typing import Final

from ..core.errors import UnsupportedError

_PROBE: Final = """
import sys
from llvmlite import binding
binding.initialize_all_targets()
binding.initialize_all_asmprinters()
triple, cpu, text = sys.argv[1:]
machine = binding.Target.from_triple(triple).create_target_machine(cpu=cpu)
print(machine.emit_assembly(binding.parse_assembly(text)))
"""

_SUM: Final = """
define void @f(ptr %p) {
  %x = load <16 x float>, ptr %p
  %y = fadd <16 x float> %x, %x
  store <16 x float> %y, ptr %p
  ret void
}
"""


def vector_bytes(triple: str, cpu: str) -> int:
    """The width of the vectors of a CPU: 64, 32 or 16.

    Raises: UnsupportedError when LLVM does not know the CPU, or it has no 64 bits.
    """
    found = _probe(triple, cpu)
    if found.returncode or "not a recognized processor" in found.stderr:
        near = difflib.get_close_matches(cpu, _names(triple), n=2)
        meant = f"; did you mean {' or '.join(near)}?" if near else ""
        raise UnsupportedError(f"LLVM has no CPU {cpu!r} for {triple}{meant}")
    return 64 if "%zmm" in found.stdout else 32 if "%ymm" in found.stdout else 16


def _names(triple: str) -> list[str]:
    """The names of CPUs, as LLVM lists them."""
    listed = _probe(triple, "help").stderr.partition("Available features")[0]
    return [line.split()[0] for line in listed.splitlines() if " - " in line]


def _probe(triple: str, cpu: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", _PROBE, triple, cpu, _SUM]
    return subprocess.run(command, capture_output=True, text=True, check=False)
