//! A dialect: which load tools there are, what they and their parameters are called, what is said,
//! and which settings fit. A data file each.

mod render;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use minijinja::Environment;
use prowess_format::{Digest, nearest_name};
use serde::Deserialize;

pub(crate) use render::is_said;

use crate::settings::{InvalidSettings, Settings};
use crate::tools::{GENERIC, LOAD, Spec, spec};

/// The dialects that are built in; the first one is the default, and completes all others.
const BUILT_IN: [(&str, &str); 5] = [
    ("prowess", include_str!("../../dialects/prowess.toml")),
    ("deepagents", include_str!("../../dialects/deepagents.toml")),
    ("trpc", include_str!("../../dialects/trpc.toml")),
    ("eino", include_str!("../../dialects/eino.toml")),
    ("langchain_docker", include_str!("../../dialects/langchain_docker.toml")),
];

/// How a model is spoken to: tools, their names and parameters, texts, encoding, default settings.
///
/// ```
/// use prowess_runtime::{Dialect, LoadMode};
///
/// let dialect = Dialect::named("trpc").unwrap();
/// assert_eq!(dialect.tool("load_skill"), Some("skill_load"));
/// assert_eq!(dialect.settings().load_mode, LoadMode::Turn);
/// ```
#[derive(Clone, Debug)]
pub struct Dialect {
    name: String,
    encoding: Encoding,
    /// What `[runtime]` says unless a host says otherwise.
    table: toml::Table,
    settings: Settings,
    tools: BTreeMap<&'static str, ToolWords>,
    environment: Environment<'static>,
    /// What identifies it, if it is not the default one.
    fingerprint: Option<Digest>,
}

/// How the content of a result is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Encoding {
    /// As it is.
    #[default]
    Text,
    /// As JSON: text in quotes, objects and lists as they are.
    Json,
}

/// What a load tool and its parameters are called.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolWords {
    /// The name that a model calls; its own unless said otherwise.
    #[serde(default)]
    pub(crate) name: String,
    pub(crate) description: String,
    /// By their own names; who is not here is not there.
    #[serde(default)]
    pub(crate) parameters: BTreeMap<String, ParameterWords>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ParameterWords {
    /// The name that a model uses; its own unless said otherwise.
    #[serde(default)]
    pub(crate) name: String,
    pub(crate) description: String,
}

/// Why a dialect cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DialectError {
    /// There is none of this name, nor a file.
    #[error(
        "there is no dialect '{name}': use prowess, deepagents, trpc, eino, langchain_docker or \
         the path of a file"
    )]
    Unknown {
        /// What was asked for.
        name: String,
    },
    /// The file cannot be read.
    #[error("{}: {cause}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: std::io::Error,
    },
    /// There is something wrong with this file.
    #[error("{}: {cause}", path.display())]
    InFile {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        cause: Box<DialectError>,
    },
    /// It is no such file.
    #[error("the dialect cannot be read: {0}")]
    Invalid(Box<toml::de::Error>),
    /// Its settings are wrong.
    #[error("the settings of dialect '{name}' cannot be used: {cause}")]
    Settings {
        /// Which dialect.
        name: String,
        /// What is wrong.
        cause: InvalidSettings,
    },
    /// A tool or a parameter is wrong.
    #[error("dialect '{name}': {cause}")]
    Tools {
        /// Which dialect.
        name: String,
        /// What is wrong.
        cause: InvalidTools,
    },
    /// A template is wrong.
    #[error("the text for '{name}' cannot be used: {cause}")]
    Template {
        /// Which.
        name: String,
        /// What is wrong.
        cause: Box<minijinja::Error>,
    },
}

/// What is wrong with the load tools of a dialect.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidTools {
    /// There is no such tool.
    #[error("there is no load tool '{tool}'{}", did_you_mean(*meant))]
    UnknownTool {
        /// What it is called.
        tool: String,
        /// What may be meant.
        meant: Option<&'static str>,
    },
    /// A tool has no such parameter.
    #[error("the load tool '{tool}' has no parameter '{parameter}'")]
    UnknownParameter {
        /// Which tool.
        tool: &'static str,
        /// What it is called.
        parameter: String,
    },
    /// A tool is no use without a parameter.
    #[error("the load tool '{tool}' needs its parameter '{parameter}'")]
    MissingParameter {
        /// Which tool.
        tool: &'static str,
        /// Which parameter.
        parameter: &'static str,
    },
    /// No provider takes a name.
    #[error("no model can say '{name}': use at most 64 letters, digits, _ and -")]
    Name {
        /// The name.
        name: String,
    },
    /// Two parameters of a tool cannot be told apart.
    #[error("two parameters of '{tool}' have the same name")]
    SameParameters {
        /// Which tool.
        tool: &'static str,
    },
    /// Without this one there is no use of the others.
    #[error("without the load tool '{LOAD}' no skill can be loaded")]
    NoLoad,
    /// Two tools cannot be told apart.
    #[error("two load tools are called '{name}'")]
    SameTools {
        /// What both are called.
        name: String,
    },
}

