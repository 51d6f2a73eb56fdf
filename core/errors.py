"""Every error a user can meet, in three kinds.

1. Yours: the program or its input is wrong (`ShapeError`, `RankError`, `DTypeError`, `StagingError`,
   `DifferentiationError`, `IndexOutOfRangeError`, `RecursionDepthError`, `TrapError`, `CheckError`,
   `NonFiniteError`, `OutputError`, `DonationError`, `FuelError`, `ParseError`, `VerifyError`).
2. A known limit: `UnsupportedError`, which says what to do instead.
3. Our bug: `InternalError`, which asks for a report.

All derive from `NNKitError` and from the builtin a Python user expects.  The one warning, `PerformanceWarning`, is of
what is right and slow.
"""

from __future__ import annotations


class NNKitError(Exception):
    """Base of every error raised on purpose by NNKit."""


class ShapeError(NNKitError, ValueError):
    """Shapes that do not fit together.

    Example: `x @ w` with x f32[1, 784] and w f32[785, 10].
    Fix: transpose an operand, or check the number of features.
    """


class RankError(ShapeError):
    """A tensor of another rank than the one declared or needed.

    Example: `Tensor2D(np.zeros(3))`.  Fix: reshape, or declare the rank you have.
    """


class DTypeError(NNKitError, TypeError):
    """An element type that does not fit: nothing is promoted silently.

    Example: f32 + f64.  Fix: write the cast, `x.cast(f64)`.
    """


class StagingError(NNKitError, TypeError):
    """A staged function does something that cannot be staged.

    Example: `if x > 0:` on a Rep.  Fix: `select(x > 0, a, b)`.
    """


class DifferentiationError(NNKitError, ValueError):
    """A derivative that does not exist or is asked for wrongly.

    Example: the gradient with respect to an integer parameter.  Fix: leave it out of `wrt`.
    """


class IndexOutOfRangeError(NNKitError, IndexError):
    """An index outside its axis, found when the compiled program ran.

    Example: `take(x, i)` with i = 10 and 10 rows.  Fix: check the index, or pass `mode="clip"`.
    """


class RecursionDepthError(NNKitError, RecursionError):
    """A function that calls itself so deeply that the stack, or the evaluator's memory, would not hold it.

    Example: `sum_to(n)` as `n + sum_to(n - 1)` for n = 1_000_000.  Fix: end the recursion, or write it as a loop.
    """


class TrapError(NNKitError, RuntimeError):
    """A program that stopped itself, or did with memory what may not be done.

    Example: `trap`, or a load through a null pointer.  Fix: follow the notes to the instruction.
    """


class OutOfMemoryError(TrapError, MemoryError):
    """A program that needs more memory than there is.

    Example: the gradient of a loop of 2⁶⁰ iterations, which keeps something of each.  Fix: `checkpoint` what the loop
    does, or find what it converges to by `fixed_point`, whose gradient keeps nothing.
    """


class CheckError(NNKitError, AssertionError):
    """A condition that the program checks as it runs is false; the message is the one that the check was given.

    Example: `check(x.min() > 0.0, "x must be positive")`.  Fix: follow the line to the check, and the values to it.
    """


class NonFiniteError(NNKitError, FloatingPointError):
    """A NaN or an infinity that the program made from finite numbers, and returned: found by `debug_nans`.

    Example: the gradient of `sqrt(x)` at 0.  Fix: follow the line; keep the operand away from where the op, or its
    derivative, has no finite value.
    """


class OutputError(NNKitError, ValueError):
    """An array given as `out=` that results cannot be written to.

    Example: `f(x, out=y)` with y read-only or with gaps, `f(x, out=(y, y))`.  Fix: give an array of its own for each
    result, as `np.empty` makes them.
    """


class DonationError(NNKitError, RuntimeError):
    """A tensor that was donated to a call is used again, or is two arguments of that call.

    Example: `new = nk.donate(step, 0)(params)`, and `params` is read then.  Fix: use the result; donate a copy of what
    is needed later, `copy.deepcopy(params)`.
    """


class FuelError(NNKitError, RuntimeError):
    """A program that was not done after as many instructions as it was given.

    Example: `evaluate(module, "f", fuel=1000)` of an endless loop.  Fix: give it more, or end the loop.
    """


class ParseError(NNKitError, ValueError):
    """Text that is not IR: has the line, the column and what was expected.

    `errors` are all that were found, in the order of the text.
    """

    def __init__(self, *errors: str) -> None:
        super().__init__("\n".join(errors))
        self.errors = errors


class VerifyError(NNKitError, ValueError):
    """IR that breaks a rule of the language; lists every violation with its instruction."""


class UnsupportedError(NNKitError, NotImplementedError):
    """Something NNKit does not do (yet): the message says what to do instead."""


class InternalError(NNKitError, RuntimeError):
    """A bug of ours.  Please report it with the program that shows it."""


class PerformanceWarning(UserWarning):
    """What is right, and slower than it need be.

    Example: a staged function that reads `getattr(config, name)` of a computed name, and so may depend on all that is
    reached from `config`, which is looked at before each call.  Fix: write the name, or pass it as an argument.
    """
