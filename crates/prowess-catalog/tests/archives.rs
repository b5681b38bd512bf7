//! Archives that attack (S08, 4). Each attack first succeeds against a reader that believes what
//! archives say, and then fails against ours.

mod support;

use std::fs::{self, File};
use std::io::{Cursor, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use prowess_catalog::{ArchiveError, ArchiveKind, RemoteLimits, Unpacked, unpack, unpack_from};
use support::Tree;
use zip::CompressionMethod;
use zip::write::SimpleFileOptions;

fn limits() -> RemoteLimits {
    RemoteLimits::default()
}

/// Unpacks into `inside`, beside which nothing may appear.
fn unpacked(
    tree: &Tree,
    bytes: &[u8],
    kind: ArchiveKind,
    limits: RemoteLimits,
) -> Result<Unpacked, ArchiveError> {
    let sandbox = tree.at("ours");
    let inside = sandbox.join("inside");
    let _ = fs::remove_dir_all(&sandbox);
    fs::create_dir_all(&inside).unwrap();
    let result = unpack_from(Cursor::new(bytes), kind, &inside, &limits, &mut |_| {});
    let beside: Vec<_> = fs::read_dir(&sandbox).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(beside, ["inside"], "written outside");
    result
}

fn refused(bytes: &[u8], kind: ArchiveKind, limits: RemoteLimits) -> &'static str {
    unpacked(&Tree::new(), bytes, kind, limits).unwrap_err().code()
}

/// A zip archive of names, modes and contents.
fn zip_of(entries: &[(&str, u32, &[u8])]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, mode, content) in entries {
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .unix_permissions(*mode);
        match name.ends_with('/') {
            true => writer.add_directory(*name, options).unwrap(),
            false => {
                writer.start_file(*name, options).unwrap();
                writer.write_all(content).unwrap();
            }
        }
    }
    writer.finish().unwrap().into_inner()
}

/// A zip archive with `find` replaced by `put` in the entries, in the directory or in both.
fn patched(mut bytes: Vec<u8>, find: &[u8], put: &[u8], which: &[usize]) -> Vec<u8> {
    assert_eq!(find.len(), put.len());
    let places: Vec<usize> =
        (0..bytes.len() - find.len()).filter(|at| bytes[*at..].starts_with(find)).collect();
    for at in which {
        bytes[places[*at]..places[*at] + put.len()].copy_from_slice(put);
    }
    bytes
}

struct TarEntry<'a> {
    name: &'a [u8],
    kind: tar::EntryType,
    link: &'a str,
    mode: u32,
    content: &'a [u8],
}

impl<'a> TarEntry<'a> {
    fn file(name: &'a str, content: &'a [u8]) -> Self {
        let kind = tar::EntryType::Regular;
        Self { name: name.as_bytes(), kind, link: "", mode: 0o644, content }
    }

    fn of(kind: tar::EntryType, name: &'a str, link: &'a str) -> Self {
        Self { kind, link, ..Self::file(name, b"") }
    }
}

/// A tar archive whose headers are written as they are given.
fn tar_of(entries: &[TarEntry<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    for TarEntry { name, kind, link, mode, content } in entries {
        let mut header = tar::Header::new_gnu();
        header.as_old_mut().name[..name.len()].copy_from_slice(name);
        header.as_old_mut().linkname[..link.len()].copy_from_slice(link.as_bytes());
        header.set_entry_type(*kind);
        header.set_mode(*mode);
        header.set_size(content.len() as u64);
        header.set_cksum();
        out.extend_from_slice(header.as_bytes());
        out.extend_from_slice(content);
        out.resize(out.len().next_multiple_of(512), 0);
    }
    out.resize(out.len() + 1024, 0);
    out
}

fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// The control: believes names, modes and links.
fn naive_zip(bytes: &[u8], into: &Path) {
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).unwrap();
    for at in 0..archive.len() {
        let mut entry = archive.by_index(at).unwrap();
        let name = entry.name().unwrap().replace('\\', "/");
        let mode = entry.unix_mode().unwrap_or(0o644);
        let mut content = Vec::new();
        entry.read_to_end(&mut content).unwrap();
        naive_write(&into.join(name), mode, &content);
    }
}

