"""What is said of names that do not exist: what to write instead, which exists."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnkit as nk
from nnkit import Field, Rep, Struct, Tensor1D, f32
from nnkit import equivalent_methods as methods  # type: ignore[attr-defined]  # not in the stub
from nnkit import equivalents as tables  # type: ignore[attr-defined]  # not in the stub
from nnkit import equivalents_in_modules as modules  # type: ignore[attr-defined]  # not in the stub
from nnkit.missing_names import rows


class Params(Struct):
    w: Field[Tensor1D[f32]]


@nk.staged
def double(x: Rep[Tensor1D[f32]]) -> Rep[Tensor1D[f32]]:
    return x + x


DATA = Tensor1D(np.ones(3, np.float32))
PARAMS = Params(DATA)
TABLES = (
    tables.OF_PACKAGE, methods.OF_REP, methods.OF_TENSOR, methods.OF_FUNCTION,
    modules.OF_LINALG, modules.OF_NN, modules.OF_OPTIM, modules.OF_RANDOM, modules.OF_TREE,
)  # fmt: skip
OWNERS: dict[str, Any] = {"nk": nk, "x": Rep, "xs": Rep, "t": Tensor1D, "f": type(double)}
"""What the first part of a dotted name stands for in the tables."""


def test_what_the_tables_say_exists() -> None:
    missing: set[str] = set()
    for table in TABLES:
        for ours, why in rows(table).values():
            assert ours and why and not why.endswith(".")
            ast.parse(ours.removeprefix("@"), mode="eval")
            for dotted in re.findall(r"(?<![\w.])(?:nk|x|xs|t|f)(?:\.[A-Za-z_]\w*)+", ours):
                owner, *parts = dotted.split(".")
                value = OWNERS[owner]
                for part in parts:
                    if not hasattr(value, part):
                        missing.add(dotted)
                        break
                    value = getattr(value, part)
    assert not missing
    assert sum(len(rows(table)) for table in TABLES) > 600


def test_each_name_is_in_one_row_of_a_table() -> None:
    for table in TABLES:
        names = [
            name for line in table.strip().splitlines() for name in line.split(" | ")[0].split()
        ]
        assert len(names) == len({*names}), {name for name in names if names.count(name) > 1}
    public = {*nk.__all__}
    assert not public & {*rows(tables.OF_PACKAGE)}, "they exist"


COMMON: dict[str, str] = {
    "nk": """
        abs absolute add all allclose amax amin any append arange arccos arccosh arcsin arcsinh arctan arctan2 arctanh
        argmax argmin argpartition argsort argwhere around array array_equal array_split asarray atleast_1d atleast_2d
        average bincount bitwise_and bitwise_not bitwise_or bitwise_xor block broadcast_arrays broadcast_shapes
        broadcast_to ceil choose clip column_stack compress concatenate convolve copy copysign corrcoef correlate cos
        cosh count_nonzero cov cross cumprod cumsum cumulative_sum deg2rad degrees delete diag diagflat diagonal diff
        digitize divide divmod dot dsplit dstack ediff1d einsum empty empty_like equal exp exp2 expand_dims expm1
        extract eye fabs fft finfo fix flatnonzero flip fliplr flipud float32 float64 float_power floor floor_divide
        fmax fmin fmod frexp from_dlpack fromfunction full full_like gcd geomspace gradient greater greater_equal
        hamming hanning heaviside histogram hsplit hstack hypot identity imag inf inner insert int32 int64 interp
        intersect1d invert isclose isfinite isin isinf isnan isneginf isreal issubdtype ix_ kron lcm ldexp left_shift
        less less_equal lexsort linspace load log log10 log1p log2 logaddexp logaddexp2 logical_and logical_not
        logical_or logical_xor logspace matmul max maximum mean median meshgrid mgrid min minimum mod modf moveaxis
        multiply nan nan_to_num nanargmax nanargmin nancumsum nanmax nanmean nanmedian nanmin nanpercentile nanprod
        nanquantile nanstd nansum nanvar negative newaxis nextafter nonzero not_equal ones ones_like outer pad
        partition percentile permute_dims pi piecewise place poly1d polyfit polyval positive power prod promote_types
        ptp put put_along_axis quantile rad2deg radians ravel real reciprocal remainder repeat reshape resize
        result_type right_shift rint roll rollaxis roots rot90 round save savez searchsorted select setdiff1d shape
        sign signbit sin sinc sinh size sort split sqrt square squeeze stack std subtract sum swapaxes take
        take_along_axis tan tanh tensordot tile topk trace transpose trapezoid trapz tri tril tril_indices triu
        triu_indices true_divide trunc uint8 union1d unique unravel_index unstack unwrap vander var vdot vstack where
        zeros zeros_like
        fft special stats testing functional distributions distributed
        jit grad value_and_grad vmap pmap jacfwd jacrev hessian jvp vjp linearize checkpoint remat custom_jvp custom_vjp
        eval_shape make_jaxpr device_put device_get devices block_until_ready named_call pure_callback debug numpy lax
        nn random tree_util tree_map Array ShapeDtypeStruct config scan cond switch while_loop fori_loop map
        associative_scan stop_gradient dynamic_slice dynamic_update_slice gather scatter scatter_add scatter_min
        scatter_max scatter_mul top_k sort_key_val cumlogsumexp cummax cummin erf erfc erf_inv lgamma digamma igamma
        rsqrt rem rev select_n clamp broadcast_in_dim convert_element_type conv conv_general_dilated reduce
        reduce_window psum pmean pmax axis_index all_gather expit logit logsumexp entr gammaln betainc gammainc i0 ndtri
        xlogy zeta factorial polygamma one_hot celu glu hard_tanh hard_silu log_sigmoid normalize relu6 silu
        squareplus soft_sign standardize dot_product_attention segment_sum
        tensor Tensor from_numpy as_tensor rand randn randint randperm manual_seed no_grad set_grad_enabled
        set_default_dtype cat chunk tensor_split unbind unsqueeze flatten permute movedim narrow index_select
        masked_select masked_fill index_add scatter_reduce scatter_ addmm addcmul addcdiv baddbmm bmm mm mv ger cdist
        lerp frac sgn erfinv mvlgamma cumulative_trapezoid logcumsumexp kthvalue mode aminmax dist norm renorm
        var_mean std_mean unique_consecutive bernoulli multinomial normal poisson numel is_tensor is_nonzero
        repeat_interleave diag_embed block_diag cartesian_prod combinations bucketize histc searchsorted trapz
        stft istft compile autograd func optim save load cuda device float bool long half bfloat16 complex64 Size
        set_num_threads triangular_solve cholesky svd qr det logdet slogdet inverse pinverse matrix_exp matrix_power
        softmax log_softmax cross_entropy nll_loss mse_loss l1_loss smooth_l1_loss huber_loss kl_div
        binary_cross_entropy binary_cross_entropy_with_logits cosine_similarity pairwise_distance layer_norm
        batch_norm group_norm instance_norm rms_norm local_response_norm dropout dropout2d alpha_dropout linear
        bilinear embedding embedding_bag conv1d conv2d conv3d conv_transpose2d max_pool1d max_pool2d avg_pool1d
        avg_pool2d avg_pool3d max_pool3d adaptive_avg_pool2d adaptive_max_pool2d lp_pool2d unfold fold interpolate
        upsample grid_sample pixel_shuffle gelu elu selu leaky_relu prelu rrelu hardswish hardsigmoid hardtanh mish
        softplus softsign tanhshrink softshrink hardshrink threshold gumbel_softmax scaled_dot_product_attention
        triplet_margin_loss margin_ranking_loss hinge_embedding_loss gaussian_nll_loss poisson_nll_loss ctc_loss""",
    "nk.linalg": """
        cholesky cond det eig eigh eigvals eigvalsh inv lstsq matrix_norm matrix_power matrix_rank matrix_transpose
        multi_dot norm outer pinv qr slogdet solve svd svdvals tensordot tensorinv tensorsolve trace vecdot vector_norm
        LinAlgError triangular_solve solve_triangular lu lu_factor lu_solve cho_factor cho_solve expm logm sqrtm
        block_diag toeplitz polar schur hessenberg cholesky_ex inv_ex ldl_factor matrix_exp vander cross diagonal
        householder_product eigh_tridiagonal null_space""",
    "nk.random": """
        PRNGKey key split fold_in uniform normal randint bernoulli categorical choice permutation shuffle gamma beta
        dirichlet poisson exponential gumbel laplace logistic cauchy truncated_normal multivariate_normal rademacher t
        ball orthogonal bits binomial geometric lognormal pareto rayleigh triangular wald weibull_min chisquare f
        maxwell multinomial default_rng Generator RandomState seed rand randn random standard_normal standard_gamma
        vonmises zipf hypergeometric integers Normal Categorical Bernoulli Gamma Beta Dirichlet MultivariateNormal
        Distribution""",
    "nk.nn": """
        Module Sequential ModuleList ModuleDict Parameter ParameterList Linear Bilinear Identity Conv1d Conv2d Conv3d
        ConvTranspose1d ConvTranspose2d ConvTranspose3d BatchNorm1d BatchNorm2d LayerNorm GroupNorm InstanceNorm2d
        RMSNorm Dropout Dropout2d Embedding EmbeddingBag LSTM LSTMCell GRU GRUCell RNN RNNCell MultiheadAttention
        Transformer TransformerEncoder TransformerEncoderLayer TransformerDecoder ReLU GELU SiLU Tanh Sigmoid Softmax
        LogSoftmax LeakyReLU ELU PReLU Softplus Hardswish Mish MaxPool1d MaxPool2d MaxPool3d AvgPool2d AdaptiveAvgPool2d
        AdaptiveMaxPool2d Flatten Unflatten Upsample PixelShuffle ZeroPad2d ReflectionPad2d CrossEntropyLoss MSELoss
        L1Loss NLLLoss BCELoss BCEWithLogitsLoss HuberLoss SmoothL1Loss KLDivLoss CTCLoss TripletMarginLoss
        CosineSimilarity functional init relu gelu softmax log_softmax one_hot logsumexp standardize initializers
        xavier_uniform_ xavier_normal_ kaiming_uniform_ kaiming_normal_ orthogonal_ normal_ uniform_ zeros_
        trunc_normal_ Dense Conv MultiHeadDotProductAttention SelfAttention avg_pool max_pool BatchNorm compact
        scan remat""",
    "nk.optim": """
        SGD Adam AdamW RMSprop Adagrad Adadelta Adamax NAdam RAdam LBFGS Rprop ASGD Optimizer lr_scheduler StepLR
        CosineAnnealingLR ExponentialLR ReduceLROnPlateau OneCycleLR LambdaLR sgd adam adamw rmsprop adagrad lion lamb
        apply_updates chain clip_by_global_norm cosine_decay_schedule exponential_decay warmup_cosine_decay_schedule
        swa_utils minimize""",
    "nk.tree": "map leaves flatten unflatten structure reduce all transpose map_with_path leaves_with_path tree_map",
    "x": """
        T mT H shape ndim size dtype itemsize all any argmax argmin argsort astype at clip conj copy cumprod cumsum
        diagonal dot flat fill flatten item max mean min nonzero prod ptp put ravel real repeat reshape resize round
        searchsorted sort squeeze std sum swapaxes take tobytes tolist trace transpose var view
        abs add addmm add_ amax amin argwhere backward bfloat16 bmm bool byte cat chunk clamp clamp_ clone contiguous
        cos cpu cuda data detach det device diag dim div double element_size eq exp exp_ expand expand_as fill_ flip
        float floor gather ge grad gt half index_add index_add_ index_fill index_put_ index_select int inverse
        is_contiguous is_cuda isnan isfinite le lerp log log_softmax logical_and logsumexp long lt masked_fill
        masked_fill_ masked_scatter masked_select matmul mm mul mul_ narrow ne neg new_zeros norm numel numpy permute
        pow qr reciprocal register_hook relu relu_ repeat_interleave requires_grad requires_grad_ reshape_as roll
        rsqrt scatter scatter_ scatter_add scatter_add_ scatter_reduce select sigmoid sign sin softmax split sqrt
        square stack storage stride sub svd t tan tanh tile to topk triu tril type type_as unbind unfold uniform_
        unique unsqueeze unsqueeze_ view_as where zero_ zero_grad block_until_ready devices addressable_data aval
        weak_type map apply reduce""",
    "t": """
        T shape ndim size dtype astype copy flatten item max mean reshape sum tolist transpose backward cat clamp clone
        cpu cuda detach device dim double exp expand float gather grad index_select log long masked_fill matmul mm mul
        norm numel numpy permute relu requires_grad scatter_ scatter_add softmax squeeze sqrt std t to topk unsqueeze
        view zero_ block_until_ready at argmax round sort dot flat tobytes""",
}
"""What users of NumPy, JAX and PyTorch write first, by where they would: it exists, or the error has a remedy."""


def test_common_names_exist_or_have_a_remedy() -> None:
    kept: list[Any] = []
    nk.staged(lambda x: (kept.append(x), x)[1])(np.ones((2, 3)))
    owners: dict[str, Any] = {"nk": nk, "x": kept[0], "t": DATA}
    owners |= {
        f"nk.{name}": getattr(nk, name) for name in ("linalg", "nn", "optim", "random", "tree")
    }
    without: dict[str, set[str]] = {}
    asked_for = 0
    for owner, names in COMMON.items():
        for name in names.split():
            asked_for += 1
            try:
                getattr(owners[owner], name)
            except (AttributeError, nk.NNKitError) as error:
                text = " ".join([str(error), *getattr(error, "__notes__", [])])
                if "help: " not in text:
                    without.setdefault(owner, set()).add(name)
    assert not without
    assert asked_for > 1000


def asked(function: Callable[..., Any], *types: Any) -> Callable[[], Any]:
    """A staged function that asks a Rep for something."""
    given = {Tensor1D[f32]: DATA, Params: PARAMS}
    return lambda: nk.fn(*types)(function)(*(given[each] for each in types))


V = Tensor1D[f32]
NK: Any = nk
MISSING: dict[str, tuple[Callable[[], Any], str]] = {
    "jax": (lambda: NK.jit, "module 'nnkit' has no attribute 'jit'\n  help: `@nk.staged`: "),
    "autograd": (lambda: NK.grad, "`nk.gradient(of=f, wrt=0)`"),
    "layers": (lambda: NK.Linear, "`nk.nn.linear(p[P.layer], x)`: P.layer is a Field[nn.Linear]"),
    "layer by another name": (lambda: NK.nn.Dense, "`nk.nn.linear(p[P.layer], x)`"),
    "no tape": (lambda: NK.no_grad, "`nk.stop_gradient(x)`: nothing is recorded at run time"),
    "comparison": (lambda: NK.less, "`x > y`: an operator"),
    "numbers": (lambda: NK.pi, "`math.pi`: a number of Python's"),
    "elements": (lambda: NK.float32, "`nk.f32`"),
    "tensor": (lambda: NK.tensor([1.0]), "`nk.Tensor2D(array)`"),
    "composition": (lambda: NK.addmm, "`x @ y + z`: an expression"),
    "spelling": (lambda: NK.sofmax, "did you mean `nk.softmax`?"),
    "capitals": (lambda: NK.logSoftmax, "did you mean `nk.log_softmax`?"),
    "method": (lambda: NK.set, "`x.set(...)`: a method of staged values"),
    "nothing": (lambda: NK.zzz, "module 'nnkit' has no attribute 'zzz'"),
    "private": (lambda: NK._sofmax, "module 'nnkit' has no attribute '_sofmax'"),
    "in a module": (lambda: NK.cholesky, "`nk.linalg.cholesky`: in nk.linalg"),
    "module's spelling": (lambda: NK.linalg.slove, "did you mean `nk.linalg.solve`?"),
    "module's name elsewhere": (lambda: NK.tree.tanh, "`nk.tanh`: in nnkit itself"),
    "random": (lambda: NK.random.PRNGKey(0), "`nk.random.key(0)`: a key is made of a seed"),
    "not random": (lambda: NK.random.tanh, "`nk.tanh`: in nnkit itself"),
    "random spelling": (lambda: NK.random.norml, "did you mean `nk.random.normal`?"),
    "view": (asked(lambda x: x.view(3), V), "a Rep has no 'view'\n  help: `x.reshape(2, -1)`"),
    "backward": (asked(lambda x: x.backward(), V), "`nk.gradient(of=f, wrt=0)`"),
    "detach": (asked(lambda x: x.detach(), V), "`nk.stop_gradient(x)`"),
    "function": (asked(lambda x: x.tanh(), V), "`nk.tanh(x)`: a function"),
    "method spelling": (asked(lambda x: x.reshap(3), V), "did you mean `x.reshape`?"),
    "field": (asked(lambda p: p.w, Params), "`p[Params.w]` for p.w"),
    "tensor's tape": (lambda: DATA.backward(), "`nk.gradient(of=f, wrt=0)`"),  # type: ignore[attr-defined]
    "tensor's layout": (lambda: DATA.strides, "`t.numpy()`: the array has it"),  # type: ignore[attr-defined]
    "tensor's transpose": (lambda: DATA.T, "`nk.Tensor2D(t.numpy().T)`"),  # type: ignore[attr-defined]
    "tensor's sum": (lambda: DATA.sum(), "`t.numpy().sum()`, or `x.sum()`"),  # type: ignore[attr-defined]
    "function of a tensor": (
        lambda: DATA.softmax(),
        "`nk.softmax(x)` inside a staged function; of data, `nk.softmax(nk.const(t)).eval()`",
    ),  # type: ignore[attr-defined]
    "tensor's spelling": (lambda: DATA.shap, "did you mean `t.shape`?"),  # type: ignore[attr-defined]
    "lowered": (lambda: double.lower(DATA), "`f.ir(x)`: it prints the program"),  # type: ignore[attr-defined]
    "scatter": (lambda: NK.scatter_add, '`nk.scatter(x, indices, values, axis=0, reduce="add")`'),
    "scatter in place": (
        asked(lambda x: x.scatter_(0, x, x), V),
        "`x.scatter(indices, values, axis=0)`: values do",
    ),
    "a method of another form": (
        asked(lambda x: x.where(x > 0, x), V),
        "`nk.where(condition, x, y)`",
    ),
    "in place": (asked(lambda x: x.exp_(), V), "`nk.exp(x)`: values do not change"),
    "in place, by another name": (asked(lambda x: x.arctan_(), V), "`nk.atan(x)`: the inverse"),
    "a method of linear algebra": (asked(lambda x: x.det(), V), "`nk.linalg.det`: in nk.linalg"),
    "solver": (
        lambda: NK.linalg.triangular_solve,
        "`nk.linalg.solve_triangular(a, b, lower=True)`",
    ),
    "package's row in a module": (lambda: NK.linalg.multi_dot, "`x @ y @ z`: the compiler finds"),
    "module's row in the package": (lambda: NK.kaiming_uniform, "`nk.nn.init(Net, key)`"),
    "optimizer": (lambda: NK.optim.RMSprop, "did you mean `nk.optim.rmsprop`?"),
    "schedule": (
        lambda: NK.optim.StepLR,
        "a learning rate may be a function of the number of steps",
    ),
    "sampler": (lambda: NK.random.gamma, "NNKit has no sampler by rejection: draw with NumPy"),
    "block of layers": (
        lambda: NK.nn.Transformer,
        "`nk.nn.attention(p[P.layer], x, heads=8)`: NNKit has none",
    ),
    "NumPy's alone": (
        lambda: NK.busday_count,
        "`np.busday_count` of data, outside of staged functions",
    ),
    "activation": (lambda: NK.hardtanh, "`nk.hard_tanh(x)`: a function"),
    "sign of its argument": (lambda: NK.softmin, "`nk.softmax(-x, axis=-1)`"),
    "staged place": (lambda: NK.dynamic_slice, "`nk.take(x, i + nk.arange(3))`: a slice begins"),
    "linear system": (lambda: NK.linalg.tensorsolve, "of the matrix that the tensor is"),
    "begins otherwise": (lambda: NK.ulog, "module 'nnkit' has no attribute 'ulog'"),
    "tensor's in place": (lambda: DATA.clamp_(0.0), "inside a staged function, `x.clip(0.0, 1.0)`"),  # type: ignore[attr-defined]
    "tensor's choice": (
        lambda: DATA.where(DATA > 0),
        "inside a staged function, `nk.where(condition, x, y)`",
    ),  # type: ignore[attr-defined]
    "tensor's array": (lambda: DATA.tobytes(), "`t.numpy().tobytes`: NumPy's"),  # type: ignore[attr-defined]
    "function's spelling": (lambda: double.irr(DATA), "did you mean `f.ir`?"),  # type: ignore[attr-defined]
}


def test_a_missing_name_has_a_remedy() -> None:
    double(DATA)  # the compiler is loaded, and is no attribute
    for what, (ask, words) in MISSING.items():
        with pytest.raises(AttributeError) as raised:
            ask()
        assert words in str(raised.value), what


def test_dir_has_what_users_need() -> None:
    assert {"staged", "max", "f32", "nn"} <= {*dir(nk)} and not {"losses", "sys"} & {*dir(nk)}
    for module in (nk.linalg, nk.nn, nk.optim, nk.random, nk.tree):
        assert sorted(dir(module)) == sorted(getattr(module, "__all__"))  # noqa: B009  # not in the stub


def test_a_private_name_is_not_looked_up() -> None:
    for value in (DATA, double, nk.const(DATA), nk):
        with pytest.raises(AttributeError) as raised:
            getattr(value, "_shap")  # noqa: B009  # what is tested
        assert "help" not in str(raised.value)


def test_an_import_of_a_missing_name_has_the_remedy_too() -> None:
    words = "cannot import name 'grad' from 'nnkit'\n  help: `nk.gradient(of=f, wrt=0)`"
    with pytest.raises(ImportError, match=re.escape(words)):
        exec("from nnkit import grad")
    for module, name, remedy in (
        ("linalg", "triangular_solve", "`nk.linalg.solve_triangular(a, b, lower=True)`"),
        ("optim", "RMSprop", "did you mean `nk.optim.rmsprop`?"),
        ("nn", "Dense", "`nk.nn.linear(p[P.layer], x)`"),
        ("random", "PRNGKey", "`nk.random.key(0)`"),
        ("tree", "tree_map", "`nk.tree.map(f, p)`"),
    ):
        words = f"cannot import name {name!r} from 'nnkit.{module}'\n  help: {remedy}"
        with pytest.raises(ImportError, match=re.escape(words)):
            exec(f"from nnkit.{module} import {name}")


IMPORTS = """
import importlib, sys
def wanted():
    try:
        from nnkit import jit
    except ImportError as error:
        return "staged" in str(error)
before = wanted(), "nnkit.jit" in sys.modules
import nnkit, numpy
nnkit.staged(lambda x: x * 2.0)(numpy.ones(2))
import nnkit.jit as package
import nnkit.jit.llvm as inside
from nnkit.jit import llvm
print(before, wanted(), hasattr(nnkit, "jit"), package is importlib.import_module("nnkit.jit"), inside is llvm)
"""


def test_the_subpackage_called_jit_is_no_public_name() -> None:
    """Before and after it has been imported, which Python binds names for."""
    run = subprocess.run([sys.executable, "-c", IMPORTS], capture_output=True, text=True)
    assert run.stdout == "(True, False) True False True True\n", run.stderr
