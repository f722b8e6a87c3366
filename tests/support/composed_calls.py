"""A call of every function that is made of others, for the claims of the table.

name: (call, shape of x), where x is a tensor of any kind that the table names; or
name: (call, None) for what makes tensors out of nothing. Default shape: [2, 3].
"""

import numpy as np

from burnbook.tensor import (
    Bool,
    Distribution,
    Float,
    Int,
    Tensor,
    TensorData,
    activation,
    grid,
    linalg,
    signal,
)
from burnbook.tensor.quantization import QuantizationParameters, QuantizationScheme

SYMMETRIC = QuantizationScheme.PerTensorSymmetric()


def ints(like, values):
    return Tensor.from_data(values, like.backend, Int)


def ones(like, shape):
    return Tensor.ones(shape, like.backend, like.kind)


def mask(like):
    array = np.arange(np.prod(like.dims())).reshape(like.dims()) % 2 == 0
    return Tensor.from_data(array, like.backend, Bool)


def inplace(x):
    new = x.clone()
    new.inplace(lambda t: t * 2.0)
    return new


def replaced(x):
    y = x.require_grad()
    gradients = (y * 2.0).backward()
    y.grad_replace(gradients, y.grad(gradients) * 0.0)
    return float(y.grad(gradients).sum())


def a_gradient(x, name):
    y = x.require_grad()
    return getattr(y, name)((y * 2.0).backward())


def made(function):
    return (function, None)


