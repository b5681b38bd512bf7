//! A tool that a skill declares, with what carries it out.

use std::sync::Arc;
use std::time::Duration;

use prowess_catalog::{CatalogSkill, ResourcePath, Snapshot};
use prowess_format::{ArgumentKind, Digest, ToolConfig};
use serde_json::{Map, Value, json};

use crate::command::{CommandAnswer, CommandRequest};
use crate::handlers::{Handler, HandlerTable, Parameter};
use crate::message::ToolCall;
use crate::outcome::ToolOutcome;
use crate::session::LoadedSkill;
use crate::tool::{Effect, Invocation, Tool, ToolDeclaration, ToolFuture};
use crate::tools::{give_detail, skill_tool};

/// The method that every skill has: it gives a resource of the skill.
pub(super) const LOAD_DETAILS: &str = "load_details";

/// What that method takes.
pub(super) fn load_details_takes() -> [Parameter; 1] {
    [Parameter::required("resource", ArgumentKind::String)]
}

/// A tool that a skill declares.
pub(super) struct BoundTool {
    declaration: ToolDeclaration,
    /// The text that declares it.
    digest: Digest,
    /// The skill of that text.
    skill: String,
    /// What stands in for arguments that are not given.
    defaults: Map<String, Value>,
    /// The arguments that may be left out: models write null for that.
    optional: Vec<String>,
    validator: jsonschema::Validator,
    target: Target,
}

/// What carries a tool out.
enum Target {
    /// A function of the host.
    Handler(Arc<dyn Handler>),
    /// The engine gives a resource of the skill.
    Details,
    /// A file of the skill.
    Script(ResourcePath),
}

impl BoundTool {
    /// A tool that was found to be without fault; `None` if it is bound to nothing.
    pub(super) fn new(
        skill: &str,
        digest: Digest,
        config: ToolConfig,
        handlers: &HandlerTable,
    ) -> Option<Self> {
        let target = match (&config.script, config.method.as_str()) {
            (Some(script), _) => Target::Script(ResourcePath::parse(script).ok()?),
            (None, "") => return None,
            (None, method) => match handlers.method(skill, method) {
                Some(handler) => Target::Handler(Arc::clone(handler)),
                None if method == LOAD_DETAILS => Target::Details,
                None => return None,
            },
        };
        let parameters = schema(&config);
        let validator = jsonschema::validator_for(&parameters).ok()?;
        let mut defaults = Map::new();
        for argument in &config.args {
            let default = argument.default.as_ref().and_then(|it| serde_json::to_value(it).ok());
            if let Some(default) = default.filter(|it| !it.is_null()) {
                defaults.insert(argument.name.clone(), default);
            }
        }
        let optional = config.args.iter().filter(|it| !it.required).map(|it| it.name.clone());
        Some(Self {
            optional: optional.collect(),
            declaration: ToolDeclaration::new(config.name, config.description, parameters),
            digest,
            skill: skill.to_owned(),
            defaults,
            validator,
            target,
        })
    }

    /// The arguments as the tool declares them, defaults included.
    fn arguments(&self, call: &ToolCall) -> Result<Value, ToolOutcome> {
        let mut arguments = call.arguments.clone();
        if let Some(given) = arguments.as_object_mut() {
            given.retain(|name, value| !value.is_null() || !self.optional.contains(name));
            for (name, default) in &self.defaults {
                given.entry(name).or_insert_with(|| default.clone());
            }
        }
        skill_tool::check_with(&self.validator, &self.declaration.name, &arguments)?;
        Ok(arguments)
    }

