"""The examples of docs/functions.md: of each public name one that `docs/generate_functions.py` runs.

An example is an expression of a staged function whose parameters are `PARAMETERS`, or, where its lines begin with
`>>> ` and `... `, a program.  What comes out is printed in the page.  A name whose docstring has a doctest needs none
here, and nor do functions of `nnkit.elementwise`.
"""

from __future__ import annotations

SETTING = """>>> import numpy as np
>>> import nnkit as nk
>>> from nnkit import *
>>> @nk.staged
... def f(x: Rep[Tensor1D[f32]], y: Rep[Tensor1D[f32]]) -> Rep[Scalar[f32]]:
...     return (x * y).sum()
>>> @nk.staged
... def g(x: Rep[Tensor1D[f32]]) -> Rep[Tensor1D[f32]]:
...     return x * x
>>> @nk.staged
... def sine(a: Rep[Scalar[f32]]) -> Rep[Scalar[f32]]:
...     return nk.sin(a)
>>> class Params(Struct):
...     w: Field[Tensor2D[f32]]
...     b: Field[Tensor1D[f32]]
>>> t = Tensor1D([1.0, 2.0, 4.0], f32)
>>> u = Tensor1D([0.5, 0.0, -1.0], f32)
"""
"""What stands before each program."""

PARAMETERS = {
    "x": "np.array([1, 2, 4], np.float32)",
    "y": "np.array([0.5, 0, -1], np.float32)",
    "m": "np.array([[1, 2, 3], [4, 5, 6]], np.float32)",
    "s": "np.array([[4, 2], [2, 3]], np.float32)",
    "i": "np.array([2, 0, 1])",
    "a": "np.float32(0.5)",
}
"""Those of the staged function that the other examples stand in."""

