//! Finds skills: sources, bounded scans, precedence, resources, digests, snapshots, refresh, watch.
//!
//! A [`Source`] yields what it holds; a [`Catalog`] merges sources into an immutable [`Snapshot`].
//! What is broken is a diagnostic, and everything else is there.

#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[cfg(feature = "archive")]
mod archive;
mod beneath;
mod catalog;
mod config;
mod content;
mod contents;
mod error;
mod found;
mod labels;
mod limits;
mod merge;
mod read;
mod remote_limits;
mod resource;
mod roots;
mod scan;
mod skill;
mod snapshot;
mod source;
mod tree_digest;
mod watch;

#[cfg(feature = "archive")]
pub use archive::{
    ArchiveError, ArchiveKind, ArchivedSkill, ArchivedSkills, Executable, Unpacked, UnpackedFile,
    pack, read_archive, unpack, unpack_from,
};
pub use beneath::{InvalidResourcePath, ResourcePath};
pub use catalog::{Catalog, CatalogBuilder};
pub use config::{Config, ConfigError};
pub use content::{ContentError, ContentStore, FileContent, MemoryContent};
pub use contents::{ContentFile, SkillContents};
pub use error::ReadError;
pub use found::{FoundSkill, SkillText, SourceListing};
pub use labels::label_of;
pub use limits::ScanLimits;
pub use merge::Precedence;
pub use remote_limits::RemoteLimits;
pub use resource::{
    LeftOut, LeftOutReason, Resource, ResourceDiscovery, ResourceKind, ResourceListing,
    ResourceScope,
};
pub use roots::{BUILT_IN, Environment, Root, RootOrigin, default_roots, variable_roots};
pub use scan::{FoundFiles, Nested, SKIPPED_FOLDERS, find_skill_files, path_not_utf8};
pub use skill::{CatalogSkill, SourceEntry};
pub use snapshot::{LookupError, Snapshot};
#[cfg(feature = "remote")]
pub use source::{
    AddressRefused, InvalidLocation, InvalidReach, Location, Lookup, Progress, ProgressSink, Reach,
    RemoteCache, RemoteError, RemoteSource, SourceStatus, Stage,
};
pub use source::{
    Blocking, DirectorySource, Gates, MemoryFile, MemorySource, PairEntry, PairError, PairSkill,
    PairSource, Scope, SkillPair, Source, SourceFactory, SourceFuture, SourceInfo, Trust,
    UnusableSource,
};
pub use tree_digest::TreeDigest;
pub use watch::{DEBOUNCE, Watch};
