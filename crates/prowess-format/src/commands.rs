//! Commands that a skill's author has put into its text: `` !`git status` ``.

use std::ops::Range;

/// A command in a body, and where it stands. Nothing here runs it.
///
/// ```
/// use prowess_format::embedded_commands;
///
/// let commands = embedded_commands("Changes: !`git status -s`\nKEY=!`no`\n");
/// assert_eq!(commands.len(), 1);
/// assert_eq!(commands[0].code, "git status -s");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EmbeddedCommand {
    /// What its result would take the place of.
    pub range: Range<usize>,
    /// What would be run.
    pub code: String,
}

/// The commands in a body, in order: `` !`…` `` at the beginning of a line or behind a blank, and
/// fenced blocks that are opened with `` ```! ``. What stands in other fenced blocks is an example.
pub fn embedded_commands(body: &str) -> Vec<EmbeddedCommand> {
    let mut commands = Vec::new();
    for segment in Segments::of(body) {
        match segment {
            Segment::Line { line, start } => commands.extend(inline(line, start)),
            Segment::Block { info: "!", code, range, is_closed: true } if !code.is_empty() => {
                commands.push(EmbeddedCommand { range, code: code.to_owned() });
            }
            Segment::Block { .. } => {}
        }
    }
    commands
}

/// Code in a fenced block of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FencedCode<'t> {
    /// What stands behind the opening fence: the language, mostly.
    pub info: &'t str,
    /// The code.
    pub code: &'t str,
}

/// The code in the fenced blocks of a text, in order. A block that is never closed is none.
///
/// ```
/// use prowess_format::fenced_code;
///
/// let blocks = fenced_code("So:\n```python\nprint(1)\n```\n");
/// assert_eq!((blocks[0].info, blocks[0].code), ("python", "print(1)"));
/// ```
pub fn fenced_code(text: &str) -> Vec<FencedCode<'_>> {
    let closed = |segment| match segment {
        Segment::Block { info, code, is_closed: true, .. } => Some(FencedCode { info, code }),
        _ => None,
    };
    Segments::of(text).filter_map(closed).collect()
}

/// A part of a text.
enum Segment<'t> {
    /// A line outside of fenced blocks.
    Line { line: &'t str, start: usize },
    /// A fenced block.
    Block { info: &'t str, code: &'t str, range: Range<usize>, is_closed: bool },
}

/// The parts of a text.
struct Segments<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Segments<'t> {
    fn of(text: &'t str) -> Self {
        Self { text, at: 0 }
    }

    fn line(&mut self) -> Option<&'t str> {
        let line = self.text[self.at..].split_inclusive('\n').next()?;
        self.at += line.len();
        Some(line)
    }
}

impl<'t> Iterator for Segments<'t> {
    type Item = Segment<'t>;

    fn next(&mut self) -> Option<Segment<'t>> {
        let start = self.at;
        let line = self.line()?;
        let Some(fence) = Fence::opened_by(line) else {
            return Some(Segment::Line { line, start });
        };
        let inside = self.at;
        let mut end = self.at;
        let mut is_closed = false;
        while let Some(line) = self.line() {
            if fence.is_closed_by(line) {
                is_closed = true;
                break;
            }
            end = self.at;
        }
        let stop = start + self.text[start..self.at].trim_end_matches(['\r', '\n']).len();
        let code = self.text[inside..end].trim_matches(['\r', '\n']);
        Some(Segment::Block { info: fence.info, code, range: start..stop, is_closed })
    }
}

struct Fence<'t> {
    mark: &'t str,
    info: &'t str,
}

impl<'t> Fence<'t> {
    fn opened_by(line: &'t str) -> Option<Self> {
        let text = unindented(line)?;
        let mark = text.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let info = text.trim_start_matches(mark);
        let length = text.len() - info.len();
        // Backticks in the info string: that is code inside a line.
        let is_fence = length >= 3 && !(mark == '`' && info.contains('`'));
        is_fence.then(|| Self { mark: &text[..length], info: info.trim() })
    }

    fn is_closed_by(&self, line: &str) -> bool {
        let Some(text) = unindented(line) else { return false };
        let rest = text.trim_end();
        let mark = self.mark.chars().next().unwrap_or('`');
        rest.len() >= self.mark.len() && rest.chars().all(|c| c == mark)
    }
}

/// A line without up to three blanks at its beginning; a line with more is no fence.
fn unindented(line: &str) -> Option<&str> {
    let text = line.trim_start_matches(' ');
    (line.len() - text.len() <= 3).then_some(text)
}

/// The commands in a line that begins at this place.
fn inline(line: &str, start: usize) -> Vec<EmbeddedCommand> {
    let mut commands = Vec::new();
    let mut at = 0;
    while let Some(found) = line[at..].find("!`") {
        let open = at + found;
        let is_free = line[..open].chars().next_back().is_none_or(char::is_whitespace);
        let code = &line[open + 2..];
        match code.find('`').filter(|_| is_free) {
            Some(length) if !code[..length].trim().is_empty() => {
                let stop = open + 2 + length + 1;
                let code = code[..length].trim().to_owned();
                commands.push(EmbeddedCommand { range: start + open..start + stop, code });
                at = stop;
            }
            _ => at = open + 2,
        }
    }
    commands
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found_where_they_count() {
        let table: [(&str, &[(&str, &str)]); 14] = [
            ("!`a`", &[("!`a`", "a")]),
            ("x !`a b` y\t!`c`.", &[("!`a b`", "a b"), ("!`c`", "c")]),
            ("KEY=!`a`", &[]),
            ("(!`a`)", &[]),
            ("!``", &[]),
            ("!` `", &[]),
            ("!`a\nb`", &[]),
            ("!`open", &[]),
            ("x!`a` !`b`", &[("!`b`", "b")]),
            ("é !`a`", &[("!`a`", "a")]),
            (
                "```!\ngit log\ngit diff\n```\nend",
                &[("```!\ngit log\ngit diff\n```", "git log\ngit diff")],
            ),
            ("```\n!`a`\n```\n!`b`", &[("!`b`", "b")]),
            ("~~~md\n```!\na\n```\n~~~\n", &[]),
            ("```!\nnever closed\n", &[]),
        ];
        for (body, expected) in table {
            let found = embedded_commands(body);
            let found: Vec<(&str, &str)> =
                found.iter().map(|it| (&body[it.range.clone()], it.code.as_str())).collect();
            assert_eq!(found, expected, "{body:?}");
        }
    }

    #[test]
    fn fences_are_those_of_markdown() {
        let table = [
            ("    ```!\na\n    ```\n", 0),
            ("   ```!\na\n   ```\n", 1),
            ("````!\na\n```\n````\n", 1),
            ("```! x\na\n```\n", 0),
            ("```!\r\na\r\n```\r\n", 1),
            ("``` `x` !\n!`a`\n", 1),
        ];
        for (body, expected) in table {
            assert_eq!(embedded_commands(body).len(), expected, "{body:?}");
        }
    }
}
