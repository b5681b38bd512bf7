//! What a person types behind a skill's name, put into the skill's text.

use std::borrow::Cow;

/// The values that placeholders in a body stand for.
///
/// | written | becomes |
/// |---|---|
/// | `$ARGUMENTS` | everything that was typed |
/// | `$ARGUMENTS[N]`, `$N` | word N, from 0; stays as it is if there is no such word |
/// | `$name` | the word in the place of a declared name; nothing if there is no such word |
/// | `${NAME}` | a variable of the runtime; stays as it is if there is none |
/// | `\$1`, `\$ARGUMENTS`, `\$name` | the same without the backslash, not expanded |
/// | `\\$1` | both backslashes, and the word |
///
/// If arguments were given and the body has no `$ARGUMENTS`, a line `ARGUMENTS: …` is added at
/// the end. One pass: what is put in is not looked at again.
///
/// ```
/// use prowess_format::Arguments;
///
/// let arguments = Arguments::new("report.pdf 'two words'").with_names(["file", "title"]);
/// assert_eq!(
///     arguments.substitute("Open $file as \"$title\". All: $ARGUMENTS"),
///     "Open report.pdf as \"two words\". All: report.pdf 'two words'"
/// );
/// ```
#[derive(Clone, Debug, Default)]
pub struct Arguments {
    raw: String,
    words: Vec<String>,
    names: Vec<String>,
    variables: Vec<(String, String)>,
    /// Whether they have a place elsewhere.
    is_used: bool,
}

impl Arguments {
    /// Arguments as they were typed; an empty string for none.
    pub fn new(raw: impl Into<String>) -> Self {
        let raw = raw.into();
        let words = split_words(&raw);
        Self { raw, words, ..Self::default() }
    }

