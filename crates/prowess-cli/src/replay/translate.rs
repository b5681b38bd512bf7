//! Scripted calls in the words of a dialect.

use anyhow::{Context, bail};
use prowess_catalog::{Catalog, ResourcePath, Snapshot};
use prowess_runtime::{Dialect, ToolDeclaration};
use serde_json::{Map, Value, json};

use super::Scenario;

/// A call as the model makes it.
pub(super) struct Call {
    pub(super) tool: String,
    pub(super) arguments: Value,
    /// What it answers, if that is not in the script.
    pub(super) answer: Option<String>,
}

/// What a model reads docs with that has no tool for docs.
const READ: &str = "read_file";
const SELECT: &str = "skill_select_docs";

/// A tool to read docs with, if the script reads some and the dialect has no tool for that.
pub(super) fn reading_tool(dialect: &Dialect, scenario: &Scenario) -> Option<ToolDeclaration> {
    let reads = scenario.turn.iter().flat_map(|turn| &turn.step);
    let mut reads = reads.filter(|step| step.tool.as_deref() == Some(SELECT));
    let parameters = json!({
        "type": "object",
        "properties": {"file_path": {"type": "string", "description": "Path of the file."}},
        "required": ["file_path"],
    });
    let needed = dialect.tool(SELECT).is_none() && reads.next().is_some();
    needed.then(|| ToolDeclaration::new(READ, "Read a file.", parameters))
}

/// Puts scripted calls into the words of a dialect.
pub(super) struct Translator {
    /// The words of the scripts.
    own: Dialect,
    dialect: Dialect,
    snapshot: Snapshot,
}

impl Translator {
    pub(super) fn new(catalog: &Catalog, dialect: Dialect) -> anyhow::Result<Self> {
        Ok(Self { own: Dialect::built_in()?, dialect, snapshot: catalog.snapshot() })
    }

    /// The calls by which a model of the dialect does what the script says.
    pub(super) async fn calls(&self, tool: &str, arguments: Value) -> anyhow::Result<Vec<Call>> {
        if self.own.tool(tool).is_none() {
            return Ok(vec![Call { tool: tool.to_owned(), arguments, answer: None }]);
        }
        let Some(name) = self.dialect.tool(tool) else {
            return match tool {
                SELECT => self.reads(&arguments).await,
                _ => bail!("dialect '{}' has no tool '{tool}'", self.dialect.name()),
            };
        };
        let mut renamed = Map::new();
        for (own, value) in arguments.as_object().cloned().unwrap_or_default() {
            let parameter = self.dialect.parameter(tool, &own);
            let parameter = parameter.with_context(|| format!("'{name}' takes no '{own}'"))?;
            renamed.insert(parameter.to_owned(), value);
        }
        let (tool, arguments) = (name.to_owned(), Value::Object(renamed));
        Ok(vec![Call { tool, arguments, answer: None }])
    }

    /// Reads docs one by one.
    async fn reads(&self, arguments: &Value) -> anyhow::Result<Vec<Call>> {
        let skill = self.snapshot.get(arguments["skill"].as_str().unwrap_or_default())?;
        let mut calls = Vec::new();
        for doc in arguments["docs"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            let bytes = skill.read_resource(&ResourcePath::parse(doc)?).await?;
            let path = skill.path().with_file_name(doc).display().to_string();
            calls.push(Call {
                tool: READ.to_owned(),
                arguments: json!({"file_path": path}),
                answer: Some(String::from_utf8_lossy(&bytes).into_owned()),
            });
        }
        Ok(calls)
    }
}
