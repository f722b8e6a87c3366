//! Chapter 4.10: records.
use burn_book::twin;

// ANCHOR: setup
use burn::backend::{Autodiff, NdArray};
use burn::module::{Module, Param, ParamId};
use burn::nn;
use burn::optim::{AdamConfig, GradientsParams, Optimizer};
use burn::record::*;
use burn::tensor::Tensor;

type B = NdArray;
// ANCHOR_END: setup

// ANCHOR: recorders
fn round_trip<R: FileRecorder<B>>(recorder: R, layer: &nn::Linear<B>) {
    let device = Default::default();
    let file = std::env::temp_dir().join("burn-book-a");
    layer.clone().save_file(&file, &recorder).unwrap();
    let fresh = nn::LinearConfig::new(2, 3).init::<B>(&device);
    let again = fresh.load_file(file, &recorder, &device).unwrap();
    let same = again.weight.val().equal(layer.weight.val()).all();
    println!("{:8} {}", R::file_extension(), same.into_scalar());
}

// ANCHOR_END: recorders
fn main() {
    twin("save");
    // ANCHOR: save
    let folder = std::env::temp_dir().join("burn-book-record");
    std::fs::create_dir_all(&folder).unwrap();
    let device = Default::default();
    let weight = [[1., 2., 3.], [4., 5., 6.]];
    let weight = Tensor::<B, 2>::from_floats(weight, &device);
    let bias = [0.5, -1.5, 1.0 / 3.0];
    let bias = Tensor::<B, 1>::from_floats(bias, &device);
    let layer = nn::Linear {
        weight: Param::initialized(ParamId::from(1), weight.clone()),
        bias: Some(Param::initialized(ParamId::from(2), bias)),
    };
    let recorder = NamedMpkFileRecorder::<FullPrecisionSettings>::new();
    let record = layer.clone().into_record();
    recorder.record(record, folder.join("layer")).unwrap();
    let size = std::fs::metadata(folder.join("layer.mpk")).unwrap().len();
    println!("layer.mpk {size} bytes");
    // ANCHOR_END: save

    twin("load");
    // ANCHOR: load
    let fresh = nn::LinearConfig::new(2, 3).init::<B>(&device);
    let record = recorder.load(folder.join("layer"), &device).unwrap();
    let loaded = fresh.load_record(record);
    let same = loaded.weight.val().equal(weight).all().into_scalar();
    println!("{same}: {:?}", loaded.weight.dims());
    println!("{}", loaded.weight.id == layer.weight.id);
    // ANCHOR_END: load

    twin("recorders");
    // ANCHOR: recorders
    type Full = FullPrecisionSettings;
    round_trip(NamedMpkFileRecorder::<Full>::new(), &layer);
    round_trip(NamedMpkGzFileRecorder::<Full>::new(), &layer);
    round_trip(BinFileRecorder::<Full>::new(), &layer);
    round_trip(BinGzFileRecorder::<Full>::new(), &layer);
    round_trip(JsonGzFileRecorder::<Full>::new(), &layer);
    round_trip(PrettyJsonFileRecorder::<Full>::new(), &layer);
    // ANCHOR_END: recorders

    twin("precision");
    // ANCHOR: precision
    let half = NamedMpkFileRecorder::<HalfPrecisionSettings>::new();
    layer.clone().save_file(folder.join("b"), &half).unwrap();
    let size = std::fs::metadata(folder.join("b.mpk")).unwrap().len();
    let fresh = nn::LinearConfig::new(2, 3).init::<B>(&device);
    let again = fresh.load_file(folder.join("b"), &half, &device).unwrap();
    let bias = again.bias.unwrap().to_data();
    let third = bias.as_slice::<f32>().unwrap()[2];
    println!("{size} bytes  1/3 is {third:.8}");
    // ANCHOR_END: precision

    twin("binary");
    // ANCHOR: binary
    let bin = BinFileRecorder::<FullPrecisionSettings>::new();
    layer.clone().save_file(folder.join("a"), &bin).unwrap();
    let binary = std::fs::read(folder.join("a.bin")).unwrap();
    println!("{} bytes", binary.len());
    // ANCHOR_END: binary

    twin("optimizer");
    // ANCHOR: optimizer
    type Train = Autodiff<NdArray>;
    let trained = nn::LinearConfig::new(2, 3).init::<Train>(&device);
    let ones = Tensor::<Train, 2>::ones([1, 2], &device);
    let loss = trained.forward(ones).sum();
    let grads = GradientsParams::from_grads(loss.backward(), &trained);
    let mut adam = AdamConfig::new().init();
    adam.step(0.1, trained, grads);

    let recorder = NamedMpkFileRecorder::<FullPrecisionSettings>::new();
    let optimizer = folder.join("optimizer");
    Recorder::<Train>::record(&recorder, adam.to_record(), optimizer).unwrap();
    // ANCHOR_END: optimizer

    twin("resume");
    // ANCHOR: resume
    let file = folder.join("optimizer");
    let record = Recorder::<Train>::load(&recorder, file, &device).unwrap();
    let resumed = AdamConfig::new().init::<Train, nn::Linear<Train>>();
    let resumed = resumed.load_record(record);
    assert_eq!(resumed.to_record().len(), 2);
    // ANCHOR_END: resume
}
