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
/// of its length. Nobody means anything by a name of more than 256 bytes, and comparing takes time
/// that grows with the length of the names only.
pub fn nearest_name<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > LONGEST_TYPO {
        return None;
    }
    let asked: Vec<char> = name.chars().collect();
    let mut best: Option<(usize, &str)> = None;
    let mut letters = Vec::new();
    let mut rows = Rows::default();
    for known in known {
        let most = TYPO_DISTANCE.min(known.len() / 3);
        // One that is farther away than the best so far need not be measured to its end.
        let most = best.map_or(most, |(distance, _)| most.min(distance));
        // An edit changes the length by one character, and a character has at most four bytes.
        if known.len().abs_diff(name.len()) > 4 * most {
            continue;
        }
        letters.clear();
        letters.extend(known.chars());
        let Some(distance) = rows.distance(&asked, &letters, most) else { continue };
        if best.is_none_or(|best| (distance, known) < best) {
            best = Some((distance, known));
        }
    }
    best.map(|(_, known)| known)
}

/// A name this many edits away from a known one is taken for a typo.
const TYPO_DISTANCE: usize = 2;

/// A name of more bytes is not compared with others.
pub(crate) const LONGEST_TYPO: usize = 256;

/// The last three rows of the table that counts edits.
#[derive(Default)]
struct Rows {
    before: Vec<usize>,
    last: Vec<usize>,
    row: Vec<usize>,
}

impl Rows {
    /// How many letters must be put in, left out, replaced or swapped with their neighbour to make
    /// one word of the other, if that is at most `most`. Looks only at as many columns beside the
    /// diagonal as there may be edits, and stops where there are too many.
    fn distance(&mut self, one: &[char], other: &[char], most: usize) -> Option<usize> {
        if one.len().abs_diff(other.len()) > most {
            return None;
        }
        // What both begin and end with needs no edit.
        let same = one.iter().zip(other).take_while(|(one, other)| one == other).count();
        let (one, other) = (&one[same..], &other[same..]);
        let ends = one.iter().rev().zip(other.iter().rev());
        let same = ends.take_while(|(one, other)| one == other).count();
        let (one, other) = (&one[..one.len() - same], &other[..other.len() - same]);
        let (width, far) = (other.len() + 1, most + 1);
        for row in [&mut self.before, &mut self.last, &mut self.row] {
            row.clear();
            row.resize(width, far);
        }
        self.last.iter_mut().enumerate().for_each(|(at, edits)| *edits = at.min(far));
        let mut was_near = true;
        for (i, letter) in one.iter().enumerate() {
            let (from, to) = (i.saturating_sub(most), (i + most + 1).min(other.len()));
            // What stands left of the columns that count is too far away.
            self.row[from] = if from == 0 { (i + 1).min(far) } else { far };
            let mut nearest = self.row[from];
            for j in from..to {
                let is_other = usize::from(*letter != other[j]);
                let mut edits =
                    (self.last[j] + is_other).min(self.last[j + 1] + 1).min(self.row[j] + 1);
                let is_swapped =
                    i > 0 && j > 0 && *letter == other[j - 1] && one[i - 1] == other[j];
                if is_swapped {
                    edits = edits.min(self.before[j - 1] + 1);
                }
                self.row[j + 1] = edits.min(far);
                nearest = nearest.min(edits);
            }
            // A swap reaches back two rows.
            let is_near = nearest <= most;
            if !is_near && !was_near {
                return None;
            }
            was_near = is_near;
            std::mem::swap(&mut self.before, &mut self.last);
            std::mem::swap(&mut self.last, &mut self.row);
        }
        self.last.last().copied().filter(|edits| *edits <= most)
    }
}

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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What it means, as slowly as it likes.
    fn by_definition<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
        let measured = known.iter().map(|known| (strsim::osa_distance(name, known), *known));
        let near =
            measured.filter(|(distance, known)| *distance <= TYPO_DISTANCE.min(known.len() / 3));
        near.min().map(|(_, known)| known)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2048))]

        #[test]
        fn the_nearest_name_is_the_one_by_definition(
            name in "[ab\u{e4}\u{1f600}-]{0,12}",
            known in prop::collection::vec("[ab\u{e4}\u{1f600}-]{0,12}", 0..12),
        ) {
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            prop_assert_eq!(nearest_name(&name, known.iter().copied()), by_definition(&name, &known));
        }

        #[test]
        fn distances_are_those_of_the_whole_table(
            one in "[abc]{0,14}", other in "[abc]{0,14}", most in 0usize..5,
        ) {
            let letters = |text: &str| text.chars().collect::<Vec<_>>();
            let exact = strsim::osa_distance(&one, &other);
            let found = Rows::default().distance(&letters(&one), &letters(&other), most);
            prop_assert_eq!(found, (exact <= most).then_some(exact));
        }
    }

    #[test]
    fn a_long_name_means_nothing_and_costs_nothing() {
        let known = "n".repeat(LONGEST_TYPO + 1);
        let at_the_edge = &known[1..];
        assert_eq!(nearest_name(at_the_edge, [known.as_str()]), Some(known.as_str()));
        assert_eq!(nearest_name(&known, [known.as_str()]), None);
        let huge = "n".repeat(3_000_000);
        let many = vec![huge.as_str(); 10_000];
        let started = std::time::Instant::now();
        assert_eq!(nearest_name(&huge, many.iter().copied()), None);
        assert_eq!(nearest_name(at_the_edge, many.iter().copied()), None);
        assert!(started.elapsed().as_secs() < 2, "{:?}", started.elapsed());
    }

    #[test]
    fn ten_thousand_known_names_are_looked_through_at_once() {
        let known: Vec<String> =
            (0..10_000).map(|number| format!("{}-{number:05}", "n".repeat(240))).collect();
        let asked = format!("{}-x", "n".repeat(244));
        let started = std::time::Instant::now();
        assert_eq!(nearest_name(&asked, known.iter().map(String::as_str)), None);
        assert!(started.elapsed().as_secs() < 2, "{:?}", started.elapsed());
    }
}
