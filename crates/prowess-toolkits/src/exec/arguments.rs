//! The arguments of `skill_run`, as models write them.

use std::collections::BTreeMap;
use std::time::Duration;

use prowess_workspace::InputMode;
use serde_json::{Map, Value};

use crate::invalid::InvalidArguments;

/// What a call of `skill_run` asks for.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RunArguments {
    pub(crate) skill: String,
    pub(crate) command: String,
    pub(crate) cwd: String,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) stdin: String,
    pub(crate) editor_text: Option<String>,
    /// How long it may take; the default if it is none.
    pub(crate) timeout: Option<Duration>,
    pub(crate) inputs: Vec<InputArguments>,
    pub(crate) output_files: Vec<String>,
    pub(crate) outputs: Option<OutputArguments>,
    pub(crate) save_as_artifacts: bool,
    pub(crate) omit_inline_content: bool,
    pub(crate) artifact_prefix: String,
    /// Names that mean nothing here.
    pub(crate) ignored: Vec<String>,
}

/// Something to bring into the workspace.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct InputArguments {
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) mode: InputMode,
    pub(crate) pin: bool,
}

/// What to bring out of the workspace.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct OutputArguments {
    pub(crate) globs: Vec<String>,
    pub(crate) inline: bool,
    pub(crate) save: bool,
    pub(crate) name_template: String,
    pub(crate) max_files: Option<u64>,
    pub(crate) max_file_bytes: Option<u64>,
    pub(crate) max_total_bytes: Option<u64>,
}

/// The names that models use for the skill.
const SKILL_NAMES: [&str; 3] = ["skill", "skill_name", "skill_id"];

impl RunArguments {
    /// Reads the arguments of a call; else says what is wrong with them.
    pub(crate) fn parse(arguments: &Value) -> Result<Self, InvalidArguments> {
        Self::of(Fields::of(arguments)?)
    }

    /// The same of what others have left.
    pub(crate) fn of(mut fields: Fields) -> Result<Self, InvalidArguments> {
        let mut read = Self {
            skill: fields.skill()?,
            command: fields.text("command")?.unwrap_or_default(),
            cwd: fields.text("cwd")?.unwrap_or_default().trim().to_owned(),
            env: fields.variables("env")?,
            stdin: fields.text("stdin")?.unwrap_or_default(),
            editor_text: fields.text("editor_text")?,
            timeout: fields.seconds("timeout")?,
            inputs: fields.inputs()?,
            output_files: fields.texts("output_files")?,
            outputs: fields.outputs()?,
            save_as_artifacts: fields.flag("save_as_artifacts")?,
            omit_inline_content: fields.flag("omit_inline_content")?,
            artifact_prefix: fields.text("artifact_prefix")?.unwrap_or_default(),
            ignored: Vec::new(),
        };
        if read.command.trim().is_empty() {
            return Err(required("command"));
        }
        read.ignored = fields.rest();
        Ok(read)
    }
}

/// An object whose fields are taken one by one, under their own names or as Go writes them:
/// `max_files` or `MaxFiles`; the former counts if both are there.
pub(crate) struct Fields {
    /// What stands before a name in an error: `outputs.`
    path: String,
    values: Map<String, Value>,
}

impl Fields {
    /// Those of a call.
    pub(crate) fn of(arguments: &Value) -> Result<Self, InvalidArguments> {
        match arguments {
            Value::Object(values) => Ok(Self::new("", values.clone())),
            _ => Err(InvalidArguments::NotAnObject),
        }
    }

    fn new(path: impl Into<String>, values: Map<String, Value>) -> Self {
        Self { path: path.into(), values }
    }

    fn take(&mut self, name: &str) -> Option<Value> {
        let go_style = self.values.shift_remove(&go_style(name));
        self.values.shift_remove(name).or(go_style).filter(|value| !value.is_null())
    }

    fn wrong(&self, name: &str, must: &'static str) -> InvalidArguments {
        InvalidArguments::Wrong { name: format!("{}{name}", self.path), must }
    }

