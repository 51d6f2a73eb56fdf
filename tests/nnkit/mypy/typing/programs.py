"""What the plugin makes of types; a line that ends with `# M` and words is flagged with these."""

from collections.abc import Callable
from typing import Any, Generic, Literal, Protocol, TypeVar, assert_type
import nnkit as nk
from nnkit import DType, Dim, Field, Rep, Scalar, Struct, Tensor1D, Tensor2D, Tensor3D, f32

Element = TypeVar("Element", bound=DType)

class Batch(Dim): ...
class In(Dim): ...
class Out(Dim): ...

@nk.staged
def names(x: Rep[Tensor3D[f32, Batch, In, Out]], u: Rep[Tensor2D[f32]], v: Rep[Tensor2D[f32, Batch, In]]) -> Rep[Tensor2D[f32]]:
    assert_type(x.reshape(x.shape[0], -1), Rep[Tensor2D[f32, Batch]])
    assert_type(v.reshape(v.shape[1], -1), Rep[Tensor2D[f32, In, Batch]])
    assert_type(u + v, Rep[Tensor2D[f32, Batch, In]])
    assert_type(nk.concat([v, v], axis=1), Rep[Tensor2D[f32, Batch]])
    assert_type(nk.concat([u, v]), Rep[Tensor2D[f32, Any, In]])
    assert_type(nk.einsum("bi,bj->ij", v, u), Rep[Tensor2D[f32, In]])
    nk.einsum("bi,ij->bj", v, v)  # M: einsum: the axes 'i' are In and Batch
    nk.concat([v, x.sum(axis=0)])  # M: concat joins In and Out on axis 1
    nk.concat([])  # M: concat takes at least one tensor
    f"{u:.2f}"  # M: a Rep has no digits while staging
    f"{u}"
    if u.sum() > 0:  # M: a Rep has no truth value
        pass
    y = u if (u > 0).any() else v  # M: a Rep has no truth value
    return u

def sizes(x: Rep[Tensor2D[f32, Literal[28], Literal[28]]]) -> None:
    assert_type(x.reshape(784), Rep[Tensor1D[f32, Literal[784]]])
    assert_type(x.reshape(14, -1), Rep[Tensor2D[f32, Literal[14], Literal[56]]])
    x.reshape(10, 10)  # M: cannot reshape [28, 28] to [10, 10]

@nk.staged
def keyword(x: Rep[Tensor2D[f32, Batch]], *, n: int, name: str = "") -> tuple[Rep[Tensor2D[f32, Batch]], Rep[Tensor1D[f32]]]:
    return x * float(n), x[0]

@nk.staged(shapes="symbolic")
def partly(x: Rep[Tensor2D[f32, Any, In]], by: Callable[..., Any], rate: float = 1.0) -> Rep[Tensor2D[f32, Any, In]]:
    y: Rep[Tensor2D[f32, Any, In]] = by(x)
    return y * rate

@nk.staged
def plain(x: Rep[Tensor2D[f32, Any, In]], y: Rep[Tensor2D[f32, Any, In]]) -> Rep[Tensor2D[f32, Any, In]]:
    return partly(x, nk.tanh) + partly(y, by=nk.tanh, rate=2.0)

def statics(x: Tensor2D[f32, Batch, In], y: Rep[Tensor2D[f32, Batch]]) -> None:
    assert_type(keyword(y, n=2), Rep[tuple[Tensor2D[f32, Batch], Tensor1D[f32]]])
    assert_type(plain(x, x), Tensor2D[f32, Any, In])
    assert_type(partly(x, nk.tanh, 2.0), Tensor2D[f32, Any, In])
    assert_type(nk.gradient(of=plain, wrt=1), Rep[Callable[[Tensor2D[f32, Any, In], Tensor2D[f32, Any, In]], Tensor2D[f32, Any, In]]])
    1 if nk.vmap(plain) else 2
    keyword(x)  # M: No overload variant
    keyword(x, n=2, m=3)  # M: No overload variant
    keyword(x, n="2")  # M: No overload variant
    partly(x)  # M: No overload variant
    partly(x, nk.tanh, by=nk.tanh)  # M: No overload variant
    partly(y, nk.tanh, rate="a")  # M: No overload variant
    plain(x, y)  # M: No overload variant

def plain_function(x: Rep[Tensor2D[f32]], scale: float = 1.0) -> Rep[Tensor2D[f32]]:
    return nk.tanh(x) * scale

def calls(data: Tensor2D[f32], x: Rep[Tensor2D[f32]]) -> None:
    plain_function(data, 2.0)  # M: Argument 1 to "plain_function"  # N: plain_function takes Reps: decorate it with @nk.staged
    nk.tanh(data)  # M: Argument 1 to "tanh"  # N: tanh is for functions decorated with @nk.staged
    plain_function(x)
    plain_function(x, data)  # M: Argument 2 to "plain_function"

class Params(Struct):
    w: Field[Tensor1D[f32]]
    sum: Field[Tensor1D[f32]]

class Generalised(Struct, Generic[Element]):
    inner: Field[Params]
    scale: Field[Scalar[Element]]

class More(Params):
    more: Field[Tensor1D[f32]]

class HasWeights(Protocol):
    @property
    def w(self) -> Rep[Tensor1D[f32]]: ...

def wants(p: HasWeights) -> None: ...

