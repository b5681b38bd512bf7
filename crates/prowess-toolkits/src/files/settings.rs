//! What a host can set: the section `[files]` of `prowess.toml`.

use serde::{Deserialize, Serialize};

use super::backend::SearchLimits;

/// How files are used: the section `[files]` of `prowess.toml`.
///
/// ```toml
/// [files]
/// max_lines = 2000         # that one call gives
/// max_bytes = 65536        # that one call gives
/// max_file_bytes = 4194304 # of a file that are looked at
/// max_entries = 500        # of a folder that are listed
/// max_write_bytes = 1048576      # of a file that is written or edited
/// max_matches = 200              # files or lines that one search gives
/// max_walked = 20000             # files and folders that one search looks at
/// max_searched_bytes = 67108864  # of files that one search looks at
/// max_command_seconds = 300      # that `execute` may take
/// max_output_bytes = 16384       # of what a command writes, per stream
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct FilesSettings {
    /// Lines that one call gives.
    pub max_lines: u64,
    /// Bytes that one call gives.
    pub max_bytes: usize,
    /// Bytes of a file that are looked at.
    pub max_file_bytes: u64,
    /// Entries of a folder that are listed.
    pub max_entries: usize,
    /// Bytes of a file that is written or edited.
    pub max_write_bytes: u64,
    /// Files or lines that one search gives.
    pub max_matches: u64,
    /// Files and folders that one search looks at.
    pub max_walked: u64,
    /// Bytes of files that one search looks at.
    pub max_searched_bytes: u64,
    /// Seconds that `execute` may take.
    pub max_command_seconds: u64,
    /// Bytes that are told of what a command writes to each of its outputs.
    pub max_output_bytes: usize,
}

/// Why a section `[files]` cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("[files]: {0}")]
pub struct InvalidFilesSettings(Box<toml::de::Error>);

impl InvalidFilesSettings {
    /// The stable name.
    pub fn code(&self) -> &'static str {
        "invalid_files_settings"
    }
}

impl Default for FilesSettings {
    fn default() -> Self {
        Self {
            max_lines: 2000,
            max_bytes: 64 << 10,
            max_file_bytes: 4 << 20,
            max_entries: 500,
            max_write_bytes: 1 << 20,
            max_matches: 200,
            max_walked: 20_000,
            max_searched_bytes: 64 << 20,
            max_command_seconds: 300,
            max_output_bytes: 16 << 10,
        }
    }
}

macro_rules! setters {
    ($($method:ident $field:ident: $kind:ty;)+) => {
        $(#[doc = concat!("Sets [`FilesSettings::", stringify!($field), "`].")]
        pub fn $method(mut self, $field: $kind) -> Self { self.$field = $field; self })+
    };
}

impl FilesSettings {
    setters! {
        with_max_lines max_lines: u64;
        with_max_bytes max_bytes: usize;
        with_max_file_bytes max_file_bytes: u64;
        with_max_entries max_entries: usize;
        with_max_write_bytes max_write_bytes: u64;
        with_max_matches max_matches: u64;
        with_max_walked max_walked: u64;
        with_max_searched_bytes max_searched_bytes: u64;
        with_max_command_seconds max_command_seconds: u64;
        with_max_output_bytes max_output_bytes: usize;
    }

    /// What one search may look at and find.
    pub(super) fn search_limits(&self) -> SearchLimits {
        SearchLimits {
            matches: self.max_matches,
            walked: self.max_walked,
            file_bytes: self.max_file_bytes,
            searched_bytes: self.max_searched_bytes,
        }
    }

    /// The settings in a section `[files]`.
    pub fn from_table(table: toml::Table) -> Result<Self, InvalidFilesSettings> {
        table.try_into().map_err(|error| InvalidFilesSettings(Box::new(error)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_says_what_is_different() {
        let read = |text: &str| FilesSettings::from_table(toml::from_str(text).unwrap());
        assert_eq!(read("").unwrap(), FilesSettings::default());
        let all = "max_lines = 1\nmax_bytes = 2\nmax_file_bytes = 3\nmax_entries = 4\n\
                   max_write_bytes = 5\nmax_matches = 6\nmax_walked = 7\n\
                   max_searched_bytes = 8\nmax_command_seconds = 9\nmax_output_bytes = 10";
        let expected = FilesSettings {
            max_lines: 1,
            max_bytes: 2,
            max_file_bytes: 3,
            max_entries: 4,
            max_write_bytes: 5,
            max_matches: 6,
            max_walked: 7,
            max_searched_bytes: 8,
            max_command_seconds: 9,
            max_output_bytes: 10,
        };
        assert_eq!(read(all).unwrap(), expected);
        let wrong = read("lines = 1").unwrap_err();
        assert!(wrong.to_string().contains("unknown field `lines`"), "{wrong}");
        assert_eq!(wrong.code(), "invalid_files_settings");
    }
}
