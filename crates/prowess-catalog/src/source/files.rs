//! The files of a skill in a folder.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::Dir;
use rustix::io::Errno;

use super::{SkillFiles, Trust, WholeSkill};
use crate::beneath::{Folder, ResourcePath, Stamp};
use crate::contents::{Gathering, SkillContents, Stamps};
use crate::error::ReadError;
use crate::found::FoundSkill;
use crate::limits::ScanLimits;
use crate::read::read_limited;
use crate::resource::{
    LeftOut, LeftOutReason, Resource, ResourceKind, ResourceListing, ResourceScope,
};
use crate::scan::{Nested, SKIPPED_FOLDERS, trusted_until};
use crate::tree_digest::TreeDigest;

/// Contents of so many bytes are kept while a skill is listed, so that each file is opened once.
const CONTENTS_AT_HAND: u64 = 8 << 20;

/// Where a skill was found, and the file that proves that it is still the same.
pub(crate) struct Place {
    folder: PathBuf,
    file: Box<str>,
    /// `None` if the text is not in the folder, so that nothing is proven by it.
    identity: Option<(u64, u64)>,
    pub(crate) executable: bool,
}

impl Place {
    pub(crate) fn of(skill: &FoundSkill) -> Self {
        let folder = skill.folder.to_path_buf();
        let FoundSkill { file, identity, executable, .. } = *skill;
        Self { folder, file: file.into(), identity: Some(identity), executable }
    }

    /// The root itself, for a skill whose text is elsewhere.
    pub(super) fn without_text(file: &str) -> Self {
        Self { folder: PathBuf::new(), file: file.into(), identity: None, executable: false }
    }
}

/// Reads files below a root.
pub(crate) struct Files {
    pub(crate) root: Arc<Path>,
    pub(crate) limits: ScanLimits,
    pub(crate) nested: Nested,
    pub(crate) trust: Trust,
}

impl Files {
    /// The files of the skill whose folder is the root and whose text is `file`, trusted.
    pub(crate) fn of_skill(
        root: &Path,
        file: &str,
        limits: ScanLimits,
    ) -> Result<(Self, Place), ReadError> {
        let (nested, trust) = (Nested::default(), Trust::Trusted);
        let files = Self { root: root.into(), limits, nested, trust };
        let stamp = Folder::open(root).and_then(|root| root.stat(Path::new(file)));
        let stamp = stamp.map_err(|error| read_error(file, error))?;
        let (identity, executable) = (Some(stamp.identity()), stamp.is_executable());
        let place = Place { folder: PathBuf::new(), file: file.into(), identity, executable };
        Ok((files, place))
    }

    pub(crate) fn read_skill(&self, path: &Path) -> Result<Vec<u8>, ReadError> {
        let shown = path.display().to_string();
        let opened = Folder::open(&self.root).and_then(|root| root.open_file(path));
        self.read(opened, &shown, self.limits.file_bytes)
    }

    pub(crate) fn read_resource(
        &self,
        place: &Place,
        path: &ResourcePath,
    ) -> Result<Vec<u8>, ReadError> {
        // A SKILL.md may be a link; the skill's own text is never outside.
        if path.as_str() == &*place.file {
            return self.read_skill(&place.folder.join(&*place.file));
        }
        if path.as_str().split('/').any(is_version_control) {
            return Err(ReadError::NotFound { path: path.to_string() });
        }
        let folder = self.open_skill_folder(place)?;
        self.read(folder.open_beneath(path), path.as_str(), self.limits.resource_bytes)
    }

