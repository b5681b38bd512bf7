//! Which files a command may touch, judged by the kernel for the processes themselves.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd,
    Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, Scope,
};

use super::bubblewrap::{PROGRAMS, etc};
use super::order::Order;
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

/// The rules for this order. Paths are opened now.
pub(crate) fn rules(order: &Order) -> Result<RulesetCreated, RulesetError> {
    let all = AccessFs::from_all(NEWEST);
    let read = AccessFs::from_read(NEWEST);
    let write_device = read | AccessFs::WriteFile;
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)?
        .scope(Scope::from_all(NEWEST))?;
    // A network of its own has nothing on it.
    if order.tier == Tier::T1 && order.network == Network::None {
        rules = rules.handle_access(AccessNet::from_all(NEWEST))?;
    }
    let mut rules = rules.create()?;
    for name in &order.writable {
        rules = allow(rules, &order.inside.join(name), all)?;
    }
    for name in DEVICES {
        rules = allow(rules, &Path::new("/dev").join(name), write_device)?;
    }
    if order.tier == Tier::T2 {
        // There is nothing in this root that may not be read.
        for folder in ["/tmp", "/dev/shm"] {
            rules = allow(rules, Path::new(folder), all)?;
        }
        return allow(rules, Path::new("/"), read);
    }
    // Most are links into `/usr`.
    let is_own = |path: &PathBuf| path.symlink_metadata().is_ok_and(|about| about.is_dir());
    let programs = PROGRAMS.iter().map(|name| Path::new("/").join(name)).filter(is_own);
    let etc = etc(order.network).chain(["passwd", "group"]);
    let etc = etc.map(|name| Path::new("/etc").join(name));
    let proc = PROC.iter().map(|name| Path::new("/proc").join(name));
    let skills = order.inside.join("skills");
    let others = [PathBuf::from("/usr"), PathBuf::from("/sys/devices/system/cpu"), skills];
    for path in programs.chain(etc).chain(proc).chain(others).chain(order.readable.iter().cloned())
    {
        rules = allow(rules, &path, read)?;
    }
    Ok(rules)
}

/// Allows what is at a path, and nothing if there is nothing.
fn allow(
    rules: RulesetCreated,
    path: &Path,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    let Ok(opened) = PathFd::new(path) else { return Ok(rules) };
    // Of a file, only what a file can have.
    let access = if path.is_dir() { access } else { access & AccessFs::from_file(NEWEST) };
    rules.add_rule(PathBeneath::new(opened, access))
}
