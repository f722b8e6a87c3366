fn main() -> ExitCode {
    let given = match std::env::args().nth(1) {
        None => Ok(BTreeMap::new()),
        Some(file) => read(&file).map_err(|why| format!("{file}: {why}")),
    };
    match given {
        Ok(given) => {
            let found = predict(RECORD, &given);
            println!("{}", serde_json::to_string(&found).expect("numbers"));
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

/// The inputs in a file: all that the model takes, and no others.
fn read(file: &str) -> Result<BTreeMap<String, Numbers>, String> {
    let text = std::fs::read_to_string(file).map_err(|why| why.to_string())?;
    let given: BTreeMap<String, Numbers> =
        serde_json::from_str(&text).map_err(|why| why.to_string())?;
    let has_all = INPUTS.iter().all(|name| given.contains_key(*name));
    if !has_all || given.len() != INPUTS.len() {
        let found: Vec<&String> = given.keys().collect();
        return Err(format!("the inputs are {found:?}, the model takes {INPUTS:?}"));
    }
    for (name, one) in &given {
        let count: usize = one.shape.iter().product();
        if count != one.data.len() {
            let (shape, found) = (&one.shape, one.data.len());
            return Err(format!("{name}: {found} numbers do not fill the shape {shape:?}"));
        }
    }
    Ok(given)
}
