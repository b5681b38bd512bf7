//! What a fetched tree holds, file by file.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use prowess_format::Digest;

use crate::archive::{ArchiveError, Executable, Unpacked, UnpackedFile};
use crate::beneath::ResourcePath;
use crate::remote_limits::RemoteLimits;

/// What a tree held when it was fetched. Whatever is read from the tree later is compared with it.
///
/// The texts of skills are in one file, which every start reads, and all other files in a second
/// one, which is read when one of them is.
#[derive(Debug)]
pub(super) struct Manifest {
    texts: Lines,
    others: OnceLock<Option<Lines>>,
    others_digest: Digest,
    /// Where the second file is.
    folder: PathBuf,
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
const TEXTS: &str = "manifest";
const OTHERS: &str = "manifest-others";

/// Whether a file can be the text of a skill.
fn is_text(path: &str) -> bool {
    matches!(path.rsplit('/').next(), Some("SKILL.md" | "skill.md"))
}

impl Manifest {
    /// The manifest of what was unpacked.
    pub(super) fn of(unpacked: &Unpacked, archive_bytes: u64) -> Self {
        let Unpacked { files, bytes, entries, .. } = unpacked;
        let is_text = |file: &&UnpackedFile| is_text(file.path.as_str());
        let others = Lines::of(String::new(), files.iter().filter(|file| !is_text(file)));
        let others_digest = others.digest();
        let hex = others_digest.hex();
        let first = format!("{VERSION} {bytes} {entries} {archive_bytes} {hex}\n");
        let texts = Lines::of(first, files.iter().filter(is_text));
        let totals = Totals { bytes: *bytes, entries: *entries as u64, archive_bytes };
        let others = OnceLock::from(Some(others));
        Self { texts, others, others_digest, folder: PathBuf::new(), totals }
    }

    /// Reads the manifest of a tree; `None` if it is none.
    pub(super) fn read(folder: &Path) -> Option<Self> {
        let text = fs::read_to_string(folder.join(TEXTS)).ok()?;
        let mut words = text.lines().next()?.split(' ');
        if words.next()? != VERSION || !text.ends_with('\n') {
            return None;
        }
        let mut number = || words.next()?.parse::<u64>().ok();
        let totals = Totals { bytes: number()?, entries: number()?, archive_bytes: number()? };
        let others_digest = words.next()?.parse().ok()?;
        let mut texts = Lines::new(text);
        texts.starts.remove(0);
        let folder = folder.to_owned();
        Some(Self { texts, others: OnceLock::new(), others_digest, folder, totals })
    }

    /// Writes it into the folder of a tree.
    pub(super) fn write(&self, folder: &Path) -> std::io::Result<()> {
        let others = self.others().map_or("", |others| &others.text);
        fs::write(folder.join(OTHERS), others)?;
        fs::write(folder.join(TEXTS), &self.texts.text)
    }

    /// What identifies it, and thereby everything that the tree held.
    pub(super) fn digest(&self) -> Digest {
        self.texts.digest()
    }

    /// All files but the texts; `None` if that cannot be told any more.
    fn others(&self) -> Option<&Lines> {
        let read = || {
            let text = fs::read_to_string(self.folder.join(OTHERS)).ok()?;
            (Digest::of(text.as_bytes()) == self.others_digest).then(|| Lines::new(text))
        };
        self.others.get_or_init(read).as_ref()
    }

    /// What a file held.
    pub(super) fn digest_of(&self, path: &str) -> Option<Digest> {
        let lines = if is_text(path) { &self.texts } else { self.others()? };
        lines.find(path)?.digest()
    }

    /// Whether a text of a skill held this.
    pub(super) fn is_text_of(&self, path: &str, digest: &Digest) -> bool {
        self.texts.find(path).is_some_and(|line| line.hex() == digest.hex())
    }

    /// All files and what they held; `None` if that cannot be told any more.
    pub(super) fn files(&self) -> Option<impl Iterator<Item = (&str, Digest)>> {
        let lines = self.texts.iter().chain(self.others()?.iter());
        Some(lines.filter_map(|line| Some((line.path(), line.digest()?))))
    }

    /// The paths of all files that can be the text of a skill.
    pub(super) fn texts(&self) -> impl ExactSizeIterator<Item = &str> {
        self.texts.starts.iter().map(|start| self.texts.at(*start).path())
    }

