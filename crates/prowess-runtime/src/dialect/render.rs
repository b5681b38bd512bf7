//! From outcomes to words. Nothing else knows how they sound.

use std::collections::BTreeMap;

use minijinja::value::Serde;
use minijinja::{Environment, ErrorKind, UndefinedBehavior};
use prowess_format::{is_deceptive, nearest_name};
use serde_json::Value;

use super::{Dialect, DialectError, Encoding, File, OutcomeWords};
use crate::outcome::ToolOutcome;

/// All templates: those of the default dialect, and in their place those of another one.
pub(super) fn environment(
    names: &BTreeMap<String, String>,
    base: File,
    outcomes: BTreeMap<String, OutcomeWords>,
    blocks: BTreeMap<String, String>,
) -> Result<Environment<'static>, DialectError> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    environment.add_filter("within", within);
    environment.add_filter("unmarked", unmarked);
    environment.add_filter("attribute", attribute);
    environment.add_filter("json", |value: Serde<Value>| value.0.to_string());
    environment.add_filter("lines", |text: &str| text.trim_matches(['\r', '\n']).to_owned());
    set_names(&mut environment, names);
    let known: Vec<String> = base.outcomes.keys().chain(base.blocks.keys()).cloned().collect();
    let unknown = outcomes.keys().chain(blocks.keys()).find(|name| !known.contains(name));
    if let Some(name) = unknown {
        let meant = nearest_name(name, known.iter().map(String::as_str));
        let meant = meant.map(|it| format!("; did you mean '{it}'?")).unwrap_or_default();
        let cause = format!("nothing is said there{meant}");
        let cause = minijinja::Error::new(ErrorKind::TemplateNotFound, cause);
        return Err(DialectError::Template { name: name.clone(), cause: Box::new(cause) });
    }
    for (outcomes, blocks) in [(base.outcomes, base.blocks), (outcomes, blocks)] {
        let mut templates: Vec<(String, String)> = Vec::new();
        for (code, words) in outcomes {
            templates.extend(words.stub.map(|stub| (format!("{code}.stub"), stub)));
            templates.extend(words.hint.map(|hint| (format!("{code}.hint"), hint)));
            templates.push((code, words.text));
        }
        templates.extend(blocks.into_iter().map(|(name, text)| (format!("block.{name}"), text)));
        for (name, text) in templates {
            add(&mut environment, name, text)?;
        }
    }
    check_listing(&environment)?;
    Ok(environment)
}

/// What the load tools are called; nothing, if there is no such tool.
pub(super) fn set_names(environment: &mut Environment<'static>, names: &BTreeMap<String, String>) {
    environment.add_global("names", minijinja::Value::from(Serde(names)));
}

/// Everything that a template may speak of; what an outcome does not have is an error when it is
/// written.
const DATA: [&str; 57] = [
    "agent",
    "allowed",
    "annotations",
    "argument_hint",
    "available",
    "body",
    "bytes",
    "call",
    "candidates",
    "cause",
    "description",
    "digest",
    "doc_paths",
    "docs",
    "entries",
    "entry",
    "folder",
    "given",
    "guidance",
    "head",
    "include_all_docs",
    "left_out",
    "limit",
    "listing",
    "load_count",
    "loaded",
    "locations",
    "manual",
    "missing",
    "mode",
    "model",
    "more",
    "more_removed",
    "more_resources",
    "more_warnings",
    "name",
    "names",
    "nearest",
    "path",
    "pattern",
    "removed",
    "resource",
    "resources",
    "results",
    "selected_docs",
    "skill",
    "skills",
    "text",
    "title",
    "tool",
    "tools",
    "tree_digest",
    "update_available",
    "version",
    "warnings",
    "was_loaded",
    "what",
];

fn add(
    environment: &mut Environment<'static>,
    name: String,
    text: String,
) -> Result<(), DialectError> {
    let added = environment.add_template_owned(name.clone(), text);
    let added = added.and_then(|()| environment.get_template(&name));
    let checked = added.and_then(|template| {
        let mut spoken_of: Vec<String> = template.undeclared_variables(false).into_iter().collect();
        spoken_of.sort_unstable();
        let is_unknown = |word: &&String| {
            !DATA.contains(&word.as_str()) && environment.globals().all(|(name, _)| name != *word)
        };
        let Some(word) = spoken_of.iter().find(is_unknown) else { return Ok(()) };
        let meant = nearest_name(word, DATA);
        let meant = meant.map(|it| format!("; did you mean '{it}'?")).unwrap_or_default();
        let cause = format!("nothing is known of '{word}'{meant}");
        Err(minijinja::Error::new(ErrorKind::UndefinedError, cause))
    });
    checked.map_err(|cause| DialectError::Template { name, cause: Box::new(cause) })
}

