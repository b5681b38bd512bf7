//! Commands in the text of skills, and whoever runs them.

use std::time::Duration;

use futures_util::future::BoxFuture;
use prowess_catalog::{CatalogSkill, Trust};
use prowess_format::{Arguments, EmbeddedCommand, embedded_commands};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::customise::BoxError;
use crate::engine::Engine;
use crate::outcome::ToolOutcome;
use crate::session::SessionKey;

/// Whether commands in the text of a skill are run: `` !`git status` ``.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EmbeddedCommands {
    /// They are text like any other.
    #[default]
    Off,
    /// They are run when a person loads the skill, if its source is trusted, and what they write
    /// takes their place. When a model loads the skill they are text.
    People,
}

/// Runs commands for whoever has none of the tools for it: those in the text of skills, and code
/// that a model has written into its answer.
pub trait CommandRunner: Send + Sync + 'static {
    /// Runs a command to its end. A command that fails is an answer; an error means that nothing
    /// was started, or that it is not known how it ended.
    fn run<'a>(
        &'a self,
        request: CommandRequest<'a>,
    ) -> BoxFuture<'a, Result<CommandAnswer, BoxError>>;
}

/// A command that is to be run.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct CommandRequest<'a> {
    /// In whose workspace.
    pub session: &'a SessionKey,
    /// The skill that it belongs to: `CLAUDE_SKILL_DIR` is its folder.
    pub skill: Option<&'a CatalogSkill>,
    /// What it is written in.
    pub language: CommandLanguage,
    /// The command.
    pub code: &'a str,
    /// What it reads from its standard input, unless that is the command itself.
    pub input: &'a [u8],
    /// How long it may take.
    pub timeout: Duration,
}

impl<'a> CommandRequest<'a> {
    /// A line for a shell.
    pub fn new(session: &'a SessionKey, code: &'a str, timeout: Duration) -> Self {
        Self { session, skill: None, language: CommandLanguage::Shell, code, input: b"", timeout }
    }

    /// On behalf of a skill.
    pub fn with_skill(mut self, skill: &'a CatalogSkill) -> Self {
        self.skill = Some(skill);
        self
    }

    /// With something to read.
    pub fn with_input(mut self, input: &'a [u8]) -> Self {
        self.input = input;
        self
    }

    /// Written in something else.
    pub fn with_language(mut self, language: CommandLanguage) -> Self {
        self.language = language;
        self
    }
}

/// What a command is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum CommandLanguage {
    /// For `bash`.
    Shell,
    /// For `python3`.
    Python,
}

/// What came of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CommandAnswer {
    /// The code that it ended with, as a shell reports it.
    pub exit_code: i32,
    /// What it wrote, errors included.
    pub output: String,
    /// What it wrote to its standard output alone.
    pub stdout: String,
    /// Whether its time was over.
    pub timed_out: bool,
}

impl CommandAnswer {
    /// A command that ended with this code and wrote this.
    pub fn new(exit_code: i32, output: impl Into<String>) -> Self {
        let output = output.into();
        Self { exit_code, stdout: output.clone(), output, timed_out: false }
    }
}

/// What stands in the place of a command that nobody may run.
const DISABLED: &str = "[shell command execution disabled by policy]";

/// Programs whose code 1 means "nothing found" or "not the same".
const TELLS_BY_CODE: [&str; 9] = ["grep", "egrep", "fgrep", "rg", "ag", "diff", "cmp", "test", "["];

impl Engine<'_> {
    /// The commands in a body that are to be run.
    pub(crate) fn commands_of(&self, body: &str) -> Vec<EmbeddedCommand> {
        match self.settings().embedded_commands {
            EmbeddedCommands::Off => Vec::new(),
            EmbeddedCommands::People => embedded_commands(body),
        }
    }

    /// A body with arguments put in and what its commands wrote. Commands are those of the body as
    /// its author wrote it: nothing that is put in becomes one.
    pub(crate) async fn with_commands(
        &self,
        name: &str,
        skill: &CatalogSkill,
        body: &str,
        commands: &[EmbeddedCommand],
        arguments: Arguments,
    ) -> Result<Option<String>, ToolOutcome> {
        let limit = self.settings().max_given_bytes;
        let mut arguments = arguments;
        let mut outputs = Vec::with_capacity(commands.len());
        for command in commands {
            let (code, uses) = arguments.substitute_in_command(&command.code);
            if uses {
                arguments = arguments.used();
            }
            outputs
                .push(self.command_output(name, skill, &body[command.range.clone()], &code).await?);
            self.check_size(name, "commands", outputs.iter().map(String::len).sum())?;
        }
        // What stands between them, joined by something that nobody has written.
        let mut mark = "\u{e000}".to_owned();
        let raw = arguments.substitute("$ARGUMENTS");
        while body.contains(&mark) || raw.contains(&mark) {
            mark.push('\u{e001}');
        }
        let mut marked = String::with_capacity(body.len());
        let mut at = 0;
        for command in commands {
            marked.push_str(&body[at..command.range.start]);
            marked.push_str(&mark);
            at = command.range.end;
        }
        marked.push_str(&body[at..]);
        let most = body.len().saturating_add(limit);
        let Some(filled) = arguments.substitute_within(&marked, most) else { return Ok(None) };
        let mut parts = filled.split(&mark);
        let mut text = parts.next().unwrap_or_default().to_owned();
        for (output, part) in outputs.iter().zip(parts) {
            text.push_str(output);
            text.push_str(part);
        }
        Ok(Some(text))
    }

    async fn command_output(
        &self,
        name: &str,
        skill: &CatalogSkill,
        pattern: &str,
        code: &str,
    ) -> Result<String, ToolOutcome> {
        if skill.trust() != Trust::Trusted {
            return Ok(DISABLED.to_owned());
        }
        let failed = |code: &'static str, cause: String| {
            let data = json!({"skill": name, "pattern": pattern, "cause": cause});
            ToolOutcome::failed(code, data).about(name)
        };
        let Some(runner) = &self.inner.commands else {
            return Err(failed("embedded_command_denied", "nobody here runs commands".to_owned()));
        };
        let timeout = Duration::from_millis(self.settings().command_timeout_ms);
        let request = CommandRequest::new(self.session, code, timeout).with_skill(skill);
        let answer = runner.run(request).await;
        let answer =
            answer.map_err(|cause| failed("embedded_command_denied", cause.to_string()))?;
        let CommandAnswer { exit_code, output, timed_out, .. } = answer;
        if timed_out {
            let cause = format!("it took longer than {} ms", timeout.as_millis());
            return Err(failed("embedded_command_failed", cause));
        }
        let own = code.strip_prefix("__arguments=").and_then(|it| it.split_once('\n'));
        let own = own.map_or(code, |(_, own)| own);
        let program = own.split_whitespace().next().unwrap_or_default();
        let program = program.rsplit('/').next().unwrap_or_default();
        match exit_code {
            0 => {}
            1 if TELLS_BY_CODE.contains(&program) => {}
            code => {
                return Err(failed(
                    "embedded_command_failed",
                    format!("exit code {code}: {}", output.trim_end()),
                ));
            }
        }
        Ok(output.trim_end_matches(['\r', '\n']).to_owned())
    }
}