    /// The files below a folder, with their paths in it; `None` if that cannot be told any more.
    pub(super) fn below(&self, folder: &str) -> Option<Vec<UnpackedFile>> {
        let prefix = format!("{folder}/");
        let lines = self.texts.iter().chain(self.others()?.iter());
        let files = lines.filter_map(|line| {
            let path = ResourcePath::parse(line.path().strip_prefix(&prefix)?).ok()?;
            Some(UnpackedFile { path, digest: line.digest()?, executable: line.executable() })
        });
        Some(files.collect())
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
}

/// One line per file, in the order of paths.
#[derive(Debug)]
struct Lines {
    text: String,
    /// Where lines begin.
    starts: Vec<u32>,
}

/// `<64 digits> <x or -> <path>`
#[derive(Clone, Copy)]
struct Line<'a>(&'a str);

impl Lines {
    fn of<'a>(first: String, files: impl Iterator<Item = &'a UnpackedFile>) -> Self {
        let skipped = usize::from(!first.is_empty());
        let mut text = first;
        for UnpackedFile { path, digest, executable, .. } in files {
            let mark = if *executable == Executable::Yes { 'x' } else { '-' };
            let _ = writeln!(text, "{} {mark} {path}", digest.hex());
        }
        let mut lines = Self::new(text);
        lines.starts.drain(..skipped);
        lines
    }

    fn new(text: String) -> Self {
        let ends = text.match_indices('\n').filter_map(|(at, _)| u32::try_from(at + 1).ok());
        let mut starts: Vec<u32> = std::iter::once(0).chain(ends).collect();
        // Behind the last line there is none.
        starts.pop();
        Self { text, starts }
    }

    fn digest(&self) -> Digest {
        Digest::of(self.text.as_bytes())
    }

    fn at(&self, start: u32) -> Line<'_> {
        let rest = self.text.get(start as usize..).unwrap_or_default();
        Line(rest.split_once('\n').map_or(rest, |(line, _)| line))
    }

    fn iter(&self) -> impl Iterator<Item = Line<'_>> {
        self.starts.iter().map(|start| self.at(*start))
    }

    fn find(&self, path: &str) -> Option<Line<'_>> {
        let at = self.starts.binary_search_by(|start| self.at(*start).path().cmp(path)).ok()?;
        Some(self.at(self.starts[at]))
    }
}

impl<'a> Line<'a> {
    fn hex(self) -> &'a str {
        self.0.get(..64).unwrap_or_default()
    }

    fn digest(self) -> Option<Digest> {
        self.hex().parse().ok()
    }

    fn executable(self) -> Executable {
        match self.0.as_bytes().get(65) {
            Some(b'x') => Executable::Yes,
            _ => Executable::No,
        }
    }

    fn path(self) -> &'a str {
        self.0.get(67..).unwrap_or_default()
    }
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
        let folder = tempfile::tempdir().unwrap();
        manifest.write(folder.path()).unwrap();
        let again = Manifest::read(folder.path()).unwrap();
        assert_eq!(again.digest(), manifest.digest());
        for manifest in [&manifest, &again] {
            for file in &files {
                assert_eq!(manifest.digest_of(file.path.as_str()), Some(file.digest));
            }
            for unknown in ["", "a", "a/", "a/SKILL.m", "a/SKILL.md2", "c"] {
                assert_eq!(manifest.digest_of(unknown), None, "{unknown}");
            }
            let below: Vec<_> =
                manifest.below("a").unwrap().into_iter().map(|f| (f.path, f.executable)).collect();
            let path = |text| ResourcePath::parse(text).unwrap();
            assert_eq!(below, [(path("SKILL.md"), Executable::No), (path("run"), Executable::Yes)]);
            assert_eq!(manifest.totals, Totals { bytes: 7, entries: 4, archive_bytes: 99 });
        }
        // The texts are known without the second file; the others are not, whatever it says.
        for text in ["", "cut"] {
            fs::write(folder.path().join(OTHERS), text).unwrap();
            let manifest = Manifest::read(folder.path()).unwrap();
            assert!(manifest.is_text_of("a/SKILL.md", &files[0].digest));
            assert!(!manifest.is_text_of("a/SKILL.md", &files[1].digest));
            assert_eq!((manifest.digest_of("b"), manifest.files().is_none()), (None, true));
        }
        let empty = Manifest::of(&Unpacked::default(), 0);
        assert_eq!((empty.digest_of("a"), empty.texts().len()), (None, 0));
        let hex = "0".repeat(64);
        for wrong in ["", "\n", "prowess-tree-2 1 1 1\n", "prowess-tree-1 1 1 1\n"] {
            fs::write(folder.path().join(TEXTS), wrong).unwrap();
            assert!(Manifest::read(folder.path()).is_none(), "{wrong:?}");
        }
        fs::write(folder.path().join(TEXTS), format!("prowess-tree-1 1 1 1 {hex}")).unwrap();
        assert!(Manifest::read(folder.path()).is_none());
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
