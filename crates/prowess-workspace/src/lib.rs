//! Workspaces of Prowess: a directory tree for a session, skills staged into it, commands run in it
//! inside a sandbox, and what they wrote brought back.
//!
//! This crate knows nothing of skills but their files.

#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod artifact;
mod beneath;
mod collect;
mod executor;
mod jail;
mod key;
mod locks;
mod path;
mod remove;
mod supervisor;
mod workspace;

pub use artifact::{
    Artifact, ArtifactError, ArtifactFuture, ArtifactRef, ArtifactScope, ArtifactStore,
    FileArtifacts, MemoryArtifacts, StoreTrouble,
};
#[cfg(feature = "s3")]
pub use artifact::{InvalidS3Settings, S3Artifacts, S3Credentials, S3Settings};
pub use collect::{
    CollectLimit, CollectLimits, Collected, CollectedFile, RefusedFile, RefusedReason,
};
pub use executor::{
    Capability, Captured, Command, ContainerSettings, Enforcement, ExecError, ExecFuture, Executor,
    InputError, InputWriter, Isolation, LimitHit, Limits, LiveInput, LocalExecutor,
    LocalExecutorBuilder, Network, OutputStream, Protection, Reuse, Run, RunOutcome, SandboxReport,
    Stdin, TerminalSize, Tier, TriedTier, Unsandboxed, Watcher,
};
#[cfg(feature = "container")]
pub use executor::{ContainerExecutor, ContainerExecutorBuilder};
pub use jail::{Expected, Jail, Wrote};
pub use path::{InvalidPath, WorkspacePath};
pub use supervisor::{supervise, supervise_if_asked};
pub use workspace::{
    CopiedIn, Entries, Entry, EntryKind, GarbageReport, InputFile, InputMode, InputRecord,
    RemovedWorkspace, SkillFile, StagedSkill, Workspace, WorkspaceError, WorkspaceId,
    WorkspaceLimits, WorkspaceOwner, Workspaces,
};
