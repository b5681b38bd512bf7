//! Code in an answer that is run: fenced blocks become calls of a tool.

use std::sync::Arc;
use std::time::Duration;

use prowess_format::fenced_code;
use prowess_runtime::{
    CommandLanguage, CommandRequest, CommandRunner, Invocation, Part, RuntimeBuilder, Tool,
    ToolCall, ToolDeclaration, ToolFuture, ToolOutcome,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::cut::within;
use crate::error::AgentError;
use crate::middleware::{Flow, Middleware};
use crate::model::ModelResponse;
use crate::run::Run;

/// The tool that runs code.
const RUN_CODE: &str = "run_code";

/// What bounds the running of code.
///
/// ```toml
/// max_blocks = 4             # of one answer
/// timeout_ms = 60000         # of one block
/// max_output_bytes = 16384   # that the model sees of one
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct CodeBlockSettings {
    /// How many blocks of one answer are run; with more, none is.
    pub max_blocks: usize,
    /// How long one block may take.
    pub timeout_ms: u64,
    /// How much of what it writes the model sees.
    pub max_output_bytes: usize,
}

impl Default for CodeBlockSettings {
    fn default() -> Self {
        Self { max_blocks: 4, timeout_ms: 60_000, max_output_bytes: 16 << 10 }
    }
}

macro_rules! setters {
    ($($method:ident $field:ident: $kind:ty;)+) => {
        $(#[doc = concat!("Sets [`CodeBlockSettings::", stringify!($field), "`].")]
        pub fn $method(mut self, $field: $kind) -> Self { self.$field = $field; self })+
    };
}

impl CodeBlockSettings {
    setters! {
        with_max_blocks max_blocks: usize;
        with_timeout_ms timeout_ms: u64;
        with_max_output_bytes max_output_bytes: usize;
    }
}

/// Runs the fenced code blocks of an answer (`python`, `bash`, `sh`): each becomes a call of the
/// tool `run_code`, takes the way of every call, through gate and policy, and the model sees what
/// came of it. An answer that calls tools is left as it is.
///
/// Nothing runs unless this is added, and nothing runs outside of the runner that it is given.
#[derive(Clone)]
pub struct CodeBlocksMiddleware {
    runner: Arc<dyn CommandRunner>,
    settings: CodeBlockSettings,
}

impl CodeBlocksMiddleware {
    /// This one runs the code.
    pub fn new(runner: Arc<dyn CommandRunner>) -> Self {
        Self { runner, settings: CodeBlockSettings::default() }
    }

    /// Other settings than the default ones.
    pub fn with_settings(mut self, settings: CodeBlockSettings) -> Self {
        self.settings = settings;
        self
    }
}

impl std::fmt::Debug for CodeBlocksMiddleware {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let settings = &self.settings;
        formatter
            .debug_struct("CodeBlocksMiddleware")
            .field("settings", settings)
            .finish_non_exhaustive()
    }
}

fn language(word: &str) -> Option<CommandLanguage> {
    match word.to_ascii_lowercase().as_str() {
        "python" | "python3" | "py" => Some(CommandLanguage::Python),
        "bash" | "sh" | "shell" => Some(CommandLanguage::Shell),
        _ => None,
    }
}

impl Middleware for CodeBlocksMiddleware {
    fn contribute(&self, engine: RuntimeBuilder) -> RuntimeBuilder {
        let parameters = json!({
            "type": "object",
            "properties": {
                "language": {"type": "string", "enum": ["python", "bash"]},
                "code": {"type": "string"},
            },
            "required": ["language", "code"],
        });
        let description = "Run code in the sandbox of this session, and see what it writes. Fenced \
                           python and bash blocks of an answer are run with it.";
        let declaration = ToolDeclaration::new(RUN_CODE, description, parameters);
        let (runner, settings) = (Arc::clone(&self.runner), self.settings.clone());
        engine.tool(Arc::new(RunCode { declaration, runner, settings }))
    }

    async fn after_model(
        &self,
        run: &Run,
        response: &mut ModelResponse,
    ) -> Result<Flow, AgentError> {
        let is_there = run.runtime().host_tools().iter().any(|tool| tool.name == RUN_CODE);
        if !is_there || response.message.tool_calls().next().is_some() {
            return Ok(Flow::Continue);
        }
        let text = response.message.text();
        let blocks: Vec<(&str, &str)> = fenced_code(&text)
            .into_iter()
            .filter_map(|block| {
                let word = block.info.split_whitespace().next()?;
                language(word).filter(|_| !block.code.trim().is_empty())?;
                Some((word, block.code))
            })
            .collect();
        if blocks.len() > self.settings.max_blocks {
            let (count, most) = (blocks.len(), self.settings.max_blocks);
            run.problem(format!("an answer has {count} blocks of code; at most {most} are run"))
                .await;
            return Ok(Flow::Continue);
        }
        let answered = run.conversation.lock().await.answers();
        for (number, (language, code)) in (answered + 1..).zip(blocks) {
            let arguments = json!({"language": language, "code": code});
            let call = ToolCall::new(format!("code-{number}"), RUN_CODE, arguments);
            response.message.parts.push(Part::ToolCall(call));
        }
        Ok(Flow::Continue)
    }
}

struct RunCode {
    declaration: ToolDeclaration,
    runner: Arc<dyn CommandRunner>,
    settings: CodeBlockSettings,
}

#[derive(Deserialize)]
struct Arguments {
    language: String,
    code: String,
}

impl RunCode {
    async fn run(&self, invocation: Invocation<'_>) -> Result<ToolOutcome, ToolOutcome> {
        let invalid = |cause: String| invocation.invalid_arguments(cause);
        let arguments = invocation.call.arguments.clone();
        let Arguments { language: word, code } =
            serde_json::from_value(arguments).map_err(|error| invalid(error.to_string()))?;
        let language = language(&word)
            .ok_or_else(|| invalid(format!("'{word}' cannot be run; use python or bash")))?;
        let timeout = Duration::from_millis(self.settings.timeout_ms);
        let request =
            CommandRequest::new(invocation.session, &code, timeout).with_language(language);
        let answer = self.runner.run(request).await.map_err(|cause| {
            ToolOutcome::error("code_not_run", format!("Error: The code was not run: {cause}"))
                .with_hint("Tell the user.")
        })?;
        let (code, text) = match (answer.timed_out, answer.exit_code) {
            (true, _) => ("timed_out", format!("[stopped after {} ms]\n", timeout.as_millis())),
            (false, 0) => ("ok", String::new()),
            (false, exit) => ("command_failed", format!("[exit code {exit}]\n")),
        };
        let output = within(&answer.output, self.settings.max_output_bytes);
        let mut outcome = ToolOutcome::text(format!("{text}{output}"));
        outcome.code = code.into();
        outcome.data = json!({
            "exit_code": answer.exit_code,
            "timed_out": answer.timed_out,
            "output_bytes": answer.output.len(),
        });
        Ok(outcome)
    }
}

impl Tool for RunCode {
    fn declaration(&self) -> &ToolDeclaration {
        &self.declaration
    }

    fn call<'a>(&'a self, invocation: Invocation<'a>) -> ToolFuture<'a> {
        Box::pin(async move { self.run(invocation).await.unwrap_or_else(|failure| failure) })
    }
}
