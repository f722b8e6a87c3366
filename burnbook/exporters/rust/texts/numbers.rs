/// A tensor as numbers: its shape, and its elements row by row.
#[derive(Deserialize, Serialize)]
struct Numbers {
    shape: Vec<usize>,
    data: Vec<f64>,
}

impl Numbers {
    /// The input of a name, or ones.
    fn named(given: &BTreeMap<String, Numbers>, name: &str, shape: &[usize]) -> TensorData {
        match given.get(name) {
            None => TensorData::new(vec![1.0; shape.iter().product()], shape.to_vec()),
            Some(found) => TensorData::new(found.data.clone(), found.shape.clone()),
        }
    }

    fn of(data: TensorData) -> Numbers {
        let shape = data.shape.to_vec();
        let data = data.convert::<f64>().to_vec().expect("numbers");
        Numbers { shape, data }
    }
}
