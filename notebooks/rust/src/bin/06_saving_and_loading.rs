//! Chapter 6: saving and loading.
use burn_book::twin;

// ANCHOR: setup
use burn::backend::{Autodiff, NdArray};
use burn::optim::{AdamConfig, GradientsParams, Optimizer};
use burn::prelude::*;
use burn::record::*;

type B = NdArray;
// ANCHOR_END: setup

// ANCHOR: digits
#[derive(Module, Debug)]
pub struct Digits<B: Backend> {
    hidden: nn::Linear<B>,
    output: nn::Linear<B>,
}

impl<B: Backend> Digits<B> {
    pub fn forward(&self, images: Tensor<B, 3>) -> Tensor<B, 2> {
        let x = self.hidden.forward(images.flatten(1, 2)).tanh();
        self.output.forward(x)
    }
}
// ANCHOR_END: digits

// ANCHOR: digits-config
#[derive(Config)]
pub struct DigitsConfig {
    #[config(default = 16)]
    hidden_size: usize,
}

impl DigitsConfig {
    pub fn init<B: Backend>(&self, device: &B::Device) -> Digits<B> {
        let hidden = nn::LinearConfig::new(784, self.hidden_size);
        let output = nn::LinearConfig::new(self.hidden_size, 10);
        Digits {
            hidden: hidden.init(device),
            output: output.init(device),
        }
    }
}
// ANCHOR_END: digits-config

// ANCHOR: open-model
fn open_model(folder: &std::path::Path) -> Digits<B> {
    let device = Default::default();
    let config = DigitsConfig::load(folder.join("config.json")).unwrap();
    let recorder = NamedMpkFileRecorder::<FullPrecisionSettings>::new();
    let path = folder.join("model");
    config
        .init(&device)
        .load_file(path, &recorder, &device)
        .unwrap()
}

// ANCHOR_END: open-model
fn main() {
    twin("save");
    // ANCHOR: save
    let folder = std::env::temp_dir().join("burn-book-saving");
    std::fs::create_dir_all(&folder).unwrap();
    let device = Default::default();
    let trained = DigitsConfig::new().init::<B>(&device); // not trained here

    let recorder = NamedMpkFileRecorder::<FullPrecisionSettings>::new();
    let model_path = folder.join("model");
    trained.clone().save_file(&model_path, &recorder).unwrap();
    // ANCHOR_END: save

    twin("load");
    // ANCHOR: load
    let images = Tensor::<B, 3>::ones([359, 28, 28], &device);
    let guesses = |model: &Digits<B>| {
        let found: Tensor<B, 1, Int> =
            model.forward(images.clone()).argmax(1).squeeze(1);
        found
    };

    let model = DigitsConfig::new().init::<B>(&device);
    let model = model.load_file(&model_path, &recorder, &device).unwrap();
    let (found, expected) = (guesses(&model), guesses(&trained));
    let same = found.clone().equal(expected).all().into_scalar();
    println!("{same}: {:?}", found.dims());
    // ANCHOR_END: load

    twin("lazy");
    // ANCHOR: lazy
    let model = DigitsConfig::new().init::<B>(&device); // draws nothing yet
    println!("{:?}", model.hidden.weight.shape());
    let record = recorder.load(model_path.clone(), &device).unwrap();
    let loaded = model.load_record(record);
    // ANCHOR_END: lazy
    assert_eq!(guesses(&loaded).dims(), [359]);

    twin("init-save");
    // ANCHOR: init-save
    let start = DigitsConfig::new().init::<B>(&device);
    let path = folder.join("start");
    start.clone().save_file(&path, &recorder).unwrap();
    let record = recorder.load(path, &device).unwrap();
    let again = DigitsConfig::new().init::<B>(&device).load_record(record);
    let (found, expected) = (again.hidden.weight, start.hidden.weight);
    let same = found.val().equal(expected.val()).all().into_scalar();
    println!("{same}: {:?}", found.dims());
    // ANCHOR_END: init-save

    twin("open-model");
    // ANCHOR: open-model
    DigitsConfig::new()
        .save(folder.join("config.json"))
        .unwrap();
    let found = guesses(&open_model(&folder));
    let same = found.clone().equal(guesses(&trained)).all();
    println!("{}: {:?}", same.into_scalar(), found.dims());
    // ANCHOR_END: open-model

    twin("resume");
    // ANCHOR: resume
    type Train = Autodiff<NdArray>;
    let model = DigitsConfig::new().init::<Train>(&device);
    let images = Tensor::<Train, 3>::ones([1, 28, 28], &device);
    let grads = model.forward(images).sum().backward();
    let grads = GradientsParams::from_grads(grads, &model);
    let mut optim = AdamConfig::new().init();
    let model = optim.step(5e-3, model, grads);

    let path = folder.join("optim");
    Recorder::<Train>::record(&recorder, optim.to_record(), path.clone())
        .unwrap();
    let record = Recorder::<Train>::load(&recorder, path, &device).unwrap();
    let optim = AdamConfig::new()
        .init::<Train, Digits<Train>>()
        .load_record(record);
    println!("{}", model.hidden.weight.is_require_grad());
    println!("{} states", optim.to_record().len());
    // ANCHOR_END: resume

    twin("bytes-save");
    // ANCHOR: bytes-save
    let half = BinFileRecorder::<HalfPrecisionSettings>::new();
    let path = folder.join("model");
    trained.clone().save_file(&path, &half).unwrap();
    let model_bytes = std::fs::read(path.with_extension("bin")).unwrap();
    println!("{} bytes", model_bytes.len());
    // ANCHOR_END: bytes-save

    twin("bytes-load");
    // ANCHOR: bytes-load
    let recorder = BinBytesRecorder::<HalfPrecisionSettings>::new();
    let record = recorder.load(model_bytes, &device).unwrap();
    let model = DigitsConfig::new().init::<B>(&device);
    println!("{}", model.load_record(record));
    // ANCHOR_END: bytes-load
}