EXAMPLES = {
    # functions of tensors
    "arange": "nk.arange(4, f32)",
    "broadcast_to": "nk.broadcast_to(y, (2, 3))",
    "concat": "nk.concat([x, y])",
    "cumsum": "nk.cumsum(m, axis=1)",
    "flip": "nk.flip(x, axis=0)",
    "full": "nk.full((2, 2), 7.0, f32)",
    "iota": "nk.iota((2, 3), i32, axis=1)",
    "matmul": "nk.matmul(m, x, accumulate=f64)",
    "mean": "nk.mean(m, axis=0)",
    "one_hot": "nk.one_hot(i, 3, f32)",
    "ones": "nk.ones((3,), f32)",
    "ones_like": "nk.ones_like(x)",
    "pad": "nk.pad(x, ((1, 2),))",
    "select": "nk.select(y > 0, x, -x)",
    "stack": "nk.stack([x, y])",
    "stop_gradient": "nk.stop_gradient(x)",
    "take": "nk.take(x, i)",
    "var": "nk.var(m, axis=1)",
    "zeros": "nk.zeros((2, 2), f32)",
    "zeros_like": "nk.zeros_like(m)",
    "cross_entropy": "nk.cross_entropy(m, i[:2])",
    "layer_norm": "nk.layer_norm(m)",
    "log_softmax": "nk.log_softmax(x)",
    "logsumexp": "nk.logsumexp(m, axis=1)",
    "norm": "nk.norm(m, axis=1)",
    "softmax": "nk.softmax(m, axis=0)",
    # values and parts
    "const": "nk.const(f32(2.0)) * x",
    "tup": "nk.tup(x, a).unpack()[1]",
    "build": ">>> nk.fn(Tensor2D[f32], Tensor1D[f32])(lambda w, b: nk.build(Params, Params.w << w, Params.b << b))("
    "np.eye(2, dtype=np.float32), np.ones(2, np.float32))",
    "Rep": "x[0] + 2 * x[-1]",
    "At": "x.at[0].set(9.0)",
    "Part": "x.at[1:].add(10.0)",
    "Ref": ">>> @nk.staged\n... def last_two(x: Rep[Tensor1D[f32]]) -> Rep[Tensor1D[f32]]:\n"
    "...     r = nk.ref(x)\n...     r[0] = x[1]\n...     return r[...]\n>>> last_two(t)",
    "ref": ">>> @nk.staged\n... def doubled(x: Rep[Tensor1D[f32]]) -> Rep[Tensor1D[f32]]:\n"
    "...     r = nk.ref(x)\n...     r[...] = 2 * r[...]\n...     return r[...]\n>>> doubled(t)",
    # staging and control
    "staged": ">>> @nk.staged\n... def distance(x: Rep[Tensor1D[f32]], y: Rep[Tensor1D[f32]]) -> Rep[Scalar[f32]]:\n"
    "...     return nk.norm(x - y)\n>>> distance(t, u)",
    "fn": ">>> nk.fn(Scalar[f32])(lambda a: a * a)(f32(3.0))",
    "cond": "nk.cond(a > 0, lambda: a, lambda: -a)",
    "fix": ">>> nk.fix(lambda fac: nk.fn(Scalar[i64])(lambda n: nk.cond(n == 0, lambda: n + 1, "
    "lambda: n * fac(n - 1))))(i64(5))",
    "fori": "nk.fori(0, 3, lambda i, z: z * 2, x)",
    "while_loop": "nk.while_loop(lambda z: z < 10, lambda z: z * 2, a)",
    "zip": "nk.zip(x, y).fold(a, lambda z, pair: z + pair[0] * pair[1])",
    "zip_with": "nk.zip_with(x, y, lambda p, q: p * q)",
    "Stacked": "x.scan(a, lambda z, e: (z + e, z * e))[1].tensor()",
    "binomial": "nk.fori(0, 10, lambda i, z: nk.sin(z), a, checkpoint=nk.binomial(3))",
    "every_sqrt": "nk.fori(0, 10, lambda i, z: nk.sin(z), a, checkpoint=nk.every_sqrt())",
    "LoopSchedule": ">>> nk.binomial(3)",
    "fixed_point": "nk.fixed_point(nk.cos, a)",
    # derivatives
    "gradient": ">>> nk.gradient(of=f, wrt=(0, 1))(t, u)",
    "gradient_dynamic": ">>> nk.gradient_dynamic(of=f, wrt=[1])(t, u)",
    "value_and_gradient": ">>> nk.value_and_gradient(of=f, wrt=0)(t, u)",
    "jvp": ">>> nk.jvp(g)(t, u)",
    "vjp": ">>> nk.vjp(g)(t, u)",
    "taylor": ">>> nk.taylor(sine, order=3)(f32(0.0), f32(1.0))",
    "hvp": ">>> nk.hvp(nk.fn(Tensor1D[f32])(lambda x: (x * x * x).sum()))(t, u)",
    "jacobian": ">>> nk.jacobian(g)(t)",
    "hessian": ">>> nk.hessian(nk.fn(Tensor1D[f32])(lambda x: (x * x * x).sum()))(t)",
    "split": ">>> halves = nk.split(g)\n"
    ">>> value, residuals = halves.forward(t)\n>>> halves.backward(residuals, u)",
    "Split": ">>> isinstance(nk.split(g), nk.Split)",
    "Halves": ">>> nk.split(g).at(t).forward_signature",
    "MemoryAnalysis": ">>> print(g.memory_analysis(t))",
    "HalfSignature": ">>> nk.split(g).at(t).forward_signature.returns[0].shape",
    "Residual": ">>> [residual.name for residual in nk.split(g).at(t).residuals]",
    "Residuals": ">>> value, residuals = nk.split(g).forward(t)\n>>> [r.shape for r in residuals.numpy()]",
    "Saved": ">>> nk.saved(g, t).total",
    "ValueInfo": ">>> nk.split(g).at(t).forward_signature.expects[0].bytes",
    "saved": ">>> nk.saved(nk.fn(Tensor1D[f32])(nk.exp), t).total",
    "linearize": ">>> value, tangent_of = nk.linearize(g)(t)\n>>> value, tangent_of(u)",
    "LinearMap": ">>> _, tangent_of = nk.linearize(g)(t)\n>>> tangent_of.transpose(u)",
    "Linearization": ">>> isinstance(nk.linearize(g), nk.Linearization)",
    "checkpoint": ">>> nk.gradient(of=nk.checkpoint(sine), wrt=0)(f32(0.0))",
    "differentiate_as": ">>> @nk.differentiate_as(sine)\n"
    "... @nk.staged\n... def steps(a: Rep[Scalar[f32]]) -> Rep[Scalar[f32]]:\n...     return nk.round(a)\n"
    ">>> steps(f32(0.7)), nk.gradient(of=steps, wrt=0)(f32(0.0))",
    "check_gradients": ">>> nk.check_gradients(nk.fn(Scalar[f64])(nk.sin), f64(1.0))  # no error: they are right",
    "donate": ">>> nk.donate(g, 0)(Tensor1D([1.0, 2.0, 4.0], f32))",
    # batches
    "vmap2": ">>> nk.vmap2(f)(Tensor2D([[1.0, 2.0]], f32), Tensor2D([[3.0, 4.0]], f32))",
    "axis_sum": ">>> nk.vmap(nk.fn(Scalar[f32])(lambda a: a / nk.axis_sum(a, 'all')), in_axes=0, axis_name='all')(t)",
    "axis_mean": ">>> nk.vmap(nk.fn(Scalar[f32])(lambda a: a - nk.axis_mean(a, 'all')), in_axes=0, axis_name='all')(t)",
    "axis_max": ">>> nk.vmap(nk.fn(Scalar[f32])(lambda a: a / nk.axis_max(a, 'all')), in_axes=0, axis_name='all')(t)",
    "axis_min": ">>> nk.vmap(nk.fn(Scalar[f32])(lambda a: a - nk.axis_min(a, 'all')), in_axes=0, axis_name='all')(t)",
    # effects, other languages
    "check": ">>> @nk.staged\n... def root(a: Rep[Scalar[f32]]) -> Rep[Scalar[f32]]:\n"
    "...     nk.check(a >= 0, 'a must not be negative')\n...     return nk.sqrt(a)\n>>> root(f32(-1.0))",
    "print": ">>> @nk.staged\n... def shown(a: Rep[Scalar[f32]]) -> Rep[Scalar[f32]]:\n"
    "...     nk.print('a is', a)\n...     return a + 1\n>>> shown(f32(2.0))",
    "callback": ">>> nk.callback(lambda x: np.sort(x), g)(u)",
    "foreign": ">>> import ctypes\n"
    ">>> @ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.POINTER(ctypes.c_float), ctypes.POINTER(ctypes.c_float))\n"
    "... def twice(a, result):\n...     result[0] = 2 * a[0]\n...     return 0\n"
    ">>> nk.foreign(ctypes.cast(twice, ctypes.c_void_p).value, sine)(f32(3.0))",
    # data
    "Spec": ">>> nk.spec((2, 3), f32)",
    "AnyTensor": ">>> isinstance(t, AnyTensor)",
    "Ranked": ">>> isinstance(t, Ranked)",
    "Batched": ">>> isinstance(t, Batched), isinstance(f32(1.0), Batched)",
    "Bool": ">>> bool(boolean(True))",
    "Scalar": ">>> float(f32(0.5))",
    "Tensor0D": ">>> Tensor0D(np.float32(0.5))",
    "Tensor3D": ">>> Tensor3D(np.zeros((2, 3, 4), np.float32)).shape",
    "Tensor4D": ">>> Tensor4D(np.zeros((2, 3, 4, 5), np.float32)).ndim",
    "Tensor5D": ">>> Tensor5D(np.zeros((1, 2, 3, 4, 5), np.float32)).ndim",
    "Dim": ">>> class Batch(Dim): ...\n>>> Tensor2D[f32, Batch]",
    "named": ">>> class Batch(Dim): ...\n>>> nk.named(t, Batch)",
    "Float": ">>> issubclass(f32, Float)",
    "Integer": ">>> issubclass(i64, Integer)",
    "Number": ">>> issubclass(boolean, Number)",
    "Logical": ">>> issubclass(boolean, Logical)",
    "Numpy": ">>> issubclass(bf16, Numpy)",
    "bf16": ">>> bf16(3.14159)",
    "boolean": ">>> boolean(True)",
    "f16": ">>> f16(3.14159)",
    "f32": ">>> f32(3.14159)",
    "f64": ">>> f64(3.14159)",
    "i8": ">>> i8(-128)",
    "i32": ">>> i32(7)",
    "i64": ">>> i64(2**40)",
    "Struct": ">>> Params(np.eye(2, dtype=np.float32), np.ones(2, np.float32)).b",
    "Field": ">>> Params.w",
    "Lens": ">>> isinstance(Params.w, Lens)",
    "Binding": ">>> isinstance(Params.b << nk.const(t), Binding)",
    "fields": ">>> nk.fields(Params)",
    "asdict": ">>> nk.asdict(Params(np.eye(2, dtype=np.float32), np.ones(2, np.float32)))",
    "nn.Linear": """>>> nn.Linear.init(nk.random.key(0), 3, 2).bias""",
    "nn.linear": """>>> p = nn.Linear.init(nk.random.key(0), 3, 2)
>>> apply = nk.fn(nn.Linear, Tensor2D[f32])(lambda p, x: nn.linear(p, x))
>>> apply(p, np.ones((5, 3), np.float32)).shape""",
    "nn.MLP": """>>> len(nn.MLP.init(nk.random.key(0), (64, 128, 10)).layers)""",
    "nn.mlp": """>>> p = nn.MLP.init(nk.random.key(0), (3, 8, 2))
>>> apply = nk.fn(nn.MLP, Tensor2D[f32])(lambda p, x: nn.mlp(p, x, activation=nk.tanh))
>>> apply(p, np.ones((5, 3), np.float32)).shape""",
    "nn.Conv1d": """>>> nn.Conv1d.init(nk.random.key(0), 3, 16, 5).weight.shape""",
    "nn.conv1d": """>>> p = nn.Conv1d.init(nk.random.key(0), 3, 16, 5)
>>> apply = nk.fn(nn.Conv1d, Tensor3D[f32])(lambda p, x: nn.conv1d(p, x, padding="same"))
>>> apply(p, np.ones((2, 3, 9), np.float32)).shape""",
    "nn.Conv2d": """>>> nn.Conv2d.init(nk.random.key(0), 3, 16, 5).weight.shape""",
    "nn.conv2d": """>>> p = nn.Conv2d.init(nk.random.key(0), 3, 16, 5)
>>> apply = nk.fn(nn.Conv2d, Tensor4D[f32])(lambda p, x: nn.conv2d(p, x, stride=2))
>>> apply(p, np.ones((2, 3, 9, 9), np.float32)).shape""",
    "nn.Conv3d": """>>> nn.Conv3d.init(nk.random.key(0), 3, 16, 5).weight.shape""",
    "nn.conv3d": """>>> p = nn.Conv3d.init(nk.random.key(0), 3, 16, 5)
>>> apply = nk.fn(nn.Conv3d, Tensor5D[f32])(lambda p, x: nn.conv3d(p, x, stride=2))
>>> apply(p, np.zeros((1, 3, 5, 9, 9), np.float32)).shape""",
    "nn.LayerNorm": """>>> nn.LayerNorm.init(nk.random.key(0), 3)""",
    "nn.layer_norm": """>>> p = nn.LayerNorm.init(nk.random.key(0), 3)
>>> apply = nk.fn(nn.LayerNorm, Tensor2D[f32])(lambda p, x: nn.layer_norm(p, x))
>>> apply(p, np.ones((5, 3), np.float32)).shape""",
    "nn.RMSNorm": """>>> nn.RMSNorm.init(nk.random.key(0), 3)""",
    "nn.rms_norm": """>>> p = nn.RMSNorm.init(nk.random.key(0), 3)
>>> apply = nk.fn(nn.RMSNorm, Tensor2D[f32])(lambda p, x: nn.rms_norm(p, x))
>>> apply(p, np.ones((5, 3), np.float32)).shape""",
    "nn.Embedding": """>>> nn.Embedding.init(nk.random.key(0), 100, 8).weight.shape""",
    "nn.embedding": """>>> p = nn.Embedding.init(nk.random.key(0), 100, 8)
>>> apply = nk.fn(nn.Embedding, Tensor2D[i64])(lambda p, x: nn.embedding(p, x))
>>> apply(p, np.array([[3, 1, 4]])).shape""",
    "nn.LSTM": """>>> nn.LSTM.init(nk.random.key(0), 3, 8).hidden_weight.shape""",
    "nn.lstm": """>>> p = nn.LSTM.init(nk.random.key(0), 3, 8)
>>> apply = nk.fn(nn.LSTM, Tensor3D[f32])(lambda p, x: nn.lstm(p, x)[0])
>>> apply(p, np.ones((9, 2, 3), np.float32)).shape""",
    "nn.lstm_cell": """>>> p = nn.LSTM.init(nk.random.key(0), 3, 8)
>>> apply = nk.fn(nn.LSTM, Tensor2D[f32])(lambda p, x: nn.lstm_cell(p, x, (nk.zeros((2, 8), f32),) * 2)[0])
>>> apply(p, np.ones((2, 3), np.float32)).shape""",
    "nn.GRU": """>>> nn.GRU.init(nk.random.key(0), 3, 8).hidden_weight.shape""",
    "nn.gru": """>>> p = nn.GRU.init(nk.random.key(0), 3, 8)
>>> apply = nk.fn(nn.GRU, Tensor3D[f32])(lambda p, x: nn.gru(p, x)[0])
>>> apply(p, np.ones((9, 2, 3), np.float32)).shape""",
    "nn.gru_cell": """>>> p = nn.GRU.init(nk.random.key(0), 3, 8)
>>> apply = nk.fn(nn.GRU, Tensor2D[f32])(lambda p, x: nn.gru_cell(p, x, nk.zeros((2, 8), f32)))
>>> apply(p, np.ones((2, 3), np.float32)).shape""",
    "nn.MultiHeadAttention": """>>> nn.MultiHeadAttention.init(nk.random.key(0), 8).query.shape""",
    "nn.attention": """>>> p = nn.MultiHeadAttention.init(nk.random.key(0), 8)
>>> apply = nk.fn(nn.MultiHeadAttention, Tensor3D[f32])(lambda p, x: nn.attention(p, x, heads=2, causal=True))
>>> apply(p, np.ones((2, 5, 8), np.float32)).shape""",
    "nn.init": """>>> class Pixel(Dim): ...
>>> class Digit(Dim): ...
>>> class Reader(Struct):
...     layer: Field[nn.Linear[f32, Pixel, Digit]]
>>> nn.init(Reader, nk.random.key(0), Pixel=64, Digit=10)""",
    "optim.clip_by_global_norm": ">>> nk.optim.clip_by_global_norm((t, u), 1.0)",
    "optim.gauss_newton": """>>> @nk.staged
... def misses(p: Rep[Tensor1D[f32]], x: Rep[Tensor1D[f32]], y: Rep[Tensor1D[f32]]) -> Rep[Tensor1D[f32]]:
...     return p[0] * nk.exp(p[1] * x) - y
>>> step = nk.optim.gauss_newton(misses)
>>> p, x = np.ones(2, np.float32), np.array([0, 1, 2], np.float32)
>>> for _ in range(8):
...     p, residuals = step(p, f32(1e-3), x, 2 * np.exp(0.5 * x))
>>> p""",
    "optim.global_norm": ">>> nk.optim.global_norm((t, u))",
    "optim.training_step": """>>> @nk.staged
... def loss(p: Rep[Params], x: Rep[Tensor2D[f32]]) -> Rep[Scalar[f32]]:
...     return nk.square(x @ p[Params.w] + p[Params.b]).mean()
>>> adam = nk.optim.adam(0.1)
>>> step = nk.optim.training_step(loss, optimizer=adam)
>>> params = Params(np.eye(2, dtype=np.float32), np.ones(2, np.float32))
>>> state = adam.init(params)
>>> for _ in range(20):
...     params, state, value = step(params, state, np.eye(2, dtype=np.float32))
>>> f'{value:.2f}'""",
    "tree.leaves": ">>> nk.tree.leaves([t, (u, t)])",
    "tree.map": ">>> nk.tree.map(lambda one, other: one - 0.5 * other, (t, u), (u, t))",
    "tree.reduce": ">>> nk.tree.reduce(lambda total, leaf: total + leaf.size, (t, [u, t]), 0)",
    # errors
    "CheckError": ">>> nk.check(1 > 2, 'one is less than two')",
    "DTypeError": ">>> f(t, Tensor1D([1.0], f64))",
    "DifferentiationError": ">>> nk.gradient(of=nk.fn(Scalar[i64])(lambda n: n * n), wrt=0)(i64(3))",
    "DonationError": ">>> nk.donate(g, 0)(t)\n>>> t.numpy()",
    "IndexOutOfRangeError": ">>> nk.fn(Tensor1D[f32], Scalar[i64])(lambda x, i: x[i])(t, i64(3))",
    "InternalError": ">>> issubclass(InternalError, RuntimeError)",
    "NNKitError": ">>> issubclass(ShapeError, NNKitError)",
    "NonFiniteError": ">>> with nk.debug_nans():\n...     nk.fn(Scalar[f32])(nk.log)(f32(-1.0))",
    "OutOfMemoryError": ">>> issubclass(OutOfMemoryError, MemoryError)",
    "OutputError": ">>> y = np.zeros(3, np.float32)\n>>> y.flags.writeable = False\n>>> g(t, out=y)",
    "ParseError": ">>> issubclass(ParseError, ValueError)",
    "PerformanceWarning": ">>> issubclass(PerformanceWarning, UserWarning)",
    "RankError": ">>> Tensor2D(np.zeros(3))",
    "RecursionDepthError": ">>> issubclass(RecursionDepthError, RecursionError)",
    "ShapeError": ">>> f(t, Tensor1D([1.0, 2.0], f32))",
    "StagingError": ">>> nk.fn(Scalar[f32])(lambda a: a if a > 0 else -a)(f32(1.0))",
    "TrapError": ">>> issubclass(OutOfMemoryError, TrapError)",
    "UnsupportedError": ">>> issubclass(UnsupportedError, NotImplementedError)",
    "VerifyError": ">>> issubclass(VerifyError, ValueError)",
    # random numbers
    "random.key": ">>> nk.random.key(0)",
    "random.split": ">>> nk.random.split(nk.random.key(0))",
    "random.uniform": ">>> nk.random.uniform(nk.random.key(0), (3,))",
    "random.normal": ">>> nk.random.normal(nk.random.key(0), (3,))",
    "random.bernoulli": ">>> nk.random.bernoulli(nk.random.key(0), 0.3, (4,))",
    "random.categorical": ">>> nk.random.categorical(nk.random.key(0), t, shape=(6,))",
    "random.cauchy": ">>> nk.random.cauchy(nk.random.key(0), (3,))",
    "random.choice": ">>> nk.random.choice(nk.random.key(0), 5, (3,), replace=False)",
    "random.permutation": ">>> nk.random.permutation(nk.random.key(0), 5)",
    "random.exponential": ">>> nk.random.exponential(nk.random.key(0), (3,))",
    "random.gumbel": ">>> nk.random.gumbel(nk.random.key(0), (3,))",
    "random.laplace": ">>> nk.random.laplace(nk.random.key(0), (3,))",
    "random.logistic": ">>> nk.random.logistic(nk.random.key(0), (3,))",
    "random.randint": ">>> nk.random.randint(nk.random.key(0), (6,), 0, 10)",
    "random.truncated_normal": ">>> nk.random.truncated_normal(nk.random.key(0), -2.0, 2.0, (3,))",
    "dropout": ">>> nk.dropout(t, 0.5, nk.random.key(0))",
    # methods of staged values
    "Rep.T": "m.T",
    "Rep.all": "(x > 1).all()",
    "Rep.any": "(x > 1).any()",
    "Rep.argmax": "m.argmax(axis=1)",
    "Rep.argmin": "m.argmin(axis=1)",
    "Rep.at": "x.at[1].multiply(10.0)",
    "Rep.cast": "x.cast(i32)",
    "Rep.eval": ">>> nk.const(f32(2.0)).eval()",
    "Rep.expand_dims": "x.expand_dims(0)",
    "Rep.filter": ">>> nk.fn(Tensor1D[f32])(lambda x: x.filter(lambda e: e > 1))(t)",
    "Rep.fold": "x.fold(a, lambda z, e: z + e)",
    "Rep.map": "m.map(lambda row: row.sum())",
    "Rep.max": "m.max(axis=0)",
    "Rep.mean": "m.mean(axis=0)",
    "Rep.min": "m.min(axis=0)",
    "Rep.named": ">>> class Batch(Dim): ...\n>>> nk.fn(Tensor1D[f32])(lambda x: x.named(Batch) * 2)(t)",
    "Rep.prod": "m.prod(axis=1)",
    "Rep.ndim": "x / m.ndim",
    "Rep.reshape": "m.reshape((3, 2))",
    "Rep.shape": "nk.zeros((m.shape[0], 2), f32) + m.sum() / m.shape[1]",
    "Rep.size": "m.sum() / m.size",
    "Rep.scan": "x.scan(a, lambda z, e: (z + e, z + e))[1].tensor()",
    "Rep.set": ">>> nk.fn(Params)(lambda p: p.set(Params.b, 2 * p[Params.b]))("
    "Params(np.eye(2, dtype=np.float32), np.ones(2, np.float32)))",
    "Rep.squeeze": "x.expand_dims(0).squeeze(0)",
    "Rep.sum": "m.sum(axis=0, keepdims=True)",
    "Rep.transpose": "m.transpose(1, 0)",
    "Rep.unpack": "nk.tup(x, a).unpack()[0]",
    "Rep.var": "m.var(axis=0)",
    # methods of staged functions
    "f.asm": ">>> 'mul' in g.asm(t)",
    "f.cache_size": ">>> value = g(t)\n>>> g.cache_size()",
    "f.clear_cache": ">>> g.clear_cache()",
    "f.compile": ">>> g.compile(nk.spec((3,), f32))  # compiled, not run",
    "f.defjvp": ">>> @nk.staged\n... def half(a: Rep[Scalar[f32]]) -> Rep[Scalar[f32]]:\n...     return a / 2\n"
    ">>> rule = half.defjvp(lambda a, da: da / 2)\n>>> nk.jvp(half)(f32(1.0), f32(1.0))",
    "f.defvjp": ">>> @nk.staged\n... def half(a: Rep[Scalar[f32]]) -> Rep[Scalar[f32]]:\n...     return a / 2\n"
    ">>> rule = half.defvjp(lambda a, ct: (ct / 2,))\n>>> nk.gradient(of=half, wrt=0)(f32(1.0))",
    "f.ir": ">>> print(sine.ir(f32(0.0)))",
    "f.llvm": ">>> 'define' in g.llvm(t)",
    "f.memory_analysis": ">>> g.memory_analysis(t).peak_bytes",
    "f.partial": ">>> scaled = nk.staged(lambda x, n=1: x * float(n))\n>>> scaled.partial(n=3)(t)",
    # methods of tensors
    "t.cast": ">>> t.cast(i32)",
    "t.dtype": ">>> t.dtype",
    "t.is_donated": ">>> t.is_donated",
    "t.item": ">>> f32(0.5).item()",
    "t.tolist": ">>> t.tolist()",
    "t.ndim": ">>> t.ndim",
    "t.numpy": ">>> t.numpy()",
    "t.rank": ">>> t.rank",
    "t.shape": ">>> t.shape",
    "t.size": ">>> t.size",
}
"""By public name; `random.key` in a module, `Rep.sum` of a staged value, `f.ir` of a staged function, `t.numpy` of a
concrete tensor."""
