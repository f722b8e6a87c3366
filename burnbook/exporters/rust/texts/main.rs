fn main() {
    let given: BTreeMap<String, Numbers> = match std::env::args().nth(1) {
        None => BTreeMap::new(),
        Some(file) => {
            let text = std::fs::read_to_string(&file).expect("a file of inputs");
            serde_json::from_str(&text).expect("inputs by name")
        }
    };
    let found = predict(RECORD, &given);
    println!("{}", serde_json::to_string(&found).expect("numbers"));
}
