//! What every store of artifacts promises, one function per rule.

#![allow(dead_code, reason = "every test file uses a part of it")]

use std::collections::BTreeMap;
use std::sync::Arc;

use prowess_workspace::{ArtifactError, ArtifactScope, ArtifactStore};

pub(crate) type Store = Arc<dyn ArtifactStore>;

pub(crate) fn scope(session: &str) -> ArtifactScope {
    ArtifactScope::new("app", "user", session)
}

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

pub(crate) fn save(store: &dyn ArtifactStore, session: &str, name: &str, text: &str) -> u64 {
    let bytes: Arc<[u8]> = text.as_bytes().into();
    block_on(store.save(&scope(session), name, "text/plain", bytes)).unwrap()
}

pub(crate) fn load(
    store: &dyn ArtifactStore,
    session: &str,
    name: &str,
    version: Option<u64>,
) -> Option<String> {
    let found = block_on(store.load(&scope(session), name, version)).unwrap()?;
    assert_eq!(found.name, name);
    assert_eq!(found.mime_type, "text/plain");
    assert!(version.is_none_or(|version| version == found.version));
    Some(String::from_utf8(found.bytes.to_vec()).unwrap())
}

pub(crate) fn versions(store: &dyn ArtifactStore, session: &str, name: &str) -> Vec<u64> {
    block_on(store.versions(&scope(session), name)).unwrap()
}

pub(crate) fn what_is_in_a_file_is_saved_like_any_other(store: &dyn ArtifactStore) {
    use std::io::{Seek, Write};
    let mut file = tempfile::tempfile().unwrap();
    let text = "line\n".repeat(50_000);
    file.write_all(text.as_bytes()).unwrap();
    file.rewind().unwrap();
    let saved = block_on(store.save_file(&scope("s"), "f", "text/plain", file));
    assert_eq!(saved.unwrap(), 0);
    assert_eq!(load(store, "s", "f", None), Some(text));
    assert_eq!(save(store, "s", "f", "next"), 1);
}

pub(crate) fn versions_count_from_zero_and_the_newest_is_given(store: &dyn ArtifactStore) {
    assert_eq!(load(store, "s", "a", None), None);
    assert_eq!(versions(store, "s", "a"), Vec::<u64>::new());
    for (version, text) in ["one", "two", "", "four"].iter().enumerate() {
        assert_eq!(save(store, "s", "a", text), version as u64);
        assert_eq!(load(store, "s", "a", None).as_deref(), Some(*text));
    }
    assert_eq!(load(store, "s", "a", Some(1)).as_deref(), Some("two"));
    assert_eq!(load(store, "s", "a", Some(4)), None);
    assert_eq!(load(store, "s", "a", Some(u64::MAX)), None);
    assert_eq!(versions(store, "s", "a"), [0, 1, 2, 3]);
    // Eleven, so that order by text and by number differ.
    for _ in 0..8 {
        save(store, "s", "a", "more");
    }
    assert_eq!(save(store, "s", "a", "last"), 12);
    assert_eq!(load(store, "s", "a", None).as_deref(), Some("last"));
}

pub(crate) fn sessions_are_kept_apart_and_the_user_s_are_shared(store: &dyn ArtifactStore) {
    save(store, "s", "a", "of s");
    save(store, "t", "a", "of t");
    save(store, "s", "user:a", "of the user");
    save(store, "user", "b", "of a session with an odd name");
    assert_eq!(load(store, "s", "a", None).as_deref(), Some("of s"));
    assert_eq!(load(store, "t", "a", None).as_deref(), Some("of t"));
    assert_eq!(load(store, "u", "a", None), None);
    assert_eq!(load(store, "u", "user:a", None).as_deref(), Some("of the user"));
    assert_eq!(save(store, "t", "user:a", "again"), 1);
    for (app, user) in [("app", "other"), ("other", "user"), ("appuser", "")] {
        let other = ArtifactScope::new(app, user, "s");
        for name in ["a", "user:a"] {
            assert!(block_on(store.load(&other, name, None)).unwrap().is_none());
        }
        assert_eq!(block_on(store.list(&other)).unwrap(), Vec::<String>::new());
    }
    assert_eq!(block_on(store.list(&scope("s"))).unwrap(), ["a", "user:a"]);
    assert_eq!(block_on(store.list(&scope("u"))).unwrap(), ["user:a"]);
    assert_eq!(block_on(store.list(&scope("user"))).unwrap(), ["b", "user:a"]);
}