    /// The names that the skill declares, in the order of the words they stand for.
    pub fn with_names<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.names = names.into_iter().map(Into::into).collect();
        self
    }

    /// A variable for `${name}`, such as `CLAUDE_SKILL_DIR`.
    pub fn with_variable(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }

    /// The body with everything put in.
    pub fn substitute(&self, body: &str) -> String {
        self.substitute_within(body, usize::MAX).unwrap_or_default()
    }

    /// The body with everything put in; nothing if that is longer than `most` bytes. A body with
    /// many places for a long argument costs no more memory than that.
    pub fn substitute_within(&self, body: &str, most: usize) -> Option<String> {
        let (mut out, saw_arguments) = self.filled(body, most)?;
        if !saw_arguments && !self.is_used && !self.raw.trim().is_empty() {
            append_paragraph(&mut out, &format!("ARGUMENTS: {}", self.raw));
        }
        (out.len() <= most).then_some(out)
    }

    /// A command with places that lead to what was typed, and not with what was typed: a shell
    /// never takes that for code, whatever stands around the place. Variables stay as they are, and
    /// no line is added. Also says whether the command has a place for `$ARGUMENTS`.
    ///
    /// ```
    /// use prowess_format::Arguments;
    ///
    /// let (command, _) = Arguments::new("'a; b'").substitute_in_command("grep '$0' f");
    /// assert_eq!(command, "__arguments=('a; b')\ngrep ''\"${__arguments[0]}\"'' f");
    /// ```
    pub fn substitute_in_command(&self, command: &str) -> (String, bool) {
        let mut out = String::with_capacity(command.len());
        let mut quote: Option<char> = None;
        let (mut uses_any, mut saw_arguments) = (false, false);
        let mut at = 0;
        while let Some(character) = command[at..].chars().next() {
            let from = &command[at..];
            let placeholder = match character {
                '$' => self.placeholder(from).filter(|it| it.value.is_some()),
                _ => None,
            };
            if let Some(it) = placeholder {
                let place = match it.which {
                    Which::All if quote.is_none() => "${__arguments[@]}".to_owned(),
                    Which::All => "${__arguments[*]}".to_owned(),
                    Which::Word(index) => format!("${{__arguments[{index}]}}"),
                };
                // Inside of double quotes it is quoted; everywhere else it brings its quotes.
                match quote {
                    None => out.push_str(&format!("\"{place}\"")),
                    Some('"') => out.push_str(&place),
                    Some(single) => out.push_str(&format!("{single}\"{place}\"{single}")),
                }
                uses_any = true;
                saw_arguments |= it.is_arguments;
                at += it.length;
                continue;
            }
            out.push(character);
            at += character.len_utf8();
            match (character, quote) {
                ('\\', None | Some('"')) => {
                    let escaped = command[at..].chars().next();
                    out.extend(escaped);
                    at += escaped.map_or(0, char::len_utf8);
                }
                ('\'' | '"', None) => quote = Some(character),
                (closing, Some(open)) if closing == open => quote = None,
                _ => {}
            }
        }
        if uses_any {
            let words: Vec<String> = self.words.iter().map(|word| for_shell(word)).collect();
            out.insert_str(0, &format!("__arguments=({})\n", words.join(" ")));
        }
        (out, saw_arguments)
    }

    /// The arguments have a place elsewhere: no line is added for them.
    pub fn used(mut self) -> Self {
        self.is_used = true;
        self
    }

    /// The text with everything put in, and whether it has a place for `$ARGUMENTS`.
    fn filled(&self, body: &str, most: usize) -> Option<(String, bool)> {
        let mut out = String::with_capacity(body.len() + self.raw.len());
        let mut rest = body;
        let mut saw_arguments = false;
        while let Some(at) = memchr::memchr(b'$', rest.as_bytes()) {
            let (before, from) = rest.split_at(at);
            out.push_str(before);
            if out.len() > most {
                return None;
            }
            if let Some((value, length)) = self.variable(from) {
                out.push_str(value);
                rest = &from[length..];
                continue;
            }
            let Some(placeholder) = self.placeholder(from) else {
                out.push('$');
                rest = &from[1..];
                continue;
            };
            let written = &from[..placeholder.length];
            let backslashes = before.bytes().rev().take_while(|byte| *byte == b'\\').count();
            if backslashes % 2 == 1 {
                out.pop();
                out.push_str(written);
            } else {
                saw_arguments |= placeholder.is_arguments;
                out.push_str(placeholder.value.as_deref().unwrap_or(written));
            }
            rest = &from[placeholder.length..];
        }
        out.push_str(rest);
        Some((out, saw_arguments))
    }

    /// `${NAME}` with a known name: its value and the length of what was written.
    fn variable<'a>(&'a self, from: &str) -> Option<(&'a str, usize)> {
        let rest = from.strip_prefix("${")?;
        let is_known = |name: &str| rest.strip_prefix(name).is_some_and(|r| r.starts_with('}'));
        let (name, value) = self.variables.iter().find(|(name, _)| is_known(name))?;
        Some((value, name.len() + 3))
    }

    /// The placeholder that begins with this `$`.
    fn placeholder(&self, from: &str) -> Option<Placeholder<'_>> {
        let rest = &from[1..];
        let word = |length, index, is_arguments| {
            let (value, which) = (self.word(index), Which::Word(index));
            Placeholder { length, value, which, is_arguments }
        };
        if let Some(after) = rest.strip_prefix("ARGUMENTS") {
            if let Some((index, length)) = index_in_brackets(after) {
                return Some(word(10 + length, index, true));
            }
            if !continues_word(after) {
                let (value, which) = (Some(Cow::Borrowed(self.raw.as_str())), Which::All);
                return Some(Placeholder { length: 10, value, which, is_arguments: true });
            }
        }
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        if digits > 0 {
            if continues_word(&rest[digits..]) {
                return None;
            }
            // A number too large to count has no word either.
            let index = rest[..digits].parse().unwrap_or(usize::MAX);
            return Some(word(1 + digits, index, false));
        }
        let (index, name) = self
            .names
            .iter()
            .enumerate()
            .filter(|(_, name)| !name.is_empty())
            .filter(|(_, name)| {
                rest.strip_prefix(name.as_str()).is_some_and(|a| !continues_word(a))
            })
            .max_by_key(|(_, name)| name.len())?;
        let found = word(1 + name.len(), index, false);
        Some(Placeholder { value: found.value.or(Some(Cow::Borrowed(""))), ..found })
    }

    fn word(&self, index: usize) -> Option<Cow<'_, str>> {
        self.words.get(index).map(|word| Cow::Borrowed(word.as_str()))
    }
}

