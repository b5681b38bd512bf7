//! Artifacts in files.
//!
//! ```text
//! <root>/<app>/<user>/session_<session>/<name>/0, 1, 2 …
//! <root>/<app>/<user>/user/<name>/0, 1, 2 …
//! ```
//!
//! Every part is a key of what it stands for. A version is one file: a line of JSON that says what
//! it is, then the bytes. It is written beside its place, brought to the disk, and given the first
//! number that nobody has, which no file system does for two savers at once.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::FlockOperation;
use uuid::Uuid;

use super::header::{DEFAULT_MAX_BYTES, Header, MAX_HEADER_BYTES, check_size};
use super::name::{check_name, is_of_user};
use super::{Artifact, ArtifactError, ArtifactFuture, ArtifactScope, ArtifactStore};
use crate::key::key;
use crate::locks::hold;
use crate::workspace::shown;

/// How the names of files begin that are not whole yet.
const UNFINISHED: &str = ".new-";
/// How the names of folders begin that are being removed.
const REMOVED: &str = ".old-";

/// Artifacts in files below a folder. Any number of processes may use the same folder.
///
/// What was acknowledged is on the disk; what a crash interrupts leaves no version.
#[derive(Clone, Debug)]
pub struct FileArtifacts {
    inner: Arc<Files>,
}

#[derive(Clone, Debug)]
struct Files {
    root: PathBuf,
    max_bytes: u64,
}

impl FileArtifacts {
    /// Artifacts below a folder, which is made when it is needed.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { inner: Arc::new(Files { root: root.into(), max_bytes: DEFAULT_MAX_BYTES }) }
    }

    /// The most bytes of one artifact, `max_artifact_bytes` (64 MiB).
    pub fn with_max_bytes(self, max_bytes: u64) -> Self {
        Self { inner: Arc::new(Files { max_bytes, ..(*self.inner).clone() }) }
    }

    /// Does on a thread that may block what is to be done.
    fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Files) -> Result<T, ArtifactError> + Send + 'static,
    ) -> ArtifactFuture<'static, T> {
        let inner = self.inner.clone();
        Box::pin(async move {
            let done = tokio::task::spawn_blocking(move || work(&inner)).await;
            done.unwrap_or_else(|error| {
                Err(ArtifactError::Io {
                    doing: "wait for the store".into(),
                    cause: io::Error::other(error),
                })
            })
        })
    }
}

impl ArtifactStore for FileArtifacts {
    fn save<'a>(
        &'a self,
        scope: &'a ArtifactScope,
        name: &'a str,
        mime_type: &'a str,
        bytes: Arc<[u8]>,
    ) -> ArtifactFuture<'a, u64> {
        let (scope, name, mime_type) = (scope.clone(), name.to_owned(), mime_type.to_owned());
        self.run(move |files| files.save(&scope, &name, &mime_type, &bytes))
    }

    fn save_file<'a>(
        &'a self,
        scope: &'a ArtifactScope,
        name: &'a str,
        mime_type: &'a str,
        mut file: File,
    ) -> ArtifactFuture<'a, u64> {
        let (scope, name, mime_type) = (scope.clone(), name.to_owned(), mime_type.to_owned());
        self.run(move |files| files.save_file(&scope, &name, &mime_type, &mut file))
    }

    fn load<'a>(
        &'a self,
        scope: &'a ArtifactScope,
        name: &'a str,
        version: Option<u64>,
    ) -> ArtifactFuture<'a, Option<Artifact>> {
        let (scope, name) = (scope.clone(), name.to_owned());
        self.run(move |files| files.load(&scope, &name, version))
    }

    fn list<'a>(&'a self, scope: &'a ArtifactScope) -> ArtifactFuture<'a, Vec<String>> {
        let scope = scope.clone();
        self.run(move |files| {
            files.list(&scope).map_err(ArtifactError::io("list the artifacts of a session"))
        })
    }

    fn versions<'a>(
        &'a self,
        scope: &'a ArtifactScope,
        name: &'a str,
    ) -> ArtifactFuture<'a, Vec<u64>> {
        let (scope, name) = (scope.clone(), name.to_owned());
        self.run(move |files| {
            check_name(&name)?;
            versions(&files.folder(&scope, &name))
                .map_err(ArtifactError::io(format!("list the versions of '{name}'")))
        })
    }

    fn delete<'a>(&'a self, scope: &'a ArtifactScope, name: &'a str) -> ArtifactFuture<'a, bool> {
        let (scope, name) = (scope.clone(), name.to_owned());
        self.run(move |files| {
            check_name(&name)?;
            delete(&files.folder(&scope, &name))
                .map_err(ArtifactError::io(format!("delete the artifact '{name}'")))
        })
    }
}

