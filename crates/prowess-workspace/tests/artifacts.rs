//! Artifacts: versions that nobody loses.

mod artifact_rules;
mod common;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::time::Duration;

use artifact_rules::{self as rules, Store, block_on, load, save, scope};
use common::*;
use prowess_workspace::{ArtifactError, ArtifactStore, FileArtifacts, MemoryArtifacts};

#[test]
fn as_an_ordinary_user_too() {
    again_as_an_ordinary_user(&["as_an_ordinary_user_too"]);
}

/// A rule of all stores, held to those that need nothing else.
fn both(rule: impl Fn(&dyn ArtifactStore)) {
    let folder = tempfile::tempdir().unwrap();
    rule(&FileArtifacts::new(folder.path().join("artifacts")));
    rule(&MemoryArtifacts::new());
}

/// The same with the store in hand.
fn both_shared(rule: impl Fn(&Store)) {
    let folder = tempfile::tempdir().unwrap();
    rule(&(Arc::new(FileArtifacts::new(folder.path())) as Store));
    rule(&(Arc::new(MemoryArtifacts::new()) as Store));
}

#[test]
fn child() {
    let Some((role, folder)) = role() else { return };
    let store = FileArtifacts::new(folder);
    let count = if role == "save forever" { u64::MAX } else { 25 };
    for at in 0..count {
        let text = format!("{} {at} {}", std::process::id(), "x".repeat(20_000));
        let version = save(&store, "s", "report", &text);
        say(format!("{version} {} {at}", std::process::id()));
    }
}

#[test]
fn what_is_in_a_file_is_saved_like_any_other() {
    both(rules::what_is_in_a_file_is_saved_like_any_other);
    // At the edge of what may be saved.
    let folder = tempfile::tempdir().unwrap();
    let store = FileArtifacts::new(folder.path().join("artifacts")).with_max_bytes(10);
    let file = |bytes: usize| {
        let path = folder.path().join("file");
        fs::write(&path, "x".repeat(bytes)).unwrap();
        block_on(store.save_file(&scope("s"), "f", "text/plain", fs::File::open(path).unwrap()))
    };
    assert_eq!(file(10).unwrap(), 0);
    assert_eq!(file(11).unwrap_err().code(), "limit_exceeded");
}

#[test]
fn versions_count_from_zero_and_the_newest_is_given() {
    both(rules::versions_count_from_zero_and_the_newest_is_given);
}

#[test]
fn sessions_are_kept_apart_and_the_user_s_are_shared() {
    both(rules::sessions_are_kept_apart_and_the_user_s_are_shared);
}

#[test]
fn scopes_that_look_alike_are_different() {
    both(rules::scopes_that_look_alike_are_different);
}

#[test]
fn deleting_removes_all_versions_of_one_name() {
    both(rules::deleting_removes_all_versions_of_one_name);
}

#[test]
fn hostile_names_are_refused() {
    both(rules::hostile_names_are_refused_and_odd_ones_are_only_names);
}

#[test]
fn any_bytes_come_back_as_they_were() {
    both(rules::any_bytes_come_back_as_they_were);
}

#[test]
fn savers_at_once_lose_no_version() {
    let folder = tempfile::tempdir().unwrap();
    let file = || Arc::new(FileArtifacts::new(folder.path())) as Store;
    rules::savers_at_once_lose_no_version(&file(), &file());
    let memory = Arc::new(MemoryArtifacts::new()) as Store;
    rules::savers_at_once_lose_no_version(&memory, &memory);
}

#[test]
fn saving_and_deleting_at_once() {
    both_shared(rules::saving_and_deleting_at_once_gives_whole_versions_or_none);
    both_shared(rules::a_save_behind_a_delete_is_kept);
}

#[test]
fn hostile_names_are_refused_and_odd_ones_are_only_names() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("a/b/artifacts");
    let store = FileArtifacts::new(&root);
    // Control: written as it is, the name leads out.
    let naive = folder.path().join("naive/b");
    fs::create_dir_all(&naive).unwrap();
    fs::write(naive.join("../../x"), "x").unwrap();
    fs::remove_file(folder.path().join("x")).unwrap();
    fs::remove_dir_all(folder.path().join("naive")).unwrap();
    for name in ["../../x", "/etc/x", "a/../../../x", "", "user:../x", "a\0b", "x@1"] {
        let bytes: Arc<[u8]> = b"x"[..].into();
        let failed = |error: ArtifactError| assert_eq!(error.code(), "invalid_artifact_name");
        failed(block_on(store.save(&scope("s"), name, "a/b", bytes)).unwrap_err());
        failed(block_on(store.load(&scope("s"), name, None)).unwrap_err());
        failed(block_on(store.versions(&scope("s"), name)).unwrap_err());
        failed(block_on(store.delete(&scope("s"), name)).unwrap_err());
    }
    assert!(!root.exists());
    let long = "x".repeat(512);
    let odd = ["...", "out/a.txt", "a b", "*?[", "%2e%2e", ".old-x", ".new-x", "0", &long];
    for name in odd {
        save(&store, "../../s", name, name);
    }
    let mut expected: Vec<_> = odd.iter().map(|name| (*name).to_owned()).collect();
    expected.sort();
    assert_eq!(block_on(store.list(&scope("../../s"))).unwrap(), expected);
    for name in odd {
        assert_eq!(load(&store, "../../s", name, None).as_deref(), Some(name));
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    assert_eq!(fs::read_dir(folder.path().join("a/b")).unwrap().count(), 1);
}

