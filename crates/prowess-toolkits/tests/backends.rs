//! Backends: what each of them promises, by tables and by random operations.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use proptest::prelude::*;
use prowess_toolkits::{
    Backend, CompositeBackend, Expected, FileError, GlobQuery, GrepMode, GrepQuery, LocalBackend,
    MemoryBackend, PathGlob, SearchCut, SearchLimits, WorkspacePath, Wrote,
};
use tempfile::TempDir;

fn path(text: &str) -> WorkspacePath {
    WorkspacePath::parse(text).unwrap()
}

async fn put(backend: &dyn Backend, file: &str, text: &str) {
    backend.write(&path(file), text.as_bytes(), Expected::Anything).await.unwrap();
}

async fn text(backend: &dyn Backend, file: &str) -> Result<String, &'static str> {
    let read = backend.read(&path(file), 1 << 20).await;
    read.map(|file| String::from_utf8(file.bytes).unwrap()).map_err(|error| error.code())
}

async fn names(backend: &dyn Backend, folder: &str) -> Vec<String> {
    let listed = backend.list(&path(folder), 100).await.unwrap();
    listed.entries.into_iter().map(|entry| entry.name).collect()
}

fn glob_in(folder: &str, glob: &str) -> GlobQuery {
    let glob = PathGlob::parse(glob).unwrap();
    GlobQuery { folder: path(folder), glob, limits: SearchLimits::default() }
}

fn grep_in(folder: &str, text: &str, mode: GrepMode) -> GrepQuery {
    let (folder, text) = (path(folder), text.to_owned());
    GrepQuery { folder, text, glob: None, mode, limits: SearchLimits::default() }
}

/// An operation, and what comes of it in words.
#[derive(Clone, Debug)]
enum Act {
    Write(String, Vec<u8>, Kind),
    Read(String, u64),
    List(String, u64),
    Glob(String, &'static str),
    Grep(String, &'static str),
}

#[derive(Clone, Debug)]
enum Kind {
    Anything,
    Nothing,
    Content(Vec<u8>),
}

fn paths() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec!["a", "b", "c.md", "ü"]);
    prop::collection::vec(name, 0..4).prop_map(|names| names.join("/"))
}

fn contents() -> impl Strategy<Value = Vec<u8>> {
    prop::sample::select(vec![b"".to_vec(), b"x\n".to_vec(), b"x\ny\n".to_vec(), vec![0, 255]])
}

fn acts() -> impl Strategy<Value = Act> {
    let kind =
        prop_oneof![Just(Kind::Anything), Just(Kind::Nothing), contents().prop_map(Kind::Content),];
    let globs = prop::sample::select(vec!["*", "**", "**/*.md", "a/*", "{a,b}/**"]);
    prop_oneof![
        4 => (paths(), contents(), kind).prop_map(|(path, bytes, kind)| Act::Write(path, bytes, kind)),
        2 => (paths(), 0..5u64).prop_map(|(path, limit)| Act::Read(path, limit)),
        2 => (paths(), 0..4u64).prop_map(|(path, most)| Act::List(path, most)),
        1 => (paths(), globs).prop_map(|(path, glob)| Act::Glob(path, glob)),
        1 => (paths(), prop::sample::select(vec!["x", "y", "z"]))
            .prop_map(|(path, text)| Act::Grep(path, text)),
    ]
}

async fn act(backend: &dyn Backend, act: &Act) -> String {
    fn told<T: std::fmt::Debug>(done: Result<T, FileError>) -> String {
        done.map_or_else(|error| format!("{}: {error}", error.code()), |done| format!("{done:?}"))
    }
    match act {
        Act::Write(at, bytes, kind) => {
            let expected = match kind {
                Kind::Anything => Expected::Anything,
                Kind::Nothing => Expected::Nothing,
                Kind::Content(bytes) => Expected::Content(bytes),
            };
            told(backend.write(&path(at), bytes, expected).await)
        }
        Act::Read(at, limit) => told(backend.read(&path(at), *limit).await),
        Act::List(at, most) => told(backend.list(&path(at), *most).await),
        Act::Glob(at, glob) => told(backend.glob(&glob_in(at, glob)).await),
        Act::Grep(at, text) => told(backend.grep(&grep_in(at, text, GrepMode::Lines)).await),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Whatever is done, memory, a folder and a composite give the same answers.
    #[test]
    fn all_backends_behave_alike(acts in prop::collection::vec(acts(), 1..24)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let folder = TempDir::new().unwrap();
            let memory = MemoryBackend::new();
            let local = LocalBackend::new(folder.path()).unwrap();
            let composite = CompositeBackend::new(MemoryBackend::new());
            for it in acts {
                let expected = act(&memory, &it).await;
                assert_eq!(act(&local, &it).await, expected, "a folder: {it:?}");
                assert_eq!(act(&composite, &it).await, expected, "a composite: {it:?}");
            }
        });
    }
}

