//! Gradients, and what tracking does.
use super::*;

pub fn slopes<const D: usize>() {
    let sizes = full_shape::<D>();
    let x = numbers(sizes);
    grad! { "gradient", "exp", [x], [], {}, x.exp() }
    grad! { "gradient", "cos", [x], [], {}, x.cos() }
    grad! { "gradient", "sin", [x], [], {}, x.sin() }
    grad! { "gradient", "tanh", [x], [], {}, x.tanh() }
    grad! { "gradient", "erf", [x], [], {}, x.erf() }
    grad! { "gradient", "recip", [x], [], {}, x.recip() }
    grad! { "gradient", "abs", [x], [], {}, x.abs() }
    grad! { "gradient", "neg", [x], [], {}, x.neg() }
    grad! { "gradient", "sign", [x], [], {}, x.sign() }
    grad! { "gradient", "round", [x], [], {}, x.round() }
    grad! { "gradient", "floor", [x], [], {}, x.floor() }
    grad! { "gradient", "ceil", [x], [], {}, x.ceil() }
    grad! { "gradient", "relu", [x], [], {}, relu(x) }
    grad! { "gradient", "gelu", [x], [], {}, gelu(x) }
    grad! { "gradient", "sigmoid", [x], [], {}, sigmoid(x) }
    grad! { "gradient", "log_sigmoid", [x], [], {}, log_sigmoid(x) }
    grad! { "gradient", "silu", [x], [], {}, silu(x) }
    grad! { "gradient", "mish", [x], [], {}, mish(x) }
    grad! { "gradient", "tanh_activation", [x], [], {}, tanh(x) }
    let negative_slope = pick(&[0.01, 0.3, -0.5]);
    grad! { "gradient", "leaky_relu", [x], [], {negative_slope}, leaky_relu(x, negative_slope) }
    let (alpha, beta) = (pick(&[0.2, -0.5]), pick(&[0.5, 0.1]));
    grad! { "gradient", "hard_sigmoid", [x], [], {alpha, beta}, hard_sigmoid(x, alpha, beta) }
    let beta = pick(&[1.0, 0.5, 3.0]);
    grad! { "gradient", "softplus", [x], [], {beta}, softplus(x, beta) }
    let alpha = numbers([if D > 1 && percent(60) { sizes[1] } else { 1 }]);
    grad! { "gradient", "prelu", [x, alpha], [], {}, prelu(x, alpha) }
    let s = pick(&[2.0, -0.5, 0.25, 3.0, 1.0, 0.0]);
    grad! { "gradient", "add_scalar", [x], [], {s}, x.add_scalar(s) }
    grad! { "gradient", "sub_scalar", [x], [], {s}, x.sub_scalar(s) }
    grad! { "gradient", "mul_scalar", [x], [], {s}, x.mul_scalar(s) }
    grad! { "gradient", "div_scalar", [x], [], {s}, x.div_scalar(s) }
    grad! { "gradient", "remainder_scalar", [x], [], {s}, x.remainder_scalar(s) }
    let s = pick(&[2, 3, 4, 1, 0]);
    grad! { "gradient", "powi_scalar", [x], [], {s}, x.powi_scalar(s) }
    let (min, max) = (-0.5 - positive(), positive());
    grad! { "gradient", "clamp", [x], [], {min, max}, x.clamp(min, max) }
    grad! { "gradient", "clamp_min", [x], [], {min}, x.clamp_min(min) }
    grad! { "gradient", "clamp_max", [x], [], {max}, x.clamp_max(max) }
    let dim = below(D);
    grad! { "gradient", "sum", [x], [], {}, x.sum() }
    grad! { "gradient", "mean", [x], [], {}, x.mean() }
    grad! { "gradient", "max", [x], [], {}, x.max() }
    grad! { "gradient", "min", [x], [], {}, x.min() }
    grad! { "gradient", "sum_dim", [x], [], {dim}, x.sum_dim(dim) }
    grad! { "gradient", "mean_dim", [x], [], {dim}, x.mean_dim(dim) }
    grad! { "gradient", "max_dim", [x], [], {dim}, x.max_dim(dim) }
    grad! { "gradient", "min_dim", [x], [], {dim}, x.min_dim(dim) }
    grad! { "gradient", "max_dim_with_indices", [x], [], {dim}, x.max_dim_with_indices(dim).0 }
    grad! { "gradient", "min_dim_with_indices", [x], [], {dim}, x.min_dim_with_indices(dim).0 }
    grad! { "gradient", "sort", [x], [], {dim}, x.sort(dim) }
    grad! { "gradient", "sort_descending", [x], [], {dim}, x.sort_descending(dim) }
    let n = 1 + below(sizes[dim]);
    grad! { "gradient", "topk", [x], [], {n, dim}, x.topk(n, dim) }
    grad! { "gradient", "softmax", [x], [], {dim}, softmax(x, dim) }
    grad! { "gradient", "log_softmax", [x], [], {dim}, log_softmax(x, dim) }
    grad! { "gradient", "softmin", [x], [], {dim}, softmin(x, dim) }
    grad! { "gradient", "quiet_softmax", [x], [], {dim}, quiet_softmax(x, dim) }
    grad! { "gradient", "transpose", [x], [], {}, x.transpose() }
    let (dim1, dim2) = (below(D), below(D));
    grad! { "gradient", "swap_dims", [x], [], {dim1, dim2}, x.swap_dims(dim1, dim2) }
    let mut axes: [i32; D] = std::array::from_fn(|i| i as i32);
    (0..D).for_each(|i| axes.swap(i, below(D)));
    grad! { "gradient", "permute", [x], [], {axes}, x.permute(axes.map(|a| a as isize)) }
    let axes = [below(D) as i32];
    grad! { "gradient", "flip", [x], [], {axes}, x.flip(axes.map(|a| a as isize)) }
    let (src, dst) = (below(D), below(D));
    grad! { "gradient", "movedim", [x], [], {src, dst}, x.movedim(src, dst) }
    let (start_dim, end_dim) = (0, D - 1);
    grad! { "gradient", "flatten", [x], [], {start_dim, end_dim}, x.flatten::<1>(start_dim, end_dim) }
    let shape = [-1, sizes[D - 1] as i32];
    grad! { "gradient", "reshape", [x], [], {shape}, x.reshape::<2, [i32; 2]>(shape) }
    let start = below(sizes[dim]);
    let length = 1 + below(sizes[dim] - start);
    grad! { "gradient", "narrow", [x], [], {dim, start, length}, x.narrow(dim, start, length) }
    let ranges = sizes.map(|size| {
        let from = below(size);
        (from, from + 1 + below(size - from))
    });
    grad! { "gradient", "slice", [x], [], {ranges}, x.slice(ranges.map(|(a, b)| a..b)) }
    let v = numbers(ranges.map(|(a, b)| b - a));
    grad! { "gradient", "slice_assign", [x, v], [], {ranges},
    x.slice_assign(ranges.map(|(a, b)| a..b), v) }
    let (dim, times) = (below(D), 1 + below(3));
    grad! { "gradient", "repeat_dim", [x], [], {dim, times}, x.repeat_dim(dim, times) }
    let y = numbers(sizes.map(|size| if percent(20) { 1 } else { size }));
    grad! { "gradient", "add", [x, y], [], {}, x + y }
    grad! { "gradient", "sub", [x, y], [], {}, x - y }
    grad! { "gradient", "mul", [x, y], [], {}, x * y }
    grad! { "gradient", "div", [x, y], [], {}, x / y }
    grad! { "gradient", "max_pair", [x, y], [], {}, x.max_pair(y) }
    grad! { "gradient", "min_pair", [x, y], [], {}, x.min_pair(y) }
    let y = numbers(sizes);
    grad! { "gradient", "cat", [x, y], [], {dim}, Tensor::cat(vec![x, y], dim) }
    let mask = truths(sizes);
    let value = number();
    grad! { "gradient", "mask_fill", [x], [mask], {value}, x.mask_fill(mask, value) }
    grad! { "gradient", "mask_where", [x, y], [mask], {}, x.mask_where(mask, y) }
    let mut other = sizes;
    other[dim] = 1 + below(4);
    let indices = under(other, sizes[dim]);
    grad! { "gradient", "gather", [x], [indices], {dim}, x.gather(dim, indices) }
    let v = numbers(other);
    grad! { "gradient", "scatter", [x, v], [indices], {dim}, x.scatter(dim, indices, v) }
    let indices = under([other[dim]], sizes[dim]);
    grad! { "gradient", "select", [x], [indices], {dim}, x.select(dim, indices) }
    grad! { "gradient", "select_assign", [x, v], [indices], {dim},
    x.select_assign(dim, indices, v) }
    let x = positives(sizes);
    grad! { "gradient", "log", [x], [], {}, x.log() }
    grad! { "gradient", "log1p", [x], [], {}, x.log1p() }
    grad! { "gradient", "sqrt", [x], [], {}, x.sqrt() }
    grad! { "gradient", "prod", [x], [], {}, x.prod() }
    grad! { "gradient", "prod_dim", [x], [], {dim}, x.prod_dim(dim) }
    let s = pick(&[-1.5, 0.5, 2.0, 0.0, 1.0]);
    grad! { "gradient", "powf_scalar", [x], [], {s}, x.powf_scalar(s) }
    let y = numbers(sizes);
    grad! { "gradient", "powf", [x, y], [], {}, x.powf(y) }
    let x = numbers(sizes.map(|size| size + 1));
    grad! { "gradient", "var", [x], [], {dim}, x.var(dim) }
    grad! { "gradient", "var_bias", [x], [], {dim}, x.var_bias(dim) }
    if D > 1 {
        let correction_factor = below(2);
        grad! { "gradient", "cov", [x], [], {dim, correction_factor}, x.cov(dim, correction_factor) }
        let diagonal = below(5) as i64 - 2;
        grad! { "gradient", "triu", [x], [], {diagonal}, x.triu(diagonal) }
        let (padding, value) = ((1, 0, 2, 1), number());
        grad! { "gradient", "pad", [x], [], {padding, value}, x.pad(padding, value) }
        let mut other = x.dims();
        other.swap(D - 1, D - 2);
        let y = numbers(other);
        grad! { "gradient", "matmul", [x, y], [], {}, x.matmul(y) }
    }
}

