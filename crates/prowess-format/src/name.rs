//! What a skill is called.

use std::borrow::Cow;
use std::fmt;

use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfkc_quick};

/// A name that can stand in a path and in a URI: not empty, no separators, no control
/// characters, not hidden.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SkillName(Box<str>);

impl SkillName {
    /// Takes a name as it was written: in NFKC, blanks around it dropped and inside it
    /// collapsed. `None` if it is empty or unsafe.
    pub fn parse(text: &str) -> Option<Self> {
        let name = normalize(text.trim());
        let name = match name.contains(char::is_whitespace) {
            true => Cow::Owned(name.split_whitespace().collect::<Vec<_>>().join(" ")),
            false => name,
        };
        is_safe(&name).then(|| Self(name.into()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SkillName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// The known name that somebody probably meant: at most two edits away, and no more than a third
/// of its length.
pub fn nearest_name<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .map(|known| (strsim::osa_distance(name, known), known))
        .filter(|(distance, known)| *distance <= TYPO_DISTANCE.min(known.len() / 3))
        .min()
        .map(|(_, known)| known)
}

/// A name this many edits away from a known one is taken for a typo.
const TYPO_DISTANCE: usize = 2;

/// Unicode form NFKC.
pub(crate) fn normalize(text: &str) -> Cow<'_, str> {
    match text.is_ascii() || is_nfkc_quick(text.chars()) == IsNormalized::Yes {
        true => Cow::Borrowed(text),
        false => Cow::Owned(text.nfkc().collect()),
    }
}

/// Whether a normalized name can stand in a path and in a URI.
fn is_safe(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with('.')
        && !name.contains(|c: char| matches!(c, '/' | '\\') || is_deceptive(c))
}

/// Whether a character can deceive a reader or steer a terminal: controls, marks that reorder
/// text, byte order marks, and the invisible tags that smuggle text past people.
pub fn is_deceptive(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{200e}' | '\u{200f}' | '\u{061c}' | '\u{feff}' | '\u{202a}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}' | '\u{e0000}'..='\u{e007f}')
}

/// Whether a text is nothing but printable ASCII, as nearly all are. Looks at all bytes whatever it
/// finds: that is what makes it fast.
pub(crate) fn is_printable_ascii(text: &str) -> bool {
    text.bytes().fold(true, |printable, byte| printable & (0x20..0x7f).contains(&byte))
}
