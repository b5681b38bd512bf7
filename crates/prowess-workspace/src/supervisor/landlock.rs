//! Which files a command may touch, judged by the kernel for the processes themselves.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd,
    RestrictionStatus, Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError,
    Scope,
};
use rustix::fs::{FileType, Stat, fstat, stat};

use super::bubblewrap::{PROGRAMS, etc};
use super::order::{Order, Sandbox, Streams};
use crate::executor::{Network, Tier};

/// The newest rules that are known here; an older kernel enforces those that it knows, and the
/// self-test tells.
const NEWEST: ABI = ABI::V7;

/// Of `/proc`, where it is that of the machine: nothing about other processes.
const PROC: [&str; 9] = [
    "cpuinfo",
    "filesystems",
    "loadavg",
    "meminfo",
    "stat",
    "sys/kernel/random",
    "sys/vm",
    "uptime",
    "version",
];

const DEVICES: [&str; 5] = ["full", "null", "random", "urandom", "zero"];

/// The rules of a sandbox.
#[derive(Debug)]
pub(crate) struct Rules {
    rules: RulesetCreated,
    /// The paths of every sandbox of this kind, and what was there.
    usual: Vec<(PathBuf, Option<FileId>)>,
}

/// A file: its device and its number there, which nothing else gets while there is a rule for it.
type FileId = (u64, u64);

impl Rules {
    /// What every command may touch in such a sandbox. Paths are opened now.
    pub(crate) fn new(sandbox: Sandbox) -> Result<Self, RulesetError> {
        let all = AccessFs::from_all(NEWEST);
        let read = AccessFs::from_read(NEWEST);
        let mut rules = Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(all)?
            .scope(Scope::from_all(NEWEST))?;
        // A network of its own has nothing on it.
        if sandbox.tier == Tier::T1 && sandbox.network == Network::None {
            rules = rules.handle_access(AccessNet::from_all(NEWEST))?;
        }
        let mut this = Self { rules: rules.create()?, usual: Vec::new() };
        let devices = DEVICES.iter().map(|name| Path::new("/dev").join(name));
        this.allow_usual(devices, read | AccessFs::WriteFile)?;
        if sandbox.tier >= Tier::T2 {
            this.allow_usual(["/tmp", "/dev/shm"].map(PathBuf::from), all)?;
            // There is nothing in this root that may not be read.
            this.allow_usual([PathBuf::from("/")], read)?;
            return Ok(this);
        }
        // Most are links into `/usr`.
        let is_own = |path: &PathBuf| path.symlink_metadata().is_ok_and(|about| about.is_dir());
        let programs = PROGRAMS.iter().map(|name| Path::new("/").join(name)).filter(is_own);
        let etc = etc(sandbox.network).chain(["passwd", "group"]);
        let etc = etc.map(|name| Path::new("/etc").join(name));
        let proc = PROC.iter().map(|name| Path::new("/proc").join(name));
        let others = ["/usr", "/sys/devices/system/cpu"].map(PathBuf::from);
        this.allow_usual(programs.chain(etc).chain(proc).chain(others), read)?;
        Ok(this)
    }

    /// Whether there is still at every path what was there.
    pub(crate) fn are_current(&self) -> bool {
        self.usual.iter().all(|(path, id)| stat(path).ok().map(|about| file_id(&about)) == *id)
    }

    /// Adds what the command of this order may touch. Paths are opened now.
    pub(crate) fn add(&mut self, order: &Order) -> Result<(), RulesetError> {
        for name in &order.writable {
            self.allow(&order.inside.join(name), AccessFs::from_all(NEWEST))?;
        }
        if order.tier < Tier::T2 {
            for path in order.readable.iter().chain([&order.inside.join("skills")]) {
                self.allow(path, AccessFs::from_read(NEWEST))?;
            }
        }
        if order.streams == Streams::Terminal {
            // It always is the process' own.
            let access = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev;
            self.allow(Path::new("/dev/tty"), access)?;
        }
        Ok(())
    }

    /// From now on this process obeys the rules.
    pub(crate) fn restrict_self(self) -> Result<RestrictionStatus, RulesetError> {
        self.rules.restrict_self()
    }

    fn allow_usual(
        &mut self,
        paths: impl IntoIterator<Item = PathBuf>,
        access: BitFlags<AccessFs>,
    ) -> Result<(), RulesetError> {
        for path in paths {
            let id = self.allow(&path, access)?;
            self.usual.push((path, id));
        }
        Ok(())
    }

    /// Allows what is at a path, and nothing if there is nothing.
    fn allow(
        &mut self,
        path: &Path,
        access: BitFlags<AccessFs>,
    ) -> Result<Option<FileId>, RulesetError> {
        let Ok(opened) = PathFd::new(path) else { return Ok(None) };
        let Ok(about) = fstat(&opened) else { return Ok(None) };
        // Of a file, only what a file can have.
        let access = match FileType::from_raw_mode(about.st_mode) {
            FileType::Directory => access,
            _ => access & AccessFs::from_file(NEWEST),
        };
        (&mut self.rules).add_rule(PathBeneath::new(opened, access))?;
        Ok(Some(file_id(&about)))
    }
}

fn file_id(about: &Stat) -> FileId {
    (about.st_dev, about.st_ino)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_current_until_something_else_is_at_a_path() {
        let sandbox = Sandbox { tier: Tier::T1, network: Network::None, identity: None };
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let rules = || {
            let mut rules = Rules::new(sandbox).unwrap();
            rules.allow_usual([at("hosts"), at("magic")], AccessFs::ReadFile.into()).unwrap();
            rules
        };
        std::fs::write(at("hosts"), "1").unwrap();
        let first = rules();
        std::fs::write(at("hosts"), "2").unwrap();
        assert!(first.are_current());
        std::fs::write(at("new"), "3").unwrap();
        std::fs::rename(at("new"), at("hosts")).unwrap();
        assert!(!first.are_current());
        let second = rules();
        assert!(second.are_current());
        std::fs::write(at("magic"), "").unwrap();
        assert!(!second.are_current());
        let third = rules();
        std::fs::remove_file(at("magic")).unwrap();
        assert!(!third.are_current());
    }
}
