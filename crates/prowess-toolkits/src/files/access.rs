//! Which tools there are.

use super::Kind;

/// How far files can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum FilesAccess {
    /// `read_file`, `ls`.
    Read,
    /// Also `glob`, `grep`.
    Search,
    /// Also `write_file`, `edit_file`; and `execute`, where the backend has a shell.
    Write,
}

impl FilesAccess {
    pub(super) fn kinds(self) -> &'static [Kind] {
        let all = &[
            Kind::Read,
            Kind::List,
            Kind::Glob,
            Kind::Grep,
            Kind::Write,
            Kind::Edit,
            Kind::Execute,
        ];
        match self {
            Self::Read => &all[..2],
            Self::Search => &all[..4],
            Self::Write => all,
        }
    }
}