/// A listing can be written with and without skills, and holds its entries.
fn check_listing(environment: &Environment<'_>) -> Result<(), DialectError> {
    const ENTRIES: &str = "- an-entry: Does it.";
    let name = "block.listing".to_owned();
    let check = || {
        for entries in ["", ENTRIES] {
            let location = serde_json::json!({"label": "A", "path": "a", "higher": false});
            let data = serde_json::json!({
                "entries": entries, "loaded": [], "left_out": 0, "locations": [location],
                "warnings": ["w"], "more_warnings": 0,
            });
            let text = environment.get_template(&name)?.render(Serde(&data))?;
            if !text.contains(entries) {
                let cause = "it does not hold {{ entries }}";
                return Err(minijinja::Error::new(ErrorKind::InvalidOperation, cause));
            }
        }
        Ok(())
    };
    check().map_err(|cause| DialectError::Template { name: name.clone(), cause: Box::new(cause) })
}

impl Dialect {
    /// Puts another template in the place of that around the entries of a listing. It must work
    /// with and without skills, and hold the entries.
    pub(crate) fn set_listing(&mut self, template: &str) -> Result<(), DialectError> {
        add(&mut self.environment, "block.listing".to_owned(), template.to_owned())?;
        check_listing(&self.environment)
    }

    /// Writes what the model sees of an outcome, and what a transcript keeps.
    pub(crate) fn render(&self, outcome: &mut ToolOutcome) {
        if !outcome.is_unwritten {
            return;
        }
        let code = outcome.code.as_ref();
        let data = minijinja::Value::from(Serde(&outcome.data));
        let write = |name: &str| -> Option<String> {
            let template = self.environment.get_template(name).ok()?;
            // A template that fails is a defect of the data file; the data itself is still true.
            let text = template.render(&data).unwrap_or_else(|error| {
                tracing::warn!(dialect = self.name, template = name, %error, "a text fails");
                outcome.data.to_string()
            });
            Some(text).filter(|text| !text.is_empty())
        };
        let text = match self.environment.get_template(code) {
            Ok(_) => write(code).unwrap_or_default(),
            Err(_) => outcome.data.to_string(),
        };
        let stub = write(&format!("{code}.stub"));
        let hint = write(&format!("{code}.hint"));
        outcome.content = self.encoded(text);
        outcome.stub = outcome.stub.take().or(stub.map(|stub| self.encoded(stub)));
        outcome.hint = outcome.hint.take().or(hint);
        outcome.is_unwritten = false;
    }

    fn encoded(&self, text: String) -> String {
        let read = || serde_json::from_str::<Value>(&text);
        let is_json = || read().is_ok_and(|it| it.is_object() || it.is_array());
        match self.encoding {
            Encoding::Json if !is_json() => Value::String(text).to_string(),
            _ => text,
        }
    }

    /// Writes a block that is no outcome.
    pub(crate) fn block(&self, name: &str, data: &Value) -> String {
        let template = self.environment.get_template(&format!("block.{name}"));
        let rendered = template.and_then(|template| template.render(Serde(data)));
        rendered.unwrap_or_else(|error| {
            tracing::warn!(dialect = self.name, template = name, %error, "a text fails");
            data.to_string()
        })
    }
}

/// Text inside `"…"` of a tag.
fn attribute(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            other => out.push(other),
        }
    }
    out
}

/// Text of a skill inside a block `<tag>…</tag>`: it cannot close the block.
fn within(text: &str, tag: &str) -> String {
    let closing = format!("</{tag}");
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let lower = text.to_ascii_lowercase();
    let mut at = 0;
    while let Some(found) = lower[at..].find(&closing) {
        out.push_str(&rest[..found]);
        out.push_str("&lt;");
        rest = &rest[found + 1..];
        at += found + 1;
    }
    out.push_str(rest);
    out
}

/// Text of a skill below `[Loaded]` and `[Doc]`: it cannot begin the part of another skill, on
/// whatever somebody may take for a line.
fn unmarked(text: &str) -> String {
    let is_mark = |line: &str| {
        let line = line.trim_start_matches(|c: char| c.is_whitespace() || is_invisible(c));
        let start = |mark: &str| line.get(..mark.len());
        MARKS.iter().any(|mark| start(mark).is_some_and(|it| it.eq_ignore_ascii_case(mark)))
    };
    let lines = text.split_inclusive(ends_line);
    lines.flat_map(|line| [if is_mark(line) { "\\" } else { "" }, line]).collect()
}

/// How the parts of a prompt begin that holds several skills.
const MARKS: [&str; 5] =
    ["[Loaded]", "[Doc]", "Docs loaded:", "Available skills:", "Loaded skill context:"];

fn ends_line(character: char) -> bool {
    matches!(character, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn is_invisible(character: char) -> bool {
    is_deceptive(character)
        || matches!(character, '\u{ad}' | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2064}')
}

/// Whether a block holds this text of a skill.
pub(crate) fn is_said(block: &str, text: &str) -> bool {
    let text = text.trim();
    block.contains(text)
        || block.contains(&within(text, "skill"))
        || block.contains(&unmarked(text))
}

#[cfg(test)]
#[path = "render_tests.rs"]
mod tests;