fn naive_tar(bytes: &[u8], into: &Path) {
    for entry in tar::Archive::new(bytes).entries().unwrap() {
        let mut entry = entry.unwrap();
        let target = into.join(entry.path().unwrap());
        let mode = entry.header().mode().unwrap();
        let link = entry.link_name().unwrap().map(std::borrow::Cow::into_owned);
        let mut content = Vec::new();
        entry.read_to_end(&mut content).unwrap();
        match (entry.header().entry_type(), link) {
            (tar::EntryType::Symlink, Some(link)) => symlink(link, target).unwrap(),
            (tar::EntryType::Link, Some(link)) => fs::hard_link(link, target).unwrap(),
            _ => naive_write(&target, mode, &content),
        }
    }
}

fn naive_write(target: &Path, mode: u32, content: &[u8]) {
    if let Some(folder) = target.parent() {
        fs::create_dir_all(folder).unwrap();
    }
    if mode & 0o170_000 == 0o120_000 {
        let link = std::str::from_utf8(content).unwrap();
        return symlink(link, target).unwrap();
    }
    fs::write(target, content).unwrap();
    fs::set_permissions(target, fs::Permissions::from_mode(mode & 0o7777)).unwrap();
}

fn control(tree: &Tree) -> PathBuf {
    let inside = tree.at("control/inside");
    fs::create_dir_all(&inside).unwrap();
    inside
}

#[test]
fn names_that_lead_out_are_refused() {
    let tree = Tree::new();
    let outside = tree.at("control/outside");
    let absolute = tree.at("control/absolute");
    let absolute = absolute.to_str().unwrap();
    for (name, target) in [
        ("../outside", outside.as_path()),
        ("a/../../outside", &outside),
        ("..\\outside", &outside),
        (absolute, Path::new(absolute)),
    ] {
        let inside = control(&tree);
        let bytes = zip_of(&[(name, 0o644, b"x")]);
        fs::create_dir_all(inside.join("a")).unwrap();
        naive_zip(&bytes, &inside);
        assert!(target.exists(), "the control is not hit by {name}");
        fs::remove_file(target).unwrap();
        assert_eq!(refused(&bytes, ArchiveKind::Zip, limits()), "invalid_path", "{name}");
        let bytes = tar_of(&[TarEntry::file(name, b"x")]);
        for (bytes, kind) in [(gz(&bytes), ArchiveKind::TarGz), (bytes, ArchiveKind::Tar)] {
            assert_eq!(refused(&bytes, kind, limits()), "invalid_path", "{name}");
        }
    }
    let long = "n".repeat(300);
    for name in ["C:/x", "a\u{1}b", "a\nb", &long] {
        let bytes = zip_of(&[(name, 0o644, b"x")]);
        assert_eq!(refused(&bytes, ArchiveKind::Zip, limits()), "invalid_path", "{name}");
    }
    let entry = TarEntry { name: b"\xff\xfe", ..TarEntry::file("", b"x") };
    assert_eq!(refused(&tar_of(&[entry]), ArchiveKind::Tar, limits()), "invalid_path");
}

