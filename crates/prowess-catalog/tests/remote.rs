//! Skills from archives and URLs, and the cache (S08, 1 and 2).

#[path = "support/packed.rs"]
mod packed;
#[path = "support/server.rs"]
mod server;
mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use packed::{tar_of, tgz_of, zip_of, zip_of_skills};
use prowess_catalog::{
    Catalog, Location, Reach, RemoteCache, RemoteLimits, RemoteSource, ResourcePath, Snapshot,
    Source, Stage, Trust,
};
use prowess_format::Digest;
use server::{Answer, Manner, Request, Server};
use support::{Tree, codes, names};

fn source(tree: &Tree, location: &str) -> RemoteSource {
    let location = Location::parse(location).unwrap();
    RemoteSource::new(location, RemoteCache::new(tree.at("cache")))
        .with_reach(Reach::Any)
        .with_limits(always())
}

/// Asks each time.
fn always() -> RemoteLimits {
    RemoteLimits::default().with_fresh_seconds(0).with_retry_seconds(0)
}

async fn listed(source: RemoteSource) -> Snapshot {
    Catalog::builder().source(source).build().refresh().await
}

async fn body(snapshot: &Snapshot, name: &str) -> String {
    let text = String::from_utf8(snapshot.get(name).unwrap().read().await.unwrap()).unwrap();
    text.rsplit("---\n").next().unwrap().trim().to_owned()
}

fn message(snapshot: &Snapshot, code: &str) -> String {
    let found = snapshot.diagnostics().iter().find(|found| found.code.as_str() == code);
    found.unwrap_or_else(|| panic!("{:?}", snapshot.diagnostics())).message.clone()
}

fn count(folder: &Path) -> usize {
    fs::read_dir(folder).map_or(0, Iterator::count)
}

#[tokio::test]
async fn every_kind_of_archive_is_a_source_by_its_name_or_its_first_bytes() {
    let tree = Tree::new();
    let text = support::text("one");
    let files = [("one/SKILL.md", text.as_str()), ("one/docs/a.md", "A")];
    let kinds = [("zip", zip_of(&files)), ("tar", tar_of(&files)), ("tgz", tgz_of(&files))];
    for (suffix, bytes) in kinds {
        let server = Server::of(Answer::ok(bytes.clone()));
        let path = tree.write(&format!("local.{suffix}"), &bytes);
        let no_suffix = tree.write(&format!("{suffix}-without-suffix"), &bytes);
        let (path, no_suffix) = (path.display().to_string(), no_suffix.display().to_string());
        for location in [
            server.url(&format!("skills.{suffix}")),
            server.url(&format!("SKILLS.{}", suffix.to_uppercase())),
            server.url("download?id=7"),
            path.clone(),
            format!("file://{path}"),
            format!("file://localhost{path}"),
            no_suffix,
        ] {
            let snapshot = listed(source(&tree, &location)).await;
            assert_eq!(names(&snapshot), ["one"], "{location} {:?}", snapshot.diagnostics());
            let skill = snapshot.get("one").unwrap();
            assert_eq!(skill.trust(), Trust::Untrusted);
            let doc = ResourcePath::parse("docs/a.md").unwrap();
            assert_eq!(skill.read_resource(&doc).await.unwrap(), b"A");
            assert!(skill.tree_digest().await.is_ok());
        }
    }
    let server = Server::of(Answer::ok(text.clone()));
    for name in ["one/SKILL.md", "skill.MD"] {
        let snapshot = listed(source(&tree, &server.url(name))).await;
        assert_eq!(names(&snapshot), ["one"], "{:?}", snapshot.diagnostics());
        assert_eq!(codes(&snapshot), ["source-not-encrypted"]);
        let path = snapshot.get("one").unwrap().path();
        assert_eq!(path.display().to_string(), format!("{}/SKILL.md", server.url(name)));
    }
    let server = Server::of(Answer::ok("<html>"));
    let snapshot = listed(source(&tree, &server.url("page.html"))).await;
    assert!(message(&snapshot, "source-unavailable").contains("[unknown_kind]"));
}