fn did_you_mean(meant: Option<&str>) -> String {
    meant.map(|meant| format!("; did you mean '{meant}'?")).unwrap_or_default()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    #[serde(default)]
    encoding: Encoding,
    #[serde(default)]
    settings: toml::Table,
    tools: BTreeMap<String, ToolWords>,
    #[serde(default)]
    outcomes: BTreeMap<String, OutcomeWords>,
    #[serde(default)]
    blocks: BTreeMap<String, String>,
}

/// What is said of an outcome.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OutcomeWords {
    text: String,
    stub: Option<String>,
    hint: Option<String>,
}

impl Dialect {
    /// The names of those that are built in; the first one is the default.
    pub fn names() -> impl Iterator<Item = &'static str> {
        BUILT_IN.iter().map(|(name, _)| *name)
    }

    /// The default one.
    pub fn built_in() -> Result<Self, DialectError> {
        Self::parse(BUILT_IN[0].1)
    }

    /// One that is built in.
    pub fn named(name: &str) -> Result<Self, DialectError> {
        match BUILT_IN.iter().find(|(known, _)| *known == name) {
            Some((_, text)) => Self::parse(text),
            None => Err(DialectError::Unknown { name: name.to_owned() }),
        }
    }

    /// One in a file.
    pub fn read(path: &Path) -> Result<Self, DialectError> {
        let unreadable = |cause| DialectError::Unreadable { path: path.to_owned(), cause };
        let text = std::fs::read_to_string(path).map_err(unreadable)?;
        let wrong = |cause| DialectError::InFile { path: path.to_owned(), cause: Box::new(cause) };
        Self::parse(&text).map_err(wrong)
    }

    /// One by its name or by the path of its file.
    pub fn find(name_or_path: &str) -> Result<Self, DialectError> {
        let is_path = name_or_path.contains('/') || name_or_path.ends_with(".toml");
        match Self::named(name_or_path) {
            Err(DialectError::Unknown { .. }) if is_path => Self::read(Path::new(name_or_path)),
            found => found,
        }
    }

    /// Reads a dialect. What it does not say, the default one says.
    pub fn parse(text: &str) -> Result<Self, DialectError> {
        let read = |text: &str| toml::from_str::<File>(text).map_err(Box::new);
        let file = read(text).map_err(DialectError::Invalid)?;
        let base = read(BUILT_IN[0].1).map_err(DialectError::Invalid)?;
        let wrong = |cause| DialectError::Tools { name: file.name.clone(), cause };
        let mut tools = BTreeMap::new();
        let generic = base.tools.get(GENERIC.name).map(|words| (GENERIC.name, words.clone()));
        for (tool, words) in generic.into_iter().chain(named(&file.tools)) {
            let spec = spec(tool).ok_or_else(|| wrong(unknown_tool(tool)))?;
            tools.insert(spec.name, complete(spec, words).map_err(wrong)?);
        }
        check_names(&tools).map_err(wrong)?;
        let settings = Settings::from_table(file.settings.clone())
            .map_err(|cause| DialectError::Settings { name: file.name.clone(), cause })?;
        let names = names_of(&tools);
        let environment = render::environment(&names, base, file.outcomes, file.blocks)?;
        let is_default = text == BUILT_IN[0].1;
        Ok(Self {
            name: file.name,
            encoding: file.encoding,
            table: file.settings,
            settings,
            tools,
            environment,
            fingerprint: (!is_default).then(|| Digest::of(text.as_bytes())),
        })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The settings that fit it.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The settings that fit it, with what a section `[runtime]` says otherwise.
    pub fn settings_with(&self, table: &toml::Table) -> Result<Settings, InvalidSettings> {
        let mut merged = self.table.clone();
        merge(&mut merged, table);
        Settings::from_table(merged)
    }

    /// What it calls a load tool, such as `load_skill`; `None` if it has no such tool.
    pub fn tool(&self, tool: &str) -> Option<&str> {
        self.tools.get(tool).map(|words| words.name.as_str())
    }

    /// What it calls a parameter of a load tool; `None` if the tool has no such parameter.
    pub fn parameter(&self, tool: &str, parameter: &str) -> Option<&str> {
        let words = self.tools.get(tool)?.parameters.get(parameter)?;
        Some(&words.name)
    }

    /// Calls a load tool something else.
    pub(crate) fn rename_tool(
        &mut self,
        tool: &'static str,
        name: &str,
    ) -> Result<(), DialectError> {
        let invalid = |cause| DialectError::Tools { name: self.name.clone(), cause };
        let mut tools = self.tools.clone();
        if let Some(words) = tools.get_mut(tool) {
            name.clone_into(&mut words.name);
            check_callable(name).map_err(invalid)?;
        }
        check_names(&tools).map_err(invalid)?;
        render::set_names(&mut self.environment, &names_of(&tools));
        self.tools = tools;
        Ok(())
    }

    pub(crate) fn words(&self, tool: &str) -> Option<&ToolWords> {
        self.tools.get(tool)
    }

    pub(crate) fn fingerprint(&self) -> Option<Digest> {
        self.fingerprint
    }
}

