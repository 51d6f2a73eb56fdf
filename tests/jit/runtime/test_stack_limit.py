"""How deep compiled code may recurse in a thread."""

from __future__ import annotations

from nnkit.core.thread_stack import current_stack
from nnkit.jit.runtime.stack_limit import find_limit, stack_key


def test_the_limit_is_that_of_the_stack() -> None:
    here = current_stack()
    assert here is not None and stack_key() is not None
    assert find_limit() == here.limit
