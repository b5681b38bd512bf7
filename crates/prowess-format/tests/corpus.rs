//! Replays every input that the fuzzers were given or have found (S01, 6).

#[path = "../../../fuzz/checks.rs"]
mod checks;

use std::path::Path;

fn replay(target: &str, check: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut count = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        println!("{}", path.display());
        check(&std::fs::read(&path).unwrap());
        count += 1;
    }
    assert!(count > 0, "the corpus of {target} is empty");
}

#[test]
fn split() {
    replay("split", checks::split);
}

#[test]
fn frontmatter() {
    replay("frontmatter", checks::frontmatter);
}

#[test]
fn plain() {
    replay("plain", checks::plain);
}

#[test]
fn arguments() {
    replay("arguments", checks::arguments);
}
