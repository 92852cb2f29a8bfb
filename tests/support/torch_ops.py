"""torch's own sample lists, and the families of ops among them that kernels are made for."""

import sys
import types
import unittest

# torch's lists import it for a base class that they do not use.
sys.modules.setdefault("expecttest", types.SimpleNamespace(TestCase=unittest.TestCase))
from torch.testing._internal import common_utils  # noqa: E402
from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402, F401
from torch.testing._internal.opinfo import core  # noqa: E402

# Every list of samples looks through the stack, with all its source files, for the unittest case
# that asks for it.  There is none, and looking takes longer than the samples do.
for module in (common_utils, core):
    module.extract_test_fn = lambda: None

# One call sorts the positions of an index; some samples have several indices, masks, or means of
# integers.  (Those of index_reduce are 0-d.)
WRITERS = "index_add index_copy index_fill index_put scatter scatter_add scatter_reduce".split()
POINTWISE = """
    abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_left_shift bitwise_not
    bitwise_or bitwise_right_shift bitwise_xor ceil clamp clamp_max clamp_min copysign cos cosh
    deg2rad digamma div eq erf erfc erfinv exp exp2 expm1 fill float_power floor floor_divide fmax
    fmin fmod frac ge gt heaviside hypot isfinite isinf isnan isneginf isposinf le lerp lgamma log
    log10 log1p log2 logaddexp logical_and logical_not logical_or logical_xor logit lt masked_fill
    maximum minimum mul nan_to_num ne neg nextafter pow rad2deg reciprocal remainder round
    rsqrt rsub sgn sigmoid sign signbit sin sinc sinh sqrt square sub tan tanh true_divide trunc
    where xlogy addcdiv addcmul
    nn.functional.celu nn.functional.elu nn.functional.gelu nn.functional.hardsigmoid
    nn.functional.hardswish nn.functional.hardtanh nn.functional.leaky_relu
    nn.functional.logsigmoid nn.functional.mish nn.functional.prelu nn.functional.relu
    nn.functional.relu6 nn.functional.selu nn.functional.silu nn.functional.softplus
    nn.functional.softshrink nn.functional.softsign nn.functional.tanhshrink
    nn.functional.threshold nn.functional.hardshrink nn.functional.glu
""".split()
NO_OPS_OR_CASTS = "positive bfloat16 bool byte double float half int long short char to".split()
REDUCTIONS = """
    all amax amin aminmax any argmax argmin count_nonzero linalg.vector_norm logsumexp max mean
    min norm prod std std_mean sum var var_mean
""".split()
VIEWS = """
    broadcast_to chunk diff expand expand_as flatten flip fliplr flipud movedim narrow permute
    ravel reshape reshape_as roll select slice split squeeze stack T t tile transpose
    unbind unflatten unsqueeze view view_as repeat
""".split()
READERS = """
    cat gather index_select nn.functional.embedding nn.functional.pad take_along_dim hstack vstack
    triu tril slice_scatter select_scatter constant_pad_nd __getitem__
""".split()
COMPOSITES = """
    softmax log_softmax nn.functional.softmin nn.functional.layer_norm nn.functional.group_norm
    nn.functional.rms_norm nn.functional.batch_norm nn.functional.instance_norm
    nn.functional.normalize nn.functional.mse_loss nn.functional.l1_loss
    nn.functional.smooth_l1_loss nn.functional.huber_loss nn.functional.cross_entropy
    nn.functional.nll_loss nn.functional.kl_div nn.functional.binary_cross_entropy
    nn.functional.binary_cross_entropy_with_logits nn.functional.poisson_nll_loss
    nn.functional.cosine_similarity nn.functional.soft_margin_loss logcumsumexp bucketize
""".split()
STITCHED = {*POINTWISE, *NO_OPS_OR_CASTS, *REDUCTIONS, *VIEWS, *READERS, *WRITERS, *COMPOSITES}