CALLS = {
    "empty": made(lambda kind: Tensor.empty([2, 3], kind=kind)),
    "from_primitive": made(
        lambda kind: Tensor.from_primitive(
            Tensor.ones([2], kind=kind).into_primitive(),
            Tensor.ones([2]).device(),
            kind,
        )
    ),
    "stack": (lambda x: Tensor.stack([x, x, x], 0), (2, 3)),
    "chunk": (lambda x: x.chunk(2, 1), (2, 3)),
    "device": (lambda x: x.device(), (2,)),
    "dims": (lambda x: x.dims(), (2,)),
    "flatten": (lambda x: x.flatten(0, 1), (2, 3)),
    "into_data": (lambda x: x.into_data(), (2,)),
    "into_primitive": (lambda x: x.into_primitive(), (2,)),
    "into_scalar": (lambda x: x.into_scalar(), (1,)),
    "narrow": (lambda x: x.narrow(1, 1, 2), (2, 3)),
    "movedim": (lambda x: x.movedim(0, 1), (2, 3)),
    "repeat_dim": (lambda x: x.repeat_dim(1, 2), (2, 3)),
    "repeat": (lambda x: x.repeat([2, 1]), (2, 3)),
    "shape": (lambda x: x.shape, (2,)),
    "squeeze": (lambda x: x.squeeze(1), (2, 1)),
    "to_data": (lambda x: x.to_data(), (2,)),
    "to_device": (lambda x: x.to_device(x.device()), (2,)),
    "unsqueeze": (lambda x: x.unsqueeze(), (2, 3)),
    "unsqueeze_dim": (lambda x: x.unsqueeze_dim(1), (2, 3)),
    "from_data": made(lambda kind: Tensor.from_data(TensorData([0, 1]), kind=kind)),
    "transpose": (lambda x: x.transpose(), (2, 3)),
    "squeeze_dims": (lambda x: x.squeeze_dims([0, 2]), (1, 2, 1)),
    "unsqueeze_dims": (lambda x: x.unsqueeze_dims([0, -1]), (2, 3)),
    "iter_dim": (lambda x: list(x.iter_dim(0)), (2, 3)),
    "inplace": (inplace, (2, 3)),
    "dtype": (lambda x: x.dtype, (2,)),
    "rank": (lambda x: x.rank, (2,)),
    "empty_like": (lambda x: x.empty_like(), (2, 3)),
    "split": (lambda x: x.split(2, 1), (2, 3)),
    "split_with_sizes": (lambda x: x.split_with_sizes([1, 2], 1), (2, 3)),
    "roll_dim": (lambda x: x.roll_dim(1, 0), (2, 3)),
    "slice_dim": (lambda x: x.slice_dim(1, slice(0, 2)), (2, 3)),
    "slice_fill": (lambda x: x.slice_fill([(0, 1)], 1), (2, 3)),
    "select_dim": (lambda x: x.select_dim(0, 1), (2, 3)),
    "take": (lambda x: x.take(1, ints(x, [[0, 2], [1, 1]])), (2, 3, 2)),
    "gather_nd": (lambda x: x.gather_nd(ints(x, [[0], [1]])), (2, 3)),
    "scatter_nd": (
        lambda x: x.scatter_nd(ints(x, [[0], [1]]), ones(x, [2, 3])),
        (2, 3),
    ),
    "mask_select": (lambda x: x.mask_select(mask(x)), (2, 3)),
    "t": (lambda x: x.t(), (2, 3)),
    "unfold": (lambda x: x.unfold(1, 2, 1), (2, 3)),
    "squeeze_dim": (lambda x: x.squeeze_dim(1), (2, 1)),
    "equal_scalar": (lambda x: x.equal_scalar(1), (2, 3)),
    "not_equal_scalar": (lambda x: x.not_equal_scalar(1), (2, 3)),
    "eye": made(lambda kind: Tensor.eye(3, kind=kind)),
    "full": made(lambda kind: Tensor.full([2, 3], 1, kind=kind)),
    "ones": made(lambda kind: Tensor.ones([2, 3], kind=kind)),
    "zeros": made(lambda kind: Tensor.zeros([2, 3], kind=kind)),
    "add_scalar": (lambda x: x.add_scalar(2), (2, 3)),
    "all_close": (lambda x: x.all_close(x), (2, 3)),
    "argsort_descending": (lambda x: x.argsort_descending(1), (2, 3)),
    "bool": (lambda x: x.bool(), (2, 3)),
    "clamp_max": (lambda x: x.clamp_max(1), (2, 3)),
    "clamp_min": (lambda x: x.clamp_min(1), (2, 3)),
    "contains_nan": (lambda x: x.contains_nan(), (2, 3)),
    "div_scalar": (lambda x: x.div_scalar(2), (2, 3)),
    "equal_elem": (lambda x: x.equal_elem(1), (2, 3)),
    "full_like": (lambda x: x.full_like(1), (2, 3)),
    "greater_elem": (lambda x: x.greater_elem(1), (2, 3)),
    "greater_equal_elem": (lambda x: x.greater_equal_elem(1), (2, 3)),
    "is_close": (lambda x: x.is_close(x), (2, 3)),
    "lower_elem": (lambda x: x.lower_elem(1), (2, 3)),
    "lower_equal_elem": (lambda x: x.lower_equal_elem(1), (2, 3)),
    "max_dim_with_indices": (lambda x: x.max_dim_with_indices(1), (2, 3)),
    "min_dim_with_indices": (lambda x: x.min_dim_with_indices(1), (2, 3)),
    "mul_scalar": (lambda x: x.mul_scalar(2), (2, 3)),
    "not_equal_elem": (lambda x: x.not_equal_elem(1), (2, 3)),
    "ones_like": (lambda x: x.ones_like(), (2, 3)),
    "powi": (lambda x: x.powi(ones(x, [2, 3])), (2, 3)),
    "powf_scalar": (lambda x: x.powf_scalar(2), (2, 3)),
    "powi_scalar": (lambda x: x.powi_scalar(3), (2, 3)),
    "sort_descending": (lambda x: x.sort_descending(1), (2, 3)),
    "sort_with_indices": (lambda x: x.sort_with_indices(1), (2, 3)),
    "sort_descending_with_indices": (
        lambda x: x.sort_descending_with_indices(1),
        (2, 3),
    ),
    "sub_scalar": (lambda x: x.sub_scalar(2), (2, 3)),
    "topk": (lambda x: x.topk(2, 1), (2, 3)),
    "topk_with_indices": (lambda x: x.topk_with_indices(2, 1), (2, 3)),
    "tril": (lambda x: x.tril(), (2, 3)),
    "triu": (lambda x: x.triu(1), (2, 3)),
    "zeros_like": (lambda x: x.zeros_like(), (2, 3)),
    "remainder_scalar": (lambda x: x.remainder_scalar(2), (2, 3)),
    "dot": (lambda x: x.dot(ones(x, [3])), (3,)),
    "max_abs": (lambda x: x.max_abs(), (2, 3)),
    "max_abs_dim": (lambda x: x.max_abs_dim(1), (2, 3)),
    "max_abs_dims": (lambda x: x.max_abs_dims([1]), (2, 3)),
    "max_dims": (lambda x: x.max_dims([1]), (2, 3)),
    "mean_dims": (lambda x: (x * 3).mean_dims([1]), (2, 3)),  # whole for Int
    "min_dims": (lambda x: x.min_dims([1]), (2, 3)),
    "prod_dims": (lambda x: x.prod_dims([1]), (2, 3)),
    "sum_dims": (lambda x: x.sum_dims([1]), (2, 3)),
    "sum_dims_squeeze": (lambda x: x.sum_dims_squeeze([1]), (2, 3)),
    "one_hot_fill": (lambda x: (x % 4).abs().one_hot_fill(4, 1.0, 0.0, 1), (3,)),
    "fmod_scalar": (lambda x: x.fmod_scalar(2), (2, 3)),
    "greater_scalar": (lambda x: x.greater_scalar(1), (2, 3)),
    "greater_equal_scalar": (lambda x: x.greater_equal_scalar(1), (2, 3)),
    "lower_scalar": (lambda x: x.lower_scalar(1), (2, 3)),
    "lower_equal_scalar": (lambda x: x.lower_equal_scalar(1), (2, 3)),
    "float.one_hot": made(lambda kind: Tensor.one_hot(1, 4)),
    "from_floats": made(lambda kind: Tensor.from_floats([1, 2])),
    "from_full_precision": (lambda x: x.from_full_precision(x), (2, 3)),
    "float.int": (lambda x: x.int(), (2, 3)),
    "random": made(lambda kind: Tensor.random([2, 3], kind=kind)),
    "random_like": (lambda x: x.random_like(Distribution.Uniform(0, 9)), (2, 3)),
    "to_full_precision": (lambda x: x.to_full_precision(), (2, 3)),
    "var": (lambda x: x.var(1), (2, 3)),
    "var_bias": (lambda x: x.var_bias(1), (2, 3)),
    "var_mean": (lambda x: x.var_mean(1), (2, 3)),
    "var_mean_bias": (lambda x: x.var_mean_bias(1), (2, 3)),
    "cov": (lambda x: x.cov(1, 1), (2, 3)),
    "into_full_precision": (lambda x: x.into_full_precision(), (2, 3)),
    "deg2rad": (lambda x: x.deg2rad(), (2, 3)),
    "rad2deg": (lambda x: x.rad2deg(), (2, 3)),
    "cross": (lambda x: x.cross(ones(x, [2, 3])), (2, 3)),
    "median": (lambda x: x.median(1), (2, 3)),
    "median_with_indices": (lambda x: x.median_with_indices(1), (2, 3)),
    "grid_sample_2d": (
        lambda x: x.grid_sample_2d(ones(x, [1, 2, 2, 2]) * 0.1),
        (1, 1, 3, 3),
    ),
    "categorical": (lambda x: x.abs().categorical(4), (2, 3)),
    "arange": made(lambda kind: Tensor.arange(2, 5)),
    "arange_step": made(lambda kind: Tensor.arange_step(2, 8, 3)),
    "int.float": (lambda x: x.float(), (2, 3)),
    "from_ints": made(lambda kind: Tensor.from_ints([1, 2])),
    "int_random": made(lambda kind: Tensor.int_random([2, 3])),
    "cartesian_grid": made(lambda kind: Tensor.cartesian_grid([2, 3])),
    "int.one_hot": (lambda x: (x % 4).abs().one_hot(4), (3,)),
    "bitwise_and_scalar": (lambda x: x.bitwise_and_scalar(3), (2, 3)),
    "bitwise_or_scalar": (lambda x: x.bitwise_or_scalar(3), (2, 3)),
    "bitwise_xor_scalar": (lambda x: x.bitwise_xor_scalar(3), (2, 3)),
    "bitwise_left_shift_scalar": (lambda x: x.bitwise_left_shift_scalar(1), (2, 3)),
    "bitwise_right_shift_scalar": (lambda x: x.bitwise_right_shift_scalar(1), (2, 3)),
    "diag_mask": made(lambda kind: Tensor.diag_mask([3, 2], 0)),
    "tril_mask": made(lambda kind: Tensor.tril_mask([3, 2], 0)),
    "triu_mask": made(lambda kind: Tensor.triu_mask([3, 2], 0)),
    "bool.float": (lambda x: x.float(), (2, 3)),
    "bool.int": (lambda x: x.int(), (2, 3)),
    "nonzero": (lambda x: x.nonzero(), (2, 3)),
    "from_bool": made(lambda kind: Tensor.from_bool([True, False])),
    "quantize": (
        lambda x: x.set_require_grad(False).quantize(
            SYMMETRIC, QuantizationParameters(0.1)
        ),
        (2, 3),
    ),
    "quantize_dynamic": (
        lambda x: x.set_require_grad(False).quantize_dynamic(SYMMETRIC),
        (2, 3),
    ),
    "dequantize": (
        lambda x: x.set_require_grad(False).quantize_dynamic(SYMMETRIC).dequantize(),
        (2, 3),
    ),
    "detach": (lambda x: (x * 2.0).detach(), (2, 3)),
    "require_grad": (lambda x: x.require_grad(), (2, 3)),
    "is_require_grad": (lambda x: x.is_require_grad(), (2,)),
    "set_require_grad": (lambda x: x.set_require_grad(True), (2, 3)),
    "backward": (lambda x: x.require_grad().backward(), (2,)),
    "grad": (lambda x: a_gradient(x, "grad"), (2,)),
    "grad_remove": (lambda x: a_gradient(x, "grad_remove"), (2,)),
    "grad_replace": (replaced, (2,)),
    "inner": (lambda x: x.inner(), (2, 3)),
    "from_inner": (lambda x: Tensor.from_inner(x.inner()), (2, 3)),
    "hard_sigmoid": (lambda x: activation.hard_sigmoid(x, 0.2, 0.5), (2, 3)),
    "prelu": (lambda x: activation.prelu(x, ones(x, [3])), (2, 3)),
    "quiet_softmax": (lambda x: activation.quiet_softmax(x, 1), (2, 3)),
    "softmin": (lambda x: activation.softmin(x, 1), (2, 3)),
    "cross_entropy_with_logits": (
        lambda x: activation.cross_entropy_with_logits(x, ones(x, [2, 3])),
        (2, 3),
    ),
    "celu": (lambda x: activation.celu(x, 1.0), (2, 3)),
    "glu": (lambda x: activation.glu(x, 1), (2, 4)),
    "gelu_approximate": (lambda x: activation.gelu_approximate(x), (2, 3)),
    "hard_shrink": (lambda x: activation.hard_shrink(x, 0.1), (2, 3)),
    "hard_swish": (lambda x: activation.hard_swish(x), (2, 3)),
    "hardtanh": (lambda x: activation.hardtanh(x), (2, 3)),
    "relu6": (lambda x: activation.relu6(x), (2, 3)),
    "selu": (lambda x: activation.selu(x), (2, 3)),
    "shrink": (lambda x: activation.shrink(x, 0.1, 0.1), (2, 3)),
    "soft_shrink": (lambda x: activation.soft_shrink(x, 0.1), (2, 3)),
    "softsign": (lambda x: activation.softsign(x), (2, 3)),
    "tanhshrink": (lambda x: activation.tanhshrink(x), (2, 3)),
    "threshold": (lambda x: activation.threshold(x, 0.1, 0.0), (2, 3)),
    "thresholded_relu": (lambda x: activation.thresholded_relu(x, 0.1), (2, 3)),
    "cosine_similarity": (
        lambda x: linalg.cosine_similarity(x, ones(x, [2, 3]), 1),
        (2, 3),
    ),
    "diag": (lambda x: linalg.diag(x), (2, 3)),
    "l0_norm": (lambda x: linalg.l0_norm(x, 1), (2, 3)),
    "l1_norm": (lambda x: linalg.l1_norm(x, 1), (2, 3)),
    "l2_norm": (lambda x: linalg.l2_norm(x, 1), (2, 3)),
    "lp_norm": (lambda x: linalg.lp_norm(x, 3.0, 1), (2, 3)),
    "lu": (lambda x: linalg.lu(x), (3, 3)),
    "lu_decomposition": (lambda x: linalg.lu_decomposition(x), (3, 3)),
    "qr": (lambda x: linalg.qr(x), (3, 2)),
    "matvec": (lambda x: linalg.matvec(x, ones(x, [3])), (2, 3)),
    "max_abs_norm": (lambda x: linalg.max_abs_norm(x, 1), (2, 3)),
    "min_abs_norm": (lambda x: linalg.min_abs_norm(x, 1), (2, 3)),
    "outer": (lambda x: linalg.outer(x, ones(x, [2])), (3,)),
    "outer_dim": (lambda x: linalg.outer_dim(x, ones(x, [2, 3]), 1), (2, 3)),
    "trace": (lambda x: linalg.trace(x), (2, 3)),
    "vector_norm": (lambda x: linalg.vector_norm(x, 2.0, 1), (2, 3)),
    "vector_normalize": (lambda x: linalg.vector_normalize(x, 2.0, 1, 1e-6), (2, 3)),
    "rfft": (lambda x: signal.rfft(x, 1), (2, 8)),
    "irfft": (lambda x: signal.irfft(x, ones(x, [2, 5]), 1), (2, 5)),
    "cfft": (lambda x: signal.cfft(x, ones(x, [2, 8]), 1), (2, 8)),
    "stft": (
        lambda x: signal.stft(x, ones(x, [8]), signal.StftOptions(8)),
        (2, 32),
    ),
    "istft": (
        lambda x: signal.istft(x, ones(x, [8]), None, signal.StftOptions(8)),
        (2, 9, 5, 2),
    ),
    "blackman_window": made(lambda kind: signal.blackman_window(8)),
    "hamming_window": made(lambda kind: signal.hamming_window(8)),
    "hann_window": made(lambda kind: signal.hann_window(8)),
    "affine_grid_2d": (lambda x: grid.affine_grid_2d(x, (2, 1, 4, 4)), (2, 2, 3)),
    "meshgrid": (lambda x: grid.meshgrid([x, x]), (3,)),
    "meshgrid_stack": (lambda x: grid.meshgrid_stack([x, x]), (3,)),
}
KINDS = {"F": Float, "I": Int, "B": Bool}
