//! What a file holds.

/// A file of a workspace, or as much of it as was wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CollectedFile {
    /// Where it is, relative to the workspace: `out/a.txt`.
    pub name: String,
    /// What was read of it, from its beginning.
    pub bytes: Vec<u8>,
    /// How large it is.
    pub size_bytes: u64,
    /// Whether it is larger than what was read.
    pub truncated: bool,
    /// What it is, by its content and the end of its name.
    pub mime_type: String,
}

impl CollectedFile {
    /// Whether it can be read as text.
    pub fn is_text(&self) -> bool {
        self.text().is_some()
    }

    /// What was read, if the file is text in UTF-8; a character that was cut in two is left out.
    pub fn text(&self) -> Option<&str> {
        unimplemented!()
    }
}