pub fn other_slopes() {
    let x = numbers([2, 1, 3]);
    let shape = [2, 2, 4, 3];
    grad! { "gradient", "expand", [x], [], {shape}, x.expand::<4, [i32; 4]>(shape) }
    let dim = 1;
    grad! { "gradient", "squeeze", [x], [], {dim}, x.squeeze::<2>(dim) }
    let dim = below(4);
    grad! { "gradient", "unsqueeze_dim", [x], [], {dim}, x.unsqueeze_dim::<4>(dim) }
    let y = numbers([2, 1, 3]);
    grad! { "gradient", "stack", [x, y], [], {dim}, A::stack::<4>(vec![x, y], dim) }
    let (weights, indices) = (numbers([4, 3]), under([2, 1 + below(4)], 4));
    grad! { "gradient", "embedding", [weights], [indices], {},
    functional::embedding(weights, indices) }
    let (kernel_size, stride, padding, dilation) = (1 + below(3), 1 + below(3), below(2), 1);
    let x = numbers([1 + below(2), 2, 7]);
    let padding = padding.min(kernel_size / 2);
    grad! { "gradient", "max_pool1d", [x], [], {kernel_size, stride, padding, dilation},
    functional::max_pool1d(x, kernel_size, stride, padding, dilation) }
    let count_include_pad = percent(50);
    grad! { "gradient", "avg_pool1d", [x], [], {kernel_size, stride, padding, count_include_pad},
    functional::avg_pool1d(x, kernel_size, stride, padding, count_include_pad) }
    let output_size = 1 + below(7);
    grad! { "gradient", "adaptive_avg_pool1d", [x], [], {output_size},
    functional::adaptive_avg_pool1d(x, output_size) }
    let x = numbers([1, 2, 5, if percent(50) { 5 } else { 6 }]);
    let (kernel_size, stride) = ([1 + below(3), 2], [1 + below(2), 1 + below(3)]);
    let (padding, dilation) = ([kernel_size[0] / 2, below(2)], [1, 1 + below(2)]);
    grad! { "gradient", "max_pool2d", [x], [], {kernel_size, stride, padding, dilation},
    functional::max_pool2d(x, kernel_size, stride, padding, dilation) }
    grad! { "gradient", "avg_pool2d", [x], [], {kernel_size, stride, padding, count_include_pad},
    functional::avg_pool2d(x, kernel_size, stride, padding, count_include_pad) }
    let output_size = [1 + below(5), 1 + below(6)];
    grad! { "gradient", "adaptive_avg_pool2d", [x], [], {output_size},
    functional::adaptive_avg_pool2d(x, output_size) }
    grad! { "gradient", "unfold4d", [x], [], {kernel_size, stride, padding, dilation},
    functional::unfold4d(x, kernel_size, UnfoldOptions::new(stride, padding, dilation)) }
    let mode = pick(&["Nearest", "Bilinear", "Bicubic"]);
    grad! { "gradient", "interpolate", [x], [], {output_size, mode},
    functional::interpolate(x, output_size, InterpolateOptions::new(match mode {
        "Nearest" => Mode::Nearest,
        "Bilinear" => Mode::Bilinear,
        _ => Mode::Bicubic,
    })) }
    convolutions();
    transposed_convolutions();
    tracking();
}

