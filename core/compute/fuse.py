"""Fusion: inlines producers into consumers, and joins nests over the same domain.

In program order, each nest
1. joins a cluster that computes an operand of it point by point, or reads the same operand at the same
   points, the one to which it adds least: what both compute is computed once;
2. else starts a cluster of its own;
3. and computes an operand itself, in place of reading it, where the producer writes every element from a
   point of its own and this costs no more than storing and loading (`cost`): slices, transposes, and
   broadcasts move into the index maps, and what nobody reads any more is not stored.

Joining keeps the order of the program: everything a nest reads from other clusters must come before the one
it joins, or nobody has read from that one yet, so that it may move down.  Library ops keep their order among
each other, and with it effects: nests have none.

Each value is looked at once per use and no body grows beyond `LARGEST_BODY`, so the time is linear in the
length of the program.  Bodies of structured ops are fused by themselves; the op is a library op to its block.
Source: XLA's multi-output fusion; Halide's inlining of pure stages (Ragan-Kelley et al. 2013).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import field
from typing import TypeVar

from ..analysis import Effects
from ..errors import InternalError
from ..ir import Function, Instruction, Module, Stage, Value
from ..lazy_dataclass import dataclass
from ..ops.literal import Literal, splat_literal
from ..ops.nest import Affine, Bounds, Index, coordinate
from ..types import F64, scalar
from .address import is_inside
from .block_uses import BlockUses, collect_block_uses, is_library
from .bodies import base_of, bodies_of
from .cluster import Cluster, ClusterOutput
from .emit_clusters import emit_clusters
from .fusion_bounds import may_fuse_out_of_bounds
from .fusion_cost import STORE, cost_of, traffic
from .normalized_nest import Axes, NestRead, NormalizedNest, body_scalars, index_in_cluster
from .scalars import Computed, Read, Scalar, ScalarIndex, ScalarPool, Substitution, reachable

LARGEST_BODY = 200
"""Scalars in one nest, reads included: longer chains are cut, which bounds registers and compile time.

40 sines in a row take the same time with 50 to 1000. 200 multiply-adds, each waiting for the one before, take 1.3 times
as long with 400, and half as long with 50; but what is cut is stored, which costs where the values do not fit a cache.
"""

_AGAIN = 2
"""How many times as much as storing and loading a value may cost what several clusters compute for it, in f32. The
gradient of cross-entropy stores the exponentials of a row with 1, and takes 1.08 times as long."""

_AGAIN_OF_F64 = 1
"""The same in f64, whose polynomials have twice as many terms, and whose quotients take twice as long: with 2, the
Jacobian of bundle adjustment computes a sine, a root and nine quotients twice, and takes 1.3 times as long."""

_READERS = 4
"""The latest clusters that read a value and are considered for joining: 1 to 16 give the benchmarks the same code."""

_CANDIDATES = 4
"""Clusters considered in all, each for a walk over the body: 2 to 16 give the same code; with the latest alone, tanh(xᵀ
+ 1) · sigmoid(x) takes 3 to 9 % longer."""

_Known = TypeVar("_Known")


def fuse(module: Module) -> None:
    """Fuse the nests of every function of a module in stage compute."""
    if module.stage is not Stage.COMPUTE:
        raise InternalError(f"a module in stage {module.stage.value} has no nests to fuse")
    effects = Effects(module)
    for function in module.functions.values():
        if function.body is not None:
            _fuse_function(function, effects)


def _fuse_function(function: Function, effects: Effects) -> None:
    # outer before inner: the effects of bodies are those of their instructions as they were
    for body in bodies_of(function):
        program = _BlockFusion(collect_block_uses(body.block))
        for instruction in body.block.instructions:
            program.place(instruction)
        ending = program.uses.ending
        emit_clusters(body.block, program.clusters, program.libraries, ending, effects)


@dataclass(frozen=True)
class _FusionCandidate:
    """A nest as it would be computed in a cluster; `axes` maps the nest's coordinates to the cluster's."""

    normalized: NormalizedNest
    axes: tuple[Affine, ...]
    roots: list[Scalar]
    indices: list[tuple[ScalarIndex, ...]]
    """Of each result, in the cluster's coordinates."""
    inits: list[Read | None]
    """What each result reads of the tensor that it updates."""
    new: list[Scalar]
    """The scalars that the cluster does not have yet."""


