type Predict = fn(&str, &BTreeMap<String, Numbers>) -> Vec<Numbers>;

/// For each model NAME, reads NAME.json and the record beside it in a folder; prints a
/// line of JSON with the outputs, null where it panics.
fn main() {
    let folder = std::env::args().nth(1).expect("a folder");
    for (name, ending, predict) in all() {
        let path = format!("{folder}/{name}.json");
        let text = std::fs::read_to_string(path).expect(name);
        let given: BTreeMap<String, Numbers> = serde_json::from_str(&text).expect(name);
        let record = format!("{folder}/{name}.{ending}");
        let found = std::panic::catch_unwind(|| predict(&record, &given)).ok();
        println!("{}", serde_json::json!({"name": name, "outputs": found}));
    }
}
