//! Stores that are not there.

use prowess_runtime::StoreError;

use crate::key::KeyError;
use crate::version::VersionError;

/// The database does not do what it is asked: what it says.
#[derive(Clone, Debug)]
pub(crate) struct Unavailable(pub(crate) String);

impl From<Unavailable> for StoreError {
    fn from(Unavailable(cause): Unavailable) -> Self {
        Self::Unavailable { cause }
    }
}

impl From<Unavailable> for VersionError {
    fn from(Unavailable(cause): Unavailable) -> Self {
        Self::Unavailable(cause)
    }
}

impl From<Unavailable> for KeyError {
    fn from(Unavailable(cause): Unavailable) -> Self {
        Self::Unavailable(cause)
    }
}
