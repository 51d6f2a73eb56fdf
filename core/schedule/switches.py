"""Switches for what makes programs fast: `NNKIT_DISABLE=kernels,fuse` compiles without.

Results stay right with any of them off; how much slower programs are says what each is good for
(docs/performance.md).  The variable is read whenever a function is compiled.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from ..errors import UnsupportedError

VARIABLE: Final = "NNKIT_DISABLE"

SWITCHES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "hoist": "what is the same in all rounds of a loop is computed before it, with the products of rows known then",
        "interleave": "what a loop stacks at many places lies side by side, round by round",
        "fuse": "nests are fused with each other",
        "collapse": "axes that every tensor walks through as one are one",
        "groups": "nests over the same rows share the loop over them",
        "blocks": "nests over the same rows of large tensors go together block by block",
        "contract": "what only such nests touch has room for one block",
        "long-rows": "rows that are too long for that are split",
        "fma": "products are one instruction with their sum, and compared with zero where that matters",
        "wide": "vectors are several registers where much is computed of an element",
        "jam": "sums along rows that all read one large tensor go side by side",
        "turn": "what is read the other way round is turned by squares, a few rows at a time",
        "cuts": "loops of kernels are cut where masks change",
        "kernels": "matrix products are tiles of registers, and not nests",
        "epilogues": "what follows a product is computed in its loops",
        "distribute": "what takes long behind a product is computed of sums that are stored, row by row",
        "prologues": "what makes an operand of a product is computed where that is packed",
        "threads": "parallel loops run on several threads",
        "one-hot": "sums of which one element counts, at an index that is read, read that alone",
        "rows": "nests over the same rows are one kernel, which visits each row once",
        "row-blocks": "products and the nests over their rows go together by blocks of rows",
        "prefetch": "rows are fetched to the nearest cache before they are needed",
        "stream": "large results that take little to compute, or are filled column by column, go past the caches",
        "packing": "large operands of products are copied side by side",
        "unroll": "several steps of the sums of products are written one after the other",
        "merge": "small kernels that follow each other are one, with what is between them in registers",
        "in-place": "results lie where operands lay that nobody reads any more",
        "moves": "what a loop carries on as it is moves with its buffer, and is not copied",
        "idle-outputs": "outputs hold other values, as long as their own have not been made",
        "parts": "long functions are compiled in parts",
    }
)
"""What can be disabled, by name."""


def is_enabled(name: str) -> bool:
    """Whether a switch is on, as all are unless the environment says otherwise.

    Raises: UnsupportedError when the variable names something that is no switch.
    """
    assert name in SWITCHES
    text = os.environ.get(VARIABLE, "")
    names = {word.strip() for word in text.split(",")} - {""}
    if unknown := sorted(names - SWITCHES.keys()):
        known = ", ".join(SWITCHES)
        raise UnsupportedError(f"{VARIABLE} names {', '.join(unknown)}; what it knows is {known}")
    return name not in names
