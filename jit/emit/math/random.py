"""Threefry-2x32 with 20 rounds: random bits as a pure function of key and counter.

Source: Salmon, Moraes, Dror & Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3".
"""

from ....core.ops.random import PARITY, ROTATIONS, ROUNDS
from ..writer import FunctionWriter, Register, constant


def emit_threefry(w: FunctionWriter, key: Register, counter: Register) -> Register:
    """64 random bits. The high half of the operands and the result is word 0, the low half 1."""
    keys = _words(w, key)
    parity = w.xor(w.xor(*keys), constant(keys[0].type, PARITY))
    schedule = (*keys, parity)
    x, y = (w.add(word, part) for word, part in zip(_words(w, counter), keys, strict=True))
    for group in range(ROUNDS // len(ROTATIONS[0])):
        for rotation in ROTATIONS[group % len(ROTATIONS)]:
            x = w.add(x, y)
            rotated = w.intrinsic("fshl", y.type, [y, y, constant(y.type, rotation)])
            y = w.xor(rotated, x)
        x = w.add(x, schedule[(group + 1) % 3])
        y = w.add(y, w.add(schedule[(group + 2) % 3], constant(y.type, group + 1)))
    high = w.shl(w.zext(x, "i64"), constant(counter.type, 32))
    return w.or_(high, w.zext(y, "i64"))


def _words(w: FunctionWriter, x: Register) -> tuple[Register, Register]:
    return w.trunc(w.lshr(x, constant(x.type, 32)), "i32"), w.trunc(x, "i32")
