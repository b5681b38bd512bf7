//! The demo for people: 80 columns, and short pauses where somebody watches.

use std::collections::HashMap;
use std::io::{IsTerminal, Write};
use std::time::Duration;

use anstream::{AutoStream, stdout};
use anstyle::{AnsiColor, Style};
use prowess_agent::AgentEvent;
use prowess_catalog::Snapshot;
use prowess_runtime::{LoadMode, Message, ToolCall, Usage};

use super::ran::Ran;
use super::shop::{Shop, euros};
use super::{Happening, Played};
use crate::replay::{LEAST, mode_name};
use crate::report::counted;
use crate::terminal::safe_line;
use crate::tokens;
use crate::words::{cut, grouped, wrapped};

/// How long a line of the session stands before the next one comes; on a terminal only.
const PAUSE: Duration = Duration::from_millis(600);

/// No line is longer.
const WIDTH: usize = 80;
/// The name of who speaks.
const LABEL: usize = 7;
/// What is said, beside the figures.
const SAID: usize = 55;
/// A figure.
const FIGURE: usize = 9;
/// What a tool answers.
const INDENT: usize = 4;
/// The sign in front of it.
const MARK: usize = 2;
/// So many lines of a refusal are shown.
const SHOWN_LINES: usize = 4;

const HEAD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const CALL: Style = AnsiColor::Cyan.on_default();
const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default().bold();

/// Where the demo is shown.
pub(super) struct Screen {
    out: AutoStream<std::io::StdoutLock<'static>>,
    pause: Duration,
    /// What was called, by id.
    calls: HashMap<String, ToolCall>,
}

impl Screen {
    pub(super) fn open() -> Self {
        let is_watched = std::io::stdout().is_terminal();
        let pause = if is_watched { PAUSE } else { Duration::ZERO };
        Self { out: stdout().lock(), pause, calls: HashMap::new() }
    }

    fn wait(&mut self) -> anyhow::Result<()> {
        self.out.flush()?;
        std::thread::sleep(self.pause);
        Ok(())
    }

    /// What there is before anything happens.
    pub(super) fn found(
        &mut self,
        snapshot: &Snapshot,
        listing: usize,
        bodies: usize,
    ) -> anyhow::Result<()> {
        let out = &mut self.out;
        writeln!(out, "{HEAD}A help desk with skills{HEAD:#}")?;
        let least = grouped(LEAST as u64);
        writeln!(
            out,
            "What the model says is a script; what comes of it is not. Beside each request:"
        )?;
        writeln!(out, "its tokens (o200k_base), and how many an ideal prefix cache has from an")?;
        writeln!(out, "earlier one (at least {least}, or none).\n")?;
        let skills = snapshot.skills();
        writeln!(out, "{HEAD}{} found{HEAD:#}", counted(skills.len(), "skill"))?;
        let width = skills.iter().map(|skill| skill.name().chars().count()).max().unwrap_or(0);
        for skill in skills {
            let frontmatter = &skill.found().frontmatter;
            let room = WIDTH.saturating_sub(width + 4);
            let description = cut(&safe_line(frontmatter.description().unwrap_or_default()), room);
            writeln!(out, "  {CALL}{:width$}{CALL:#}  {description}", safe_line(skill.name()))?;
            if let Some(tools) = frontmatter.allowed_tools() {
                let tools: Vec<String> = tools.iter().map(ToString::to_string).collect();
                let line = cut(&safe_line(&format!("allowed-tools: {}", tools.join(", "))), room);
                writeln!(out, "  {:width$}  {DIM}{line}{DIM:#}", "")?;
            }
        }
        let (listing, bodies) = (grouped(listing as u64), grouped(bodies as u64));
        writeln!(
            out,
            "The model is sent names and descriptions, {listing} tokens. The whole texts"
        )?;
        writeln!(out, "have {bodies}; they wait until they are loaded.")?;
        self.wait()
    }

