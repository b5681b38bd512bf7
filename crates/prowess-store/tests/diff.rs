//! What differs between two versions of a skill (S11, 3; R-21).

mod support;

use std::process::Command;
use std::sync::Once;

use proptest::prelude::*;
use prowess_catalog::{ContentFile, ResourcePath, SkillContents};
use prowess_store::{FileDiff, FileStatus, compare};
use serde_json::json;
use support::skip;

fn skill(files: &[(&str, bool, &[u8])]) -> SkillContents {
    let file = |(path, executable, bytes): &(&str, bool, &[u8])| {
        ContentFile::new(ResourcePath::parse(path).unwrap(), *executable, *bytes)
    };
    SkillContents::of(files.iter().map(file).collect())
}

fn only(differences: Vec<FileDiff>) -> FileDiff {
    assert_eq!(differences.len(), 1, "{differences:?}");
    differences.into_iter().next().unwrap()
}

#[test]
fn every_file_that_differs_is_told_and_no_other() {
    let from = skill(&[
        ("a.md", false, b"same\n"),
        ("b.md", false, b"gone\n"),
        ("c.sh", false, b"#!\n"),
        ("d.png", false, &[0xff, 1]),
        ("e.md", false, b"one\ntwo\n"),
    ]);
    let to = skill(&[
        ("a.md", false, b"same\n"),
        ("c.sh", true, b"#!\n"),
        ("d.png", false, &[0xff, 2]),
        ("e.md", false, b"one\n2\n"),
        ("f.md", false, b"new"),
    ]);
    let found: Vec<_> = compare(&from, &to)
        .into_iter()
        .map(|it| (it.path, it.status, it.is_binary, it.added, it.removed, it.hunks))
        .collect();
    let row = |path: &str, status, is_binary, added, removed, hunks: &str| {
        (path.to_owned(), status, is_binary, added, removed, hunks.to_owned())
    };
    assert_eq!(
        found,
        [
            row("b.md", FileStatus::Removed, false, 0, 1, "@@ -1 +0,0 @@\n-gone\n"),
            row("c.sh", FileStatus::Mode, false, 0, 0, ""),
            row("d.png", FileStatus::Changed, true, 0, 0, ""),
            row("e.md", FileStatus::Changed, false, 1, 1, "@@ -1,2 +1,2 @@\n one\n-two\n+2\n"),
            row(
                "f.md",
                FileStatus::Added,
                false,
                1,
                0,
                "@@ -0,0 +1 @@\n+new\n\\ No newline at end of file\n"
            ),
        ]
    );
    assert!(compare(&from, &from).is_empty());
}

#[test]
fn fields_of_the_text_are_compared_one_by_one() {
    let text = |more: &str, body: &str| {
        format!("---\nname: demo\ndescription: Shows it.\n{more}---\n{body}")
    };
    let old = text("version: 1.0.0\ntool_configs: [{name: a}, {name: b}]\n", "old\n");
    let new = text(
        "version: 1.1.0\nauthor: us\ntool_configs: [{name: a}, {name: c}]\nresource_configs: \
         [{name: r, content: x}]\n",
        "new\n",
    );
    let own = only(compare(
        &skill(&[("SKILL.md", false, old.as_bytes())]),
        &skill(&[("SKILL.md", false, new.as_bytes())]),
    ));
    let found: Vec<_> = own.fields.iter().map(|it| it.field.as_str()).collect();
    assert_eq!(
        found,
        [
            "version",
            "author",
            "core_content",
            "tool_configs.b",
            "tool_configs.c",
            "resource_configs.r"
        ]
    );
    assert_eq!(
        (&own.fields[0].from_value, &own.fields[0].to_value),
        (&json!("1.0.0"), &json!("1.1.0"))
    );
    assert_eq!((&own.fields[1].from_value, &own.fields[1].to_value), (&json!(null), &json!("us")));
    assert_eq!(own.fields[3].to_value, json!(null));
    let shown = serde_json::to_value(&own).unwrap();
    assert_eq!(shown["status"], "changed");
    assert_eq!(shown["fields"][0]["field"], "version");
}

#[test]
fn a_text_that_is_no_skill_is_still_compared() {
    let own = only(compare(
        &skill(&[("SKILL.md", false, b"no frontmatter\n")]),
        &skill(&[("SKILL.md", false, b"---\nname: demo\ndescription: x\n---\n")]),
    ));
    assert_eq!((own.added, own.removed), (4, 1));
    assert_eq!(own.fields[0].from_value, json!(null));
}

#[test]
fn nothing_is_cut_however_long_it_is() {
    let lines =
        |from: usize| (from..from + 5_000).map(|at| format!("line {at}\n")).collect::<String>();
    let (old, new) = (lines(0), lines(100_000));
    let diff = only(compare(
        &skill(&[("a.txt", false, old.as_bytes())]),
        &skill(&[("a.txt", false, new.as_bytes())]),
    ));
    assert_eq!((diff.added, diff.removed), (5_000, 5_000));
    assert!(diff.hunks.starts_with("@@ -1,5000 +1,5000 @@\n"));
    assert!(diff.hunks.contains("+line 104999\n") && diff.hunks.contains("-line 4999\n"));
}

#[test]
fn the_head_of_a_hunk_counts_its_lines() {
    let old = "a\nc\na\na\na\na\na\na\na\na\na\na\n";
    let new = "aa\r\naa\r\na\naa\r\nb\nc\nc\n";
    let diff = only(compare(
        &skill(&[("a", false, old.as_bytes())]),
        &skill(&[("a", false, new.as_bytes())]),
    ));
    assert!(diff.hunks.starts_with("@@ -1,12 +1,7 @@\n"), "{}", diff.hunks);
}

/// What `patch` makes of a text and hunks.
fn patched(old: &str, hunks: &str) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a"), old).unwrap();
    std::fs::write(folder.path().join("p"), format!("--- a\n+++ a\n{hunks}")).unwrap();
    let mut patch = Command::new("patch");
    patch.args(["-s", "--binary", "--no-backup-if-mismatch", "a", "p"]).current_dir(folder.path());
    let patch = patch.status().ok()?;
    assert!(patch.success());
    // A file that becomes empty is removed.
    Some(std::fs::read_to_string(folder.path().join("a")).unwrap_or_default())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Hunks are what a patch program takes.
    #[test]
    fn a_patch_program_makes_one_of_the_other(
        old in "([ab]\n|[ab]{2}\r\n|c\n){0,12}[ab\r]{0,2}",
        new in "([ab]\n|[ab]{2}\r\n|c\n){0,12}[ab\r]{0,2}",
    ) {
        let differences = compare(
            &skill(&[("a", false, old.as_bytes())]), &skill(&[("a", false, new.as_bytes())]));
        if old == new {
            prop_assert!(differences.is_empty());
        } else if let Some(patched) = patched(&old, &only(differences).hunks) {
            prop_assert_eq!(patched, new);
        } else {
            static TOLD: Once = Once::new();
            let test = "a_patch_program_makes_one_of_the_other";
            TOLD.call_once(|| skip(test, "there is no program `patch`; install it"));
        }
    }
}

#[test]
fn without_a_patch_program_it_is_said_once_that_nothing_was_tried() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_patch_program_makes_one_of_the_other"])
        .env("PATH", folder.path())
        .env("PROWESS_SKIP_LOG", &log)
        .output()
        .unwrap();
    assert!(child.status.success(), "{child:?}");
    let told = std::fs::read_to_string(log).unwrap();
    assert_eq!(told.lines().count(), 1, "{told}");
}