#[tokio::test]
async fn a_file_that_is_replaced_keeps_its_permissions() {
    let folder = TempDir::new().unwrap();
    let script = folder.path().join("run.sh");
    fs::write(&script, "old").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o750)).unwrap();
    let backend = LocalBackend::new(folder.path()).unwrap();
    let wrote = backend.write(&path("run.sh"), b"new", Expected::Content(b"old")).await;
    assert_eq!(wrote.unwrap(), Wrote::Replaced);
    assert_eq!(fs::metadata(&script).unwrap().permissions().mode() & 0o777, 0o750);
    assert!(backend.list(&path(""), 9).await.unwrap().entries[0].executable);
}

#[tokio::test]
async fn memory_has_an_end() {
    let backend = MemoryBackend::new().with_max_total_bytes(4);
    put(&backend, "a", "1234").await;
    let more = backend.write(&path("b"), b"5", Expected::Anything).await;
    assert_eq!(more.unwrap_err().code(), "too_large");
    put(&backend, "a", "123").await;
    put(&backend, "b", "5").await;
}

async fn composite() -> CompositeBackend {
    let rest = MemoryBackend::new().with_file("notes/a.md", "rest").unwrap();
    let rest = rest.with_file("skills/hidden", "rest").unwrap();
    let skills = MemoryBackend::new().with_file("x/SKILL.md", "skills").unwrap();
    let deep = MemoryBackend::new().with_file("b.md", "deep").unwrap();
    let backend = CompositeBackend::new(rest).mount("/skills/", skills).unwrap();
    backend.mount("/skills/x/deep", deep).unwrap()
}

#[tokio::test]
async fn the_longest_prefix_decides() {
    let backend = composite().await;
    let table = [
        ("notes/a.md", Ok("rest")),
        ("skills/x/SKILL.md", Ok("skills")),
        ("skills/x/deep/b.md", Ok("deep")),
        ("skills/hidden", Err("file_not_found")),
        ("skillsx", Err("file_not_found")),
        ("skills", Err("is_directory")),
        ("skills/x", Err("is_directory")),
        ("skills/x/deep", Err("is_directory")),
    ];
    for (file, expected) in table {
        let found = text(&backend, file).await;
        assert_eq!(found.as_deref().map_err(|code| *code), expected, "{file}");
    }
    assert_eq!(names(&backend, "").await, ["notes", "skills"]);
    assert_eq!(names(&backend, "skills").await, ["x"]);
    assert_eq!(names(&backend, "skills/x").await, ["SKILL.md", "deep"]);
    put(&backend, "skills/y/SKILL.md", "new").await;
    assert_eq!(names(&backend, "skills").await, ["x", "y"]);
    let wrote = backend.write(&path("skills/x/deep"), b"", Expected::Anything).await;
    assert_eq!(wrote.unwrap_err().code(), "is_directory");
    // Errors say where, as it is seen from outside.
    let missing = backend.read(&path("skills/z"), 9).await.unwrap_err();
    assert_eq!(missing.to_string(), "There is no file or folder 'skills/z'");
    for prefix in ["/", "", "../x"] {
        let wrong = CompositeBackend::new(MemoryBackend::new()).mount(prefix, MemoryBackend::new());
        assert_eq!(wrong.unwrap_err().code(), "invalid_path", "{prefix}");
    }
}

/// A folder above a prefix need not be in the backend that has the rest.
#[tokio::test]
async fn folders_on_the_way_to_a_prefix_are_there() {
    let mounted = MemoryBackend::new().with_file("f", "x").unwrap();
    let backend = CompositeBackend::new(MemoryBackend::new()).mount("/a/b/c", mounted).unwrap();
    assert_eq!(names(&backend, "").await, ["a"]);
    assert_eq!(names(&backend, "a").await, ["b"]);
    assert_eq!(text(&backend, "a/b").await, Err("is_directory"));
    let wrote = backend.write(&path("a"), b"", Expected::Anything).await;
    assert_eq!(wrote.unwrap_err().code(), "is_directory");
    assert_eq!(names(&backend, "a/b/c").await, ["f"]);
}

