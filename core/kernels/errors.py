"""The error of a rewrite that would change what a kernel computes."""

from __future__ import annotations

from ..errors import NNKitError


class IllegalRewrite(NNKitError, ValueError):
    """A rewrite of a kernel that its legality test refuses; the kernel is as it was.

    Example: `vectorise` of a loop whose iterations read what others write.
    Fix: choose another rewrite; the message says which accesses, or which values, are in the way.
    """
