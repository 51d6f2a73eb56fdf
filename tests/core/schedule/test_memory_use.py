"""What a call takes is counted once, with what it calls, and said to be more where only the run can tell."""

from __future__ import annotations

import pytest

from nnkit.core.compute.fuse import fuse
from nnkit.core.compute.generate import generate_compute
from nnkit.core.driver.stages import advance
from nnkit.core.schedule.memory_use import MemoryStats, memory_use
from nnkit.core.schedule.plan import schedule
from nnkit.core.schedule.target import Target
from nnkit.core.stage import Stage
from nnkit.core.text import parse_module

TEXTS = {
    "scans": """
module "m"
stage raw
func @main: (<50 x f64>) -> <50 x f64> {
'entry(%x: <50 x f64>):
    %0 = scan %x: <50 x f64> by add along 0
    %1 = scan %0: <50 x f64> by max along 0
    %2 = scan %1: <50 x f64> by add along 0
    return %2: <50 x f64>
}""",
    "read again": """
module "m"
stage raw
func @main: (<50 x f64>) -> <50 x f64> {
'entry(%x: <50 x f64>):
    %0 = scan %x: <50 x f64> by add along 0
    %1 = scan %0: <50 x f64> by max along 0
    %2 = scan %1: <50 x f64> by add along 0
    %3 = multiply %2: <50 x f64>, %0: <50 x f64>
    %4 = multiply %3: <50 x f64>, %1: <50 x f64>
    return %4: <50 x f64>
}""",
    "donated": """
module "m"
stage raw
!donated_0_0
func @main: (<50 x f64>) -> <50 x f64> {
'entry(%x: <50 x f64>):
    %0 = add %x: <50 x f64>, %x: <50 x f64>
    return %0: <50 x f64>
}""",
    "recursion": """
module "m"
stage raw
func @down: (<50 x f64>, i64) -> <50 x f64> {
'entry(%x: <50 x f64>, %n: i64):
    %0 = greaterThan %n: i64, 0: i64
    conditional %0: bool then 'more() else 'done()
'more():
    %1 = scan %x: <50 x f64> by add along 0
    %2 = subtract %n: i64, 1: i64
    %3 = apply @down(%1, %2): (<50 x f64>, i64) -> <50 x f64>
    return %3: <50 x f64>
'done():
    return %x: <50 x f64>
}
func @main: (<50 x f64>, i64) -> <50 x f64> {
'entry(%x: <50 x f64>, %n: i64):
    %0 = apply @down(%x, %n): (<50 x f64>, i64) -> <50 x f64>
    %1 = scan %0: <50 x f64> by add along 0
    return %1: <50 x f64>
}""",
}
WANTED = {
    "scans": MemoryStats(400, 400, 0, 0, True),
    "read again": MemoryStats(400, 400, 0, 896, True),
    "donated": MemoryStats(400, 400, 400, 0, True),
    "recursion": MemoryStats(408, 400, 0, 448, False),
}


@pytest.mark.parametrize("name", TEXTS)
def test_what_a_call_takes(name: str) -> None:
    module = parse_module(TEXTS[name])
    advance(module, Stage.OPTIMIZED, "main", target=Target())
    generate_compute(module)
    fuse(module)
    schedule(module, Target())
    assert memory_use(module, module.functions["main"]) == WANTED[name]
