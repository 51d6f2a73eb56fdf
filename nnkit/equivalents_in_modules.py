"""Names that users of NumPy, JAX and PyTorch look for in `nk.linalg`, `nk.nn`, `nk.optim`, `nk.random` and `nk.tree`.

As in `nnkit.equivalents`: names, what to write instead, and a clause that says why.  A name that a module has not is
looked for in the others, and in the table of `nnkit` itself, too.
"""

from __future__ import annotations

from typing import Final

OF_LINALG: Final = """
tensorsolve tensorinv | nk.linalg.solve(a.reshape(n, n), b.ravel()) | of the matrix that the tensor is
triangular_solve trsm trtrs | nk.linalg.solve_triangular(a, b, lower=True) | SciPy's name
lu lu_factor lu_factor_ex lu_solve ldl_factor ldl_factor_ex ldl_solve ldl solve_ex linear_solve | nk.linalg.solve(a, b) | NNKit has no factors of LU: `solve` makes and uses them
solve_sylvester solve_continuous_lyapunov solve_discrete_lyapunov | nk.linalg.solve(nk.kron(a, b), c) | NNKit has none: the equation as a system of a Kronecker product
solveh_banded solve_banded solve_toeplitz toeplitz_solve | nk.linalg.solve(a, b) | NNKit has no banded matrices
cho_factor cholesky_ex cholesky_banded choleskey | nk.linalg.cholesky(a) | the lower factor
cho_solve cho_solve_banded cholesky_inverse | nk.linalg.cholesky_solve(b, l) | of the lower factor
inv_ex inverse matrix_inverse | nk.linalg.inv(a) | NumPy's name
pinverse pinvh | nk.linalg.pinv(a) | NumPy's name
eig eigvals schur hessenberg rsf2csf | nk.linalg.eigh(a) | of symmetric matrices; general ones have complex eigenvalues
eigh_tridiagonal eigvalsh_tridiagonal eigs lobpcg symeig | nk.linalg.eigh(a) | of a full matrix
svd_lowrank pca_lowrank svds svd_ex | nk.linalg.svd(a, full_matrices=False) | of all singular values
matrix_exp expm_frechet expm_multiply | nk.linalg.expm(a) | SciPy's name; its derivatives are those of any function
sqrtm fractional_matrix_power | nk.linalg.eigh(a) | of symmetric a: (v * nk.sqrt(w)) @ v.T of w, v
matrix_log logm funm signm | nk.linalg.eigh(a) | of symmetric a: (v * nk.log(w)) @ v.T of w, v, and so any function
vector_norm matrix_norm nuclear_norm frobenius_norm | nk.linalg.norm(a, axis=-1) | `ord` and `axis` say which
qr_multiply householder_product orgqr ormqr geqrf rq | nk.linalg.qr(a) | the factors as matrices
polar | nk.linalg.svd(a) | NNKit has none: u @ vh is the orthogonal factor
logdet | nk.linalg.slogdet(a)[1] | NumPy's name
LinAlgError | nk.NNKitError | a matrix that has no factor gives NaN, as JAX's do
block_diag | nk.concat([nk.pad(a, ((0, 0), (0, n))), nk.pad(b, ((0, 0), (n, 0)))]) | a composition
null_space orth | nk.linalg.svd(a) | the vectors of the singular values that are zero, or are not
vander | x.expand_dims(1) ** nk.arange(n, nk.f32) | a composition
toeplitz hankel circulant | nk.take(c, abs(i.expand_dims(1) - i)) | of i = nk.arange(n): a matrix of differences reads the vector
hilbert invhilbert pascal invpascal hadamard helmert dft leslie companion fiedler fiedler_companion convolution_matrix | nk.const(np.ones((3, 3))) | NNKit has none: make it with SciPy, and pass it as data
"""
"""Of `nnkit.linalg`."""

