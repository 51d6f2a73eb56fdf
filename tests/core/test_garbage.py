"""Garbage is left while programs are compiled, and looked for again afterwards."""

import gc

import pytest

from nnkit.core.driver.stages import advance
from nnkit.core.errors import InternalError
from nnkit.core.garbage import garbage_left
from nnkit.core.ir import Module, Stage


def test_garbage_is_looked_for_again_whatever_happens() -> None:
    assert gc.isenabled()
    with pytest.raises(InternalError), garbage_left():
        assert not gc.isenabled()
        raise InternalError("in a pass")
    assert gc.isenabled()


def test_who_has_switched_it_off_finds_it_off() -> None:
    gc.disable()
    try:
        with garbage_left():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_passes_run_without_looks_for_garbage() -> None:
    seen: list[bool] = []
    advance(Module(), Stage.OPTIMIZED, run=lambda module, passes: seen.append(gc.isenabled()))
    assert seen and not any(seen) and gc.isenabled()