impl Files {
    fn user_folder(&self, scope: &ArtifactScope) -> PathBuf {
        self.root.join(key(&scope.app, &[&scope.app])).join(key(&scope.user, &[&scope.user]))
    }

    fn session_folder(&self, scope: &ArtifactScope) -> PathBuf {
        let session = key(&scope.session, &[&scope.session]);
        self.user_folder(scope).join(format!("session_{session}"))
    }

    /// The folder of all versions of a name.
    fn folder(&self, scope: &ArtifactScope, name: &str) -> PathBuf {
        let folder = if is_of_user(name) {
            self.user_folder(scope).join("user")
        } else {
            self.session_folder(scope)
        };
        folder.join(key(name, &[name]))
    }

    fn save(
        &self,
        scope: &ArtifactScope,
        name: &str,
        mime_type: &str,
        bytes: &[u8],
    ) -> Result<u64, ArtifactError> {
        check_name(name)?;
        check_size(name, bytes.len() as u64, self.max_bytes)?;
        let header = Header::of(name, mime_type, bytes);
        self.save_with(scope, &header, |file| file.write_all(bytes))
    }

    /// The same for what is in a file, which is read twice and never held.
    fn save_file(
        &self,
        scope: &ArtifactScope,
        name: &str,
        mime_type: &str,
        source: &mut File,
    ) -> Result<u64, ArtifactError> {
        check_name(name)?;
        let failed = || ArtifactError::io(format!("save the artifact '{name}'"));
        let begin = source.stream_position().map_err(failed())?;
        let mut most = source.try_clone().map_err(failed())?.take(self.max_bytes.saturating_add(1));
        let header = Header::read_from(name, mime_type, &mut most).map_err(failed())?;
        check_size(name, header.size_bytes, self.max_bytes)?;
        self.save_with(scope, &header, |file| {
            source.seek(SeekFrom::Start(begin))?;
            match io::copy(&mut (&mut *source).take(header.size_bytes), file)? {
                copied if copied == header.size_bytes => Ok(()),
                _ => Err(io::ErrorKind::UnexpectedEof.into()),
            }
        })
    }

    fn save_with(
        &self,
        scope: &ArtifactScope,
        header: &Header,
        mut write: impl FnMut(&mut File) -> io::Result<()>,
    ) -> Result<u64, ArtifactError> {
        let name = &header.name;
        let folder = self.folder(scope, name);
        let failed = || ArtifactError::io(format!("save the artifact '{name}'"));
        let line = header.line().map_err(failed())?;
        loop {
            match save(&self.root, &folder, &line, &mut write) {
                // The name is being deleted: then this is saved after that.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                result => return result.map_err(failed()),
            }
        }
    }

    fn load(
        &self,
        scope: &ArtifactScope,
        name: &str,
        version: Option<u64>,
    ) -> Result<Option<Artifact>, ArtifactError> {
        check_name(name)?;
        let failed = || ArtifactError::io(format!("load the artifact '{name}'"));
        let folder = self.folder(scope, name);
        let newest = || versions(&folder).map(|versions| versions.last().copied());
        let version = version.map_or_else(newest, |version| Ok(Some(version)));
        let Some(version) = version.map_err(failed())? else { return Ok(None) };
        let file = match open(&folder.join(version.to_string())) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file.map_err(failed())?,
        };
        let damaged = || ArtifactError::Damaged { name: shown(name), version };
        let mut file = BufReader::new(file);
        let header = read_header(&mut file).map_err(failed())?.ok_or_else(damaged)?;
        let mut bytes = Vec::new();
        let most = header.size_bytes.saturating_add(1);
        file.take(most).read_to_end(&mut bytes).map_err(failed())?;
        header.artifact(name, version, &bytes).map(Some).ok_or_else(damaged)
    }

    fn list(&self, scope: &ArtifactScope) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for folder in [self.session_folder(scope), self.user_folder(scope).join("user")] {
            for entry in read_dir(&folder)? {
                let folder = folder.join(entry?.file_name());
                // What is removed meanwhile, or was never finished, is not there.
                let Some(version) = versions(&folder)?.last().copied() else { continue };
                let Ok(file) = open(&folder.join(version.to_string())) else { continue };
                if let Some(header) = read_header(&mut BufReader::new(file))? {
                    names.push(header.name);
                }
            }
        }
        names.sort_unstable();
        Ok(names)
    }
}