OF_NN: Final = """
Module Sequential ModuleList ModuleDict Container Layer Parameter ParameterList ParameterDict Buffer UninitializedParameter UninitializedBuffer | nk.Struct | a model is a function of a Struct of its parameters
LazyLinear LazyConv1d LazyConv2d NonDynamicallyQuantizableLinear | nk.nn.Linear | its `init` takes both sizes
LazyConv3d | nk.nn.Conv3d | its `init` takes both sizes
ConvTranspose1d LazyConvTranspose1d | nk.conv_transpose1d(x, kernel) | a function; its kernel is a Field of yours
ConvTranspose3d LazyConvTranspose3d | nk.conv_transpose3d(x, kernel) | a function; its kernel is a Field of yours
ConvTranspose2d LazyConvTranspose2d | nk.conv_transpose2d(x, kernel) | a function; its kernel is a Field of yours
BatchNorm1d BatchNorm2d BatchNorm3d SyncBatchNorm LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d | nk.batch_norm(x) | a function; running statistics are values that you pass and return
GroupNorm | nk.group_norm(x, 4) | a function of its parameters
InstanceNorm1d InstanceNorm2d InstanceNorm3d LazyInstanceNorm1d LazyInstanceNorm2d LazyInstanceNorm3d | nk.instance_norm(x) | a function of its parameters
LocalResponseNorm CrossMapLRN2d | nk.rms_norm(x) | NNKit has no norm of neighbouring channels
AvgPool1d | nk.avg_pool1d(x, 2) | a function
AvgPool3d | nk.avg_pool3d(x, 2) | a function
AvgPool2d LPPool1d LPPool2d LPPool3d lp_pool1d lp_pool2d lp_pool3d AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d | nk.avg_pool2d(x, 2) | a function; of the whole image it is x.mean(axis=(-2, -1))
MaxPool1d | nk.max_pool1d(x, 2) | a function
MaxPool3d | nk.max_pool3d(x, 2) | a function
MaxPool2d AdaptiveMaxPool1d AdaptiveMaxPool2d AdaptiveMaxPool3d adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d FractionalMaxPool2d FractionalMaxPool3d MaxUnpool1d MaxUnpool2d MaxUnpool3d max_unpool1d max_unpool2d max_unpool3d | nk.max_pool2d(x, 2) | a function; of the whole image it is x.max(axis=(-2, -1))
UpsamplingBilinear2d UpsamplingNearest2d Upsample | nk.interpolate(x, scale_factor=2) | a function
ZeroPad1d ZeroPad2d ZeroPad3d ConstantPad1d ConstantPad2d ConstantPad3d | nk.pad(x, 1) | a function
ReflectionPad1d ReflectionPad2d ReflectionPad3d ReplicationPad1d ReplicationPad2d ReplicationPad3d CircularPad1d CircularPad2d CircularPad3d | nk.concat([x[:1], x, x[-1:]]) | NNKit pads with constants: the border is a slice
RNN RNNCell RNNBase RNNCellBase rnn | xs.scan(state, step) | a recurrent network is a scan over the first axis of xs; nn.gru and nn.lstm are there
Transformer TransformerEncoder TransformerDecoder TransformerEncoderLayer TransformerDecoderLayer transformer TransformerBlock Encoder Decoder | nk.nn.attention(p[P.layer], x, heads=8) | NNKit has none: a block is attention, nn.layer_norm and nn.mlp, in some lines of yours
multi_head_attention_forward multi_head_attention MultiheadAttention SelfAttention dot_product_attention | nk.nn.attention(p[P.layer], x, heads=8) | P.layer is a Field[nn.MultiHeadAttention]
EmbeddingBag | nk.nn.embedding(p[P.table], i) | sums and means of its rows are reductions
Sigmoid Tanh ReLU ReLU6 GELU SiLU ELU CELU SELU Softplus Mish LeakyReLU LogSigmoid Hardtanh Hardswish Hardsigmoid Softmax Softmin LogSoftmax Softmax2d PReLU RReLU GLU Softsign Tanhshrink Softshrink Hardshrink Threshold Identity Flatten Unflatten | nk.relu(x) | a function, and no class: nk.sigmoid, nk.tanh, nk.gelu and so on
Dropout Dropout1d Dropout2d Dropout3d AlphaDropout FeatureAlphaDropout dropout1d dropout3d alpha_dropout feature_alpha_dropout | nk.dropout(x, 0.1, key) | a function of a key
PixelShuffle PixelUnshuffle pixel_shuffle pixel_unshuffle ChannelShuffle channel_shuffle | x.reshape(2, 2, -1).transpose(1, 0, 2) | NNKit has none: a reshape and a transpose
Fold Unfold fold unfold | nk.conv2d(x, kernel) | NNKit has no patches: a convolution reads them
CTCLoss ctc_loss | nk.cross_entropy(logits, labels) | NNKit has no connectionist loss; alignments are a scan of yours
PairwiseDistance CosineSimilarity pairwise_distance | nk.cosine_similarity(x, y) | or nk.norm(x - y, axis=-1)
TripletMarginLoss TripletMarginWithDistanceLoss MarginRankingLoss HingeEmbeddingLoss CosineEmbeddingLoss MultiMarginLoss MultiLabelMarginLoss hinge_embedding_loss margin_ranking_loss triplet_margin_loss triplet_margin_with_distance_loss cosine_embedding_loss multi_margin_loss multilabel_margin_loss | nk.relu(margin - x + y).mean() | NNKit has none: a margin is a line of yours
SoftMarginLoss MultiLabelSoftMarginLoss soft_margin_loss multilabel_soft_margin_loss | nk.softplus(-x * y).mean() | NNKit has none: a line of yours
GaussianNLLLoss gaussian_nll_loss | (nk.log(v) + nk.square(x - y) / v).mean() / 2 | NNKit has none: a line of yours
PoissonNLLLoss poisson_nll_loss | (nk.exp(x) - x * y).mean() | NNKit has none: a line of yours
linear_cross_entropy LinearCrossEntropyLoss NLLLoss2d AdaptiveLogSoftmaxWithLoss | nk.cross_entropy(x @ w, labels) | compiled as one
grid_sample affine_grid | nk.interp(x, xp, fp) | NNKit has none: gather the neighbours, `image[i, j]`, and weigh them
gumbel_softmax | nk.softmax(logits + nk.random.gumbel(key, logits.shape)) | a composition
DataParallel DistributedDataParallel | nk.vmap(f) | code runs on the cores of one CPU
Initializer initializers glorot_normal glorot_uniform xavier_normal xavier_uniform xavier_normal_ xavier_uniform_ he_normal he_uniform kaiming_normal kaiming_uniform kaiming_normal_ kaiming_uniform_ lecun_normal lecun_uniform variance_scaling calculate_gain | nk.nn.init(Net, key) | draws all parameters; others are nk.random.normal(key, (n, m)) / n**0.5
normal normal_ uniform uniform_ truncated_normal trunc_normal_ constant_ zeros_ ones_ eye_ dirac dirac_ sparse sparse_ | nk.random.normal(key, (2, 3)) | initial values are values: of nk.random, nk.zeros, nk.eye
orthogonal orthogonal_ delta_orthogonal | nk.linalg.qr(x) | of normal numbers: its first factor
standardize | nk.normalize(x) | PyTorch's name; of mean 0 and variance 1: nk.layer_norm(x)
logmeanexp | nk.logsumexp(x, axis=0) - math.log(n) | a composition
log1mexp | nk.log(-nk.expm1(-x)) | a composition
hard_silu | nk.hard_swish(x) | its other name
soft_sign softsign | x / (1 + abs(x)) | a composition
sparse_plus sparse_sigmoid squareplus | nk.softplus(x) | or a composition
scaled_matmul scaled_dot_general grouped_mm scaled_mm | x @ y | of one element type
utils parametrize parametrizations prune clip_grad_norm_ | nk.optim.clip_by_global_norm(slopes, 1.0) | norms of slopes are in nk.optim; parameters are values
compact setup sow perturb | nk.Struct | a model is a function of a Struct of its parameters
vmap checkpoint remat scan cond | nk.checkpoint(f) | the transformations are in nnkit itself
"""
"""Of `nnkit.nn`."""