@dataclass
class _BlockFusion:
    """Fuses one block: its clusters and library ops so far."""

    uses: BlockUses
    pool: ScalarPool = field(default_factory=ScalarPool)
    clusters: list[Cluster] = field(default_factory=list[Cluster])
    libraries: list[tuple[int, Instruction]] = field(default_factory=list[tuple[int, Instruction]])
    written: dict[Value, tuple[Cluster, ClusterOutput]] = field(
        default_factory=dict[Value, tuple[Cluster, ClusterOutput]]
    )
    made_at: dict[Value, int] = field(default_factory=dict[Value, int])
    """The position of the library op that makes a value."""
    readers: dict[Value, list[tuple[Cluster, Axes]]] = field(
        default_factory=dict[Value, list[tuple[Cluster, Axes]]]
    )
    """Clusters that read a value all over, and the coordinate that each of its axes has there."""
    homes: dict[Scalar, list[Cluster]] = field(default_factory=dict[Scalar, list[Cluster]])
    """Clusters that compute what is written elementwise: that of the result, and those it is inlined to."""
    read: set[Value] = field(default_factory=set[Value])
    """What some cluster or library op reads from memory so far."""
    updated: set[Value] = field(default_factory=set[Value])
    """The bases that nests have updated so far: who reads them afterwards has them copied, so no read moves there."""
    computing: dict[Scalar, list[Cluster]] = field(default_factory=dict[Scalar, list[Cluster]])
    """The clusters that compute a scalar."""
    costs: dict[Scalar, float] = field(default_factory=dict[Scalar, float])
    position: int = 0

    def place(self, instruction: Instruction) -> None:
        """Add a nest to a cluster, or give a library op its position."""
        normalized = self.uses.nests.get(instruction)
        if normalized is not None:
            self._place_nest(normalized)
        elif is_library(instruction):
            for operand in instruction.operands:
                self._mark_read(base_of(operand))
            position = self._next()
            self.libraries.append((position, instruction))
            self.made_at.update((result, position) for result in instruction.results)

    def _place_nest(self, normalized: NormalizedNest) -> None:
        found = [
            (cluster, attempt)
            for cluster, axes in self._candidates(normalized)
            if (attempt := self._attempt(normalized, cluster, axes)) is not None
            and self._may_join(attempt, cluster)
        ]
        if found:
            cluster, attempt = min(found, key=lambda pair: self._burden(pair[1]))
            self._add(attempt, cluster)
            return
        cluster = Cluster(normalized.extents, self._next(), normalized.is_plain)
        self.clusters.append(cluster)
        own = tuple(coordinate(axis) for axis in range(len(normalized.extents)))
        alone = self._attempt(normalized, cluster, own)
        if alone is None:
            raise InternalError("a nest cannot be computed by itself")
        self._add(alone, cluster)

    # Which cluster.

    def _candidates(self, normalized: NormalizedNest) -> list[tuple[Cluster, tuple[Affine, ...]]]:
        """Clusters that share an operand or its producer, the latest first."""
        found: dict[tuple[Cluster, tuple[Affine, ...]], None] = {}
        for request in normalized.requests if normalized.is_plain else ():
            if request.bounds is not Bounds.INSIDE or request.axes is None:
                continue
            known = self.written.get(request.source)
            if known is not None and known[1].is_elementwise:
                for cluster in self.homes.get(known[1].root, ()):
                    _match(found, normalized, request.axes, cluster, known[1].axes)
            for cluster, axes in self.readers.get(request.source, ()):
                _match(found, normalized, request.axes, cluster, axes)
        return sorted(found, key=lambda candidate: -candidate[0].sequence)[:_CANDIDATES]

    def _burden(self, attempt: _FusionCandidate) -> float:
        """The cost of joining: scalars added to the cluster, and tensors that other clusters must store for it."""
        reads = [part for part in attempt.new if isinstance(part, Read)]
        stored = sum(self._owner(read.source) is not None for read in reads)
        return len(attempt.new) + STORE * stored

    def _may_join(self, attempt: _FusionCandidate, cluster: Cluster) -> bool:
        """Whether the attempt fits `cluster`, and everything it reads comes before."""
        summed = _mapped(attempt.normalized.summed, attempt.axes)
        if summed is not None and cluster.summed not in (None, summed):
            return False
        if len(cluster.parts) + len(attempt.new) > LARGEST_BODY:
            return False
        if self._moves_down(attempt, cluster) and self._reads_any(cluster.parts, self.updated):
            return False
        for read in attempt.new:
            if isinstance(read, Read):
                owner = self._owner(read.source)
                if owner is cluster or (cluster.is_read and self._made(read) > cluster.sequence):
                    return False
        return True

    def _moves_down(self, attempt: _FusionCandidate, cluster: Cluster) -> bool:
        """Whether the cluster would come after all others with the attempt in it."""
        return any(
            isinstance(part, Read) and self._made(part) > cluster.sequence for part in attempt.new
        )

    def _reads_any(self, parts: Iterable[Scalar], bases: AbstractSet[Value]) -> bool:
        return bool(bases) and any(
            isinstance(part, Read) and base_of(part.source) in bases for part in parts
        )

    def _owner(self, value: Value) -> Cluster | None:
        known = self.written.get(base_of(value))
        return known[0] if known is not None else None

    def _made(self, read: Read) -> int:
        """The position of the producer of a read; −1 for parameters and literals."""
        owner = self._owner(read.source)
        return owner.sequence if owner else self.made_at.get(base_of(read.source), -1)

    def _add(self, attempt: _FusionCandidate, cluster: Cluster) -> None:
        normalized = attempt.normalized
        new_reads = [part for part in attempt.new if isinstance(part, Read)]
        if self._moves_down(attempt, cluster):
            cluster.sequence = self._next()
        cluster.parts.update(attempt.new)
        for part in attempt.new:
            if isinstance(part, Computed):
                self.computing.setdefault(part, []).append(cluster)
        cluster.location = normalized.instruction.location
        cluster.summed = cluster.summed or _mapped(normalized.summed, attempt.axes)
        for part in attempt.new:
            if part in self.homes:
                _keep_last(self.homes[part], cluster)
        for read in new_reads:
            self._mark_read(base_of(read.source))
            axes = _plain_axes(read) if cluster.is_open else None
            if axes is not None:
                _keep_last(self.readers.setdefault(read.source, []), (cluster, axes))
        self.updated |= normalized.updated
        for result, root, indices, init in zip(
            normalized.results, attempt.roots, attempt.indices, attempt.inits, strict=True
        ):
            axes = result.axes and tuple(
                None if axis is None else attempt.axes[axis].axis for axis in result.axes
            )
            made = ClusterOutput(
                result.value, root, indices, result.combinator, result.bounds, axes, init
            )
            cluster.results.append(made)
            self.written[result.value] = cluster, made
            if made.is_elementwise:
                self.homes.setdefault(root, [cluster])

    def _mark_read(self, value: Value) -> None:
        self.read.add(value)
        known = self.written.get(value)
        if known is not None:
            known[0].is_read = True

    def _next(self) -> int:
        self.position += 1
        return self.position

    # What the nest computes there.

    def _attempt(
        self, normalized: NormalizedNest, cluster: Cluster, axes: tuple[Affine, ...]
    ) -> _FusionCandidate | None:
        """The nest in the coordinates of `cluster`; None when it needs results of it complete."""
        reads: list[Scalar] = []
        room, pinned = LARGEST_BODY - normalized.size, normalized.pinned
        kept = {result.init for result in normalized.results}
        updated = self.updated | normalized.updated
        for number, request in enumerate(normalized.requests):
            places = _places(request.indices, axes, reads)
            found = None if number in kept else self._shared(request, cluster, places)
            if found is None and number not in kept:
                found = self._inlined(request, cluster, places, room)
                if found is not None and self._reads_any(self.pool.parts(found), updated):
                    found = None
                room -= 0 if found is None else len(self.pool.parts(found))
            if number in pinned and not isinstance(found, Read):
                found = None
            if found is None and self._owner(request.source) is cluster:
                return None
            reads.append(found or self.pool.read(request.source, places, request.bounds))
        roots = body_scalars(self.pool, normalized, axes, reads)
        indices = [_places(result.indices, axes, reads) for result in normalized.results]
        inits = [None if r.init is None else _read(reads[r.init]) for r in normalized.results]
        needed = [*roots, *(i for each in indices for i in each if isinstance(i, Read))]
        needed += [init for init in inits if init is not None]
        new = reachable(needed, stop=cluster.parts)
        return _FusionCandidate(normalized, axes, roots, indices, inits, new)

    def _shared(
        self, request: NestRead, cluster: Cluster, places: tuple[ScalarIndex, ...]
    ) -> Scalar | None:
        """What the cluster has computed itself at this very point, or a constant."""
        if request.bounds is not Bounds.INSIDE:
            return None
        literal = splat_literal(request.source)
        if literal is not None:
            one = Literal(scalar(literal.type.dtype), literal.data)
            return self.pool.computed(one, ())
        _, made = self.written.get(request.source, (None, None))
        if made is None or not made.is_elementwise or made.root not in cluster.parts:
            return None
        return made.root if places == _coordinates(made.axes or ()) else None

    def _inlined(
        self,
        request: NestRead,
        cluster: Cluster,
        places: tuple[ScalarIndex, ...],
        room: int,
    ) -> Scalar | None:
        """The producer's expression at the read's indices, if inlining it is legal and cheaper than loading."""
        owner, made = self.written.get(request.source, (None, None))
        if owner is None or made is None or not made.is_elementwise:
            return None
        pays = self._pays(request.source, owner, made.root)
        root = self._by_stored(request.source, owner, made.root, pays=pays)
        if root is None:
            return None
        parts = self.pool.parts(root)
        if len(parts) > room:
            return None
        found: list[ScalarIndex] = [Affine()] * len(owner.extents)
        unsafe: set[int] = set()
        extents = request.source.tensor.shape
        for place, axis, extent in zip(places, made.axes or (), extents, strict=True):
            inside = request.bounds is Bounds.INSIDE or (
                isinstance(place, Affine) and is_inside(place, extent, cluster.extents)
            )
            if axis is None and not inside:
                return None
            if axis is not None:
                found[axis] = place
                unsafe.update(() if inside else (axis,))
        axes = Substitution(tuple(found), frozenset(unsafe), request.bounds)
        domain = cluster.extents
        if unsafe and not may_fuse_out_of_bounds(root, parts, axes, owner.extents, domain):
            return None
        result = self.pool.substitute(root, axes)
        if result is None or self._is_computed_again(request.source, owner, cluster, result):
            return None
        return result

    def _is_computed_again(
        self, value: Value, owner: Cluster, cluster: Cluster, root: Scalar
    ) -> bool:
        """Whether another cluster computes so much of `root` already, in place of its producer, that it is to be stored
        by that, and loaded: much that several clusters need is computed once, or twice."""
        own = {owner, cluster}
        again = sum(
            part.op.cost
            for part in self.pool.parts(root)
            if isinstance(part, Computed)
            and part not in cluster.parts
            and not own.issuperset(self.computing.get(part, ()))
        )
        most = _AGAIN_OF_F64 if value.tensor.dtype is F64 else _AGAIN
        return again > most * sum(traffic(value.tensor.bytes))

    def _pays(self, value: Value, owner: Cluster, root: Scalar) -> bool:
        """Whether computing `root` wherever it is read costs no more than storing and loading it.

        What the producer has to compute anyway, for results that are in memory, is not saved.
        """
        if root not in self.costs:
            self.costs[root] = cost_of(self.pool.parts(root), owner.extents)
        cost, reads = self.costs[root], self.uses.demand.get(value, 0.0)
        load, store = traffic(value.tensor.bytes)
        if self._is_stored(value):
            return cost <= load
        if cost * reads > (cost + store) * value.tensor.size + load * reads:
            return False
        others = [
            w.root for w in owner.results if w.value is not value and self._is_stored(w.value)
        ]
        if not others or cost <= load:
            return True
        computed = set(reachable(others))
        rest = [part for part in self.pool.parts(root) if part not in computed]
        saved = cost_of(rest, owner.extents)
        return cost * reads <= (saved + store) * value.tensor.size + load * reads

    def _by_stored(
        self, value: Value, owner: Cluster, root: Scalar, *, pays: bool
    ) -> Scalar | None:
        """`root` in terms of other results of its cluster, which are stored anyway.

        Where it `pays` to compute `root` itself, only if that is more work and reads no less: y > 0 is computed from
        a y = relu(x + b) that somebody reads, so that x need not be stored for it.  Else, where it costs no more than
        to store and load: 1 − y² of a y = tanh(x).  None where nothing of it pays.
        """
        whole = root if pays else None
        if self._is_stored(value):
            return whole
        inside = set(self.pool.parts(root))
        reads = {
            w.root: self.pool.read(w.value, _coordinates(w.axes or ()), Bounds.INSIDE)
            for w in owner.results
            if w.value is not value and w.is_elementwise and w.root in inside
            if self._is_stored(w.value)
        }
        found = self.pool.replaced(root, reads) if reads else root
        if found is root:
            return whole
        parts, others = self.pool.parts(found), self.pool.parts(root)
        cost = cost_of(parts, owner.extents)
        if pays:
            is_less = cost < cost_of(others, owner.extents)
            return found if is_less and _bytes_read(parts) <= _bytes_read(others) else root
        if _bytes_read(set(parts).intersection(reads.values())) > value.tensor.bytes:
            return None
        count = self.uses.demand.get(value, 0.0)
        load, store = traffic(value.tensor.bytes)
        is_less = cost * count <= (cost + store) * value.tensor.size + load * count
        return found if is_less else None

    def _is_stored(self, value: Value) -> bool:
        return value in self.uses.stored or value in self.read


