"""Types in messages: users of the typed language read `f32[2, 3]`, those who write IR `<2 x 3 x f32>`.

The compiler's messages name tensor types as the language does (`TensorType.words`), as most of its users never see
the IR.  What parser, verifier and tools say of a text has the spelling of the text.
"""

from __future__ import annotations

import re

from ..types import DTYPES, TensorType

_WORDS = re.compile(rf"(?<![\w.@%$#'])({'|'.join(DTYPES)})\[((?:\d+(?:, \d+)*)?)\]")


def in_text_form(message: str) -> str:
    """`message` with its tensor types as the text form has them."""
    return _WORDS.sub(_written, message)


def _written(found: re.Match[str]) -> str:
    dtype, extents = found.groups()
    shape = tuple(int(extent) for extent in extents.split(", ") if extent)
    return str(TensorType(shape, DTYPES[dtype]))
