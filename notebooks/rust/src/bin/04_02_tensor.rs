//! Chapter 4.2: tensors.
use burn_book::twin;

// ANCHOR: setup
use burn::backend::NdArray;
use burn::tensor::{
    activation, check_closeness, set_print_options, BasicOps, Bool,
    Distribution, Element, ElementConversion, Int, PrintOptions, Tensor,
    TensorData,
};

type B = NdArray;
// ANCHOR_END: setup

// ANCHOR: from_floats
fn show<const D: usize, K>(name: &str, tensor: Tensor<B, D, K>)
where
    K: BasicOps<B>,
    K::Elem: Element,
{
    println!("{name:<16} {}", tensor.to_data());
}

// ANCHOR_END: from_floats
// ANCHOR: from-struct
struct BodyMetrics {
    age: i8,
    height: i16,
    weight: f32,
}

// ANCHOR_END: from-struct
fn main() {
    twin("from_floats");
    // ANCHOR: from_floats
    let device = Default::default();
    let marks = [[6., 9.], [8., 3.], [10., 6.]];
    let marks = Tensor::<B, 2>::from_floats(marks, &device);
    show("mean", marks.clone().mean_dim(0));
    show("apart", marks.clone() - marks.clone().mean_dim(0));
    // ANCHOR_END: from_floats

    twin("reshape");
    // ANCHOR: reshape
    let flat = [6.0, 9.0, 8.0, 3.0, 10.0, 6.0];
    let row = Tensor::<B, 1>::from_floats(flat, &device);
    let turned: Tensor<B, 2> = row.reshape([3, 2]).transpose();
    println!("shape {:?}", turned.dims());
    // ANCHOR_END: reshape

    twin("rank");
    // ANCHOR: rank
    let floats = [1.0, 2.0, 3.0, 4.0, 5.0];
    let tensor_1 = Tensor::<B, 1>::from_floats(floats, &device);
    println!("{:?}", tensor_1.dims());
    // ANCHOR_END: rank

    twin("from-data");
    // ANCHOR: from-data
    let array = [1, 2, 3, 4, 5, 6];
    let part = TensorData::from(&array[0..3]);
    let tensor_1 = Tensor::<B, 1>::from_data([1.0, 2.0, 3.0], &device);
    let data = TensorData::from([1.0, 2.0, 3.0]);
    let tensor_2 = Tensor::<B, 1>::from_data(data, &device);
    let tensor_3 = Tensor::<B, 1>::from_floats([1.0, 2.0, 3.0], &device);
    let tensor_4 = Tensor::<B, 1, Int>::from_data(part, &device);

    show("one", tensor_1);
    show("two", tensor_2);
    show("three", tensor_3);
    show("four", tensor_4);
    // ANCHOR_END: from-data

    twin("from-struct");
    // ANCHOR: from-struct
    let bmi = BodyMetrics {
        age: 25,
        height: 180,
        weight: 80.0,
    };
    let data = [bmi.age as f32, bmi.height as f32, bmi.weight];
    let tensor_5 = Tensor::<B, 1>::from_data(data, &device);
    show("bmi", tensor_5);
    // ANCHOR_END: from-struct

    twin("data-readers");
    // ANCHOR: data-readers
    let data = marks.to_data();
    println!(
        "{:?} {:?} {} bytes",
        data.shape,
        data.dtype,
        data.bytes.len()
    );
    println!("flat      {:?}", data.to_vec::<f32>().unwrap());
    println!("as i64    {:?}", data.iter::<i64>().collect::<Vec<_>>());
    println!("slice     {:?}", data.as_slice::<f32>().unwrap());
    println!("one       {}", marks.clone().max().into_scalar());
    println!("print     {data}");
    // ANCHOR_END: data-readers

    twin("normalize-moved");
    // ANCHOR: normalize-moved
    let values = Tensor::<B, 1>::from_floats([1.0, 2.0, 3.0, 4.0], &device);
    let low = values.clone().min(); // min() takes ownership: hence clone()
    let high = values.clone().max();
    let normalized = (values.clone() - low.clone()).div(high - low);
    println!("{}", normalized.to_data());
    // ANCHOR_END: normalize-moved

    twin("unsqueeze");
    // ANCHOR: unsqueeze
    let column = Tensor::<B, 2>::from_floats([[10.0], [20.0]], &device);
    let line = Tensor::<B, 1>::from_floats([1.0, 2.0, 3.0], &device);
    show("sum", column + line.unsqueeze()); // [2, 1] + [1, 3] -> [2, 3]
                                            // ANCHOR_END: unsqueeze

    twin("slice");
    // ANCHOR: slice
    let table = Tensor::<B, 1, Int>::arange(0..6, &device).reshape([2, 3]);
    show("table", table.clone());
    show("book", table.clone().slice([(0, -1), (0, -2)]));
    show("ranges", table.clone().slice([0..1, 0..1]));
    show("second_dim", table.clone().slice([None, Some((1, 3))]));
    // ANCHOR_END: slice

    twin("slice_assign");
    // ANCHOR: slice_assign
    let nines = Tensor::<B, 2, Int>::full([2, 1], 9, &device);
    show("assigned", table.clone().slice_assign([0..2, 0..1], nines));
    show("table", table);
    // ANCHOR_END: slice_assign

    twin("cat");
    // ANCHOR: cat
    let pair = Tensor::<B, 2, Int>::from_ints([[1, 2], [3, 4]], &device);
    let chunks = pair.clone().chunk(2, 0);
    let left = pair.clone().narrow(1, 0, 1);
    show("cat", Tensor::cat(vec![pair.clone(), pair.clone()], 1));
    show(
        "stack",
        Tensor::stack::<3>(vec![pair.clone(), pair.clone()], 0),
    );
    show("chunk", chunks[1].clone());
    show("narrow", left.clone());
    show("expand", left.expand([2, 3]));
    show("repeat_dim", pair.clone().repeat_dim(1, 2));
    show("repeat", pair.clone().repeat(&[1, 2]));
    show("flip", pair.clone().flip([0]));
    // ANCHOR_END: cat

    twin("dims");
    // ANCHOR: dims
    let cube = Tensor::<B, 1, Int>::arange(0..24, &device);
    let cube: Tensor<B, 3, Int> = cube.reshape([2, 3, -1]); // [2, 3, 4]
    println!("reshape       {:?}", cube.dims());
    println!("permute       {:?}", cube.clone().permute([2, 0, 1]).dims());
    println!("movedim       {:?}", cube.clone().movedim(0, 2).dims());
    println!("swap_dims     {:?}", cube.clone().swap_dims(0, 1).dims());
    println!("transpose     {:?}", cube.clone().transpose().dims());
    println!("flatten       {:?}", cube.clone().flatten::<2>(1, 2).dims());
    let first = cube.clone().narrow(0, 0, 1);
    println!("squeeze       {:?}", first.squeeze::<2>(0).dims());
    println!("unsqueeze     {:?}", cube.clone().unsqueeze::<5>().dims());
    println!("unsqueeze_dim {:?}", cube.unsqueeze_dim::<4>(1).dims());
    // ANCHOR_END: dims

    twin("equal");
    // ANCHOR: equal
    let other = Tensor::<B, 2, Int>::from_ints([[1, 0], [3, 0]], &device);
    show("equal", pair.clone().equal(other.clone()));
    show("not_equal", pair.clone().not_equal(other.clone()));
    show("all", other.clone().all());
    show("all_dim", other.clone().all_dim(0));
    show("any", other.clone().any());
    show("any_dim", other.any_dim(1));
    println!("{:?}", Tensor::<B, 2>::empty([2, 2], &device).dims());
    // ANCHOR_END: equal

    twin("eye");
    // ANCHOR: eye
    show("eye", Tensor::<B, 2>::eye(2, &device));
    show("full", Tensor::<B, 1>::full([3], 7.0, &device));
    show("ones", Tensor::<B, 1>::ones([3], &device));
    show("zeros", Tensor::<B, 1>::zeros([3], &device));
    show("full_like", pair.full_like(5));
    show("ones_like", pair.ones_like());
    show("zeros_like", pair.zeros_like());
    // ANCHOR_END: eye

    twin("abs");
    // ANCHOR: abs
    let x = Tensor::<B, 1, Int>::from_ints([-7, 4], &device);
    let y = Tensor::<B, 1, Int>::from_ints([2, 3], &device);
    show("add", x.clone() + y.clone());
    show("sub", x.clone() - y.clone());
    show("mul", x.clone() * y.clone());
    show("div", x.clone() / y.clone());
    show("neg", -x.clone());
    show("add_scalar", x.clone() + 1);
    show("methods", x.clone().add(y.clone()).sub_scalar(1).mul(y));
    show("abs", x.clone().abs());
    show("sign", x.sign());
    // ANCHOR_END: abs

    twin("clamp");
    // ANCHOR: clamp
    let a = Tensor::<B, 1>::from_floats([1.0, 4.0, 9.0], &device);
    let b = Tensor::<B, 1>::from_floats([2.0, 2.0, 0.5], &device);
    show("powf", a.clone().powf(b.clone()));
    show("powf_scalar", a.clone().powf_scalar(0.5));
    show("powi_scalar", a.clone().powi_scalar(2));
    show("max_pair", a.clone().max_pair(b.clone()));
    show("min_pair", a.clone().min_pair(b.clone()));
    show("clamp", a.clone().clamp(2.0, 5.0));
    show("clamp_min", a.clone().clamp_min(2.0));
    show("clamp_max", a.clone().clamp_max(5.0));
    // ANCHOR_END: clamp

    twin("equal_elem");
    // ANCHOR: equal_elem
    show("greater", a.clone().greater(b.clone()));
    show("greater_equal", a.clone().greater_equal(b.clone()));
    show("lower", a.clone().lower(b.clone()));
    show("lower_equal", a.clone().lower_equal(b));
    show("greater_elem", a.clone().greater_elem(4.0));
    show("lower_elem", a.clone().lower_elem(4.0));
    show("equal_elem", a.clone().equal_elem(4.0));
    show("not_equal_elem", a.clone().not_equal_elem(4.0));
    // ANCHOR_END: equal_elem

    twin("all_close");
    // ANCHOR: all_close
    let odd = Tensor::<B, 1>::from_floats([1.0, f32::NAN, 0.0], &device);
    let near = odd.clone() + 0.001;
    show("is_nan", odd.is_nan());
    show("contains_nan", odd.contains_nan());
    show("bool", odd.clone().bool());
    show("is_close", near.is_close(odd, Some(0.0), Some(0.01)));
    let close = a.clone().all_close(a * 1.001, Some(0.01), Some(0.0));
    println!("all_close        {close}");
    // ANCHOR_END: all_close

    twin("argmax");
    // ANCHOR: argmax
    show("sum", marks.clone().sum());
    show("mean", marks.clone().mean());
    show("prod", marks.clone().prod());
    show("max", marks.clone().max());
    show("min", marks.clone().min());
    show("sum_dim", marks.clone().sum_dim(0));
    show("mean_dim", marks.clone().mean_dim(1));
    show("prod_dim", marks.clone().prod_dim(0));
    show("argmax", marks.clone().argmax(0));
    show("argmin", marks.clone().argmin(0));
    let (best, where_best) = marks.clone().max_dim_with_indices(0);
    show("best", best);
    show("where_best", where_best);
    // ANCHOR_END: argmax

    twin("argsort");
    // ANCHOR: argsort
    let s = Tensor::<B, 1>::from_floats([3.0, 1.0, 2.0], &device);
    show("sort", s.clone().sort(0));
    show("sort_descending", s.clone().sort_descending(0));
    show("argsort", s.clone().argsort(0));
    show("argsort_desc", s.clone().argsort_descending(0));
    show("topk", s.clone().topk(2, 0));
    let (up, up_from) = s.clone().sort_with_indices(0);
    show("up", up);
    show("up_from", up_from);
    let (top, top_from) = s.topk_with_indices(2, 0);
    show("top", top);
    show("top_from", top_from);
    // ANCHOR_END: argsort

    twin("gather");
    // ANCHOR: gather
    let index = Tensor::<B, 2, Int>::from_ints([[0], [1], [0]], &device);
    let rows = Tensor::<B, 1, Int>::from_ints([2, 0], &device);
    let ones = Tensor::<B, 2>::ones([3, 1], &device);
    let square = Tensor::<B, 2>::ones([2, 2], &device);
    show("gather", marks.clone().gather(1, index.clone()));
    show("scatter", marks.clone().scatter(1, index, ones));
    show("select", marks.clone().select(0, rows.clone()));
    let assigned = marks.clone().select_assign(0, rows, square.clone());
    show("select_assign", assigned);
    let low = marks.clone().lower_elem(6.0);
    show("mask_fill", marks.clone().mask_fill(low, 6.0));
    let high = marks.clone().greater_elem(8.0);
    show("mask_where", marks.clone().mask_where(high, -marks.clone()));
    // ANCHOR_END: gather

    twin("pad");
    // ANCHOR: pad
    show("tril", square.clone().tril(0));
    show("triu", square.clone().triu(0));
    show("pad", square.clone().pad((1, 0, 0, 1), 9.0));
    // ANCHOR_END: pad

    twin("one_hot");
    // ANCHOR: one_hot
    let h = Tensor::<B, 1>::from_floats([-1.5, 0.5, 2.5], &device);
    show("ceil", h.clone().ceil());
    show("floor", h.clone().floor());
    show("int", h.int());
    let p = Tensor::<B, 1>::from_floats([0.5, 1.0, 2.0], &device);
    show("exp", p.clone().exp());
    show("log", p.clone().log());
    show("log1p", p.clone().log1p());
    show("sqrt", p.clone().sqrt());
    show("recip", p.clone().recip());
    show("sin", p.clone().sin());
    show("tanh", p.clone().tanh());
    show("erf", p.erf());
    show("matmul", square.clone().matmul(square * 3.0));
    show("one_hot", Tensor::<B, 1>::one_hot(2, 4, &device));
    // ANCHOR_END: one_hot

    twin("var");
    // ANCHOR: var
    show("var", marks.clone().var(0));
    show("var_bias", marks.clone().var_bias(0));
    let (var_mean, mean) = marks.clone().var_mean(0);
    show("var_mean", var_mean);
    show("mean", mean);
    // ANCHOR_END: var

    twin("random");
    // ANCHOR: random
    let uniform = Distribution::Uniform(0.0, 10.0);
    let drawn = Tensor::<B, 2>::random([2, 2], uniform, &device);
    let again = drawn.random_like(Distribution::Bernoulli(0.5));
    assert_eq!(again.dims(), [2, 2]);
    // ANCHOR_END: random

    twin("arange");
    // ANCHOR: arange
    show("arange", Tensor::<B, 1, Int>::arange(5..10, &device));
    show(
        "arange_step",
        Tensor::<B, 1, Int>::arange_step(5..10, 2, &device),
    );
    show("from_ints", Tensor::<B, 1, Int>::from_ints([2, 0], &device));
    show("float", Tensor::<B, 1, Int>::arange(0..3, &device).float());
    let grid = Tensor::<B, 2, Int>::cartesian_grid::<_, 3>([2, 2], &device);
    show("cartesian_grid", grid);
    // ANCHOR_END: arange

    twin("diag_mask");
    // ANCHOR: diag_mask
    let mask = Tensor::<B, 2, Bool>::tril_mask([2, 2], 0, &device);
    show("tril_mask", mask.clone());
    show(
        "triu_mask",
        Tensor::<B, 2, Bool>::triu_mask([2, 2], 0, &device),
    );
    show(
        "diag_mask",
        Tensor::<B, 2, Bool>::diag_mask([2, 2], 0, &device),
    );
    show("bool_not", mask.clone().bool_not());
    show("float", mask.clone().float());
    show("int", mask.clone().int());
    show("argwhere", mask.clone().bool_not().argwhere());
    for places in mask.bool_not().nonzero() {
        show("nonzero", places);
    }
    // ANCHOR_END: diag_mask

    twin("gelu");
    // ANCHOR: gelu
    let z = Tensor::<B, 1>::from_floats([-2.0, 0.0, 2.0], &device);
    let slope = Tensor::<B, 1>::from_floats([0.25], &device);
    show("relu", activation::relu(z.clone()));
    show("leaky_relu", activation::leaky_relu(z.clone(), 0.1));
    let column = z.clone().unsqueeze::<2>();
    show("prelu", activation::prelu(column, slope));
    show("gelu", activation::gelu(z.clone()));
    show("silu", activation::silu(z.clone()));
    show("mish", activation::mish(z.clone()));
    show("softplus", activation::softplus(z.clone(), 1.0));
    // ANCHOR_END: gelu

    twin("hard_sigmoid");
    // ANCHOR: hard_sigmoid
    show("sigmoid", activation::sigmoid(z.clone()));
    show("log_sigmoid", activation::log_sigmoid(z.clone()));
    show(
        "hard_sigmoid",
        activation::hard_sigmoid(z.clone(), 0.2, 0.5),
    );
    show("tanh", activation::tanh(z.clone()));
    show("softmax", activation::softmax(z.clone(), 0));
    show("log_softmax", activation::log_softmax(z.clone(), 0));
    show("softmin", activation::softmin(z, 0));
    // ANCHOR_END: hard_sigmoid

    twin("convert");
    // ANCHOR: convert
    let data = TensorData::from([2.9, -2.9]);
    println!("{} {}", data.convert::<i32>(), 2.9f32.elem::<i32>());
    println!("{}", TensorData::from([true, false]).convert::<f32>());
    // ANCHOR_END: convert

    twin("print");
    // ANCHOR: print
    let tensor = Tensor::<B, 2>::full([2, 3], 0.123456789, &device);
    println!("{tensor}");
    // ANCHOR_END: print

    twin("precision");
    // ANCHOR: precision
    println!("{tensor:.2}");
    // ANCHOR_END: precision

    twin("options");
    // ANCHOR: options
    let long = Tensor::<B, 1, Int>::arange(0..2000, &device).float();
    set_print_options(PrintOptions {
        precision: Some(2),
        threshold: 100,
        edge_items: 2,
    });
    let text = format!("{long}");
    println!("{}", text.lines().nth(2).unwrap()); // only the elements
    set_print_options(PrintOptions::default());
    // ANCHOR_END: options

    twin("closeness");
    // ANCHOR: closeness
    let tensor1 = Tensor::<B, 1>::from_floats(
        [1.0, 2.0, 3.0, 4.0, 5.0, 6.001, 7.002, 8.003, 9.004, 10.1],
        &device,
    );
    let tensor2 = Tensor::<B, 1>::from_floats(
        [1.0, 2.0, 3.0, 4.000, 5.0, 6.0, 7.001, 8.002, 9.003, 10.004],
        &device,
    );
    check_closeness(&tensor1, &tensor2);
    // ANCHOR_END: closeness
}