#[test]
fn what_is_too_large_is_refused_at_the_edge() {
    let folder = tempfile::tempdir().unwrap();
    let file = FileArtifacts::new(folder.path()).with_max_bytes(10);
    rules::what_is_too_large_is_refused_at_the_edge(&file);
    let memory = MemoryArtifacts::new().with_max_bytes(10);
    rules::what_is_too_large_is_refused_at_the_edge(&memory);
}

/// The files of all versions.
fn files(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    tree(folder).into_keys().map(|file| folder.join(file)).collect()
}

#[test]
fn damage_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let store = FileArtifacts::new(folder.path());
    save(&store, "s", "a", "content");
    let [file] = &files(folder.path())[..] else { panic!() };
    let whole = fs::read(file).unwrap();
    let changed = String::from_utf8(whole.clone()).unwrap().replace("content", "contend");
    for damage in [&b""[..], b"{}", &whole[..whole.len() - 1], changed.as_bytes(), b"\n\n"] {
        fs::write(file, damage).unwrap();
        let error = block_on(store.load(&scope("s"), "a", None)).unwrap_err();
        assert_eq!(error.code(), "artifact_damaged");
    }
    fs::remove_file(file).unwrap();
    let secret = folder.path().join("secret");
    fs::write(&secret, &whole).unwrap();
    symlink(&secret, file).unwrap();
    assert!(block_on(store.load(&scope("s"), "a", None)).is_err());
    // The next version is whole.
    assert_eq!(save(&store, "s", "a", "more"), 1);
    assert_eq!(load(&store, "s", "a", None).as_deref(), Some("more"));
}

#[test]
fn many_savers_at_once_lose_no_version() {
    let folder = tempfile::tempdir().unwrap();
    let store = FileArtifacts::new(folder.path());
    let mut children: Vec<_> = (0..3).map(|_| spawn("save some", folder.path())).collect();
    let threads: Vec<_> = (0..3)
        .map(|thread| {
            let store = store.clone();
            std::thread::spawn(move || {
                let save = |at| (save(&store, "s", "report", &format!("t{thread} {at} ")), at);
                (0..25).map(save).map(|(v, at)| format!("{v} t{thread} {at}")).collect::<Vec<_>>()
            })
        })
        .collect();
    let mut acknowledged: Vec<String> = Vec::new();
    for child in &mut children {
        acknowledged.extend(said(child));
        assert!(child.wait().unwrap().success());
    }
    for thread in threads {
        acknowledged.extend(thread.join().unwrap());
    }
    let mut versions = BTreeSet::new();
    for line in &acknowledged {
        let (version, rest) = line.split_once(' ').unwrap();
        assert!(versions.insert(version.parse::<u64>().unwrap()), "given twice: {version}");
        let text = load(&store, "s", "report", Some(version.parse().unwrap())).unwrap();
        assert!(text.starts_with(&format!("{rest} ")), "{line}");
    }
    assert_eq!(versions, (0..150).collect());
    assert_eq!(block_on(store.versions(&scope("s"), "report")).unwrap().len(), 150);
    assert_eq!(files(folder.path()).len(), 150);
}

#[test]
fn a_saver_that_is_killed_loses_nothing_that_it_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let store = FileArtifacts::new(folder.path());
    let mut acknowledged: Vec<String> = Vec::new();
    for round in 0..20_u64 {
        let mut child = spawn("save forever", folder.path());
        let mut lines = said(&mut child);
        acknowledged.extend(lines.next());
        std::thread::sleep(Duration::from_micros(round * 977));
        child.kill().unwrap();
        child.wait().unwrap();
        acknowledged.extend(lines);
    }
    assert!(acknowledged.len() >= 20);
    for line in &acknowledged {
        let (version, rest) = line.split_once(' ').unwrap();
        let text = load(&store, "s", "report", Some(version.parse().unwrap())).unwrap();
        assert!(text.starts_with(&format!("{rest} ")), "{line}");
    }
    // What was not acknowledged is whole, or is not there; none is left out.
    let versions = block_on(store.versions(&scope("s"), "report")).unwrap();
    assert_eq!(versions, (0..versions.len() as u64).collect::<Vec<_>>());
    for version in &versions {
        assert!(load(&store, "s", "report", Some(*version)).is_some());
    }
    // The next saver removes what the killed ones left.
    save(&store, "s", "report", "last");
    assert_eq!(files(folder.path()).len(), versions.len() + 1);
}

#[test]
fn saving_and_deleting_at_once_gives_whole_versions_or_none() {
    let folder = tempfile::tempdir().unwrap();
    let store = FileArtifacts::new(folder.path());
    std::thread::scope(|scope_of_threads| {
        for _ in 0..2 {
            scope_of_threads.spawn(|| {
                for _ in 0..50 {
                    save(&store, "s", "a", "whole");
                }
            });
        }
        scope_of_threads.spawn(|| {
            for _ in 0..50 {
                block_on(store.delete(&scope("s"), "a")).unwrap();
                if let Some(text) = load(&store, "s", "a", None) {
                    assert_eq!(text, "whole");
                }
                assert!(block_on(store.list(&scope("s"))).unwrap().len() <= 1);
            }
        });
    });
    save(&store, "s", "a", "last");
    assert_eq!(load(&store, "s", "a", None).as_deref(), Some("last"));
    block_on(store.delete(&scope("s"), "a")).unwrap();
    assert_eq!(files(folder.path()), Vec::<std::path::PathBuf>::new());
}
