"""Arithmetic on unevaluated sums of two floats: about twice the digits of one.

Each function takes and gives pairs (high, low) with |low| at most half a unit in the last place of high.  Their
relative errors are a few 2⁻¹⁰⁴ of doubles, with fma and without.  None knows infinities: where high
overflows, low is nan, and whoever adds the two takes care of it.

Source: Dekker 1971; Joldes, Muller & Popescu 2017, "Tight and rigorous error bounds for basic building blocks of
double-word arithmetic".
"""

from typing import TypeAlias

from ..writer import FunctionWriter, Register
from .floats import quick_two_sum, residual, two_product, two_sum

Pair: TypeAlias = tuple[Register, Register]


def add(w: FunctionWriter, x: Pair, y: Pair) -> Pair:
    """x + y, good to the digits of the greater: what cancels in the high parts is lost of the low ones."""
    total, error = two_sum(w, x[0], y[0])
    return quick_two_sum(w, total, w.fadd(error, w.fadd(x[1], y[1])))


def add_float(w: FunctionWriter, x: Pair, y: Register) -> Pair:
    """x + y for a float y."""
    total, error = two_sum(w, x[0], y)
    return quick_two_sum(w, total, w.fadd(error, x[1]))


def multiply(w: FunctionWriter, x: Pair, y: Pair) -> Pair:
    """x · y."""
    product, error = two_product(w, x[0], y[0])
    crossed = w.multiply_add(x[0], y[1], w.fmul(x[1], y[0]))
    return quick_two_sum(w, product, w.fadd(error, crossed))


def multiply_float(w: FunctionWriter, x: Pair, y: Register) -> Pair:
    """x · y for a float y."""
    product, error = two_product(w, x[0], y)
    return quick_two_sum(w, product, w.multiply_add(x[1], y, error))


def divide(w: FunctionWriter, x: Pair, y: Pair) -> Pair:
    """x / y."""
    quotient = w.fdiv(x[0], y[0])
    remainder = residual(w, x[0], quotient, y[0])
    remainder = w.fadd(remainder, w.multiply_add(w.fneg(quotient), y[1], x[1]))
    return quick_two_sum(w, quotient, w.fdiv(remainder, y[0]))


def negate(w: FunctionWriter, x: Pair) -> Pair:
    """-x."""
    return w.fneg(x[0]), w.fneg(x[1])


def select(w: FunctionWriter, condition: Register, x: Pair, y: Pair) -> Pair:
    """x where the condition holds, else y."""
    return w.select(condition, x[0], y[0]), w.select(condition, x[1], y[1])