#[test]
fn names_by_extended_headers_are_names() {
    let tree = Tree::new();
    let record = |key: &str, value: &str| {
        let body = format!(" {key}={value}\n");
        let mut length = body.len() + 1;
        while format!("{length}{body}").len() != length {
            length += 1;
        }
        format!("{length}{body}").into_bytes()
    };
    let pax = |content: &'static [u8]| TarEntry {
        content,
        ..TarEntry::of(tar::EntryType::XHeader, "pax", "")
    };
    let extended = |key: &str, value: &str| {
        let content: &'static [u8] = record(key, value).leak();
        tar_of(&[pax(content), TarEntry::file("honest", b"12345")])
    };
    // The control writes where the extended header says.
    let bytes = extended("path", "../outside");
    naive_tar(&bytes, &control(&tree));
    assert!(tree.at("control/outside").exists());
    assert_eq!(refused(&bytes, ArchiveKind::Tar, limits()), "invalid_path");
    // A long name is a name.
    let bytes = extended("path", "long/name");
    let found = unpacked(&tree, &bytes, ArchiveKind::Tar, limits()).unwrap();
    assert_eq!(found.files[0].path.as_str(), "long/name");
    // The control takes the size from the extended header, others from the header.
    let bytes = extended("size", "2");
    let mut archive = tar::Archive::new(&bytes[..]);
    let entry = archive.entries().unwrap().next().unwrap().unwrap();
    assert_eq!((entry.size(), entry.header().entry_size().unwrap()), (2, 5));
    for (key, value, code) in [
        ("size", "2", "disagreeing_entry"),
        ("linkpath", "x", "disagreeing_entry"),
        ("GNU.sparse.major", "1", "special_entry"),
    ] {
        assert_eq!(refused(&extended(key, value), ArchiveKind::Tar, limits()), code, "{key}");
    }
    // What says nothing about content is passed over, as `git archive` writes it.
    let content: &'static [u8] = record("comment", "0123").leak();
    let global = TarEntry {
        content,
        ..TarEntry::of(tar::EntryType::XGlobalHeader, "pax_global_header", "")
    };
    let bytes = tar_of(&[global, TarEntry::file("SKILL.md", b"x")]);
    assert!(unpacked(&tree, &bytes, ArchiveKind::Tar, limits()).is_ok());
    let content: &'static [u8] = record("path", "all").leak();
    let global = TarEntry { content, ..TarEntry::of(tar::EntryType::XGlobalHeader, "g", "") };
    let bytes = tar_of(&[global, TarEntry::file("SKILL.md", b"x")]);
    assert_eq!(refused(&bytes, ArchiveKind::Tar, limits()), "disagreeing_entry");
    for content in [&b"9 path=\n"[..], b"99 path=x\n", b"path=x\n", b"+9 path=\n"] {
        let bytes = tar_of(&[pax(content.to_vec().leak()), TarEntry::file("x", b"")]);
        assert_eq!(refused(&bytes, ArchiveKind::Tar, limits()), "damaged_archive", "{content:?}");
    }
    // A name for nobody, and two names for one.
    let name =
        || TarEntry { content: b"long", ..TarEntry::of(tar::EntryType::GNULongName, "n", "") };
    let comment: &'static [u8] = record("comment", "0123").leak();
    let global =
        || TarEntry { content: comment, ..TarEntry::of(tar::EntryType::XGlobalHeader, "g", "") };
    for bytes in [
        tar_of(&[name()]),
        tar_of(&[pax(comment)]),
        tar_of(&[name(), name(), TarEntry::file("x", b"")]),
        tar_of(&[pax(comment), pax(comment), TarEntry::file("x", b"")]),
        tar_of(&[name(), global(), TarEntry::file("x", b"")]),
    ] {
        assert_eq!(refused(&bytes, ArchiveKind::Tar, limits()), "disagreeing_entry");
    }
}

#[test]
fn links_and_special_files_are_refused() {
    let tree = Tree::new();
    tree.write("control/secret/file", "secret");
    let secret = tree.at("control/secret");
    let secret = secret.to_str().unwrap();
    // A link, and a file behind it.
    let inside = control(&tree);
    let bytes = tar_of(&[
        TarEntry::of(tar::EntryType::Symlink, "link", secret),
        TarEntry::file("link/planted", b"x"),
    ]);
    naive_tar(&bytes, &inside);
    assert!(tree.at("control/secret/planted").exists());
    assert_eq!(refused(&bytes, ArchiveKind::Tar, limits()), "special_entry");
    // A hard link to somebody's file.
    let file = format!("{secret}/file");
    let bytes = tar_of(&[TarEntry::of(tar::EntryType::Link, "hard", &file)]);
    naive_tar(&bytes, &inside);
    assert_eq!(fs::read_to_string(inside.join("hard")).unwrap(), "secret");
    assert_eq!(refused(&bytes, ArchiveKind::Tar, limits()), "special_entry");
    // The same in a zip archive, whoever claims to have made it.
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    writer.add_symlink("zipped", secret, SimpleFileOptions::default()).unwrap();
    let bytes = writer.finish().unwrap().into_inner();
    naive_zip(&bytes, &inside);
    assert!(fs::symlink_metadata(inside.join("zipped")).unwrap().is_symlink());
    assert_eq!(refused(&bytes, ArchiveKind::Zip, limits()), "special_entry");
    let at = bytes.windows(4).position(|part| part == b"PK\x01\x02").unwrap() + 5;
    let mut of_dos = bytes;
    of_dos[at] = 0;
    assert_eq!(refused(&of_dos, ArchiveKind::Zip, limits()), "special_entry");
    for kind in [
        tar::EntryType::Char,
        tar::EntryType::Block,
        tar::EntryType::Fifo,
        tar::EntryType::GNUSparse,
        tar::EntryType::GNULongLink,
        tar::EntryType::Continuous,
        tar::EntryType::new(b'Z'),
    ] {
        let code = refused(&tar_of(&[TarEntry::of(kind, "x", "")]), ArchiveKind::Tar, limits());
        assert!(matches!(code, "special_entry" | "damaged_archive"), "{kind:?}: {code}");
    }
}