pub(crate) fn scopes_that_look_alike_are_different(store: &dyn ArtifactStore) {
    let scopes = [
        ("a/b", "c", "s"),
        ("a", "b/c", "s"),
        ("a", "b", "c/s"),
        ("a%2Fb", "c", "s"),
        ("", "a/b/c", "s"),
        ("..", "c", "s"),
        ("a", "..", "s"),
        ("A/b", "c", "s"),
        ("a/b", "C", "S"),
        ("ä", "c", "s"),
        ("a\u{308}", "c", "s"),
    ];
    let scopes = scopes.map(|(app, user, session)| ArtifactScope::new(app, user, session));
    for scope in &scopes {
        for name in ["x", "user:x"] {
            let bytes: Arc<[u8]> = format!("{name} of {scope:?}").into_bytes().into();
            assert_eq!(block_on(store.save(scope, name, "text/plain", bytes)).unwrap(), 0);
        }
    }
    for scope in &scopes {
        assert_eq!(block_on(store.list(scope)).unwrap(), ["user:x", "x"]);
        for name in ["x", "user:x"] {
            let found = block_on(store.load(scope, name, None)).unwrap().unwrap();
            assert_eq!(&found.bytes[..], format!("{name} of {scope:?}").as_bytes());
        }
    }
}

pub(crate) fn deleting_removes_all_versions_of_one_name(store: &dyn ArtifactStore) {
    save(store, "s", "a", "one");
    save(store, "s", "a", "two");
    save(store, "s", "b", "other");
    for round in 0..3 {
        assert!(block_on(store.delete(&scope("s"), "a")).unwrap());
        assert!(!block_on(store.delete(&scope("s"), "a")).unwrap());
        assert_eq!(load(store, "s", "a", None), None);
        assert_eq!(load(store, "s", "a", Some(0)), None);
        assert_eq!(versions(store, "s", "a"), Vec::<u64>::new());
        assert_eq!(block_on(store.list(&scope("s"))).unwrap(), ["b"]);
        assert_eq!(save(store, "s", "a", "anew"), 0);
        assert_eq!(save(store, "s", "a", &format!("anew {round}")), 1);
        assert_eq!(load(store, "s", "a", Some(0)).as_deref(), Some("anew"));
        assert_eq!(load(store, "s", "a", None), Some(format!("anew {round}")));
    }
    assert!(!block_on(store.delete(&scope("s"), "never there")).unwrap());
}

pub(crate) fn hostile_names_are_refused_and_odd_ones_are_only_names(store: &dyn ArtifactStore) {
    let too_long = "x".repeat(513);
    let hostile =
        ["../../x", "/etc/x", "a/../../../x", "", "user:../x", "a\0b", "x@1", "a\nb", &too_long];
    for name in hostile {
        let bytes: Arc<[u8]> = b"x"[..].into();
        let failed = |error: ArtifactError| assert_eq!(error.code(), "invalid_artifact_name");
        failed(block_on(store.save(&scope("s"), name, "a/b", bytes)).unwrap_err());
        failed(block_on(store.load(&scope("s"), name, None)).unwrap_err());
        failed(block_on(store.versions(&scope("s"), name)).unwrap_err());
        failed(block_on(store.delete(&scope("s"), name)).unwrap_err());
    }
    let (long, wide) = ("x".repeat(512), "ä".repeat(256));
    let odd = [
        "...",
        "out/a.txt",
        "a b",
        "*?[",
        "%2e%2e",
        "%2F%00",
        ".old-x",
        ".new-x",
        "0",
        "ended",
        "ended/0",
        "a",
        "A",
        "ä",
        "a\u{308}",
        "日本語",
        "a+b&c=d;e",
        "user:x y",
        &long,
        &wide,
    ];
    for name in odd {
        save(store, "../../s", name, name);
    }
    let mut expected: Vec<_> = odd.iter().map(|name| (*name).to_owned()).collect();
    expected.sort();
    assert_eq!(block_on(store.list(&scope("../../s"))).unwrap(), expected);
    for name in odd {
        assert_eq!(load(store, "../../s", name, None).as_deref(), Some(name));
        assert_eq!(versions(store, "../../s", name), [0], "{name}");
    }
}

/// For a store with `max_artifact_bytes` = 10.
pub(crate) fn what_is_too_large_is_refused_at_the_edge(store: &dyn ArtifactStore) {
    assert_eq!(save(store, "s", "a", "1234567890"), 0);
    let bytes: Arc<[u8]> = b"12345678901"[..].into();
    let error = block_on(store.save(&scope("s"), "a", "a/b", bytes)).unwrap_err();
    assert_eq!(error.code(), "limit_exceeded");
    assert!(error.to_string().contains("max_artifact_bytes"), "{error}");
    assert_eq!(versions(store, "s", "a"), [0]);
}

