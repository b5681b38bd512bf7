//! `execute`

use std::time::Duration;

use prowess_runtime::{Invocation, ToolOutcome};
use serde_json::json;

use super::arguments::ExecuteArguments;
use super::backend::{CommandLimits, CommandOutcome};
use super::ground::Ground;
use super::{Files, failure};
use crate::invalid::InvalidArguments;

impl Files {
    /// Runs a command where the files are.
    pub(crate) async fn execute(
        &self,
        invocation: Invocation<'_>,
    ) -> Result<ToolOutcome, ToolOutcome> {
        let invalid = |why: InvalidArguments| why.outcome(invocation);
        let arguments = ExecuteArguments::parse(&invocation.call.arguments).map_err(invalid)?;
        let shell = match &self.ground {
            Ground::Backend(backend) => backend.shell(),
            Ground::Workspaces(_) => None,
        };
        let shell = shell.ok_or_else(|| {
            ToolOutcome::error("no_shell", "Error: no commands can be run where the files are")
        })?;
        let most = self.settings.max_command_seconds;
        let seconds = arguments.timeout.unwrap_or(most).min(most);
        let limits =
            CommandLimits::new(Duration::from_secs(seconds), self.settings.max_output_bytes);
        let ended = shell.execute(&arguments.command, limits).await;
        let ended = ended.map_err(|error| failure(&error, &arguments.command))?;
        Ok(told(&ended, arguments.timeout.filter(|asked| *asked > most).map(|_| most), seconds))
    }
}

fn told(ended: &CommandOutcome, shortened: Option<u64>, seconds: u64) -> ToolOutcome {
    let CommandOutcome { output, exit_code, timed_out, truncated } = ended;
    let mut content = output.clone();
    if !content.is_empty() && !content.ends_with('\n') {
        content.push('\n');
    }
    let mut notes = Vec::new();
    notes.extend(truncated.then(|| "[the output is cut at max_output_bytes]".to_owned()));
    notes.extend(shortened.map(|most| format!("[timeout is limited to {most} s by the host]")));
    notes.push(match timed_out {
        true => format!("[timed out after {seconds} s]"),
        false => format!("[exit code {exit_code}]"),
    });
    content.push_str(&notes.join("\n"));
    let mut outcome = ToolOutcome::text(content);
    outcome.data = json!({
        "output": output, "exit_code": exit_code, "timed_out": timed_out, "truncated": truncated,
    });
    outcome.code = match (timed_out, exit_code) {
        (true, _) => "timed_out".into(),
        (false, 0) => "ok".into(),
        (false, _) => "command_failed".into(),
    };
    outcome
}
