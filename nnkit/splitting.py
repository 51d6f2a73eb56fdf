"""The forward and the backward half of a gradient as functions of their own, with what is kept in between.

`split` gives both: whoever calls them keeps the residuals, sends them elsewhere, scales the seed or adds gradients up.
`saved` says what they are, `linearize` makes a linear map of them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from types import GenericAlias
from typing import Any, ClassVar, cast

from .callables import StagedFunction, check_staged
from .conversion import shapes_of, signature_of
from .core.errors import UnsupportedError
from .core.ir import SavePolicy
from .core.types import TensorType
from .derivative_checks import check_parameters, checked_policy
from .halved_gradients import HalvedGradient
from .redefinitions import Watched, functions_of, watched_by
from .residuals import HalfSignature, Residual, Residuals, Saved
from .shaping import split_pieces
from .staging.custom_rules import trace_rules
from .staging.expression import Callee, Shapes
from .staging.halves import Half, LinkableHalves
from .staging.primitive import differentiation_error, located, staging_error
from .staging.rep import Rep
from .staging.spec import Spec, StructSpec, TupleSpec, as_tuple, is_tuple, leaves
from .staging.staged_functions import Stageable
from .staging.tracebacks import public, public_methods
from .static_parameters import MOST_VARIANTS
from .structs import Struct
from .tensors import AnyTensor
from .wrt import (
    ParameterPath,
    are_indices,
    check_indices,
    check_places,
    chosen_parameters,
    path_words,
)


class Halves:
    """The halves of the gradient of a function for arguments of certain shapes.

    `forward` takes the arguments and returns the value and the residuals, a tuple of tensors; `backward` takes these
    and a seed like the value, and returns the derivatives.  Arguments among the residuals are not copied.
    """

    forward: StagedFunction
    backward: StagedFunction
    residuals: tuple[Residual, ...]
    ends_by_seed: bool
    """Whether the backward half may have loops that end when the seed says so: there it is no linear map at seed 0."""
    forward_signature: HalfSignature
    backward_signature: HalfSignature
    __class_getitem__: ClassVar[Any] = cast("Any", classmethod(GenericAlias))

    def __init__(self, about: HalvedGradient) -> None:
        self.residuals = tuple(about.residuals())
        self.ends_by_seed = about.core.has_while
        self.forward = _Forward(about, self)
        self.backward = StagedFunction(Half(about.half("backward")))
        kept = self.residuals
        self.forward_signature = HalfSignature(about.arguments(), (*about.results(""), *kept))
        self.backward_signature = HalfSignature((*kept, *about.results("d")), about.derivatives())

    @property
    def saved(self) -> Saved:
        """The residuals that are neither arguments nor results."""
        return Saved(one for one in self.residuals if one.kind == "saved")

    def __str__(self) -> str:
        lines: list[str] = []
        for half in ("forward", "backward"):
            signature: HalfSignature = getattr(self, f"{half}_signature")
            for what in ("expects", "returns"):
                lines += [f"{half} {what}", *(f"  {one}" for one in getattr(signature, what))]
        return "\n".join(lines)


@public_methods
class Split:
    """The halves of the gradient of a function, for arguments of any shapes.

    On data, `forward` and `backward` are those for the shapes at hand; `at` gives those for certain shapes, which
    staged functions call, too.
    """

    forward: StagedFunction
    backward: StagedFunction
    __class_getitem__: ClassVar[Any] = cast("Any", classmethod(GenericAlias))

    def __init__(self, of: StagedFunction, wrt: Any, save: SavePolicy) -> None:
        self._of, self._wrt = of, wrt
        self._save: SavePolicy = save
        self._variants: dict[int, Split] = {}
        names = of.stageable.parameter_names
        chosen = tuple(range(len(names))) if wrt is None else chosen_parameters(of, wrt)
        self._single = not is_tuple(chosen)
        self._places = _places(of, chosen)
        self._known: dict[Hashable, Halves] = {}
        self._watched: Watched | None = None
        self.forward = _AnyForward(self)
        self.backward = _AnyBackward(self)

    def __repr__(self) -> str:
        return f"<halves of the gradient of {self._of!r}>"

    def at(self, *arguments: Any, **statics: Any) -> Halves:
        """The halves for arguments of these shapes: tensors, structs, or `spec(shape, dtype)`.

        With values of static parameters they are those of the function for these.

        Raises: DifferentiationError for a derivative that does not exist, or when more has to be saved than there is
        room for; UnsupportedError when a residual has no size that is known, as of a loop whose iterations are not.
        """
        of, data = self._of.of_call(arguments, statics)
        if of is not self._of:
            return self.variant(of).at(*data)
        values = self._of._values(data, specs=True)
        key = tuple(map(signature_of, values))
        if self._watched is not None and self._watched.have_changed():
            self._known.clear()
        if key not in self._known:
            self._known[key] = self._made(values)
        return self._known[key]

    def variant(self, of: StagedFunction) -> Split:
        """That of the function for other values of its static parameters."""
        if id(of) not in self._variants:
            while len(self._variants) >= MOST_VARIANTS:
                self._variants.pop(next(iter(self._variants)))
            self._variants[id(of)] = Split(of, self._wrt, self._save)
        return self._variants[id(of)]

    def halves_of(self, residuals: Any) -> Halves | None:
        """Those whose forward half has returned these."""
        given = residuals.halves if isinstance(residuals, Residuals) else None
        return next(
            (
                one
                for split in (self, *self._variants.values())
                for one in split._known.values()
                if one is given
            ),
            None,
        )

    def _made(self, values: Sequence[Any]) -> Halves:
        specialization = self._of._specialization(values)
        callee = specialization.callee
        trace_rules(callee)
        self._watched = watched_by(callee, self._of.stageable)
        check_parameters(callee, [place.index for place in self._places])
        results = leaves(callee.result)
        sources = [k for k, leaf in enumerate(results) if leaf.dtype.is_float]
        if not sources:
            raise differentiation_error(
                f"the result of {callee.name} is a {callee.result.words}: only floats have derivatives",
                "cast it to a float type inside the function",
            )
        found = [_leaves_at(specialization.specs, place) for place in self._places]
        wrt = [k for numbers, _ in found for k in numbers]
        if len(set(wrt)) < len(wrt):
            raise differentiation_error("the selector names a parameter twice")
        given = [leaf for spec in specialization.specs for leaf in leaves(spec)]
        floats = [k for k in wrt if given[k].dtype.is_float]
        core, type = specialization.halves(sources, floats, self._save)
        _check_sizes(callee, core, self._save)
        shapes = tuple(shape for value in values for shape in shapes_of(value))
        result_shapes = tuple(one.shape for one in type.results if isinstance(one, TensorType))
        names = [
            path_words(f"d{callee.parameter_names[place.index]}", place.path)
            for place in self._places
        ]
        derivatives = tuple(zip(names, (spec for _, spec in found), strict=True))
        taken = tuple(shapes[k] for k in wrt)
        return Halves(
            HalvedGradient(
                core,
                callee,
                shapes,
                result_shapes,
                derivatives,
                self._single,
                taken,
                tuple(functions_of(callee, self._of.stageable)),
                self._watched.reads,
            )
        )


def split(
    ary: Any,
    indices_or_sections: Any = None,
    axis: int = 0,
    *,
    wrt: Any = None,
    save: Any = "auto",
) -> Any:
    """The forward and the backward half of the gradient of a staged function, as two that can be called apart.

    Of a tensor and an int it is NumPy's: as many pieces of one extent along an axis, or those between indices.

    `forward(*arguments)` returns the value and the residuals, `backward(residuals, seed)` the derivatives by `wrt`, of
    the types that `vjp` has; with `at(*specs)` they are functions to be staged, and say what they expect and return.
    `forward` and `at` take the static arguments of the function, too.
    `save` is that of `gradient`; "auto" saves what costs less to keep than to compute again.
    Raises: DifferentiationError for an index out of range or given twice, or a parameter without floats.
    """
    if indices_or_sections is not None:
        return split_pieces(ary, indices_or_sections, axis)
    check_staged(ary, "split")
    return Split(ary, wrt, _policy(save))


def saved(
    of: StagedFunction, /, *arguments: Any, wrt: Any = None, save: Any = "auto", **statics: Any
) -> Saved:
    """What `split` saves for arguments of these shapes besides arguments and results: shapes, bytes and lines.

    `statics` are values of static parameters of `of`.

    Raises: as `split`, and `Split.at`.
    """
    check_staged(of, "saved")
    return Split(of, wrt, _policy(save)).at(*arguments, **statics).saved


def _policy(save: Any) -> SavePolicy:
    policy = checked_policy(save)
    return "auto" if policy is None else policy


class _Forward(StagedFunction):
    """A forward half, which copies no arguments on data."""

    __slots__ = ("_halves", "_saving")

    def __init__(self, about: HalvedGradient, halves: Halves) -> None:
        super().__init__(Half(about.half("forward")))
        self._halves = halves
        self._saving = StagedFunction(Half(about.half("saving")))

    @public
    def _dispatch(self, *arguments: Any, **keywords: Any) -> Any:
        if keywords or not arguments or any(isinstance(value, Rep) for value in arguments):
            return super()._dispatch(*arguments, **keywords)
        values = self._values(arguments)
        found, rest = self._saving(*values), ()
        if self._halves.saved:
            found, rest = found
        held = {"argument": _tensors(values), "result": _tensors([found]), "saved": list(rest)}
        residuals = Residuals(held[one.kind][one.number] for one in self._halves.residuals)
        residuals.halves = self._halves
        return found, residuals


class _Unstaged(Stageable):
    """A half whose shapes are not known."""

    def __init__(self, name: str, parameter_names: tuple[str, ...], of: str) -> None:
        self.name, self.parameter_names, self._of = name, parameter_names, of

    def callee(self, specs: tuple[Spec, ...], shapes: Shapes | None = None) -> Callee:
        raise staging_error(
            f"the residuals of {self._of} depend on shapes, which are not known while staging",
            "split it for certain shapes, split(f).at(spec((3, 4), f32)), and call these halves",
        )


class _AnyForward(StagedFunction):
    """Forward halves for data of any shapes."""

    __slots__ = ("_split",)

    def __init__(self, split: Split) -> None:
        of = split._of.stageable
        super().__init__(_Unstaged(f"{of.name}_forward", of.parameter_names, of.name))
        self._split = split
        self.declared = split._of.declared

    @public
    def _dispatch(self, *arguments: Any, **keywords: Any) -> Any:
        of, data = self._split._of.of_call(arguments, keywords)
        if of is not self._split._of:
            return self._split.variant(of).forward(*data, **keywords)
        if keywords or not data or any(isinstance(value, Rep) for value in data):
            return super()._dispatch(*data, **keywords)
        values = self._values(data)
        return self._split.at(*values).forward(*values)


class _AnyBackward(StagedFunction):
    """Backward halves for residuals of any forward half."""

    __slots__ = ("_split",)

    def __init__(self, split: Split) -> None:
        of = split._of.stageable
        super().__init__(_Unstaged(f"{of.name}_backward", ("residuals", "seed"), of.name))
        self._split = split

    @public
    def _dispatch(self, *arguments: Any, **keywords: Any) -> Any:
        if keywords or not arguments or any(isinstance(value, Rep) for value in arguments):
            return super()._dispatch(*arguments, **keywords)
        self._check_arity(arguments)
        halves = self._split.halves_of(arguments[0])
        if halves is None:
            raise staging_error(
                f"{self.stageable.name} takes the residuals that a forward half of this split has returned",
                "after a round trip through arrays, residuals.with_arrays(arrays)",
            )
        return halves.backward(*arguments)


def _check_sizes(callee: Callee, core: LinkableHalves, save: SavePolicy) -> None:
    """Raises: UnsupportedError for a residual that is no tensor."""
    for one in core.residuals:
        if isinstance(one.type, TensorType):
            continue
        error = UnsupportedError(
            f"{callee.name} cannot be split: what is kept for each iteration or call has no shape, as how many "
            "there are is known only when it has run"
        )
        help = (
            "what prints or checks is not run again; of a function that calls itself, split one that calls it"
            if save == "none"
            else 'loop a number of times that is known while staging, or compute it again: save="none"'
        )
        if one.location is None:
            raise located(error, help)
        shown = one.location.excerpt().replace("\n", "\n  ")
        error.args = (f"{error.args[0]}\n  {shown}",)
        error.add_note(f"  help: {help}")
        raise error


def _places(of: StagedFunction, chosen: Any) -> tuple[ParameterPath, ...]:
    """The parameters and fields that are chosen."""
    names, each = of.stageable.parameter_names, as_tuple(chosen)
    if not are_indices(chosen):
        check_places(of, each)
        return each
    check_indices(of.stageable.name, each, len(names), names)
    indices: tuple[int, ...] = each
    return tuple(ParameterPath(k, (), of.declared[k]) for k in indices)


def _leaves_at(specs: Sequence[Spec], place: ParameterPath) -> tuple[list[int], Spec]:
    """The numbers of the tensors at a place, among those of all parameters, and their type as a whole."""
    first = sum(len(leaves(spec)) for spec in specs[: place.index])
    spec = specs[place.index]
    for step in place.path:
        parts = dict(parts_of(spec))
        at = step % len(parts) if isinstance(step, int) and parts else step
        if at not in parts:
            raise differentiation_error(f"there is no element {step} in {spec.words}")
        for name, inside in parts.items():
            if name == at:
                spec = inside
                break
            first += len(leaves(inside))
    return [*range(first, first + len(leaves(spec)))], spec


def parts_of(spec: Spec) -> Iterator[tuple[str | int, Spec]]:
    """What is directly inside, by the names of fields or positions."""
    if isinstance(spec, StructSpec):
        yield from spec.fields
    if isinstance(spec, TupleSpec):
        yield from enumerate(spec.elements)


def _tensors(values: Sequence[Any]) -> list[AnyTensor]:
    """The tensors inside of values, from left to right."""
    found: list[AnyTensor] = []
    for value in values:
        inside = value._fields if isinstance(value, Struct) else value
        if is_tuple(inside):
            found += _tensors(inside)
        else:
            found.append(inside)
    return found
