"""Optimizers as pure functions on structs of parameters, and the training step that a loss and one of them make.

An optimizer has two functions.  `init(params)` makes its state, a tuple: how many steps were done, then what it
remembers for each parameter, in structs like the parameters.  `update(slope, state, params)` gives new parameters and a
new state.  Both take staged values and concrete ones.  Parameters that are integers stay as they are.

Sources: Kingma & Ba 2015 (Adam); Loshchilov & Hutter 2019 (AdamW); Sutskever et al. 2013 (momentum, Nesterov's);
Tieleman & Hinton 2012 (RMSProp); Duchi et al. 2011 (AdaGrad).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar, TypeAlias

from . import elementwise, trees
from .callables import StagedFunction, check_staged
from .core.lazy_dataclass import dataclass
from .declared_types import declared_result
from .differentiation import gradient, value_and_gradient
from .donation import donate
from .functions import full, select, zeros_like
from .reps import as_rep, const, tup
from .staging.primitive import differentiation_error, staging_error, tensor_of
from .staging.rep import Rep
from .staging.rep_base import is_number
from .staging.spec import TensorSpec, TupleSpec
from .staging.staged_functions import PythonFunction
from .static_parameters import passing_statics
from .tensors import AnyTensor, Float, f32, f64, i32

Rate: TypeAlias = "float | Callable[[Any], Any]"
"""How large a step is: a number, or a function of the number of steps that were done, an i32."""


@dataclass(frozen=True)
class Optimizer:
    """Base of optimizers: steps against the slope, of size `learning_rate`."""

    learning_rate: Rate
    moments: ClassVar[int] = 0
    """How many structs like the parameters the state has."""

    def __post_init__(self) -> None:
        if not callable(self.learning_rate):
            require(self, "learning_rate", self.learning_rate, at_least=0.0)

    def init(self, params: Any, /) -> tuple[Any, ...]:
        """The state before the first step: zeros."""
        staged = any(isinstance(leaf, Rep) for leaf in trees.leaves(params))
        count = const(i32(0)) if staged else i32(0)
        return (count, *(trees.map(zeros_like, params) for _ in range(self.moments)))

    def update(self, slope: Any, state: Any, params: Any, /) -> tuple[Any, tuple[Any, ...]]:
        """New parameters and the new state."""
        count, *moments = state.unpack() if isinstance(state, Rep) else state
        scale = Scales(self, as_rep(count))
        made = [
            self._leaf(scale, *leaves)
            for leaves in zip(*map(trees.leaves, (params, slope, *moments)), strict=True)
        ]
        columns = zip(*made, strict=True) if made else ((),) * (1 + len(moments))
        new, *kept = [_like(params, list(column)) for column in columns]
        return new, (count + 1, *kept)

    def _leaf(self, scale: Scales, p: Any, g: Any, *moments: Any) -> tuple[Any, ...]:
        """One tensor of the parameters, and of the state, after a step."""
        rep = as_rep(p)
        if not tensor_of(rep.expression, "an optimizer").dtype.is_float:
            return (p, *moments)
        return self.step(scale, rep, as_rep(g), *map(as_rep, moments))

    def step(self, scale: Scales, p: Rep, g: Rep, /, *moments: Rep) -> tuple[Rep, ...]:
        """The same of floats."""
        return (p - scale.rate(p) * g,)


@dataclass(frozen=True)
class Scales:
    """What depends on the number of steps alone, in the type of a parameter."""

    of: Optimizer
    count: Rep

    def rate(self, p: Rep) -> Any:
        """The learning rate of this step."""
        rate = self.of.learning_rate
        if not callable(rate):
            return rate
        found: Any = rate(self.count)
        return found if is_number(found) else as_rep(found).cast(_dtype(p))

    def without_bias(self, moment: Rep, decay: float) -> Rep:
        """A mean that decays, begun with zero, divided by what its weights sum to, 1 − decayᵗ."""
        steps = (self.count + 1).cast(f64)
        weights: Any = -elementwise.expm1(steps * math.log(decay)) if decay else 1.0
        return moment / (weights if is_number(weights) else weights.cast(_dtype(moment)))


@dataclass(frozen=True)
class SGD(Optimizer):
    """`p − rate · g`."""


@dataclass(frozen=True)
class Momentum(Optimizer):
    """`v = decay · v + g`, then `p − rate · v`; Nesterov's form takes `g + decay · v`."""

    decay: float = 0.9
    nesterov: bool = False
    moments: ClassVar[int] = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self, "decay", self.decay, at_least=0.0, below=1.0)

    def step(self, scale: Scales, p: Rep, g: Rep, /, *moments: Rep) -> tuple[Rep, ...]:
        (v,) = moments
        v = self.decay * v + g
        direction = g + self.decay * v if self.nesterov else v
        return p - scale.rate(p) * direction, v


