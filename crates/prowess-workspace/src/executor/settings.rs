//! How containers for commands are made.

use serde::{Deserialize, Serialize};

/// How containers for commands are made: the section `[exec.container]` of `prowess.toml`.
///
/// ```toml
/// [exec.container]
/// image = "docker.io/library/python:3-slim"  # must be there; nothing is pulled
/// engine = ""              # unix:///run/podman/podman.sock; else DOCKER_HOST, or the usual places
/// cpus = 2                 # processors that a run may use at once
/// reuse = "clean"          # or "never": a new container for every run
/// warm = 1                 # containers that are kept ready for the next run in a workspace
/// max_idle = 8             # containers that wait, of all workspaces together
/// idle_seconds = 600       # then a container that waits is removed
/// engine_seconds = 60      # that the engine may take for one thing
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ContainerSettings {
    /// The image, by its name or by its digest. It must be there.
    pub image: String,
    /// The socket of the engine, as `unix://PATH`. If it is empty, that of `DOCKER_HOST` or
    /// `CONTAINER_HOST`, or the first one at the usual places.
    pub engine: String,
    /// Processors that a run may use at once.
    pub cpus: u32,
    /// Whether a container is used for another run of the same workspace.
    pub reuse: Reuse,
    /// Containers that are kept ready for the next run in a workspace.
    pub warm: usize,
    /// Containers that wait, of all workspaces together.
    pub max_idle: usize,
    /// Seconds after which a container that waits is removed.
    pub idle_seconds: u64,
    /// Seconds that the engine may take for one thing.
    pub engine_seconds: u64,
}

/// Whether a container is used for another run of the same workspace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reuse {
    /// It is, if the run before left nothing in it: no process, no file, nothing shared.
    #[default]
    Clean,
    /// Never: every run has a container of its own.
    Never,
}

impl Default for ContainerSettings {
    fn default() -> Self {
        Self {
            image: "docker.io/library/python:3-slim".to_owned(),
            engine: String::new(),
            cpus: 2,
            reuse: Reuse::Clean,
            warm: 1,
            max_idle: 8,
            idle_seconds: 600,
            engine_seconds: 60,
        }
    }
}
