//! Brings a source up to date: fetch, verify, unpack, install, point.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use prowess_format::Digest;
use rustix::fs::OFlags;
use sha2::{Digest as _, Sha256};
use url::Url;

use super::cache::{NewTree, OpenTree};
use super::error::RemoteError;
use super::fetch::{Answer, Fetcher, Most, Validators};
use super::location::Place;
use super::manifest::Manifest;
use super::record::{FileStamp, Record, now};
use super::{Fetching, Progress, Stage};
use crate::archive::{ArchiveKind, unpack};

/// Whether what is there is checked file by file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Check {
    /// It is; what is damaged is fetched again.
    Files,
    /// It is not.
    Nothing,
}

impl Fetching {
    /// Asks the source, and brings what is new. `old` is what was fetched before.
    pub(super) fn update(
        &self,
        old: Option<(Record, OpenTree)>,
        check: Check,
    ) -> Result<(Record, OpenTree), RemoteError> {
        let old = old.filter(|(_, tree)| check == Check::Nothing || tree.is_whole());
        let updated = match &self.location.place {
            Place::File(path) => self.update_file(path),
            Place::Url(url) => {
                let fetcher = self.fetcher()?;
                self.update_url(&fetcher, url, old)
            }
            Place::Index(urls) => {
                let fetcher = self.fetcher()?;
                self.update_index(&fetcher, urls, old)
            }
        }?;
        self.cache.point(&self.location, &updated.0)?;
        Ok(updated)
    }

    fn fetcher(&self) -> Result<Fetcher, RemoteError> {
        Fetcher::new(self.limits, self.reach.clone(), self.lookup.clone())
    }

    /// Fetches a URL into the payload of a new tree.
    pub(super) fn download(
        &self,
        fetcher: &Fetcher,
        url: &Url,
        known: &Validators,
        most: Most,
        new: &NewTree,
    ) -> Result<Answer, RemoteError> {
        let path = new.payload();
        let mut file = File::create(&path).map_err(RemoteError::io(&path))?;
        let mut told = 0;
        let mut progress = |done: u64, total: Option<u64>| {
            // Not for every packet.
            if done >= told + REPORT || Some(done) == total {
                told = done;
                (self.progress)(&Progress { stage: Stage::Download, done, total });
            }
        };
        fetcher.get(url, known, most, &mut file, &mut progress)
    }

    fn update_url(
        &self,
        fetcher: &Fetcher,
        url: &Url,
        old: Option<(Record, OpenTree)>,
    ) -> Result<(Record, OpenTree), RemoteError> {
        let new = self.cache.begin()?;
        let known = old.as_ref().map(|(record, _)| record.validators.clone()).unwrap_or_default();
        let most = Most { limit: "download_bytes", bytes: self.limits.download_bytes };
        match (self.download(fetcher, url, &known, most, &new)?, old) {
            (Answer::NotModified, Some((record, tree))) => {
                Ok((Record { checked: now(), failed: None, ..record }, tree))
            }
            (Answer::NotModified, None) => {
                Err(RemoteError::Status { url: url.to_string(), status: 304 })
            }
            (Answer::Content { digest, validators }, _) => {
                self.verify(digest)?;
                let (mut record, tree) = self.unpack_payload(new, digest)?;
                record.validators = validators;
                Ok((record, tree))
            }
        }
    }

