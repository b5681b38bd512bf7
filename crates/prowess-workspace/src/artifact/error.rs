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
}

impl ArtifactError {
    /// The stable name of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Name { .. } => "invalid_artifact_name",
            Self::Limit { .. } => "limit_exceeded",
            Self::Damaged { .. } => "artifact_damaged",
            Self::Io { .. } => "artifact_io",
        }
    }

    pub(crate) fn io<E: Into<io::Error>>(doing: impl Into<String>) -> impl FnOnce(E) -> Self {
        let doing = doing.into();
        move |cause| Self::Io { doing, cause: cause.into() }
    }
}
