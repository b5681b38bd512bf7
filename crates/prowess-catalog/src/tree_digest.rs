//! What identifies a whole skill.

use std::borrow::Cow;
use std::fmt;
use std::path::Path;

use prowess_format::Digest;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

use crate::error::ReadError;
use crate::found::FoundSkill;
use crate::limits::ScanLimits;
use crate::resource::{Resource, ResourceListing, ResourceScope};
use crate::skill::CatalogSkill;
use crate::source::{Files, Source};

/// The digest of all files of a skill, written `v1:` and 64 hexadecimal digits.
///
/// It is the sha256 of, for every file in the order of their paths' bytes: the path, a zero byte,
/// `x` or `-` for the exec bit, a zero byte, the length as a decimal number, a zero byte, and the
/// content. Lengths make it unambiguous; owners, times and empty folders do not count.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TreeDigest(Digest);

impl TreeDigest {
    /// The digest of files: path, exec bit and content, in any order.
    ///
    /// ```
    /// use prowess_catalog::TreeDigest;
    ///
    /// let digest = TreeDigest::of([("SKILL.md", false, b"text".as_slice())]);
    /// assert!(digest.to_string().starts_with("v1:"));
    /// ```
    pub fn of<'a>(files: impl IntoIterator<Item = (&'a str, bool, &'a [u8])>) -> Self {
        let mut files: Vec<_> = files.into_iter().collect();
        files.sort_unstable_by_key(|(path, _, _)| path.as_bytes());
        let mut hasher = TreeHasher::default();
        for (path, executable, content) in files {
            hasher.add(path, executable, content);
        }
        hasher.finish()
    }

    /// The digest of all files in the folder of a skill as they are now, if its `SKILL.md`, by
    /// whichever name, is still the text with this digest. The skill need not be one that can be
    /// used; if it is, [`CatalogSkill::tree_digest`] gives the same. Blocks.
    pub fn of_folder(
        folder: &Path,
        file: &str,
        digest: Digest,
        limits: ScanLimits,
    ) -> Result<Self, ReadError> {
        let (files, place) = Files::of_skill(folder, file, limits)?;
        let listing = files.resources(&place, ResourceScope::Recursive)?;
        let text = files.read_skill(Path::new(file))?;
        let actual = Digest::of(&text);
        if actual != digest {
            return Err(ReadError::ContentChanged { expected: digest, actual });
        }
        let read =
            |resource: &Resource| files.read_resource(&place, &resource.path).map(Cow::Owned);
        Self::of_files(&listing, (file, place.executable, &text), read)
    }

    /// The digest of listed files, and of a text with its path and exec bit.
    pub(crate) fn of_files<'a>(
        listing: &ResourceListing,
        (file, executable, text): (&str, bool, &[u8]),
        read: impl Fn(&Resource) -> Result<Cow<'a, [u8]>, ReadError>,
    ) -> Result<Self, ReadError> {
        let mut hasher = TreeHasher::default();
        for (path, resource) in in_order(listing, file)? {
            match resource {
                None => hasher.add(path, executable, text),
                Some(resource) => hasher.add(path, resource.executable, &read(resource)?),
            }
        }
        Ok(hasher.finish())
    }

    /// The digest of listed files of any source, and of a skill's text.
    pub(crate) async fn of_source<S: Source + ?Sized>(
        source: &S,
        skill: &FoundSkill,
        text: &[u8],
        listing: &ResourceListing,
    ) -> Result<Self, ReadError> {
        let mut hasher = TreeHasher::default();
        for (path, resource) in in_order(listing, skill.file)? {
            match resource {
                None => hasher.add(path, skill.executable, text),
                Some(resource) => {
                    let content = source.read_resource(skill, &resource.path).await?;
                    hasher.add(path, resource.executable, &content);
                }
            }
        }
        Ok(hasher.finish())
    }
}

/// The files of a skill in the order of their paths' bytes, its own text as `None`. If one cannot
/// be counted, there is no order.
fn in_order<'a>(
    listing: &'a ResourceListing,
    own_file: &'a str,
) -> Result<Vec<(&'a str, Option<&'a Resource>)>, ReadError> {
    listing.check_whole()?;
    let resources = listing.resources.iter();
    let mut paths: Vec<(&str, Option<&Resource>)> =
        resources.map(|resource| (resource.path.as_str(), Some(resource))).collect();
    paths.push((own_file, None));
    paths.sort_unstable_by_key(|(path, _)| path.as_bytes());
    Ok(paths)
}

/// Takes files in the order of their paths' bytes.
#[derive(Default)]
struct TreeHasher(Sha256);

impl TreeHasher {
    fn add(&mut self, path: &str, executable: bool, content: &[u8]) {
        self.0.update(path.as_bytes());
        self.0.update(if executable { b"\0x\0" } else { b"\0-\0" });
        self.0.update(content.len().to_string().as_bytes());
        self.0.update(b"\0");
        self.0.update(content);
    }

    fn finish(self) -> TreeDigest {
        TreeDigest(Digest::from_bytes(self.0.finalize().into()))
    }
}

impl fmt::Display for TreeDigest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "v1:{}", self.0.hex())
    }
}

impl fmt::Debug for TreeDigest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl Serialize for TreeDigest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TreeDigest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        let hex = text.strip_prefix("v1:").ok_or_else(|| {
            serde::de::Error::custom("not a tree digest: expected `v1:` and 64 hexadecimal digits")
        })?;
        hex.parse().map(Self).map_err(serde::de::Error::custom)
    }
}

impl CatalogSkill {
    /// The digest of all files of the skill as they are now. Links that lead elsewhere, special
    /// files and the folders of version control are no content; if a file cannot be counted, there
    /// is no digest.
    pub async fn tree_digest(&self) -> Result<TreeDigest, ReadError> {
        self.whole().await?.files?.tree_digest
    }
}
