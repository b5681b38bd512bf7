//! Where artifacts are kept: the section `[artifacts]` of `prowess.toml`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use prowess_workspace::{ArtifactStore, FileArtifacts, MemoryArtifacts};
#[cfg(feature = "s3")]
use prowess_workspace::{InvalidS3Settings, S3Artifacts, S3Credentials, S3Settings};
use serde::{Deserialize, Serialize};

/// Where artifacts are kept: the section `[artifacts]` of `prowess.toml`.
///
/// ```toml
/// [artifacts]
/// store = "file"                 # or "memory", until the program ends; or "s3"
/// folder = "artifacts"           # of "file"; below the host's own folder, or anywhere
///
/// [artifacts.s3]
/// endpoint = ""                  # https://…; empty, that of AWS in the region
/// bucket = ""                    # it must be there
/// region = "us-east-1"
/// prefix = ""                    # in front of all keys
/// path_style = true              # the bucket is in the path, not in the host's name
/// allow_http = false             # unencrypted, to other hosts than this one
/// access_key_id_env = "AWS_ACCESS_KEY_ID"          # variables; no credentials are
/// secret_access_key_env = "AWS_SECRET_ACCESS_KEY"  # written down here
/// session_token_env = "AWS_SESSION_TOKEN"
/// connect_timeout_ms = 5000
/// request_timeout_ms = 60000     # one request with its answer
/// operation_timeout_ms = 180000  # one save, load, list or delete
/// max_retries = 3                # of a request that got no answer
/// ```
///
/// `[artifacts.s3]` needs the feature `s3`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ArtifactSettings {
    /// What keeps them.
    pub store: ArtifactPlace,
    /// The folder of [`ArtifactPlace::File`].
    pub folder: PathBuf,
    /// The bucket of [`ArtifactPlace::S3`].
    #[cfg(feature = "s3")]
    pub s3: S3Settings,
    /// What another build would read.
    #[cfg(not(feature = "s3"))]
    #[serde(skip_serializing)]
    s3: toml::Table,
}

/// What keeps artifacts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ArtifactPlace {
    /// Files below a folder.
    #[default]
    File,
    /// Memory, until the program ends.
    Memory,
    /// A bucket on S3-compatible storage.
    S3,
}

/// Why a section `[artifacts]` cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidArtifactSettings {
    /// It is not what it should be.
    #[error("[artifacts]: {0}")]
    Section(Box<toml::de::Error>),
    /// The bucket cannot be used.
    #[cfg(feature = "s3")]
    #[error("[artifacts.s3]: {0}")]
    S3(InvalidS3Settings),
    /// This program was built without it.
    #[error("[artifacts]: store = \"s3\" needs a program that was built with the feature `s3`")]
    NoS3,
}

#[cfg(feature = "s3")]
impl From<InvalidS3Settings> for InvalidArtifactSettings {
    fn from(error: InvalidS3Settings) -> Self {
        Self::S3(error)
    }
}

impl InvalidArtifactSettings {
    /// The stable name.
    pub fn code(&self) -> &'static str {
        "invalid_artifact_settings"
    }
}

impl Default for ArtifactSettings {
    fn default() -> Self {
        Self { store: ArtifactPlace::File, folder: "artifacts".into(), s3: Default::default() }
    }
}

impl ArtifactSettings {
    /// The settings in a section `[artifacts]`.
    pub fn from_table(table: toml::Table) -> Result<Self, InvalidArtifactSettings> {
        table.try_into().map_err(|error| InvalidArtifactSettings::Section(Box::new(error)))
    }