pub fn convolutions() {
    let groups = pick(&[1, 1, 2]);
    let (stride, padding, dilation) = (1 + below(3), below(3), 1 + below(2));
    let x = numbers([1 + below(2), 2, 6 + below(4)]);
    let (weight, bias) = (numbers([4, 2 / groups, 1 + below(3)]), numbers([4]));
    grad! { "gradient", "conv1d", [x, weight, bias], [], {stride, padding, dilation, groups},
    functional::conv1d(x, weight, Some(bias),
        ConvOptions::new([stride], [padding], [dilation], groups)) }
    let two = |least: usize, most: usize| [least + below(most), least + below(most)];
    let (stride, padding, dilation) = (two(1, 2), two(0, 2), two(1, 2));
    let x = numbers([1, 2, 5 + below(3), 5]);
    let (weight, bias) = (numbers([2, 2 / groups, 1 + below(3), 2]), numbers([2]));
    grad! { "gradient", "conv2d", [x, weight, bias], [], {stride, padding, dilation, groups},
    functional::conv2d(x, weight, Some(bias),
        ConvOptions::new(stride, padding, dilation, groups)) }
    let x = numbers([1, 2, 4, 5, 4]);
    let weight = numbers([2, 2 / groups, 2, 1, 1 + below(3)]);
    let stride = [1 + below(2), 1, 1 + below(2)];
    let (padding, dilation) = ([below(2), below(2), 1], [1, 1, 1]);
    grad! { "gradient", "conv3d", [x, weight, bias], [], {stride, padding, dilation, groups},
    functional::conv3d(x, weight, Some(bias),
        ConvOptions::new(stride, padding, dilation, groups)) }
    let (weight_groups, offset_groups) = (pick(&[1, 2]), pick(&[1, 1, 2]));
    let x = straight([1, 2, 4, 5]);
    let offset = straight([1, 8 * offset_groups, 3, 4]) * 0.7;
    let mask = straight([1, 4 * offset_groups, 3, 4]);
    let weight = straight([2, 2 / weight_groups, 2, 2]);
    grad! { "gradient", "deform_conv2d", [x, offset, weight, mask, bias], [],
    {weight_groups, offset_groups},
    functional::deform_conv2d(x, offset, weight, Some(mask), Some(bias),
        DeformConvOptions::new([1, 1], [0, 0], [1, 1], weight_groups, offset_groups)) }
}

