"""When Python looks for garbage: not while programs are read and compiled, of which nearly all that is made stays.

Each look at the oldest objects walks through the whole program, and there are more of them the more is made: a fifth of
the time to compile 240 unrolled steps.
"""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def garbage_left() -> Generator[None]:
    """Without looks for garbage in between.

    If several threads do so at a time, garbage is looked for from when the first of them is done.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
