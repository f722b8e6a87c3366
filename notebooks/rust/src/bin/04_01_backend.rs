//! Chapter 4.1: backends.
use burn_book::twin;

// ANCHOR: setup
use burn::backend::{Autodiff, NdArray};
use burn::config::Config;
use burn::module::Module;
use burn::nn::{Linear, LinearConfig};
use burn::tensor::activation::relu;
use burn::tensor::backend::Backend;
use burn::tensor::{Distribution, Int, Tensor};
// ANCHOR_END: setup

// ANCHOR: net
#[derive(Module, Debug)]
pub struct Net<B: Backend> {
    first: Linear<B>,
    second: Linear<B>,
}

impl<B: Backend> Net<B> {
    pub fn forward(&self, x: Tensor<B, 2>) -> Tensor<B, 2> {
        self.second.forward(relu(self.first.forward(x)))
    }
}

#[derive(Config)]
pub struct NetConfig {
    #[config(default = 8)]
    hidden: usize,
}

impl NetConfig {
    pub fn init<B: Backend>(&self, device: &B::Device) -> Net<B> {
        Net {
            first: LinearConfig::new(4, self.hidden).init(device),
            second: LinearConfig::new(self.hidden, 2).init(device),
        }
    }
}
// ANCHOR_END: net

// ANCHOR: precision
fn third<B: Backend>(name: &str) {
    let device = Default::default();
    let third = Tensor::<B, 1>::from_floats([1.0], &device) / 3.0;
    let whole = Tensor::<B, 1, Int>::from_ints([7], &device);
    let kinds = (third.to_data().dtype, whole.to_data().dtype);
    println!("{name:32} {kinds:?} {:.17}", third.into_scalar());
}

// ANCHOR_END: precision
fn main() {
    twin("add");
    // ANCHOR: add
    let device = Default::default();
    let x = Tensor::<NdArray, 1>::from_floats([1.0, 2.0], &device);
    println!("{}", (x.clone() + x).to_data());
    // ANCHOR_END: add

    let net = NetConfig::new().init::<Autodiff<NdArray>>(&device);
    let batch = Tensor::ones([16, 4], &device);
    assert_eq!(net.forward(batch).dims(), [16, 2]);

    twin("not-a-number");
    // ANCHOR: not-a-number
    let t = Tensor::<NdArray, 1>::from_floats([0.5, -1.0, 2.0], &device);
    println!("{}", (t.log() * 0.0 + 1.0).to_data());
    // ANCHOR_END: not-a-number

    twin("precision");
    // ANCHOR: precision
    third::<NdArray<f32>>("NdArray<f32>");
    third::<NdArray<f64, i32>>("NdArray<f64, i32>");
    // ANCHOR_END: precision

    twin("seed");
    // ANCHOR: seed
    let draw = || {
        Tensor::<NdArray, 1>::random([1000], Distribution::Default, &device)
    };
    NdArray::<f32>::seed(42);
    let (first, second) = (draw(), draw());
    NdArray::<f32>::seed(42);
    println!("{}", first.equal(draw()).all().into_scalar());
    println!("{}", second.equal(draw()).all().into_scalar());
    // ANCHOR_END: seed
}
