//! What a host can set of sessions: the section `[exec.sessions]` of `prowess.toml`.

use std::time::Duration;

use prowess_workspace::TerminalSize;
use serde::{Deserialize, Serialize};

use super::lines::LineLimits;

/// How commands are talked to: the section `[exec.sessions]` of `prowess.toml`.
///
/// ```toml
/// [exec.sessions]
/// max_sessions = 16                # of an agent in a conversation
/// max_total_sessions = 256
/// ttl_seconds = 1800               # that a session is kept after its command has ended
/// max_lines = 20000                # of output that are kept; of more, the first are dropped
/// max_line_bytes = 16384           # what is longer counts as several lines
/// max_output_bytes = 4194304       # of all lines that are kept
/// max_unread_input_bytes = 65536   # that wait until a command reads them
/// exec_yield_ms = 1000             # that an answer waits for a command that was started
/// write_yield_ms = 400             # and for one that was written to
/// max_yield_ms = 60000
/// poll_lines = 40                  # of an answer
/// max_poll_lines = 1000
/// kill_grace_ms = 2000             # to end after it was asked to
/// terminal_rows = 24
/// terminal_columns = 80
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct SessionSettings {
    /// Sessions of an agent in a conversation.
    pub max_sessions: usize,
    /// Sessions of all.
    pub max_total_sessions: usize,
    /// Seconds that a session is kept after its command has ended.
    pub ttl_seconds: u64,
    /// Lines of output that are kept.
    pub max_lines: usize,
    /// Bytes of a line; what is longer counts as several.
    pub max_line_bytes: usize,
    /// Bytes of all lines that are kept.
    pub max_output_bytes: usize,
    /// Bytes of input that wait until a command reads them.
    pub max_unread_input_bytes: usize,
    /// Milliseconds that an answer waits for a command that was started.
    pub exec_yield_ms: u64,
    /// Milliseconds that an answer waits for a command that was written to, or asked after.
    pub write_yield_ms: u64,
    /// Milliseconds that a call may ask an answer to wait.
    pub max_yield_ms: u64,
    /// Lines of an answer.
    pub poll_lines: u64,
    /// Lines that a call may ask for.
    pub max_poll_lines: u64,
    /// Milliseconds that a command has to end after it was asked to.
    pub kill_grace_ms: u64,
    /// Lines of a terminal.
    pub terminal_rows: u16,
    /// Characters in a line of a terminal.
    pub terminal_columns: u16,
}

impl Default for SessionSettings {
    fn default() -> Self {
        let TerminalSize { rows, columns } = TerminalSize::default();
        Self {
            max_sessions: 16,
            max_total_sessions: 256,
            ttl_seconds: 1800,
            max_lines: 20_000,
            max_line_bytes: 16 << 10,
            max_output_bytes: 4 << 20,
            max_unread_input_bytes: 64 << 10,
            exec_yield_ms: 1000,
            write_yield_ms: 400,
            max_yield_ms: 60_000,
            poll_lines: 40,
            max_poll_lines: 1000,
            kill_grace_ms: 2000,
            terminal_rows: rows,
            terminal_columns: columns,
        }
    }
}

impl SessionSettings {
    pub(crate) fn line_limits(&self) -> LineLimits {
        LineLimits {
            lines: self.max_lines,
            line_bytes: self.max_line_bytes,
            bytes: self.max_output_bytes,
        }
    }

    pub(crate) fn terminal(&self) -> TerminalSize {
        TerminalSize { rows: self.terminal_rows, columns: self.terminal_columns }
    }

    /// How long an answer waits that is asked to wait so long. What is cut is said.
    pub(crate) fn patience(
        &self,
        asked: Option<u64>,
        usual: u64,
        warnings: &mut Vec<String>,
    ) -> Duration {
        let most = self.max_yield_ms;
        if asked.is_some_and(|asked| asked > most) {
            warnings.push(format!("yield_ms is limited to {most} by the host"));
        }
        Duration::from_millis(asked.unwrap_or(usual).min(most))
    }

    /// How many lines an answer has that is asked for so many. What is cut is said.
    pub(crate) fn lines(&self, asked: Option<u64>, warnings: &mut Vec<String>) -> u64 {
        let most = self.max_poll_lines;
        if asked.is_some_and(|asked| asked > most) {
            warnings.push(format!("poll_lines is limited to {most} by the host"));
        }
        asked.unwrap_or(self.poll_lines).min(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_of_the_documentation_is_known_and_has_its_default() {
        let documentation = include_str!("settings.rs").lines();
        let section = documentation
            .filter_map(|line| line.strip_prefix("/// "))
            .skip_while(|line| *line != "```toml")
            .skip(1)
            .take_while(|line| *line != "```");
        let section: Vec<&str> = section.collect();
        let mut file: toml::Table = toml::from_str(&section.join("\n")).unwrap();
        let Some(toml::Value::Table(mut exec)) = file.remove("exec") else { panic!("{file}") };
        let Some(toml::Value::Table(table)) = exec.remove("sessions") else { panic!("{exec}") };
        let own = toml::Table::try_from(SessionSettings::default()).unwrap();
        assert_eq!(table, own, "the documentation and the settings differ");
    }

    #[test]
    fn what_is_asked_for_is_given_up_to_the_most_and_what_is_cut_is_said() {
        let settings =
            SessionSettings { max_yield_ms: 50, max_poll_lines: 60, ..Default::default() };
        let mut warnings = Vec::new();
        for (asked, expected) in [(None, 7), (Some(0), 0), (Some(50), 50)] {
            let patience = settings.patience(asked, 7, &mut warnings);
            assert_eq!(patience, Duration::from_millis(expected));
        }
        for (asked, expected) in [(None, 40), (Some(1), 1), (Some(60), 60)] {
            assert_eq!(settings.lines(asked, &mut warnings), expected);
        }
        assert_eq!(warnings, Vec::<String>::new());
        assert_eq!(settings.patience(Some(51), 7, &mut warnings), Duration::from_millis(50));
        assert_eq!(settings.lines(Some(61), &mut warnings), 60);
        assert_eq!(warnings.len(), 2);
    }
}
