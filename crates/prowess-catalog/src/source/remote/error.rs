//! Why a source could not be fetched.

use std::io;
use std::net::IpAddr;
use std::path::PathBuf;

use prowess_format::Digest;

use crate::archive::ArchiveError;

/// Why a text names no place that skills can be fetched from.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidLocation {
    /// It is no URL.
    #[error("'{text}' is not a URL: {cause}")]
    Url {
        /// What was given.
        text: String,
        /// What is wrong with it.
        cause: url::ParseError,
    },
    /// The scheme is not one of those that are fetched.
    #[error("'{scheme}' URLs are not fetched; only https, http and file")]
    Scheme {
        /// The scheme.
        scheme: String,
    },
    /// A file on another machine.
    #[error("'{text}' is not a file on this machine")]
    Host {
        /// What was given.
        text: String,
    },
    /// A name or a password stands in the URL.
    #[error("a URL with a user name or a password is refused: it would be stored and shown")]
    Credentials,
    /// The pin is no digest.
    #[error("'#{fragment}' is no pin: write `#sha256=` and 64 hexadecimal digits")]
    Pin {
        /// What stands behind `#`.
        fragment: String,
    },
}

/// Why a source could not be fetched. What was fetched before can still be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RemoteError {
    /// The location, or where it leads to, is none that is fetched.
    #[error(transparent)]
    Location(#[from] InvalidLocation),
    /// The address is not a public one.
    #[error(transparent)]
    Address(#[from] AddressRefused),
    /// A server sends us where we do not go.
    #[error("the redirect to '{to}' is refused: {why}")]
    Redirect {
        /// Where.
        to: String,
        /// Why not.
        why: &'static str,
    },
    /// The server does not give it.
    #[error("{url} answers {status}")]
    Status {
        /// What was asked for.
        url: String,
        /// The answer.
        status: u16,
    },
    /// The server cannot be reached, or breaks off.
    #[error("{url} cannot be fetched: {cause}")]
    Unreachable {
        /// What was asked for.
        url: String,
        /// What happened.
        cause: String,
    },
    /// The server takes too long.
    #[error("{url} takes too long: `{limit}` = {most}")]
    TooSlow {
        /// What was asked for.
        url: String,
        /// The name of the limit, as in `prowess.toml`.
        limit: &'static str,
        /// Its value.
        most: u64,
    },
    /// There is more than a limit allows.
    #[error("{url} exceeds `{limit}` = {most}")]
    TooLarge {
        /// What was asked for.
        url: String,
        /// The name of the limit, as in `prowess.toml`.
        limit: &'static str,
        /// Its value.
        most: u64,
    },
    /// It is not what was promised.
    #[error("the content is not the expected one: expected {expected}, found {actual}")]
    Digest {
        /// What was promised.
        expected: Digest,
        /// What is there.
        actual: Digest,
    },
    /// It is neither an archive nor a `SKILL.md`.
    #[error("{what} is neither a zip, tar or tar.gz archive nor a SKILL.md")]
    UnknownKind {
        /// What was fetched.
        what: String,
    },
    /// The archive is refused.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The index of skills cannot be used.
    #[error("the index {url} cannot be used: {why}")]
    Index {
        /// Where it is.
        url: String,
        /// Why not.
        why: String,
    },
    /// The cache belongs to somebody else.
    #[error("the cache {path} is not used: others can write to it")]
    CacheOfOthers {
        /// Where it is.
        path: PathBuf,
    },
    /// The system refuses.
    #[error("{path}: {cause}")]
    Io {
        /// Where.
        path: PathBuf,
        /// What the system says.
        cause: io::Error,
    },
}

/// An address that is not connected to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{host} is at {address}, which is not a public address")]
pub struct AddressRefused {
    /// The name or address that was given.
    pub host: String,
    /// The address that it has.
    pub address: IpAddr,
}

impl RemoteError {
    /// The stable name of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Location(_) => "invalid_location",
            Self::Address(_) => "address_refused",
            Self::Redirect { .. } => "redirect_refused",
            Self::Status { .. } => "http_status",
            Self::Unreachable { .. } => "unreachable",
            Self::TooSlow { .. } => "too_slow",
            Self::TooLarge { .. } => "too_large",
            Self::Digest { .. } => "digest_mismatch",
            Self::UnknownKind { .. } => "unknown_kind",
            Self::Archive(error) => error.code(),
            Self::Index { .. } => "invalid_index",
            Self::CacheOfOthers { .. } => "cache_of_others",
            Self::Io { .. } => "io",
        }
    }

    /// What to do about it.
    pub fn help(&self) -> &'static str {
        match self {
            Self::Location(_) => "give an https URL, or the path of an archive",
            Self::Address(_) => {
                "set PROWESS_PRIVATE_ADDRESSES to this address if you run the server yourself"
            }
            Self::Redirect { .. } => "give the URL that it leads to, if you believe it",
            Self::Status { .. } | Self::Unreachable { .. } | Self::UnknownKind { .. } => {
                "check the URL and the network, then `prowess source refresh`"
            }
            Self::TooSlow { .. }
            | Self::TooLarge { .. }
            | Self::Archive(ArchiveError::Limit { .. }) => {
                "raise the limit in [remote] of prowess.toml, if you believe the source"
            }
            Self::Digest { .. } => "somebody has changed it; look at it before you change the pin",
            Self::Archive(_) | Self::Index { .. } => "tell its author",
            Self::CacheOfOthers { .. } => "set PROWESS_CACHE_DIR to a folder of your own",
            Self::Io { .. } => "check the permissions and the space there",
        }
    }

    pub(super) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |cause| Self::Io { path, cause }
    }
}
