//! The arguments of `workspace_exec`, as models write them.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::super::arguments::Fields;
use super::super::interactive::{Look, TTY};
use crate::invalid::InvalidArguments;

/// What a call of `workspace_exec` asks for.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct WorkspaceArguments {
    pub(crate) command: String,
    pub(crate) cwd: String,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) stdin: String,
    /// How long it may take; the default if it is none.
    pub(crate) timeout: Option<Duration>,
    pub(crate) background: bool,
    pub(crate) tty: bool,
    pub(crate) look: Look,
    /// Names that mean nothing here.
    pub(crate) ignored: Vec<String>,
}

const TIMEOUT: [&str; 3] = ["timeout", "timeout_sec", "timeoutSec"];

impl WorkspaceArguments {
    /// Reads the arguments of a call; else says what is wrong with them.
    pub(crate) fn parse(arguments: &Value) -> Result<Self, InvalidArguments> {
        let mut fields = Fields::of(arguments)?;
        let command = fields.text("command")?.unwrap_or_default();
        if command.trim().is_empty() {
            return Err(InvalidArguments::Required { name: "command".to_owned() });
        }
        let mut timeout = None;
        for name in TIMEOUT {
            let seconds = fields.seconds(name)?;
            timeout = timeout.or(seconds);
        }
        let mut read = Self {
            command,
            cwd: fields.text("cwd")?.unwrap_or_default().trim().to_owned(),
            env: fields.variables("env")?,
            stdin: fields.text("stdin")?.unwrap_or_default(),
            timeout,
            background: fields.flag("background")?,
            tty: fields.any_flag(&TTY)?,
            look: Look::of(&mut fields)?,
            ignored: Vec::new(),
        };
        read.ignored = fields.rest();
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_name_of_an_argument_is_known() {
        let parse = |arguments: Value| WorkspaceArguments::parse(&arguments).unwrap();
        let minimal = parse(json!({"command": "ls"}));
        assert_eq!(minimal, WorkspaceArguments { command: "ls".into(), ..Default::default() });
        for name in TIMEOUT {
            let parsed = parse(json!({"command": "ls", name: 2}));
            assert_eq!(parsed.timeout, Some(Duration::from_secs(2)), "{name}");
        }
        for name in TTY {
            assert!(parse(json!({"command": "ls", name: true})).tty, "{name}");
        }
        for name in ["yield_time_ms", "yieldMs", "yield_ms"] {
            assert_eq!(parse(json!({"command": "ls", name: 9})).look.yield_ms, Some(9), "{name}");
        }
        assert_eq!(parse(json!({"command": "ls", "skill": "demo"})).ignored, ["skill"]);
        assert!(WorkspaceArguments::parse(&json!({"command": " "})).is_err());
    }
}
