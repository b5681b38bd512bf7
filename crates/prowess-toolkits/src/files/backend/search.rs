//! What is searched for, and what comes of it.

use std::fmt;

use prowess_workspace::WorkspacePath;

use super::PathGlob;

/// How much a search may look at and find; each has a key in the section `[files]`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SearchLimits {
    /// Matches: files, or lines where lines are wanted (`max_matches`).
    pub matches: u64,
    /// Files and folders that are looked at (`max_walked`).
    pub walked: u64,
    /// Bytes of a file that are looked at (`max_file_bytes`).
    pub file_bytes: u64,
    /// Bytes of all files that are looked at (`max_searched_bytes`).
    pub searched_bytes: u64,
}

impl Default for SearchLimits {
    fn default() -> Self {
        Self { matches: 200, walked: 20_000, file_bytes: 4 << 20, searched_bytes: 64 << 20 }
    }
}

/// At which limit a search ended, and where that is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SearchCut {
    /// [`SearchLimits::matches`].
    Matches(u64),
    /// [`SearchLimits::walked`].
    Walked(u64),
    /// [`SearchLimits::searched_bytes`].
    SearchedBytes(u64),
}

impl fmt::Display for SearchCut {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (key, most) = match self {
            Self::Matches(most) => ("max_matches", most),
            Self::Walked(most) => ("max_walked", most),
            Self::SearchedBytes(most) => ("max_searched_bytes", most),
        };
        write!(formatter, "the search ended at {key} = {most}")
    }
}

/// Which files are wanted.
#[derive(Clone, Debug)]
pub struct GlobQuery {
    /// The folder that is searched.
    pub folder: WorkspacePath,
    /// What their paths below it match.
    pub glob: PathGlob,
    /// How much is looked at.
    pub limits: SearchLimits,
}

/// The files that match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Globbed {
    /// Where they are, from the root of the backend.
    pub files: Vec<WorkspacePath>,
    /// Folders that could not be looked into.
    pub unreadable: u64,
    /// At which limit the search ended, if it did not come to its end.
    pub cut: Option<SearchCut>,
}

/// What is wanted of files that hold a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GrepMode {
    /// Which ones they are.
    #[default]
    Files,
    /// The lines.
    Lines,
    /// How many lines they are.
    Count,
}

/// Which text is looked for, and where.
#[derive(Clone, Debug)]
pub struct GrepQuery {
    /// The folder that is searched, or the one file.
    pub folder: WorkspacePath,
    /// The text, letter by letter.
    pub text: String,
    /// Which files are searched; all if it is none.
    pub glob: Option<PathGlob>,
    /// What is wanted.
    pub mode: GrepMode,
    /// How much is looked at.
    pub limits: SearchLimits,
}

/// A line that holds the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrepLine {
    /// Its number, from 1.
    pub number: u64,
    /// The line, without its end.
    pub text: String,
}

/// A file that holds the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrepFile {
    /// Where it is, from the root of the backend.
    pub path: WorkspacePath,
    /// How many lines hold the text; 1 if only the file was wanted.
    pub count: u64,
    /// The lines, if they were wanted.
    pub lines: Vec<GrepLine>,
}

/// What was not searched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Skipped {
    /// Files that are no text.
    pub not_text: u64,
    /// Files that are too large, and of which the beginning was searched.
    pub too_large: u64,
    /// Files and folders that could not be read.
    pub unreadable: u64,
}

/// The files that hold the text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Grepped {
    /// The files.
    pub files: Vec<GrepFile>,
    /// What was not searched.
    pub skipped: Skipped,
    /// At which limit the search ended, if it did not come to its end.
    pub cut: Option<SearchCut>,
}
