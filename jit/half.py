"""Conversions from and to f16, for code of machines that have no instructions for them.

LLVM then calls `__extendhfsf2`, `__truncsfhf2` and `__truncdfhf2` of the compiler's library, which gcc has from version
12 on for x86_64 and from 13 on for riscv64.  So that code needs the C library alone, it brings these functions along.
They round once, to the nearest, ties to even, and make NaNs quiet, as the instructions do.

We write no conversion of f64 to f16, but where LLVM sees that an f64 is an f32's value, it makes one of the two
conversions; CPUs with f16c alone, without AVX-512, have an instruction for f32 only.
"""

from __future__ import annotations

from functools import lru_cache
from types import MappingProxyType
from typing import Final

from llvmlite import binding

_EXTEND: Final = """
define float @__extendhfsf2(half %x) nounwind {
  %bits = bitcast half %x to i16
  %word = zext i16 %bits to i32
  %minus = and i32 %word, 32768
  %sign = shl i32 %minus, 16
  %size = and i32 %word, 32767
  %moved = shl i32 %size, 13
  %normal = add i32 %moved, 939524096  ; the exponent's bias is 127 instead of 15
  %count = uitofp i32 %size to float
  %scaled = fmul float %count, 0x3E70000000000000  ; 2^-24, the least subnormal
  %subnormal = bitcast float %scaled to i32
  %infinite = or i32 %moved, 2139095040
  %quiet = or i32 %infinite, 4194304
  %is.nan = icmp ugt i32 %size, 31744
  %special = select i1 %is.nan, i32 %quiet, i32 %infinite
  %is.special = icmp uge i32 %size, 31744
  %is.subnormal = icmp ult i32 %size, 1024
  %finite = select i1 %is.subnormal, i32 %subnormal, i32 %normal
  %found = select i1 %is.special, i32 %special, i32 %finite
  %signed = or i32 %found, %sign
  %result = bitcast i32 %signed to float
  ret float %result
}
"""

_TRUNCATE: Final = """
define half @__truncsfhf2(float %x) nounwind {
  %bits = bitcast float %x to i32
  %high = lshr i32 %bits, 16
  %sign = and i32 %high, 32768
  %size = and i32 %bits, 2147483647
  %rebiased = sub i32 %size, 939524096
  %kept = lshr i32 %rebiased, 13
  %odd = and i32 %kept, 1
  %half = add i32 %odd, 4095
  %rounded = add i32 %rebiased, %half
  %normal = lshr i32 %rounded, 13  ; 65520 and more become infinite by their carry
  %positive = bitcast i32 %size to float
  %lowered = fadd float %positive, 5.000000e-01  ; whose last digit is that of the least subnormal
  %digits = bitcast float %lowered to i32
  %subnormal = sub i32 %digits, 1056964608
  %payload = lshr i32 %size, 13
  %cut = and i32 %payload, 1023
  %nan = or i32 %cut, 32256
  %is.nan = icmp ugt i32 %size, 2139095040
  %special = select i1 %is.nan, i32 %nan, i32 31744
  %is.special = icmp uge i32 %size, 1199570944
  %is.subnormal = icmp ult i32 %size, 947912704
  %finite = select i1 %is.subnormal, i32 %subnormal, i32 %normal
  %found = select i1 %is.special, i32 %special, i32 %finite
  %signed = or i32 %found, %sign
  %short = trunc i32 %signed to i16
  %result = bitcast i16 %short to half
  ret half %result
}
"""

# What an f32 cannot hold becomes its neighbor with an odd last digit: no tie, and on the same side of every f16.
_TRUNCATE_DOUBLE: Final = """
define half @__truncdfhf2(double %x) nounwind {
  %near = fptrunc double %x to float
  %back = fpext float %near to double
  %lost = fcmp one double %back, %x
  %bits = bitcast float %near to i32
  %is.odd = trunc i32 %bits to i1
  %is.even = xor i1 %is.odd, true
  %moves = and i1 %lost, %is.even
  %back.bits = bitcast double %back to i64
  %x.bits = bitcast double %x to i64
  %below = icmp ult i64 %back.bits, %x.bits  ; of their sizes, as both have one sign
  %step = select i1 %below, i32 1, i32 -1
  %stepped = add i32 %bits, %step
  %odd = select i1 %moves, i32 %stepped, i32 %bits
  %word = bitcast i32 %odd to float
  %result = fptrunc float %word to half
  ret half %result
}
"""

CONVERSIONS: Final = MappingProxyType(
    {
        "__extendhfsf2": _EXTEND,
        "__truncsfhf2": _TRUNCATE,
        "__truncdfhf2": _TRUNCATE_DOUBLE,
    }
)
"""The functions by name, as LLVM IR."""

_PROBE: Final = """
define float @extend(half %x) {
  %y = fpext half %x to float
  ret float %y
}

define half @truncate(float %x) {
  %y = fptrunc float %x to half
  ret half %y
}

define half @truncate_double(double %x) {
  %y = fptrunc double %x to half
  ret half %y
}
"""


def conversions_for(text: str, machine: binding.TargetMachine) -> str:
    """The functions that LLVM may call from the code of `text`; nothing where the machine has instructions."""
    return missing_conversions(machine) if "half" in text else ""


@lru_cache(
    maxsize=1
)  # finding out takes about a millisecond, and a process compiles for one machine at a time
def missing_conversions(machine: binding.TargetMachine) -> str:
    """The functions that `machine` has no instructions for."""
    probe = binding.parse_assembly(_PROBE, binding.create_context())
    try:
        code = machine.emit_object(probe)
    finally:
        probe.close()
    return "".join(text for name, text in CONVERSIONS.items() if name.encode() in code)