/// Writes a version; `NotFound` if its folder has been removed meanwhile.
fn save(
    root: &Path,
    folder: &Path,
    line: &[u8],
    write: &mut impl FnMut(&mut File) -> io::Result<()>,
) -> io::Result<u64> {
    make_folders(root, folder)?;
    sweep(folder)?;
    let unfinished = folder.join(format!("{UNFINISHED}{}", Uuid::now_v7().simple()));
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(&unfinished)?;
    // Whoever finds it knows by the lock that it will be finished.
    hold(&file, FlockOperation::LockExclusive)?;
    let written = file
        .write_all(line)
        .and_then(|()| write(&mut file))
        .and_then(|()| file.sync_all())
        .and_then(|()| settle(folder, &unfinished));
    // By its other name it stays.
    let _ = fs::remove_file(&unfinished);
    let version = written?;
    File::open(folder)?.sync_all()?;
    Ok(version)
}

/// Gives a file the first number that is free.
fn settle(folder: &Path, unfinished: &Path) -> io::Result<u64> {
    let mut version = versions(folder)?.last().map_or(0, |last| last + 1);
    loop {
        match fs::hard_link(unfinished, folder.join(version.to_string())) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => version += 1,
            result => return result.map(|()| version),
        }
    }
}

/// Removes what savers that are no more have left.
fn sweep(folder: &Path) -> io::Result<()> {
    for entry in read_dir(folder)? {
        let entry = entry?;
        if !entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
            continue;
        }
        let is_abandoned =
            |file: File| hold(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
        if open(&entry.path()).is_ok_and(is_abandoned) {
            let _ = fs::remove_file(entry.path());
        }
    }
    Ok(())
}

/// Makes the folders below the root that are missing, and brings their names to the disk.
fn make_folders(root: &Path, folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(root)?;
    let mut builder = fs::DirBuilder::new();
    builder.mode(0o700);
    let below = folder.strip_prefix(root).map_err(io::Error::other)?;
    let mut path = root.to_owned();
    for name in below {
        let above = path.clone();
        path.push(name);
        match builder.create(&path) {
            Ok(()) => File::open(above)?.sync_all()?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Removes all versions: the folder is gone at once, then what it holds. A version that is saved
/// into it meanwhile is removed too.
fn delete(folder: &Path) -> io::Result<bool> {
    let had_any = !versions(folder)?.is_empty();
    let removed = folder.with_file_name(format!("{REMOVED}{}", Uuid::now_v7().simple()));
    match fs::rename(folder, &removed) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        result => result?,
    }
    let Some(above) = folder.parent() else { return Ok(had_any) };
    // What a crash left is removed too.
    for entry in read_dir(above)? {
        let name = entry?.file_name();
        if name.to_string_lossy().starts_with(REMOVED) {
            remove_all(&above.join(name))?;
        }
    }
    File::open(above)?.sync_all()?;
    Ok(had_any)
}

fn remove_all(folder: &Path) -> io::Result<()> {
    loop {
        match fs::remove_dir_all(folder) {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            result => return result,
        }
    }
}

/// The versions in a folder, in order; none if there is no folder.
fn versions(folder: &Path) -> io::Result<Vec<u64>> {
    let mut versions = Vec::new();
    for entry in read_dir(folder)? {
        let name = entry?.file_name();
        versions.extend(name.to_str().and_then(version_of));
    }
    versions.sort_unstable();
    Ok(versions)
}

/// A number as we write it.
fn version_of(name: &str) -> Option<u64> {
    name.parse().ok().filter(|version: &u64| version.to_string() == name)
}

/// The entries of a folder; none if there is no folder, or if it is being removed.
fn read_dir(folder: &Path) -> io::Result<impl Iterator<Item = io::Result<fs::DirEntry>>> {
    let is_removed =
        folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with(REMOVED));
    let entries = match fs::read_dir(folder) {
        _ if is_removed => None,
        Ok(entries) => Some(entries),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    Ok(entries.into_iter().flatten())
}

fn open(path: &Path) -> io::Result<File> {
    let flags = (rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK).bits();
    File::options().read(true).custom_flags(flags.cast_signed()).open(path)
}

/// Reads what a version is; `None` if that cannot be understood.
fn read_header(file: &mut BufReader<File>) -> io::Result<Option<Header>> {
    let mut line = Vec::new();
    file.by_ref().take(MAX_HEADER_BYTES).read_until(b'\n', &mut line)?;
    Ok(Header::read(&line))
}
