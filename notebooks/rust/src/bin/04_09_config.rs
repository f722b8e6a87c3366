//! Chapter 4.9: configs.
use burn_book::twin;

// ANCHOR: setup
use std::collections::BTreeMap;

use burn::backend::NdArray;
use burn::config::Config;
use burn::grad_clipping::GradientClippingConfig;
use burn::module::Module;
use burn::nn;
use burn::optim::decay::WeightDecayConfig;
use burn::optim::AdamConfig;
use burn::tensor::backend::Backend;
use serde::{Deserialize, Serialize};
// ANCHOR_END: setup

// ANCHOR: declare
#[derive(Config, Debug)]
pub struct MyModuleConfig {
    d_model: usize,
    d_ff: usize,
    #[config(default = 0.1)]
    dropout: f64,
}
// ANCHOR_END: declare

// ANCHOR: init
#[derive(Module, Debug)]
pub struct MyModule<B: Backend> {
    linear: nn::Linear<B>,
    dropout: nn::Dropout,
}

impl MyModuleConfig {
    pub fn init<B: Backend>(&self, device: &B::Device) -> MyModule<B> {
        MyModule {
            linear: nn::LinearConfig::new(self.d_model, self.d_ff)
                .init(device),
            dropout: nn::DropoutConfig::new(self.dropout).init(),
        }
    }
}
// ANCHOR_END: init

// ANCHOR: run-config
#[derive(Serialize, Deserialize, Clone, Debug)]
#[allow(clippy::upper_case_acronyms)]
pub enum Schedule {
    CONSTANT,
    NOAM,
}

#[derive(Config)]
pub struct RunConfig {
    model: MyModuleConfig,
    optimizer: AdamConfig,
    classes: BTreeMap<usize, String>,
    note: Option<String>,
    #[config(default = "Schedule::CONSTANT")]
    schedule: Schedule,
    #[config(default = "(28, 28)")]
    sizes: (usize, usize),
    #[config(default = 1e-5)]
    learning_rate: f64,
}
// ANCHOR_END: run-config

// ANCHOR: pooling
#[derive(Serialize, Deserialize, Clone, Debug)]
pub enum Pooling {
    Mean,
    Window(usize, usize),
    Learned { heads: usize, temperature: f64 },
}

#[derive(Config)]
pub struct HeadConfig {
    #[config(default = "Pooling::Mean")]
    pooling: Pooling,
}

// ANCHOR_END: pooling
// ANCHOR: heads
#[derive(Config, Debug)]
pub struct AttentionConfig {
    d_model: usize,
    #[config(default = 4)]
    n_heads: usize,
}

impl AttentionConfig {
    pub fn validate(&self) -> Result<(), String> {
        if self.d_model % self.n_heads == 0 {
            return Ok(());
        }
        let (heads, size) = (self.n_heads, self.d_model);
        Err(format!("{heads} heads cannot share {size}"))
    }
}

// ANCHOR_END: heads
fn main() {
    twin("use");
    // ANCHOR: use
    let folder = std::env::temp_dir().join("burn-book-config");
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("config.json");

    let config = MyModuleConfig::new(512, 2048);
    println!("{}", config.d_model);
    println!("{}", config.d_ff);
    println!("{}", config.dropout);
    let config = config.with_dropout(0.2);
    println!("{}", config.dropout);
    config.save(&path).unwrap();
    // ANCHOR_END: use

    twin("load");
    // ANCHOR: load
    println!("{}", MyModuleConfig::load(&path).unwrap());
    // ANCHOR_END: load

    twin("init-use");
    // ANCHOR: init-use
    let device = Default::default();
    let my_module = config.init::<NdArray>(&device);
    println!("{my_module}");
    // ANCHOR_END: init-use

    twin("run-config-use");
    // ANCHOR: run-config-use
    let adam = AdamConfig::new()
        .with_weight_decay(Some(WeightDecayConfig::new(5e-5)))
        .with_grad_clipping(Some(GradientClippingConfig::Norm(1.0)));
    let classes = [(0, "cat".to_string()), (1, "dog".to_string())];
    let run = RunConfig::new(config, adam, classes.into())
        .with_schedule(Schedule::NOAM)
        .with_note(Some("the first".to_string()));
    println!("{run}");
    // ANCHOR_END: run-config-use

    twin("pooling-use");
    // ANCHOR: pooling-use
    for choice in [
        Pooling::Mean,
        Pooling::Window(2, 3),
        Pooling::Learned {
            heads: 4,
            temperature: 0.5,
        },
    ] {
        println!("{}", HeadConfig::new().with_pooling(choice));
    }
    // ANCHOR_END: pooling-use

    twin("from-json");
    // ANCHOR: from-json
    let text = r#"{"weight_decay": {"penalty": 0.00005},
 "grad_clipping": null, "beta_1": 0.9, "beta_2": 0.999,
 "epsilon": 0.00001}"#;
    let adam = AdamConfig::load_binary(text.as_bytes()).unwrap();
    assert!(adam.to_string().contains("\"penalty\": 0.00005"));
    // ANCHOR_END: from-json

    twin("heads");
    // ANCHOR: heads
    let config = AttentionConfig::new(32).with_n_heads(5);
    if let Err(error) = config.validate() {
        println!("{error}");
    }
    // ANCHOR_END: heads
}