    /// Shows what happens.
    pub(super) fn show(&mut self, happening: &Happening<'_>) -> anyhow::Result<()> {
        match happening {
            Happening::Turn { user, state } => {
                let loaded = match state.loaded_names().as_slice() {
                    [] => "nothing is loaded".to_owned(),
                    names => format!("loaded: {}", names.join(", ")),
                };
                self.turn(state.turn, &loaded, user)
            }
            Happening::Agent(AgentEvent::ModelAnswered { message, usage, .. }) => {
                self.said(message, usage.unwrap_or_default())
            }
            Happening::Agent(AgentEvent::ToolCalled { call }) => {
                self.calls.insert(call.id.clone(), call.clone());
                Ok(())
            }
            Happening::Agent(AgentEvent::ToolAnswered {
                call_id, code, is_error, content, ..
            }) => self.answered(call_id, code, *is_error, content),
            Happening::Agent(AgentEvent::Problem { message }) => {
                for line in wrapped(&safe_line(message), WIDTH - INDENT) {
                    writeln!(self.out, "{:INDENT$}{BAD}{line}{BAD:#}", "")?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn turn(&mut self, number: u64, loaded: &str, user: &str) -> anyhow::Result<()> {
        let out = &mut self.out;
        let title = format!("Turn {number}");
        let rest = LABEL + SAID - title.chars().count();
        let beside = format!("{:<rest$}", format!(", {}", safe_line(loaded)));
        writeln!(
            out,
            "\n{HEAD}{title}{HEAD:#}{beside}{DIM}{:>FIGURE$}{:>FIGURE$}{DIM:#}",
            "sent", "cached"
        )?;
        for (at, line) in wrapped(user, WIDTH - LABEL).iter().enumerate() {
            let label = if at == 0 { "user" } else { "" };
            writeln!(out, "{HEAD}{label:LABEL$}{HEAD:#}{line}")?;
        }
        self.wait()
    }

    fn said(&mut self, message: &Message, usage: Usage) -> anyhow::Result<()> {
        let (sent, cached) = (grouped(usage.input_tokens), grouped(usage.cached_input_tokens));
        for (at, line) in wrapped(&message.text(), SAID).iter().enumerate() {
            let out = &mut self.out;
            match at {
                0 => writeln!(
                    out,
                    "{HEAD}{:LABEL$}{HEAD:#}{line:SAID$}{DIM}{sent:>FIGURE$}{cached:>FIGURE$}{DIM:#}",
                    "model"
                )?,
                _ => writeln!(out, "{:LABEL$}{line}", "")?,
            }
        }
        self.wait()
    }

    fn answered(
        &mut self,
        call_id: &str,
        code: &str,
        is_error: bool,
        content: &str,
    ) -> anyhow::Result<()> {
        if let Some(call) = self.calls.remove(call_id) {
            let line = safe_line(&format!("{} {}", call.name, call.arguments));
            writeln!(self.out, "  {CALL}{}{CALL:#}", cut(&line, WIDTH - 2))?;
        }
        let ran = Ran::read(content);
        match &ran {
            _ if is_error => self.failed(code, content)?,
            Some(ran) if ran.exit_code != 0 => self.failed(code, ran.stderr.trim_end())?,
            Some(ran) => self.succeeded(&ran.stdout)?,
            None => self.succeeded(content)?,
        }
        if let Some(ran) = &ran {
            for line in wrapped(&ran.isolation(), WIDTH - INDENT - MARK) {
                writeln!(self.out, "{:INDENT$}{:MARK$}{DIM}{line}{DIM:#}", "", "")?;
            }
        }
        self.wait()
    }

    fn failed(&mut self, code: &str, why: &str) -> anyhow::Result<()> {
        let out = &mut self.out;
        writeln!(out, "{:INDENT$}{BAD}✗ {}{BAD:#}", "", safe_line(code))?;
        let lines = wrapped(&safe_line(why), WIDTH - INDENT - MARK);
        for line in lines.iter().take(SHOWN_LINES) {
            writeln!(out, "{:INDENT$}{:MARK$}{line}", "", "")?;
        }
        if lines.len() > SHOWN_LINES {
            writeln!(out, "{:INDENT$}{:MARK$}…", "", "")?;
        }
        Ok(())
    }

    fn succeeded(&mut self, content: &str) -> anyhow::Result<()> {
        let first = safe_line(content.lines().next().unwrap_or_default());
        let more = content.lines().count().saturating_sub(1);
        let line = match more {
            0 => cut(&first, WIDTH - INDENT - MARK),
            _ => {
                let rest = format!(" … {}", counted(tokens::count(content), "token"));
                cut(&first, WIDTH - INDENT - MARK - rest.chars().count()) + &rest
            }
        };
        Ok(writeln!(self.out, "{:INDENT$}{GOOD}✓{GOOD:#} {line}", "")?)
    }

    /// What it came to, in the mode that was shown and in the others.
    pub(super) fn sum_up(
        &mut self,
        shop: &Shop,
        shown: LoadMode,
        all: &[Played],
    ) -> anyhow::Result<()> {
        let out = &mut self.out;
        let (paid, proposed) = {
            let books = shop.books();
            (euros(books.paid), euros(books.proposed.values().sum()))
        };
        writeln!(out, "\n{HEAD}The books{HEAD:#}  paid {paid}, proposed {proposed}\n")?;
        writeln!(
            out,
            "{HEAD}  {:11}{:>9}{:>FIGURE$}{:>FIGURE$}{:>FIGURE$}{HEAD:#}  loaded skills stay",
            "--load-mode", "requests", "sent", "cached", "uncached"
        )?;
        for played in all {
            let Played { mode, requests, usage } = played;
            let (sent, cached) = (usage.input_tokens, usage.cached_input_tokens);
            let (mark, style) = match *mode == shown {
                true => (">", GOOD),
                false => ("", Style::new()),
            };
            writeln!(
                out,
                "{style}{mark:2}{:11}{requests:>9}{:>FIGURE$}{:>FIGURE$}{:>FIGURE$}{style:#}  {}",
                mode_name(*mode),
                grouped(sent),
                grouped(cached),
                grouped(sent - cached),
                stays(*mode)
            )?;
        }
        let other = all.iter().map(|played| played.mode).rfind(|mode| *mode != shown);
        let other = mode_name(other.unwrap_or_default());
        writeln!(out, "\nTry next: prowess demo --load-mode {other}, or prowess create my-skill")?;
        Ok(())
    }
}

/// How long loaded skills stay.
fn stays(mode: LoadMode) -> &'static str {
    match mode {
        LoadMode::Session => "until they are unloaded",
        LoadMode::Turn => "until the turn ends",
        LoadMode::Once => "for one request",
    }
}
