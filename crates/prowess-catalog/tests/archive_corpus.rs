//! Replays what fuzzing has found (S08, 5).

#[path = "../../../fuzz/archive_checks.rs"]
mod archive_checks;

use std::fs;
use std::path::Path;

fn replay(target: &str, check: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut count = 0;
    for entry in fs::read_dir(folder).unwrap() {
        check(&fs::read(entry.unwrap().path()).unwrap());
        count += 1;
    }
    assert!(count >= 7, "{count}");
}

#[test]
fn zip_archives_that_fuzzing_found() {
    replay("zip", archive_checks::zip);
}

#[test]
fn tar_archives_that_fuzzing_found() {
    replay("tar", archive_checks::tar);
}