#[test]
fn modes_are_reduced_to_whether_a_file_may_be_run() {
    let tree = Tree::new();
    for (mode, expected) in [
        (0o644, 0o444),
        (0o755, 0o555),
        (0o6777, 0o555),
        (0o4644, 0o444),
        (0o1777, 0o555),
        (0, 0o444),
    ] {
        let zipped = (ArchiveKind::Zip, zip_of(&[("file", mode, b"x")]));
        let tarred =
            (ArchiveKind::Tar, tar_of(&[TarEntry { mode, ..TarEntry::file("file", b"x") }]));
        let inside = control(&tree);
        naive_tar(&tarred.1, &inside);
        let naive = fs::metadata(inside.join("file")).unwrap().permissions().mode() & 0o7777;
        assert_eq!(naive, mode, "the control takes the mode as it is");
        fs::set_permissions(inside.join("file"), fs::Permissions::from_mode(0o600)).unwrap();
        for (kind, bytes) in [zipped, tarred] {
            unpacked(&tree, &bytes, kind, limits()).unwrap();
            let mode_of_file = fs::metadata(tree.at("ours/inside/file")).unwrap().permissions();
            assert_eq!(mode_of_file.mode() & 0o7777, expected, "{mode:o} {kind:?}");
        }
    }
}

#[test]
fn bombs_are_refused() {
    let zeros = vec![0; 4 << 20];
    let zipped = zip_of(&[("bomb", 0o644, &zeros)]);
    let tarred = gz(&tar_of(&[TarEntry::file("bomb", &zeros)]));
    // The control: a thousand bytes for one.
    let mut archive = zip::ZipArchive::new(Cursor::new(&zipped)).unwrap();
    let naive = std::io::copy(&mut archive.by_index(0).unwrap(), &mut std::io::sink()).unwrap();
    assert!(naive > 100 * zipped.len() as u64);
    for (bytes, kind) in [(&zipped, ArchiveKind::Zip), (&tarred, ArchiveKind::TarGz)] {
        assert_eq!(refused(bytes, kind, limits()), "archive_limit");
    }
    // Undeclared: the directory and the header say less than there is.
    let declared = (4_u32 << 20).to_le_bytes();
    let lying = patched(zipped.clone(), &declared, &100_u32.to_le_bytes(), &[0, 1]);
    let mut archive = zip::ZipArchive::new(Cursor::new(&lying)).unwrap();
    assert_eq!(archive.by_index(0).unwrap().size(), 100);
    let mut inflated = flate2::read::DeflateDecoder::new(archive.by_index_raw(0).unwrap());
    let naive = std::io::copy(&mut inflated, &mut std::io::sink()).unwrap();
    assert_eq!(naive, 4 << 20, "the control inflates it all");
    let tree = Tree::new();
    let code = unpacked(&tree, &lying, ArchiveKind::Zip, limits()).unwrap_err().code();
    assert!(matches!(code, "disagreeing_entry" | "damaged_archive"), "{code}");
    let written = fs::metadata(tree.at("ours/inside/bomb")).map_or(0, |file| file.len());
    assert!(written <= 100, "{written}");
    // Behind the end of a tar archive, where nobody declares anything.
    let mut long = tar_of(&[TarEntry::file("SKILL.md", b"x")]);
    long.resize(8 << 20, 0);
    assert_eq!(refused(&gz(&long), ArchiveKind::TarGz, limits()), "archive_limit");
    // In an extended header, which a reader would keep in memory.
    let content = vec![b'x'; 4 << 20];
    let header =
        TarEntry { content: &content, ..TarEntry::of(tar::EntryType::GNULongName, "n", "") };
    let bytes = tar_of(&[header, TarEntry::file("x", b"")]);
    let mut archive = tar::Archive::new(&bytes[..]);
    let naive = archive.entries().unwrap().next().unwrap().unwrap().path_bytes().len();
    assert_eq!(naive, content.len(), "the control keeps it in memory");
    let error = unpacked(&Tree::new(), &bytes, ArchiveKind::Tar, limits()).unwrap_err();
    assert!(matches!(error, ArchiveError::Limit { limit: "extension_bytes", .. }), "{error}");
    // Nested: an archive in an archive is a file.
    let tree = Tree::new();
    let nested = zip_of(&[("nested.zip", 0o644, &zipped)]);
    let found = unpacked(&tree, &nested, ArchiveKind::Zip, limits()).unwrap();
    assert_eq!(found.bytes, zipped.len() as u64);
}

