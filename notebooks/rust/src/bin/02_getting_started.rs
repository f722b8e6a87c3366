//! Chapter 2: getting started.
use burn_book::twin;

// ANCHOR: setup
use burn::backend::NdArray;
use burn::prelude::*;

type B = NdArray;
// ANCHOR_END: setup

fn main() {
    twin("first-program");
    // ANCHOR: first-program
    let device = Default::default();

    let tensor_1 = Tensor::<B, 2>::from_data([[2., 3.], [4., 5.]], &device);
    let tensor_2 = Tensor::<B, 2>::ones_like(&tensor_1);

    println!("{}", tensor_1 + tensor_2);
    // ANCHOR_END: first-program

    twin("kinds");
    // ANCHOR: kinds
    let floats = Tensor::<B, 1>::from_floats([1.0, 2.0, 3.0], &device);
    let ints = Tensor::<B, 1, Int>::from_ints([1, 2, 3], &device);
    let truths = Tensor::<B, 1, Bool>::from_data([true, false, true], &device);

    println!("Float {:?}", floats.dims());
    println!("Int {:?}", ints.dims());
    println!("Bool {:?}", truths.dims());
    // ANCHOR_END: kinds

    twin("broadcasting");
    // ANCHOR: broadcasting
    let column = Tensor::<B, 2>::from_floats([[10.0], [20.0]], &device);
    let row = Tensor::<B, 2>::from_floats([[1.0, 2.0, 3.0]], &device);
    println!("{}", (column + row).to_data());
    // ANCHOR_END: broadcasting

    twin("convert-kind");
    // ANCHOR: convert-kind
    println!("{}", (floats + ints.float()).to_data());
    // ANCHOR_END: convert-kind
}
