//! From outcomes to words. Nothing else knows how they sound.

use minijinja::value::Serde;
use minijinja::{Environment, UndefinedBehavior};
use serde::Deserialize;
use serde_json::Value;

use crate::outcome::ToolOutcome;

const PROWESS: &str = include_str!("../dialects/prowess.toml");

/// The templates that outcomes are written with: one per code, from a data file.
#[derive(Debug)]
pub struct Texts {
    environment: Environment<'static>,
}

/// Why a data file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TextsError {
    /// It is no such file.
    #[error("the texts cannot be read: {0}")]
    Invalid(#[from] Box<toml::de::Error>),
    /// A template is wrong.
    #[error("the text for '{name}' cannot be used: {cause}")]
    Template {
        /// Which.
        name: String,
        /// What is wrong.
        cause: Box<minijinja::Error>,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    outcomes: std::collections::BTreeMap<String, Entry>,
    blocks: std::collections::BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    text: String,
    stub: Option<String>,
    hint: Option<String>,
}

impl Texts {
    /// The texts of the default dialect.
    pub fn prowess() -> Result<Self, TextsError> {
        Self::parse(PROWESS)
    }

    fn parse(text: &str) -> Result<Self, TextsError> {
        let file: File = toml::from_str(text).map_err(Box::new)?;
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
        environment.add_filter("within", within);
        environment.add_filter("unmarked", unmarked);
        environment.add_filter("attribute", attribute);
        environment.add_filter("json", |value: Serde<Value>| value.0.to_string());
        environment.add_filter("lines", |text: &str| text.trim_matches(['\r', '\n']).to_owned());
        let mut templates: Vec<(String, String)> = Vec::new();
        for (code, entry) in file.outcomes {
            templates.extend(entry.stub.map(|stub| (format!("{code}.stub"), stub)));
            templates.extend(entry.hint.map(|hint| (format!("{code}.hint"), hint)));
            templates.push((code, entry.text));
        }
        let blocks = file.blocks.into_iter().map(|(name, text)| (format!("block.{name}"), text));
        for (name, text) in templates.into_iter().chain(blocks) {
            let added = environment.add_template_owned(name.clone(), text);
            added.map_err(|cause| TextsError::Template { name, cause: Box::new(cause) })?;
        }
        Ok(Self { environment })
    }

    /// Puts another template in the place of that around the entries of a listing. It must work
    /// with and without skills, and hold the entries.
    pub(crate) fn set_listing(&mut self, template: &str) -> Result<(), TextsError> {
        const ENTRIES: &str = "- an-entry: Does it.";
        self.set_block("listing", template)?;
        let refused = |cause: minijinja::Error| TextsError::Template {
            name: "block.listing".to_owned(),
            cause: Box::new(cause),
        };
        for entries in ["", ENTRIES] {
            let location = serde_json::json!({"label": "A", "path": "a", "higher": false});
            let data = serde_json::json!({
                "entries": entries, "left_out": 0, "locations": [location],
                "warnings": ["w"], "more_warnings": 0,
            });
            let template = self.environment.get_template("block.listing").map_err(refused)?;
            let text = template.render(Serde(&data)).map_err(refused)?;
            if !text.contains(entries) {
                let cause = "it does not hold {{ entries }}";
                let kind = minijinja::ErrorKind::InvalidOperation;
                return Err(refused(minijinja::Error::new(kind, cause)));
            }
        }
        Ok(())
    }

    /// Puts another template in the place of a block.
    fn set_block(&mut self, name: &str, template: &str) -> Result<(), TextsError> {
        let name = format!("block.{name}");
        let added = self.environment.add_template_owned(name.clone(), template.to_owned());
        added.map_err(|cause| TextsError::Template { name, cause: Box::new(cause) })
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
            Some(template.render(&data).unwrap_or_else(|_| outcome.data.to_string()))
        };
        let text = write(code).unwrap_or_else(|| outcome.data.to_string());
        let stub = write(&format!("{code}.stub"));
        let hint = write(&format!("{code}.hint")).filter(|hint| !hint.is_empty());
        outcome.content = text;
        outcome.stub = outcome.stub.take().or(stub);
        outcome.hint = outcome.hint.take().or(hint);
        outcome.is_unwritten = false;
    }

    /// Writes a block that is no outcome.
    pub(crate) fn block(&self, name: &str, data: &Value) -> String {
        let template = self.environment.get_template(&format!("block.{name}"));
        let rendered = template.and_then(|template| template.render(Serde(data)));
        rendered.unwrap_or_else(|_| data.to_string())
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

/// Text of a skill below `[Loaded]` and `[Doc]`: it cannot begin the part of another skill.
fn unmarked(text: &str) -> String {
    let is_mark = |line: &str| MARKS.iter().any(|mark| line.trim_start().starts_with(mark));
    let lines = text.split_inclusive('\n');
    lines.flat_map(|line| [if is_mark(line) { "\\" } else { "" }, line]).collect()
}

/// How the parts of a block begin that holds several skills.
const MARKS: [&str; 3] = ["[Loaded]", "[Doc]", "Docs loaded:"];

/// Whether a block holds this text of a skill.
pub(crate) fn is_said(block: &str, text: &str) -> bool {
    let text = text.trim();
    block.contains(text)
        || block.contains(&within(text, "skill"))
        || block.contains(&unmarked(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_close_the_block_it_is_in() {
        assert_eq!(within("a </skill> b </SKILL > c", "skill"), "a &lt;/skill> b &lt;/SKILL > c");
        assert_eq!(within("İ </skill>", "skill"), "İ &lt;/skill>");
        assert_eq!(within("nothing </skil>", "skill"), "nothing </skil>");
    }

    #[test]
    fn the_texts_of_the_default_dialect_can_be_used() -> Result<(), TextsError> {
        Texts::prowess().map(|_| ())
    }
}
