//! What a file holds.

use std::path::Path;

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
    /// A file of which so much was read; its type is that of its name and content.
    pub fn new(name: String, bytes: Vec<u8>, size_bytes: u64) -> Self {
        // A file may have grown meanwhile.
        let size_bytes = size_bytes.max(bytes.len() as u64);
        let truncated = size_bytes > bytes.len() as u64;
        let mime_type = mime_type(&name, &bytes, size_bytes);
        Self { name, bytes, size_bytes, truncated, mime_type }
    }

    /// Whether it can be read as text.
    pub fn is_text(&self) -> bool {
        self.text().is_some()
    }

    /// What was read, if the file is text in UTF-8; a character that was cut in two is left out.
    pub fn text(&self) -> Option<&str> {
        if !is_text_type(&self.mime_type) {
            return None;
        }
        text(&self.bytes, self.size_bytes)
    }
}

/// The bytes as text; `None` if they are not UTF-8 or hold what no text holds. If they are only
/// the beginning of a larger file, a character that is cut in two at their end is left out.
fn text(bytes: &[u8], size_bytes: u64) -> Option<&str> {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() && size_bytes > bytes.len() as u64 => {
            std::str::from_utf8(bytes.get(..error.valid_up_to())?).ok()?
        }
        Err(_) => return None,
    };
    // Form feeds, escapes and the like occur in text; a NUL does not.
    (!text.contains('\0')).then_some(text)
}

fn is_text_type(mime_type: &str) -> bool {
    const TEXT: [&str; 9] = [
        "application/json",
        "application/javascript",
        "application/xml",
        "application/toml",
        "application/yaml",
        "application/x-yaml",
        "application/x-sh",
        "application/sql",
        "application/x-ndjson",
    ];
    mime_type.starts_with("text/")
        || mime_type.ends_with("+json")
        || mime_type.ends_with("+xml")
        || TEXT.contains(&mime_type)
}

/// What a file of this size is that begins so. The content decides between text and anything else; the end of the name says
/// which text it is, or which of the formats that the content does not tell.
pub(crate) fn mime_type(name: &str, bytes: &[u8], size_bytes: u64) -> String {
    let guessed = Path::new(name)
        .extension()
        .and_then(|extension| extension.to_str())
        .and_then(|extension| mime_guess::from_ext(extension).first_raw());
    let found = if bytes.starts_with(b"%PDF-") {
        "application/pdf"
    } else if text(bytes, size_bytes).is_some() {
        guessed.filter(|guess| is_text_type(guess)).unwrap_or("text/plain")
    } else {
        let by_content = infer::get(bytes).map(|kind| kind.mime_type());
        let by_content = by_content.filter(|kind| !is_text_type(kind));
        by_content
            .or(guessed.filter(|guess| !is_text_type(guess)))
            .unwrap_or("application/octet-stream")
    };
    found.to_owned()
}

#[cfg(test)]
mod tests {
    use super::{CollectedFile, mime_type};

    #[test]
    fn content_and_name_tell_the_type() {
        const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
        for (name, bytes, expected) in [
            ("out/a.txt", &b"hello"[..], "text/plain"),
            ("out/a", b"hello", "text/plain"),
            ("out/a.json", b"{}", "application/json"),
            ("out/a.csv", b"a,b", "text/csv"),
            ("out/a.md", b"# a", "text/markdown"),
            ("out/a.html", b"<p>", "text/html"),
            ("out/a.svg", b"<svg/>", "image/svg+xml"),
            ("out/a.ts", b"let a = 1", "text/plain"),
            ("out/a.bin", b"BMW sells", "text/plain"),
            ("out/empty.txt", b"", "text/plain"),
            ("out/empty", b"", "text/plain"),
            // The content decides, not the name.
            ("out/a.png", b"hello", "text/plain"),
            ("out/a.txt", PNG, "image/png"),
            ("out/a.json", b"\0\x01\x02", "application/octet-stream"),
            ("out/a.pdf", b"%PDF-1.4\nplain", "application/pdf"),
            ("out/a.zip", b"PK\x03\x04\x14\0\0\0", "application/zip"),
            ("out/a.wasm", b"\0asm\x01\0\0\0", "application/wasm"),
            ("out/latin1.txt", b"caf\xe9 au lait", "application/octet-stream"),
        ] {
            assert_eq!(mime_type(name, bytes, bytes.len() as u64), expected, "{name} {bytes:?}");
        }
    }

    #[test]
    fn text_is_cut_between_characters_only_where_it_was_cut() {
        let file = |bytes: &[u8], size| CollectedFile::new("out/a.txt".into(), bytes.into(), size);
        assert_eq!(file("aé".as_bytes(), 3).text(), Some("aé"));
        assert_eq!(file(&"aé".as_bytes()[..2], 3).text(), Some("a"));
        assert_eq!(file(&"a😀".as_bytes()[..4], 5).text(), Some("a"));
        assert!(file(&"aé".as_bytes()[..2], 3).truncated);
        // Whole, and no UTF-8 at its end.
        assert_eq!(file(&"aé".as_bytes()[..2], 2).text(), None);
        assert_eq!(file(b"a\xffb", 99).text(), None);
        assert_eq!(file(b"a\0b", 3).text(), None);
        assert_eq!(file(b"", 0).text(), Some(""));
        assert!(!file(b"%PDF-1.4", 8).is_text());
    }
}
