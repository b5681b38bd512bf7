//! A text with its frontmatter read: what the rules look at.

use std::str::Utf8Error;

use super::{Checker, Code, Profile};
use crate::diagnostic::Diagnostic;
use crate::fields::{Field, field};
use crate::name::SkillName;
use crate::skill::Options;
use crate::span::{ByteRange, Span};
use crate::split::{ClosingLine, Split, SplitError, split};
use crate::yaml::{self, Entry, Mapping, Node, Note, NoteKind, Value, YamlError};

pub(crate) struct Document<'a> {
    pub(crate) source: &'a str,
    pub(crate) split: Split,
    pub(crate) mapping: Mapping,
    /// The field of each entry of the mapping, where there is one.
    fields: Vec<Option<&'static Field>>,
    pub(crate) folder: Option<&'a str>,
    pub(crate) file_exists: Option<&'a dyn Fn(&str) -> bool>,
}

impl<'a> Document<'a> {
    /// Splits and reads a text. Whatever is the matter goes to the checker; without a mapping
    /// there is nothing more to check.
    pub(crate) fn read(
        source: &'a str,
        options: &Options<'a>,
        checker: &mut Checker<'_>,
    ) -> Option<Self> {
        let split = match split(source, options.limits.frontmatter_bytes) {
            Ok(split) => split,
            Err(error) => {
                report_split_error(source, error, checker);
                return None;
            }
        };
        report_fences(&split, checker);
        let text = &source[split.frontmatter.clone()];
        let reading = match yaml::read(text, split.frontmatter.start, &options.limits) {
            Ok(reading) => reading,
            Err((error, range)) => {
                report_yaml_error(source, split.frontmatter.start, &error, range, checker);
                return None;
            }
        };
        for note in reading.notes {
            report_note(note, checker);
        }
        let mapping = reading.mapping;
        if mapping.is_empty() && options.profile == Profile::Spec {
            // The reference library's words: it knows no empty mapping.
            let fence = ByteRange::new(split.frontmatter.start, split.frontmatter.end);
            report_yaml_error(source, 0, &YamlError::NotAMapping("null"), fence, checker);
            return None;
        }
        let Options { folder, file_exists, .. } = *options;
        let fields = mapping.iter().map(|entry| field(&entry.key)).collect();
        Some(Self { source, split, mapping, fields, folder, file_exists })
    }

    /// The entries of the frontmatter, each with the field that it is.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&Entry, Option<&'static Field>)> {
        self.mapping.iter().zip(self.fields.iter().copied())
    }

    pub(crate) fn body(&self) -> &'a str {
        &self.source[self.split.body.clone()]
    }

    /// The range of the opening fence: where to point when something is missing.
    pub(crate) fn opening_fence(&self) -> ByteRange {
        let before = &self.source[..self.split.frontmatter.start];
        let start = before.rfind("---").unwrap_or(0);
        ByteRange::new(start, start + 3)
    }

    /// The name that counts: `id`, else `name`, else the folder's. A name that is there but
    /// unsafe counts for nothing.
    pub(crate) fn name(&self) -> Option<SkillName> {
        match self.written_name() {
            Some((_, text)) => SkillName::parse(text),
            None => self.folder.and_then(SkillName::parse),
        }
    }

    /// The node and text that name the skill in the file, if there is any text.
    pub(crate) fn written_name(&self) -> Option<(&Node, &str)> {
        ["id", "name"].into_iter().find_map(|key| {
            let node = self.mapping.get(key)?;
            let text = text_of(node)?.trim();
            (!text.is_empty()).then_some((node, text))
        })
    }

    /// Whether a scalar was written without quotes, on the line of its key or dash.
    pub(crate) fn is_bare(&self, node: &Node) -> bool {
        let written = self.source.get(node.range.as_usize()).unwrap_or_default();
        let before = self.source.get(..node.range.start as usize).unwrap_or_default();
        !written.starts_with(['"', '\''])
            && !written.contains('\n')
            && before.trim_end_matches([' ', '\t']).ends_with([':', '-', ',', '['])
    }
}

/// The text of a field that wants text: a string, or a number as it was spelled.
pub(crate) fn text_of(node: &Node) -> Option<&str> {
    match &node.value {
        Value::String(_) | Value::Number(_) => node.as_text(),
        _ => None,
    }
}

fn report_split_error(source: &str, error: SplitError, checker: &mut Checker<'_>) {
    let (code, at, help) = match error {
        SplitError::Missing { at } => (
            Code::MissingFrontmatter,
            at,
            "begin the file with a line `---`, then name and description, then a line `---`",
        ),
        SplitError::Unclosed { at } => {
            (Code::UnclosedFrontmatter, at, "end the frontmatter with a line that is just `---`")
        }
        SplitError::TooLarge { at, .. } => {
            (Code::FrontmatterTooLarge, at, "move long text into the body or into a file")
        }
    };
    let line = source[at..].lines().next().unwrap_or_default();
    checker.report_with_help(code, ByteRange::new(at, at + line.len()), error.to_string(), help);
}

