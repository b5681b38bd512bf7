//! Who follows a conversation: people, or a program.

use std::io::Write;

use prowess_agent::AgentEvent;
use prowess_runtime::Event;
use serde_json::{Value, json};

use super::failure::Failure;
use super::fold::unfolded;
use super::screen::Screen;
use crate::report::json_line;

/// Who follows a conversation.
pub(super) enum Audience {
    /// People.
    People(Box<Screen>),
    /// A program: one JSON object per line.
    Program,
}

fn print(value: &Value) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(&json_line(value)?)?;
    Ok(out.flush()?)
}

impl Audience {
    /// How many characters a line has at most.
    pub(super) fn width(&self) -> usize {
        match self {
            Self::People(screen) => screen.width(),
            Self::Program => usize::MAX,
        }
    }

    /// The user says something.
    pub(super) fn user(&mut self, text: &str) -> anyhow::Result<()> {
        match self {
            // They have typed it.
            Self::People(_) => Ok(()),
            Self::Program => print(&json!({"event": "user", "text": text})),
        }
    }

    /// The agent does something.
    pub(super) fn agent(&mut self, event: &AgentEvent) -> anyhow::Result<()> {
        match self {
            Self::People(screen) => screen.event(event),
            Self::Program => print(&serde_json::to_value(event)?),
        }
    }

    /// The engine has committed something.
    pub(super) fn engine(&mut self, event: &Event) -> anyhow::Result<()> {
        match self {
            // They see what the agent does.
            Self::People(_) => Ok(()),
            Self::Program => print(&json!({"event": "engine", "engine": event})),
        }
    }

    /// A turn is over.
    pub(super) fn end_turn(&mut self) -> anyhow::Result<()> {
        match self {
            Self::People(screen) => screen.end_turn(),
            Self::Program => Ok(()),
        }
    }

    /// A command answers. The text is safe for a terminal.
    pub(super) fn answer(&mut self, line: &str, text: &str) -> anyhow::Result<()> {
        match self {
            Self::People(screen) => screen.answer(text),
            Self::Program => print(&json!({"event": "command", "line": line, "text": text})),
        }
    }

    /// The last things that were folded.
    pub(super) fn unfolded(&self, count: usize) -> String {
        match self {
            Self::People(screen) => unfolded(screen.folded(), count),
            Self::Program => unfolded(&[], count),
        }
    }

    /// Something to know. The text is safe for a terminal.
    pub(super) fn note(&mut self, text: &str) -> anyhow::Result<()> {
        match self {
            Self::People(screen) => screen.note(text),
            Self::Program => print(&json!({"event": "note", "text": text})),
        }
    }

    /// Something went wrong.
    pub(super) fn failed(&mut self, failure: &Failure) -> anyhow::Result<()> {
        match self {
            Self::People(screen) => screen.failed(failure),
            Self::Program => print(&json!({"event": "failed", "error": failure})),
        }
    }
}
