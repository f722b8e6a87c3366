//! Residual, for Burn 0.15.0.
//!
//! `load` makes the module with the weights in `model.mpk`. Fields have the
//! names of that record; a shape stands behind the line that makes it, where
//! n is the size of the batch.

use std::path::PathBuf;

use burn::config::Config;
use burn::module::Module;
use burn::nn::{BatchNorm, BatchNormConfig, Linear, LinearConfig, PaddingConfig2d};
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::record::{FullPrecisionSettings, NamedMpkFileRecorder, Recorder, RecorderError};
use burn::tensor::{Tensor, activation};
use burn::tensor::backend::Backend;

/// Blocks in a list, a mean over the image, and a linear layer.
#[derive(Module, Debug)]
pub struct Residual<B: Backend> {
    pub blocks: (Block<B>, Block2<B>, Block<B>),
    pub head: Linear<B>,
}

/// The sizes of a [`Residual`].
#[derive(Config, Debug)]
pub struct ResidualConfig {
    #[config(default = "BlockConfig::new()")]
    pub blocks_0: BlockConfig,
    #[config(default = "Block2Config::new()")]
    pub blocks_1: Block2Config,
    #[config(default = "BlockConfig::new().with_conv1(Conv2dConfig::new([3, 4], [3, 3]).with_padding(PaddingConfig2d::Same)).with_norm(BatchNormConfig::new(4)).with_conv2(Conv2dConfig::new([4, 4], [3, 3]).with_padding(PaddingConfig2d::Same)).with_shortcut(Conv2dConfig::new([3, 4], [1, 1]))")]
    pub blocks_2: BlockConfig,
    #[config(default = "LinearConfig::new(4, 5)")]
    pub head: LinearConfig,
}

impl ResidualConfig {
    /// The module with the initial values of its layers.
    pub fn init<B: Backend>(&self, device: &B::Device) -> Residual<B> {
        Residual {
            blocks: (self.blocks_0.init(device), self.blocks_1.init(device), self.blocks_2.init(device)),
            head: self.head.init(device),
        }
    }
}

impl<B: Backend> Residual<B> {
    pub fn forward(&self, images: Tensor<B, 4>) -> Tensor<B, 2> {
        let n = images.dims()[0];
        let x = self.blocks.0.forward(images); // [n, 3, 6, 6]
        let x = self.blocks.1.forward(x); // [n, 3, 6, 6]
        let x = self.blocks.2.forward(x); // [n, 4, 6, 6]
        let x = x.mean_dim(3); // [n, 4, 6, 1]
        let x = x.mean_dim(2); // [n, 4, 1, 1]
        let x = x.reshape([n, 4]); // [n, 4]
        let x = self.head.forward(x); // [n, 5]
        activation::log_softmax(x, 1) // [n, 5]
    }
}

/// Two convolutions, and the input added where it fits.
#[derive(Module, Debug)]
pub struct Block<B: Backend> {
    pub conv1: Conv2d<B>,
    pub norm: BatchNorm<B, 2>,
    pub conv2: Conv2d<B>,
    pub shortcut: Conv2d<B>,
}

/// The sizes of a [`Block`].
#[derive(Config, Debug)]
pub struct BlockConfig {
    #[config(default = "Conv2dConfig::new([2, 3], [3, 3]).with_padding(PaddingConfig2d::Same)")]
    pub conv1: Conv2dConfig,
    #[config(default = "BatchNormConfig::new(3)")]
    pub norm: BatchNormConfig,
    #[config(default = "Conv2dConfig::new([3, 3], [3, 3]).with_padding(PaddingConfig2d::Same)")]
    pub conv2: Conv2dConfig,
    #[config(default = "Conv2dConfig::new([2, 3], [1, 1])")]
    pub shortcut: Conv2dConfig,
}

impl BlockConfig {
    /// The module with the initial values of its layers.
    pub fn init<B: Backend>(&self, device: &B::Device) -> Block<B> {
        Block {
            conv1: self.conv1.init(device),
            norm: self.norm.init(device),
            conv2: self.conv2.init(device),
            shortcut: self.shortcut.init(device),
        }
    }
}

impl<B: Backend> Block<B> {
    pub fn forward(&self, x: Tensor<B, 4>) -> Tensor<B, 4> {
        let x2 = self.conv1.forward(x.clone());
        let x2 = self.norm.forward(x2);
        let x2 = activation::relu(x2);
        let x2 = self.conv2.forward(x2);
        let x = self.shortcut.forward(x);
        let x2 = x2 + x;
        activation::relu(x2)
    }
}

/// Two convolutions, and the input added where it fits.
#[derive(Module, Debug)]
pub struct Block2<B: Backend> {
    pub conv1: Conv2d<B>,
    pub norm: BatchNorm<B, 2>,
    pub conv2: Conv2d<B>,
}

/// The sizes of a [`Block2`].
#[derive(Config, Debug)]
pub struct Block2Config {
    #[config(default = "Conv2dConfig::new([3, 3], [3, 3]).with_padding(PaddingConfig2d::Same)")]
    pub conv1: Conv2dConfig,
    #[config(default = "BatchNormConfig::new(3)")]
    pub norm: BatchNormConfig,
    #[config(default = "Conv2dConfig::new([3, 3], [3, 3]).with_padding(PaddingConfig2d::Same)")]
    pub conv2: Conv2dConfig,
}

impl Block2Config {
    /// The module with the initial values of its layers.
    pub fn init<B: Backend>(&self, device: &B::Device) -> Block2<B> {
        Block2 {
            conv1: self.conv1.init(device),
            norm: self.norm.init(device),
            conv2: self.conv2.init(device),
        }
    }
}

impl<B: Backend> Block2<B> {
    pub fn forward(&self, x: Tensor<B, 4>) -> Tensor<B, 4> {
        let x2 = self.conv1.forward(x.clone()); // [n, 3, 6, 6]
        let x2 = self.norm.forward(x2); // [n, 3, 6, 6]
        let x2 = activation::relu(x2); // [n, 3, 6, 6]
        let x2 = self.conv2.forward(x2); // [n, 3, 6, 6]
        let x2 = x2 + x; // [n, 3, 6, 6]
        activation::relu(x2) // [n, 3, 6, 6]
    }
}

/// The module with the weights of a record: `load("model.mpk", &device)`.
pub fn load<B: Backend>(
    path: impl Into<PathBuf>,
    device: &B::Device,
) -> Result<Residual<B>, RecorderError> {
    let recorder = NamedMpkFileRecorder::<FullPrecisionSettings>::new();
    let record = recorder.load(path.into(), device)?;
    Ok(ResidualConfig::new().init(device).load_record(record))
}