@dataclass(frozen=True)
class RMSProp(Optimizer):
    """A decaying mean v of the squares of slopes: `p − rate · g / (√v + eps)`."""

    decay: float = 0.99
    eps: float = 1e-8
    moments: ClassVar[int] = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self, "decay", self.decay, at_least=0.0, below=1.0)
        require(self, "eps", self.eps, at_least=0.0)

    def step(self, scale: Scales, p: Rep, g: Rep, /, *moments: Rep) -> tuple[Rep, ...]:
        (v,) = moments
        v = self.decay * v + (1.0 - self.decay) * (g * g)
        return p - scale.rate(p) * (g / (elementwise.sqrt(v) + self.eps)), v


@dataclass(frozen=True)
class AdaGrad(Optimizer):
    """The sum v of the squares of all slopes: `p − rate · g / (√v + eps)`."""

    eps: float = 1e-10
    moments: ClassVar[int] = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self, "eps", self.eps, at_least=0.0)

    def step(self, scale: Scales, p: Rep, g: Rep, /, *moments: Rep) -> tuple[Rep, ...]:
        v = moments[0] + g * g
        return p - scale.rate(p) * (g / (elementwise.sqrt(v) + self.eps)), v


@dataclass(frozen=True)
class Adam(Optimizer):
    """Means m of slopes and v of their squares, both decaying: `p − rate · m̂ / (√v̂ + eps)`, without their bias."""

    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8
    weight_decay: float = 0.0
    """A multiple of the parameters that each step takes off besides, times the rate (AdamW)."""
    moments: ClassVar[int] = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self, "beta1", self.beta1, at_least=0.0, below=1.0)
        require(self, "beta2", self.beta2, at_least=0.0, below=1.0)
        require(self, "eps", self.eps, at_least=0.0)
        require(self, "weight_decay", self.weight_decay, at_least=0.0)

    def step(self, scale: Scales, p: Rep, g: Rep, /, *moments: Rep) -> tuple[Rep, ...]:
        m, v = moments
        m = self.beta1 * m + (1.0 - self.beta1) * g
        v = self.beta2 * v + (1.0 - self.beta2) * (g * g)
        root = elementwise.sqrt(scale.without_bias(v, self.beta2)) + self.eps
        direction = scale.without_bias(m, self.beta1) / root
        if self.weight_decay:
            direction = direction + self.weight_decay * p
        return p - scale.rate(p) * direction, m, v


def sgd(learning_rate: Rate) -> SGD:
    """Gradient descent: `p − learning_rate · g`.

    >>> sgd(0.1)
    SGD(learning_rate=0.1)
    """
    return SGD(learning_rate)


def momentum(learning_rate: Rate, *, decay: float = 0.9, nesterov: bool = False) -> Momentum:
    """Gradient descent along a decaying sum of slopes: `v = decay · v + g`, then `p − learning_rate · v`.

    With `nesterov` the step is along `g + decay · v`.

    >>> momentum(0.1).decay
    0.9
    """
    return Momentum(learning_rate, decay, nesterov)


def rmsprop(learning_rate: Rate = 1e-2, *, decay: float = 0.99, eps: float = 1e-8) -> RMSProp:
    """RMSProp: steps along the slope over the root of a decaying mean of its squares; defaults are PyTorch's.

    >>> rmsprop(1e-3).decay
    0.99
    """
    return RMSProp(learning_rate, decay, eps)


def adagrad(learning_rate: Rate = 1e-2, *, eps: float = 1e-10) -> AdaGrad:
    """AdaGrad: steps along the slope over the root of the sum of the squares of all slopes; defaults are PyTorch's.

    >>> adagrad(0.1).eps
    1e-10
    """
    return AdaGrad(learning_rate, eps)


def adam(
    learning_rate: Rate = 1e-3, *, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-8
) -> Adam:
    """Adam: steps along the mean of slopes over the root of the mean of their squares.

    >>> adam(1e-3).beta2
    0.999
    """
    return Adam(learning_rate, beta1, beta2, eps)


def adamw(
    learning_rate: Rate = 1e-3,
    *,
    beta1: float = 0.9,
    beta2: float = 0.999,
    eps: float = 1e-8,
    weight_decay: float = 1e-2,
) -> Adam:
    """Adam with decoupled weight decay: each step also takes off `learning_rate · weight_decay · p`.

    >>> adamw(1e-3).weight_decay
    0.01
    """
    return Adam(learning_rate, beta1, beta2, eps, weight_decay)


