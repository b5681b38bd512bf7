//! Attacks on backends: each succeeds against a control first.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use prowess_toolkits::{
    Backend, EntryKind, Expected, GlobQuery, GrepMode, GrepQuery, LocalBackend, MemoryBackend,
    PathGlob, SearchLimits, WorkspacePath,
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

/// A folder with a secret beside it, and links to the secret inside.
struct Attacked {
    folder: TempDir,
    backend: LocalBackend,
}

fn attacked() -> Attacked {
    let folder = TempDir::new().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir_all(at("root/inner")).unwrap();
    fs::create_dir(at("outside")).unwrap();
    fs::write(at("outside/secret"), "secret").unwrap();
    fs::write(at("root/inner/file"), "inside").unwrap();
    symlink("../outside/secret", at("root/to-file")).unwrap();
    symlink("../outside", at("root/to-folder")).unwrap();
    symlink(at("outside/secret"), at("root/absolute")).unwrap();
    symlink("inner", at("root/stays")).unwrap();
    symlink("nowhere", at("root/dangling")).unwrap();
    fs::hard_link(at("outside/secret"), at("root/second-name")).unwrap();
    let pipe = std::process::Command::new("mkfifo").arg(at("root/pipe")).status().unwrap();
    assert!(pipe.success());
    let backend = LocalBackend::new(at("root")).unwrap();
    Attacked { folder, backend }
}

/// Every way out succeeds for whoever joins paths, and fails for us.
#[tokio::test]
async fn nothing_outside_of_a_folder_is_read() {
    let attacked = attacked();
    let root = attacked.folder.path().join("root");
    let table = [
        ("to-file", "is_link"),
        ("to-folder/secret", "is_link"),
        ("absolute", "is_link"),
        ("second-name", "not_a_file"),
    ];
    for (attack, code) in table {
        // The control.
        assert_eq!(fs::read_to_string(root.join(attack)).unwrap(), "secret", "{attack}");
        assert_eq!(text(&attacked.backend, attack).await, Err(code), "{attack}");
    }
    // These are no paths at all, for whichever backend.
    assert_eq!(fs::read_to_string(root.join("../outside/secret")).unwrap(), "secret");
    for attack in ["../outside/secret", "inner/../../outside/secret", "/etc/passwd"] {
        assert!(WorkspacePath::parse(attack).is_err(), "{attack}");
    }
    let folder = attacked.backend.list(&path("to-folder"), 9).await;
    assert_eq!(folder.unwrap_err().code(), "is_link");
    let (folder, limits) = (path(""), SearchLimits::default());
    let glob = PathGlob::parse("**").unwrap();
    let glob = GlobQuery { folder: folder.clone(), glob, limits: limits.clone() };
    let (text, mode) = ("secret".to_owned(), GrepMode::Files);
    let grep = GrepQuery { folder, text, glob: None, mode, limits };
    let found = attacked.backend.grep(&grep).await.unwrap();
    assert_eq!(found.files, []);
    let found = attacked.backend.glob(&glob).await.unwrap();
    assert_eq!(found.files, [path("inner/file"), path("second-name")]);
}

#[tokio::test]
async fn nothing_outside_of_a_folder_is_written() {
    let attacked = attacked();
    let root = attacked.folder.path().join("root");
    // The control: a write through a link arrives.
    fs::write(root.join("to-folder/control"), "x").unwrap();
    assert!(attacked.folder.path().join("outside/control").exists());
    for attack in ["to-file", "to-folder/new", "absolute", "dangling", "stays/new", "pipe"] {
        for expected in [Expected::Anything, Expected::Nothing, Expected::Content(b"secret")] {
            let wrote = attacked.backend.write(&path(attack), b"x", expected).await;
            assert!(wrote.is_err(), "{attack} {expected:?}");
        }
    }
    assert_eq!(fs::read_to_string(root.join("../outside/secret")).unwrap(), "secret");
    assert!(!attacked.folder.path().join("outside/new").exists());
    // Replacing a file with another name leaves what the other name stands for.
    put(&attacked.backend, "second-name", "mine").await;
    assert_eq!(fs::read_to_string(root.join("../outside/secret")).unwrap(), "secret");
    assert_eq!(text(&attacked.backend, "second-name").await.as_deref(), Ok("mine"));
}