#[tokio::test]
async fn what_has_not_changed_is_not_fetched_again() {
    let tree = Tree::new();
    let sent = Arc::new(AtomicUsize::new(0));
    let answer = |sent: &Arc<AtomicUsize>, tag: &'static str, by_etag: bool, bytes: Vec<u8>| {
        let sent = Arc::clone(sent);
        move |request: &Request| {
            let (header, name) = match by_etag {
                true => ("if-none-match", "ETag"),
                false => ("if-modified-since", "Last-Modified"),
            };
            if request.headers.get(header).map(String::as_str) == Some(tag) {
                return Answer::status(304);
            }
            sent.fetch_add(1, Ordering::SeqCst);
            Answer::ok(bytes.clone()).with(name, tag)
        }
    };
    for (name, by_etag, [first, second]) in [
        ("etag.zip", true, ["\"1\"", "\"2\""]),
        ("time.zip", false, ["Mon, 01 Jan 2024 00:00:00 GMT", "Tue, 02 Jan 2024 00:00:00 GMT"]),
    ] {
        sent.store(0, Ordering::SeqCst);
        let server = Server::start(answer(&sent, first, by_etag, zip_of_skills(&["a"], "old")));
        let url = server.url(name);
        for _ in 0..3 {
            assert_eq!(body(&listed(source(&tree, &url)).await, "a").await, "old");
        }
        assert_eq!((sent.load(Ordering::SeqCst), server.requests()), (1, 3), "asked, not sent");
        server.answer(answer(&sent, second, by_etag, zip_of_skills(&["a"], "new")));
        assert_eq!(body(&listed(source(&tree, &url)).await, "a").await, "new");
        assert_eq!(sent.load(Ordering::SeqCst), 2);
        // While it is fresh nobody is asked at all.
        let fresh = source(&tree, &url).with_limits(always().with_fresh_seconds(3600));
        assert_eq!(body(&listed(fresh).await, "a").await, "new");
        assert_eq!(server.requests(), 4);
        // What nobody uses any more is gone.
        assert_eq!(count(&tree.at("cache/trees")), 1);
        RemoteCache::new(tree.at("cache")).forget(&Location::parse(&url).unwrap()).unwrap();
        assert_eq!((count(&tree.at("cache/trees")), count(&tree.at("cache/sources"))), (0, 0));
    }
}

#[tokio::test]
async fn the_same_listing_is_the_same_arc_and_a_new_version_is_another_generation() {
    let tree = Tree::new();
    let server = Server::of(Answer::ok(zip_of_skills(&["a"], "old")));
    let catalog = Catalog::builder().source(source(&tree, &server.url("s.zip"))).build();
    let first = catalog.refresh().await;
    assert_eq!(catalog.refresh().await.generation(), first.generation());
    let bytes = zip_of_skills(&["a", "b"], "new");
    server.answer(move |_| Answer::ok(bytes.clone()));
    let second = catalog.refresh().await;
    assert_ne!(second.generation(), first.generation());
    assert_eq!(names(&second), ["a", "b"]);
    // What was found before is not what is there now, and nobody is given it by mistake.
    let error = first.get("a").unwrap().read().await.unwrap_err();
    assert_eq!(error.code(), "content_changed");
}

#[tokio::test]
async fn what_was_fetched_before_is_used_when_the_source_cannot_be() {
    let tree = Tree::new();
    let server = Server::of(Answer::ok(zip_of_skills(&["a"], "old")));
    let url = server.url("s.zip");
    assert_eq!(names(&listed(source(&tree, &url)).await), ["a"]);
    for (answer, code) in [
        (Answer::status(500), "http_status"),
        (Answer::status(404), "http_status"),
        (Answer::ok("PK nonsense"), "damaged_archive"),
        (Answer::ok(zip_of(&[("../x", "x")])), "invalid_path"),
        (Answer::ok(zip_of_skills(&["a"], "n")).in_manner(Manner::BreakOff), "unreachable"),
    ] {
        server.answer(move |_| answer.clone());
        let snapshot = listed(source(&tree, &url)).await;
        assert_eq!(body(&snapshot, "a").await, "old", "{code}");
        assert!(
            message(&snapshot, "source-offline").contains(code),
            "{:?}",
            snapshot.diagnostics()
        );
        assert_eq!(count(&tree.at("cache/trees")), 1, "nothing of it stays");
    }
    drop(server);
    let snapshot = listed(source(&tree, &url)).await;
    assert!(message(&snapshot, "source-offline").contains("unreachable"));
    assert_eq!(body(&snapshot, "a").await, "old");
    // Where nothing was fetched before there is nothing, and the reason.
    let other = url.replace("s.zip", "other.zip");
    let snapshot = listed(source(&tree, &other)).await;
    assert_eq!(codes(&snapshot), ["source-unavailable"]);
    assert!(names(&snapshot).is_empty());
}

