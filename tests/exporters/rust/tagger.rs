//! Tagger, for Burn 0.15.0.
//!
//! `load` makes the module with the weights in `model.mpk`. Fields have the
//! names of that record; a shape stands behind the line that makes it, where
//! n is the size of the batch.

use std::path::PathBuf;

use burn::config::Config;
use burn::module::Module;
use burn::nn::{Embedding, EmbeddingConfig, Linear, LinearConfig, Lstm, LstmConfig};
use burn::record::{FullPrecisionSettings, NamedMpkFileRecorder, Recorder, RecorderError};
use burn::tensor::{Int, Tensor};
use burn::tensor::backend::Backend;

/// Embedding, Lstm and Linear; it gives scores and the last state.
#[derive(Module, Debug)]
pub struct Tagger<B: Backend> {
    pub embedding: Embedding<B>,
    pub lstm: Lstm<B>,
    pub head: Linear<B>,
}

/// The sizes of a [`Tagger`].
#[derive(Config)]
pub struct TaggerConfig {
    #[config(default = "EmbeddingConfig::new(9, 4)")]
    pub embedding: EmbeddingConfig,
    #[config(default = "LstmConfig::new(4, 3, true)")]
    pub lstm: LstmConfig,
    #[config(default = "LinearConfig::new(3, 2)")]
    pub head: LinearConfig,
}

impl TaggerConfig {
    /// The module with the initial values of its layers.
    pub fn init<B: Backend>(&self, device: &B::Device) -> Tagger<B> {
        Tagger {
            embedding: self.embedding.init(device),
            lstm: self.lstm.init(device),
            head: self.head.init(device),
        }
    }
}

impl<B: Backend> Tagger<B> {
    pub fn forward(&self, tokens: Tensor<B, 2, Int>) -> (Tensor<B, 3>, Tensor<B, 2>) {
        let x = self.embedding.forward(tokens); // [n, 5, 4]
        let (x, state) = self.lstm.forward(x, None);
        let x = self.head.forward(x); // [n, 5, 2]
        (x, state.hidden)
    }
}

/// The module with the weights of a record: `load("model.mpk", &device)`.
pub fn load<B: Backend>(
    path: impl Into<PathBuf>,
    device: &B::Device,
) -> Result<Tagger<B>, RecorderError> {
    let recorder = NamedMpkFileRecorder::<FullPrecisionSettings>::new();
    let record = recorder.load(path.into(), device)?;
    Ok(TaggerConfig::new().init(device).load_record(record))
}
