//! The arguments of calls that talk to commands, as models write them.

use serde_json::Value;

use super::super::arguments::{Fields, RunArguments};
use crate::invalid::InvalidArguments;

/// What a call of `skill_exec` asks for.
#[derive(Debug, PartialEq)]
pub(crate) struct ExecArguments {
    pub(crate) run: RunArguments,
    pub(crate) tty: bool,
    pub(crate) look: Look,
}

/// How long an answer waits, and what it shows.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Look {
    pub(crate) yield_ms: Option<u64>,
    pub(crate) lines: Option<u64>,
}

/// What is asked of a session.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct TalkArguments {
    pub(crate) session: String,
    /// What is written, if something is.
    pub(crate) text: String,
    /// The line to show first.
    pub(crate) offset: Option<u64>,
    pub(crate) look: Look,
    /// Names that mean nothing here.
    pub(crate) ignored: Vec<String>,
}

pub(crate) const YIELD: [&str; 4] = ["yield_ms", "yield_time_ms", "yieldMs", "yieldTimeMs"];
pub(crate) const LINES: [&str; 2] = ["poll_lines", "pollLines"];
const SESSION: [&str; 2] = ["session_id", "sessionId"];
pub(crate) const TTY: [&str; 2] = ["tty", "pty"];

impl ExecArguments {
    /// Reads the arguments of a call; else says what is wrong with them.
    pub(crate) fn parse(arguments: &Value) -> Result<Self, InvalidArguments> {
        let mut fields = Fields::of(arguments)?;
        let (tty, look) = (fields.any_flag(&TTY)?, Look::of(&mut fields)?);
        Ok(Self { run: RunArguments::of(fields)?, tty, look })
    }
}

impl Look {
    pub(crate) fn of(fields: &mut Fields) -> Result<Self, InvalidArguments> {
        Ok(Self { yield_ms: fields.whole_number(&YIELD)?, lines: fields.whole_number(&LINES)? })
    }
}

impl TalkArguments {
    /// Reads the arguments of a call; else says what is wrong with them.
    pub(crate) fn parse(arguments: &Value) -> Result<Self, InvalidArguments> {
        let mut fields = Fields::of(arguments)?;
        let mut session = String::new();
        for name in SESSION {
            let text = fields.text(name)?.unwrap_or_default();
            session = if session.is_empty() { text.trim().to_owned() } else { session };
        }
        if session.is_empty() {
            return Err(InvalidArguments::Required { name: "session_id".to_owned() });
        }
        let mut text = fields.text("chars")?.unwrap_or_default();
        if fields.flag("submit")? {
            text.push('\n');
        }
        let offset = fields.whole_number(&["offset"])?;
        let look = Look::of(&mut fields)?;
        Ok(Self { session, text, offset, look, ignored: fields.rest() })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn exec_takes_what_run_takes_and_more() {
        let minimal = json!({"skill": "demo", "command": "ls"});
        let parsed = ExecArguments::parse(&minimal).unwrap();
        assert_eq!(parsed.run, RunArguments::parse(&minimal).unwrap());
        assert_eq!((parsed.tty, parsed.look), (false, Look::default()));
        let all = json!({"skill": "demo", "command": "ls", "stdin": "in", "pty": "true",
            "yieldMs": "5", "poll_lines": 7, "odd": 1});
        let parsed = ExecArguments::parse(&all).unwrap();
        assert_eq!((parsed.run.stdin.as_str(), parsed.tty), ("in", true));
        assert_eq!(parsed.look, Look { yield_ms: Some(5), lines: Some(7) });
        assert_eq!(parsed.run.ignored, ["odd"]);
        let negative = json!({"skill": "demo", "command": "ls", "yield_ms": -1, "poll_lines": 0});
        let parsed = ExecArguments::parse(&negative).unwrap();
        assert_eq!(parsed.look, Look { yield_ms: Some(0), lines: Some(0) });
    }

    #[test]
    fn what_is_written_may_be_submitted() {
        let parse = |arguments: Value| TalkArguments::parse(&arguments).unwrap();
        let poll = parse(json!({"session_id": " x "}));
        assert_eq!((poll.session.as_str(), poll.text.as_str()), ("x", ""));
        assert_eq!(parse(json!({"sessionId": "x", "chars": "a"})).text, "a");
        assert_eq!(parse(json!({"session_id": "x", "chars": "a", "submit": true})).text, "a\n");
        assert_eq!(parse(json!({"session_id": "x", "submit": true})).text, "\n");
        assert_eq!(parse(json!({"session_id": "x", "offset": 3})).offset, Some(3));
        for wrong in [json!({}), json!([]), json!({"session_id": 1}), json!({"session_id": " "})] {
            assert!(TalkArguments::parse(&wrong).is_err(), "{wrong}");
        }
        let wrong = json!({"session_id": "x", "yield_ms": "soon"});
        let why = TalkArguments::parse(&wrong).unwrap_err().to_string();
        assert_eq!(why, "'yield_ms' must be a whole number");
    }
}
