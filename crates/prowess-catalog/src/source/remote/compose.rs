//! Makes one tree of the skills that an index offers.

use std::collections::BTreeMap;
use std::fs::{self, File};

use prowess_format::Digest;
use url::Url;

use super::Fetching;
use super::cache::{NewTree, OpenTree};
use super::error::RemoteError;
use super::fetch::{Answer, Fetcher, Most, Validators};
use super::index::{self, Content, Index, IndexFile, IndexSkill};
use super::manifest::Manifest;
use super::record::{Part, Record, now};
use super::update::read_whole;
use crate::archive::{
    Admission, ArchiveError, ArchiveKind, Executable, Unpacked, UnpackedFile, Writer,
};
use crate::beneath::ResourcePath;
use crate::remote_limits::RemoteLimits;

/// The tree so far.
#[derive(Default)]
struct Composed {
    unpacked: Unpacked,
    parts: BTreeMap<String, Part>,
    problems: Vec<String>,
}

impl Composed {
    /// The limits that the next skill has: all skills together have one.
    fn left(&self, limits: &RemoteLimits) -> RemoteLimits {
        limits
            .with_total_bytes(limits.total_bytes.saturating_sub(self.unpacked.bytes))
            .with_entries(limits.entries.saturating_sub(self.unpacked.entries + 1))
    }

    fn add(&mut self, name: &str, part: Part, skill: Vec<UnpackedFile>, totals: (u64, usize)) {
        self.unpacked.bytes += totals.0;
        self.unpacked.entries += totals.1 + 1;
        self.unpacked.files.extend(skill);
        self.parts.insert(name.to_owned(), part);
    }
}

impl Fetching {
    /// Fetches the first index that is there, and the skills that it offers. A skill that cannot be
    /// had stays what it was, or is left out; the others are there.
    pub(super) fn update_index(
        &self,
        fetcher: &Fetcher,
        urls: &[Url],
        mut old: Option<(Record, OpenTree)>,
    ) -> Result<(Record, OpenTree), RemoteError> {
        let new = self.cache.begin()?;
        let mut refused = None;
        for url in urls {
            // Only the server that said it can say whether it has changed; and what could not be
            // had then is tried again.
            let known = old.as_ref().filter(|(record, _)| {
                record.url.as_deref() == Some(url.as_str()) && record.problems.is_empty()
            });
            let known = known.map(|(record, _)| record.validators.clone()).unwrap_or_default();
            let most = Most { limit: "index_bytes", bytes: self.limits.index_bytes };
            match (self.download(fetcher, url, &known, most, &new), old) {
                (Ok(Answer::NotModified), Some((record, tree))) => {
                    return Ok((Record { checked: now(), failed: None, ..record }, tree));
                }
                (Ok(Answer::NotModified), None) => {
                    return Err(RemoteError::Status { url: url.to_string(), status: 304 });
                }
                (Ok(Answer::Content { digest, validators }), old) => {
                    self.verify(digest)?;
                    let (mut record, tree) =
                        self.compose(fetcher, url, digest, new, old.as_ref())?;
                    record.validators = validators;
                    return Ok((record, tree));
                }
                (Err(error @ RemoteError::Status { status: 404 | 410, .. }), before) => {
                    refused.get_or_insert(error);
                    old = before;
                }
                (Err(error), _) => return Err(error),
            }
        }
        let url = urls.first().map(Url::to_string).unwrap_or_default();
        Err(refused.unwrap_or(RemoteError::Index { url, why: "there is none".to_owned() }))
    }