pub fn transposed_convolutions() {
    let groups = pick(&[1, 1, 2]);
    let (stride, dilation) = (1 + below(3), 1 + below(2));
    let (padding, padding_out) = (below(2), below(stride));
    let x = numbers([1 + below(2), 2, 3 + below(4)]);
    let (weight, bias) = (numbers([2, 2 / groups, 2 + below(2)]), numbers([2]));
    grad! { "gradient", "conv_transpose1d", [x, weight, bias], [],
    {stride, padding, padding_out, dilation, groups},
    functional::conv_transpose1d(x, weight, Some(bias),
        ConvTransposeOptions::new([stride], [padding], [padding_out], [dilation], groups)) }
    let (stride, dilation) = ([1 + below(2), 2], [1, 1 + below(2)]);
    let (padding, padding_out) = ([below(2), 1], [0, below(2)]);
    let x = numbers([1, 2, 3, 4]);
    let weight = numbers([2, 2 / groups, 3, 2 + below(2)]);
    grad! { "gradient", "conv_transpose2d", [x, weight, bias], [],
    {stride, padding, padding_out, dilation, groups},
    functional::conv_transpose2d(x, weight, Some(bias),
        ConvTransposeOptions::new(stride, padding, padding_out, dilation, groups)) }
    let (stride, dilation) = ([1, 1 + below(2), 2], [1, 1, 1]);
    let (padding, padding_out) = ([1, 0, below(2)], [0, 0, below(2)]);
    let x = numbers([1, 2, 2, 3, 2]);
    let weight = numbers([2, 2 / groups, 3, 2, 2]);
    grad! { "gradient", "conv_transpose3d", [x, weight, bias], [],
    {stride, padding, padding_out, dilation, groups},
    functional::conv_transpose3d(x, weight, Some(bias),
        ConvTransposeOptions::new(stride, padding, padding_out, dilation, groups)) }
}