OF_OPTIM: Final = """
RMSProp | nk.optim.rmsprop(1e-2) | a function that makes it
Adadelta adadelta Adafactor adafactor Rprop rprop SparseAdam Adamax adamax NAdam nadam RAdam radam Muon muon lamb lars lion yogi adabelief fromage novograd sm3 amsgrad | nk.optim.adam(1e-3) | NNKit has sgd, momentum, rmsprop, adagrad, adam and adamw; an optimizer is a function of slopes and a state
ASGD noisy_sgd | nk.optim.sgd(0.1) | the mean of parameters is a sum of yours
LBFGS lbfgs BFGS bfgs minimize newton LevenbergMarquardt levenberg_marquardt | nk.optim.gauss_newton | of residuals; nk.fixed_point solves f(x) = x
Optimizer optimizer GradientTransformation chain apply_updates init update step zero_grad | nk.optim.training_step(loss, optimizer=nk.optim.adam(1e-3)) | a function of parameters, state and data that returns the new ones
lr_scheduler LRScheduler StepLR MultiStepLR ExponentialLR CosineAnnealingLR CosineAnnealingWarmRestarts LinearLR ConstantLR PolynomialLR LambdaLR MultiplicativeLR CyclicLR OneCycleLR SequentialLR ChainedScheduler ReduceLROnPlateau schedules cosine_decay_schedule exponential_decay linear_schedule constant_schedule warmup_cosine_decay_schedule piecewise_constant_schedule polynomial_schedule join_schedules | nk.optim.adam(lambda t: 1e-3 * 0.99 ** t.cast(nk.f32)) | a learning rate may be a function of the number of steps
swa_utils AveragedModel incremental_update ema | nk.tree.map(lambda p, q: 0.99 * p + 0.01 * q, mean, params) | a mean of parameters is a struct
clip clip_grad_norm clip_grad_norm_ clip_grad_value_ | nk.optim.clip_by_global_norm(slopes, 1.0) | or training_step(…, clip_norm=1.0)
add_decayed_weights | nk.optim.adamw(1e-3, weight_decay=0.01) | decoupled weight decay
"""
"""Of `nnkit.optim`."""

