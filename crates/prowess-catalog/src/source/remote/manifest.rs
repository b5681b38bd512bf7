//! What a fetched tree holds, file by file.

use std::fmt::Write as _;

use prowess_format::Digest;

use crate::archive::{ArchiveError, Executable, Unpacked, UnpackedFile};
use crate::beneath::ResourcePath;
use crate::remote_limits::RemoteLimits;

/// What a tree held when it was fetched: one line per file, in the order of paths. Whatever is read
/// from the tree later is compared with it.
#[derive(Debug)]
pub(super) struct Manifest {
    text: String,
    /// Where lines begin.
    lines: Vec<u32>,
    pub(super) totals: Totals,
}

/// How much a tree holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    pub(super) bytes: u64,
    pub(super) entries: u64,
    /// How long the archive was; 0 if there was none.
    pub(super) archive_bytes: u64,
}

const VERSION: &str = "prowess-tree-1";
/// `<64 digits> <x or -> `
const PREFIX: usize = 67;

impl Manifest {
    /// The manifest of what was unpacked.
    pub(super) fn of(unpacked: &Unpacked, archive_bytes: u64) -> Self {
        let Unpacked { files, bytes, entries, .. } = unpacked;
        let mut text = format!("{VERSION} {bytes} {entries} {archive_bytes}\n");
        for UnpackedFile { path, digest, executable, .. } in files {
            let mark = if *executable == Executable::Yes { 'x' } else { '-' };
            let _ = writeln!(text, "{} {mark} {path}", digest.hex());
        }
        let totals = Totals { bytes: *bytes, entries: *entries as u64, archive_bytes };
        let lines = starts(&text);
        Self { text, lines, totals }
    }

    /// Reads a manifest; `None` if it is none.
    pub(super) fn parse(text: String) -> Option<Self> {
        let mut words = text.lines().next()?.split(' ');
        if words.next()? != VERSION || !text.ends_with('\n') {
            return None;
        }
        let mut number = || words.next()?.parse::<u64>().ok();
        let totals = Totals { bytes: number()?, entries: number()?, archive_bytes: number()? };
        let lines = starts(&text);
        Some(Self { text, lines, totals })
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn digest(&self) -> Digest {
        Digest::of(self.text.as_bytes())
    }

    /// What a file held.
    pub(super) fn digest_of(&self, path: &str) -> Option<Digest> {
        let at = self.lines.binary_search_by(|start| self.path_at(*start).cmp(path)).ok()?;
        self.text[self.lines[at] as usize..].get(..64)?.parse().ok()
    }

    /// All files and what they held.
    pub(super) fn files(&self) -> impl Iterator<Item = (&str, Digest)> {
        self.lines.iter().filter_map(|start| {
            let digest = self.text[*start as usize..].get(..64)?.parse().ok()?;
            Some((self.path_at(*start), digest))
        })
    }

    /// The paths of all files that can be the text of a skill.
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        let paths = self.lines.iter().map(|start| self.path_at(*start));
        paths.filter(|path| matches!(path.rsplit('/').next(), Some("SKILL.md" | "skill.md")))
    }

    /// The files below a folder, with their paths in it.
    pub(super) fn below(&self, folder: &str) -> Vec<UnpackedFile> {
        let prefix = format!("{folder}/");
        let files = self.lines.iter().filter_map(|start| {
            let path = self.path_at(*start).strip_prefix(&prefix)?;
            let line = &self.text[*start as usize..];
            let executable = match line.as_bytes().get(65)? {
                b'x' => Executable::Yes,
                _ => Executable::No,
            };
            let digest = line.get(..64)?.parse().ok()?;
            Some(UnpackedFile { path: ResourcePath::parse(path).ok()?, digest, executable })
        });
        files.collect()
    }

    /// Whether limits allow so much, which may have been fetched under others.
    pub(super) fn check(&self, limits: &RemoteLimits) -> Result<(), ArchiveError> {
        let Totals { bytes, entries, archive_bytes } = self.totals;
        let limit = |limit, most| Err(ArchiveError::Limit { limit, most });
        if bytes > limits.total_bytes {
            return limit("total_bytes", limits.total_bytes);
        }
        if entries > limits.entries as u64 {
            return limit("entries", limits.entries as u64);
        }
        match archive_bytes > limits.download_bytes {
            true => limit("download_bytes", limits.download_bytes),
            false => Ok(()),
        }
    }

    fn path_at(&self, start: u32) -> &str {
        let line = self.text.get(start as usize + PREFIX..).unwrap_or_default();
        line.split_once('\n').map_or(line, |(path, _)| path)
    }
}

/// Where the lines behind the first one begin.
fn starts(text: &str) -> Vec<u32> {
    let ends = text.match_indices('\n');
    let mut starts: Vec<u32> = ends.filter_map(|(at, _)| u32::try_from(at + 1).ok()).collect();
    starts.pop();
    starts
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_finds_its_files_and_reads_what_it_writes() {
        let file = |path: &str, executable| UnpackedFile {
            path: ResourcePath::parse(path).unwrap(),
            digest: Digest::of(path.as_bytes()),
            executable,
        };
        let files = vec![
            file("a/SKILL.md", Executable::No),
            file("a/run", Executable::Yes),
            file("b", Executable::No),
        ];
        let unpacked = Unpacked { files: files.clone(), bytes: 7, entries: 4 };
        let manifest = Manifest::of(&unpacked, 99);
        let again = Manifest::parse(manifest.text().to_owned()).unwrap();
        for manifest in [&manifest, &again] {
            for file in &files {
                assert_eq!(manifest.digest_of(file.path.as_str()), Some(file.digest));
            }
            for unknown in ["", "a", "a/", "a/SKILL.m", "a/SKILL.md2", "c"] {
                assert_eq!(manifest.digest_of(unknown), None, "{unknown}");
            }
            let below: Vec<_> =
                manifest.below("a").into_iter().map(|f| (f.path, f.executable)).collect();
            let path = |text| ResourcePath::parse(text).unwrap();
            assert_eq!(below, [(path("SKILL.md"), Executable::No), (path("run"), Executable::Yes)]);
            assert_eq!(manifest.totals, Totals { bytes: 7, entries: 4, archive_bytes: 99 });
        }
        let empty = Manifest::of(&Unpacked::default(), 0);
        assert_eq!(empty.digest_of("a"), None);
        for wrong in
            ["", "\n", "prowess-tree-2 1 1 1\n", "prowess-tree-1 1 1\n", "prowess-tree-1 1 1 1"]
        {
            assert!(Manifest::parse(wrong.to_owned()).is_none(), "{wrong:?}");
        }
    }

    #[test]
    fn limits_hold_for_what_was_fetched_before() {
        let manifest = Manifest::of(&Unpacked { files: vec![], bytes: 10, entries: 3 }, 5);
        let limits = RemoteLimits::default;
        let at_the_edge = limits().with_total_bytes(10).with_entries(3).with_download_bytes(5);
        assert!(manifest.check(&at_the_edge).is_ok());
        for limits in [
            limits().with_total_bytes(9),
            limits().with_entries(2),
            limits().with_download_bytes(4),
        ] {
            assert_eq!(manifest.check(&limits).unwrap_err().code(), "archive_limit");
        }
    }
}
