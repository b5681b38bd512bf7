//! All of a skill in memory, and a quick look whether it is still the same.

use prowess_format::Digest;

use crate::beneath::{InvalidResourcePath, ResourcePath, Stamp};
use crate::error::ReadError;
use crate::found::FoundSkill;
use crate::resource::{LeftOut, ResourceListing};
use crate::skill::CatalogSkill;
use crate::tree_digest::TreeDigest;

/// All files of a skill as they were read, and what identifies exactly these bytes.
#[derive(Debug)]
#[non_exhaustive]
pub struct SkillContents {
    /// The files, its text among them, in the order of their paths.
    pub files: Vec<ContentFile>,
    /// What is in its folder and is no content: links that lead elsewhere, special files.
    pub left_out: Vec<LeftOut>,
    /// What identifies these bytes.
    pub tree_digest: TreeDigest,
}

/// A file of a skill, with what it holds.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContentFile {
    /// Where it is, relative to the skill's folder.
    pub path: ResourcePath,
    /// Whether it may be run.
    pub executable: bool,
    /// What it holds.
    pub bytes: Vec<u8>,
}

impl ContentFile {
    /// A file of a skill.
    pub fn new(path: ResourcePath, executable: bool, bytes: impl Into<Vec<u8>>) -> Self {
        Self { path, executable, bytes: bytes.into() }
    }
}

impl SkillContents {
    /// These files, whatever their order; their paths differ.
    pub fn of(mut files: Vec<ContentFile>) -> Self {
        files.sort_unstable_by(|a, b| a.path.as_str().cmp(b.path.as_str()));
        let parts = files.iter().map(|it| (it.path.as_str(), it.executable, it.bytes.as_slice()));
        let tree_digest = TreeDigest::of(parts);
        Self { files, left_out: Vec::new(), tree_digest }
    }

    /// The bytes of all files.
    pub fn bytes(&self) -> usize {
        self.files.iter().map(|file| file.bytes.len()).sum()
    }

    /// The file at this path.
    pub fn file(&self, path: &str) -> Option<&ContentFile> {
        self.files.iter().find(|file| file.path.as_str() == path)
    }
}

/// Puts the contents of a skill together, as long as there is room.
pub(crate) struct Gathering {
    files: Vec<ContentFile>,
    left_out: Vec<LeftOut>,
    room: u64,
    limit: u64,
}

impl Gathering {
    /// Begins with a skill's text. If one of its files cannot be counted, there is no whole.
    pub(crate) fn new(
        skill: (&str, bool),
        text: Vec<u8>,
        listing: &ResourceListing,
        limit: u64,
    ) -> Result<Self, ReadError> {
        listing.check_whole()?;
        let (file, executable) = skill;
        let invalid =
            |cause: InvalidResourcePath| ReadError::InvalidPath { path: file.to_owned(), cause };
        let path = ResourcePath::parse(file).map_err(invalid)?;
        let left_out = listing.left_out.clone();
        let mut gathering = Self { files: Vec::new(), left_out, room: limit, limit };
        gathering.add(path, executable, text)?;
        Ok(gathering)
    }

    /// Adds a file.
    pub(crate) fn add(
        &mut self,
        path: ResourcePath,
        executable: bool,
        bytes: Vec<u8>,
    ) -> Result<(), ReadError> {
        let too_large = ReadError::SkillTooLarge { limit: self.limit };
        self.room = self.room.checked_sub(bytes.len() as u64).ok_or(too_large)?;
        self.files.push(ContentFile { path, executable, bytes });
        Ok(())
    }

    /// All of it.
    pub(crate) fn finish(self) -> SkillContents {
        SkillContents { left_out: self.left_out, ..SkillContents::of(self.files) }
    }
}

/// What the files of a skill look like from outside: where they are, how long, when changed.
#[derive(Default)]
pub(crate) struct Stamps {
    text: String,
    latest: (i64, i64),
}

impl Stamps {
    pub(crate) fn add(&mut self, path: &str, stamp: &Stamp) {
        use std::fmt::Write;
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "{path}\0{stamp:?}");
        self.latest = self.latest.max(stamp.latest());
    }

    /// What identifies them, if all of them were changed before this: of later ones the next
    /// change might bear the same time.
    pub(crate) fn finish(self, grain: (i64, i64)) -> Option<String> {
        (self.latest < grain).then(|| Digest::of(self.text.as_bytes()).hex())
    }
}

impl CatalogSkill {
    /// All files of the skill as they are now, if its text is still the one that was found and all
    /// of them together have at most so many bytes.
    pub async fn contents(&self, limit: u64) -> Result<SkillContents, ReadError> {
        let contents = self.source().contents(self.found(), limit).await?;
        check_text(self.found(), &contents)?;
        Ok(contents)
    }

    /// What the files of the skill look like from outside. As long as this stays the same, so do
    /// its contents, and nothing need be read to know that. `None` if nobody can tell.
    pub async fn stamp(&self) -> Option<String> {
        self.source().stamp(self.found()).await
    }
}

/// Whether the text among contents is the one that was found.
fn check_text(skill: &FoundSkill, contents: &SkillContents) -> Result<(), ReadError> {
    let text = contents.files.iter().find(|file| file.path.as_str() == skill.file);
    let actual = Digest::of(text.map(|it| it.bytes.as_slice()).unwrap_or_default());
    match actual == skill.digest {
        true => Ok(()),
        false => Err(ReadError::ContentChanged { expected: skill.digest, actual }),
    }
}