    fn read(
        &self,
        opened: io::Result<OwnedFd>,
        path: &str,
        limit: u64,
    ) -> Result<Vec<u8>, ReadError> {
        let failed = |error| read_error(path, error);
        let handle = opened.map_err(failed)?;
        let stamp = Stamp::of(&handle).map_err(failed)?;
        let shown = || path.to_owned();
        if !stamp.is_file() {
            return Err(ReadError::NotAFile { path: shown() });
        }
        if self.trust == Trust::Untrusted && stamp.has_other_names() {
            return Err(ReadError::HardLink { path: shown() });
        }
        let mut bytes = Vec::new();
        match read_limited(handle, &stamp, limit, &mut bytes) {
            Ok(()) => Ok(bytes),
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                Err(ReadError::TooLarge { path: shown(), limit })
            }
            Err(error) => Err(failed(error)),
        }
    }

    /// Opens the folder that the skill was found in. If it has been replaced, by a link to
    /// elsewhere for instance, then its `SKILL.md` is another file, and nothing is opened.
    fn open_skill_folder(&self, place: &Place) -> Result<Folder, ReadError> {
        let empty = place.folder.as_os_str().is_empty();
        let path = if empty { Path::new(".") } else { &place.folder };
        let folder = Folder::open(&self.root)
            .and_then(|root| root.open_folder(path))
            .map_err(|_| ReadError::Replaced)?;
        let Some(identity) = place.identity else { return Ok(folder) };
        match folder.stat(Path::new(&*place.file)) {
            Ok(stamp) if stamp.identity() == identity => Ok(folder),
            _ => Err(ReadError::Replaced),
        }
    }

    pub(crate) fn resources(
        &self,
        place: &Place,
        scope: ResourceScope,
    ) -> Result<ResourceListing, ReadError> {
        let folder = self.open_skill_folder(place)?;
        Ok(self.walk(&folder, place, scope, Looking::Names).0)
    }

    /// Lists a skill's files, and looks closer at them on the way if that is wanted.
    fn walk(
        &self,
        folder: &Folder,
        place: &Place,
        scope: ResourceScope,
        looking: Looking,
    ) -> (ResourceListing, Looking) {
        let mut walk = ResourceWalk {
            files: self,
            folder,
            own_file: &place.file,
            scope,
            found: BTreeMap::new(),
            left_out: Vec::new(),
            is_full: false,
            folders: Stamp::of(folder.handle()).iter().map(Stamp::identity).collect(),
            looking,
        };
        walk.names("", folder, 0);
        let ResourceWalk { mut left_out, found, looking, .. } = walk;
        left_out.sort_by(|a, b| a.path.cmp(&b.path));
        (ResourceListing { resources: found.into_values().collect(), left_out }, looking)
    }

    /// All of a skill in memory.
    pub(crate) fn all_contents(
        &self,
        place: &Place,
        limit: u64,
    ) -> Result<SkillContents, ReadError> {
        let text = self.read_skill(&place.folder.join(&*place.file))?;
        let folder = self.open_skill_folder(place)?;
        let (listing, _) = self.walk(&folder, place, ResourceScope::Recursive, Looking::Names);
        let own = (&*place.file, place.executable);
        let mut gathering = Gathering::new(own, text, &listing, limit)?;
        for Resource { path, executable, .. } in listing.resources {
            let bytes =
                self.read(folder.open_beneath(&path), path.as_str(), self.limits.resource_bytes)?;
            gathering.add(path, executable, bytes)?;
        }
        Ok(gathering.finish())
    }

    /// What a skill looks like from outside.
    pub(crate) fn stamp(&self, place: &Place) -> Option<String> {
        let grain = trusted_until();
        let folder = self.open_skill_folder(place).ok()?;
        let mut stamps = Stamps::default();
        stamps.add(&place.file, &folder.stat(Path::new(&*place.file)).ok()?);
        let looking = Looking::Stamps(stamps);
        let (listing, looked) = self.walk(&folder, place, ResourceScope::Recursive, looking);
        listing.check_whole().ok()?;
        match looked {
            Looking::Stamps(stamps) => stamps.finish(grain),
            _ => None,
        }
    }

    /// All of a skill at once; each file is opened once, unless the skill is large.
    pub(crate) fn whole(&self, place: &Place) -> Result<WholeSkill, ReadError> {
        let text = self.read_skill(&place.folder.join(&*place.file))?;
        let files = self.open_skill_folder(place).map(|folder| {
            let looking = Looking::Contents(Contents::default());
            let (listing, looked) = self.walk(&folder, place, ResourceScope::Recursive, looking);
            let contents = match looked {
                Looking::Contents(contents) => contents,
                _ => Contents::default(),
            };
            let read = |resource: &Resource| match contents.files.get(resource.path.as_str()) {
                Some(bytes) => Ok(std::borrow::Cow::Borrowed(bytes.as_slice())),
                None => {
                    let opened = folder.open_beneath(&resource.path);
                    let limit = self.limits.resource_bytes;
                    self.read(opened, resource.path.as_str(), limit).map(Into::into)
                }
            };
            let tree_digest =
                TreeDigest::of_files(&listing, (&place.file, place.executable, &text), read);
            SkillFiles { listing, tree_digest }
        });
        Ok(WholeSkill { text, files })
    }
}

/// Whether a folder of this name belongs to version control.
fn is_version_control(name: &str) -> bool {
    name != NODE_MODULES && SKIPPED_FOLDERS.contains(&name)
}

const NODE_MODULES: &str = "node_modules";

/// What the system said, in our words.
fn read_error(path: &str, error: io::Error) -> ReadError {
    let path = path.to_owned();
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NOENT | Errno::NOTDIR) => ReadError::NotFound { path },
        // A link that leaves the folder, or a link where none is allowed.
        Some(Errno::XDEV | Errno::LOOP) => ReadError::Outside { path },
        // A socket cannot be opened at all; a device without a driver neither.
        Some(Errno::NXIO | Errno::NODEV | Errno::ISDIR) => ReadError::NotAFile { path },
        _ => ReadError::Io { path, cause: error },
    }
}

/// Collects the resources of one skill.
struct ResourceWalk<'a> {
    files: &'a Files,
    folder: &'a Folder,
    /// The skill's own text, which is no resource.
    own_file: &'a str,
    scope: ResourceScope,
    found: BTreeMap<String, Resource>,
    left_out: Vec<LeftOut>,
    /// Whether the limit on resources was reached and reported.
    is_full: bool,
    /// The folders that were listed: links must not lead in circles.
    folders: HashSet<(u64, u64)>,
    looking: Looking,
}