#[test]
fn overlapping_entries_are_refused() {
    // Two entries of the directory that share the bytes of one: more files than there is data.
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    writer.start_file("a", SimpleFileOptions::default()).unwrap();
    writer.write_all(b"shared").unwrap();
    writer.shallow_copy_file("a", "b").unwrap();
    let bytes = writer.finish().unwrap().into_inner();
    let mut archive = zip::ZipArchive::new(Cursor::new(&bytes)).unwrap();
    assert_eq!(archive.len(), 2);
    for at in 0..2 {
        let mut text = String::new();
        archive.by_index(at).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "shared", "the control reads the same bytes twice");
    }
    assert_eq!(refused(&bytes, ArchiveKind::Zip, limits()), "disagreeing_entry");
}

#[test]
fn duplicate_and_disagreeing_entries_are_refused() {
    let tree = Tree::new();
    // Twice the same name: who reads on sees the second, who searches sees the first.
    let twice = patched(
        zip_of(&[("SKILL.md", 0o644, b"honest"), ("SKILL.mx", 0o644, b"hostile")]),
        b"SKILL.mx",
        b"SKILL.md",
        &[0, 1],
    );
    assert_eq!(refused(&twice, ArchiveKind::Zip, limits()), "duplicate_entry");
    let bytes =
        tar_of(&[TarEntry::file("SKILL.md", b"honest"), TarEntry::file("SKILL.md", b"hostile")]);
    naive_tar(&bytes, &control(&tree));
    assert_eq!(fs::read(tree.at("control/inside/SKILL.md")).unwrap(), b"hostile");
    assert_eq!(refused(&bytes, ArchiveKind::Tar, limits()), "duplicate_entry");
    // Names that some file systems or readers confuse.
    for (one, other) in [
        ("a/SKILL.md", "a/skill.md"),
        ("A/x", "a/y"),
        ("caf\u{e9}", "cafe\u{301}"),
        ("\u{212a}", "k"),
        ("a", "a/b"),
        ("a/b", "a"),
        ("x", "./x"),
    ] {
        let bytes = zip_of(&[(one, 0o644, b"1"), (other, 0o644, b"2")]);
        assert_eq!(refused(&bytes, ArchiveKind::Zip, limits()), "duplicate_entry", "{one} {other}");
    }
    // The header of an entry names another file than the directory does.
    let honest = zip_of(&[("honest", 0o644, b"x")]);
    let two_faced = patched(honest.clone(), b"honest", b"hostil", &[0]);
    let mut reader = Cursor::new(&two_faced);
    let streamed = zip::read::read_zipfile_from_stream(&mut reader).unwrap().unwrap();
    let mut archive = zip::ZipArchive::new(Cursor::new(&two_faced)).unwrap();
    let listed = archive.by_index(0).unwrap().name().unwrap().into_owned();
    assert_ne!(streamed.name().unwrap(), listed, "two controls see two names");
    drop(streamed);
    assert_eq!(refused(&two_faced, ArchiveKind::Zip, limits()), "disagreeing_entry");
    // An entry that the directory does not mention.
    let directory = honest.windows(4).position(|part| part == b"PK\x01\x02").unwrap();
    let hidden = zip_of(&[("hidden", 0o644, b"y")]);
    let hidden_entry = hidden.windows(4).position(|part| part == b"PK\x01\x02").unwrap();
    let mut bytes = [&honest[..directory], &hidden[..hidden_entry], &honest[directory..]].concat();
    let offset = u32::try_from(directory + hidden_entry).unwrap().to_le_bytes();
    let at = bytes.len() - 6;
    bytes[at..at + 4].copy_from_slice(&offset);
    assert_eq!(zip::ZipArchive::new(Cursor::new(&bytes)).unwrap().len(), 1);
    let mut reader = Cursor::new(&bytes);
    drop(zip::read::read_zipfile_from_stream(&mut reader).unwrap());
    let second = zip::read::read_zipfile_from_stream(&mut reader).unwrap().unwrap();
    assert_eq!(second.name().unwrap(), "hidden", "the control that reads on sees it");
    drop(second);
    assert_eq!(refused(&bytes, ArchiveKind::Zip, limits()), "disagreeing_entry");
    // Something in front, two archives in one, something behind a tar archive.
    let prefixed = [b"#!/bin/sh\n", &honest[..]].concat();
    assert!(zip::ZipArchive::new(Cursor::new(&prefixed)).is_ok());
    let two = [&hidden[..], &honest[..]].concat();
    assert!(zip::ZipArchive::new(Cursor::new(&two)).is_ok());
    for bytes in [prefixed, two] {
        let code = refused(&bytes, ArchiveKind::Zip, limits());
        assert!(matches!(code, "disagreeing_entry" | "damaged_archive"), "{code}");
    }
    let tarred = tar_of(&[TarEntry::file("honest", b"x")]);
    let behind = [&tarred[..], &tar_of(&[TarEntry::file("hidden", b"y")])].concat();
    assert_eq!(refused(&behind, ArchiveKind::Tar, limits()), "disagreeing_entry");
    let members = [gz(&tarred), gz(&tar_of(&[TarEntry::file("hidden", b"y")]))].concat();
    assert_eq!(refused(&members, ArchiveKind::TarGz, limits()), "disagreeing_entry");
}