#[tokio::test]
async fn a_source_that_failed_is_not_asked_again_at_once() {
    let tree = Tree::new();
    let server = Server::of(Answer::ok(zip_of_skills(&["a"], "old")));
    let url = server.url("s.zip");
    listed(source(&tree, &url)).await;
    server.answer(|_| Answer::status(500));
    for _ in 0..3 {
        let patient = source(&tree, &url).with_limits(always().with_retry_seconds(3600));
        assert!(message(&listed(patient).await, "source-offline").contains("500"));
    }
    assert_eq!(server.requests(), 2);
}

#[tokio::test]
async fn a_pin_is_verified_before_anything_is_used() {
    let tree = Tree::new();
    let (old, new) = (zip_of_skills(&["a"], "old"), zip_of_skills(&["a"], "new"));
    let server = Server::of(Answer::ok(old.clone()));
    let url = server.url("s.zip");
    let pinned = |bytes: &[u8]| format!("{url}#sha256={}", Digest::of(bytes).hex());
    // The control takes whatever comes.
    let wrong = listed(source(&tree, &url)).await;
    assert_eq!(body(&wrong, "a").await, "old");
    let snapshot = listed(source(&tree, &pinned(&new))).await;
    let text = message(&snapshot, "source-unavailable");
    assert!(text.contains("[digest_mismatch]"), "{text}");
    assert!(names(&snapshot).is_empty(), "what was fetched without a pin is not taken for it");
    // The right one is trusted, needs no encryption, and is never asked for again.
    let snapshot = listed(source(&tree, &pinned(&old))).await;
    assert_eq!(snapshot.get("a").unwrap().trust(), Trust::Trusted);
    assert_eq!(codes(&snapshot), Vec::<&str>::new());
    let asked = server.requests();
    server.answer(move |_| Answer::ok(new.clone()));
    let snapshot = listed(source(&tree, &pinned(&old))).await;
    assert_eq!((body(&snapshot, "a").await, server.requests()), ("old".to_owned(), asked));
    // A file on this machine too.
    let path = tree.write("local.zip", &old).display().to_string();
    let location = format!("{path}#sha256={}", Digest::of(&old).hex());
    assert_eq!(listed(source(&tree, &location)).await.get("a").unwrap().trust(), Trust::Trusted);
    tree.write("local.zip", zip_of_skills(&["a"], "other"));
    fs::remove_dir_all(tree.at("cache")).unwrap();
    let snapshot = listed(source(&tree, &location)).await;
    assert!(message(&snapshot, "source-unavailable").contains("[digest_mismatch]"));
}

#[tokio::test]
async fn an_untrusted_source_hides_nothing_that_is_trusted() {
    let tree = Tree::new();
    tree.skill("mine/a");
    let bytes = zip_of_skills(&["a"], "hostile");
    let server = Server::of(Answer::ok(bytes.clone()));
    let url = server.url("s.zip");
    let merged = |remote: RemoteSource| async {
        let mine = prowess_catalog::DirectorySource::new(tree.at("mine"));
        let snapshot = Catalog::builder().source(mine).source(remote).build().refresh().await;
        body(&snapshot, "a").await
    };
    assert_eq!(merged(source(&tree, &url).with_trust(Trust::Trusted)).await, "hostile", "control");
    assert_eq!(merged(source(&tree, &url)).await, "Body of a");
    let pinned = format!("{url}#sha256={}", Digest::of(&bytes).hex());
    assert_eq!(merged(source(&tree, &pinned)).await, "hostile", "pinned is trusted");
}

#[tokio::test]
async fn a_file_is_read_again_only_if_it_has_changed() {
    let tree = Tree::new();
    let path = tree.write("s.zip", zip_of_skills(&["a"], "old")).display().to_string();
    std::thread::sleep(Duration::from_millis(60));
    assert_eq!(body(&listed(source(&tree, &path)).await, "a").await, "old");
    let record = fs::read_dir(tree.at("cache/sources")).unwrap().map(|entry| entry.unwrap().path());
    let record: Vec<_> =
        record.filter(|path| path.extension().is_some_and(|end| end == "json")).collect();
    let written = fs::metadata(&record[0]).unwrap().modified().unwrap();
    assert_eq!(body(&listed(source(&tree, &path)).await, "a").await, "old");
    assert_eq!(fs::metadata(&record[0]).unwrap().modified().unwrap(), written, "not read again");
    tree.write("s.zip", zip_of_skills(&["a"], "new"));
    assert_eq!(body(&listed(source(&tree, &path)).await, "a").await, "new");
    // Gone, or something that is none: what was there is used, and that is said.
    fs::remove_file(&path).unwrap();
    let snapshot = listed(source(&tree, &path)).await;
    assert_eq!(
        (body(&snapshot, "a").await, codes(&snapshot)),
        ("new".to_owned(), vec!["source-offline"])
    );
    std::process::Command::new("mkfifo").arg(&path).status().unwrap();
    assert_eq!(codes(&listed(source(&tree, &path)).await), ["source-offline"]);
}

