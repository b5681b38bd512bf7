//! Content in files when the disk is full, and when a process dies (S02, 5).
//!
//! A test starts itself again as a process of its own, which works in `PROWESS_TEST_HOME`.

mod support;

use std::collections::HashSet;
use std::fs;
use std::hash::BuildHasher;
use std::io::{BufRead, BufReader, ErrorKind};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use prowess_catalog::{ContentStore, FileContent};
use prowess_format::Digest;
use support::Tree;

const HOME: &str = "PROWESS_TEST_HOME";

/// No file of a process with this limit becomes longer.
const FILE_LIMIT: usize = 32 << 10;

/// The home to work in, if this is the process that does the work.
fn home_of_child() -> Option<PathBuf> {
    std::env::var_os(HOME).map(PathBuf::from)
}

/// A test again, in a process of its own, after a shell has run `setup`.
fn child(test: &str, setup: &str, home: &Path) -> Command {
    let mut command = Command::new("sh");
    let script = format!("{setup}\nexec \"$0\" \"$@\"");
    command.args(["-c", &script]).arg(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).env(HOME, home);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// `ulimit` counts blocks of 512 bytes.
fn limit_files() -> String {
    format!("ulimit -c 0; ulimit -f {}", FILE_LIMIT / 512)
}

/// What a store holds under the name of its content, and what else lies there.
fn files(home: &Path) -> (HashSet<Digest>, Vec<PathBuf>) {
    let (mut stored, mut others) = (HashSet::new(), Vec::new());
    for shelf in fs::read_dir(home.join("content")).unwrap() {
        let shelf = shelf.unwrap();
        for file in fs::read_dir(shelf.path()).unwrap() {
            let file = file.unwrap();
            let name =
                [shelf.file_name(), file.file_name()].map(|name| name.into_string().unwrap());
            match name.concat().parse::<Digest>() {
                Ok(digest) => {
                    let actual = Digest::of(&fs::read(file.path()).unwrap());
                    assert_eq!(actual, digest, "what has a name is whole");
                    stored.insert(digest);
                }
                Err(_) => others.push(file.path()),
            }
        }
    }
    (stored, others)
}

#[test]
fn a_full_disk_is_an_error_that_leaves_nothing_behind() {
    let (small, large) = (b"small".as_slice(), vec![7; 4 * FILE_LIMIT]);
    if let Some(home) = home_of_child() {
        // The control: the disk takes no more, and half a file stays where it was written.
        let careless = home.join("careless");
        assert_eq!(fs::write(&careless, &large).unwrap_err().kind(), ErrorKind::FileTooLarge);
        assert_eq!(fs::metadata(&careless).unwrap().len(), FILE_LIMIT as u64);
        let store = FileContent::new(&home);
        let digest = store.put(small).unwrap();
        for _ in 0..3 {
            assert_eq!(store.put(&large).unwrap_err().code(), "io");
            assert_eq!(store.get(&Digest::of(&large)).unwrap(), None);
        }
        // What is there can be had, and what fits can be put.
        assert_eq!(store.put(small).unwrap(), digest);
        assert_eq!(store.get(&digest).unwrap().as_deref(), Some(small));
        store.put(b"another").unwrap();
        return;
    }
    let tree = Tree::new();
    // A process that ignores the signal is told by an error, as by a full disk.
    let setup = format!("trap '' XFSZ; {}", limit_files());
    let test = "a_full_disk_is_an_error_that_leaves_nothing_behind";
    let output = child(test, &setup, tree.path()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let expected = HashSet::from([Digest::of(small), Digest::of(b"another")]);
    assert_eq!(files(tree.path()), (expected, vec![]));
    // There is room again.
    let store = FileContent::new(tree.path());
    let digest = store.put(&large).unwrap();
    assert_eq!(store.get(&digest).unwrap().as_deref(), Some(large.as_slice()));
}

/// Puts short and long contents until it is killed, or nobody hears any more what it has put.
fn put_for_ever(home: &Path) {
    let store = FileContent::new(home);
    let own = std::process::id();
    for at in 0_usize.. {
        // Every third one is there already.
        let number = if at % 3 == 2 { at - 1 } else { at };
        let bytes = format!("{own:08} {number:08} ").repeat(1 + number % 13 * 500);
        println!("put {}", store.put(bytes.as_bytes()).unwrap());
    }
}

#[test]
fn a_process_that_is_killed_in_put_leaves_whole_content_and_garbage() {
    const KILLS: usize = 50;
    const SIGKILL: i32 = 9;
    const SIGXFSZ: i32 = 25;
    if let Some(home) = home_of_child() {
        return put_for_ever(&home);
    }
    let tree = Tree::new();
    let test = "a_process_that_is_killed_in_put_leaves_whole_content_and_garbage";
    let random = std::hash::RandomState::new();
    let mut promised = HashSet::new();
    for round in 0..KILLS {
        let mut child = child(test, "", tree.path()).spawn().unwrap();
        let said = BufReader::new(child.stdout.take().unwrap()).lines();
        // Other words may stand before it, and the last line may be cut off.
        let mut puts = said.filter_map(|line| {
            line.unwrap().split_once("put ").and_then(|(_, digest)| digest.parse::<Digest>().ok())
        });
        promised.insert(puts.next().expect("it puts until it is killed"));
        std::thread::sleep(Duration::from_micros(random.hash_one(round) % 20_000));
        child.kill().unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(SIGKILL));
        promised.extend(puts);
    }
    // One death is sure to come in the middle: the system kills who writes too much.
    let output = child(test, &limit_files(), tree.path()).output().unwrap();
    assert_eq!(output.status.signal(), Some(SIGXFSZ), "{output:?}");

    let (stored, leftovers) = files(tree.path());
    assert!(stored.is_superset(&promised), "what was put is there");
    assert!(!leftovers.is_empty(), "the control must leave half a file");
    // Whoever is patient leaves them alone; others remove them, and nothing else.
    let patient = FileContent::new(tree.path());
    assert_eq!(patient.collect_garbage(&stored).unwrap(), 0);
    assert_eq!(files(tree.path()).1.len(), leftovers.len());
    let strict = patient.with_grace(Duration::ZERO);
    assert_eq!(strict.collect_garbage(&stored).unwrap(), 0);
    let (kept, leftovers) = files(tree.path());
    assert!(kept == stored, "{} of {} are there", kept.len(), stored.len());
    assert_eq!(leftovers, [""; 0].map(PathBuf::from));
    assert_eq!(strict.collect_garbage(&HashSet::new()).unwrap(), stored.len());
    assert_eq!(files(tree.path()), (HashSet::new(), vec![]));
}