#[tokio::test]
async fn a_search_goes_through_everything_that_is_mounted() {
    let backend = composite().await;
    let found = backend.glob(&glob_in("", "**/*.md")).await.unwrap();
    let all = ["notes/a.md", "skills/x/SKILL.md", "skills/x/deep/b.md"];
    assert_eq!(found.files, all.map(path));
    let found = backend.glob(&glob_in("skills/x/deep", "*")).await.unwrap();
    assert_eq!(found.files, [path("skills/x/deep/b.md")]);
    for (folder, text, expected) in [
        ("", "e", vec![all[0], all[2]]),
        ("skills", "skills", vec![all[1]]),
        ("notes", "deep", vec![]),
    ] {
        let found = backend.grep(&grep_in(folder, text, GrepMode::Files)).await.unwrap();
        let files: Vec<&str> = found.files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(files, expected, "{folder} {text}");
    }
    let one = backend.grep(&grep_in("notes/a.md", "rest", GrepMode::Count)).await.unwrap();
    assert_eq!(one.files[0].count, 1);
}

#[tokio::test]
async fn a_search_says_at_which_limit_it_ended() {
    let mut backend = MemoryBackend::new();
    for number in 0..4 {
        backend = backend.with_file(&format!("{number}"), "x\nx\n").unwrap();
    }
    backend = backend.with_file("binary", [0, b'x']).unwrap();
    let with = |change: &dyn Fn(&mut SearchLimits)| {
        let mut limits = SearchLimits::default();
        change(&mut limits);
        limits
    };
    // Limits, mode, files that are found, at which limit.
    let table = [
        (with(&|it| it.matches = 4), GrepMode::Files, 4, None),
        (with(&|it| it.matches = 3), GrepMode::Files, 3, Some(SearchCut::Matches(3))),
        (with(&|it| it.matches = 8), GrepMode::Lines, 4, None),
        (with(&|it| it.matches = 7), GrepMode::Lines, 4, Some(SearchCut::Matches(7))),
        (with(&|it| it.matches = 4), GrepMode::Count, 4, None),
        (with(&|it| it.matches = 0), GrepMode::Count, 0, Some(SearchCut::Matches(0))),
        (with(&|it| it.walked = 5), GrepMode::Files, 4, None),
        (with(&|it| it.walked = 2), GrepMode::Files, 2, Some(SearchCut::Walked(2))),
        (with(&|it| it.searched_bytes = 18), GrepMode::Files, 4, None),
        (with(&|it| it.searched_bytes = 4), GrepMode::Files, 1, Some(SearchCut::SearchedBytes(4))),
    ];
    for (limits, mode, files, cut) in table {
        let query = GrepQuery { limits: limits.clone(), ..grep_in("", "x", mode) };
        let found = backend.grep(&query).await.unwrap();
        assert_eq!((found.files.len(), found.cut), (files, cut), "{limits:?} {mode:?}");
    }
    let limits = with(&|it| it.file_bytes = 1);
    let found =
        backend.grep(&GrepQuery { limits, ..grep_in("", "x", GrepMode::Count) }).await.unwrap();
    assert_eq!((found.skipped.too_large, found.skipped.not_text), (5, 1));
    let counts: BTreeMap<_, _> =
        found.files.iter().map(|it| (it.path.as_str(), it.count)).collect();
    assert_eq!(counts.values().sum::<u64>(), 4);
    for (matches, walked, files, cut) in [
        (5, 99, 5, None),
        (4, 99, 4, Some(SearchCut::Matches(4))),
        (5, 5, 5, None),
        (5, 4, 4, Some(SearchCut::Walked(4))),
    ] {
        let limits = with(&|it| (it.matches, it.walked) = (matches, walked));
        let found = backend.glob(&GlobQuery { limits, ..glob_in("", "*") }).await.unwrap();
        assert_eq!((found.files.len(), found.cut), (files, cut), "{matches} {walked}");
    }
}

#[test]
fn a_folder_must_be_there() {
    assert!(LocalBackend::new(Path::new("/nowhere")).is_err());
    assert!(LocalBackend::new(Path::new("/etc/passwd")).is_err());
}
