//! Replays what fuzzing has found, and the corpus of statements, against what must hold for every one.
#![cfg(feature = "sql")]

#[path = "../../../fuzz/guard_checks.rs"]
mod guard_checks;

use std::fs;
use std::path::Path;

#[test]
fn statements_that_fuzzing_found() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/guard");
    let mut count = 0;
    for entry in fs::read_dir(folder).unwrap() {
        guard_checks::guard(&fs::read(entry.unwrap().path()).unwrap());
        count += 1;
    }
    assert!(count >= 100, "{count}");
}

#[test]
fn statements_of_the_corpus() {
    for dialect in ["sqlite", "postgresql", "mysql"] {
        for file in ["honest.txt", "hostile.txt"] {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sql_corpus");
            let text = fs::read_to_string(folder.join(dialect).join(file)).unwrap();
            for line in text.lines() {
                guard_checks::guard(line.replace('⏎', "\n").replace('⇥', "\t").as_bytes());
            }
        }
    }
}