def fields(p: Rep[Params], q: Rep[Generalised[f32]], m: Rep[More], n: Rep[nk.nn.Linear], x: Rep[Tensor1D[f32]], o: Rep[Params] | None) -> None:
    p.w.sum()  # M: "Rep[Params]" has no attribute "w": write p[Params.w] for p.w
    p.w = x  # M: write p.set(Params.w, value) for p.w
    q.scale  # M: write q[Generalised.scale] for q.scale
    q[Generalised.inner].w  # M: write rep[Params.w] for rep.w
    m.w, m.more  # M: write m[More.more] for m.more
    n.weight  # M: write n[Linear.weight] for n.weight
    o.w  # M: write o[Params.w] for o.w
    x.w  # M: "Rep[Tensor1D[f32, Any]]" has no attribute "w"
    x.vw  # M: "Rep[Tensor1D[f32, Any]]" has no attribute "vw"
    p.sum  # M: Invalid self argument "Rep[Params]"
    wants(p)  # M: Argument 1 to "wants" has incompatible type
    assert_type(p[Params.w], Rep[Tensor1D[f32]])

class Several(More):
    pair: Field[tuple[Tensor1D[f32], Scalar[f32]]]
    inner: Field[More]

def lenses(p: Rep[Several], g: Rep[Several], bias: Rep[Scalar[f32]]) -> None:
    w, _, more, _, inner = nk.fields(Several)
    assert_type(p[w], Rep[Tensor1D[f32]])
    assert_type(p[more], Rep[Tensor1D[f32]])
    assert_type(p[inner], Rep[More])
    assert_type(p[nk.fields(Several)[3]][1], Rep[Scalar[f32]])
    assert_type(p[nk.fields(Several)[-1]], Rep[More])
    w << bias  # M: Unsupported operand types for <<
    one, two = nk.fields(Several)  # M: Too many values to unpack
    nk.build(Several, *(lens << p[lens] - 0.1 * g[lens] for lens in nk.fields(Several)))

def numbers(x: Rep[Scalar[f32]], m: Rep[Tensor2D[f32]], n: int) -> None:
    float(x)  # M: Argument 1 to "float"  # N: a Rep has no value while staging: keep computing with Reps
    2.0 * float(x)  # M: Argument 1 to "float"  # N: a Rep has no value while staging: keep computing with Reps
    int(x)  # M: No overload variant of "int"  # N: a Rep has no value while staging: keep computing with Reps
    complex(x)  # M: No overload variant of "complex"  # N: a Rep has no value while staging: keep computing with Reps
    round(x)  # M: No overload variant of "round"  # N: a Rep is rounded by nk.round(x)
    round(x, 2)  # M: No overload variant of "round"  # N: a Rep is rounded by nk.round(x)
    bool(x)  # M: a Rep has no truth value
    for _ in m:  # M: "_LoopByMapFoldOrScan" has no attribute
        pass
    nk.full((2,), "a", f32)  # M: expected "Sequence[_AShapeThenANumberThenAnElementType]
    int(n), round(2.5), complex(n), bool(n), len(m), int("1", 2)

def literal_sizes(x: Rep[Tensor2D[f32]], n: int) -> None:
    nk.zeros((3,), f32) + nk.zeros((4,), f32)  # M: cannot broadcast [3] and [4]: 3 and 4 differ
    nk.ones((2, 3), f32) * nk.full((3, 2), 1.0, f32)  # M: cannot broadcast [2, 3] and [3, 2]: 3 and 2 differ
    nk.eye(3, dtype=f32) - (nk.zeros((4, 1), f32) + nk.ones((4, 3), f32))  # M: cannot broadcast [3, 3] and [4, 3]: 3 and 4 differ
    x.reshape(n, 3) < nk.ones((n, 4), f32)  # M: cannot broadcast [?, 3] and [?, 4]: 3 and 4 differ
    nk.arange(5, f32) + nk.arange(6, dtype=f32)  # M: cannot broadcast [5] and [6]: 5 and 6 differ
    nk.zeros((3, 1), f32) + nk.zeros((4,), f32) + nk.zeros((n,), f32) + x + nk.arange(n, f32) + x.reshape(-1, 2)
    named: Rep[Tensor2D[f32, Batch, In]] = nk.zeros((2, 3), f32)

def sizes_of_variables(x: Rep[Tensor2D[f32]], more: bool) -> None:
    a = nk.zeros((3,), f32)
    b = nk.zeros((4,), f32)
    a + b  # M: cannot broadcast [3] and [4]: 3 and 4 differ
    w = nk.ones((3, 4), f32) * 2.0
    hidden = nk.tanh(a @ w - b)
    hidden + a  # M: cannot broadcast [4] and [3]: 4 and 3 differ
    w @ a  # M: cannot multiply [3, 4] and [3]: 4 and 3 differ
    w.T @ w + w  # M: cannot broadcast [4, 4] and [3, 4]: 4 and 3 differ
    -w @ w.T + nk.eye(3, dtype=f32)
    v = nk.const(Tensor1D([1.0, 2.0], f32))
    v + b  # M: cannot broadcast [2] and [4]: 2 and 4 differ
    c = nk.zeros((3,), f32)
    if more:
        c = nk.zeros((4,), f32)
    c + b
    d = nk.zeros((3,), f32)
    for d in [b, b]:
        d + b
    e, g = nk.zeros((3,), f32), nk.zeros((4,), f32)
    e + g
    x @ w + a
