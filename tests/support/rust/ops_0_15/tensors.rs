//! Methods and functions of tensors.
use super::*;

pub trait Kind: BasicOps<B> + Sized {
    fn draw<const D: usize>(shape: [usize; D]) -> Tensor<B, D, Self>;
}

impl Kind for Float {
    fn draw<const D: usize>(shape: [usize; D]) -> F<D> {
        floats(shape)
    }
}

impl Kind for Int {
    fn draw<const D: usize>(shape: [usize; D]) -> I<D> {
        ints(shape)
    }
}

impl Kind for Bool {
    fn draw<const D: usize>(shape: [usize; D]) -> L<D> {
        truths(shape)
    }
}

pub fn span(size: usize) -> (usize, usize) {
    let start = below(size + 1);
    (start, start + below(size + 1 - start))
}

pub fn basic<K: Kind, const D: usize>()
where
    <K as BasicOps<B>>::Elem: Outcome,
{
    let sizes = shape::<D>();
    let x = K::draw(sizes);
    case! { "basic", "dims", [x], {}, x.dims().to_vec().told() }
    case! { "basic", "shape", [x], {}, x.shape() }
    case! { "basic", "from_data", [x], {}, x }
    case! { "basic", "to_device", [x], {}, x.to_device(&device()) }
    case! { "basic", "transpose", [x], {}, x.transpose() }
    let (dim1, dim2) = (dim::<D>(), dim::<D>());
    case! { "basic", "swap_dims", [x], {dim1, dim2}, x.swap_dims(dim1, dim2) }
    let mut axes: [isize; D] = std::array::from_fn(|i| i as isize);
    for i in 0..D {
        axes.swap(i, below(D));
    }
    if percent(4) {
        axes[0] = axes[D - 1];
    }
    let axes = axes.map(|a| (a - if percent(30) { D as isize } else { 0 }) as i32);
    case! { "basic", "permute", [x], {axes}, x.permute(axes.map(|a| a as isize)) }
    let signed = || below(D) as i32 - if percent(30) { D as i32 } else { 0 };
    let (src, dst) = (signed(), signed());
    case! { "basic", "movedim", [x], {src, dst}, x.movedim(src, dst) }
    let axes = [signed()];
    case! { "basic", "flip", [x], {axes}, x.flip(axes.map(|a| a as isize)) }
    let (dim, times) = (dim::<D>(), 1 + below(3));
    case! { "basic", "repeat_dim", [x], {dim, times}, x.repeat_dim(dim, times) }
    let sizes_: [usize; D] = std::array::from_fn(|_| pick(&[1, 1, 2, 3]));
    let sizes = sizes_;
    case! { "basic", "repeat", [x], {sizes}, x.repeat(&sizes) }
    let (dim, k) = (below(D), x.dims());
    let start = below(k[dim] + 1);
    let length = below(k[dim] + 1 - start) + usize::from(percent(8));
    case! { "basic", "narrow", [x], {dim, start, length}, x.narrow(dim, start, length) }
    let ranges = k.map(|size| {
        let (from, to) = span(size);
        (from, to.max(from + usize::from(from < size)))
    });
    case! { "basic", "slice", [x], {ranges}, x.slice(ranges.map(|(a, b)| a..b)) }
    let ranges = k.map(|size| match below(3) {
        0 => None,
        1 => Some((-(1 + below(size + 1) as i64), size as i64)),
        _ => Some((below(size) as i64, -(below(size + 1) as i64))),
    });
    case! { "basic", "slice", [x], {ranges}, x.slice(ranges) }
    let ranges = k.map(|size| {
        let from = below(size);
        (
            from,
            from + 1 + below(size - from.min(size.saturating_sub(1))).min(size - from),
        )
    });
    let v = K::draw(ranges.map(|(a, b)| b - a));
    case! { "basic", "slice_assign", [x, v], {ranges},
    x.slice_assign(ranges.map(|(a, b)| a..b), v) }
    let chunks = 1 + below(4);
    case! { "basic", "chunk", [x], {chunks, dim}, x.chunk(chunks, dim) }
    case! { "basic", "iter_dim", [x], {dim}, x.iter_dim(dim).collect::<Vec<_>>() }
    let y = K::draw({
        let mut other = k;
        other[dim] = 1 + below(3);
        if percent(8) {
            other[below(D)] += 1;
        }
        other
    });
    case! { "basic", "cat", [x, y], {dim}, Tensor::cat(vec![x, y], dim) }
    let y = K::draw(if percent(8) { partner(k) } else { k });
    case! { "basic", "equal", [x, y], {}, x.equal(y) }
    case! { "basic", "not_equal", [x, y], {}, x.not_equal(y) }
    case! { "basic", "any", [x], {}, x.any() }
    case! { "basic", "all", [x], {}, x.all() }
    let dim = crate::dim::<D>();
    case! { "basic", "any_dim", [x], {dim}, x.any_dim(dim) }
    case! { "basic", "all_dim", [x], {dim}, x.all_dim(dim) }
    let shape = [x.shape().num_elements()];
    case! { "basic", "reshape", [x], {shape}, x.reshape::<1, [usize; 1]>(shape) }
    let shape = [if percent(50) { 0 } else { 1 + below(3) as i32 }, -1];
    case! { "basic", "reshape", [x], {shape}, x.reshape::<2, [i32; 2]>(shape) }
    let (start_dim, end_dim) = (0, D - 1);
    case! { "basic", "flatten", [x], {start_dim, end_dim}, x.flatten::<1>(start_dim, end_dim) }
    let rank = 5;
    case! { "basic", "unsqueeze", [x], {rank}, x.unsqueeze::<5>() }
    let x = K::draw([pick(&[0, 1, 1, 2])]);
    case! { "basic", "into_scalar", [x], {}, x.into_scalar() }
}

