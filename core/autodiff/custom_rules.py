"""Derivatives of functions that have rules of their own (`CustomRules`), from either kind of rule.

    [jvp @t] func @f           pushforward:  %y = apply @f(%x);  %ẏ = apply @t(%x, %ẋ)
                               pullback:     %x̄ = apply @tᵀ(%x, 0, %ȳ)    with [gradient @t wrt ẋ seedable] @tᵀ
    [vjp @p] func @f           pullback:     %x̄ = apply @p(%x, %ȳ)
                               pushforward:  %ẏ = apply @pᵀ(%x, 0, %ẋ)    with [gradient @p wrt ȳ seedable] @pᵀ

A tangent depends linearly on tangents, so the gradient of the one rule by them is the other: its transpose.  That is a
derivative as any other, and so rules are differentiated again, as the code that they are.

1. What derivatives use of a function with rules is decided here, before its body is looked at.
2. Which results move with which arguments is not asked of the rule: all floats do.
3. Declarations that only rules need get their bodies when a rule is used (`define`): a rule may ask for derivatives of
   an order higher than anybody wants.

Source: Radul et al. 2023, You only linearize once (transposition of linear programs).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field

from ..analysis.call_graph import cycles_callees_first, reachable, symbols
from ..analysis.custom_rules import saved_types
from ..analysis.derivatives import derivative_type
from ..errors import DifferentiationError, UnsupportedError
from ..ir import NO_RULES, Block, Builder, Function, GradientOf, Module, Region, Value
from ..ir.donation import without_donations
from ..lazy_dataclass import dataclass
from ..location import located
from ..ops.aggregate import Apply
from ..ops.literal import constant
from ..ops.terminators import Return
from ..types import FunctionType, TensorType, Type, one_or_tuple, written
from .activity import Activity, can_move, members
from .pullback import Pullback, PullbackKey, ResidualPlace, ResidualSource


@dataclass
class RuleDerivatives:
    """Pullbacks and pushforwards of the functions of `module` that have rules.

    `define` gives declarations, and those they need, their bodies.
    """

    module: Module
    activity: Activity
    define: Callable[[Sequence[str]], None]
    _pushing: dict[str, Function] = field(default_factory=dict[str, Function])
    _pulling: dict[str, Function] = field(default_factory=dict[str, Function])
    _transposed: set[str] = field(default_factory=set[str])
    _prepared: set[str] = field(default_factory=set[str])
    _derived: set[str] = field(default_factory=set[str])

    def derived(self, function: Function, primal: str) -> None:
        """`function` is a derivative or a batch of `@primal`, the functions of which have bodies."""
        if self.is_derived(primal):
            self._derived.add(function.name)

    def is_derived(self, name: str) -> bool:
        """Whether rules have a part in `@name`, or would have in its derivatives."""
        if name in self._derived:
            return True
        needed = reachable(self.module, [name])
        return any(one in self._derived or self.module.functions[one].rules for one in needed)

    def push_into(
        self, b: Builder, function: Function, xs: Sequence[Value], dxs: Mapping[int, Value]
    ) -> list[Value]:
        """Emit the tangents of all results of `function` at `xs`, when its arguments move by `dxs`."""
        push = self.pushing(function)
        tangents = [dxs.get(k) or _zero(b, x.type) for k, x in enumerate(xs)]
        return list(b.emit_many(Apply(push.name, push.type), [*xs, *tangents]))

    def pullback(self, key: PullbackKey) -> Pullback:
        """The functions for `key`, which is of a function with rules."""
        function = self.module.functions[key.name]
        rules, type = function.rules, function.type
        seeds, gradients = tuple(members(key.seeded)), tuple(members(key.wanted))
        b = Builder(Block(name="entry"), function.location)
        forward: Function | None = None
        residuals: list[ResidualPlace] = []
        if rules.saving is not None and "checkpoint" not in function.attributes:
            self._prepare(function)
            forward = self.module.functions[rules.saving]
            pull = self.module.functions[rules.vjp or ""]
            given = [b.argument(saved) for saved in saved_types(type, forward.type)]
            forward = forward if given else None
        else:
            pull = self._pull(function)
            given = list[Value]()
            for k, parameter in enumerate(type.parameters):
                if pull.body is None or pull.parameters[k].uses:
                    residuals.append(ResidualPlace(ResidualSource.ARGUMENT, k))
                    given.append(b.argument(parameter))
                else:
                    given.append(_zero(b, parameter))
        cotangents = {k: b.argument(type.results[k]) for k in seeds}
        every = [cotangents.get(k) or _zero(b, result) for k, result in enumerate(type.results)]
        found = b.emit_many(Apply(pull.name, pull.type), [*given, *every])
        b.emit_many(Return(), [found[k] for k in gradients])
        backward = self._add(f"{key.name}_bwd", b, function)
        return Pullback(forward, backward, tuple(residuals), seeds, gradients)

    def pushing(self, function: Function) -> Function:
        """What takes the arguments and a tangent of each, and returns those of the results."""
        if function.name in self._pushing:
            return self._pushing[function.name]
        rules = function.rules
        if rules.jvp is not None:
            self._prepare(function)
            push = self.module.functions[rules.jvp]
        else:
            push = self._transpose(
                function, self._pull(function), function.type.results, function.type.parameters
            )
        return self._pushing.setdefault(function.name, push)

    def _pull(self, function: Function) -> Function:
        """What takes the arguments and a cotangent of each result, and returns those of the arguments."""
        if function.name in self._pulling:
            return self._pulling[function.name]
        rules = function.rules
        if rules.vjp is None:
            push = self.pushing(function)
            parameters, results = function.type.parameters, function.type.results
            pull = self._transpose(function, push, parameters, results)
        else:
            self._prepare(function)
            pull = self.module.functions[rules.vjp]
            if rules.saving is not None:
                pull = self._saving_nothing(function, self.module.functions[rules.saving], pull)
        return self._pulling.setdefault(function.name, pull)

    def _prepare(self, function: Function) -> None:
        """Give what the rules of `function` need bodies, unless that is being done: then they are called by name."""
        if function.name not in self._prepared:
            self._prepared.add(function.name)
            self.define(function.rules.names)

    def _saving_nothing(self, function: Function, saving: Function, pull: Function) -> Function:
        """The way back from the arguments alone."""
        b = Builder(Block(name="entry"), function.location)
        xs = [b.argument(type) for type in function.type.parameters]
        cts = [b.argument(type) for type in function.type.results]
        saved = b.emit_many(Apply(saving.name, saving.type), xs)[len(cts) :]
        b.emit_many(Return(), b.emit_many(Apply(pull.name, pull.type), [*saved, *cts]))
        return self._add(f"{function.name}_pull", b, function)

    def _transpose(
        self, function: Function, linear: Function, given: Sequence[Type], found: Sequence[Type]
    ) -> Function:
        """The transpose of a rule, `linear` in the last of its parameters, which are of types `given`.

        It takes the arguments of `function`, and values of the types `found`, which are those of the results.
        """
        if function.name in self._transposed:
            raise _located(
                DifferentiationError(
                    f"the {_kind(function)} of {written('@', function.name)} calls {written('@', function.name)} "
                    f"with {'tangents' if function.rules.jvp else 'cotangents'}: it cannot be transposed without "
                    f"its transpose, so give a {'vjp' if function.rules.jvp else 'jvp'}, too"
                ),
                function,
                linear,
            )
        self._transposed.add(function.name)
        count = len(linear.type.parameters) - len(given)
        moving = tuple(count + k for k, type in enumerate(given) if _has_float(type))
        sources = tuple(k for k, type in enumerate(linear.type.results) if _has_float(type))
        b = Builder(Block(name="entry"), function.location)
        xs = [b.argument(type) for type in function.type.parameters]
        cts = [b.argument(type) for type in found]
        returned = [_zero(b, type) for type in given]
        if moving and sources:
            transpose = self._declare(linear, sources, moving)
            self._check_linear(function, linear, transpose, moving)
            zeros = list(returned)
            seeds = [ct for ct in cts if _has_float(ct.type)]
            ways = b.emit_many(Apply(transpose.name, transpose.type), [*xs, *zeros, *seeds])
            for k, way in zip(moving, ways, strict=True):
                returned[k - count] = way
        b.emit_many(Return(), returned)
        return self._add(f"{linear.name}_transpose", b, function)

    def _declare(
        self, linear: Function, sources: tuple[int, ...], wrt: tuple[int, ...]
    ) -> Function:
        declaration = GradientOf(linear.name, sources, wrt, seedable=True)
        type = derivative_type(linear.type, declaration)
        name = self.module.fresh_name(f"{linear.name}_grad")
        declared = self.module.add(Function(name, type, declaration=declaration))
        self.define([name])
        return declared

    def _check_linear(
        self, function: Function, linear: Function, transpose: Function, moving: Sequence[int]
    ) -> None:
        """Raises: DifferentiationError when the transpose depends on what the rule is to be linear in."""
        depends = 0
        for mask in self.activity.of_results(transpose.name):
            depends |= mask
        if any(depends >> k & 1 for k in moving):
            kind = "tangents" if function.rules.jvp is not None else "cotangents"
            raise _located(
                DifferentiationError(
                    f"the {_kind(function)} of {written('@', function.name)} is not linear in its {kind}, so that "
                    "the other mode does not follow from it"
                ),
                function,
                linear,
            )

    def _add(self, name: str, b: Builder, function: Function) -> Function:
        """A function made of `function`; what is not to be saved of this is not to be saved of that."""
        returned = b.block.terminator.operands
        parameters = tuple(argument.type for argument in b.block.arguments)
        type = FunctionType(parameters, one_or_tuple([x.type for x in returned]))
        made = Function(
            self.module.fresh_name(name),
            type,
            Region([b.block]),
            attributes=without_donations(function.attributes),
            location=function.location,
            made_from=function.made_from or function.name,
        )
        return self.module.add(made)


def kept_without_rules(module: Module) -> list[str]:
    """The functions that stay when derivatives are made: all but those that only rules need.

    These are reached from what nobody calls, and nobody has as a rule, without going by rules.
    """
    functions = module.functions
    rules = {name for f in functions.values() for name in f.rules.names}
    if not rules:
        return list(functions)
    inner: set[str] = set()
    roots: list[str] = []
    for names in reversed(list(cycles_callees_first(module, symbols))):
        if inner.isdisjoint(names):
            roots += [name for name in names if name not in rules]
        inner.update(used for name in names for used in symbols(functions[name]))
    needed = reachable(module, roots, rules=False)
    return [name for name in functions if name in needed]


def drop_rules(module: Module) -> bool:
    """Leave no function with rules: nothing is left to differentiate; whether there was any."""
    ruled = [function for function in module.functions.values() if function.rules]
    for function in ruled:
        function.rules = NO_RULES
    return bool(ruled)


def _located(error: DifferentiationError, function: Function, linear: Function) -> Exception:
    return located(error, function.rules.location or linear.location or function.location)


def _kind(function: Function) -> str:
    return "jvp" if function.rules.jvp is not None else "vjp"


def _has_float(type: Type) -> bool:
    return isinstance(type, TensorType) and can_move(type)


def _zero(b: Builder, type: Type) -> Value:
    if not isinstance(type, TensorType):
        raise UnsupportedError(
            f"a function with rules of its derivatives takes or returns a {type}"
        )
    return constant(b, type, 0)