    /// Copies a file into the cache: what is verified is what is unpacked, whatever happens to the
    /// file meanwhile.
    fn update_file(&self, path: &Path) -> Result<(Record, OpenTree), RemoteError> {
        let failed = || RemoteError::io(path);
        // Never waits, not even for a named pipe.
        let mut file = File::options()
            .read(true)
            .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
            .open(path)
            .map_err(failed())?;
        let metadata = file.metadata().map_err(failed())?;
        if !metadata.is_file() {
            return Err(RemoteError::UnknownKind { what: path.display().to_string() });
        }
        let most = self.limits.download_bytes;
        let too_large = || RemoteError::TooLarge {
            url: path.display().to_string(),
            limit: "download_bytes",
            most,
        };
        if metadata.len() > most {
            return Err(too_large());
        }
        let new = self.cache.begin()?;
        let mut payload = File::create(new.payload()).map_err(RemoteError::io(new.payload()))?;
        let mut hasher = Sha256::new();
        let mut buffer = vec![0; 64 << 10];
        let mut bytes = 0;
        loop {
            let read = file.read(&mut buffer).map_err(failed())?;
            if read == 0 {
                break;
            }
            bytes += read as u64;
            if bytes > most {
                return Err(too_large());
            }
            hasher.update(&buffer[..read]);
            payload.write_all(&buffer[..read]).map_err(RemoteError::io(new.payload()))?;
        }
        let digest = Digest::from_bytes(hasher.finalize().into());
        self.verify(digest)?;
        let (mut record, tree) = self.unpack_payload(new, digest)?;
        record.stamp = FileStamp::settled(&metadata);
        Ok((record, tree))
    }

    /// Whether content is the one that the location wants.
    pub(super) fn verify(&self, actual: Digest) -> Result<(), RemoteError> {
        match self.location.pin() {
            Some(expected) if expected != actual => Err(RemoteError::Digest { expected, actual }),
            _ => Ok(()),
        }
    }

    /// Makes a tree of the payload, unless there is one already.
    fn unpack_payload(
        &self,
        new: NewTree,
        digest: Digest,
    ) -> Result<(Record, OpenTree), RemoteError> {
        let path = new.payload();
        let failed = || RemoteError::io(&path);
        let payload = File::open(&path).map_err(failed())?;
        let bytes = payload.metadata().map_err(failed())?.len();
        let mut head = Vec::new();
        (&payload).take(ArchiveKind::HEAD as u64).read_to_end(&mut head).map_err(failed())?;
        (&payload).seek(SeekFrom::Start(0)).map_err(failed())?;
        let kind = ArchiveKind::of(&self.location.file_name(), &head)
            .ok_or_else(|| RemoteError::UnknownKind { what: self.location.shown() })?;
        let id = format!("{}.{}", digest.hex(), kind.as_str());
        let there = self.cache.find(&id)?.filter(OpenTree::is_whole);
        let tree = match there {
            Some(tree) => {
                tree.manifest.check(&self.limits)?;
                tree
            }
            None => {
                let unpacked = self.unpack(&payload, kind, &new.files(), &self.limits)?;
                self.cache.install(new, &id, Manifest::of(&unpacked, bytes))?
            }
        };
        Ok((self.record(digest, &tree), tree))
    }

    pub(super) fn unpack(
        &self,
        payload: &File,
        kind: ArchiveKind,
        into: &Path,
        limits: &crate::RemoteLimits,
    ) -> Result<crate::Unpacked, RemoteError> {
        let mut told = 0;
        let mut progress = |done: u64| {
            if done >= told + REPORT {
                told = done;
                (self.progress)(&Progress { stage: Stage::Unpack, done, total: None });
            }
        };
        Ok(unpack(payload, kind, into, limits, &mut progress)?)
    }

    pub(super) fn record(&self, digest: Digest, tree: &OpenTree) -> Record {
        Record {
            location: self.location.key(),
            digest,
            tree: tree.id.clone(),
            manifest: tree.manifest.digest(),
            checked: now(),
            validators: Validators::default(),
            url: None,
            stamp: None,
            failed: None,
            parts: BTreeMap::new(),
            problems: Vec::new(),
        }
    }
}

/// Progress is told after so many bytes.
const REPORT: u64 = 256 << 10;

/// Reads a file of the cache whole.
pub(super) fn read_whole(path: &Path) -> Result<Vec<u8>, RemoteError> {
    fs::read(path).map_err(RemoteError::io(path))
}
