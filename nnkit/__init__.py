"""NNKit: differentiable tensor programs as typed, staged Python functions, compiled to native code.

A tour for users, in the order they meet things:

- `Tensor2D(array)`, `f32(0.1)`, `Struct`: concrete values, thin and immutable.
- `@staged` (or `fn(types)(lambda)`): a function over `Rep[Tensor2D[f32]]`, traced once per types of its arguments.
  Called with Reps it stages a call, called with concrete values it is compiled for their shapes and runs.
- Operators and methods of `Rep`, and the functions here (`tanh`, `softmax`, `cross_entropy`, `take`, ...).
- `cond`, `while_loop`, `fori`, and `x.map(fn)`, `x.fold(init, fn)`, `x.scan(init, fn)`, `x.filter(fn)` along the first
  axis: choices and loops that run, with `checkpoint=` a schedule of what gradients save of them. A staged function may
  call itself in a branch of `cond` (or `fix`), and take and return staged functions.
- `gradient(of=, wrt=)` and `value_and_gradient`: staged functions again; so are `jvp`, `vjp`, `hvp`, `jacobian` and
  `hessian`, and `taylor(f, order=n)`: the series along a direction.
- `vmap(f)`: a function of one element becomes one of a batch, and composes with all of the above; inside,
  `axis_sum(x, "name")` and its like combine the elements.
- `split` gives the forward and the backward half of a gradient apart, `saved` says what is kept between them,
  `linearize` makes a linear map of them.
- `linalg`: systems of equations, decompositions and norms, as in numpy.linalg.
- `nn`: layers as structs of their parameters; `optim`: optimizers, and steps of training.
- `random`: numbers from explicit keys; `dropout`.  `check` and `print`: what a staged function does when it runs, once.
  `debug_nans`: where a NaN comes from.  `foreign` and `callback`: functions of C and of Python.
- `f(x, out=y)` writes results to arrays of yours; `donate(f, 0)` lets them take over the memory of an argument.
- `f.ir(...)`, `f.llvm(...)`, `f.asm(...)`, with `spec(shape, dtype)` for an array: what the compiler did.
- `f.memory_analysis(...)`: the bytes of a call's arguments, results and temporaries.
- `f.compile(...)` without running; `f.cache_size()`, `f.clear_cache()`, `set_cache_limit(n)`: what is kept of it.

Every error raised on purpose is an `NNKitError`.

The names are found when they are first used (`_HOMES` says where), so that a program which needs few of them, such as
the tools, does not load the language.
"""

import builtins
import importlib
import sys

__version__ = "0.1.0"