/// What changes the number of dims, or needs three of them.
pub fn ranked<K: Kind>() {
    let x = K::draw(shape::<3>().map(|s| if percent(40) { 1 } else { s }));
    case! { "basic", "to_data", [x], {}, x.transpose().to_data() }
    case! { "basic", "into_data", [x], {}, x.permute([2, 0, 1]).into_data() }
    let dim = dim::<3>();
    case! { "basic", "squeeze", [x], {dim}, x.squeeze::<2>(dim) }
    for dims in [vec![], vec![below(4) as i64 - 3], vec![below(3) as i64, -1]] {
        let at = |dim: i64| (dim + if dim < 0 { 3 } else { 0 }) as usize;
        let meant = |dim: usize| dims.iter().any(|&one| at(one) == dim);
        let gone = |dim: &usize| {
            if dims.is_empty() {
                x.dims()[*dim] == 1
            } else {
                meant(*dim)
            }
        };
        let axes: Vec<isize> = dims.iter().map(|&dim| dim as isize).collect();
        match (0..3).filter(gone).count() {
            0 => case! { "basic", "squeeze_dims", [x], {dims}, x.squeeze_dims::<3>(&axes) },
            1 => case! { "basic", "squeeze_dims", [x], {dims}, x.squeeze_dims::<2>(&axes) },
            _ => case! { "basic", "squeeze_dims", [x], {dims}, x.squeeze_dims::<1>(&axes) },
        }
    }
    let dim = below(5);
    case! { "basic", "unsqueeze_dim", [x], {dim}, x.unsqueeze_dim::<4>(dim) }
    let dims: Vec<i64> = vec![below(5) as i64, -1 - below(3) as i64];
    case! { "basic", "unsqueeze_dims", [x], {dims},
    x.unsqueeze_dims::<5>(&dims.iter().map(|&d| d as isize).collect::<Vec<_>>()) }
    let dims: Vec<i64> = vec![below(5) as i64 - 4];
    case! { "basic", "unsqueeze_dims", [x], {dims},
    x.unsqueeze_dims::<4>(&dims.iter().map(|&d| d as isize).collect::<Vec<_>>()) }
    let (start_dim, end_dim) = pick(&[(0, 1), (1, 2), (1, 2), (2, 1), (0, 3)]);
    case! { "basic", "flatten", [x], {start_dim, end_dim}, x.flatten::<2>(start_dim, end_dim) }
    let axes = [[0, 2], [-1, 0], [1, 1], [-2, -3]][below(4)];
    case! { "basic", "flip", [x], {axes}, x.flip(axes.map(|a: i32| a as isize)) }
    let [a, b, c] = x.dims();
    let shape = [b, c, a];
    case! { "basic", "reshape", [x], {shape}, x.reshape::<3, [usize; 3]>(shape) }
    let shape = [a, b * c + usize::from(percent(20))];
    case! { "basic", "reshape", [x], {shape}, x.reshape::<2, [usize; 2]>(shape) }
    let shape = pick(&[
        [0, 0, 0],
        [-1, 0, 0],
        [0, -1, 1],
        [1, 0, -1],
        [-1, 1, -1],
        [3, 2, -1],
    ]);
    case! { "basic", "reshape", [x], {shape}, x.reshape::<3, [i32; 3]>(shape) }
    let grow = |size: usize| if size == 1 { 1 + below(4) } else { size };
    let shape = [grow(a), grow(b), grow(c) + usize::from(percent(5))];
    case! { "basic", "expand", [x], {shape}, x.expand::<3, [usize; 3]>(shape) }
    let shape = [-1, grow(b) as i64, -1];
    case! { "basic", "expand", [x], {shape}, x.expand::<3, [i64; 3]>(shape) }
    let shape = [2, a, b, c];
    case! { "basic", "expand", [x], {shape}, x.expand::<4, [usize; 4]>(shape) }
    let y = K::draw(x.dims());
    let dim = below(4) + usize::from(percent(5));
    case! { "basic", "stack", [x, y], {dim}, Tensor::stack::<4>(vec![x, y], dim) }
    let ranges = [span(a)];
    case! { "basic", "slice", [x], {ranges}, x.slice(ranges.map(|(a, b)| a..b)) }
    let (src, dst) = (vec![0, 2], pick(&[vec![1, 0], vec![2, 1], vec![-1, 0]]));
    case! { "basic", "movedim", [x], {src, dst}, x.movedim(src.clone(), dst.clone()) }
    let y = K::draw([1, 1, 1]);
    let z = K::draw([1, 1, 2]);
    let dim = 2;
    let w = K::draw([1, 1, 3]);
    case! { "basic", "cat", [y, z, w], {dim}, Tensor::cat(vec![y, z, w], dim) }
}