fn report_fences(split: &Split, checker: &mut Checker<'_>) {
    // The reference library's words for both: to it, such a file has no frontmatter.
    let profile = checker.profile;
    let not_first = |what: &str| match profile {
        Profile::Spec => SplitError::Missing { at: 0 }.to_string(),
        _ => format!("{what} before the frontmatter"),
    };
    let help = "remove it: many readers find no frontmatter in such a file";
    let start = ByteRange::new(0, 0);
    if split.before.byte_order_mark {
        let message = not_first("A byte order mark stands");
        checker.report_with_help(Code::ByteOrderMark, start, message, help);
    }
    if split.before.blank_lines > 0 {
        let message = not_first("Blank lines stand");
        checker.report_with_help(Code::LeadingBlankLines, start, message, help);
    }
    if split.closing_line == ClosingLine::EndOfFile {
        let end = ByteRange::new(split.frontmatter.end, split.body.start);
        let message = "DeepAgents skips a file that ends with its closing fence";
        let help = "add a line break, and instructions below it";
        checker.report_with_help(Code::FenceAtEndOfFile, end, message, help);
    }
}

fn report_yaml_error(
    source: &str,
    base: usize,
    error: &YamlError,
    range: ByteRange,
    checker: &mut Checker<'_>,
) {
    let lines_before = source[..base].matches('\n').count();
    let hint = syntax_hint(source, range.start as usize);
    let invalid = || format!("Invalid YAML in frontmatter: {error}");
    let (code, message, help) = match error {
        YamlError::Syntax(_) => (Code::InvalidYaml, invalid(), hint),
        YamlError::ComplexKey | YamlError::RecursiveAlias => {
            (Code::InvalidYaml, invalid(), "write plain `key: value` lines")
        }
        YamlError::NotAMapping(_) => (
            Code::NotAMapping,
            "SKILL.md frontmatter must be a YAML mapping".to_owned(),
            "write `key: value` lines between the fences",
        ),
        YamlError::DuplicateKey { key, first_line } => {
            let line = first_line + lines_before;
            let message = format!("The key '{key}' stands twice, first on line {line}");
            (Code::DuplicateKey, message, "keep one of the two")
        }
        YamlError::TooDeep(_) | YamlError::TooManyNodes(_) | YamlError::AliasBudget(_) => (
            Code::YamlTooComplex,
            invalid(),
            "frontmatter is for a few fields: move data to a file",
        ),
    };
    checker.report_with_help(code, range, message, help);
}

/// What to do about a syntax error, from the line that it is on.
fn syntax_hint(source: &str, at: usize) -> &'static str {
    let start = source[..at.min(source.len())].rfind('\n').map_or(0, |at| at + 1);
    let line = source[start..].lines().next().unwrap_or_default();
    let before = source[..start].lines().next_back().unwrap_or_default();
    let indent = |line: &str| line.chars().take_while(|c| c.is_whitespace()).any(|c| c == '\t');
    let glued = |line: &str| {
        let key = line.trim_start().trim_start_matches(|c: char| c.is_alphanumeric() || c == '-');
        key.len() < line.len() && key.starts_with(':') && !key.starts_with(": ") && key.len() > 1
    };
    let opens = |line: &str| {
        let value = line.split_once(": ").map_or("", |(_, value)| value.trim());
        ['"', '\''].iter().any(|q| value.starts_with(*q) && value.matches(*q).count() % 2 == 1)
    };
    if [line, before].into_iter().any(indent) {
        "indent with spaces, not with tabs"
    } else if [line, before].into_iter().any(glued) {
        "put a space behind the colon"
    } else if source[..start + line.len()].lines().any(opens) {
        "close the quote, or put the whole value in quotes of the other kind"
    } else {
        "put a value with special characters in quotes"
    }
}

fn report_note(note: Note, checker: &mut Checker<'_>) {
    match note.kind {
        NoteKind::ReadAsText { key, error } => checker.report_with_help(
            Code::RepairedValue,
            note.range,
            format!("Invalid YAML in frontmatter: {error}"),
            format!("the value of '{key}' was read as plain text; put it in quotes"),
        ),
        NoteKind::TagIgnored(tag) => checker.report_with_help(
            Code::IgnoredTag,
            note.range,
            format!("The YAML tag {tag} has no meaning in frontmatter and was passed over"),
            "remove the tag",
        ),
        NoteKind::AnchorUsed => checker.report_with_help(
            Code::Anchor,
            note.range,
            "The word behind & is the name of an anchor, not part of the value",
            "write the value out, or put it in quotes",
        ),
        NoteKind::TagUsed(tag) => checker.report_with_help(
            Code::StrictYaml,
            note.range,
            format!("Invalid YAML in frontmatter: the reference library refuses the tag {tag}"),
            "remove the tag",
        ),
        NoteKind::MergeKeyKept => checker.report_with_help(
            Code::MergeKey,
            note.range,
            "The merge key '<<' is kept as an ordinary key; nothing is merged",
            "write the entries out",
        ),
    }
}

/// What to say about bytes that are not UTF-8.
pub(crate) fn not_utf8(bytes: &[u8], error: Utf8Error, profile: Profile) -> Option<Diagnostic> {
    let level = Code::NotUtf8.level(profile)?;
    let good = std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default();
    let span = Span::locate(good, ByteRange::new(good.len(), good.len()));
    let utf16 = matches!(bytes, [0xff, 0xfe, ..] | [0xfe, 0xff, ..]);
    let message = match utf16 {
        true => "The file is UTF-16, not UTF-8".to_owned(),
        false => format!("The file is not UTF-8: byte {} is invalid", error.valid_up_to()),
    };
    let diagnostic = Diagnostic::new(Code::NotUtf8, level, message);
    Some(diagnostic.with_span(span).with_help("save the file as UTF-8"))
}
