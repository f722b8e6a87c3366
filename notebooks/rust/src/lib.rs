//! What the programs of the chapters share.
extern crate self as burn_book;

/// The network of the guide, as chapter 3.1 builds it.
#[path = "bin/03_1_model.rs"]
#[allow(dead_code)]
pub mod guide;

/// Says in the output which twin prints from here on.
pub fn twin(name: &str) {
    println!("--- {name}");
}