#[tokio::test]
async fn pipes_and_devices_are_neither_waited_for_nor_read() {
    let attacked = attacked();
    // The control: whoever opens the pipe to read it waits.
    let pipe = attacked.folder.path().join("root/pipe");
    let waits = std::thread::spawn(move || fs::File::open(pipe));
    std::thread::sleep(std::time::Duration::from_millis(50));
    assert!(!waits.is_finished());
    assert_eq!(text(&attacked.backend, "pipe").await, Err("not_a_file"));
    let listed = attacked.backend.list(&path(""), 99).await.unwrap();
    let kind = |name: &str| listed.entries.iter().find(|it| it.name == name).unwrap().kind;
    assert_eq!((kind("pipe"), kind("to-file")), (EntryKind::Special, EntryKind::Link));
    let end = fs::OpenOptions::new().write(true).open(attacked.folder.path().join("root/pipe"));
    drop(end.unwrap());
    waits.join().unwrap().unwrap();
    let devices = LocalBackend::new("/dev").unwrap();
    assert_eq!(text(&devices, "zero").await, Err("not_a_file"));
}

/// Somebody swaps a folder and a link all the time. The control is a check before the use.
#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_is_swapped_in_is_never_followed() {
    let attacked = attacked();
    let root = attacked.folder.path().join("root");
    fs::create_dir(root.join("swapped")).unwrap();
    fs::write(root.join("swapped/secret"), "inside").unwrap();
    symlink("../outside", root.join("link")).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let swapping = {
        let (root, stop) = (root.clone(), Arc::clone(&stop));
        std::thread::spawn(move || {
            let root = fs::File::open(root).unwrap();
            while !stop.load(Ordering::Relaxed) {
                let flags = rustix::fs::RenameFlags::EXCHANGE;
                rustix::fs::renameat_with(&root, "swapped", &root, "link", flags).unwrap();
            }
        })
    };
    let target = root.join("swapped/secret");
    let naive = || {
        let is_link = fs::symlink_metadata(root.join("swapped")).unwrap().is_symlink();
        (!is_link).then(|| fs::read_to_string(&target).ok()).flatten()
    };
    let control = (0..200_000).find(|_| naive().as_deref() == Some("secret"));
    assert!(control.is_some(), "the control was never deceived");
    for _ in 0..500 {
        let read = text(&attacked.backend, "swapped/secret").await;
        assert!(matches!(read.as_deref(), Ok("inside") | Err(&"is_link")), "{read:?}");
        let new = attacked.backend.write(&path("swapped/new"), b"x", Expected::Anything).await;
        let code = new.err().map(|error| error.code());
        assert!(matches!(code, None | Some("is_link" | "file_io" | "not_a_folder")), "{code:?}");
    }
    stop.store(true, Ordering::Relaxed);
    swapping.join().unwrap();
    assert_eq!(
        fs::read_to_string(attacked.folder.path().join("outside/secret")).unwrap(),
        "secret"
    );
    assert!(!attacked.folder.path().join("outside/new").exists());
}

/// Everybody adds a line to the same file. Without comparing, lines are lost; with it, none is.
#[tokio::test(flavor = "multi_thread")]
async fn what_others_write_meanwhile_is_not_lost() {
    async fn add(backend: &dyn Backend, line: String, is_compared: bool) {
        loop {
            let file = backend.read(&path("log"), 1 << 20).await.unwrap();
            tokio::task::yield_now().await;
            let bytes = [&file.bytes, line.as_bytes()].concat();
            let expected = match is_compared {
                true => Expected::Content(&file.bytes),
                false => Expected::Anything,
            };
            match backend.write(&path("log"), &bytes, expected).await {
                Ok(_) => return,
                Err(error) => assert_eq!(error.code(), "file_changed"),
            }
        }
    }
    async fn lines(backend: &Arc<dyn Backend>, is_compared: bool) -> usize {
        put(backend, "log", "").await;
        let adding: Vec<_> = (0..32)
            .map(|number| {
                let backend = Arc::clone(backend);
                tokio::spawn(
                    async move { add(&*backend, format!("{number}\n"), is_compared).await },
                )
            })
            .collect();
        for one in adding {
            one.await.unwrap();
        }
        text(backend, "log").await.unwrap().lines().count()
    }
    let folder = TempDir::new().unwrap();
    // Two of the same folder: the lock is the folder's, not the backend's.
    let local: Arc<dyn Backend> = Arc::new(LocalBackend::new(folder.path()).unwrap());
    let memory: Arc<dyn Backend> = Arc::new(MemoryBackend::new());
    let control = lines(&local, false).await;
    assert!(control < 32, "the control lost nothing");
    assert_eq!((lines(&local, true).await, lines(&memory, true).await), (32, 32));
    let left: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert_eq!(left, ["log"], "drafts are left");
}

#[tokio::test]
async fn a_folder_that_somebody_else_has_locked_is_waited_for_but_not_forever() {
    let folder = TempDir::new().unwrap();
    let backend = LocalBackend::new(folder.path()).unwrap();
    let lock = fs::File::open(folder.path()).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let wrote = backend.write(&path("a"), b"x", Expected::Anything).await;
    assert_eq!(wrote.unwrap_err().code(), "file_io");
    drop(lock);
    put(&backend, "a", "x").await;
}
