"""Compares derivatives with finite differences, element by element, in both modes and of several orders."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from .callables import StagedFunction, check_staged
from .core.errors import DifferentiationError
from .core.lazy_dataclass import dataclass
from .core.types import Array, DType
from .derivative_checks import has_floats
from .finite_differences import SlopeEstimate, difference
from .jacobian_products import jvp, vjp
from .rep_leaves import leaf_reps
from .reps import const, tup
from .staging.primitive import differentiation_error, located
from .staging.rep import Rep
from .staging.spec import is_tuple
from .structs import Struct, assemble, fields
from .tensors import AnyTensor, wrap
from .wrappers import wrapper_of

CheckedMode: TypeAlias = Literal["forward", "reverse"]

MOST_ELEMENTS: Final = 64
"""Elements of a tensor that are moved one by one; of larger ones so many, drawn at random, and all at once along a
random direction.  A difference takes 13 calls, of some microseconds each."""

ADJOINT: Final = 64
"""How many units in the last place ⟨u, J v⟩ and ⟨Jᵀ u, v⟩ may differ, for each of the numbers that are added up: they
are rounded in another order."""

JUMP: Final = 16
"""A difference whose error is more than this part of it is of something that is not smooth: across a jump of height d
differences for h and h/2 are d/2h and d/h, which the estimate takes for an error of a sixth."""


def check_gradients(
    of: StagedFunction,
    /,
    *arguments: Any,
    order: int = 2,
    modes: Sequence[CheckedMode] = ("forward", "reverse"),
    **statics: Any,
) -> None:
    """Compare derivatives of `of` at these arguments with finite differences, by every parameter with floats.

    Of all orders up to `order`, each by forward and reverse mode (`modes`) of what the modes made of the order before.
    Every element is moved by itself (of large tensors some), by steps for its element type; the tolerance is what the
    differences may be off, by their own estimate and by rounding.  With both modes, ⟨u, J v⟩ = ⟨Jᵀ u, v⟩ is checked,
    too.  `statics` are values of static parameters.  Nothing is returned.
    Raises: DifferentiationError for the first derivative that differs, with the parameter, the element, the mode, the
        order, both numbers and likely reasons: a kink at this very point, say, or a rule that is not the derivative.
    """
    check_staged(of, "check_gradients")
    _check_options(order, modes)
    of, data = of.of_call(arguments, statics)
    values = of._values(data)
    checked = _floats_of(of)
    if not any(leaf.is_float for value in values for leaf in _leaves(value)):
        raise differentiation_error(
            f"no argument of {of.stageable.name} has floats: there is nothing to check"
        )
    work: list[tuple[StagedFunction, tuple[CheckedMode, ...]]] = [(checked, ())]
    while work:
        function, taken = work.pop(0)
        check = _Check(of, function, values, taken, modes)
        check.run()
        if len(taken) + 1 < order:
            for mode in modes:
                again: tuple[CheckedMode, ...] = (mode, *taken)
                work.append((check.derivative(mode), again))


def _check_options(order: Any, modes: Any) -> None:
    if isinstance(order, bool) or not isinstance(order, int) or order < 1:
        raise differentiation_error(f"order={order!r} is no order of a derivative: 1, 2, …")
    if not modes or isinstance(modes, str) or set(modes) - {"forward", "reverse"}:
        raise differentiation_error(f'modes={modes!r}: it takes some of ("forward", "reverse")')


@dataclass(frozen=True)
class _Leaf:
    """A tensor inside of a value, with the path to it."""

    path: str
    tensor: AnyTensor

    @property
    def dtype(self) -> DType:
        return self.tensor.dtype.core

    @property
    def is_float(self) -> bool:
        return self.dtype.is_float

    @property
    def array(self) -> Array:
        return np.asarray(self.tensor, np.float64)


class _Check:
    """One function, which is a derivative of the order `len(taken)` of `of`, by both modes."""

    def __init__(
        self,
        of: StagedFunction,
        function: StagedFunction,
        values: list[Any],
        taken: tuple[CheckedMode, ...],
        modes: Sequence[CheckedMode],
    ) -> None:
        self.of, self.function, self.values = of, function, values
        self.taken, self.modes = taken, modes
        self.wrt = tuple(
            k for k, value in enumerate(values) if any(leaf.is_float for leaf in _leaves(value))
        )
        # fixed, so that a failure comes again; another one for each derivative, so that none hides behind another
        self.random = np.random.default_rng(len(taken) + 2 * taken.count("forward"))
        self.direction = [self._random_like(values[k]) for k in self.wrt]
        self.before = [np.asarray(one, np.float64) for one in function(*values)]
        self.seed = tuple(self._random_like(one) for one in function(*values))

    def derivative(self, mode: CheckedMode) -> StagedFunction:
        """The derivative along the direction, or of the seed, as a function of the same arguments."""
        if mode == "forward":
            pushed = jvp(of=self.function, wrt=self.wrt)
            given = self.direction

            def along(*xs: Rep) -> Any:
                return pushed(*xs, *map(const, given)).unpack()[1]

            return wrapper_of(self.of, along)
        pulled, seed = vjp(of=self.function, wrt=self.wrt), self.seed

        def back(*xs: Rep) -> Any:
            return pulled(*xs, tup(*map(const, seed)))

        return _floats_of(wrapper_of(self.of, back))

    def run(self) -> None:
        """Raises: DifferentiationError for a derivative that differs."""
        if "forward" in self.modes:
            self.pushed = jvp(of=self.function, wrt=self.wrt)
        if "reverse" in self.modes:
            pulled = vjp(of=self.function, wrt=self.wrt)(*self.values, self.seed)
            self.cotangents = [leaf.array for one in pulled for leaf in _leaves(one)]
        number = 0
        for position, k in enumerate(self.wrt):
            for index, leaf in enumerate(_leaves(self.values[k])):
                if leaf.is_float:
                    self._leaf(position, index, number)
                number += 1
        if len(self.modes) == 2:
            self._adjoint()

    def _leaf(self, position: int, index: int, number: int) -> None:
        """One tensor among the parameters, whose cotangent has a number."""
        leaf = _leaves(self.values[self.wrt[position]])[index]
        for element, direction in self._directions(leaf):
            found = difference(
                partial(self._moved, position, index, direction),
                float(np.max(np.abs(leaf.array[direction != 0]), initial=0.0)),
                _epsilon(leaf.dtype),
            )
            place = f"{self._name(position)}{leaf.path}{element}"
            if "forward" in self.modes:
                self._forward(place, position, index, direction, found)
            if "reverse" in self.modes:
                slope = float(np.sum(self.cotangents[number] * direction))
                self._compare("reverse", place, "", slope, _seeded(found, self._seed()))

    def _directions(self, leaf: _Leaf) -> Iterator[tuple[str, Array]]:
        shape, size = leaf.array.shape, leaf.array.size
        chosen: Sequence[int] = range(size)
        if size > MOST_ELEMENTS:
            chosen = sorted(self.random.choice(size, MOST_ELEMENTS, replace=False))
            yield " along a random direction", _rounded(self.random.uniform(-1, 1, shape), leaf)
        for flat in chosen:
            unit = np.zeros(shape)
            at = np.unravel_index(flat, shape)
            unit[at] = 1.0
            yield _index(at), unit

    def _moved(self, position: int, index: int, direction: Array, step: float) -> Array:
        """All results, one after the other, with one tensor moved, as far as its element type can."""
        k = self.wrt[position]
        leaf = _leaves(self.values[k])[index]
        moved = leaf.array + step * direction
        values = list(self.values)
        values[k] = _replaced(values[k], index, leaf.dtype.store(moved))
        return _flat(self.function(*values))

    def _forward(
        self, place: str, position: int, index: int, direction: Array, found: SlopeEstimate
    ) -> None:
        tangents = [_zero_like(self.values[k]) for k in self.wrt]
        leaf = _leaves(self.values[self.wrt[position]])[index]
        tangents[position] = _replaced(tangents[position], index, leaf.dtype.store(direction))
        _, moved = self.pushed(*self.values, *tangents)
        start = 0
        for number, tangent in enumerate(np.asarray(one, np.float64) for one in moved):
            for flat, value in enumerate(tangent.reshape(-1)):
                which = f"result {number}" if len(moved) > 1 else "the result"
                at = _index(np.unravel_index(flat, tangent.shape))
                part = _element(found, start + flat)
                self._compare("forward", place, f" of {which}{at}", float(value), part)
            start += tangent.size

    def _compare(
        self, mode: CheckedMode, place: str, what: str, derivative: float, found: SlopeEstimate
    ) -> None:
        slope, error = float(found.slope), float(found.error)
        epsilon = max(_epsilon(one.dtype.core) for one in self.seed)
        tolerance = 4 * error + 64 * epsilon * abs(derivative)
        if abs(derivative - slope) <= tolerance:
            return
        if np.isnan(derivative) and np.isnan(slope):
            return
        order = len(self.taken) + 1
        shown = " of ".join((mode, *self.taken))
        raise self._error(
            f"the derivative{what} by {place} is {derivative:.7g} and by differences {slope:.7g} ± {4 * error:.1g} "
            f"(order {order}, {shown})",
            found,
        )

    def _error(self, message: str, found: SlopeEstimate) -> Exception:
        name = self.of.stageable.name
        error = DifferentiationError(f"{name}: {message}")
        if bool(found.bends()):
            reason = (
                f"there is a kink or a jump here: the slope is {float(found.left):.4g} to the left and "
                f"{float(found.right):.4g} to the right; check it at another point"
            )
        elif float(found.error) > abs(float(found.slope)) / JUMP:
            reason = "the function jumps here, or is not smooth: check it at another point"
        elif not np.isfinite(found.slope):
            reason = "the function is not finite beside this point"
        else:
            reason = (
                "a rule (defjvp, defvjp) that is not the derivative, stop_gradient, differentiate_as, or a part of "
                "the function by way of integers or comparisons"
            )
        located(error, f"likely: {reason}")
        return error

    def _adjoint(self) -> None:
        """⟨u, J v⟩ = ⟨Jᵀ u, v⟩."""
        _, moved = self.pushed(*self.values, *self.direction)
        u, tangents = self._seed(), _flat(moved)
        directions = [leaf.array for one in self.direction for leaf in _leaves(one)]
        floats = [leaf.is_float for k in self.wrt for leaf in _leaves(self.values[k])]
        pairs = zip(self.cotangents, directions, floats, strict=True)
        terms = [np.sum(ct * v) for ct, v, is_float in pairs if is_float]
        left, right = float(np.sum(u * tangents)), float(np.sum(terms))
        epsilon = max(_epsilon(one.dtype.core) for one in self.seed)
        sizes = np.sum(np.abs(u * tangents)) + sum(
            np.sum(np.abs(ct * v)) for ct, v in zip(self.cotangents, directions, strict=True)
        )
        if abs(left - right) > ADJOINT * epsilon * float(sizes):
            order = len(self.taken) + 1
            error = DifferentiationError(
                f"{self.of.stageable.name}: forward and reverse mode are not transposes of each other: ⟨u, J v⟩ is "
                f"{left:.10g} and ⟨Jᵀ u, v⟩ {right:.10g} (order {order}{''.join(f', of {x}' for x in self.taken)})"
            )
            located(error, "likely: a defjvp and a defvjp that are not of one function")
            raise error

    def _seed(self) -> Array:
        return _flat(self.seed)

    def _name(self, position: int) -> str:
        return self.of.stageable.parameter_names[self.wrt[position]]

    def _random_like(self, value: Any) -> Any:
        """Random numbers between ½ and 1 of either sign, so that none is lost; zeros for integers."""
        made = value
        for index, leaf in enumerate(_leaves(value)):
            shape = leaf.array.shape
            numbers = self.random.uniform(0.5, 1, shape) * self.random.choice([-1, 1], shape)
            numbers = numbers if leaf.is_float else np.zeros(shape)
            made = _replaced(made, index, leaf.dtype.store(np.asarray(numbers)))
        return made


def _floats_of(of: StagedFunction) -> StagedFunction:
    """The same function, which returns its floats alone, in a tuple."""

    def floats(*xs: Rep) -> tuple[Rep, ...]:
        found = tuple(leaf for leaf in leaf_reps(of(*xs)) if has_floats(leaf.spec))
        if not found:
            raise differentiation_error(
                f"{of.stageable.name} returns no floats: only floats have derivatives",
                "cast the result to a float type inside the function",
            )
        return found

    return wrapper_of(of, floats)


def _leaves(value: Any, path: str = "") -> list[_Leaf]:
    """The tensors of a value, from left to right."""
    if isinstance(value, Struct):
        named = zip(fields(type(value)), value._fields, strict=True)
        return [leaf for lens, one in named for leaf in _leaves(one, f"{path}.{lens.name}")]
    if is_tuple(value):
        return [leaf for k, one in enumerate(value) for leaf in _leaves(one, f"{path}[{k}]")]
    return [_Leaf(path, value)]


def _replaced(value: Any, index: int, stored: Array) -> Any:
    """`value` with other contents of one of its tensors."""
    if not isinstance(value, Struct) and not is_tuple(value):
        return wrap(np.ascontiguousarray(stored).reshape(value.shape))
    parts = list(value._fields if isinstance(value, Struct) else value)
    for k, part in enumerate(parts):
        count = len(_leaves(part))
        if index < count:
            parts[k] = _replaced(part, index, stored)
            break
        index -= count
    return assemble(type(value), parts) if isinstance(value, Struct) else tuple(parts)


def _zero_like(value: Any) -> Any:
    for index, leaf in enumerate(_leaves(value)):
        value = _replaced(value, index, leaf.dtype.store(np.zeros(leaf.array.shape)))
    return value


def _flat(values: Sequence[Any]) -> Array:
    """The elements of all tensors."""
    return np.concatenate([np.asarray(one, np.float64).reshape(-1) for one in values])


def _seeded(found: SlopeEstimate, seed: Array) -> SlopeEstimate:
    """The difference of ⟨seed, f⟩."""
    parts = (found.slope, found.left, found.right)
    slope, left, right = (np.asarray(np.sum(seed * part)) for part in parts)
    return SlopeEstimate(slope, np.asarray(np.sum(np.abs(seed) * found.error)), left, right)


def _element(found: SlopeEstimate, flat: int) -> SlopeEstimate:
    return SlopeEstimate(found.slope[flat], found.error[flat], found.left[flat], found.right[flat])


def _rounded(direction: Array, leaf: _Leaf) -> Array:
    """A direction as the element type has it."""
    return np.asarray(leaf.dtype.load(leaf.dtype.store(direction)), np.float64)


def _epsilon(dtype: DType) -> float:
    """What the number behind 1 is more than 1: 2⁻⁵² of f64."""
    return 2.0 ** (1 - dtype.digits)


def _index(at: Sequence[Any]) -> str:
    return f"[{', '.join(str(int(k)) for k in at)}]" if len(at) else ""
