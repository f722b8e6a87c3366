//! Model, for Burn 0.15.0.
//!
//! `load` makes the module with the weights in `model.mpk`. Fields have the
//! names of that record; a shape stands behind the line that makes it, where
//! n is the size of the batch.

use std::path::PathBuf;

use burn::config::Config;
use burn::module::Module;
use burn::nn::{Dropout, DropoutConfig, Linear, LinearConfig, Relu};
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::pool::{AdaptiveAvgPool2d, AdaptiveAvgPool2dConfig};
use burn::record::{FullPrecisionSettings, NamedMpkFileRecorder, Recorder, RecorderError};
use burn::tensor::Tensor;
use burn::tensor::backend::Backend;

/// Read digits: an image in, a score for every class out.
#[derive(Module, Debug)]
pub struct Model<B: Backend> {
    pub conv1: Conv2d<B>,
    pub conv2: Conv2d<B>,
    pub pool: AdaptiveAvgPool2d,
    pub dropout: Dropout,
    pub linear1: Linear<B>,
    pub linear2: Linear<B>,
    pub activation: Relu,
}

/// The sizes of a [`Model`].
#[derive(Config)]
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
    pub fn init<B: Backend>(&self, device: &B::Device) -> Model<B> {
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

impl<B: Backend> Model<B> {
    pub fn forward(&self, images: Tensor<B, 3>) -> Tensor<B, 2> {
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

/// The module with the weights of a record: `load("model.mpk", &device)`.
pub fn load<B: Backend>(
    path: impl Into<PathBuf>,
    device: &B::Device,
) -> Result<Model<B>, RecorderError> {
    let recorder = NamedMpkFileRecorder::<FullPrecisionSettings>::new();
    let record = recorder.load(path.into(), device)?;
    Ok(ModelConfig::new().init(device).load_record(record))
}
