"""What declarations of derivatives ask for: their defaults filled in, checked, and the derivative's type.

[gradient @f from 1 wrt 2, 0 keeping 0 seedable]
parameters: those of f, then the seed (of the type of result 1)
results:    the derivatives in the order of `wrt`, then the kept results; one alone is not a tuple, unless
            the declaration writes it as a tuple of one

A parameter that is a pointer has a *shadow*: a pointer of the same type, to as much memory, which is a parameter of the
derivative behind the seeds.  In it lie cotangents, and what its own are is added to them; it has no result.

[tangent @f from 1 wrt 2, 0 keeping 0]
parameters: those of f, then the tangents of the parameters in the order of `wrt`
results:    the tangents of the results in the order of `from`, then the kept results; with `order n` the
            coefficients 1 to n of the results' Taylor series along the tangents, order by order, then the kept results
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..errors import DifferentiationError
from ..ir import BatchOf, Function, GradientOf, Module, TangentOf
from ..lazy_dataclass import dataclass
from ..ops.leaves import leaves_of
from ..types import (
    ArrayType,
    FunctionType,
    PointerType,
    TensorType,
    TupleType,
    Type,
    elements_of,
    one_or_tuple,
    written,
)

MAX_ORDER = 100
"""Of a tangent: instructions grow as its square and those of powers as its cube, which is then what a derivative may
have (`core.autodiff.higher_order.MOST_INSTRUCTIONS`)."""


@dataclass(frozen=True)
class DerivativeRequest:
    """A declaration with every default filled in: positions of results and parameters."""

    sources: tuple[int, ...]
    wrt: tuple[int, ...]
    keeping: tuple[int, ...]
    seedable: bool
    is_gradient: bool
    order: int = 1
    shadowed: tuple[int, ...] = ()
    """Those of `wrt` that are pointers."""

    @property
    def returned(self) -> tuple[int, ...]:
        """Those of `wrt` by which a gradient has results."""
        return tuple(index for index in self.wrt if index not in self.shadowed)

    def given(self, primal: FunctionType) -> tuple[Type, ...]:
        """The types of the parameters behind those of the primal: seeds and shadows, or tangents."""
        if not self.is_gradient:
            return tuple(primal.parameters[index] for index in self.wrt)
        results = elements(primal.result)
        seeds = [results[index] for index in self.sources if self.seedable]
        return (*seeds, *(primal.parameters[index] for index in self.shadowed))

    def given_names(self, names: Sequence[str | None]) -> list[str | None]:
        """The names of `given`, when the primal's parameters have these `names`."""
        if not self.is_gradient:
            return [f"d{names[index]}" if names[index] else None for index in self.wrt]
        seeds: list[str | None] = [None] * (len(self.sources) if self.seedable else 0)
        if len(seeds) == 1 and "seed" not in names:
            seeds = ["seed"]
        return [*seeds, *(f"d{names[k]}" if names[k] else None for k in self.shadowed)]

    def derivatives(self, primal: FunctionType) -> tuple[Type, ...]:
        """The types of the results before those that are kept."""
        if self.is_gradient:
            return tuple(primal.parameters[index] for index in self.returned)
        results = elements(primal.result)
        return tuple(results[index] for index in self.sources) * self.order


def resolve(
    primal: FunctionType,
    declaration: GradientOf | TangentOf,
    names: Sequence[str | None] | None = None,
) -> DerivativeRequest:
    """The declaration with its defaults filled in; `names` are the primal's parameters, for messages.

    Raises: DifferentiationError for an index out of range, a duplicate, nothing to differentiate, a
        parameter or result without float elements, a derivative that would have parts which are no tensors,
        a gradient of several results of which none is named, or an order below 1 or above `MAX_ORDER`.
    """
    is_gradient = isinstance(declaration, GradientOf)
    order = 1 if isinstance(declaration, GradientOf) else declaration.order
    if not 1 <= order <= MAX_ORDER:
        name = written("@", declaration.primal)
        raise DifferentiationError(
            f"a tangent of {name} has order {order}: orders are 1 to {MAX_ORDER}"
        )
    wrt = declaration.wrt
    if wrt is None:
        wrt = tuple(range(len(primal.parameters)))
    _check_wrt(primal, declaration, wrt, names)
    shadowed = tuple(k for k in wrt if has_shadow(primal.parameters[k]))
    if shadowed and order > 1:
        raise DifferentiationError(
            f"a tangent of order {order} of {written('@', declaration.primal)} by memory would take {order} shadows: "
            "let a function that has the memory of its own be differentiated, or take tangents of tangents"
        )
    sources = _sources(primal, declaration, is_by_memory=bool(shadowed))
    _check_keeping(primal, declaration)
    seedable = isinstance(declaration, GradientOf) and declaration.seedable
    return DerivativeRequest(
        sources, wrt, declaration.keeping, seedable, is_gradient, order, shadowed
    )


