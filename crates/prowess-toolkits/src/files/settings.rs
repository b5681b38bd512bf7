//! What a host can set: the section `[files]` of `prowess.toml`.

use serde::{Deserialize, Serialize};

/// How files are read: the section `[files]` of `prowess.toml`.
///
/// ```toml
/// [files]
/// max_lines = 2000         # that one call gives
/// max_bytes = 65536        # that one call gives
/// max_file_bytes = 4194304 # of a file that are looked at
/// max_entries = 500        # of a folder that are listed
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
        Self { max_lines: 2000, max_bytes: 64 << 10, max_file_bytes: 4 << 20, max_entries: 500 }
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
        let all = "max_lines = 1\nmax_bytes = 2\nmax_file_bytes = 3\nmax_entries = 4";
        let expected =
            FilesSettings { max_lines: 1, max_bytes: 2, max_file_bytes: 3, max_entries: 4 };
        assert_eq!(read(all).unwrap(), expected);
        let wrong = read("lines = 1").unwrap_err();
        assert!(wrong.to_string().contains("unknown field `lines`"), "{wrong}");
        assert_eq!(wrong.code(), "invalid_files_settings");
    }
}
