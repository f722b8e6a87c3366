//! Chapter 3.1: the network for digits.
use burn_book::twin;

// ANCHOR: setup
use burn::backend::NdArray;
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::pool::{AdaptiveAvgPool2d, AdaptiveAvgPool2dConfig};
use burn::nn::{Dropout, DropoutConfig, Linear, LinearConfig, Relu};
use burn::prelude::*;
use burn::tensor::Distribution;

type MyBackend = NdArray<f32, i64>;
// ANCHOR_END: setup

// ANCHOR: model-struct
#[derive(Module, Debug)]
pub struct Model<B: Backend> {
    conv1: Conv2d<B>,
    conv2: Conv2d<B>,
    pool: AdaptiveAvgPool2d,
    dropout: Dropout,
    linear1: Linear<B>,
    linear2: Linear<B>,
    activation: Relu,
}
// ANCHOR_END: model-struct

// ANCHOR: model-config
#[derive(Config, Debug)]
pub struct ModelConfig {
    num_classes: usize,
    hidden_size: usize,
    #[config(default = "0.5")]
    dropout: f64,
}

impl ModelConfig {
    pub fn init<B: Backend>(&self, device: &B::Device) -> Model<B> {
        Model {
            conv1: Conv2dConfig::new([1, 8], [3, 3]).init(device),
            conv2: Conv2dConfig::new([8, 16], [3, 3]).init(device),
            pool: AdaptiveAvgPool2dConfig::new([8, 8]).init(),
            dropout: DropoutConfig::new(self.dropout).init(),
            linear1: LinearConfig::new(16 * 8 * 8, self.hidden_size)
                .init(device),
            linear2: LinearConfig::new(self.hidden_size, self.num_classes)
                .init(device),
            activation: Relu::new(),
        }
    }
}
// ANCHOR_END: model-config

// ANCHOR: forward
impl<B: Backend> Model<B> {
    pub fn forward(&self, images: Tensor<B, 3>) -> Tensor<B, 2> {
        let [batch, height, width] = images.dims();
        let x = images.reshape([batch, 1, height, width]); // one channel: grey
        let x = self.dropout.forward(self.conv1.forward(x)); // [batch, 8, 26, 26]
        let x = self.dropout.forward(self.conv2.forward(x)); // [batch, 16, 24, 24]
        let x = self.pool.forward(self.activation.forward(x)); // [batch, 16, 8, 8]
        let x = x.reshape([batch, 16 * 8 * 8]);
        let x = self.dropout.forward(self.linear1.forward(x)); // [batch, hidden]
        self.linear2.forward(self.activation.forward(x)) // [batch, classes]
    }
}

// ANCHOR_END: forward
fn main() {
    twin("try-it");
    // ANCHOR: try-it
    let device = Default::default();
    let model = ModelConfig::new(10, 512).init::<MyBackend>(&device);
    let image = Tensor::random([1, 28, 28], Distribution::Default, &device);
    println!("{:?}", model.forward(image).dims());
    // ANCHOR_END: try-it

    twin("two-linears");
    // ANCHOR: two-linears
    let first = LinearConfig::new(3, 4).init::<MyBackend>(&device);
    let second = LinearConfig::new(4, 2).init::<MyBackend>(&device);
    let some = Tensor::random([5, 3], Distribution::Default, &device);

    let weight = first.weight.val().matmul(second.weight.val());
    let bias = first.bias.as_ref().unwrap().val().unsqueeze();
    let bias = second.forward(bias);
    let at_once = some.clone().matmul(weight) + bias;
    let out = second.forward(first.forward(some));
    println!("{}", out.all_close(at_once, None, Some(1e-6)));
    // ANCHOR_END: two-linears

    twin("relu");
    // ANCHOR: relu
    let points = [-2.0, -0.5, 0.0, 1.0, 3.0];
    let points = Tensor::<MyBackend, 1>::from_floats(points, &device);
    println!("{}", Relu::new().forward(points).to_data());
    // ANCHOR_END: relu

    twin("use-config");
    // ANCHOR: use-config
    let config = ModelConfig::new(10, 512);
    println!("{config}");
    // ANCHOR_END: use-config

    twin("print-model");
    // ANCHOR: print-model
    let model = config.init::<MyBackend>(&device);
    println!("{model}");
    // ANCHOR_END: print-model

    twin("with-dropout");
    // ANCHOR: with-dropout
    println!("{:?}", config.with_dropout(0.2));
    // ANCHOR_END: with-dropout

    twin("forward");
    // ANCHOR: forward
    let images = Tensor::zeros([4, 28, 28], &device);
    println!("{:?}", model.forward(images).dims());
    // ANCHOR_END: forward
}
