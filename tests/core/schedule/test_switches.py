"""What is disabled is not done, and what is unknown is an error."""

from __future__ import annotations

import pytest

from nnkit.core.errors import UnsupportedError
from nnkit.core.schedule.switches import SWITCHES, VARIABLE, is_enabled


def test_names_are_split_and_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert all(map(is_enabled, SWITCHES))
    monkeypatch.setenv(VARIABLE, " fuse,kernels, ")
    assert {name for name in SWITCHES if not is_enabled(name)} == {"fuse", "kernels"}
    monkeypatch.setenv(VARIABLE, "fuse,speed")
    with pytest.raises(UnsupportedError, match="NNKIT_DISABLE names speed; what it knows is hoist"):
        is_enabled("fuse")