#[tokio::test]
async fn what_was_changed_in_the_cache_is_not_used_and_a_refresh_mends_it() {
    let tree = Tree::new();
    let text = support::text("a");
    let bytes = zip_of(&[
        ("a/SKILL.md", text.as_str()),
        ("a/run.sh", "echo honest"),
        ("b/SKILL.md", &support::text("b")),
    ]);
    let server =
        Server::start(move |request| match request.headers.contains_key("if-none-match") {
            true => Answer::status(304),
            false => Answer::ok(bytes.clone()).with("ETag", "\"1\""),
        });
    let url = server.url("s.zip");
    let fresh = || source(&tree, &url).with_limits(RemoteLimits::default());
    let snapshot = listed(fresh()).await;
    assert_eq!(names(&snapshot), ["a", "b"]);
    let folder = fs::read_dir(tree.at("cache/trees")).unwrap().next().unwrap().unwrap().path();
    let planted = |path: &str, text: &str| {
        let path = folder.join("files").join(path);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        fs::write(&path, text).unwrap();
    };
    // The control, a folder, runs what is there.
    planted("a/run.sh", "echo hostile");
    let run = ResourcePath::parse("run.sh").unwrap();
    let naive = prowess_catalog::DirectorySource::new(folder.join("files"));
    let naive = Catalog::builder().source(naive).build().refresh().await;
    assert_eq!(naive.get("a").unwrap().read_resource(&run).await.unwrap(), b"echo hostile");
    let snapshot = listed(fresh()).await;
    let error = snapshot.get("a").unwrap().read_resource(&run).await.unwrap_err();
    assert_eq!(error.code(), "content_changed");
    assert!(snapshot.get("a").unwrap().tree_digest().await.is_err());
    // A text that was changed, a text that is gone, a skill that was planted.
    planted("a/SKILL.md", &text.replace("A test skill", "Another"));
    fs::remove_file(folder.join("files/b/SKILL.md")).unwrap();
    fs::create_dir(folder.join("files/c")).unwrap();
    fs::write(folder.join("files/c/SKILL.md"), support::text("c")).unwrap();
    let snapshot = listed(fresh()).await;
    assert!(names(&snapshot).is_empty());
    let unreadable = codes(&snapshot).into_iter().filter(|code| *code == "unreadable-file").count();
    assert_eq!(unreadable, 3, "{:?}", snapshot.diagnostics());
    // Asked whether it has changed, the server says no; what is damaged is fetched all the same.
    fresh().refresh().await.unwrap();
    let snapshot = listed(fresh()).await;
    assert_eq!(names(&snapshot), ["a", "b"]);
    assert_eq!(snapshot.get("a").unwrap().read_resource(&run).await.unwrap(), b"echo honest");
    // A cut manifest, a cut record: fetched again.
    for (glob, _) in [("trees", ()), ("sources", ())] {
        let entries = fs::read_dir(tree.at("cache").join(glob)).unwrap();
        for entry in entries.map(|entry| entry.unwrap().path()) {
            let file = if glob == "trees" { entry.join("manifest") } else { entry };
            if file.extension().is_none_or(|end| end != "lock") {
                fs::write(&file, "cut").unwrap();
            }
        }
        assert_eq!(names(&listed(fresh()).await), ["a", "b"], "{glob}");
    }
}

#[tokio::test]
async fn limits_hold_for_what_was_fetched_under_others() {
    let tree = Tree::new();
    let server = Server::of(Answer::ok(zip_of_skills(&["a", "b"], "text")));
    let url = server.url("s.zip");
    let under = |limits| source(&tree, &url).with_limits(limits);
    assert_eq!(names(&listed(under(RemoteLimits::default())).await), ["a", "b"]);
    let snapshot = listed(under(RemoteLimits::default().with_entries(3))).await;
    assert!(message(&snapshot, "source-unavailable").contains("`entries` = 3"));
}

#[tokio::test]
async fn downloads_are_cut_off_at_their_limit() {
    let tree = Tree::new();
    let bytes = zip_of_skills(&["a"], "text");
    let length = bytes.len() as u64;
    let server = Server::of(Answer::ok(bytes));
    let url = server.url("s.zip");
    let at = |most| source(&tree, &url).with_limits(always().with_download_bytes(most));
    assert!(
        message(&listed(at(length - 1)).await, "source-unavailable").contains("download_bytes")
    );
    assert_eq!(names(&listed(at(length)).await), ["a"]);
}

