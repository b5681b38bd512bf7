//! What must hold for every archive. The fuzz targets call these on inputs that they invent, the
//! tests call them on the inputs that were found and kept in `corpus/`.

#![allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic
)]

use std::collections::BTreeMap;
use std::fs;
use std::io::{Cursor, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use prowess_catalog::{ArchiveKind, RemoteLimits, unpack_from};

const FILE: u64 = 64 << 10;
const ALL: u64 = 256 << 10;
const ENTRIES: usize = 64;

/// Whatever a zip archive holds, nothing is written elsewhere or beyond the limits, and what is
/// accepted another reader sees too.
pub fn zip(data: &[u8]) {
    let Some(files) = unpacked(data, ArchiveKind::Zip) else { return };
    let mut other = zip::ZipArchive::new(Cursor::new(data)).expect("an archive for others too");
    let mut theirs = BTreeMap::new();
    for at in 0..other.len() {
        let mut entry = other.by_index(at).expect("an entry for others too");
        if !entry.is_dir() {
            let mut content = Vec::new();
            entry.read_to_end(&mut content).expect("content for others too");
            theirs.insert(plain(&String::from_utf8_lossy(entry.name_raw())), content);
        }
    }
    assert_eq!(files, theirs, "another reader sees something else");
}

/// The same for tar archives, with and without compression.
pub fn tar(data: &[u8]) {
    unpacked(data, ArchiveKind::TarGz);
    let Some(files) = unpacked(data, ArchiveKind::Tar) else { return };
    let mut theirs = BTreeMap::new();
    for entry in tar::Archive::new(data).entries().expect("an archive for others too") {
        let mut entry = entry.expect("an entry for others too");
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let is_file = entry.header().entry_type().is_file() && !name.ends_with('/');
        if is_file {
            let mut content = Vec::new();
            entry.read_to_end(&mut content).expect("content for others too");
            theirs.insert(plain(&name), content);
        }
    }
    assert_eq!(files, theirs, "another reader sees something else");
}

/// A name without what does not matter.
fn plain(name: &str) -> String {
    let name = name.replace('\\', "/");
    name.split('/').filter(|part| !matches!(*part, "" | ".")).collect::<Vec<_>>().join("/")
}

/// What an archive was unpacked to, if it was; and that nothing else happened.
fn unpacked(data: &[u8], kind: ArchiveKind) -> Option<BTreeMap<String, Vec<u8>>> {
    let sandbox = tempfile::tempdir().unwrap();
    let inside = sandbox.path().join("inside");
    fs::create_dir(&inside).unwrap();
    let limits = RemoteLimits::default()
        .with_entry_bytes(FILE)
        .with_total_bytes(ALL)
        .with_entries(ENTRIES)
        .with_ratio_from(4 << 10);
    let result = unpack_from(Cursor::new(data), kind, &inside, &limits, &mut |_| {});
    let names: Vec<_> = fs::read_dir(&sandbox).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["inside"], "something was written outside");
    let mut seen = Seen::default();
    walk(&inside, &inside, &mut seen);
    assert!(seen.bytes <= ALL + FILE && seen.entries <= ENTRIES, "beyond the limits");
    let unpacked = result.ok()?;
    assert!(seen.bytes <= 4 << 10 || seen.bytes <= data.len() as u64 * limits.ratio);
    assert_eq!((seen.bytes, seen.entries), (unpacked.bytes, unpacked.entries));
    let reported: Vec<_> = unpacked.files.iter().map(|file| file.path.as_str()).collect();
    let mut sorted = reported.clone();
    sorted.sort_unstable();
    assert_eq!(reported, sorted);
    assert_eq!(reported.len(), seen.files.len());
    for file in &unpacked.files {
        let content = &seen.files[file.path.as_str()];
        assert_eq!(file.digest, prowess_format::Digest::of(content));
    }
    Some(seen.files)
}

#[derive(Default)]
struct Seen {
    files: BTreeMap<String, Vec<u8>>,
    bytes: u64,
    entries: usize,
}

fn walk(root: &Path, folder: &Path, seen: &mut Seen) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let metadata = fs::symlink_metadata(&path).unwrap();
        seen.entries += 1;
        if metadata.is_dir() {
            walk(root, &path, seen);
            continue;
        }
        assert!(metadata.is_file() && metadata.nlink() == 1, "no plain file: {path:?}");
        assert_eq!(metadata.mode() & 0o7222, 0, "{path:?}");
        seen.bytes += metadata.len();
        let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
        seen.files.insert(name, fs::read(&path).unwrap());
    }
}