def derivative_type(
    primal: FunctionType,
    declaration: GradientOf | TangentOf,
    names: Sequence[str | None] | None = None,
) -> FunctionType:
    """The type of the derivative that `declaration` declares of a function of type `primal`.

    `names` are the primal's parameters, for messages.
    Raises: DifferentiationError as `resolve` does.
    """
    request = resolve(primal, declaration, names)
    results = elements(primal.result)
    kept = tuple(results[index] for index in request.keeping)
    return FunctionType(
        (*primal.parameters, *request.given(primal)),
        one_or_tuple((*request.derivatives(primal), *kept)),
    )


def declared_type(
    primal: FunctionType, function: Function, names: Sequence[str | None] | None = None
) -> FunctionType:
    """The type of `function`, a derivative that is declared of one of type `primal`, as it should be.

    That is the declared type if it is right.  One result may be declared by itself or as a tuple of one; what
    is computed then is what is declared.
    Raises: DifferentiationError as `resolve` does.
    """
    declaration = function.declaration
    assert isinstance(declaration, GradientOf | TangentOf)
    plain = derivative_type(primal, declaration, names)
    in_tuple = FunctionType(plain.parameters, TupleType((plain.result,)))
    request = resolve(primal, declaration, names)
    count = len(request.derivatives(primal)) + len(request.keeping)
    return in_tuple if count == 1 and function.type == in_tuple else plain


def resolve_declared(
    primal: FunctionType, function: Function, names: Sequence[str | None] | None = None
) -> DerivativeRequest:
    """What `function` is declared to give, when it has the type of that.

    Raises: DifferentiationError as `resolve` does, and for another type.
    """
    declaration = function.declaration
    assert isinstance(declaration, GradientOf | TangentOf)
    expected = declared_type(primal, function, names)
    if function.type != expected:
        kind = "gradient" if isinstance(declaration, GradientOf) else "tangent"
        raise DifferentiationError(
            f"{written('@', function.name)} is declared as {function.type}, but the {kind} of "
            f"{written('@', declaration.primal)} is {expected}"
        )
    return resolve(primal, declaration, names)


def parameter_names(module: Module, function: Function) -> list[str | None]:
    """The names of the parameters of `function`, as far as they have any.

    Those of a declared derivative are those of its primal, and what is made of them.
    """
    declared: list[Function] = []
    while function.body is None and function.primal in module.functions:
        declared.append(function)
        function = module.functions[function.primal]
    names: list[str | None] = [None] * len(function.type.parameters)
    if function.body is not None:
        names = [parameter.name for parameter in function.parameters]
    for derivative in reversed(declared):
        declaration = derivative.declaration
        if isinstance(declaration, BatchOf):
            function = derivative
            continue
        assert isinstance(declaration, GradientOf | TangentOf)
        request = resolve(function.type, declaration)
        names += request.given_names(names)
        function = derivative
    return names


def elements(type: Type) -> tuple[Type, ...]:
    """The results a function of this result type is said to have: those of a tuple, else the one."""
    return type.elements if isinstance(type, TupleType) else (type,)


def _sources(
    primal: FunctionType, declaration: GradientOf | TangentOf, *, is_by_memory: bool
) -> tuple[int, ...]:
    """The results that are asked for; of memory, there may be none."""
    results = elements(primal.result)
    name = written("@", declaration.primal)
    if is_by_memory and not declaration.sources and not any(map(has_float, results)):
        return ()
    if not results:
        raise DifferentiationError(f"{name} returns nothing, so it has no gradient")
    sources = declaration.sources
    if not sources and len(results) == 1:
        sources = (0,)
    if not sources:
        if isinstance(declaration, GradientOf):
            raise DifferentiationError(
                f"the declaration names no result: {name} has {len(results)} results, {_choice(results)}"
            )
        sources = tuple(index for index, type in enumerate(results) if has_float(type))
        if not sources:
            raise DifferentiationError(
                f"{name} has {_count(len(results), 'result')}, none of them with floats: "
                "only floats have a tangent"
            )
    for position, index in enumerate(sources):
        if not 0 <= index < len(results):
            raise DifferentiationError(
                f"from {index} is out of range: {name} has {_count(len(results), 'result')}"
            )
        if index in sources[:position]:
            raise DifferentiationError(f"from of {name} names result {index} twice")
        if not has_float(results[index]):
            raise DifferentiationError(
                f"result {index} of {name} is {describe(results[index])}: only floats have a gradient"
            )
        if isinstance(declaration, TangentOf):
            _check_whole(f"result {index} of {name}", results[index], "tangent")
    return sources


