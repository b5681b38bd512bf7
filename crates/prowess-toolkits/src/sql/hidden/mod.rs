//! The other part of the first layer: what the database would call for a statement that does not
//! say so. A view, a policy, an operator, a cast, a check of a domain or a function with the name of
//! another one can do anything, and only the catalogue knows of them.
//!
//! SQLite has nothing of the kind: what a view calls there are functions of its own, which read.

pub(crate) mod mysql;
pub(crate) mod postgresql;

use super::guard::{Named, Reading};

/// A statement to run.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) sql: String,
    /// What it names, if what is behind the names is to be looked at first.
    pub(crate) named: Option<Named>,
}

impl Asked {
    /// A statement behind which nothing is looked for: one of ours.
    pub(crate) fn ours(sql: impl Into<String>) -> Self {
        Self { sql: sql.into(), named: None }
    }
}

impl From<Reading> for Asked {
    fn from(reading: Reading) -> Self {
        Self { sql: reading.text, named: Some(reading.named) }
    }
}