// Numbers.

pub trait Number: Kind + Numeric<B> {
    /// Numbers to compute with one by one.
    fn one() -> (Value, <Self as BasicOps<B>>::Elem);
}

impl Number for Float {
    fn one() -> (Value, f32) {
        let value = pick(&[
            0.0,
            1.0,
            -1.5,
            0.5,
            2.0,
            3.0,
            -0.25,
            f32::INFINITY,
            f32::NAN,
            number(),
        ]);
        (short(value), value)
    }
}

impl Number for Int {
    fn one() -> (Value, i64) {
        let value = pick(&[0, 1, -1, 2, 3, -5, 7, 100, below(50) as i64]);
        (json!(value), value)
    }
}

/// A number as an argument of its kind.
#[derive(Clone, Copy)]
pub struct Scalar<E>(E);

impl Arg for Scalar<f32> {
    fn told(&self) -> Value {
        short(self.0)
    }
}

impl Arg for Scalar<i64> {
    fn told(&self) -> Value {
        json!(self.0)
    }
}

pub fn numeric<K: Number, const D: usize>()
where
    <K as BasicOps<B>>::Elem: Outcome + ElementConversion + Element,
    Scalar<<K as BasicOps<B>>::Elem>: Arg + Copy,
    <K as BasicOps<B>>::Elem: Copy,
{
    let sizes = shape::<D>();
    let x = K::draw(sizes);
    let y = K::draw(partner(sizes));
    case! { "numeric", "add", [x, y], {}, x.add(y) }
    case! { "numeric", "add", [x, y], {}, x + y }
    case! { "numeric", "sub", [x, y], {}, x.sub(y) }
    case! { "numeric", "mul", [x, y], {}, x.mul(y) }
    case! { "numeric", "div", [x, y], {}, x.div(y) }
    case! { "numeric", "max_pair", [x, y], {}, x.max_pair(y) }
    case! { "numeric", "min_pair", [x, y], {}, x.min_pair(y) }
    case! { "numeric", "greater", [x, y], {}, x.greater(y) }
    case! { "numeric", "greater_equal", [x, y], {}, x.greater_equal(y) }
    case! { "numeric", "lower", [x, y], {}, x.lower(y) }
    case! { "numeric", "lower_equal", [x, y], {}, x.lower_equal(y) }
    case! { "basic", "add", [x, y], {}, x + y }
    case! { "basic", "sub", [x, y], {}, x - y }
    let y = K::draw(sizes);
    case! { "numeric", "powf", [x, y], {}, x.powf(y) }
    case! { "numeric", "powi", [x, y], {}, x.powi(y) }
    let (rtol, atol) = (
        pick(&[None, Some(1e-3), Some(0.5)]),
        pick(&[None, Some(0.1)]),
    );
    case! { "numeric", "is_close", [x, y], {rtol, atol}, x.is_close(y, rtol, atol) }
    case! { "numeric", "all_close", [x, y], {rtol, atol}, x.all_close(y, rtol, atol) }
    let y = x.clone();
    case! { "numeric", "all_close", [x, y], {rtol, atol}, x.all_close(y, rtol, atol) }
    let s = Scalar(K::one().1);
    case! { "numeric", "add_scalar", [x], {s}, x.add_scalar(s.0) }
    case! { "numeric", "sub_scalar", [x], {s}, x.sub_scalar(s.0) }
    case! { "numeric", "mul_scalar", [x], {s}, x.mul_scalar(s.0) }
    case! { "numeric", "div_scalar", [x], {s}, x.div_scalar(s.0) }
    case! { "numeric", "remainder_scalar", [x], {s}, x.remainder_scalar(s.0) }
    case! { "numeric", "equal_elem", [x], {s}, x.equal_elem(s.0) }
    case! { "numeric", "not_equal_elem", [x], {s}, x.not_equal_elem(s.0) }
    case! { "numeric", "greater_elem", [x], {s}, x.greater_elem(s.0) }
    case! { "numeric", "greater_equal_elem", [x], {s}, x.greater_equal_elem(s.0) }
    case! { "numeric", "lower_elem", [x], {s}, x.lower_elem(s.0) }
    case! { "numeric", "lower_equal_elem", [x], {s}, x.lower_equal_elem(s.0) }
    let (min, max) = (s, Scalar(K::one().1));
    case! { "numeric", "clamp", [x], {min, max}, x.clamp(min.0, max.0) }
    case! { "numeric", "clamp_min", [x], {min}, x.clamp_min(min.0) }
    case! { "numeric", "clamp_max", [x], {max}, x.clamp_max(max.0) }
    let fill_value = s;
    case! { "numeric", "full_like", [x], {fill_value}, x.full_like(fill_value.0) }
    let s = pick(&[0, 1, 2, 3, 5]);
    case! { "numeric", "powi_scalar", [x], {s}, x.powi_scalar(s) }
    case! { "numeric", "powf_scalar", [x], {s}, x.powf_scalar(s) }
    case! { "numeric", "zeros_like", [x], {}, x.zeros_like() }
    case! { "numeric", "ones_like", [x], {}, x.ones_like() }
    case! { "numeric", "neg", [x], {}, x.neg() }
    case! { "numeric", "abs", [x], {}, x.abs() }
    case! { "numeric", "sign", [x], {}, x.sign() }
    case! { "numeric", "bool", [x], {}, x.bool() }
    case! { "numeric", "sum", [x], {}, x.sum() }
    case! { "numeric", "mean", [x], {}, x.mean() }
    case! { "numeric", "prod", [x], {}, x.prod() }
    case! { "numeric", "max", [x], {}, x.max() }
    case! { "numeric", "min", [x], {}, x.min() }
    let dim = dim::<D>();
    case! { "numeric", "sum_dim", [x], {dim}, x.sum_dim(dim) }
    case! { "numeric", "mean_dim", [x], {dim}, x.mean_dim(dim) }
    case! { "numeric", "prod_dim", [x], {dim}, x.prod_dim(dim) }
    case! { "numeric", "max_dim", [x], {dim}, x.max_dim(dim) }
    case! { "numeric", "min_dim", [x], {dim}, x.min_dim(dim) }
    case! { "numeric", "argmax", [x], {dim}, x.argmax(dim) }
    case! { "numeric", "argmin", [x], {dim}, x.argmin(dim) }
    case! { "numeric", "max_dim_with_indices", [x], {dim}, x.max_dim_with_indices(dim) }
    case! { "numeric", "min_dim_with_indices", [x], {dim}, x.min_dim_with_indices(dim) }
    case! { "numeric", "sort", [x], {dim}, x.sort(dim) }
    case! { "numeric", "sort_descending", [x], {dim}, x.sort_descending(dim) }
    case! { "numeric", "sort_with_indices", [x], {dim}, x.sort_with_indices(dim) }
    case! { "numeric", "sort_descending_with_indices", [x], {dim},
    x.sort_descending_with_indices(dim) }
    case! { "numeric", "argsort", [x], {dim}, x.argsort(dim) }
    case! { "numeric", "argsort_descending", [x], {dim}, x.argsort_descending(dim) }
    let k = 1 + below(sizes[dim.min(D - 1)].max(1));
    case! { "numeric", "topk", [x], {k, dim}, x.topk(k, dim) }
    case! { "numeric", "topk_with_indices", [x], {k, dim}, x.topk_with_indices(k, dim) }
    let m = truths(sizes);
    let value = Scalar(K::one().1);
    case! { "numeric", "mask_fill", [x, m], {value}, x.mask_fill(m, value.0) }
    let v = K::draw(if percent(20) { partner(sizes) } else { sizes });
    case! { "numeric", "mask_where", [x, m, v], {}, x.mask_where(m, v) }
    let x = K::draw(full_shape::<D>());
    let sizes = x.dims();
    let (dim, limit) = (below(D), sizes);
    let mut other = sizes;
    other[dim] = 1 + below(4);
    let indices = under(other, limit[dim] + usize::from(percent(5)));
    case! { "numeric", "gather", [x], {dim, indices}, x.gather(dim, indices.clone()) }
    let v = K::draw(other);
    case! { "numeric", "scatter", [x, v], {dim, indices}, x.scatter(dim, indices.clone(), v) }
    let indices = under([1 + below(4)], limit[dim] + usize::from(percent(5)));
    case! { "numeric", "select", [x], {dim, indices}, x.select(dim, indices.clone()) }
    let mut other = sizes;
    other[dim] = indices.dims()[0];
    let v = K::draw(other);
    case! { "numeric", "select_assign", [x, v], {dim, indices},
    x.select_assign(dim, indices.clone(), v) }
}