/// What tracking does: no gradients of outputs are told.
pub fn tracking() {
    let (x, y) = (numbers([3]), numbers([3]));
    case! { "gradient", "is_require_grad", [x], {}, {
        let x = x.lift();
        (x.is_require_grad(), x.clone().require_grad().is_require_grad(),
            (x.require_grad() * 2).is_require_grad())
    } }
    case! { "gradient", "set_require_grad", [x], {}, {
        let x = x.lift();
        (x.clone().set_require_grad(true).is_require_grad(),
            x.require_grad().set_require_grad(false).is_require_grad())
    } }
    case! { "gradient", "detach_result", [x], {}, {
        let x = x.lift().require_grad();
        let y = (x.clone() * 3).detach() * x.clone();
        x.grad(&y.sum().backward())
    } }
    case! { "gradient", "grad_unreached", [x, y], {}, {
        let (x, y) = (x.lift().require_grad(), y.lift().require_grad());
        let grads = (x * 2).sum().backward();
        y.grad(&grads)
    } }
    case! { "gradient", "require_grad_of_result", [x], {},
    (x.lift().require_grad() * 2).require_grad().is_require_grad() }
    case! { "gradient", "backward_untracked", [x], {}, { x.lift().backward(); } }
    case! { "gradient", "grad_replace", [x, y], {}, {
        let x = x.lift().require_grad();
        let mut grads = (x.clone() * 2).sum().backward();
        x.grad_replace(&mut grads, y);
        x.grad(&grads)
    } }
    case! { "gradient", "inner_outer", [x], {}, {
        let inner = x.lift().inner();
        let back = A::<1>::from_inner(inner.clone());
        (inner, back.is_require_grad(), back)
    } }
}
