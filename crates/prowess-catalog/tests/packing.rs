//! Skills into archives and back (S11, 1).

#[path = "support/packed.rs"]
mod packed;
mod support;

use std::io::Cursor;

use packed::{tar_of, tgz_of, zip_of};
use proptest::prelude::*;
use prowess_catalog::{
    ArchiveKind, ContentFile, RemoteLimits, ResourcePath, SkillContents, pack, read_archive,
    unpack_from,
};
use support::text;

fn file(path: &str, executable: bool, bytes: &[u8]) -> ContentFile {
    ContentFile::new(ResourcePath::parse(path).unwrap(), executable, bytes)
}

fn skill(mut files: Vec<ContentFile>) -> SkillContents {
    files.push(file("SKILL.md", false, text("demo").as_bytes()));
    SkillContents::of(files)
}

fn limits() -> RemoteLimits {
    RemoteLimits::default()
}

#[test]
fn a_skill_that_is_packed_and_read_is_the_same() {
    let before = skill(vec![
        file("scripts/run.sh", true, b"#!/bin/sh\n"),
        file("assets/logo.png", false, &[0, 159, 146, 150, 255]),
        file("references/技能.md", false, "ü\r\n".as_bytes()),
        file("a/b/c/d/empty", false, b""),
        file("sub/SKILL.md", false, text("inner").as_bytes()),
    ]);
    let packed = pack(&before, "demo").unwrap();
    let read = read_archive(&packed, &limits()).unwrap();
    assert_eq!(read.skills.len(), 1, "{:?}", read.diagnostics);
    assert_eq!((read.skills[0].name.as_str(), read.skills[0].folder.as_str()), ("demo", "demo"));
    assert_eq!(read.skills[0].contents.tree_digest, before.tree_digest);
    assert_eq!(read.skills[0].contents.files, before.files);
}

#[test]
fn the_same_files_give_the_same_archive_whatever_their_order() {
    let one = skill(vec![file("b", false, b"b"), file("a", true, b"a")]);
    let other = skill(vec![file("a", true, b"a"), file("b", false, b"b")]);
    assert_eq!(pack(&one, "demo").unwrap(), pack(&other, "demo").unwrap());
    assert_ne!(pack(&one, "demo").unwrap(), pack(&one, "other").unwrap());
}

#[test]
fn what_packs_too_well_is_stored_so_that_it_is_not_taken_for_an_attack() {
    let before = skill(vec![file("zeros", false, &vec![0; 4 << 20])]);
    let packed = pack(&before, "demo").unwrap();
    assert!(packed.len() > 4 << 20);
    let read = read_archive(&packed, &limits()).unwrap();
    assert_eq!(read.skills[0].contents.tree_digest, before.tree_digest);
}

#[test]
fn what_would_be_refused_is_not_packed() {
    for (paths, code) in [
        (vec!["a.md", "A.md"], "duplicate_entry"),
        (vec!["a", "a/b"], "duplicate_entry"),
        (vec!["ﬁ.md", "fi.md"], "duplicate_entry"),
        (vec!["Skill.md"], "duplicate_entry"),
    ] {
        let contents = skill(paths.iter().map(|path| file(path, false, b"x")).collect());
        assert_eq!(pack(&contents, "demo").unwrap_err().code(), code, "{paths:?}");
    }
    for folder in ["", ".", "..", "a/b", "/a", "a/", "c:", "a\\b"] {
        let error = pack(&skill(vec![]), folder).unwrap_err();
        assert_eq!(error.code(), "invalid_path", "{folder}");
    }
}

#[test]
fn every_skill_of_an_archive_is_read_in_every_form() {
    let (one, two) = (text("one"), text("two"));
    let several =
        [("x/one/SKILL.md", one.as_str()), ("x/one/a.txt", "a"), ("x/two/SKILL.md", &two)];
    for bytes in [zip_of(&several), tgz_of(&several), tar_of(&several)] {
        let read = read_archive(&bytes, &limits()).unwrap();
        let names: Vec<_> = read.skills.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["one", "two"]);
        assert!(read.skills[0].contents.file("a.txt").is_some());
        assert_eq!(read.skills[1].contents.files.len(), 1);
        assert!(read.diagnostics.is_empty(), "{:?}", read.diagnostics);
    }
    let read = read_archive(&zip_of(&[("SKILL.md", &one), ("docs/a.md", "a")]), &limits()).unwrap();
    assert_eq!((read.skills.len(), read.skills[0].folder.as_str()), (1, ""));
    assert_eq!(read.skills[0].contents.files.len(), 2);
}

#[test]
fn a_broken_skill_is_told_by_its_place_in_the_archive_and_hurts_no_other() {
    let bytes = zip_of(&[
        ("bad/SKILL.md", "---\nname: bad\n---\n"),
        ("good/SKILL.md", &text("good")),
        ("good/.git/config", "x"),
    ]);
    let read = read_archive(&bytes, &limits()).unwrap();
    assert_eq!(read.skills.len(), 1);
    let found: Vec<_> = read
        .diagnostics
        .iter()
        .map(|it| (it.code.as_str(), it.path.as_deref().unwrap_or_default()))
        .collect();
    assert!(found.contains(&("missing-description", "bad/SKILL.md")), "{found:?}");
    assert!(found.contains(&("left-out-file", "good/.git")), "{found:?}");
    let all = format!("{:?}", read.diagnostics);
    assert!(!all.contains(&*std::env::temp_dir().to_string_lossy()), "{all}");
}

#[test]
fn what_is_no_archive_or_holds_no_skill_is_told() {
    for bytes in [b"".as_slice(), b"---\nname: x\n---\n", b"PK", &[0; 600]] {
        assert_eq!(read_archive(bytes, &limits()).unwrap_err().code(), "damaged_archive");
    }
    let read = read_archive(&zip_of(&[("readme.txt", "x")]), &limits()).unwrap();
    assert_eq!(read.skills.len(), 0);
    assert_eq!(read.diagnostics[0].code.as_str(), "missing-skill-file");
    let few = limits().with_entries(1);
    let bytes = zip_of(&[("a", "x"), ("b", "x")]);
    assert_eq!(read_archive(&bytes, &few).unwrap_err().code(), "archive_limit");
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof!["[a-zA-Z0-9._ -]{1,8}", "\\PC{1,6}"]
        .prop_filter("one name", |name| !name.contains('/') && name != "." && name != "..")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever is packed is accepted by our own reader, and nothing of it is lost.
    #[test]
    fn whatever_is_packed_is_read(
        files in prop::collection::btree_map(
            prop::collection::vec(name(), 1..4),
            (any::<bool>(), prop::collection::vec(any::<u8>(), 0..300)),
            0..6,
        )
    ) {
        let files = files.into_iter().filter_map(|(names, (executable, bytes))| {
            let path = ResourcePath::parse(&names.join("/")).ok()?;
            Some(ContentFile::new(path, executable, bytes))
        });
        let before = skill(files.collect());
        if let Ok(packed) = pack(&before, "demo") {
            let folder = tempfile::tempdir().unwrap();
            let archive = Cursor::new(&packed);
            let unpacked =
                unpack_from(archive, ArchiveKind::Zip, folder.path(), &limits(), &mut |_| {});
            prop_assert_eq!(unpacked.unwrap().files.len(), before.files.len());
            let read = read_archive(&packed, &limits()).unwrap();
            prop_assert_eq!(read.skills[0].contents.tree_digest, before.tree_digest);
        }
    }
}
