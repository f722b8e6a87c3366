//! Chapter 3.4: what computes.
use burn_book::twin;

// ANCHOR: setup
use burn::backend::{Autodiff, NdArray};
use burn::module::AutodiffModule;
use burn::nn::LinearConfig;
use burn::prelude::*;
// ANCHOR_END: setup

// ANCHOR: third
fn third<B: Backend>() -> B::FloatElem {
    let device = Default::default();
    (Tensor::<B, 1>::from_floats([1.0], &device) / 3.0).into_scalar()
}

// ANCHOR_END: third
fn main() {
    twin("third");
    // ANCHOR: third
    println!("f32 {:.8}", third::<NdArray<f32>>());
    println!("f64 {:.16}", third::<NdArray<f64>>());
    // ANCHOR_END: third

    twin("ones");
    // ANCHOR: ones
    let device = Default::default();
    let threes = Tensor::<NdArray, 2>::eye(2, &device) * 3.0;
    let ones = Tensor::<NdArray, 2>::ones([2, 2], &device);
    let out = threes.matmul(ones);
    let same = out.clone().equal_elem(3.0).all().into_scalar();
    println!("{same}: shape {:?}", out.dims());
    // ANCHOR_END: ones

    twin("decorated");
    // ANCHOR: decorated
    type Training = Autodiff<NdArray>;
    println!("{} · {}", Training::name(), <NdArray as Backend>::name());
    // ANCHOR_END: decorated

    twin("valid");
    // ANCHOR: valid
    let model = LinearConfig::new(3, 2).init::<Training>(&device);
    let valid = model.valid(); // a Linear<NdArray>
    let x = Tensor::<NdArray, 2>::ones([1, 3], &device);
    assert_eq!(valid.forward(x).dims(), [1, 2]);
    // ANCHOR_END: valid
}
