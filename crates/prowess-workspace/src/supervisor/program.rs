//! Which file a command is started from, if that must be one that no run can have put there.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::order::{Installed, Order};

/// Where programs are that are called by a bare name.
pub(crate) const SYSTEM_FOLDERS: [&str; 6] =
    ["/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin"];

/// Where programs may be found but anybody may write.
const OPEN_FOLDERS: [&str; 4] = ["/tmp", "/var/tmp", "/dev", "/proc"];

/// Programs that are many: which one, the name says that they are called by.
const MANY_IN_ONE: [&str; 4] = ["busybox", "coreutils", "sbase-box", "toybox"];

/// How many links may lead to a program, as for the kernel.
const MOST_LINKS: usize = 40;

/// The bytes of a file that the kernel looks at to know how to start it.
const HEAD_BYTES: u64 = 256;

/// Why no program is started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoProgram {
    #[error(
        "there is no program '{name}' in {}; without a shell there are none of its own commands, \
         such as cd",
        SYSTEM_FOLDERS.join(", ")
    )]
    NotInSystem { name: String },
    #[error("'{name}' is a path in a skill's folder, and no skill is used")]
    NoSkill { name: String },
    #[error("{}: {cause}", path.display())]
    NotFound { path: PathBuf, cause: io::Error },
    #[error("{}: it is no file that can be executed", path.display())]
    NotExecutable { path: PathBuf },
    #[error("{}: it begins neither with #! nor as a program of this machine", path.display())]
    NotAProgram { path: PathBuf },
    #[error(
        "'{name}' is {}, where a command could have put it; use a program of the system or a file \
         of the skill",
        real.display()
    )]
    Writable { name: String, real: PathBuf },
    #[error("the command '{name}' is '{denied}', which is denied by the host")]
    Denied { name: String, denied: String },
}

impl NoProgram {
    /// Whether there is a program that may not be started.
    pub(crate) fn is_forbidden(&self) -> bool {
        matches!(self, Self::Writable { .. } | Self::Denied { .. })
    }
}

/// The file that the command of an order is started from. It is looked for by the process that
/// becomes the command, in what that one sees.
pub(crate) fn find(order: &Order, installed: &Installed) -> Result<PathBuf, NoProgram> {
    let place = Place {
        folders: SYSTEM_FOLDERS.iter().map(PathBuf::from).collect(),
        open: OPEN_FOLDERS.iter().map(PathBuf::from).collect(),
        workspace: order.inside.clone(),
        skill: installed.skill.as_ref().map(|skill| order.inside.join(skill)),
        writable: order.writable.iter().map(|name| order.inside.join(name)).collect(),
    };
    place.find(&order.argv[0], &installed.denied)
}

/// What there is to find programs in.
struct Place {
    folders: Vec<PathBuf>,
    open: Vec<PathBuf>,
    workspace: PathBuf,
    skill: Option<PathBuf>,
    writable: Vec<PathBuf>,
}

impl Place {
    fn find(&self, name: &str, denied: &[String]) -> Result<PathBuf, NoProgram> {
        let own = || name.to_owned();
        let (path, is_own) = match (name.contains('/'), name.starts_with('/'), &self.skill) {
            (false, ..) => {
                let at = self.folders.iter().map(|folder| folder.join(name));
                let found = at.into_iter().find(|path| is_executable(path));
                (found.ok_or_else(|| NoProgram::NotInSystem { name: own() })?, false)
            }
            (true, true, _) => (PathBuf::from(name), false),
            (true, false, None) => return Err(NoProgram::NoSkill { name: own() }),
            (true, false, Some(skill)) => (skill.join(name), true),
        };
        let real = path
            .canonicalize()
            .map_err(|cause| NoProgram::NotFound { path: path.clone(), cause })?;
        let is_trusted = match (&self.skill, is_own) {
            (Some(skill), true) => is_below(&real, skill) && !self.is_writable(&real),
            _ => {
                let open = self.open.iter().chain([&self.workspace]);
                !open.into_iter().any(|folder| is_below(&real, folder)) && !self.is_writable(&real)
            }
        };
        if !is_trusted {
            return Err(NoProgram::Writable { name: own(), real });
        }
        if !is_executable(&real) {
            return Err(NoProgram::NotExecutable { path });
        }
        if let Some(denied) = self.denied(&path, &real, denied) {
            return Err(NoProgram::Denied { name: own(), denied });
        }
        let head = head(&real);
        if head
            .as_ref()
            .is_some_and(|head| !head.starts_with(b"#!") && !head.starts_with(b"\x7fELF"))
        {
            return Err(NoProgram::NotAProgram { path });
        }
        // What starts a script, its first line says.
        let starters = head.iter().flat_map(|head| first_line(head));
        match starters.map(last_name).find(|name| denied.contains(name)) {
            Some(denied) => Err(NoProgram::Denied { name: own(), denied }),
            None => Ok(path),
        }
    }

    fn is_writable(&self, real: &Path) -> bool {
        self.writable.iter().any(|folder| is_below(real, folder))
    }

    /// Which of these programs this one turns out to be.
    fn denied(&self, path: &Path, real: &Path, denied: &[String]) -> Option<String> {
        let is_many = MANY_IN_ONE.contains(&last_name(real.as_os_str().as_bytes()).as_str());
        let mut names = names_of(path);
        match is_many {
            // Of these, the name that it is called by decides.
            true => names.retain(|name| !MANY_IN_ONE.contains(&name.as_str())),
            false => names.extend([last_name(real.as_os_str().as_bytes())]),
        }
        names.insert(last_name(path.as_os_str().as_bytes()));
        if let Some(name) = names.into_iter().find(|name| denied.contains(name)) {
            return Some(name);
        }
        let own = file_id(real).filter(|_| !is_many)?;
        let is_same = |name: &&String| {
            self.folders.iter().any(|folder| file_id(&folder.join(name)) == Some(own))
        };
        denied.iter().find(is_same).cloned()
    }
}

/// The last names of a path and of the links that it leads through.
fn names_of(path: &Path) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        names.insert(last_name(path.as_os_str().as_bytes()));
        match (path.read_link(), path.parent()) {
            (Ok(target), Some(folder)) => path = folder.join(target),
            _ => break,
        }
    }
    names
}

/// The last name of a path, in lower case.
fn last_name(path: &[u8]) -> String {
    let last = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    String::from_utf8_lossy(last).to_lowercase()
}

fn is_below(real: &Path, folder: &Path) -> bool {
    real.starts_with(folder) || folder.canonicalize().is_ok_and(|folder| real.starts_with(folder))
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
}

fn file_id(path: &Path) -> Option<(u64, u64)> {
    path.metadata().ok().map(|about| (about.dev(), about.ino()))
}

/// The first bytes of a file, if it can be read.
fn head(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(HEAD_BYTES).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// The words of the line that says what starts a script.
fn first_line(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    let line = head.strip_prefix(b"#!").unwrap_or_default();
    let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
    line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
#[path = "program_tests.rs"]
mod tests;