/// What needs two dims.
pub fn flat<K: Number, const D: usize>()
where
    Scalar<<K as BasicOps<B>>::Elem>: Arg + Copy,
    <K as BasicOps<B>>::Elem: Copy,
{
    let x = K::draw(full_shape::<D>());
    let diagonal = below(7) as i64 - 3;
    case! { "numeric", "triu", [x], {diagonal}, x.triu(diagonal) }
    case! { "numeric", "tril", [x], {diagonal}, x.tril(diagonal) }
    let padding = (below(3), below(3), below(3), below(2));
    let value = Scalar(K::one().1);
    case! { "numeric", "pad", [x], {padding, value}, x.pad(padding, value.0) }
}

/// The ways of Float alone.
pub fn real<const D: usize>() {
    let x = floats(shape::<D>());
    case! { "float", "exp", [x], {}, x.exp() }
    case! { "float", "log", [x], {}, x.log() }
    case! { "float", "log1p", [x], {}, x.log1p() }
    case! { "float", "erf", [x], {}, x.erf() }
    case! { "float", "recip", [x], {}, x.recip() }
    case! { "float", "sqrt", [x], {}, x.sqrt() }
    case! { "float", "cos", [x], {}, x.cos() }
    case! { "float", "sin", [x], {}, x.sin() }
    case! { "float", "tanh", [x], {}, x.tanh() }
    case! { "float", "round", [x], {}, x.round() }
    case! { "float", "floor", [x], {}, x.floor() }
    case! { "float", "ceil", [x], {}, x.ceil() }
    case! { "float", "int", [x], {}, x.int() }
    case! { "numeric", "is_nan", [x], {}, x.is_nan() }
    case! { "numeric", "contains_nan", [x], {}, x.contains_nan() }
    case! { "float", "random_like", [x], {},
    x.random_like(burn::tensor::Distribution::Default).shape() }
    let s = pick(&[0.5, -1.0, 2.0, 1.5, -0.5, 0.333, -3.0, 0.0]);
    case! { "numeric", "powf_scalar", [x], {s}, x.powf_scalar(s) }
    case! { "numeric", "powi_scalar", [x], {s}, x.powi_scalar(s) }
    case! { "numeric", "remainder_scalar", [x], {s}, x.remainder_scalar(s) }
    case! { "numeric", "add_scalar", [x], {s}, x + s }
    let s = 1 + below(4) as i64;
    case! { "numeric", "remainder_scalar", [x], {s}, x % s }
    case! { "numeric", "div_scalar", [x], {s}, x / s }
    let dim = dim::<D>();
    case! { "float", "var", [x], {dim}, x.var(dim) }
    case! { "float", "var_bias", [x], {dim}, x.var_bias(dim) }
    case! { "float", "var_mean", [x], {dim}, x.var_mean(dim) }
    case! { "float", "var_mean_bias", [x], {dim}, x.var_mean_bias(dim) }
    let correction_factor = below(3);
    case! { "float", "cov", [x], {dim, correction_factor}, x.cov(dim, correction_factor) }
    case! { "activation", "softmax", [x], {dim}, softmax(x, dim) }
    case! { "activation", "log_softmax", [x], {dim}, log_softmax(x, dim) }
    case! { "activation", "softmin", [x], {dim}, softmin(x, dim) }
    case! { "activation", "quiet_softmax", [x], {dim}, quiet_softmax(x, dim) }
    case! { "activation", "relu", [x], {}, relu(x) }
    case! { "activation", "gelu", [x], {}, gelu(x) }
    case! { "activation", "sigmoid", [x], {}, sigmoid(x) }
    case! { "activation", "log_sigmoid", [x], {}, log_sigmoid(x) }
    case! { "activation", "silu", [x], {}, silu(x) }
    case! { "activation", "mish", [x], {}, mish(x) }
    case! { "activation", "tanh", [x], {}, tanh(x) }
    let negative_slope = pick(&[0.01, 0.0, 0.5, -1.0, 2.0]);
    case! { "activation", "leaky_relu", [x], {negative_slope}, leaky_relu(x, negative_slope) }
    let (alpha, beta) = (pick(&[0.2, -0.5, 1.0]), pick(&[0.5, 0.0, -0.1]));
    case! { "activation", "hard_sigmoid", [x], {alpha, beta}, hard_sigmoid(x, alpha, beta) }
    let beta = pick(&[1.0, 0.5, 2.0, -1.0, 10.0]);
    case! { "activation", "softplus", [x], {beta}, softplus(x, beta) }
    let parameters = match (percent(50), D) {
        (true, 2..) => x.dims()[1],
        _ => pick(&[1, 1, 1, 3]),
    };
    let alpha = numbers([parameters]);
    case! { "activation", "prelu", [x, alpha], {}, prelu(x, alpha) }
    let y = floats(if percent(10) {
        partner(x.dims())
    } else {
        x.dims()
    });
    case! { "float", "cross_entropy_with_logits", [x, y], {},
    burn::tensor::loss::cross_entropy_with_logits(x, y) }
    let sizes = shape::<D>();
    let (index, num_classes) = (below(5), 1 + below(6));
    let rank = D;
    case! { "float", "one_hot", [], {index, num_classes, rank},
    F::<D>::one_hot(index, num_classes, &device()) }
    let mut other = sizes;
    if D > 1 {
        other.swap(D - 1, D - 2);
        other[D - 1] = 1 + below(4);
        for size in other.iter_mut().take(D - 2) {
            *size = if percent(20) { 1 } else { *size };
        }
        if percent(5) {
            other[D - 2] += 1;
        }
    }
    let (x, y) = (floats(sizes), floats(other));
    case! { "float", "matmul", [x, y], {}, x.matmul(y) }
    case! { "basic", "matmul", [x, y], {}, x.matmul(y) }
    let shape = [0, below(4)];
    case! { "basic", "from_data_empty", [], {shape},
    F::<2>::from_data(TensorData::new(Vec::<f32>::new(), shape), &device()) }
    let x = floats([1 + below(9)]);
    let rank = 3;
    case! { "basic", "from_data", [x], {rank}, F::<3>::from_data(x.into_data(), &device()) }
}