def global_norm(tree: Any) -> Any:
    """√Σ x² over all floats of a tree, an f32 scalar (f64 if all of them are f64)."""
    floats = [leaf for leaf in map(as_rep, trees.leaves(tree)) if _is_float(leaf)]
    wide = bool(floats) and all(_dtype(leaf) is f64 for leaf in floats)
    total: Any = full((), 0.0, f64 if wide else f32)
    for leaf in floats:
        x = leaf.cast(f64 if wide else f32)
        total = total + (x * x).sum()
    return _evaluated(tree, elementwise.sqrt(total))


def clip_by_global_norm(tree: Any, max_norm: float) -> Any:
    """The tree times `max_norm / global_norm(tree)`, if that is less than 1; else as it is."""
    if not max_norm > 0.0:
        raise staging_error(f"max_norm is a positive number, not {max_norm!r}")
    norm = as_rep(global_norm(tree))
    scale = select(norm > max_norm, max_norm / norm, 1.0)

    def clipped(leaf: Any) -> Any:
        rep = as_rep(leaf)
        return rep * scale.cast(_dtype(rep)) if _is_float(rep) else leaf

    return trees.map(clipped, tree)


@passing_statics
def training_step(
    of: StagedFunction,
    /,
    *,
    optimizer: object,
    clip_norm: float | None = None,
    donated: bool = True,
) -> StagedFunction:
    """`params, state, value = step(params, state, *data)` for the loss `of(params, *data)`, compiled as one function.

    Its first argument is what is trained; the state at first is `optimizer.init(params)`.  Slopes longer than
    `clip_norm` are cut to that length.  Parameters and state are updated in place: after a call the old ones cannot be
    read (`donated=False` keeps them).  A loss with other results, declared as `tuple[Rep[Scalar[f32]], Rep[...]]`, is
    differentiated by its first one, and `value` is the tuple of all.
    Raises: DifferentiationError for a loss that is not a scalar; StagingError for what is not a staged function.
    """
    check_staged(of, "training_step")
    if not isinstance(optimizer, Optimizer):
        raise staging_error(
            f"training_step takes an optimizer, not a {type(optimizer).__name__}",
            "for example optimizer=nk.optim.adam(1e-3)",
        )
    slopes = _values_and_slope(of)
    first, *rest = of.stageable.parameter_names

    def step(params: Any, state: Any, *data: Any) -> Any:
        value, slope = slopes(params, *data)
        if clip_norm is not None:
            slope = clip_by_global_norm(slope, clip_norm)
        new, kept = optimizer.update(slope, state, params)
        return new, kept, value

    made = PythonFunction(
        step,
        f"{of.stageable.name}_step",
        (first, "state", *rest),
        (of.declared[0], None, *of.declared[1:]),
        None,
        is_wrapper=True,
    )
    return donate(StagedFunction(made), 0, 1) if donated else StagedFunction(made)


def _values_and_slope(of: StagedFunction) -> Callable[..., Any]:
    """What a loss returns, and its slope by the first parameter; of several results, by the first one."""
    result = declared_result(of.stageable)
    if not isinstance(result, TupleSpec):
        single = value_and_gradient(of=of, wrt=0)
        return lambda *given: single(*given).unpack()
    loss = result.elements[0] if result.elements else result
    if not isinstance(loss, TensorSpec) or loss.rank or not loss.dtype.is_float:
        raise differentiation_error(
            f"a loss has a scalar of floats as its first result, and that of {of.stageable.name} is a {loss.words}",
            "reduce it, for example with .mean()",
        )
    several = gradient(of=of, wrt=0, keeping=tuple(range(len(result.elements))))

    def both(*given: Any) -> Any:
        slope, *values = several(*given).unpack()
        return tup(*values), slope

    return both


def require(of: object, name: str, value: Any, *, at_least: float, below: float = math.inf) -> None:
    """Raises: StagingError for an option out of range."""
    if not is_number(value) or not at_least <= value < below:
        wanted = (
            f"from {at_least:g} on"
            if below == math.inf
            else f"from {at_least:g} to below {below:g}"
        )
        raise staging_error(
            f"{name} of {type(of).__name__.lower()} is a number {wanted}, not {value!r}"
        )


def _is_float(rep: Rep) -> bool:
    return tensor_of(rep.expression, "an optimizer").dtype.is_float


def _dtype(rep: Rep) -> Any:
    """The element type of a tensor, as the language calls it."""
    core = tensor_of(rep.expression, "an optimizer").dtype
    return next(one for one in Float.__subclasses__() if one.core is core)


def _like(params: Any, leaves: list[Any]) -> Any:
    """A tree like the parameters, of other leaves."""
    rest = iter(leaves)

    def following(_: Any) -> Any:
        return next(rest)

    return trees.map(following, params)


def _evaluated(tree: Any, made: Rep) -> Any:
    """A concrete value for a concrete tree."""
    concrete = all(isinstance(leaf, AnyTensor) for leaf in trees.leaves(tree))
    return made.eval() if concrete else made
