//! Whether a command waits for somebody to say something.

use serde::Serialize;

/// What a command seems to wait for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Interaction {
    pub(crate) needs_input: bool,
    pub(crate) kind: Kind,
    /// What it asks.
    pub(crate) hint: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// Some text.
    Prompt,
    /// The number of a choice.
    Selection,
}

/// How many lines are looked at.
pub(crate) const LINES: usize = 12;

/// The most bytes of what it asks that are told.
const MOST_BYTES: usize = 200;

const SELECTIONS: [&str; 3] = ["enter the number", "choose a number", "select a number"];
const PROMPTS: [&str; 2] = ["press enter", "type your"];

/// What a command seems to wait for that has written these lines last.
pub(crate) fn interaction(lines: &[&str]) -> Option<Interaction> {
    let plain: Vec<String> = lines.iter().map(|line| without_escapes(line)).collect();
    let plain: Vec<&str> = plain.iter().map(|it| it.trim()).filter(|it| !it.is_empty()).collect();
    let last = *plain.last()?;
    let lower = last.to_lowercase();
    let holds = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    let choices = plain.iter().filter(|line| is_choice(line)).count();
    let kind = if holds(&SELECTIONS) || choices >= 2 {
        Kind::Selection
    } else if last.ends_with([':', '?']) || holds(&PROMPTS) {
        Kind::Prompt
    } else {
        return None;
    };
    let hint = last[..last.floor_char_boundary(MOST_BYTES)].to_owned();
    Some(Interaction { needs_input: true, kind, hint })
}

/// Whether a line begins as `1.` or `1)`.
fn is_choice(line: &str) -> bool {
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    rest.len() < line.len() && rest.starts_with(['.', ')'])
}

/// A line without what tells a terminal how to show it.
fn without_escapes(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut characters = line.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\u{1b}' if characters.next_if_eq(&'[').is_some() => {
                // Up to the letter that ends it.
                let _ = characters.find(|it| ('@'..='~').contains(it));
            }
            // What was written before is written over.
            '\r' => plain.clear(),
            it if it.is_control() && it != '\t' => {}
            it => plain.push(it),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(lines: &[&str]) -> Option<Kind> {
        interaction(lines).map(|it| it.kind)
    }

    #[test]
    fn prompts_and_selections_are_told_apart() {
        use Kind::{Prompt, Selection};
        let table: &[(&[&str], Option<Kind>)] = &[
            (&["Name: "], Some(Prompt)),
            (&["Continue?"], Some(Prompt)),
            (&["done", "Press ENTER to go on"], Some(Prompt)),
            (&["Type your answer"], Some(Prompt)),
            (&["Enter the number of a file"], Some(Selection)),
            (&["choose a number"], Some(Selection)),
            (&["Please select a number >"], Some(Selection)),
            (&["1. red", "2. blue", "> "], Some(Selection)),
            (&["1) red", "10) blue", "Colour:"], Some(Selection)),
            (&["1. red", "Colour:"], Some(Prompt)),
            (&["1.5 is the ratio"], None),
            (&["3 files"], None),
            (&["$ "], None),
            (&["Name:", "thanks"], None),
            (&[], None),
            (&["\u{1b}[1;32mName:\u{1b}[0m "], Some(Prompt)),
            (&["working\rName:"], Some(Prompt)),
        ];
        for (lines, expected) in table {
            assert_eq!(kind(lines), *expected, "{lines:?}");
        }
    }

    #[test]
    fn the_hint_is_what_it_asks_without_escapes_and_not_too_long() {
        let hint = |line: &str| interaction(&[line]).unwrap().hint;
        assert_eq!(hint("\u{1b}]0;title\u{7}\u{1b}[2KName: "), "]0;titleName:");
        let long = format!("{}?", "é".repeat(500));
        assert_eq!(hint(&long).len(), 200);
    }
}