pub fn made<const D: usize>() {
    let (shape, kind) = (shape::<D>(), "Float");
    case! { "numeric", "zeros", [], {shape, kind}, F::<D>::zeros(shape, &device()) }
    case! { "numeric", "ones", [], {shape, kind}, F::<D>::ones(shape, &device()) }
    let fill_value = number();
    case! { "numeric", "full", [], {shape, fill_value, kind},
    F::<D>::full(shape, fill_value, &device()) }
    let kind = "Int";
    case! { "numeric", "zeros", [], {shape, kind}, I::<D>::zeros(shape, &device()) }
    case! { "numeric", "ones", [], {shape, kind}, I::<D>::ones(shape, &device()) }
    let fill_value = pick(&LARGE);
    case! { "numeric", "full", [], {shape, fill_value, kind},
    I::<D>::full(shape, fill_value, &device()) }
    case! { "basic", "empty", [], {shape}, F::<D>::empty(shape, &device()).shape() }
    let offset = below(5) as i64 - 2;
    case! { "bool", "triu_mask", [], {shape, offset}, L::<D>::triu_mask(shape, offset, &device()) }
    case! { "bool", "tril_mask", [], {shape, offset}, L::<D>::tril_mask(shape, offset, &device()) }
    case! { "bool", "diag_mask", [], {shape, offset}, L::<D>::diag_mask(shape, offset, &device()) }
    let dim = 0;
    case! { "basic", "cat", [], {dim}, F::<D>::cat(vec![], dim) }
    let x = truths(shape);
    case! { "numeric", "transpose", [x], {}, x.transpose() }
    case! { "bool", "int", [x], {}, x.int() }
    case! { "bool", "float", [x], {}, x.float() }
    case! { "bool", "bool_not", [x], {}, x.bool_not() }
    case! { "bool", "argwhere", [x], {}, x.argwhere() }
    case! { "bool", "nonzero", [x], {}, x.nonzero() }
    let x = ints(shape);
    case! { "int", "float", [x], {}, x.float() }
    let kind = pick(&["Float", "Bool"]);
    if kind == "Float" {
        case! { "basic", "from_data", [x], {kind}, F::<D>::from_data(x.into_data(), &device()) }
    } else {
        case! { "basic", "from_data", [x], {kind}, L::<D>::from_data(x.into_data(), &device()) }
    }
    let (kind, x) = ("Int", floats(shape));
    case! { "basic", "from_data", [x], {kind}, I::<D>::from_data(x.into_data(), &device()) }
    let s = number();
    let x = ints(shape);
    case! { "numeric", "add_scalar", [x], {s}, x.add_scalar(s) }
    case! { "numeric", "greater_elem", [x], {s}, x.greater_elem(s) }
}

