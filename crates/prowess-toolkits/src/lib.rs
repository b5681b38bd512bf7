//! Tools on top of the engine: running commands of skills in a workspace, and using files, of a
//! workspace or of any [`Backend`].
//!
//! A host gives the engine the toolkits that it wants:
//!
//! ```no_run
//! # fn example(executor: std::sync::Arc<dyn prowess_workspace::Executor>) {
//! use std::sync::Arc;
//!
//! use prowess_catalog::Catalog;
//! use prowess_runtime::Runtime;
//! use prowess_toolkits::{ExecToolkit, FilesToolkit};
//! use prowess_workspace::{FileArtifacts, Workspaces};
//!
//! let workspaces = Workspaces::new("/var/lib/prowess/workspaces");
//! let artifacts = Arc::new(FileArtifacts::new("/var/lib/prowess/artifacts"));
//! let exec = ExecToolkit::new(workspaces.clone(), executor).with_artifacts(artifacts.clone());
//! let files = FilesToolkit::new(workspaces).with_artifacts(artifacts);
//! let runtime = Runtime::builder(Catalog::builder().build())
//!     .toolkit(Arc::new(exec))
//!     .toolkit(Arc::new(files))
//!     .build();
//! # let _ = runtime;
//! # }
//! ```

#![allow(clippy::result_large_err, reason = "a failure is an outcome, and is moved once")]
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

#[cfg(any(feature = "exec", feature = "files"))]
mod artifacts;
mod built_in;
#[cfg(feature = "exec")]
mod exec;
#[cfg(feature = "files")]
mod files;
#[cfg(any(feature = "exec", feature = "files"))]
mod invalid;
#[cfg(feature = "jira")]
mod jira;
#[cfg(any(feature = "exec", feature = "files"))]
mod place;
#[cfg(any(feature = "exec", feature = "files"))]
mod policy;
#[cfg(any(feature = "exec", feature = "files"))]
mod session;
#[cfg(feature = "sql")]
mod sql;
#[cfg(any(feature = "exec", feature = "files"))]
mod workspace;
#[cfg(feature = "xlsx")]
mod xlsx;

#[cfg(any(feature = "exec", feature = "files"))]
pub use artifacts::{ArtifactPlace, ArtifactSettings, InvalidArtifactSettings};
pub use built_in::BuiltInSkill;
#[cfg(feature = "exec")]
pub use exec::{
    ExecSettings, ExecToolkit, ExecutorChoice, InvalidExecSettings, LimitSettings, SessionSettings,
};
#[cfg(feature = "files")]
pub use files::{
    Backend, BackendFuture, BackendSource, CommandLimits, CommandOutcome, CompositeBackend,
    FileError, FilesAccess, FilesSettings, FilesToolkit, GlobQuery, Globbed, GrepFile, GrepLine,
    GrepMode, GrepQuery, Grepped, InvalidFilesSettings, LocalBackend, MemoryBackend, PathGlob,
    SearchCut, SearchLimits, Shell, Skipped,
};
#[cfg(feature = "jira")]
pub use jira::{InvalidJiraSettings, JiraAccess, JiraSettings, JiraToolkit};
#[cfg(any(feature = "exec", feature = "files"))]
pub use policy::{CommandError, CommandPolicy, InvalidCommandList};
#[cfg(feature = "files")]
pub use prowess_workspace::{
    CollectedFile, Entries, Entry, EntryKind, Expected, WorkspacePath, Wrote,
};
#[cfg(feature = "sql")]
pub use sql::{
    ApprovalError, DEMO_CUSTOMERS, InvalidAddress, InvalidSqlSettings, Layer, Layers, PendingWrite,
    Reading, SqlApprover, SqlConnectionSettings, SqlDialect, SqlGuard, SqlMode, SqlPrivileges,
    SqlRefusal, SqlSettings, SqlSuperuser, SqlToolkit, TableScope,
};
#[cfg(any(feature = "exec", feature = "files"))]
pub use workspace::{InvalidWorkspaceSettings, WorkspaceSettings};
#[cfg(feature = "xlsx")]
pub use xlsx::{
    InvalidXlsxSettings, PlainWorkbook, RecalcErrors, RecalcReport, RecalcStatus, XLSX_SKILL,
    XlsxError, XlsxSettings, XlsxToolkit, kept_bytes, recalculate,
};
