//! Durable things: sessions, versions of skills, what they are used for, keys. On SQLite, the
//! embedded default, or where several machines share them on PostgreSQL or Redis.

#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod diff;
mod document;
mod find;
pub mod interop;
mod key;
mod notices;
mod open;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "redis")]
mod redis;
mod registry;
mod settings;
mod source;
mod sqlite;
mod store;
mod stored;
mod unavailable;
mod url;
mod usage;
mod version;

pub use diff::{CONTEXT_LINES, FEWEST_CHANGES_TIME, FieldDiff, FileDiff, FileStatus, compare};
pub use document::{
    ArgumentType, CHANGE_SUMMARY_CHARS, CORE_CONTENT_CHARS, DEFAULT_VALUES, DESCRIPTION_CHARS,
    DOCUMENT_BYTES, DocumentArgument, DocumentChange, DocumentError, DocumentFile,
    DocumentResource, DocumentServer, DocumentTool, Encoding, FILE_FOLDERS, LIST_ENTRIES,
    NAME_CHARS, SkillDocument, SkillReading, TEXT_CHARS, Violation,
};
pub use find::{OnShelf, SkillPage, SkillQuery, SkillStatus};
pub use key::{
    ApiKey, KeyError, KeyFuture, KeyStore, PresentedKey, Role, Secret, StoredKey, UnknownRole,
};
pub use notices::{Listener, Notice, Notices};
pub use open::OpenError;
#[cfg(feature = "postgres")]
pub use postgres::{
    PostgresContent, PostgresKeys, PostgresSessions, PostgresSettings, PostgresStore,
    PostgresUsage, PostgresVersions,
};
#[cfg(feature = "redis")]
pub use redis::{
    Durability, RedisContent, RedisKeys, RedisOpenError, RedisSessions, RedisSettings, RedisStore,
    RedisUsage, RedisVersions,
};
pub use registry::{LastLoad, Registry, Shelved};
pub use settings::{Eviction, StoreSettings};
pub use source::VersionSource;
pub use sqlite::{SqliteKeys, SqliteSessions, SqliteStore, SqliteUsage, SqliteVersions};
pub use store::Store;
pub use url::{StoreUrl, StoreUrlError};
pub use usage::{SkillUsage, UsageKind, UsageRow, UsageStore, Use};
pub use version::{
    About, Activation, Actor, Appended, AuditEntry, Changes, Expected, InvalidSkillId, Listed,
    NewVersion, Origin, RESERVED_IDS, SKILL_FILE, SameContent, SkillId, Version, VersionError,
    VersionFile, VersionFuture, VersionStore, VersionedSkill, WaitingSkill,
};