/// How closely files are looked at while they are listed.
enum Looking {
    /// At no more than their names.
    Names,
    /// At what they look like from outside.
    Stamps(Stamps),
    /// At what they hold.
    Contents(Contents),
}

/// What files hold, as far as there is room for it.
#[derive(Default)]
struct Contents {
    files: BTreeMap<String, Vec<u8>>,
    bytes: u64,
}

impl Contents {
    fn add(&mut self, path: &str, handle: OwnedFd, stamp: &Stamp) {
        if self.bytes.saturating_add(stamp.bytes) > CONTENTS_AT_HAND {
            return;
        }
        let mut bytes = Vec::new();
        // What cannot be read is read again by whoever needs it, and reported there.
        if read_limited(handle, stamp, CONTENTS_AT_HAND, &mut bytes).is_ok() {
            self.bytes += stamp.bytes;
            self.files.insert(path.to_owned(), bytes);
        }
    }
}

impl ResourceWalk<'_> {
    /// Looks at all names in a folder whose path is `prefix`, with its slash.
    fn names(&mut self, prefix: &str, folder: &Folder, depth: usize) {
        let Ok(entries) = Dir::read_from(folder.handle()) else {
            return self.leave_out(prefix, LeftOutReason::Unreadable);
        };
        let most = self.files.limits.entries;
        let mut names: Vec<OsString> = entries
            .filter_map(Result::ok)
            .map(|entry| OsString::from_vec(entry.file_name().to_bytes().to_vec()))
            .filter(|name| name != "." && name != "..")
            .take(most.saturating_add(1))
            .collect();
        names.sort_unstable();
        if names.len() > most {
            names.truncate(most);
            self.leave_out(prefix, LeftOutReason::TooMany);
        }
        for name in names {
            let path = format!("{prefix}{}", name.to_string_lossy());
            match name.to_str().and_then(|_| ResourcePath::parse(&path).ok()) {
                Some(_) if path == self.own_file => {}
                Some(path) => self.name(&path, depth),
                None => self.leave_out(&path, LeftOutReason::Name),
            }
            if self.is_full {
                return;
            }
        }
    }

    fn name(&mut self, path: &ResourcePath, depth: usize) {
        let opened = self.folder.open_beneath(path);
        let opened = opened.and_then(|handle| Ok((Stamp::of(&handle)?, handle)));
        let (stamp, handle) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                let reason = match read_error(path.as_str(), error) {
                    ReadError::Outside { .. } => LeftOutReason::Outside,
                    ReadError::NotFound { .. } => LeftOutReason::Dangling,
                    ReadError::NotAFile { .. } => LeftOutReason::Special,
                    _ => LeftOutReason::Unreadable,
                };
                return self.leave_out(path.as_str(), reason);
            }
        };
        if stamp.is_folder() {
            self.inner_folder(path, &stamp, depth);
        } else if !stamp.is_file() {
            self.leave_out(path.as_str(), LeftOutReason::Special);
        } else if self.files.trust == Trust::Untrusted && stamp.has_other_names() {
            self.leave_out(path.as_str(), LeftOutReason::HardLink);
        } else {
            if self.found.len() >= self.files.limits.resources {
                self.is_full = true;
                return self.leave_out(path.as_str(), LeftOutReason::TooMany);
            }
            let resource = Resource {
                kind: ResourceKind::of(path),
                bytes: stamp.bytes,
                executable: stamp.is_executable(),
                path: path.clone(),
            };
            match &mut self.looking {
                Looking::Names => {}
                Looking::Stamps(stamps) => stamps.add(path.as_str(), &stamp),
                Looking::Contents(contents) => contents.add(path.as_str(), handle, &stamp),
            }
            self.found.insert(path.to_string(), resource);
        }
    }

    fn inner_folder(&mut self, path: &ResourcePath, stamp: &Stamp, depth: usize) {
        let name = path.as_str().rsplit('/').next().unwrap_or_default();
        let in_scope = match self.scope {
            ResourceScope::OneLevel => depth == 0,
            ResourceScope::Recursive => true,
            ResourceScope::ThreeFolders => {
                depth == 0 && matches!(path.as_str(), "scripts" | "references" | "assets")
            }
        };
        if !in_scope {
            return;
        }
        let reason = if is_version_control(name) {
            LeftOutReason::VersionControl
        } else if name == NODE_MODULES && self.scope != ResourceScope::Recursive {
            LeftOutReason::Packages
        } else if depth >= self.files.limits.resource_depth {
            LeftOutReason::TooDeep
        } else if !self.folders.insert(stamp.identity()) {
            LeftOutReason::Again
        } else {
            match self.folder.open_folder_beneath(path) {
                Err(_) => LeftOutReason::Unreadable,
                Ok(folder)
                    if self.files.nested == Nested::Find
                        && folder.stat(Path::new(self.own_file)).is_ok() =>
                {
                    LeftOutReason::OtherSkill
                }
                Ok(folder) => return self.names(&format!("{path}/"), &folder, depth + 1),
            }
        };
        self.leave_out(path.as_str(), reason);
    }

    fn leave_out(&mut self, path: &str, reason: LeftOutReason) {
        self.left_out.push(LeftOut { path: path.to_owned(), reason });
    }
}