fn named(tools: &BTreeMap<String, ToolWords>) -> impl Iterator<Item = (&str, ToolWords)> {
    tools.iter().map(|(tool, words)| (tool.as_str(), words.clone()))
}

fn unknown_tool(tool: &str) -> InvalidTools {
    let meant = nearest_name(tool, crate::tools::names());
    InvalidTools::UnknownTool { tool: tool.to_owned(), meant }
}

/// Fills in the names that are not said otherwise.
fn complete(spec: &Spec, mut words: ToolWords) -> Result<ToolWords, InvalidTools> {
    let tool = spec.name;
    if words.name.is_empty() {
        tool.clone_into(&mut words.name);
    }
    for (parameter, own) in &mut words.parameters {
        if !spec.parameters.iter().any(|known| known.name == *parameter) {
            let parameter = parameter.clone();
            return Err(InvalidTools::UnknownParameter { tool, parameter });
        }
        if own.name.is_empty() {
            own.name.clone_from(parameter);
        }
    }
    for required in &spec.parameters[..spec.required] {
        if !words.parameters.contains_key(required.name) {
            return Err(InvalidTools::MissingParameter { tool, parameter: required.name });
        }
    }
    let names: BTreeSet<&str> = words.parameters.values().map(|it| it.name.as_str()).collect();
    for name in std::iter::once(&*words.name).chain(names.iter().copied()) {
        check_callable(name)?;
    }
    match names.len() == words.parameters.len() {
        true => Ok(words),
        false => Err(InvalidTools::SameParameters { tool }),
    }
}

/// Whether every provider takes this name of a tool or a parameter.
fn check_callable(name: &str) -> Result<(), InvalidTools> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    match !name.is_empty() && name.len() <= 64 && name.chars().all(is_plain) {
        true => Ok(()),
        false => Err(InvalidTools::Name { name: name.to_owned() }),
    }
}

/// A skill can be loaded, and no two tools have the same name.
fn check_names(tools: &BTreeMap<&'static str, ToolWords>) -> Result<(), InvalidTools> {
    if !tools.contains_key(LOAD) {
        return Err(InvalidTools::NoLoad);
    }
    let mut names: BTreeSet<&str> = BTreeSet::new();
    match tools.values().find(|words| !names.insert(&words.name)) {
        Some(twice) => Err(InvalidTools::SameTools { name: twice.name.clone() }),
        None => Ok(()),
    }
}

/// What the load tools are called; nothing, where there is none.
fn names_of(tools: &BTreeMap<&'static str, ToolWords>) -> BTreeMap<String, String> {
    let name = |tool: &str| tools.get(tool).map(|words| words.name.clone()).unwrap_or_default();
    crate::tools::names().map(|tool| (tool.to_owned(), name(tool))).collect()
}

/// Puts one table over another.
fn merge(below: &mut toml::Table, above: &toml::Table) {
    for (key, value) in above {
        match (below.get_mut(key), value) {
            (Some(toml::Value::Table(below)), toml::Value::Table(above)) => merge(below, above),
            _ => {
                below.insert(key.clone(), value.clone());
            }
        }
    }
}
