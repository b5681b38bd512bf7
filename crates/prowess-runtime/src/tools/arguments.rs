//! Arguments as models write them.

use serde_json::{Map, Value, json};

use crate::outcome::ToolOutcome;

/// The names that models use for the skill.
const SKILL_NAMES: [&str; 3] = ["skill", "skill_name", "skill_id"];

/// The arguments of a call.
pub(crate) struct CallArguments {
    tool: &'static str,
    values: Map<String, Value>,
    used: Vec<&'static str>,
}

impl CallArguments {
    /// Takes an object, an object in a string, or nothing.
    pub(crate) fn new(tool: &'static str, arguments: &Value) -> Result<Self, ToolOutcome> {
        let parsed = match arguments {
            Value::String(text) if text.trim().is_empty() => None,
            Value::String(text) => serde_json::from_str::<Value>(text).ok(),
            Value::Null => None,
            other => Some(other.clone()),
        };
        let values = match (parsed, arguments) {
            (Some(Value::Object(values)), _) => values,
            (None, Value::Null) => Map::new(),
            (None, Value::String(text)) if text.trim().is_empty() => Map::new(),
            _ => return Err(invalid(tool, "they must be a JSON object")),
        };
        Ok(Self { tool, values, used: Vec::new() })
    }

    /// What is wrong with them.
    pub(crate) fn invalid(&self, cause: &str) -> ToolOutcome {
        invalid(self.tool, cause)
    }

    fn take(&mut self, name: &'static str) -> Option<&Value> {
        self.used.push(name);
        self.values.get(name).filter(|value| !value.is_null())
    }

    /// The skill, under any of its names.
    pub(crate) fn skill(&mut self) -> Result<String, ToolOutcome> {
        let mut found: Option<String> = None;
        for name in SKILL_NAMES {
            let Some(value) = self.take(name) else { continue };
            let Some(text) = value.as_str() else {
                return Err(self.invalid(&format!("'{name}' must be a string")));
            };
            let text = text.trim().to_owned();
            if text.is_empty() {
                continue;
            }
            if found.as_ref().is_some_and(|found| *found != text) {
                return Err(self.invalid("they name two skills"));
            }
            found = Some(text);
        }
        found.ok_or_else(|| self.invalid("skill is required"))
    }

    /// A text that may be absent.
    pub(crate) fn text(&mut self, name: &'static str) -> Result<Option<String>, ToolOutcome> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(self.invalid(&format!("'{name}' must be a string"))),
        }
    }

    /// A yes or no; no if it is absent.
    pub(crate) fn flag(&mut self, name: &'static str) -> Result<bool, ToolOutcome> {
        match self.take(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(Value::String(word)) if word == "true" => Ok(true),
            Some(Value::String(word)) if word == "false" || word.is_empty() => Ok(false),
            Some(_) => Err(self.invalid(&format!("'{name}' must be true or false"))),
        }
    }

    /// A list of texts; a single text is a list of one.
    pub(crate) fn texts(&mut self, name: &'static str) -> Result<Vec<String>, ToolOutcome> {
        let wrong = |this: &Self| this.invalid(&format!("'{name}' must be a list of strings"));
        let texts: Option<Vec<String>> = match self.take(name) {
            None => Some(Vec::new()),
            Some(Value::String(text)) if text.is_empty() => Some(Vec::new()),
            Some(Value::String(text)) => Some(vec![text.clone()]),
            Some(Value::Array(items)) => {
                items.iter().map(|item| item.as_str().map(str::to_owned)).collect()
            }
            Some(_) => None,
        };
        texts.ok_or_else(|| wrong(self))
    }

    /// What a person would type behind the skill's name: one text, or words.
    pub(crate) fn typed(&mut self) -> Result<Option<String>, ToolOutcome> {
        let given: Vec<Value> =
            ["arguments", "args"].into_iter().filter_map(|name| self.take(name).cloned()).collect();
        let Some(value) = given.first() else { return Ok(None) };
        if given.iter().any(|other| other != value) {
            return Err(self.invalid("'arguments' and 'args' differ"));
        }
        let word = |value: &Value| match value {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            Value::Bool(flag) => Some(flag.to_string()),
            _ => None,
        };
        let typed = match value {
            Value::Array(items) => {
                let words: Option<Vec<String>> =
                    items.iter().map(|item| word(item).map(|word| quoted(&word))).collect();
                words.map(|words| words.join(" "))
            }
            value => word(value),
        };
        typed.map(Some).ok_or_else(|| self.invalid("'arguments' must be a string"))
    }

    /// The arguments that mean nothing here, for a hint.
    pub(crate) fn ignored(&self) -> Option<String> {
        let ignored: Vec<&str> = self
            .values
            .keys()
            .map(String::as_str)
            .filter(|name| !self.used.contains(name))
            .collect();
        (!ignored.is_empty()).then(|| format!("Ignored arguments: {}", ignored.join(", ")))
    }
}

fn invalid(tool: &'static str, cause: &str) -> ToolOutcome {
    ToolOutcome::failed("invalid_arguments", json!({"tool": tool, "cause": cause}))
}

/// A word that stays one word.
fn quoted(word: &str) -> String {
    let is_plain = !word.is_empty()
        && word.chars().all(|c| !c.is_whitespace() && !matches!(c, '\'' | '"' | '\\'));
    match is_plain {
        true => word.to_owned(),
        false => format!("\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\"")),
    }
}
