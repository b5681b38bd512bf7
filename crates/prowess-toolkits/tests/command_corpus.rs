//! Replays what fuzzing has found (S10, 3).

#[path = "../../../fuzz/command_checks.rs"]
mod command_checks;

use std::fs;
use std::path::Path;

#[test]
fn commands_that_fuzzing_found() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/command");
    let mut count = 0;
    for entry in fs::read_dir(folder).unwrap() {
        command_checks::command(&fs::read(entry.unwrap().path()).unwrap());
        count += 1;
    }
    assert!(count >= 100, "{count}");
}
