"""Stacks: their types."""

from __future__ import annotations

from nnkit.core.ops import CreateStack, DestroyStack, Pop, Push
from nnkit.core.types import STACK, PointerType

from .program_samples import EVERY_KIND, Refused, S, Typed

SAMPLES = [
    Typed(CreateStack(), (), (STACK,)),
    Typed(DestroyStack(), (STACK,), ()),
    *(Typed(Push(), (type, STACK), ()) for type in EVERY_KIND),
    *(Typed(Pop(type), (STACK,), (type,)) for type in EVERY_KIND),
]
ERRORS = [
    Refused(Push(), (STACK, S), "push takes a stack, not a f32"),
    Refused(Pop(S), (S,), "pop takes a stack, not a f32"),
    Refused(DestroyStack(), (PointerType(STACK),), "destroyStack takes a stack, not a *stack"),
]
