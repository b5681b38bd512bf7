//! What a container is like.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use bollard::models::{
    ContainerCreateBody, HostConfig, HostConfigLogConfig, Mount, MountBindOptions,
    MountBindOptionsPropagationEnum, MountTmpfsOptions, MountType,
};

use super::super::order::{WORKSPACE, identity, writable};
use super::super::{Network, Run};
use super::carried::{Carried, FOLDER};
use crate::supervisor::{ASKED, INIT};

/// Where the folder of `SKILLS_ROOT` is inside.
pub(crate) const SKILLS_ROOT: &str = "/opt/skills";

/// Whom commands run as, by number: user and group.
pub(crate) fn user() -> (u32, u32) {
    let own = || (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    identity().map_or_else(own, |who| (who.uid, who.gid))
}

/// Processes of a container that are not the command's: the first one, and a supervisor.
const OUR_PROCESSES: u64 = 2;

/// What one container is made for. Runs with the same plan can use the same container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// The workspace on this machine.
    pub(crate) workspace: PathBuf,
    /// What may be written, below the workspace.
    pub(crate) writable: Vec<String>,
    /// The folders that are seen inside, by device and number: others may have the same names later.
    pub(crate) folders: Vec<Option<(u64, u64)>>,
    pub(crate) network: Network,
    pub(crate) memory_bytes: u64,
    pub(crate) processes: u64,
    pub(crate) disk_bytes: u64,
}

impl Plan {
    pub(crate) fn of(run: &Run<'_>) -> Self {
        let writable = writable(run);
        let seen = std::iter::once("skills").chain(writable.iter().map(String::as_str));
        let folder = |name: &str| {
            let about = run.workspace.join(name).symlink_metadata().ok()?;
            Some((about.dev(), about.ino()))
        };
        Self {
            workspace: run.workspace.to_owned(),
            folders: seen.map(folder).collect(),
            writable,
            network: run.network,
            memory_bytes: run.limits.memory_bytes,
            processes: run.limits.processes,
            disk_bytes: run.limits.disk_bytes,
        }
    }
}

/// What is the same for all containers of an executor.
#[derive(Clone, Debug)]
pub(crate) struct Common {
    /// The image, by what it holds.
    pub(crate) image: String,
    pub(crate) cpus: i64,
    pub(crate) carried: Carried,
    pub(crate) skills_root: Option<PathBuf>,
    /// Whether the engine is an ordinary user's own, who is somebody else inside.
    pub(crate) is_rootless: bool,
    /// Who makes the containers, so that they can be told apart.
    pub(crate) labels: HashMap<String, String>,
}

impl Common {
    /// What of this machine is seen inside, where, and whether it can be written there.
    pub(crate) fn mounts(&self, plan: &Plan, line: &Path) -> Vec<(PathBuf, String, bool)> {
        let below = |name: &str| (plan.workspace.join(name), format!("{WORKSPACE}/{name}"));
        let (skills, inside) = below("skills");
        let mut mounts = vec![(skills, inside, false)];
        mounts.extend(plan.writable.iter().map(|name| {
            let (from, to) = below(name);
            (from, to, true)
        }));
        mounts
            .extend(self.carried.files.iter().map(|(from, to)| (from.clone(), to.clone(), false)));
        mounts.push((line.to_owned(), format!("{FOLDER}/line"), false));
        let skills_root = self.skills_root.iter();
        mounts.extend(skills_root.map(|path| (path.clone(), SKILLS_ROOT.to_owned(), false)));
        mounts
    }

    /// What the engine is told. The folder holds the socket that the first process calls.
    pub(crate) fn body(&self, plan: &Plan, line: &Path, socket: &str) -> ContainerCreateBody {
        let mounts = self.mounts(plan, line).into_iter().map(|(from, to, is_written)| Mount {
            target: Some(to),
            source: Some(from.to_string_lossy().into_owned()),
            typ: Some(MountType::BIND),
            read_only: Some(!is_written),
            bind_options: Some(MountBindOptions {
                propagation: Some(MountBindOptionsPropagationEnum::RPRIVATE),
                ..Default::default()
            }),
            ..Default::default()
        });
        let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let disk = signed(plan.disk_bytes);
        let temporary = Mount {
            target: Some("/tmp".to_owned()),
            typ: Some(MountType::TMPFS),
            tmpfs_options: Some(MountTmpfsOptions {
                size_bytes: Some(disk),
                mode: Some(0o1777),
                ..Default::default()
            }),
            ..Default::default()
        };
        let (uid, gid) = user();
        let words = self.carried.words.iter().map(String::as_str);
        let socket = format!("{FOLDER}/line/{socket}");
        let words = words.chain([ASKED, INIT, &socket]).map(str::to_owned);
        let network = match plan.network {
            Network::None => "none",
            Network::Host => "host",
        };
        let host = HostConfig {
            memory: Some(signed(plan.memory_bytes)),
            // Together with memory: nothing is swapped out.
            memory_swap: Some(signed(plan.memory_bytes)),
            pids_limit: Some(signed(plan.processes.saturating_add(OUR_PROCESSES))),
            nano_cpus: Some(self.cpus.saturating_mul(1_000_000_000)),
            mounts: Some(mounts.chain([temporary]).collect()),
            shm_size: Some(disk),
            network_mode: Some(network.to_owned()),
            ipc_mode: Some("private".to_owned()),
            userns_mode: self.is_rootless.then(|| "keep-id".to_owned()),
            readonly_rootfs: Some(true),
            cap_drop: Some(vec!["ALL".to_owned()]),
            security_opt: Some(vec!["no-new-privileges".to_owned()]),
            privileged: Some(false),
            // How it ended would be lost with it.
            auto_remove: Some(false),
            init: Some(false),
            log_config: Some(HostConfigLogConfig { typ: Some("none".to_owned()), config: None }),
            ..Default::default()
        };
        let own_network = plan.network == Network::None;
        let mut labels = self.labels.clone();
        let workspace = plan.workspace.to_string_lossy().into_owned();
        labels.insert("prowess.workspace".to_owned(), workspace);
        ContainerCreateBody {
            image: Some(self.image.clone()),
            entrypoint: Some(words.collect()),
            cmd: Some(Vec::new()),
            env: Some(Vec::new()),
            user: Some(format!("{uid}:{gid}")),
            working_dir: Some("/".to_owned()),
            hostname: own_network.then(|| "prowess".to_owned()),
            labels: Some(labels),
            host_config: Some(host),
            ..Default::default()
        }
    }
}
