//! What a cell has at hand: its prelude, and the values that go over and come back.
//!
//! Values lie as .npy files in the folder BURNBOOK_CELL: numbers, never code.
use std::path::PathBuf;

use burn::tensor::backend::Backend;
use burn::tensor::{BasicOps, DType, Element, Tensor, TensorData};

pub mod prelude {
    pub use super::B;
    pub use burn::backend::{Autodiff, NdArray};
    pub use burn::prelude::*;
}

fn path(file: String) -> PathBuf {
    let folder = std::env::var_os("BURNBOOK_CELL").expect("started by %%rust");
    PathBuf::from(folder).join(file)
}

/// A tensor of Python, by its name.
pub fn input<const D: usize, K>(name: &str, shape: [usize; D]) -> Tensor<B, D, K>
where
    K: BasicOps<B>,
    K::Elem: Element,
{
    let file =
        std::fs::read(path(format!("{name}.in.npy"))).expect("the file of an input");
    let start = 10 + u16::from_le_bytes([file[8], file[9]]) as usize;
    let header = String::from_utf8_lossy(&file[10..start]);
    let bytes = &file[start..];
    let data = if header.contains("'<f4'") {
        TensorData::new(elements(bytes, f32::from_le_bytes), shape)
    } else if header.contains("'<f8'") {
        TensorData::new(elements(bytes, f64::from_le_bytes), shape)
    } else if header.contains("'<i8'") {
        TensorData::new(elements(bytes, i64::from_le_bytes), shape)
    } else {
        TensorData::new(elements(bytes, |[byte]: [u8; 1]| byte != 0), shape)
    };
    Tensor::from_data(data.convert::<K::Elem>(), &Default::default())
}

fn elements<const N: usize, E>(bytes: &[u8], read: fn([u8; N]) -> E) -> Vec<E> {
    bytes
        .chunks_exact(N)
        .map(|chunk| read(chunk.try_into().unwrap()))
        .collect()
}

/// What a cell can give back: a tensor, or one number.
pub trait Output {
    /// NumPy's name of the element type, the shape (empty: one number), the bytes.
    fn array(&self) -> (&'static str, Vec<usize>, Vec<u8>);
}

/// Writes a value under the name that Python will give it.
pub fn output(name: &str, value: &impl Output) {
    let (kind, shape, bytes) = value.array();
    let sizes: String = shape.iter().map(|size| format!("{size}, ")).collect();
    let fields =
        format!("'descr': '{kind}', 'fortran_order': False, 'shape': ({sizes})");
    let mut header = format!("{{{fields}}}");
    while (10 + header.len() + 1) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.as_bytes());
    file.extend(bytes);
    std::fs::write(path(format!("{name}.out.npy")), file).expect("room for an output");
}

impl<T: Backend, const D: usize, K> Output for Tensor<T, D, K>
where
    K: BasicOps<T>,
    K::Elem: Element,
{
    fn array(&self) -> (&'static str, Vec<usize>, Vec<u8>) {
        let data = self.to_data();
        let (data, kind) = match data.dtype {
            DType::F64 => (data, "<f8"),
            DType::F32 => (data, "<f4"),
            DType::I64 => (data, "<i8"),
            DType::I32 => (data, "<i4"),
            DType::Bool => (data, "|b1"),
            DType::F16 | DType::BF16 => (data.convert::<f32>(), "<f4"),
            _ => (data.convert::<i64>(), "<i8"),
        };
        (kind, data.shape, data.bytes)
    }
}

macro_rules! numbers {
    ($($number:ty, $wide:ty, $kind:literal;)*) => {
        $(impl Output for $number {
            fn array(&self) -> (&'static str, Vec<usize>, Vec<u8>) {
                ($kind, vec![], (*self as $wide).to_le_bytes().to_vec())
            }
        })*
    };
}

numbers! {
    f64, f64, "<f8"; f32, f64, "<f8";
    i64, i64, "<i8"; i32, i64, "<i8"; i16, i64, "<i8"; i8, i64, "<i8"; isize, i64, "<i8";
    u64, u64, "<u8"; u32, u64, "<u8"; u16, u64, "<u8"; u8, u64, "<u8"; usize, u64, "<u8";
    bool, u8, "|b1";
}
