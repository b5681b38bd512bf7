//! Bringing what a command left to a folder of the user.
//!
//! The command has chosen the names: no link below the folder is followed, and no file that is there
//! already is replaced.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};
use rustix::io::Errno;

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
const NEW: OFlags = OFlags::WRONLY
    .union(OFlags::CREATE)
    .union(OFlags::EXCL)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
const OLD: OFlags =
    OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

/// Why a file is not brought. What it says is a stable name, but for what the system says.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotDelivered {
    /// It was cut off: half of it is of no use.
    #[error("too_large")]
    TooLarge,
    /// Something that is no folder stands in its way.
    #[error("no_folder")]
    NoFolder,
    /// Something else has its place.
    #[error("exists")]
    Exists,
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl From<Errno> for NotDelivered {
    fn from(error: Errno) -> Self {
        Self::Io(error.into())
    }
}

/// Writes a file below a folder; folders on the way are made. Says why not if something else has
/// its place; the same file is no such thing.
pub(crate) fn deliver(folder: &Path, name: &str, bytes: &[u8]) -> Result<(), NotDelivered> {
    let mut here = openat(CWD, folder, FOLDER, Mode::empty())?;
    let (above, name) = name.rsplit_once('/').unwrap_or(("", name));
    for step in above.split('/').filter(|step| !step.is_empty()) {
        match enter(&here, step) {
            Err(Errno::LOOP | Errno::NOTDIR) => return Err(NotDelivered::NoFolder),
            inner => here = inner?,
        }
    }
    match openat(&here, name, NEW, Mode::from_raw_mode(0o666)) {
        Ok(file) => Ok(File::from(file).write_all(bytes)?),
        Err(Errno::EXIST) if is_same(&here, name, bytes) => Ok(()),
        Err(Errno::EXIST) => Err(NotDelivered::Exists),
        Err(error) => Err(error.into()),
    }
}

fn enter(folder: &OwnedFd, name: &str) -> rustix::io::Result<OwnedFd> {
    match mkdirat(folder, name, Mode::from_raw_mode(0o777)) {
        Ok(()) | Err(Errno::EXIST) => {
            openat(folder, name, FOLDER | OFlags::NOFOLLOW, Mode::empty())
        }
        Err(error) => Err(error),
    }
}

/// Whether a file holds exactly this.
fn is_same(folder: &OwnedFd, name: &str, bytes: &[u8]) -> bool {
    let read = || -> io::Result<bool> {
        let file = File::from(openat(folder, name, OLD, Mode::empty())?);
        let about = file.metadata()?;
        if !about.is_file() || about.len() != bytes.len() as u64 {
            return Ok(false);
        }
        let mut found = Vec::with_capacity(bytes.len());
        file.take(about.len()).read_to_end(&mut found)?;
        Ok(found == bytes)
    };
    read().unwrap_or(false)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::{NotDelivered, deliver};

    /// Each attack succeeds with what the standard library does.
    #[test]
    fn names_that_a_command_chose_lead_nowhere_else_and_replace_nothing() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        for folder in ["ours", "control"] {
            fs::create_dir_all(at(folder)).unwrap();
            fs::create_dir_all(at(&format!("victim-of-{folder}"))).unwrap();
            fs::write(at(folder).join(".bashrc"), "precious").unwrap();
            fs::write(at(&format!("victim-of-{folder}/file")), "precious").unwrap();
            symlink(at(&format!("victim-of-{folder}")), at(folder).join("sub")).unwrap();
            symlink(at(&format!("victim-of-{folder}/file")), at(folder).join("link")).unwrap();
            symlink(at(&format!("victim-of-{folder}/new")), at(folder).join("dangling")).unwrap();
        }
        for name in [".bashrc", "sub/x", "sub/deep/x", "link", "dangling"] {
            let path = at("control").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "evil").unwrap();
            let refused = deliver(&at("ours"), name, b"evil").unwrap_err();
            assert!(!matches!(refused, NotDelivered::Io(_)), "{name}: {refused}");
        }
        let victims = |folder: &str| {
            let victim = at(&format!("victim-of-{folder}"));
            let file = fs::read_to_string(victim.join("file")).unwrap();
            let own = fs::read_to_string(at(folder).join(".bashrc")).unwrap();
            (file, own, fs::read_dir(victim).unwrap().count())
        };
        assert_eq!(victims("control"), ("evil".into(), "evil".into(), 4));
        assert_eq!(victims("ours"), ("precious".into(), "precious".into(), 1));
    }

    #[test]
    fn new_files_and_folders_are_made_and_the_same_file_is_no_other() {
        let root = tempfile::tempdir().unwrap();
        for _ in 0..2 {
            deliver(root.path(), "a/b/c", b"text").unwrap();
        }
        assert_eq!(fs::read(root.path().join("a/b/c")).unwrap(), b"text");
        let why = |name, bytes| deliver(root.path(), name, bytes).unwrap_err().to_string();
        assert_eq!(why("a/b/c", b"texx"), "exists");
        assert_eq!(why("a/b", b"text"), "exists");
        assert_eq!(why("a/b/c/d", b"text"), "no_folder");
    }
}
