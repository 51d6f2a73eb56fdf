"""Target triples: which are supported, and the LLVM features that each needs.

LLVM takes the second part of `x86_64-windows-msvc` for a vendor, knows no such system, and makes an ELF object.  So
what people leave out is put in, as clang does.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from ..core.lazy_dataclass import dataclass


@dataclass(frozen=True)
class Architecture:
    """What code may ask of any processor: LLVM's features besides its own, and whether `fma` is an instruction."""

    features: str
    fma: bool


ARCHITECTURES: Final[Mapping[str, Architecture]] = MappingProxyType(
    {
        "x86-64": Architecture("", fma=False),
        "aarch64": Architecture("", fma=True),
        "arm64": Architecture("", fma=True),
        "riscv64": Architecture("+m,+a,+f,+d,+c", fma=True),
    }
)
"""The architectures that code is made for, by LLVM's names.

Of riscv64 that is what Linux distributions ask for (RV64GC), so that floats are passed in registers (lp64d).
"""

SUPPORTED: Final = "x86_64, aarch64 and riscv64"

_VENDORS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "linux": "unknown", "freebsd": "unknown", "netbsd": "unknown", "openbsd": "unknown",
        "none": "unknown", "windows": "pc", "mingw": "w64",
        "macos": "apple", "macosx": "apple", "darwin": "apple", "ios": "apple",
    }
)  # fmt: skip
"""Operating systems, and the vendor that is meant when there is none."""


def normalized(triple: str) -> str:
    """`triple` with all parts: `aarch64-linux-gnu` is `aarch64-unknown-linux-gnu`."""
    architecture, *rest = triple.split("-")
    if rest and _system(rest[0]) in _VENDORS:
        rest.insert(0, _VENDORS[_system(rest[0])])
    if len(rest) > 1 and _system(rest[1]) == "mingw":
        rest[1:2] = ["windows", "gnu"]
    return "-".join([architecture, *rest])


def is_like(triple: str, other: str) -> bool:
    """Whether two triples name the same architecture and operating system."""
    return _kind(triple) == _kind(other)


def _kind(triple: str) -> tuple[str, str]:
    architecture, *rest = normalized(triple).split("-")
    names = {"amd64": "x86_64", "arm64": "aarch64"}
    return names.get(architecture, architecture), _system(rest[1]) if len(rest) > 1 else ""


def _system(part: str) -> str:
    """The name of an operating system without its version."""
    return part.rstrip("0123456789.")