    /// The skill as the session has loaded it, if it has.
    fn loaded<'a>(&self, invocation: Invocation<'a>) -> Option<&'a LoadedSkill> {
        invocation.state.loaded.iter().find(|it| it.digest == self.digest)
    }

    async fn run(&self, invocation: Invocation<'_>) -> ToolOutcome {
        let arguments = match self.arguments(invocation.call) {
            Ok(arguments) => arguments,
            Err(invalid) => return invalid,
        };
        let call = ToolCall { arguments, ..invocation.call.clone() };
        let invocation = Invocation { call: &call, ..invocation };
        let loaded = self.loaded(invocation);
        let skill = loaded.map_or(self.skill.as_str(), |loaded| loaded.name.as_str());
        let outcome = match &self.target {
            Target::Handler(handler) => handler.call(invocation).await,
            Target::Details => {
                let resource = call.arguments["resource"].as_str().unwrap_or_default();
                let given = give_detail(invocation, skill, resource, &call.arguments).await;
                given.unwrap_or_else(|failure| failure)
            }
            Target::Script(script) => {
                self.script(invocation, skill, loaded, script).await.unwrap_or_else(|it| it)
            }
        };
        match outcome.skill {
            Some(_) => outcome,
            None => outcome.about(skill),
        }
    }

    /// Runs a file of the skill in the sandbox, with the arguments on its standard input.
    async fn script(
        &self,
        invocation: Invocation<'_>,
        name: &str,
        loaded: Option<&LoadedSkill>,
        script: &ResourcePath,
    ) -> Result<ToolOutcome, ToolOutcome> {
        let Invocation { engine, snapshot, call, session, .. } = invocation;
        let tool = &self.declaration.name;
        let failed = |code: &'static str, cause: &str| {
            ToolOutcome::error(code, format!("Error in {tool}: {cause}"))
        };
        let Some(runner) = &engine.inner.commands else {
            let hint = "The host must give the engine something that runs commands.";
            return Err(failed("script_unavailable", "nobody here runs scripts").with_hint(hint));
        };
        let skill = engine.find(snapshot, name)?;
        let skill: CatalogSkill = match loaded {
            // What runs is what was loaded.
            Some(loaded) => engine.pinned(loaded, skill).await?.into_owned(),
            None => skill.clone(),
        };
        let timeout = Duration::from_millis(engine.settings().script_timeout_ms);
        let (code, input) = (command_for(script), call.arguments.to_string());
        let request = CommandRequest::new(session, &code, timeout)
            .with_skill(&skill)
            .with_input(input.as_bytes());
        let answer = runner.run(request).await;
        let answer = answer.map_err(|cause| failed("script_not_run", &cause.to_string()))?;
        let CommandAnswer { exit_code, output, stdout, timed_out } = answer;
        if timed_out {
            let cause = format!("it took longer than {} ms", timeout.as_millis());
            return Err(failed("script_timeout", &cause));
        }
        if exit_code != 0 {
            let cause = format!("exit code {exit_code}: {}", output.trim_end());
            return Err(failed("script_failed", &cause).with_data("exit_code", exit_code));
        }
        let text = stdout.trim_end_matches(['\r', '\n']);
        let mut outcome = ToolOutcome::text(text);
        if let Ok(data @ (Value::Object(_) | Value::Array(_))) = serde_json::from_str(text) {
            outcome.data = data;
        }
        Ok(outcome)
    }
}

impl Tool for BoundTool {
    fn declaration(&self) -> &ToolDeclaration {
        &self.declaration
    }

    fn effect(&self, _call: &ToolCall, _snapshot: &Snapshot) -> Effect {
        match self.target {
            Target::Details => Effect::State,
            Target::Handler(_) | Target::Script(_) => Effect::None,
        }
    }

    fn call<'a>(&'a self, invocation: Invocation<'a>) -> ToolFuture<'a> {
        Box::pin(self.run(invocation))
    }
}

/// The JSON Schema of the arguments of a tool.
fn schema(config: &ToolConfig) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for argument in &config.args {
        let mut property = json!({"type": argument.kind.as_str()});
        // Some providers refuse an array that does not say what is in it.
        if argument.kind == ArgumentKind::Array {
            let items = argument.items.map(|kind| json!({"type": kind.as_str()}));
            property["items"] = items.unwrap_or_else(|| json!({}));
        }
        if !argument.description.is_empty() {
            property["description"] = json!(argument.description);
        }
        if !argument.choices.is_empty() {
            property["enum"] = json!(argument.choices);
        }
        match argument.default.as_ref().filter(|it| !it.is_null()) {
            Some(default) => property["default"] = json!(default),
            None if argument.required => required.push(argument.name.as_str()),
            None => {}
        }
        properties.insert(argument.name.clone(), property);
    }
    let mut schema =
        json!({"type": "object", "properties": properties, "additionalProperties": false});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

/// The line that runs a file of a skill, by what its name says it is written in.
fn command_for(script: &ResourcePath) -> String {
    let path = script.as_str();
    let quoted = path.replace('\'', "'\\''");
    let ending = path.rsplit('/').next().and_then(|name| name.rsplit_once('.'));
    let program = match ending.map(|(_, ending)| ending) {
        Some("py") => "python3 ",
        Some("sh" | "bash") => "bash ",
        Some("js" | "mjs") => "node ",
        Some("rb") => "ruby ",
        Some("pl") => "perl ",
        _ => "",
    };
    format!("exec {program}\"$CLAUDE_SKILL_DIR\"/'{quoted}'")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_run_by_what_it_is_written_in() {
        let rows = [
            ("scripts/sum.py", "exec python3 \"$CLAUDE_SKILL_DIR\"/'scripts/sum.py'"),
            ("sum.sh", "exec bash \"$CLAUDE_SKILL_DIR\"/'sum.sh'"),
            ("scripts/sum", "exec \"$CLAUDE_SKILL_DIR\"/'scripts/sum'"),
            ("it's.py", "exec python3 \"$CLAUDE_SKILL_DIR\"/'it'\\''s.py'"),
            ("$(x).js", "exec node \"$CLAUDE_SKILL_DIR\"/'$(x).js'"),
        ];
        for (path, line) in rows {
            let command = ResourcePath::parse(path).map(|path| command_for(&path));
            assert_eq!(command.ok().as_deref(), Some(line));
        }
    }
}
