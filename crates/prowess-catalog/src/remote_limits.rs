//! How much may come from elsewhere, and how long that may take.

use std::time::Duration;

use serde::Deserialize;

/// The limits of archives and URLs, as `[remote]` in `prowess.toml` sets them. Whatever exceeds
/// one is refused as a whole: nothing of it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct RemoteLimits {
    /// Bytes of one download, and of an archive on this machine.
    pub download_bytes: u64,
    /// Bytes of one file in an archive.
    pub entry_bytes: u64,
    /// Bytes of all files in an archive.
    pub total_bytes: u64,
    /// Files and folders in an archive, those included that are only part of a path.
    pub entries: usize,
    /// How many times larger than the archive its content may be.
    pub ratio: u64,
    /// Content of at most so many bytes may have any ratio.
    pub ratio_from: u64,
    /// Bytes of one extended header in a tar archive.
    pub extension_bytes: u64,
    /// Bytes of an index of skills.
    pub index_bytes: u64,
    /// Skills in an index; the others are left out.
    pub index_skills: usize,
    /// How often a server may send us elsewhere.
    pub redirects: usize,
    /// Seconds until somebody answers.
    pub connect_seconds: u64,
    /// Seconds without a byte.
    pub idle_seconds: u64,
    /// Seconds for one source altogether, every file of an index included.
    pub fetch_seconds: u64,
    /// What was fetched is not asked for again for so many seconds.
    pub fresh_seconds: u64,
    /// Nor is it for so many seconds after that has failed.
    pub retry_seconds: u64,
    /// What nobody has used for so many seconds is removed when something else is fetched.
    pub unused_seconds: u64,
}

impl Default for RemoteLimits {
    fn default() -> Self {
        Self {
            download_bytes: 64 << 20,
            entry_bytes: 64 << 20,
            total_bytes: 256 << 20,
            entries: 10_000,
            ratio: 100,
            ratio_from: 1 << 20,
            extension_bytes: 64 << 10,
            index_bytes: 1 << 20,
            index_skills: 1_000,
            redirects: 5,
            connect_seconds: 10,
            idle_seconds: 30,
            fetch_seconds: 300,
            fresh_seconds: 3_600,
            retry_seconds: 60,
            unused_seconds: 30 * 86_400,
        }
    }
}

macro_rules! setters {
    ($($method:ident $field:ident: $kind:ty;)+) => {
        $(#[doc = concat!("Sets [`RemoteLimits::", stringify!($field), "`].")]
        pub fn $method(mut self, $field: $kind) -> Self { self.$field = $field; self })+
    };
}

impl RemoteLimits {
    setters! {
        with_download_bytes download_bytes: u64;
        with_entry_bytes entry_bytes: u64;
        with_total_bytes total_bytes: u64;
        with_entries entries: usize;
        with_ratio ratio: u64;
        with_ratio_from ratio_from: u64;
        with_extension_bytes extension_bytes: u64;
        with_index_bytes index_bytes: u64;
        with_index_skills index_skills: usize;
        with_redirects redirects: usize;
        with_connect_seconds connect_seconds: u64;
        with_idle_seconds idle_seconds: u64;
        with_fetch_seconds fetch_seconds: u64;
        with_fresh_seconds fresh_seconds: u64;
        with_retry_seconds retry_seconds: u64;
        with_unused_seconds unused_seconds: u64;
    }

    /// How long one source may take altogether.
    pub fn fetch_time(&self) -> Duration {
        Duration::from_secs(self.fetch_seconds)
    }

    /// How long something is kept that nobody uses.
    pub fn unused_time(&self) -> Duration {
        Duration::from_secs(self.unused_seconds)
    }
}
