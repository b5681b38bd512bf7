//! How much a scan may touch.

/// The limits of a scan. Each is reported when it is hit; what was found until then stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScanLimits {
    /// How many levels below the root skills are searched: 1 finds `root/skill/SKILL.md`.
    pub depth: usize,
    /// Folders that are looked into, skill folders included.
    pub folders: usize,
    /// Names that are read from folders.
    pub entries: usize,
    /// Bytes of `SKILL.md` files that are taken, all in all. Where there are more, as many again
    /// may have been read before it is known which ones come first.
    pub bytes: u64,
    /// Bytes of one `SKILL.md`.
    pub file_bytes: u64,
    /// Resources of one skill.
    pub resources: usize,
    /// How many levels below a skill's folder its resources may be.
    pub resource_depth: usize,
    /// Bytes of one resource.
    pub resource_bytes: u64,
}

impl Default for ScanLimits {
    fn default() -> Self {
        Self {
            depth: 6,
            folders: 50_000,
            entries: 500_000,
            bytes: 1 << 30,
            file_bytes: 10 << 20,
            resources: 10_000,
            resource_depth: 16,
            resource_bytes: 64 << 20,
        }
    }
}

macro_rules! setters {
    ($($method:ident $field:ident: $kind:ty;)+) => {
        $(#[doc = concat!("Sets [`ScanLimits::", stringify!($field), "`].")]
        pub fn $method(mut self, $field: $kind) -> Self { self.$field = $field; self })+
    };
}

impl ScanLimits {
    setters! {
        with_depth depth: usize;
        with_folders folders: usize;
        with_entries entries: usize;
        with_bytes bytes: u64;
        with_file_bytes file_bytes: u64;
        with_resources resources: usize;
        with_resource_depth resource_depth: usize;
        with_resource_bytes resource_bytes: u64;
    }
}
