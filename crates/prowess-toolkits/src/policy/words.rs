//! The words of a command that no shell reads: as a shell would pass them on, or none at all.

use super::CommandError;

/// Characters that no single command needs, not even quoted.
const NEVER: [char; 8] = ['\n', '\r', ';', '&', '|', '<', '>', '`'];

/// What is said of a character that cannot be used.
const NEVER_USED: &str = "cannot be used, not even in quotes; run one program with its arguments";
const HIDDEN: &str = "cannot be seen, or makes the rest look like something else; leave it out";
const EXPANDED: &str = "would stand for something else; write what it stands for, or put it into \
                        single quotes to mean itself";
const GROUPED: &str = "would be syntax; put it into single quotes to mean itself";
const COMMENT: &str = "would begin a comment; put it into single quotes to mean itself";
const BLANK: &str = "only looks like a space; use a plain one, or put it into quotes";

/// Splits a command into words. What a shell would take as anything but words, or as words other
/// than those that are written, is refused: no shell will do it, and a reader would think that one
/// did. Empty words in quotes are words.
pub(super) fn split(text: &str) -> Result<Vec<String>, CommandError> {
    for (at, character) in text.chars().enumerate() {
        let what = match character {
            '\0' => return Err(CommandError::Nul),
            character if NEVER.contains(&character) => NEVER_USED,
            character if is_deceptive(character) => HIDDEN,
            _ => continue,
        };
        return Err(refused(character, at, what));
    }
    let characters: Vec<char> = text.chars().collect();
    let mut reader = Reader { characters: &characters, at: 0 };
    let mut words = Vec::new();
    while let Some(word) = reader.word()? {
        words.push(word);
    }
    Ok(words)
}

fn refused(character: char, at: usize, what: &'static str) -> CommandError {
    CommandError::Syntax { character, position: at + 1, what }
}

/// Where it is in a text that holds no character which is never used.
struct Reader<'a> {
    characters: &'a [char],
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<char> {
        self.characters.get(self.at).copied()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += 1;
        Some(next)
    }

    /// The next word, if there is one.
    fn word(&mut self) -> Result<Option<String>, CommandError> {
        while self.peek().is_some_and(is_blank) {
            self.at += 1;
        }
        if self.peek().is_none() {
            return Ok(None);
        }
        // A pair of braces around nothing means itself, if it is a word of its own.
        if let ['{', '}', rest @ ..] = &self.characters[self.at..]
            && rest.first().is_none_or(|next| is_blank(*next))
        {
            self.at += 2;
            return Ok(Some("{}".to_owned()));
        }
        let mut word = String::new();
        while let Some(character) = self.peek().filter(|it| !is_blank(*it)) {
            let at = self.at;
            self.at += 1;
            match character {
                '\'' => self.single(&mut word)?,
                '"' => self.double(&mut word)?,
                '\\' => word.push(self.next().ok_or(CommandError::Open { what: "\\" })?),
                plain => match meaning(plain, &word) {
                    Some(what) => return Err(refused(plain, at, what)),
                    None => word.push(plain),
                },
            }
        }
        Ok(Some(word))
    }

    fn single(&mut self, word: &mut String) -> Result<(), CommandError> {
        loop {
            match self.next().ok_or(CommandError::Open { what: "'" })? {
                '\'' => return Ok(()),
                inside => word.push(inside),
            }
        }
    }

    fn double(&mut self, word: &mut String) -> Result<(), CommandError> {
        let open = CommandError::Open { what: "\"" };
        loop {
            let at = self.at;
            match self.next().ok_or(open.clone())? {
                '"' => return Ok(()),
                '$' => return Err(refused('$', at, EXPANDED)),
                '\\' => match self.next().ok_or(open.clone())? {
                    escaped @ ('"' | '\\' | '$') => word.push(escaped),
                    other => word.extend(['\\', other]),
                },
                inside => word.push(inside),
            }
        }
    }
}

fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t')
}

/// What a character would mean that stands outside of quotes, behind what a word has so far; `None`
/// if it means itself.
fn meaning(character: char, word: &str) -> Option<&'static str> {
    match character {
        '$' | '*' | '?' | '[' => Some(EXPANDED),
        '{' | '}' | '(' | ')' | '!' => Some(GROUPED),
        '~' if word.is_empty() || word.ends_with(['=', ':']) => Some(EXPANDED),
        '#' if word.is_empty() => Some(COMMENT),
        character if character.is_whitespace() => Some(BLANK),
        character if is_invisible(character) => Some(HIDDEN),
        _ => None,
    }
}

/// Whether a character controls a terminal, changes the order in which others are shown, or carries
/// text that nobody sees.
fn is_deceptive(character: char) -> bool {
    let is_control = character.is_control() && character != '\t';
    is_control
        || matches!(
            character,
            '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{e0000}'..='\u{e0fff}'
        )
}