#[test]
fn archives_that_are_cut_off_or_damaged_are_refused() {
    let skill = vec![b'x'; 3000];
    let tarred = tar_of(&[TarEntry::file("SKILL.md", &skill), TarEntry::file("b", b"y")]);
    let zipped = zip_of(&[("SKILL.md", 0o644, &skill), ("b", 0o644, b"y")]);
    let packed = gz(&tarred);
    for (bytes, kind) in
        [(&tarred, ArchiveKind::Tar), (&zipped, ArchiveKind::Zip), (&packed, ArchiveKind::TarGz)]
    {
        assert!(unpacked(&Tree::new(), bytes, kind, limits()).is_ok());
        for cut in (0..bytes.len()).step_by(if kind == ArchiveKind::Tar { 256 } else { 1 }) {
            // One block of zeros less is still an archive to many; to us it has no end.
            assert!(
                unpacked(&Tree::new(), &bytes[..cut], kind, limits()).is_err(),
                "{kind:?} {cut}"
            );
        }
    }
    // A bit of the content is another one: the control without checksum does not notice.
    let stored = {
        let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
        writer.start_file("SKILL.md", options).unwrap();
        writer.write_all(b"content").unwrap();
        writer.finish().unwrap().into_inner()
    };
    let flipped = patched(stored, b"content", b"contend", &[0]);
    assert_eq!(refused(&flipped, ArchiveKind::Zip, limits()), "damaged_archive");
    for (bytes, kind) in [(&zipped, ArchiveKind::Tar), (&tarred, ArchiveKind::Zip)] {
        assert_eq!(refused(bytes, kind, limits()), "damaged_archive", "{kind:?}");
    }
}

