"""Reverse mode: fills in the bodies of all derivative declarations of a module.

    [gradient @f wrt 0 keeping 0]                    func @f_grad: (T) -> (T, U) {
    func @f_grad: (T) -> (T, U)          becomes     'entry(%x: T):
                                                         forward half of @f, as far as it is needed
                                                         reverse sweep, from a seed of ones
                                                         return derivatives and kept results

1. Declarations come in order of dependence, so the gradient of a gradient finds its primal filled.
2. What another declaration differentiates again is simplified as soon as it has its body, and its own gradient
   by one number is taken forward (`core.autodiff.higher_order`).
3. Calls in an active place are differentiated through functions that all of the module share; they are
   made on demand, by generators on an explicit stack, so no depth of calls is too deep.  One that is asked for
   while it is being made calls itself.
4. A function with rules of its own is differentiated by these (`core.autodiff.custom_rules`).
5. Last, `stopGradient` and `straightThrough` have done their work and go, and so do functions that ended up unused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import InitVar, dataclass, field
from itertools import islice
from typing import TypeAlias

from ..analysis import Effects
from ..analysis.call_graph import reachable
from ..analysis.derivatives import DerivativeRequest, resolve_declared
from ..analysis.effects import KEPT
from ..analysis.liveness import backward_slice
from ..analysis.pointer_bases import leads_to_memory
from ..batching.batch import Batching
from ..ir import BatchOf, Block, Builder, Function, GradientOf, Module, Region, TangentOf, Value
from ..ir.loop_schedules import schedule_of
from ..ir.surgery import walk, walk_blocks
from ..ops.enums import Payload
from ..ops.literal import constant
from ..ops.stop_gradient import IDENTITIES
from ..ops.terminators import Return
from ..types import TensorType, Type
from .activity import Activity, mask_of, members, straight_line
from .cotangent_arithmetic import CotangentArithmetic
from .custom_rules import RuleDerivatives, drop_rules, kept_without_rules
from .declaration_order import declarations_in_order, refuse_cycle
from .forward import Forward
from .higher_order import DerivativeOrders, prefers_forward_mode
from .linearize import Linearizing, Seeds, linearize
from .linearized import Linearized, Sweep
from .pullback import Pullback, PullbackKey
from .recomputation import Recomputation
from .residuals import ResidualSplitter
from .symmetric import SymmetricPullbacks, caller_of
from .tangent_types import TangentTypes
from .tapes import Tapes

SimplifyFunction: TypeAlias = "Callable[[Sequence[Function]], object]"
"""Makes functions that are about to be differentiated again smaller, without changing what they do."""


def differentiate(
    module: Module, effects: Effects | None = None, simplify: SimplifyFunction | None = None
) -> bool:
    """Give every declaration of a gradient, tangent or batch in `module` its body.

    `effects` are those of the module as it is, if they are known.  Whether anything changed.
    `simplify` is called with what is a derivative and differentiated again; without it sizes grow as powers of
    the order.
    Requires: straight-line functions of stage raw or optimizable.  Functions that are not declarations
    keep their meaning and their instructions, but for those.
    Cost: linear in the size of the functions, once per set of needs of their callers.
    Raises: DifferentiationError for a wrong declaration or an op without derivative; UnsupportedError
        when a derivative depends on itself, or derivatives of derivatives become too large.
    """
    given = kept_without_rules(module)
    count = len(module.functions)
    work = _Differentiator(module, effects or Effects(module), simplify)
    work.define_all(given)
    erased = [function for function in module.functions.values() if _erase_stops(function)]
    dropped = drop_rules(module)
    is_changed = bool(work.orders.declared or erased or dropped)
    for name in set(module.functions) - reachable(module, given):
        del module.functions[name]
    return is_changed or len(module.functions) != count


@dataclass
class _Differentiator:
    """Fills declarations of `module`; pullbacks are remembered by their signature."""

    module: Module
    effects: InitVar[Effects]
    simplify: SimplifyFunction | None
    pullbacks: dict[PullbackKey, Pullback] = field(default_factory=dict[PullbackKey, Pullback])
    gradients: dict[str, tuple[Function, DerivativeRequest]] = field(
        default_factory=dict[str, "tuple[Function, DerivativeRequest]"]
    )
    """The gradients that have got bodies, with what they are of."""
    defining: list[str] = field(default_factory=list[str])
    """The declarations that are being given bodies: rules of derivatives may need others first."""

    def __post_init__(self, effects: Effects) -> None:
        self.activity = Activity(self.module)
        self.tapes = Tapes(self.module)
        self.batching = Batching(self.module, self.define_derivative)
        names = self.module.functions
        self.rules = RuleDerivatives(self.module, self.activity, self.define_for_rules)
        effectful = {n for n in names if effects.of_function(n) & KEPT}
        types = TangentTypes(self.module)
        self.arithmetic = CotangentArithmetic(types)
        self.forward = Forward(
            self.module, self.activity, types, rules=self.rules, effectful=effectful
        )
        self.orders = DerivativeOrders(self.module)
        self.again = Recomputation(self.module)
        self.cutter = ResidualSplitter(self.module, self.again, types, effectful)

    def define_for_rules(self, roots: Sequence[str]) -> None:
        """The same for what rules of derivatives need, which is differentiated again with their functions."""
        self.orders.again.update(roots)
        self.define_all(roots)

    def define_all(self, roots: Sequence[str]) -> None:
        """Give the declarations that the functions `roots` need their bodies."""
        declared = declarations_in_order(self.module, roots)
        self.orders.expect(declared)
        for function in declared:
            if function.body is not None:
                continue  # as a rule of one before needed it
            if function.name in self.defining:
                start = self.defining.index(function.name)
                refuse_cycle([*self.defining[start:], function.name])
            self.defining.append(function.name)
            declaration = function.declaration
            assert isinstance(declaration, GradientOf | TangentOf | BatchOf)
            before = len(self.module.functions)
            if isinstance(declaration, BatchOf):
                self.batching.define(function)
                self.rules.derived(function, declaration.primal)
            else:
                self.define_derivative(function, self.orders.of(declaration.primal))
            made = [function, *islice(self.module.functions.values(), before, None)]
            self.orders.add(function, declaration, made)
            if function.name in self.orders.again:
                if self.simplify is not None:
                    self.simplify(made)
                self.orders.settle(function, declaration.primal, made)
            self.defining.pop()

    def define_derivative(self, function: Function, order: int = 0) -> None:
        """Give the declaration `function`, a gradient or tangent, its body."""
        declaration = function.declaration
        assert isinstance(declaration, GradientOf | TangentOf)
        self.rules.derived(function, declaration.primal)
        if isinstance(declaration, TangentOf):
            self.forward.define(function)
        else:
            self.define(function, order)
        self.batching.derivatives[function.name] = declaration

    def define(self, function: Function, order: int = 0) -> None:
        """Give the declaration `function` its body; `order` is how often its primal is a derivative."""
        assert isinstance(function.declaration, GradientOf)
        primal = self.module.functions[function.declaration.primal]
        straight_line(primal)
        names = [parameter.name for parameter in primal.parameters]
        request = resolve_declared(primal.type, function, names)
        self.gradients[function.name] = primal, request
        save = function.declaration.save
        if order and save is None and not primal.rules and prefers_forward_mode(primal, request):
            self.forward.define_gradient(function, request)
            return
        given = zip(request.given(primal.type), request.given_names(names), strict=True)
        seeds = [Value(type, name) for type, name in given if not leads_to_memory(type)]
        cotangents = _seeds_or_ones(request.sources, primal.type.results, seeds)
        is_scheduled = schedule_of(primal.attributes) is not None
        is_called = save is not None or is_scheduled or bool(primal.rules)
        if is_called or self._is_differentiated_forward(primal.name):
            primal = caller_of(primal)
        wanted = mask_of(request.wrt)
        work = self._run(
            linearize(
                primal,
                wanted,
                cotangents,
                self.activity,
                self.tapes,
                self.arithmetic,
                callees_save=save,
            )
        )
        block = _joined(work, request, seeds, self.cutter.effectful)
        function.body = Region([block])
        function.declaration = None
        work.drop_all_but(function)

    def _run(self, root: Linearizing) -> Linearized:
        """Run `root` and the sweeps it asks for, which may ask for more, on an explicit stack."""
        stack: list[tuple[PullbackKey | None, Linearizing | Sweep]] = [(None, root)]
        answer: Pullback | None = None
        while True:
            signature, sweep = stack[-1]
            try:
                needed = sweep.send(answer)
            except StopIteration as finished:
                stack.pop()
                done: Linearized | None = finished.value
                if not stack:
                    assert done is not None
                    return done
                if signature is not None:
                    assert done is not None
                    answer = self.pullbacks[signature] = self.cutter.cut(signature, done)
                else:
                    answer = None
            else:
                if not isinstance(needed, PullbackKey):
                    stack.append((None, needed))
                    answer = None
                    continue
                answer = self.pullbacks.get(needed)
                if answer is None and self.module.functions[needed.name].rules:
                    answer = self.pullbacks[needed] = self.rules.pullback(needed)
                elif answer is None and any(key == needed for key, _ in stack):
                    answer = self.cutter.recursive(needed)
                elif answer is None and self._is_differentiated_forward(needed.name):
                    answer = self.pullbacks[needed] = self._symmetric(needed)
                elif answer is None:
                    stack.append((needed, self._sweep(needed)))

    def _symmetric(self, key: PullbackKey) -> Pullback:
        """The pullback of a gradient or pushforward that is differentiated forward."""
        symmetric = SymmetricPullbacks(self.module, self.forward, self.define, self.again)
        pushed = self.forward.primal_of(key.name)
        if pushed is not None:
            return symmetric.of_pushforward(key, *pushed)
        return symmetric.of_gradient(key, *self.gradients[key.name])

    def _is_differentiated_forward(self, name: str) -> bool:
        """Whether `@name` is a gradient that may read a tape, or reverse a loop by a schedule, or calls what does.

        And the pushforward of such a one.  Not if rules have a part in it: these may be the derivative of nothing, and
        then no derivative of them is symmetric.  Nor if it takes memory, which may
        have changed when it is called again.
        """
        pushed = self.forward.primal_of(name)
        if pushed is not None:
            return self._is_differentiated_forward(pushed[0].name)
        if name not in self.gradients or self.rules.is_derived(name):
            return False
        if any(map(leads_to_memory, self.module.functions[name].type.parameters)):
            return False
        needed = [self.module.functions[called] for called in reachable(self.module, [name])]
        if any(schedule_of(function.attributes) is not None for function in needed):
            return True
        bodies = (function.body for function in needed if function.body is not None)
        return any(isinstance(i.op, Payload) for body in bodies for i in walk(body))

    def _sweep(self, signature: PullbackKey) -> Linearizing:
        function = self.module.functions[signature.name]
        is_half = (
            signature.name in self.cutter.halves
        )  # its loops are those that a schedule is made of
        return linearize(
            function,
            signature.wanted,
            self._parameters(signature, function),
            self.activity,
            self.tapes,
            self.arithmetic,
            save=signature.save,
            callees_save="all" if isinstance(signature.save, int) else signature.save,
            schedule=None if is_half else schedule_of(function.attributes),
        )

    def _parameters(self, signature: PullbackKey, function: Function) -> Seeds:
        """Cotangents that are parameters of a backward function."""

        def emit(b: Builder) -> dict[int, Value]:
            types, results = self.arithmetic.types, function.type.results
            return {k: b.argument(types.known(results[k])) for k in members(signature.seeded)}

        return emit


def _seeds_or_ones(
    sources: Sequence[int], results: Sequence[Type], seeds: Sequence[Value]
) -> Seeds:
    """Cotangents of `sources`, which are among `results`: the `seeds`, or ones where there are none."""

    def emit(b: Builder) -> dict[int, Value]:
        return dict(
            zip(sources, seeds or [_filled(b, results[k], 1) for k in sources], strict=True)
        )

    return emit


def _joined(
    work: Linearized, request: DerivativeRequest, seeds: Sequence[Value], effectful: Set[str]
) -> Block:
    """Both halves in one block, without what its results do not need."""
    copy, b = work.copy, work.backward
    arguments = copy.arguments
    outputs = [
        work.adjoints[arguments[k]] or _filled(b, arguments[k].type, 0) for k in request.returned
    ]
    outputs += [copy.results[k] for k in request.keeping]
    backward, used = backward_slice(b.block.instructions, outputs)
    forward, _ = backward_slice(work.forward(used), used, effectful)
    shadows = dict(zip(sorted(request.shadowed), b.block.arguments, strict=True))
    taken = [*arguments, *seeds, *(shadows[k] for k in request.shadowed)]
    joined = Builder(Block(taken, [*forward, *backward], "entry"))
    joined.emit_many(Return(), outputs)
    return joined.block


def _filled(b: Builder, type: Type, number: int) -> Value:
    assert isinstance(type, TensorType)
    return constant(b, type, number)


def _erase_stops(function: Function) -> bool:
    """Replace every `stopGradient` and `straightThrough` by its value; whether there was any."""
    if function.body is None:
        return False
    erased = False
    for block in walk_blocks(function.body):
        stops = {i for i in block.instructions if isinstance(i.op, IDENTITIES)}
        if stops:
            erased = True
            old, block.instructions = block.instructions, []
            for instruction in old:
                if instruction in stops:
                    instruction.result.replace_all_uses_with(instruction.operands[0])
                    instruction.erase()
                else:
                    block.instructions.append(instruction)
    return erased