_HOMES = {
    "activations": """
        celu elu gelu hard_sigmoid hard_swish hard_tanh leaky_relu log_sigmoid mish relu6 selu silu swish""",
    "batching": "axis_max axis_mean axis_min axis_sum vmap vmap2",
    "callables": "staged",
    "checking_gradients": "check_gradients",
    "checkpointing": "binomial checkpoint every_sqrt",
    "composed": "cross_entropy layer_norm log_softmax logsumexp norm round softmax",
    "choices": """
        allclose bitwise_and bitwise_not bitwise_or bitwise_xor clip isclose isfinite isinf isnan
        left_shift logical_and logical_not logical_or logical_xor nan_to_num right_shift signbit
        where""",
    "contractions": "convolve correlate cross einsum inner kron outer tensordot vdot",
    "convolutions": "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d",
    "control": "cond fix fori while_loop zip zip_with",
    "conversion": "Spec spec",
    "core.ir.loop_schedules": "LoopSchedule",
    "debugging": "debug_nans",
    "core.errors": """
        CheckError DTypeError DifferentiationError DonationError IndexOutOfRangeError InternalError
        NNKitError NonFiniteError OutOfMemoryError OutputError ParseError PerformanceWarning RankError
        RecursionDepthError ShapeError
        StagingError TrapError UnsupportedError
        VerifyError""",
    "diagonals": "diag diag_indices diagonal trace tri tril triu",
    "differentiating_as": "differentiate_as",
    "distributions": "dropout",
    "donation": "donate",
    "memory_analysis": "MemoryAnalysis",
    "differentiation": "gradient gradient_dynamic value_and_gradient",
    "interpolation": "diff interp polyval trapezoid",
    "jacobian_products": "hvp jvp taylor vjp",
    "jacobians": "hessian jacobian",
    "linalg": "linalg",
    "linearization": "LinearMap Linearization linearize",
    "residuals": "HalfSignature Residual Residuals Saved ValueInfo",
    "splitting": "Halves Split saved split",
    "elementwise": """
        abs acos acosh add asin asinh atan atan2 atanh cbrt ceil copysign cos cosh degrees digamma
        div erf erfc exp exp2 expm1 floor floor_divide fmod heaviside hypot lgamma log log10 log1p
        log2 logaddexp maximum minimum mod modulo mul negate power radians reciprocal relu
        remainder rint rsqrt sigmoid sign sin sinc sinh softplus sqrt square sub tan tanh trunc
        truncate_divide""",
    "effects": "check print",
    "fixed_points": "fixed_point",
    "foreign_functions": "callback foreign",
    "lambdas": "fn",
    "functions": """
        arange broadcast_to concat flip full iota matmul one_hot ones ones_like pad select
        stack stop_gradient take zeros zeros_like""",
    "losses": "binary_cross_entropy huber kl_divergence mse smooth_l1",
    "nan_reductions": "nanmax nanmean nanmedian nanmin nanprod nanstd nansum nanvar",
    "normalization": """
        batch_norm cosine_similarity group_norm instance_norm normalize rms_norm""",
    "pooling": "avg_pool1d avg_pool2d avg_pool3d max_pool1d max_pool2d max_pool3d",
    "random": "random",
    "reductions": """
        all any argmax argmin count_nonzero cummax cummin cumprod cumsum max mean min prod std sum
        var""",
    "scattering": """
        bincount put_along_axis scatter segment_max segment_mean segment_min segment_prod
        segment_sum take_along_axis""",
    "searching": "argwhere flatnonzero nonzero",
    "shaping": """
        array_split expand_dims eye linspace meshgrid moveaxis ravel repeat roll squeeze swapaxes tile""",
    "sorting": "argsort median percentile quantile searchsorted sort top_k",
    "resizing": "interpolate",
    "reps": "Rep build const tup",
    "specializations": "set_cache_limit",
    "staging.at": "At Part",
    "staging.refs": "Ref ref",
    "staging.stacked": "Stacked",
    "struct_fields": "Binding Field Lens",
    "structs": "Struct asdict fields",
    "tree": "tree",
    "nn": "nn",
    "optim": "optim",
    "tensors": """
        AnyTensor Batched Bool DType Dim Float Integer Logical Number Numpy Ranked Scalar Tensor0D
        Tensor1D Tensor2D Tensor3D Tensor4D Tensor5D bf16 boolean f16 f32 f64 i8 i32 i64 named""",
}
"""Every public name, by the module that has it.

No modules but `linalg`, `nn`, `optim`, `random` and `tree` are called like one of them: Python binds a module's name
here when it is imported.
"""

_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}
_NAMES_AT_HOME = {"Spec": "ArraySpec"}
"""What is called otherwise where it is defined: a `Spec` is there what staging knows of a value."""

_SEE_THEIR_CALLER = {"fix", "staged"}
"""They resolve annotations in its scope, and cut tracebacks themselves."""

# `from nnkit import *` leaves `abs`, `print` and the other builtins as they are
__all__ = ["__version__", *(name for name in _HOME_OF if not hasattr(builtins, name))]  # pyright: ignore[reportUnsupportedDunderAll]  # it reads the stub


def __getattr__(name: str) -> object:
    if name not in _HOME_OF:
        asking = sys._getframe(1)
        if asking.f_code.co_filename.startswith("<frozen importlib"):
            # `from nnkit import name` looks first whether there is a module to import; nothing may be imported here
            if (
                name == "jit"
            ):  # there is, but who writes this means `staged`: the next step of the import says so
                return None
            raise AttributeError(name)
        if name.startswith("_"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        missing_names = importlib.import_module(".missing_names", __name__)
        try:
            raise missing_names.of_package(name, _HOME_OF, asking)
        except (AttributeError, ImportError) as error:
            importlib.import_module(".staging.tracebacks", __name__).end_at_user(error)
            raise
    home = importlib.import_module(f".{_HOME_OF[name]}", __name__)
    value = home if name == _HOME_OF[name] else getattr(home, _NAMES_AT_HOME.get(name, name))
    if isinstance(value, type(__dir__)) and name not in _SEE_THEIR_CALLER:
        value = importlib.import_module(".staging.tracebacks", __name__).public(value)
        value.__module__ = __name__  # where pickle finds it
    globals()[name] = value  # the next use is that of any module's attribute
    return value


def __dir__() -> list[str]:
    return sorted({*_HOME_OF, *(name for name in globals() if name.startswith("__"))})
