"""Programs as text for the tests of this folder."""

from __future__ import annotations

from typing import Final

IN_MEMORY: Final = """
func @polynomial: (f64, f64) -> f64 {
'entry(%x: f64, %y: f64):
    %one = literal 1: i64
    %h = allocateHeap f64 count %one: i64
    %p = allocateStack f64 count 1
    store %x: f64 to %p: *f64
    %a = load %p: *f64
    %b = multiply %a: f64, %y: f64
    store %b: f64 to %h: *f64
    %c = load %h: *f64
    %d = multiply %c: f64, %a: f64
    store %d: f64 to %p: *f64
    %e = load %p: *f64
    deallocate %h: *f64
    return %e: f64
}
[gradient @polynomial wrt 0, 1]
func @slopes: (f64, f64) -> (f64, f64)
"""
