"""Fixed points, x = f(x, a), differentiated by the implicit function theorem.

    dx = A dx + b            A = ∂f/∂x, b = ∂f/∂a · da        forward: dx is the fixed point of u ↦ A u + b
    ā = (∂f/∂a)ᵀ w           w = Aᵀ w + x̄                     in reverse: w is that of w ↦ Aᵀ w + x̄

Neither depends on how x was found, so that nothing of the iterations is kept.  Both are rules of the function that
iterates; the linear systems are functions of their own, u(x, a, b) and w(x, a, c), whose rules need these two again and
the derivatives of A alone: so derivatives of any order need three loops, whatever the order.

Source: Griewank & Walther 2008, Evaluating Derivatives, §15.2 (two-phase adjoints of fixed points).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Final

from .callables import StagedFunction
from .derivative_checks import has_floats
from .elementwise import abs as absolute
from .elementwise import maximum
from .functions import select, zeros_like
from .introspection import location_of, name_of
from .jacobian_products import jvp, vjp
from .rep_leaves import leaf_reps, with_leaves
from .reps import const, tup
from .staging import control_flow
from .staging.custom_rules import set_jvp, set_vjp
from .staging.primitive import dtype_error, located, staging_error
from .staging.rep import Rep
from .staging.spec import Spec, TensorSpec, is_tuple
from .staging.staged_functions import PythonFunction, mismatch
from .tensors import boolean, i32

MAX_ITERATIONS: Final = 1000
"""As many steps as halve an error from the largest to the smallest f64, 2¹⁰²³ to 2⁻¹⁰²², are 2,045: what has not
converged after half of these converges too slowly to be meant."""

ROUNDING: Final = 64
"""How many units in the last place of the largest number are no difference: what rounding of some ten operations may
leave going back and forth."""

HELP_OF_CAPTURES: Final = (
    "give it to f as an argument, which stands behind x0: `nk.fixed_point(lambda x, a: ..., x0, a)`"
)
"""What to write where f uses a value from around it."""

MOST_COUNTED: Final = (1 << 31) - 1
"""Iterations are counted in an i32."""


def fixed_point(
    f: Callable[..., Any],
    x0: Any,
    /,
    *args: Any,
    tolerance: float | None = None,
    max_iterations: int = MAX_ITERATIONS,
) -> Any:
    """The x with f(x, *args) = x, by x = x0, then x = f(x, *args) until it stays the same.

    That is until no element changes by more than `tolerance` times the largest that there was, by default 64 units in
    the last place.  What has not converged after `max_iterations` is NaN, and so are derivatives whose own iterations
    (of the transposed or not transposed Jacobian, to the same tolerance) have not: they converge as fast as f does.
    Derivatives are those of the equation, of any order and in both modes: they keep nothing of the iterations, and are
    zero by `x0`.  x is a tensor of floats, a struct, or a tuple of them; what derivatives are by stands in `args`, not
    in values from around f.
    Raises: StagingError, DTypeError or RankError when f returns another type than it takes.
    """
    values = [const(tup(*x0) if is_tuple(x0) else x0), *map(const, args)]
    if not all(has_floats(leaf.spec) for leaf in leaf_reps(values[0])):
        raise dtype_error(f"a fixed point is of floats, and x0 is a {values[0].spec.words}")
    _check_options(tolerance, max_iterations)
    found = _FixedPoint(f, is_tuple(x0), tolerance, max_iterations, values).solve(*values)
    return found.unpack() if is_tuple(x0) else found


def _check_options(tolerance: Any, max_iterations: Any) -> None:
    if tolerance is not None and not (isinstance(tolerance, int | float) and tolerance > 0):
        raise staging_error(f"tolerance={tolerance!r} is no positive number")
    if isinstance(max_iterations, bool) or not (
        isinstance(max_iterations, int) and 0 < max_iterations <= MOST_COUNTED
    ):
        raise staging_error(f"max_iterations={max_iterations!r} is no positive int of 32 bits")


class _FixedPoint:
    """The three functions for one f, and their rules."""

    def __init__(
        self,
        f: Callable[..., Any],
        takes_tuple: bool,
        tolerance: float | None,
        max_iterations: int,
        values: Sequence[Rep],
    ) -> None:
        self.f, self.takes_tuple = f, takes_tuple
        self.tolerance, self.max_iterations = tolerance, max_iterations
        self.name = name_of(f)
        self.count = len(values) - 1
        self.inputs = [f"a{k}" for k in range(self.count)]
        self.moving = tuple(k for k, one in enumerate(values) if has_floats(one.spec))
        self.step = self.function("", ["x", *self.inputs], self.called)

    def function(
        self, suffix: str, names: Sequence[str], body: Callable[..., Any]
    ) -> StagedFunction:
        types: tuple[Spec | None, ...] = (None,) * len(names)
        name = f"{self.name}{suffix}"
        return StagedFunction(
            PythonFunction(body, name, tuple(names), types, None, location_of(self.f))
        )

    def called(self, x: Rep, *a: Rep) -> Rep:
        """f, which returns what it takes."""
        returned = self.f(x.unpack() if self.takes_tuple else x, *a)
        made: object = tup(*returned) if is_tuple(returned) else returned
        if not isinstance(made, Rep):
            raise staging_error(f"{self.name} returns a {type(made).__name__}, not a Rep")
        if made.spec != x.spec:
            raise located(
                mismatch(x.spec, made.spec)(
                    f"{self.name} takes a {x.spec.words} and returns a {made.spec.words}: a fixed point is of one type"
                )
            )
        return made

    def iterate(self, step: Callable[[Rep], Rep], start: Rep) -> Rep:
        """`start`, then `step` of it, and so on."""
        leaves = leaf_reps(start)
        largest = tuple(absolute(leaf).max() for leaf in leaves)

        def test(carry: Any) -> Rep:
            _, _, moves, count = carry
            goes_on: Rep = moves & (count < self.max_iterations)
            return goes_on

        def body(carry: Any) -> Any:
            x, sizes, _, count = carry
            new = step(x)
            reached: list[Rep] = []
            moves: Rep | None = None
            for before, after, size in zip(leaf_reps(x), leaf_reps(new), sizes, strict=True):
                reached.append(maximum(size, absolute(after).max()))
                far = absolute(after - before).max() > reached[-1] * self.within(after.spec)
                moves = far if moves is None else moves | far
            return new, tuple(reached), moves, count + 1

        begin = (start, largest, const(boolean(True)), const(i32(0)))
        found, _, moves, _ = control_flow.while_loop(test, body, begin, what="fixed_point")
        return with_leaves(
            found.spec, [select(moves, float("nan"), leaf) for leaf in leaf_reps(found)]
        )

    def within(self, spec: Spec) -> float:
        assert isinstance(spec, TensorSpec)
        if self.tolerance is not None:
            return self.tolerance
        return ROUNDING * 2.0 ** (1 - spec.dtype.digits)

    @property
    def arguments(self) -> list[str]:
        return ["x", *self.inputs]

    @cached_property
    def solve(self) -> StagedFunction:
        """x of x0 and a."""
        n = self.count
        names = ["x0", *self.inputs]

        def solved(x0: Rep, *a: Rep) -> Rep:
            return self.iterate(lambda x: self.step(x, *a), x0)

        solve = self.function("_fixed_point", names, solved)
        by = tuple(k for k in self.moving if k > 0)

        def push(*given: Rep) -> Rep:
            a, da = given[1 : n + 1], given[n + 2 :]
            x: Rep = solve(given[0], *a)
            if not by:
                return _zeros(x)
            moved = jvp(of=self.step, wrt=by)(x, *a, *(da[k - 1] for k in by))[1]
            found: Rep = self.linear(x, *a, moved)
            return found

        def there(*given: Rep) -> Any:
            x = solve(*given)
            return x, (x, *given[1:])

        def back(saved: Rep, seed: Rep) -> Any:
            x, *a = saved.unpack()
            found: dict[int, Rep] = {}
            if by:
                w = self.transposed(x, *a, seed)
                found = _by_position(by, vjp(of=self.step, wrt=by)(x, *a, w))
            return _cotangents([x, *a], found)

        d = [f"d{name}" for name in names]
        set_jvp(solve.stageable, self.function("_fixed_point_jvp", [*names, *d], push).stageable)
        set_vjp(
            solve.stageable,
            self.function("_fixed_point_bwd", ["saved", "seed"], back).stageable,
            self.function("_fixed_point_fwd", names, there).stageable,
            help_of_captures=HELP_OF_CAPTURES,
        )
        return solve

    @cached_property
    def linear(self) -> StagedFunction:
        """u of x, a and b: u = A u + b."""
        names = [*self.arguments, "u"]

        def push(*given: Rep) -> Any:
            return jvp(of=self.step, wrt=0)(*given)[1]

        return self._system("_linear", self.function("_push", names, push), lambda: self.transposed)

    @cached_property
    def transposed(self) -> StagedFunction:
        """w of x, a and c: w = Aᵀ w + c."""
        names = [*self.arguments, "w"]

        def pull(*given: Rep) -> Any:
            return vjp(of=self.step, wrt=0)(*given)

        return self._system("_transposed", self.function("_pull", names, pull), lambda: self.linear)

    def _system(
        self, suffix: str, apply: StagedFunction, other: Callable[[], StagedFunction]
    ) -> StagedFunction:
        """The u with u = B(x, a) u + b, where `apply` gives B(x, a) u; `other` is the system of Bᵀ."""
        n = self.count
        names = [*self.arguments, "b"]

        def solved(*given: Rep) -> Rep:
            *point, b = given
            return self.iterate(lambda u: _sum(apply(*point, u), b), b)

        system = self.function(suffix, names, solved)
        by = self.moving  # x is of floats

        def push(*given: Rep) -> Rep:
            point, b = given[: n + 1], given[n + 1]
            moved, db = given[n + 2 : -1], given[-1]
            u = system(*point, b)
            turned = jvp(of=apply, wrt=by)(*point, u, *(moved[k] for k in by))[1]
            found: Rep = system(*point, _sum(db, turned))
            return found

        def there(*given: Rep) -> Any:
            u = system(*given)
            return u, (*given[:-1], u)

        def back(saved: Rep, seed: Rep) -> Any:
            *point, u = saved.unpack()
            w = other()(*point, seed)
            found = _by_position(by, vjp(of=apply, wrt=by)(*point, u, w))
            return (*_cotangents(point, found), w)

        d = [f"d{name}" for name in names]
        set_jvp(system.stageable, self.function(f"{suffix}_jvp", [*names, *d], push).stageable)
        set_vjp(
            system.stageable,
            self.function(f"{suffix}_bwd", ["saved", "seed"], back).stageable,
            self.function(f"{suffix}_fwd", names, there).stageable,
        )
        return system


def _by_position(positions: Sequence[int], found: Rep) -> dict[int, Rep]:
    return dict(zip(positions, found.unpack(), strict=True))


def _cotangents(like: Sequence[Rep], found: dict[int, Rep]) -> tuple[Rep, ...]:
    return tuple(found[k] if k in found else _zeros(one) for k, one in enumerate(like))


def _zeros(rep: Rep) -> Rep:
    return with_leaves(rep.spec, [zeros_like(leaf) for leaf in leaf_reps(rep)])


def _sum(one: Rep, other: Rep) -> Rep:
    pairs = zip(leaf_reps(one), leaf_reps(other), strict=True)
    return with_leaves(one.spec, [x + y for x, y in pairs])
