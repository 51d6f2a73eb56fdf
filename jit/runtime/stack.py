"""How much of the stack the calls of a program may take in this process."""

from __future__ import annotations

import importlib.util
import threading
from typing import Final

UNKNOWN: Final = 1 << 20
"""The smallest stack that common systems give to a thread."""
UNLIMITED: Final = 2 << 20
"""What Linux gives to threads where the limit of the process is none."""
MOST: Final = 8 << 20


def stack_bytes() -> int:
    """Half of the smallest stack that a thread of this process has, by what is set now.

    The rest is for those who call us, and for what we call.
    """
    sizes = [MOST, _limit()]
    if threading.stack_size():
        sizes.append(threading.stack_size())
    return max(min(sizes) // 2, 1 << 16)


def _limit() -> int:
    """The stack that the system gives to a thread, where it can be asked."""
    if importlib.util.find_spec("resource") is None:
        return UNKNOWN
    resource = importlib.import_module("resource")
    limit: int = resource.getrlimit(resource.RLIMIT_STACK)[0]
    return UNLIMITED if limit == resource.RLIM_INFINITY else limit
