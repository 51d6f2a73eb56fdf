"""Fork handlers: forking waits until no thread traces or compiles.

A child has only the thread that forked: what another one holds is never released there, and what it was making stays
half made. So a fork waits until nobody stages or compiles, as that of Python waits for imports.
"""

from __future__ import annotations

import os
import threading
from typing import Final

from .staging.user_calls import staging_lock

COMPILING: Final = threading.RLock()
"""Held while a specialisation is compiled; never while one waits for `staging_lock`."""


def _before() -> None:
    staging_lock().__enter__()
    COMPILING.acquire()


def _after() -> None:
    COMPILING.release()
    staging_lock().__exit__(None, None, None)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after)