    fn compose(
        &self,
        fetcher: &Fetcher,
        url: &Url,
        digest: Digest,
        new: NewTree,
        old: Option<&(Record, OpenTree)>,
    ) -> Result<(Record, OpenTree), RemoteError> {
        let unusable = |why: String| RemoteError::Index { url: url.to_string(), why };
        let text = read_whole(&new.payload())?;
        let index = index::parse(&text, url, self.limits.index_skills, &self.origins);
        let Index { skills, problems } = &index.map_err(|why| unusable(why.to_string()))?;
        if self.location.pin().is_some() && !skills.iter().all(IndexSkill::is_verified) {
            let why = "it has no digests, so that pinning it pins nothing".to_owned();
            return Err(unusable(why));
        }
        let mut composed = Composed { problems: problems.clone(), ..Composed::default() };
        if skills.iter().any(|skill| !skill.is_verified()) {
            let problem = "the index has no digests: what is fetched cannot be verified";
            composed.problems.push(problem.to_owned());
        }
        for skill in skills {
            let limits = composed.left(&self.limits);
            let fetched = self.skill(fetcher, skill, &new, old, &limits);
            let (part, unpacked) = match fetched {
                Ok(fetched) => fetched,
                Err(error) => {
                    let folder = new.files().join(&skill.name);
                    let _ = fs::remove_dir_all(&folder);
                    let before = old.and_then(|old| {
                        let part = *old.0.parts.get(&skill.name)?;
                        Some((part, self.copy(&skill.name, &new, &old.1, &limits).ok()?))
                    });
                    let name = &skill.name;
                    let kept = if before.is_some() { "stays as it was" } else { "is left out" };
                    composed.problems.push(format!("'{name}' {kept}: {error}"));
                    match before {
                        Some(before) => before,
                        None => continue,
                    }
                }
            };
            let totals = (unpacked.bytes, unpacked.entries);
            match in_folder(&skill.name, unpacked) {
                Ok(files) => composed.add(&skill.name, part, files, totals),
                Err(error) => {
                    let _ = fs::remove_dir_all(new.files().join(&skill.name));
                    composed.problems.push(format!("'{}' is left out: {error}", skill.name));
                }
            }
        }
        let Composed { mut unpacked, parts, problems } = composed;
        if parts.is_empty() && !skills.is_empty() {
            return Err(unusable(problems.join("; ")));
        }
        unpacked.files.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        let manifest = Manifest::of(&unpacked, 0);
        let id = format!("{}.index", manifest.digest().hex());
        let tree = match self.cache.find(&id)?.filter(OpenTree::is_whole) {
            Some(tree) => tree,
            None => self.cache.install(new, &id, manifest)?,
        };
        let record = self.record(digest, &tree);
        Ok((Record { url: Some(url.to_string()), parts, problems, ..record }, tree))
    }

    /// One skill, into its folder.
    fn skill(
        &self,
        fetcher: &Fetcher,
        skill: &IndexSkill,
        new: &NewTree,
        old: Option<&(Record, OpenTree)>,
        limits: &RemoteLimits,
    ) -> Result<(Part, Unpacked), RemoteError> {
        let name = &skill.name;
        match &skill.content {
            Content::Artifact { url, digest, kind } => {
                let part = Part { digest: *digest, kind: *kind };
                let known = old.filter(|(record, _)| record.parts.get(name) == Some(&part));
                if let Some((_, tree)) = known
                    && let Ok(copied) = self.copy(name, new, tree, limits)
                {
                    return Ok((part, copied));
                }
                let actual = self.fetch_one(fetcher, url, new)?;
                if actual != *digest {
                    return Err(RemoteError::Digest { expected: *digest, actual });
                }
                let folder = make_folder(new, name)?;
                let path = new.payload();
                let payload = File::open(&path).map_err(RemoteError::io(&path))?;
                let unpacked = self.unpack(&payload, *kind, &folder, limits)?;
                let has_text = unpacked.files.iter().any(|file| file.path.as_str() == "SKILL.md");
                match has_text {
                    true => Ok((part, unpacked)),
                    false => {
                        let why = format!("the archive of '{name}' has no SKILL.md at its root");
                        Err(RemoteError::Index { url: url.to_string(), why })
                    }
                }
            }
            Content::Files(files) => {
                let unpacked = self.files(fetcher, name, files, new, limits)?;
                // Without digests there is nothing to compare: it is fetched again each time.
                let digest = Manifest::of(&unpacked, 0).digest();
                Ok((Part { digest, kind: ArchiveKind::SkillFile }, unpacked))
            }
        }
    }

