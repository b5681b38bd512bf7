//! Why an artifact could not be kept or given.

use std::io;

/// Why an artifact could not be kept or given.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArtifactError {
    /// No artifact can have this name.
    #[error("'{name}' cannot be the name of an artifact: {cause}")]
    Name {
        /// The name, as far as it can be shown.
        name: String,
        /// What is wrong with it.
        cause: &'static str,
    },
    /// It is too large.
    #[error("the artifact '{name}' has {bytes} bytes and exceeds `{limit}` = {most}")]
    Limit {
        /// The artifact.
        name: String,
        /// How large it is.
        bytes: u64,
        /// The name of the limit.
        limit: &'static str,
        /// Its value.
        most: u64,
    },
    /// What is stored is not what was saved.
    #[error("version {version} of the artifact '{name}' is damaged")]
    Damaged {
        /// The artifact.
        name: String,
        /// Which version.
        version: u64,
    },
    /// The store refuses.
    #[error("cannot {doing}: {cause}")]
    Io {
        /// What was tried.
        doing: String,
        /// What the system says.
        cause: io::Error,
    },
    /// A store that is elsewhere cannot be used.
    #[error("cannot {doing} in {place}: {cause}; {}", trouble.remedy())]
    Store {
        /// What kind of trouble it is.
        trouble: StoreTrouble,
        /// What was tried.
        doing: String,
        /// Which store.
        place: String,
        /// What it says, or what happened on the way.
        cause: String,
    },
}

/// Why a store that is elsewhere cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreTrouble {
    /// Nobody answers, or not in time. What was to be saved may be there or not.
    Unavailable,
    /// Whoever asks may not.
    Denied,
    /// There is no such bucket.
    NoBucket,
    /// It would overwrite a version if two are saved at once.
    Unsafe,
    /// It refuses for another reason.
    Refused,
}

impl StoreTrouble {
    /// The stable name.
    pub fn code(self) -> &'static str {
        match self {
            Self::Unavailable => "artifact_store_unavailable",
            Self::Denied => "artifact_store_denied",
            Self::NoBucket => "artifact_store_no_bucket",
            Self::Unsafe => "artifact_store_unsafe",
            Self::Refused => "artifact_io",
        }
    }

    /// What to do about it.
    pub fn remedy(self) -> &'static str {
        match self {
            Self::Unavailable => "check that the server runs and that `endpoint` is right",
            Self::Denied => "check the credentials, the region, and what they may do there",
            Self::NoBucket => "make it, or correct `bucket`",
            Self::Unsafe => "use a server that honours `If-None-Match` in PUT",
            Self::Refused => "the server's own log may say more",
        }
    }
}

impl ArtifactError {
    /// The stable name of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Name { .. } => "invalid_artifact_name",
            Self::Limit { .. } => "limit_exceeded",
            Self::Damaged { .. } => "artifact_damaged",
            Self::Io { .. } => "artifact_io",
            Self::Store { trouble, .. } => trouble.code(),
        }
    }

    pub(crate) fn io<E: Into<io::Error>>(doing: impl Into<String>) -> impl FnOnce(E) -> Self {
        let doing = doing.into();
        move |cause| Self::Io { doing, cause: cause.into() }
    }
}
