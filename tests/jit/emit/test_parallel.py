"""Parallel loops: jobs of the pool that compute what loops do, and that signals interrupt."""

from __future__ import annotations

import signal
import threading
from types import FrameType

import numpy as np
import pytest

from nnkit.core.evaluate import evaluate
from nnkit.core.text import parse_module
from nnkit.core.verify import verify
from nnkit.jit.ahead_of_time import find_target, write_library
from nnkit.jit.emit.program import emit_program
from nnkit.jit.emit.writer import ModuleWriter
from nnkit.jit.header import interface_of
from nnkit.jit.runtime.pool_code import RUN
from nnkit.jit.runtime.process import this_process

from .running import run
from .test_polls import Stopped, polling_everywhere

TEXT = """\
module "parallel"
stage schedule

func @f: (<6 x 37 x f32>, f32) -> (<6 x 37 x f32>, <5 x 11 x f32>) {
'entry(%x: <6 x 37 x f32>, %by: f32):
    %y, %z = kernel of %x: <6 x 37 x f32>, %by: f32 writing <6 x 37 x f32>, <5 x 11 x f32> into output 0, output 1 {
    'body(%a: *<6 x 37 x f32>, %b: *f32, %to0: *<6 x 37 x f32>, %to1: *<5 x 11 x f32>):
        %factor = loadAt %b: *f32 at ()
        %factors = loadAt %a: *<6 x 37 x f32> at (0, 1) lanes 4 steps (0, 1)
        loop from 0 upto 6 by 1 {
        'row(%i: i64):
            loop from 1 upto 37 by 4 parallel 2 {
            'column(%j: i64):
                %u = loadAt %a: *<6 x 37 x f32> at (d0, d1) lanes 4 steps (0, 1) of %i: i64, %j: i64
                %v = fma %u: <4 x f32>, %factor: f32, %factors: <4 x f32>
                storeAt %v: <4 x f32> to %to0: *<6 x 37 x f32> at (d0, d1) steps (0, 1) of %i: i64, %j: i64
                yield
            }
            %first = loadAt %a: *<6 x 37 x f32> at (d0, 0) of %i: i64
            storeAt %first: f32 to %to0: *<6 x 37 x f32> at (d0, 0) of %i: i64
            yield
        }
        loop from 0 upto 5 by 1 parallel 1 {
        'row(%r: i64):
            %own = allocateLocal <11 x f32>
            loop from 0 upto 11 by 1 {
            'column(%c: i64):
                %w = loadAt %a: *<6 x 37 x f32> at (d0, 3 * d1) of %r: i64, %c: i64
                storeAt %w: f32 to %own: *<11 x f32> at (d0) of %c: i64
                yield
            }
            loop from 0 upto 11 by 1 {
            'column(%d: i64):
                %e = loadAt %own: *<11 x f32> at (-1 * d0 + 10) of %d: i64
                %f = multiply %e: f32, %factor: f32
                storeAt %f: f32 to %to1: *<5 x 11 x f32> at (d0, d1) of %r: i64, %d: i64
                yield
            }
            yield
        }
        yield
    }
    return %y: <6 x 37 x f32>, %z: <5 x 11 x f32>
}
"""
"""Loops that read vectors, scalars, indices and buffers of outside, one in another loop, and one with its own buffer;
blocks that divide the iterations and such that do not."""


def test_they_compute_what_loops_do(monkeypatch: pytest.MonkeyPatch) -> None:
    module = parse_module(TEXT)
    verify(module)
    function = module.functions["f"]
    arrays = [np.random.default_rng(0).standard_normal((6, 37)).astype(np.float32), np.float32(0.7)]
    wanted = evaluate(module, "f", *arrays)
    assert isinstance(wanted, tuple)

    def check(jobs: int) -> None:
        writer = ModuleWriter()
        emit_program(writer, function, "kernel", process=this_process())
        assert writer.text().count(f"call void @{RUN}(") == jobs
        for _ in range(5):
            for made, one in zip(run(function, arrays), wanted, strict=True):
                np.testing.assert_array_equal(made, one)

    check(2)
    with polling_everywhere():
        check(2)
    monkeypatch.setenv("NNKIT_DISABLE", "threads")
    check(0)


def test_libraries_have_no_threads() -> None:
    module = parse_module(TEXT)
    assert RUN not in write_library(module, interface_of(module, ["f"]), find_target()).text


LONG = """\
module "parallel"
stage schedule

func @f: (<8 x 4 x f32>) -> <8 x 4 x f32> {
'entry(%x: <8 x 4 x f32>):
    %y = kernel of %x: <8 x 4 x f32> writing <8 x 4 x f32> into output 0 {
    'body(%a: *<8 x 4 x f32>, %to: *<8 x 4 x f32>):
        loop from 0 upto 10000000 by 1 {
        'again(%n: i64):
            loop from 0 upto 8 by 1 parallel 1 {
            'row(%i: i64):
                %u = loadAt %a: *<8 x 4 x f32> at (d0, 0) lanes 4 steps (0, 1) of %i: i64
                %v = loop from 0 upto 100000 by 1 carrying %u: <4 x f32> {
                'k(%k: i64, %s: <4 x f32>):
                    %t = fma %u: <4 x f32>, %u: <4 x f32>, %s: <4 x f32>
                    yield %t: <4 x f32>
                }
                storeAt %v: <4 x f32> to %to: *<8 x 4 x f32> at (d0, 0) steps (0, 1) of %i: i64
                yield
            }
            yield
        }
        yield
    }
    return %y: <8 x 4 x f32>
}
"""
"""Hours of work for all threads."""


def test_a_signal_ends_a_long_loop() -> None:
    assert threading.current_thread() is threading.main_thread()

    def stop(number: int, frame: FrameType | None) -> None:
        raise Stopped

    function = parse_module(LONG).functions["f"]
    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(Stopped):
            run(function, [np.ones((8, 4), np.float32)])
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