def _match(
    found: dict[tuple[Cluster, tuple[Affine, ...]], None],
    normalized: NormalizedNest,
    axes: Axes,
    cluster: Cluster,
    others: Axes | None,
) -> None:
    """Note `cluster`, if both see a tensor with all their coordinates, each at an axis of its own."""
    if (
        others is None
        or len(others) != len(axes)
        or len(cluster.extents) != len(normalized.extents)
    ):
        return
    if not cluster.is_open or len(cluster.parts) >= LARGEST_BODY:
        return
    pairs = {a: other for a, other in zip(axes, others, strict=True) if a is not None}
    if len(pairs) != len(normalized.extents) or set(pairs.values()) != set(range(len(pairs))):
        return
    mapped = [pairs[axis] for axis in range(len(pairs))]
    if all(
        other is not None and cluster.extents[other] == extent
        for other, extent in zip(mapped, normalized.extents, strict=True)
    ):
        found[cluster, tuple(coordinate(other) for other in mapped if other is not None)] = None


def _bytes_read(parts: Iterable[Scalar]) -> int:
    """Of the tensors that an expression reads."""
    return sum(x.tensor.bytes for x in {part.source for part in parts if isinstance(part, Read)})


def _read(scalar: Scalar) -> Read:
    assert isinstance(scalar, Read)
    return scalar


def _keep_last(known: list[_Known], new: _Known) -> None:
    known.append(new)
    del known[:-_READERS]


def _plain_axes(read: Read) -> Axes | None:
    indices = tuple(index for index in read.indices if isinstance(index, Affine))
    if len(indices) != len(read.indices) or read.bounds is not Bounds.INSIDE:
        return None
    return NestRead(read.source, indices, read.bounds).axes


def _mapped(axes: frozenset[int] | None, places: Sequence[Affine]) -> frozenset[int] | None:
    if axes is None:
        return None
    return frozenset(found for axis in axes if (found := places[axis].axis) is not None)


def _coordinates(axes: Iterable[int | None]) -> tuple[Affine, ...]:
    return tuple(Affine() if axis is None else coordinate(axis) for axis in axes)


def _places(
    indices: Iterable[Index], axes: Sequence[Affine], reads: Sequence[Scalar]
) -> tuple[ScalarIndex, ...]:
    return tuple(index_in_cluster(index, axes, reads) for index in indices)