def _choice(results: Sequence[Type]) -> str:
    """Which results can be named, in words."""
    found = [f"from {index}" for index, type in enumerate(results) if has_float(type)]
    if not found:
        return "none of them with floats: only floats have a gradient"
    if len(found) > 3:
        return f"say {found[0]}, {found[1]}, … or {found[-1]}"
    return f"say {' or '.join(found)}"


def _check_wrt(
    primal: FunctionType,
    declaration: GradientOf | TangentOf,
    wrt: tuple[int, ...],
    names: Sequence[str | None] | None,
) -> None:
    name = written("@", declaration.primal)
    count = len(primal.parameters)
    if not wrt:
        raise DifferentiationError(
            f"wrt of the gradient of {name} is empty: name at least one parameter"
        )
    for position, index in enumerate(wrt):
        if not 0 <= index < count:
            raise DifferentiationError(
                f"wrt {index} is out of range: {name} has {_count(count, 'parameter')}"
            )
        label = f"{index} ({names[index]})" if names and names[index] else str(index)
        if index in wrt[:position]:
            raise DifferentiationError(f"wrt of {name} names parameter {label} twice")
        type = primal.parameters[index]
        if has_shadow(type):
            continue
        if not has_float(type):
            raise DifferentiationError(
                f"parameter {label} of {name} is {describe(type)}: only floats have a gradient, leave it out of wrt"
            )
        if isinstance(declaration, GradientOf):
            _check_whole(f"parameter {label} of {name}", type, "gradient")


def _check_keeping(primal: FunctionType, declaration: GradientOf | TangentOf) -> None:
    name = written("@", declaration.primal)
    count = len(elements(primal.result))
    for position, index in enumerate(declaration.keeping):
        if not 0 <= index < count:
            raise DifferentiationError(
                f"keeping {index} is out of range: {name} has {_count(count, 'result')}"
            )
        if index in declaration.keeping[:position]:
            raise DifferentiationError(f"keeping of {name} names result {index} twice")


def _check_whole(what: str, type: Type, kind: str) -> None:
    """Raises: DifferentiationError for a type with parts that have no derivative, not even one of zeros."""
    for leaf in _kinds_in(type):
        if not isinstance(leaf, TensorType):
            raise DifferentiationError(
                f"{what} holds a {leaf}, which has no {kind}: take the numbers out of it"
            )


def has_float(type: Type) -> bool:
    """Whether any tensor inside `type` has float elements."""
    return any(isinstance(leaf, TensorType) and leaf.dtype.is_float for leaf in _kinds_in(type))


def has_shadow(type: Type) -> bool:
    """Whether it is a pointer to floats, and to nothing that has no tangent."""
    if not isinstance(type, PointerType):
        return False
    return has_float(type.pointee) and holds_tensors(type.pointee)


def holds_tensors(type: Type) -> bool:
    """Whether memory for a value of this type has nothing but numbers in it."""
    return all(isinstance(leaf, TensorType) for leaf in _kinds_in(type))


def _kinds_in(type: Type) -> Iterator[Type]:
    """The types of the leaves of `type`; that of the elements of an array, which may have billions, once."""
    pending = [type]
    while pending:
        current = pending.pop()
        if isinstance(current, ArrayType):
            pending += [current.element] if current.count else []
        elif (parts := elements_of(current)) is not None:
            pending += parts
        else:
            yield current


def describe(type: Type) -> str:
    """As users read it: `i32[3]`, or `$State (#step: i64, #done: bool)`."""
    if isinstance(type, TensorType):
        return type.words
    leaves = [(leaf, leaf.type) for leaf in leaves_of(type)]
    tensors = [(leaf, of) for leaf, of in leaves if isinstance(of, TensorType)]
    inside = ", ".join(f"{leaf}: {of.words}" for leaf, of in tensors)
    head = "a tuple" if isinstance(type, TupleType) else str(type)
    return f"{head} ({inside})" if inside else f"{head} without tensors"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