#[tokio::test]
async fn two_sources_share_what_they_have_in_common_and_a_tree_in_use_stays() {
    let tree = Tree::new();
    let server = Server::of(Answer::ok(zip_of_skills(&["a"], "text")));
    let (one, two) = (server.url("one.zip"), server.url("two.zip"));
    let first = listed(source(&tree, &one)).await;
    listed(source(&tree, &two)).await;
    assert_eq!(count(&tree.at("cache/trees")), 1);
    let cache = RemoteCache::new(tree.at("cache"));
    cache.forget(&Location::parse(&one).unwrap()).unwrap();
    assert_eq!(count(&tree.at("cache/trees")), 1, "another source has it");
    cache.forget(&Location::parse(&two).unwrap()).unwrap();
    assert_eq!(count(&tree.at("cache/trees")), 1, "the first is still used");
    assert_eq!(body(&first, "a").await, "text");
    drop(first);
    cache.collect_garbage(Duration::MAX).unwrap();
    assert_eq!(count(&tree.at("cache/trees")), 0);
    // What nobody has used for long goes too.
    listed(source(&tree, &one)).await;
    cache.collect_garbage(Duration::from_secs(3600)).unwrap();
    assert_eq!(count(&tree.at("cache/trees")), 1);
    std::thread::sleep(Duration::from_millis(20));
    cache.collect_garbage(Duration::from_millis(1)).unwrap();
    assert_eq!(count(&tree.at("cache/trees")), 0);
}

#[tokio::test]
async fn a_cache_that_others_can_write_to_is_not_used() {
    let tree = Tree::new();
    let server = Server::of(Answer::ok(zip_of_skills(&["a"], "text")));
    fs::create_dir(tree.at("cache")).unwrap();
    fs::set_permissions(tree.at("cache"), fs::Permissions::from_mode(0o777)).unwrap();
    let snapshot = listed(source(&tree, &server.url("s.zip"))).await;
    assert!(message(&snapshot, "source-unavailable").contains("[cache_of_others]"));
    assert_eq!(server.requests(), 0);
}

#[tokio::test]
async fn progress_is_told() {
    let tree = Tree::new();
    // What does not shrink.
    let mut state = 1_u32;
    let noise: String = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from(b' ' + (state >> 24) as u8 % 90)
    })
    .take(2 << 20)
    .collect();
    let text = support::text("a");
    let bytes = zip_of(&[("a/SKILL.md", text.as_str()), ("a/noise", &noise)]);
    let length = bytes.len() as u64;
    let server = Server::of(Answer::ok(bytes));
    let told = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&told);
    let remote = source(&tree, &server.url("s.zip"))
        .with_progress(Arc::new(move |progress| sink.lock().unwrap().push(*progress)));
    listed(remote).await;
    let told = told.lock().unwrap();
    let of = |stage: Stage| told.iter().filter(move |progress| progress.stage == stage);
    assert!(of(Stage::Download).count() > 2 && of(Stage::Unpack).count() > 2, "{told:?}");
    assert!(of(Stage::Download).all(|progress| progress.total == Some(length)));
    assert_eq!(of(Stage::Download).next_back().unwrap().done, length);
}

#[tokio::test]
async fn a_source_works_in_every_runtime() {
    let tree = Tree::new();
    let server = Server::of(Answer::ok(zip_of_skills(&["a"], "text")));
    let url = server.url("s.zip");
    let work = |tree: Tree| async move {
        let blocking = prowess_catalog::Blocking::Here;
        let found = listed(source(&tree, &url).with_blocking(blocking)).await;
        assert_eq!(names(&found), ["a"]);
        tree
    };
    // Without timers, without sockets, in a thread that must not wait.
    let handle = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(work(tree));
    });
    handle.join().unwrap();
}

#[tokio::test]
async fn https_is_spoken_and_not_taken_for_granted() {
    let tree = Tree::new();
    // A server that cannot speak it: refused, without a panic for want of a provider.
    let server = Server::of(Answer::ok(zip_of_skills(&["a"], "text")));
    let url = server.url("s.zip").replace("http://", "https://");
    let remote = source(&tree, &url);
    assert_eq!(remote.info().trust, Trust::Untrusted);
    let text = message(&listed(remote).await, "source-unavailable");
    assert!(text.contains("[unreachable]"), "{text}");
}
