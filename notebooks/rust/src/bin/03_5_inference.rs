//! Chapter 3.5: using what was trained.
use burn_book::twin;

// ANCHOR: setup
use burn::backend::NdArray;
use burn::prelude::*;
use burn::record::{CompactRecorder, Recorder};
use burn::tensor::activation::softmax;
use burn_book::guide::ModelConfig; // of chapter 3.1

type MyBackend = NdArray;
// ANCHOR_END: setup

fn main() {
    // ANCHOR: load-config
    let artifacts = std::env::temp_dir().join("burn-book-inference");
    let device = Default::default();
    // ANCHOR_END: load-config
    std::fs::create_dir_all(&artifacts).unwrap();
    let config = ModelConfig::new(10, 64);
    config.save(artifacts.join("config.json")).unwrap();
    config
        .init::<MyBackend>(&device)
        .save_file(artifacts.join("model"), &CompactRecorder::new())
        .unwrap();

    twin("load-config");
    // ANCHOR: load-config
    let path = artifacts.join("config.json");
    let config = ModelConfig::load(path).expect("Config should exist");
    println!("{config}");
    // ANCHOR_END: load-config

    twin("infer");
    // ANCHOR: infer
    let record = CompactRecorder::new()
        .load(artifacts.join("model"), &device)
        .expect("Trained model should exist");
    let model = config.init::<MyBackend>(&device).load_record(record);
    println!("{model}");
    // ANCHOR_END: infer

    twin("softmax");
    // ANCHOR: softmax
    let images = Tensor::<MyBackend, 3>::ones([1, 28, 28], &device);
    let output = model.forward(images);
    let exp = output.clone().exp();
    let by_hand = exp.clone() / exp.sum_dim(1);
    let probabilities = softmax(output, 1);
    let same = probabilities.clone().all_close(by_hand, None, None);
    println!("{same}: shape {:?}", probabilities.dims());
    // ANCHOR_END: softmax
}
