//! Where a conversation is shown to people.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use indicatif::ProgressBar;
use prowess_agent::AgentEvent;

use super::failure::Failure;
use super::fold::{Fold, Folded, Shown};
use crate::terminal::{safe, safe_line};

const DIM: Style = Style::new().dimmed();
const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default();
const WARN: Style = AnsiColor::Yellow.on_default();

/// How often a sign of life moves.
const TICK: Duration = Duration::from_millis(120);

/// Whether a text goes to a terminal, which must not be steered by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reader {
    Terminal,
    Program,
}

/// Where a conversation is shown.
pub(super) struct Screen {
    /// What the model says, and what commands answer.
    voice: Box<dyn Write>,
    reader: Reader,
    /// Everything else.
    aside: Box<dyn Write>,
    width: usize,
    fold: Fold,
    folded: Vec<Folded>,
    /// Whether what was said last has no line break behind it.
    is_open: bool,
    busy: Option<ProgressBar>,
}

impl Screen {
    /// Everything in one place.
    pub(super) fn whole() -> Self {
        let out = || Box::new(anstream::stdout());
        Self::new(out(), Reader::Terminal, out(), width())
    }

    /// What is said on standard output, the rest on standard error.
    pub(super) fn split() -> Self {
        let reader = match std::io::stdout().is_terminal() {
            true => Reader::Terminal,
            false => Reader::Program,
        };
        // What a program reads is not touched.
        let voice: Box<dyn Write> = match reader {
            Reader::Terminal => Box::new(anstream::stdout()),
            Reader::Program => Box::new(std::io::stdout()),
        };
        Self::new(voice, reader, Box::new(anstream::stderr()), width())
    }

    fn new(voice: Box<dyn Write>, reader: Reader, aside: Box<dyn Write>, width: usize) -> Self {
        let (fold, folded) = (Fold::new(width), Vec::new());
        Self { voice, reader, aside, width, fold, folded, is_open: false, busy: None }
    }

    /// How many characters a line has.
    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// What the last turn has folded, oldest first.
    pub(super) fn folded(&self) -> &[Folded] {
        &self.folded
    }

    /// Shows what happens.
    pub(super) fn event(&mut self, event: &AgentEvent) -> anyhow::Result<()> {
        for shown in self.fold.take(event) {
            self.show(&shown)?;
        }
        Ok(())
    }

    fn show(&mut self, shown: &Shown) -> anyhow::Result<()> {
        match shown {
            Shown::Text(text) => self.say(text),
            Shown::Busy(what) => {
                self.end_line()?;
                self.busy(what);
                Ok(())
            }
            Shown::Called(line) => {
                let rest = line.strip_prefix('⏺').unwrap_or(line);
                self.line(&format!("{GOOD}⏺{GOOD:#}{rest}"))
            }
            Shown::Failed(line) => self.line(&format!("{BAD}{line}{BAD:#}")),
            Shown::Warning(line) => self.line(&format!("{WARN}! {line}{WARN:#}")),
            Shown::Aside(line) => self.line(&format!("{DIM}{line}{DIM:#}")),
        }
    }

    /// The model says something.
    fn say(&mut self, text: &str) -> anyhow::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        self.rest();
        match self.reader {
            Reader::Terminal => self.voice.write_all(safe(text).as_bytes())?,
            Reader::Program => self.voice.write_all(text.as_bytes())?,
        }
        self.voice.flush()?;
        self.is_open = !text.ends_with('\n');
        Ok(())
    }

    /// Something takes a while.
    fn busy(&mut self, what: &str) {
        if !std::io::stderr().is_terminal() {
            return;
        }
        let bar = self.busy.get_or_insert_with(|| {
            let bar = ProgressBar::new_spinner();
            bar.enable_steady_tick(TICK);
            bar
        });
        bar.set_message(what.to_owned());
    }

    /// Nothing takes a while any more.
    fn rest(&mut self) {
        if let Some(bar) = self.busy.take() {
            bar.finish_and_clear();
        }
    }

    /// A line beside what is said.
    fn line(&mut self, line: &str) -> anyhow::Result<()> {
        self.end_line()?;
        writeln!(self.aside, "{line}")?;
        Ok(self.aside.flush()?)
    }

    fn end_line(&mut self) -> anyhow::Result<()> {
        self.rest();
        if std::mem::take(&mut self.is_open) {
            writeln!(self.voice)?;
            self.voice.flush()?;
        }
        Ok(())
    }

    /// A turn is over: what it has folded can be unfolded.
    pub(super) fn end_turn(&mut self) -> anyhow::Result<()> {
        self.end_line()?;
        self.folded = std::mem::replace(&mut self.fold, Fold::new(self.width)).folded();
        Ok(())
    }

    /// A command answers. The text is safe for a terminal.
    pub(super) fn answer(&mut self, text: &str) -> anyhow::Result<()> {
        self.end_line()?;
        writeln!(self.voice, "{text}")?;
        Ok(self.voice.flush()?)
    }

    /// Something to know beside what is said.
    pub(super) fn note(&mut self, text: &str) -> anyhow::Result<()> {
        self.line(&format!("{DIM}{text}{DIM:#}"))
    }

    /// Something went wrong.
    pub(super) fn failed(&mut self, failure: &Failure) -> anyhow::Result<()> {
        let Failure { code, message, hint } = failure;
        let message = safe_line(message);
        self.line(&format!("{BAD}Error: {message} [{}]{BAD:#}", safe_line(code)))?;
        match hint {
            Some(hint) => self.line(&format!("{DIM}Hint: {}{DIM:#}", safe_line(hint))),
            None => Ok(()),
        }
    }
}

/// How wide the terminal is; without one, as `COLUMNS` says, or 80.
fn width() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok();
    let columns = || std::env::var("COLUMNS").ok()?.parse::<usize>().ok();
    let width = size.map(|size| usize::from(size.ws_col)).filter(|width| *width > 0);
    width.or_else(columns).unwrap_or(80).clamp(40, 200)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
#[path = "screen_tests.rs"]
mod tests;