/// Whether nothing is seen of a character.
fn is_invisible(character: char) -> bool {
    matches!(
        character,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{206f}'
            | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff9}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_that_a_shell_would_pass_on() {
        let table: [(&str, &[&str]); 22] = [
            ("", &[]),
            (" \t ", &[]),
            ("a b  c", &["a", "b", "c"]),
            ("\ta\tb ", &["a", "b"]),
            ("a 'b c' \"d e\"", &["a", "b c", "d e"]),
            ("a '' \"\"", &["a", "", ""]),
            ("''", &[""]),
            ("a b\\ c", &["a", "b c"]),
            ("a \"\\\"b\\n\"", &["a", "\"b\\n"]),
            ("a \"\\$x \\\\ \\a\"", &["a", "$x \\ \\a"]),
            ("a'b'\"c\"d", &["abcd"]),
            ("'$HOME' '*' \\* \\$x \\~", &["$HOME", "*", "*", "$x", "~"]),
            ("a~ x=y~ HEAD~1", &["a~", "x=y~", "HEAD~1"]),
            ("a#b '#' \\#", &["a#b", "#", "#"]),
            ("a \"Hi!\" '!' \\!", &["a", "Hi!", "!", "!"]),
            ("find {} \t{}", &["find", "{}", "{}"]),
            ("a '{b,c}' '(d)' \"[e]\"", &["a", "{b,c}", "(d)", "[e]"]),
            ("a b] c^ %d @e +f ,g =h", &["a", "b]", "c^", "%d", "@e", "+f", ",g", "=h"]),
            ("größe 'ä ö' 猫", &["größe", "ä ö", "猫"]),
            ("a '10\u{a0}000' \"👩\u{200d}🔬\"", &["a", "10\u{a0}000", "👩\u{200d}🔬"]),
            ("a \\'b\\' \\\"c", &["a", "'b'", "\"c"]),
            ("a 'x\ty'", &["a", "x\ty"]),
        ];
        for (text, expected) in table {
            assert_eq!(split(text).as_deref(), Ok(expected.map_owned().as_slice()), "{text:?}");
        }
    }

    trait MapOwned {
        fn map_owned(&self) -> Vec<String>;
    }

    impl MapOwned for &[&str] {
        fn map_owned(&self) -> Vec<String> {
            self.iter().map(|word| (*word).to_owned()).collect()
        }
    }

    #[test]
    fn what_a_shell_would_not_pass_on_is_refused_by_its_place() {
        let table = [
            ("a $b", '$', 3),
            ("a \"$b\"", '$', 4),
            ("a x$", '$', 4),
            ("a \"x\"$", '$', 6),
            ("a $'b'", '$', 3),
            ("a $\"b\"", '$', 3),
            ("a *", '*', 3),
            ("a b?", '?', 4),
            ("a [b]", '[', 3),
            ("a ~", '~', 3),
            ("a ~/b", '~', 3),
            ("a ''~", '~', 5),
            ("a b=~/c", '~', 5),
            ("a b:~", '~', 5),
            ("a {b,c}", '{', 3),
            ("a {}b", '{', 3),
            ("a b{}", '{', 4),
            ("a }", '}', 3),
            ("a # b", '#', 3),
            ("# b", '#', 1),
            ("! a", '!', 1),
            ("a b!", '!', 4),
            ("(a)", '(', 1),
            ("a )", ')', 3),
            ("a\u{a0}b", '\u{a0}', 2),
            ("a\u{3000}b", '\u{3000}', 2),
            ("a\u{200b}b", '\u{200b}', 2),
            ("a\u{feff}b", '\u{feff}', 2),
        ];
        for (text, character, position) in table {
            let refused = split(text).unwrap_err();
            let CommandError::Syntax { character: found, position: at, .. } = refused else {
                panic!("{text:?}: {refused}");
            };
            assert_eq!((found, at), (character, position), "{text:?}");
        }
    }

    #[test]
    fn what_is_never_used_is_refused_in_quotes_too() {
        let deceptive = ['\u{202e}', '\u{2066}', '\u{2028}', '\u{e0041}', '\u{1b}', '\u{7f}'];
        let controls =
            ['\u{85}', '\u{b}', '\u{c}', '\u{2029}', '\u{2069}', '\u{202a}', '\u{e0fff}'];
        for character in NEVER.into_iter().chain(deceptive).chain(controls) {
            for text in ["a X b", "aXb", "a 'X'", "a \"X\"", "a \\X", "X", "a X"] {
                let text = text.replace('X', &character.to_string());
                let refused = split(&text).unwrap_err();
                assert!(
                    matches!(refused, CommandError::Syntax { character: found, .. } if found == character),
                    "{text:?}: {refused}"
                );
            }
        }
        for text in ["\0", "a '\0'", "a\0; b"] {
            assert_eq!(split(text), Err(CommandError::Nul), "{text:?}");
        }
    }

    #[test]
    fn what_is_not_closed_is_refused() {
        for (text, what) in
            [("a 'b", "'"), ("a \"b", "\""), ("a \"b\\", "\""), ("a \\", "\\"), ("'", "'")]
        {
            assert_eq!(split(text), Err(CommandError::Open { what }), "{text}");
        }
    }
}