#[test]
fn every_limit_holds_at_its_edge() {
    let ok = |bytes: &[u8], kind, limits| unpacked(&Tree::new(), bytes, kind, limits).is_ok();
    let content = [b'x'; 1000];
    let noise: Vec<u8> =
        (0..1000_u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    let zipped =
        zip_of(&[("a/b", 0o644, &content), ("a/c", 0o644, &content), ("n", 0o644, &noise)]);
    let tarred = tar_of(&[
        TarEntry::file("a/b", &content),
        TarEntry::file("a/c", &content),
        TarEntry::file("n", &noise),
    ]);
    let packed = gz(&tarred);
    for (bytes, kind) in
        [(&zipped, ArchiveKind::Zip), (&tarred, ArchiveKind::Tar), (&packed, ArchiveKind::TarGz)]
    {
        let length = bytes.len() as u64;
        assert!(ok(bytes, kind, limits().with_download_bytes(length)));
        assert!(!ok(bytes, kind, limits().with_download_bytes(length - 1)));
        assert!(ok(bytes, kind, limits().with_entry_bytes(4000)));
        assert!(!ok(bytes, kind, limits().with_entry_bytes(3999)));
        assert!(ok(bytes, kind, limits().with_total_bytes(6000)));
        assert!(!ok(bytes, kind, limits().with_total_bytes(5999)));
        // Three files and the folder that two of them imply.
        assert!(ok(bytes, kind, limits().with_entries(4)));
        assert!(!ok(bytes, kind, limits().with_entries(3)));
    }
    let zeros = zip_of(&[("zeros", 0o644, &[0; 50_000])]);
    let ratio = 50_000_u64.div_ceil(zeros.len() as u64);
    assert!(ok(&zeros, ArchiveKind::Zip, limits().with_ratio_from(0).with_ratio(ratio)));
    assert!(!ok(&zeros, ArchiveKind::Zip, limits().with_ratio_from(0).with_ratio(ratio - 1)));
    assert!(ok(&zeros, ArchiveKind::Zip, limits().with_ratio_from(50_000).with_ratio(1)));
    assert!(!ok(&zeros, ArchiveKind::Zip, limits().with_ratio_from(49_999).with_ratio(1)));
    let name = "n".repeat(200);
    let header =
        TarEntry { content: name.as_bytes(), ..TarEntry::of(tar::EntryType::GNULongName, "n", "") };
    let long = tar_of(&[header, TarEntry::file("x", b"")]);
    assert!(ok(&long, ArchiveKind::Tar, limits().with_extension_bytes(200)));
    assert!(!ok(&long, ArchiveKind::Tar, limits().with_extension_bytes(199)));
}

#[test]
fn floods_of_entries_are_refused_before_they_are_written() {
    let names: Vec<String> = (0..20_000).map(|at| format!("{at}")).collect();
    let entries: Vec<(&str, u32, &[u8])> =
        names.iter().map(|name| (name.as_str(), 0o644, &b""[..])).collect();
    let bytes = zip_of(&entries);
    assert_eq!(zip::ZipArchive::new(Cursor::new(&bytes)).unwrap().len(), 20_000, "control");
    let tree = Tree::new();
    let error = unpacked(&tree, &bytes, ArchiveKind::Zip, limits()).unwrap_err();
    assert!(matches!(error, ArchiveError::Limit { limit: "entries", most: 10_000 }), "{error}");
    assert_eq!(fs::read_dir(tree.at("ours/inside")).unwrap().count(), 0);
    // One file, hundreds of folders: in paths that imply them.
    let deep: Vec<String> = (0..30).map(|at| format!("{at}/{}x", "d/".repeat(400))).collect();
    let entries: Vec<(&str, u32, &[u8])> =
        deep.iter().map(|name| (name.as_str(), 0o644, &b""[..])).collect();
    let bytes = zip_of(&entries);
    let inside = control(&tree);
    naive_zip(&bytes[..], &inside);
    assert!(inside.join(&deep[29]).exists(), "the control makes twelve thousand folders");
    assert_eq!(refused(&bytes, ArchiveKind::Zip, limits()), "archive_limit");
    // Extended headers that stand for nothing.
    let header = || TarEntry {
        content: b"20 comment=xxxxxxxxx",
        ..TarEntry::of(tar::EntryType::XGlobalHeader, "g", "")
    };
    let many: Vec<TarEntry<'_>> = (0..200).map(|_| header()).collect();
    let bytes = tar_of(&many);
    assert_eq!(refused(&bytes, ArchiveKind::Tar, limits().with_entries(100)), "damaged_archive");
    let header = || TarEntry {
        content: b"20 comment=xxxxxxxx\n",
        ..TarEntry::of(tar::EntryType::XGlobalHeader, "g", "")
    };
    let many: Vec<TarEntry<'_>> = (0..101).map(|_| header()).collect();
    assert_eq!(
        refused(&tar_of(&many), ArchiveKind::Tar, limits().with_entries(100)),
        "archive_limit"
    );
    assert!(
        unpacked(&tree, &tar_of(&many[..100]), ArchiveKind::Tar, limits().with_entries(100))
            .is_ok()
    );
}

#[test]
fn encrypted_and_strange_entries_are_refused() {
    let honest = zip_of(&[("honest", 0o644, b"xxxxxxxxxx")]);
    let directory = honest.windows(4).position(|part| part == b"PK\x01\x02").unwrap();
    // Bit 0 of the flags, in the header and in the directory.
    let mut encrypted = honest.clone();
    encrypted[6] |= 1;
    encrypted[directory + 8] |= 1;
    assert_eq!(refused(&encrypted, ArchiveKind::Zip, limits()), "unsupported_entry");
    let mut method = honest;
    method[8] = 12;
    method[directory + 10] = 12;
    let code = refused(&method, ArchiveKind::Zip, limits());
    assert!(matches!(code, "unsupported_entry" | "damaged_archive"), "{code}");
    // A folder by its mode, a file by its name.
    let mut odd = zip_of(&[("file", 0o755, b"content")]);
    let directory = odd.windows(4).position(|part| part == b"PK\x01\x02").unwrap();
    odd[directory + 40..directory + 42].copy_from_slice(&0o040_755_u16.to_le_bytes());
    let code = refused(&odd, ArchiveKind::Zip, limits());
    assert!(matches!(code, "disagreeing_entry"), "{code}");
}

#[test]
fn what_other_programs_pack_is_unpacked() {
    let tree = Tree::new();
    tree.skill("skills/a");
    tree.write("skills/b/SKILL.md", support::text("b"));
    let script = tree.write("skills/b/scripts/run.sh", "#!/bin/sh\n");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    tree.write(&format!("skills/b/{}/{}", "long".repeat(40), "name".repeat(30)), "long");
    tree.write("skills/b/umlaut-ä.txt", "ä");
    for (program, arguments, file, kind) in [
        ("tar", &["czf", "out.tgz", "skills"][..], "out.tgz", ArchiveKind::TarGz),
        ("tar", &["cf", "out.tar", "--format=pax", "skills"], "out.tar", ArchiveKind::Tar),
        ("tar", &["cf", "gnu.tar", "--format=gnu", "./skills"], "gnu.tar", ArchiveKind::Tar),
        ("zip", &["-qr", "out.zip", "skills"], "out.zip", ArchiveKind::Zip),
    ] {
        let run =
            std::process::Command::new(program).args(arguments).current_dir(tree.path()).status();
        match run {
            Ok(status) => assert!(status.success(), "{program}"),
            Err(error) => {
                support::skip(
                    "what_other_programs_pack_is_unpacked",
                    &format!("{program}: {error}"),
                );
                continue;
            }
        }
        let inside = tree.at(&format!("unpacked-{file}"));
        fs::create_dir(&inside).unwrap();
        let mut archive = File::open(tree.at(file)).unwrap();
        archive.seek(SeekFrom::Start(0)).unwrap();
        let found = unpack(&archive, kind, &inside, &limits(), &mut |_| {}).unwrap();
        let paths: Vec<&str> = found.files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths.len(), 5, "{paths:?}");
        for path in paths {
            assert_eq!(fs::read(inside.join(path)).unwrap(), fs::read(tree.at(path)).unwrap());
        }
        let mode =
            fs::metadata(inside.join("skills/b/scripts/run.sh")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o555);
    }
}