    fn skill(&mut self) -> Result<String, InvalidArguments> {
        let mut found: Option<String> = None;
        for name in SKILL_NAMES {
            let text = self.text(name)?.map(|text| text.trim().to_owned());
            let Some(text) = text.filter(|text| !text.is_empty()) else { continue };
            if found.as_ref().is_some_and(|found| *found != text) {
                return Err(InvalidArguments::Two { things: "skills" });
            }
            found = Some(text);
        }
        found.ok_or_else(|| required("skill"))
    }

    pub(crate) fn text(&mut self, name: &str) -> Result<Option<String>, InvalidArguments> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.wrong(name, "a string")),
        }
    }

    pub(crate) fn flag(&mut self, name: &str) -> Result<bool, InvalidArguments> {
        match self.take(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(flag),
            Some(Value::String(word)) if word == "true" => Ok(true),
            Some(Value::String(word)) if word == "false" || word.is_empty() => Ok(false),
            Some(_) => Err(self.wrong(name, "true or false")),
        }
    }

    /// Whether a flag is set under any of its names.
    pub(crate) fn any_flag(&mut self, names: &[&str]) -> Result<bool, InvalidArguments> {
        names.iter().try_fold(false, |is_set, name| Ok(self.flag(name)? || is_set))
    }

    /// A number under the first of its names that is there; what is below zero is zero.
    pub(crate) fn whole_number(&mut self, names: &[&str]) -> Result<Option<u64>, InvalidArguments> {
        let mut found = None;
        for name in names {
            let number = match self.take(name) {
                None => continue,
                Some(Value::String(text)) if text.is_empty() => continue,
                Some(Value::String(text)) => text.trim().parse::<i64>().ok(),
                Some(value) => value.as_i64(),
            };
            let number = number.ok_or_else(|| self.wrong(name, "a whole number"))?;
            found = found.or(Some(u64::try_from(number).unwrap_or(0)));
        }
        Ok(found)
    }

    /// A list of texts; a single text is a list of one.
    fn texts(&mut self, name: &str) -> Result<Vec<String>, InvalidArguments> {
        let texts: Option<Vec<String>> = match self.take(name) {
            None => Some(Vec::new()),
            Some(Value::String(text)) if text.is_empty() => Some(Vec::new()),
            Some(Value::String(text)) => match serde_json::from_str(&text) {
                Ok(texts) => Some(texts),
                Err(_) => Some(vec![text]),
            },
            Some(Value::Array(items)) => {
                items.into_iter().map(|item| item.as_str().map(str::to_owned)).collect()
            }
            Some(_) => None,
        };
        texts.ok_or_else(|| self.wrong(name, "a list of strings"))
    }

    /// A number of things; none if it is absent or not above zero.
    fn count(&mut self, name: &str) -> Result<Option<u64>, InvalidArguments> {
        let count = match self.take(name) {
            None => Some(0),
            Some(Value::String(text)) if text.is_empty() => Some(0),
            Some(Value::String(text)) => text.trim().parse::<i64>().ok(),
            Some(value) => value.as_i64(),
        };
        let count = count.ok_or_else(|| self.wrong(name, "a whole number"))?;
        Ok(u64::try_from(count).ok().filter(|count| *count > 0))
    }

    /// A time in seconds; none if it is absent or not above zero.
    pub(crate) fn seconds(&mut self, name: &str) -> Result<Option<Duration>, InvalidArguments> {
        let seconds = match self.take(name) {
            None => Some(0.0),
            Some(Value::String(text)) if text.is_empty() => Some(0.0),
            Some(Value::String(text)) => text.trim().parse::<f64>().ok(),
            Some(value) => value.as_f64(),
        };
        let seconds = seconds.filter(|seconds| seconds.is_finite());
        let seconds = seconds.ok_or_else(|| self.wrong(name, "a number of seconds"))?;
        // What is too long to be a time is as long as there are.
        let time = match seconds > 0.0 {
            true => Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX),
            false => Duration::ZERO,
        };
        Ok(Some(time).filter(|time| !time.is_zero()))
    }

    fn object(&mut self, name: &str) -> Result<Option<Map<String, Value>>, InvalidArguments> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Object(object)) => Ok(Some(object)),
            Some(Value::String(text)) if text.trim().is_empty() => Ok(None),
            Some(Value::String(text)) => {
                serde_json::from_str(&text).map(Some).map_err(|_| self.wrong(name, "an object"))
            }
            Some(_) => Err(self.wrong(name, "an object")),
        }
    }

    pub(crate) fn variables(
        &mut self,
        name: &str,
    ) -> Result<BTreeMap<String, String>, InvalidArguments> {
        let mut variables = BTreeMap::new();
        for (key, value) in self.object(name)?.unwrap_or_default() {
            let value = match value {
                Value::String(text) => text,
                Value::Number(number) => number.to_string(),
                Value::Bool(flag) => flag.to_string(),
                _ => return Err(self.wrong(&format!("{name}.{key}"), "a string")),
            };
            variables.insert(key, value);
        }
        Ok(variables)
    }

    fn inputs(&mut self) -> Result<Vec<InputArguments>, InvalidArguments> {
        let must = "a list of objects";
        let items = match self.take("inputs") {
            None => Vec::new(),
            Some(Value::Array(items)) => items,
            Some(Value::Object(item)) => vec![Value::Object(item)],
            Some(Value::String(text)) if text.trim().is_empty() => Vec::new(),
            Some(Value::String(text)) => {
                serde_json::from_str(&text).map_err(|_| self.wrong("inputs", must))?
            }
            Some(_) => return Err(self.wrong("inputs", must)),
        };
        let mut inputs = Vec::with_capacity(items.len());
        for (at, item) in items.into_iter().enumerate() {
            let Value::Object(values) = item else { return Err(self.wrong("inputs", must)) };
            let mut fields = Self::new(format!("inputs[{at}]."), values);
            let from = fields.text("from")?.unwrap_or_default().trim().to_owned();
            if from.is_empty() {
                return Err(required(&format!("inputs[{at}].from")));
            }
            let mode = match fields.text("mode")?.unwrap_or_default().trim() {
                "" | "copy" => InputMode::Copy,
                "link" => InputMode::Link,
                _ => return Err(fields.wrong("mode", "copy or link")),
            };
            let to = fields.text("to")?.unwrap_or_default().trim().to_owned();
            inputs.push(InputArguments { from, to, mode, pin: fields.flag("pin")? });
            fields.nothing_left()?;
        }
        Ok(inputs)
    }

    fn outputs(&mut self) -> Result<Option<OutputArguments>, InvalidArguments> {
        let Some(values) = self.object("outputs")?.filter(|it| !it.is_empty()) else {
            return Ok(None);
        };
        let mut fields = Self::new("outputs.", values);
        let outputs = OutputArguments {
            globs: fields.texts("globs")?,
            inline: fields.flag("inline")?,
            save: fields.flag("save")?,
            name_template: fields.text("name_template")?.unwrap_or_default(),
            max_files: fields.count("max_files")?,
            max_file_bytes: fields.count("max_file_bytes")?,
            max_total_bytes: fields.count("max_total_bytes")?,
        };
        fields.nothing_left()?;
        Ok(Some(outputs))
    }

    /// The names that were not taken.
    pub(crate) fn rest(self) -> Vec<String> {
        self.values.into_iter().map(|(name, _)| name).collect()
    }

    fn nothing_left(self) -> Result<(), InvalidArguments> {
        match self.values.keys().next() {
            Some(name) => Err(InvalidArguments::Unknown { name: format!("{}{name}", self.path) }),
            None => Ok(()),
        }
    }
}

fn required(name: &str) -> InvalidArguments {
    InvalidArguments::Required { name: name.to_owned() }
}

/// `max_files` as Go writes it: `MaxFiles`.
fn go_style(name: &str) -> String {
    let word = |word: &str| {
        let mut letters = word.chars();
        let first = letters.next().map(|letter| letter.to_ascii_uppercase());
        first.into_iter().chain(letters).collect::<String>()
    };
    name.split('_').map(word).collect()
}

#[cfg(test)]
#[path = "arguments_tests.rs"]
mod tests;