pub(crate) fn any_bytes_come_back_as_they_were(store: &dyn ArtifactStore) {
    let all: Vec<u8> = (0..=255).cycle().take(3_000_017).collect();
    for bytes in [&b""[..], b"\n", b"{}\n\n{}", b"\0\r\n\xff", &all] {
        let version =
            block_on(store.save(&scope("s"), "b", "application/x-odd; a=\"ä\n\"", bytes.into()));
        let found = block_on(store.load(&scope("s"), "b", Some(version.unwrap()))).unwrap();
        let found = found.unwrap();
        assert!(*found.bytes == *bytes, "{} bytes", bytes.len());
        assert_eq!(found.mime_type, "application/x-odd; a=\"ä\n\"");
    }
}

/// Eight savers at once, through two instances of one store, 25 saves each.
pub(crate) fn savers_at_once_lose_no_version(one: &Store, two: &Store) {
    const SAVERS: usize = 8;
    const SAVES: usize = 25;
    let threads: Vec<_> = (0..SAVERS)
        .map(|saver| {
            let store = Arc::clone(if saver % 2 == 0 { one } else { two });
            std::thread::spawn(move || {
                let text = |at| format!("{saver} {at} {}", "x".repeat(saver * at));
                let save = |at| (save(&*store, "s", "report", &text(at)), text(at));
                (0..SAVES).map(save).collect::<Vec<_>>()
            })
        })
        .collect();
    let mut acknowledged = BTreeMap::new();
    for thread in threads {
        let saved = thread.join().unwrap();
        // What one saver saves later has a greater number.
        assert!(saved.is_sorted_by(|(one, _), (next, _)| one < next));
        for (version, text) in saved {
            assert!(acknowledged.insert(version, text).is_none(), "given twice: {version}");
        }
    }
    assert_eq!(versions(&**one, "s", "report"), (0..(SAVERS * SAVES) as u64).collect::<Vec<_>>());
    for (version, text) in &acknowledged {
        assert_eq!(load(&**two, "s", "report", Some(*version)).as_deref(), Some(text.as_str()));
    }
    assert!(acknowledged.keys().copied().eq(0..(SAVERS * SAVES) as u64));
}

/// Two savers and a deleter at once. Whatever the deleter has not removed is there, in order.
pub(crate) fn saving_and_deleting_at_once_gives_whole_versions_or_none(store: &Store) {
    let saves = |saver: usize| {
        let store = Arc::clone(store);
        std::thread::spawn(move || {
            for at in 0..50 {
                save(&*store, "s", "a", &format!("whole {saver} {at}"));
            }
        })
    };
    let savers = [saves(0), saves(1)];
    for _ in 0..50 {
        block_on(store.delete(&scope("s"), "a")).unwrap();
        if let Some(text) = load(&**store, "s", "a", None) {
            assert!(text.starts_with("whole "), "{text}");
        }
        assert!(block_on(store.list(&scope("s"))).unwrap().len() <= 1);
    }
    for saver in savers {
        saver.join().unwrap();
    }
    let left = versions(&**store, "s", "a");
    assert_eq!(left, (0..left.len() as u64).collect::<Vec<_>>());
    assert_eq!(save(&**store, "s", "a", "last"), left.len() as u64);
    assert_eq!(load(&**store, "s", "a", None).as_deref(), Some("last"));
    assert!(block_on(store.delete(&scope("s"), "a")).unwrap());
    assert_eq!(versions(&**store, "s", "a"), Vec::<u64>::new());
}

/// What was acknowledged behind the last delete is there.
pub(crate) fn a_save_behind_a_delete_is_kept(store: &Store) {
    for round in 0..20 {
        let other = Arc::clone(store);
        let deleter = std::thread::spawn(move || {
            block_on(other.delete(&scope("s"), "kept")).unwrap();
        });
        let before = save(&**store, "s", "kept", &format!("during {round}"));
        deleter.join().unwrap();
        let after = save(&**store, "s", "kept", &format!("after {round}"));
        assert_eq!(load(&**store, "s", "kept", Some(after)), Some(format!("after {round}")));
        // The one during the delete is in front of it or behind it, and then in its place.
        if versions(&**store, "s", "kept").len() as u64 == before + 2 {
            let text = load(&**store, "s", "kept", Some(before));
            assert_eq!(text, Some(format!("during {round}")));
        }
    }
}
