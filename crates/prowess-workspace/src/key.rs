//! Names of folders and files for texts that may be anything.

use sha2::{Digest, Sha256};

/// How much of a text can be read in its key.
const READABLE: usize = 40;

/// A name that can be a file: as much of `shown` as is harmless, and a hash of all `parts`.
/// Different parts have different keys.
pub(crate) fn key(shown: &str, parts: &[&str]) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    let harmless = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let readable: String = shown.chars().take(READABLE).map(harmless).collect();
    format!("{readable}_{}", &hex(&hasher.finalize())[..32])
}

/// Bytes as lowercase hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}

#[cfg(test)]
mod tests {
    use super::key;

    #[test]
    fn parts_are_kept_apart() {
        assert_ne!(key("x", &["a", "bc"]), key("x", &["ab", "c"]));
        assert_ne!(key("x", &["a", ""]), key("x", &["", "a"]));
        assert_ne!(key("x", &["a"]), key("x", &["a", ""]));
        assert_eq!(key("x", &["a", "b"]), key("x", &["a", "b"]));
    }

    #[test]
    fn a_key_is_a_plain_name_whatever_the_text() {
        let long = "x".repeat(5000);
        for text in ["", ".", "..", "../../etc", "a/b", "a\\b", "a\0b", "\u{202e}", "*?[", &long] {
            let key = key(text, &[text]);
            assert!(key.len() <= 80, "{key}");
            assert!(key.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b)), "{key}");
        }
    }
}