/// A word as a shell takes it for one word.
fn for_shell(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// What was typed, or a word of it.
#[derive(Clone, Copy)]
enum Which {
    All,
    Word(usize),
}

struct Placeholder<'a> {
    /// Bytes that it takes in the text, with the `$`.
    length: usize,
    /// What stands in for it; `None` leaves it as it is.
    value: Option<Cow<'a, str>>,
    /// What that is.
    which: Which,
    /// Whether it is `$ARGUMENTS` in some form.
    is_arguments: bool,
}

/// `[12]` at the start of a text: the number and the length.
fn index_in_brackets(text: &str) -> Option<(usize, usize)> {
    let inside = text.strip_prefix('[')?;
    let digits = inside.bytes().take_while(u8::is_ascii_digit).count();
    let closed = digits > 0 && inside[digits..].starts_with(']');
    // A number too large to count has no word either.
    closed.then(|| (inside[..digits].parse().unwrap_or(usize::MAX), digits + 2))
}

fn continues_word(rest: &str) -> bool {
    rest.starts_with(|c: char| c.is_alphanumeric() || c == '_')
}

fn append_paragraph(text: &mut String, paragraph: &str) {
    while !text.is_empty() && !text.ends_with("\n\n") {
        text.push('\n');
    }
    text.push_str(paragraph);
}

/// Splits words as a shell does: blanks separate, quotes and backslashes bind. A quote that is
/// never closed is an ordinary character.
pub fn split_words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let after = &rest[character.len_utf8()..];
        rest = after;
        match character {
            c if c.is_whitespace() => words.extend(word.take()),
            '\\' => {
                let escaped = after.chars().next();
                word.get_or_insert_default().push(escaped.unwrap_or('\\'));
                rest = &after[escaped.map_or(0, char::len_utf8)..];
            }
            quote @ ('\'' | '"') => match quoted(after, quote) {
                Some((inside, length)) => {
                    word.get_or_insert_default().push_str(&inside);
                    rest = &after[length..];
                }
                None => word.get_or_insert_default().push(quote),
            },
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// The inside of a quoted part, unescaped, and its length with the closing quote.
fn quoted(text: &str, quote: char) -> Option<(String, usize)> {
    let mut inside = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            c if c == quote => return Some((inside, at + c.len_utf8())),
            '\\' if quote == '"' => match characters.next() {
                Some((_, c @ ('"' | '\\' | '$' | '`'))) => inside.push(c),
                Some((_, c)) => inside.extend(['\\', c]),
                None => inside.push('\\'),
            },
            c => inside.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_gets_places_and_not_what_was_typed() {
        let arguments = Arguments::new(r#"a 'b; rm -rf /' $(id) it\'s"#).with_names(["file", "no"]);
        let all = r"__arguments=(a 'b; rm -rf /' '$(id)' 'it'\''s')";
        let table = [
            ("cat $file", r#"cat "${__arguments[0]}""#, false),
            ("cat '$1'", r#"cat ''"${__arguments[1]}"''"#, false),
            (r#"cat "$2 $3""#, r#"cat "${__arguments[2]} ${__arguments[3]}""#, false),
            ("all $ARGUMENTS", r#"all "${__arguments[@]}""#, true),
            (r#"all "$ARGUMENTS""#, r#"all "${__arguments[*]}""#, true),
            (r#""it's" $0"#, r#""it's" "${__arguments[0]}""#, false),
            (r#"\$0 \" $0"#, r#"\$0 \" "${__arguments[0]}""#, false),
        ];
        for (command, expected, uses) in table {
            let (with, used) = arguments.substitute_in_command(command);
            assert_eq!((with, used), (format!("{all}\n{expected}"), uses), "{command}");
        }
        let untouched = "echo ${HOME} $9 $HOME";
        assert_eq!(arguments.substitute_in_command(untouched), (untouched.to_owned(), false));
    }

    #[test]
    fn arguments_that_are_used_elsewhere_get_no_line() {
        assert_eq!(Arguments::new("x").used().substitute("Body"), "Body");
        assert_eq!(Arguments::new("x").substitute("Body"), "Body\n\nARGUMENTS: x");
    }
}