pub fn other_makers() {
    for (size, kind) in [(below(5), "Float"), (1 + below(4), "Int")] {
        if kind == "Float" {
            case! { "numeric", "eye", [], {size, kind}, F::<2>::eye(size, &device()) }
        } else {
            case! { "numeric", "eye", [], {size, kind}, I::<2>::eye(size, &device()) }
        }
    }
    let start = below(20) as i64 - 10;
    let end = start + below(12) as i64 - 1;
    case! { "int", "arange", [], {start, end}, I::<1>::arange(start..end, &device()) }
    let step = below(4);
    case! { "int", "arange_step", [], {start, end, step},
    I::<1>::arange_step(start..end, step, &device()) }
    let ints = [start, end, pick(&[1 << 31, -(1 << 31), 7, 0])];
    case! { "int", "from_ints", [], {ints}, I::<1>::from_ints(ints, &device()) }
    let shape = [1 + below(3), 1 + below(3)];
    case! { "int", "cartesian_grid", [], {shape},
    I::<2>::cartesian_grid::<[usize; 2], 3>(shape, &device()) }
    let shape = [1 + below(3), 1 + below(3), 2];
    case! { "int", "cartesian_grid", [], {shape},
    I::<3>::cartesian_grid::<[usize; 3], 4>(shape, &device()) }
    let (x, num_classes) = (under([1 + below(3)], 4), 2 + below(4));
    case! { "int", "one_hot", [x], {num_classes}, x.one_hot(num_classes) }
    let x = under([1], 4);
    case! { "int", "one_hot", [x], {num_classes}, x.one_hot(num_classes) }
}