    fn files(
        &self,
        fetcher: &Fetcher,
        name: &str,
        files: &[IndexFile],
        new: &NewTree,
        limits: &RemoteLimits,
    ) -> Result<Unpacked, RemoteError> {
        if files.len() > limits.entries {
            let (limit, most) = ("entries", limits.entries as u64);
            return Err(ArchiveError::Limit { limit, most }.into());
        }
        let folder = make_folder(new, name)?;
        let mut progress = |_| {};
        let mut writer = Writer::new(&folder, Admission::new(*limits, u64::MAX), &mut progress);
        for file in files {
            let actual = self.fetch_one(fetcher, &file.url, new)?;
            if let Some(expected) = file.digest.filter(|expected| *expected != actual) {
                return Err(RemoteError::Digest { expected, actual });
            }
            let path = new.payload();
            let mut payload = File::open(&path).map_err(RemoteError::io(&path))?;
            let bytes = payload.metadata().map_err(RemoteError::io(&path))?.len();
            writer.file(file.path.as_str(), bytes, Executable::No, &mut payload)?;
        }
        Ok(writer.finish())
    }

    fn fetch_one(
        &self,
        fetcher: &Fetcher,
        url: &Url,
        new: &NewTree,
    ) -> Result<Digest, RemoteError> {
        let most = Most { limit: "download_bytes", bytes: self.limits.download_bytes };
        match self.download(fetcher, url, &Validators::default(), most, new)? {
            Answer::Content { digest, .. } => Ok(digest),
            Answer::NotModified => Err(RemoteError::Status { url: url.to_string(), status: 304 }),
        }
    }

    /// Takes a skill over from the tree before, if it is still what it was.
    fn copy(
        &self,
        name: &str,
        new: &NewTree,
        old: &OpenTree,
        limits: &RemoteLimits,
    ) -> Result<Unpacked, RemoteError> {
        let folder = make_folder(new, name)?;
        let mut progress = |_| {};
        let mut writer = Writer::new(&folder, Admission::new(*limits, u64::MAX), &mut progress);
        let unknown = || ArchiveError::Damaged { cause: std::io::ErrorKind::NotFound.into() };
        for file in old.manifest.below(name).ok_or_else(unknown)? {
            let path = old.files.join(name).join(file.path.as_str());
            let mut content = File::open(&path).map_err(RemoteError::io(&path))?;
            let bytes = content.metadata().map_err(RemoteError::io(&path))?.len();
            let actual = writer.file(file.path.as_str(), bytes, file.executable, &mut content);
            let actual = actual.map_err(RemoteError::from);
            if !matches!(&actual, Ok(actual) if *actual == file.digest) {
                let _ = fs::remove_dir_all(&folder);
                let expected = file.digest;
                return Err(actual.map_or_else(
                    |error| error,
                    |actual| RemoteError::Digest { expected, actual },
                ));
            }
        }
        Ok(writer.finish())
    }
}

/// Files of a skill, from the folder above it.
fn in_folder(name: &str, skill: Unpacked) -> Result<Vec<UnpackedFile>, ArchiveError> {
    let files = skill.files.into_iter().map(|file| {
        let text = format!("{name}/{}", file.path);
        let path = ResourcePath::parse(&text);
        let path = path.map_err(|cause| ArchiveError::Path { name: text, cause })?;
        Ok(UnpackedFile { path, ..file })
    });
    files.collect()
}

fn make_folder(new: &NewTree, name: &str) -> Result<std::path::PathBuf, RemoteError> {
    let folder = new.files().join(name);
    fs::create_dir_all(&folder).map_err(RemoteError::io(&folder))?;
    Ok(folder)
}
