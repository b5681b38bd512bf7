//! Arguments as models write them.

use serde_json::{Map, Value, json};

use crate::dialect::ToolWords;
use crate::outcome::ToolOutcome;

/// The names that models use for the skill.
const SKILL_NAMES: [&str; 3] = ["skill", "skill_name", "skill_id"];

/// The arguments of a call, by the names that a dialect gives them.
pub(crate) struct CallArguments<'a> {
    words: &'a ToolWords,
    values: Map<String, Value>,
    used: Vec<String>,
}

impl<'a> CallArguments<'a> {
    /// Takes an object, an object in a string, or nothing.
    pub(crate) fn new(words: &'a ToolWords, arguments: &Value) -> Result<Self, ToolOutcome> {
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
            _ => return Err(invalid(words, "they must be a JSON object")),
        };
        Ok(Self { words, values, used: Vec::new() })
    }

    /// What is wrong with them.
    pub(crate) fn invalid(&self, cause: &str) -> ToolOutcome {
        invalid(self.words, cause)
    }

    /// What the dialect calls a parameter, if it has it.
    fn name(&self, parameter: &str) -> Option<String> {
        self.words.parameters.get(parameter).map(|words| words.name.clone())
    }

    fn take(&mut self, name: &str) -> Option<&Value> {
        self.used.push(name.to_owned());
        self.values.get(name).filter(|value| !value.is_null())
    }

    /// The value of a parameter, and what the dialect calls it.
    fn parameter(&mut self, parameter: &str) -> Option<(&Value, String)> {
        let name = self.name(parameter)?;
        Some((self.take(&name)?, name))
    }

    fn wrong(&self, name: &str, must: &str) -> ToolOutcome {
        self.invalid(&format!("'{name}' must be {must}"))
    }

    fn missing(&self, parameter: &str) -> ToolOutcome {
        let name = self.name(parameter).unwrap_or_else(|| parameter.to_owned());
        self.invalid(&format!("{name} is required"))
    }

    /// The skill, under any of its names.
    pub(crate) fn skill(&mut self) -> Result<String, ToolOutcome> {
        let mut found: Option<String> = None;
        let own = self.name("skill");
        for name in own.iter().map(String::as_str).chain(SKILL_NAMES) {
            let Some(value) = self.take(name) else { continue };
            let Some(text) = value.as_str() else { return Err(self.wrong(name, "a string")) };
            let text = text.trim().to_owned();
            if text.is_empty() {
                continue;
            }
            if found.as_ref().is_some_and(|found| *found != text) {
                return Err(self.invalid("they name two skills"));
            }
            found = Some(text);
        }
        found.ok_or_else(|| self.missing("skill"))
    }

    /// A text that must be there.
    pub(crate) fn required(&mut self, parameter: &str) -> Result<String, ToolOutcome> {
        let text = self.text(parameter)?.map(|text| text.trim().to_owned());
        text.filter(|text| !text.is_empty()).ok_or_else(|| self.missing(parameter))
    }

    /// A text that may be absent.
    pub(crate) fn text(&mut self, parameter: &str) -> Result<Option<String>, ToolOutcome> {
        match self.parameter(parameter) {
            None => Ok(None),
            Some((Value::String(text), _)) => Ok(Some(text.clone())),
            Some((_, name)) => Err(self.wrong(&name, "a string")),
        }
    }

    /// A yes or no; no if it is absent.
    pub(crate) fn flag(&mut self, parameter: &str) -> Result<bool, ToolOutcome> {
        match self.parameter(parameter) {
            None => Ok(false),
            Some((Value::Bool(flag), _)) => Ok(*flag),
            Some((Value::String(word), _)) if word == "true" => Ok(true),
            Some((Value::String(word), _)) if word == "false" || word.is_empty() => Ok(false),
            Some((_, name)) => Err(self.wrong(&name, "true or false")),
        }
    }

    /// A list of texts; a single text is a list of one.
    pub(crate) fn texts(&mut self, parameter: &str) -> Result<Vec<String>, ToolOutcome> {
        let Some((value, name)) = self.parameter(parameter) else { return Ok(Vec::new()) };
        let texts: Option<Vec<String>> = match value {
            Value::String(text) if text.is_empty() => Some(Vec::new()),
            Value::String(text) => Some(vec![text.clone()]),
            Value::Array(items) => {
                items.iter().map(|item| item.as_str().map(str::to_owned)).collect()
            }
            _ => None,
        };
        texts.ok_or_else(|| self.wrong(&name, "a list of strings"))
    }

    /// An object, as it is or in a string; an empty one if it is absent.
    pub(crate) fn object(&mut self, parameter: &str) -> Result<Map<String, Value>, ToolOutcome> {
        let Some((value, name)) = self.parameter(parameter) else { return Ok(Map::new()) };
        let object = match value {
            Value::Object(object) => Some(object.clone()),
            Value::String(text) => serde_json::from_str(text).ok(),
            _ => None,
        };
        object.ok_or_else(|| self.wrong(&name, "an object"))
    }

    /// What a person would type behind the skill's name: one text, or words.
    pub(crate) fn typed(&mut self) -> Result<Option<String>, ToolOutcome> {
        let Some(own) = self.name("arguments") else { return Ok(None) };
        let names = [own.as_str(), "args"];
        let given: Vec<Value> =
            names.into_iter().filter_map(|name| self.take(name).cloned()).collect();
        let Some(value) = given.first() else { return Ok(None) };
        if given.iter().any(|other| other != value) {
            return Err(self.invalid(&format!("'{own}' and 'args' differ")));
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
        typed.map(Some).ok_or_else(|| self.wrong(&own, "a string"))
    }

    /// The arguments that mean nothing here, for a hint.
    pub(crate) fn ignored(&self) -> Option<String> {
        let ignored: Vec<&str> = self
            .values
            .keys()
            .map(String::as_str)
            .filter(|name| !self.used.iter().any(|used| used == name))
            .collect();
        (!ignored.is_empty()).then(|| format!("Ignored arguments: {}", ignored.join(", ")))
    }
}

fn invalid(words: &ToolWords, cause: &str) -> ToolOutcome {
    ToolOutcome::failed("invalid_arguments", json!({"tool": words.name, "cause": cause}))
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