    /// The store, with artifacts of at most so many bytes each. A folder is below `home` unless it
    /// is absolute; credentials of a bucket come from the environment.
    pub fn open(
        &self,
        home: &Path,
        max_artifact_bytes: u64,
    ) -> Result<Arc<dyn ArtifactStore>, InvalidArtifactSettings> {
        match self.store {
            ArtifactPlace::File => {
                let files = FileArtifacts::new(home.join(&self.folder));
                Ok(Arc::new(files.with_max_bytes(max_artifact_bytes)))
            }
            ArtifactPlace::Memory => {
                Ok(Arc::new(MemoryArtifacts::new().with_max_bytes(max_artifact_bytes)))
            }
            #[cfg(feature = "s3")]
            ArtifactPlace::S3 => {
                // What is wrong with the settings is told before what is missing around them.
                self.s3.check()?;
                let credentials = S3Credentials::from_env(&self.s3)?;
                let bucket = S3Artifacts::open(self.s3.clone(), &credentials)?;
                Ok(Arc::new(bucket.with_max_bytes(max_artifact_bytes)))
            }
            #[cfg(not(feature = "s3"))]
            ArtifactPlace::S3 => Err(InvalidArtifactSettings::NoS3),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<ArtifactSettings, InvalidArtifactSettings> {
        ArtifactSettings::from_table(toml::from_str(text).unwrap())
    }

    #[test]
    #[cfg(feature = "s3")]
    fn every_key_of_the_documentation_is_known_and_has_its_default() {
        assert_eq!(read("").unwrap(), ArtifactSettings::default());
        let documentation = include_str!("artifacts.rs").lines();
        let section = documentation
            .filter_map(|line| line.strip_prefix("/// "))
            .skip_while(|line| *line != "```toml")
            .skip(1)
            .take_while(|line| *line != "```");
        let section: Vec<&str> = section.collect();
        let mut file: toml::Table = toml::from_str(&section.join("\n")).unwrap();
        let Some(toml::Value::Table(table)) = file.remove("artifacts") else { panic!("{file}") };
        let own = toml::Table::try_from(ArtifactSettings::default()).unwrap();
        assert_eq!(table, own, "the documentation and the settings differ");
        assert_eq!(ArtifactSettings::from_table(table).unwrap(), ArtifactSettings::default());
    }

    #[test]
    fn wrong_settings_are_named() {
        for (text, expected) in [
            ("stores = \"s3\"", "unknown field `stores`, expected"),
            ("store = \"ftp\"", "unknown variant `ftp`, expected one of `file`, `memory`, `s3`"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.to_string().starts_with("[artifacts]: "), "{text}: {error}");
            assert!(error.to_string().contains(expected), "{text}: {error}");
            assert_eq!(error.code(), "invalid_artifact_settings");
        }
    }

    #[test]
    #[cfg(feature = "s3")]
    fn a_bucket_that_cannot_be_used_is_not_opened() {
        for (text, expected) in [
            ("", "[artifacts.s3]: bucket: it is missing"),
            ("bucket = \"b\"\nendpoint = \"http://s3.example.com\"", "[artifacts.s3]: endpoint: "),
            (
                "bucket = \"b\"\naccess_key_id_env = \"PROWESS_TEST_NOT_SET\"",
                "[artifacts.s3]: the variable PROWESS_TEST_NOT_SET is not set",
            ),
        ] {
            let settings = read(&format!("store = \"s3\"\n[s3]\n{text}")).unwrap();
            let error = settings.open(Path::new("/nowhere"), 1).err().unwrap();
            assert!(error.to_string().starts_with(expected), "{error}");
        }
        for text in ["secret_access_key = \"x\"", "[s3]\nsecret_access_key = \"x\""] {
            let error = read(text).unwrap_err();
            assert!(error.to_string().contains("unknown field `secret_access_key`"), "{error}");
        }
    }

    #[test]
    #[cfg(not(feature = "s3"))]
    fn a_build_without_s3_says_so() {
        let settings = read("store = \"s3\"\n[s3]\nbucket = \"b\"").unwrap();
        let error = settings.open(Path::new("/nowhere"), 1).err().unwrap();
        assert!(error.to_string().contains("feature `s3`"), "{error}");
    }
}
