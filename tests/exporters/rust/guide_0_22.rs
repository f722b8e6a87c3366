//! Model, for Burn 0.22.1.
//!
//! `load` makes the module with the weights in `model.bpk`. Fields have the
//! names of that record; a shape stands behind the line that makes it, where
//! n is the size of the batch.

use std::path::Path;

use burn::config::Config;
use burn::module::Module;
use burn::nn::{Dropout, DropoutConfig, Linear, LinearConfig, Relu};
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::pool::{AdaptiveAvgPool2d, AdaptiveAvgPool2dConfig};
use burn::store::{ModuleRecord, RecordError};
use burn::tensor::{Device, Tensor};

/// Read digits: an image in, a score for every class out.
#[derive(Module, Debug)]
pub struct Model {
    pub conv1: Conv2d,
    pub conv2: Conv2d,
    pub pool: AdaptiveAvgPool2d,
    pub dropout: Dropout,
    pub linear1: Linear,
    pub linear2: Linear,
    pub activation: Relu,
}

/// The sizes of a [`Model`].
#[derive(Config, Debug)]
pub struct ModelConfig {
    #[config(default = "Conv2dConfig::new([1, 8], [3, 3])")]
    pub conv1: Conv2dConfig,
    #[config(default = "Conv2dConfig::new([8, 16], [3, 3])")]
    pub conv2: Conv2dConfig,
    #[config(default = "AdaptiveAvgPool2dConfig::new([8, 8])")]
    pub pool: AdaptiveAvgPool2dConfig,
    #[config(default = "DropoutConfig::new(0.5)")]
    pub dropout: DropoutConfig,
    #[config(default = "LinearConfig::new(1024, 32)")]
    pub linear1: LinearConfig,
    #[config(default = "LinearConfig::new(32, 10)")]
    pub linear2: LinearConfig,
}

impl ModelConfig {
    /// The module with the initial values of its layers.
    pub fn init(&self, device: &Device) -> Model {
        Model {
            conv1: self.conv1.init(device),
            conv2: self.conv2.init(device),
            pool: self.pool.init(),
            dropout: self.dropout.init(),
            linear1: self.linear1.init(device),
            linear2: self.linear2.init(device),
            activation: Relu::new(),
        }
    }
}

impl Model {
    pub fn forward(&self, images: Tensor<3>) -> Tensor<2> {
        let n = images.dims()[0];
        let x = images.reshape([n, 1, 28, 28]); // [n, 1, 28, 28]
        let x = self.conv1.forward(x); // [n, 8, 26, 26]
        let x = self.dropout.forward(x); // [n, 8, 26, 26]
        let x = self.conv2.forward(x); // [n, 16, 24, 24]
        let x = self.dropout.forward(x); // [n, 16, 24, 24]
        let x = self.activation.forward(x); // [n, 16, 24, 24]
        let x = self.pool.forward(x); // [n, 16, 8, 8]
        let x = x.reshape([n, 1024]); // [n, 1024]
        let x = self.linear1.forward(x); // [n, 32]
        let x = self.dropout.forward(x); // [n, 32]
        let x = self.activation.forward(x); // [n, 32]
        self.linear2.forward(x) // [n, 10]
    }
}

/// The module with the weights of a record: `load("model.bpk", &device)`.
pub fn load(
    path: impl AsRef<Path>,
    device: &Device,
) -> Result<Model, RecordError> {
    let module = ModelConfig::new().init(device);
    module.try_load_record(ModuleRecord::load(path)?)
}