OF_RANDOM: Final = """
PRNGKey seed manual_seed default_rng Generator RandomState BitGenerator SeedSequence PCG64 PCG64DXSM MT19937 Philox SFC64 new_key wrap_key_data key_impl key_dtype get_state set_state get_bit_generator set_bit_generator get_rng_state set_rng_state | nk.random.key(0) | a key is made of a seed, and is all the state there is
rand random random_sample ranf uniform_ sample Uniform | nk.random.uniform(key, (2, 3)) | the key comes first
randn standard_normal normal_ gaussian gauss Normal multivariate_normal MultivariateNormal | nk.random.normal(key, (2, 3)) | the key comes first; times a scale, or a factor of the covariance, and plus a mean
lognormal LogNormal log_normal_ | nk.exp(nk.random.normal(key, (2, 3))) | of normal numbers
HalfNormal maxwell double_sided_maxwell rayleigh chi | nk.sqrt(nk.square(nk.random.normal(key, (2, 3))).sum(axis=0)) | NNKit has none: the length of normal numbers
HalfCauchy standard_cauchy | nk.random.cauchy(key, (3,)) | its absolute value is the half
standard_exponential expon | nk.random.exponential(key, (3,)) | divide it by a rate
weibull weibull_min Weibull pareto Pareto GeneralizedPareto rayleigh_ power powerlaw | nk.random.exponential(key, (3,)) ** (1 / k) | NNKit has none: a power, or an exponential, of exponential numbers
geometric Geometric geometric_ | nk.floor(nk.random.exponential(key, (3,)) / -math.log(1 - p)) + 1 | NNKit has none: exponential numbers rounded
triangular | nk.random.uniform(key, (2, 3)).sum(axis=0) | NNKit has none: of mean and width 1; two of them added
rademacher | 2 * nk.random.bernoulli(key, 0.5, (3,)).cast(nk.f32) - 1 | NNKit has none: two values
gamma standard_gamma loggamma Gamma InverseGamma beta Beta Kumaraswamy dirichlet Dirichlet chisquare Chi2 noncentral_chisquare f noncentral_f FisherSnedecor t standard_t StudentT wald InverseGaussian vonmises VonMises LKJCholesky generalized_normal random_gamma_p | np.random.default_rng(0).gamma(2.0, size=3) | NNKit has no sampler by rejection: draw with NumPy, and pass the numbers as data
poisson Poisson binomial Binomial negative_binomial NegativeBinomial hypergeometric logseries zipf ContinuousBernoulli multivariate_hypergeometric | np.random.default_rng(0).poisson(2.0, size=3) | NNKit has none: draw with NumPy, and pass the numbers as data
multinomial Multinomial | nk.bincount(nk.random.categorical(key, logits, shape=(n,)), minlength=k) | counts of draws
OneHotCategorical RelaxedOneHotCategorical OneHotCategoricalStraightThrough RelaxedBernoulli | nk.softmax(logits + nk.random.gumbel(key, logits.shape)) | relaxed; exact ones are nk.one_hot(nk.random.categorical(key, logits), k)
MixtureSameFamily LogisticNormal Distribution Independent TransformedDistribution ExponentialFamily LowRankMultivariateNormal | nk.random.categorical(key, logits) | NNKit has no classes of distributions: draw a component, then of it
shuffle randperm | nk.random.permutation(key, x) | values do not change: it makes a new one
random_integers integers randint_ bits bytes | nk.random.randint(key, (3,), 0, 10) | the key comes first
ball orthogonal | nk.normalize(nk.random.normal(key, (2, 3))) | NNKit has none: directions of normal numbers
fold_in key_data clone spawn | nk.random.split(key, 2) | new keys of an old one
next_key new_rng rng | nk.random.split(key) | two new keys; do not use the old one again
dropout Dropout | nk.dropout(x, 0.1, key) | in nnkit itself
"""
"""Of `nnkit.random`, where a key comes first."""

OF_TREE: Final = """
flatten tree_flatten tree_leaves | nk.tree.leaves(p) | the tensors in a row
unflatten tree_unflatten structure tree_structure | nk.tree.map(f, p) | a tree of the same structure is made by map
tree_map map_structure multimap | nk.tree.map(f, p) | of several trees, too
tree_reduce all any sum | nk.tree.reduce(f, p) | over all tensors
map_with_path leaves_with_path flatten_with_path tree_map_with_path | nk.fields(P) | fields have names
transpose broadcast static reduce_associative | nk.tree.map(f, p) | a tree of the same structure
"""
"""Of `nnkit.tree`."""
