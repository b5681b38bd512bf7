//! A conversation with somebody at a terminal.

use std::path::{Path, PathBuf};

use anyhow::Context;
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{ColorMode, CompletionType, Config, Editor};
use tokio::runtime::Runtime;

use super::audience::Audience;
use super::complete::Help;
use super::line::joined;
use super::screen::Screen;
use super::talk::{Next, Talk};
use crate::Outcome;

const PROMPT: &str = "› ";

/// So many lines are remembered…
const HISTORY_LINES: usize = 1_000;
/// …that are no longer than this.
const HISTORY_LINE_BYTES: usize = 16 * 1024;

/// Where lines are typed, and those that were typed before.
struct Desk {
    editor: Editor<Help, FileHistory>,
    history: PathBuf,
}

/// What somebody does at a terminal.
enum Typed {
    Line(String),
    /// Ctrl-C, and nothing was typed before it.
    Interrupt,
    /// Ctrl-C instead of Enter.
    Discarded,
    /// Ctrl-D.
    End,
}

impl Desk {
    fn open(home: &Path) -> anyhow::Result<Self> {
        let color = match anstream::ColorChoice::global() {
            anstream::ColorChoice::Never => ColorMode::Disabled,
            _ => ColorMode::Enabled,
        };
        let config = Config::builder()
            .max_history_size(HISTORY_LINES)?
            .history_ignore_dups(true)?
            // What begins with a space is not remembered.
            .history_ignore_space(true)
            .completion_type(CompletionType::List)
            .color_mode(color)
            .build();
        let mut editor: Editor<Help, FileHistory> = Editor::with_config(config)?;
        editor.set_helper(Some(Help::default()));
        let history = home.join("chat_history");
        if history.exists()
            && let Err(error) = editor.load_history(&history)
        {
            anstream::eprintln!("Warning: {}: {error}", history.display());
        }
        Ok(Self { editor, history })
    }

    fn read(&mut self) -> anyhow::Result<Typed> {
        if let Some(help) = self.editor.helper_mut() {
            help.is_typed.set(false);
        }
        match self.editor.readline(PROMPT) {
            Ok(line) => Ok(Typed::Line(joined(&line))),
            Err(ReadlineError::Eof) => Ok(Typed::End),
            Err(ReadlineError::Interrupted) => {
                let is_typed = self.editor.helper().is_some_and(|help| help.is_typed.get());
                Ok(if is_typed { Typed::Discarded } else { Typed::Interrupt })
            }
            Err(error) => Err(error).context("the terminal cannot be read"),
        }
    }

    /// Remembers a line. The file is nobody else's.
    fn remember(&mut self, line: &str) {
        if line.trim().is_empty() || line.len() > HISTORY_LINE_BYTES {
            return;
        }
        // A line that cannot be kept is no reason not to talk.
        if self.editor.add_history_entry(line).is_ok_and(|is_new| is_new) {
            let _ = self.editor.append_history(&self.history);
        }
    }
}

/// Talks until somebody leaves.
pub(super) fn run(runtime: &Runtime, talk: &mut Talk, home: &Path) -> anyhow::Result<Outcome> {
    let screen = Screen::whole();
    let width = screen.width();
    let mut audience = Audience::People(Box::new(screen));
    match runtime.block_on(talk.greeting(width)) {
        Ok(text) => audience.note(&text)?,
        Err(failure) => audience.failed(&failure)?,
    }
    let mut desk = Desk::open(home)?;
    let mut is_warned = false;
    loop {
        let names = runtime.block_on(talk.names());
        if let Some(help) = desk.editor.helper_mut() {
            help.names = names;
        }
        let line = match desk.read()? {
            Typed::Line(line) => line,
            Typed::End => break,
            Typed::Interrupt if is_warned => break,
            Typed::Interrupt => {
                audience.note("Ctrl-C once more, Ctrl-D or /quit leaves.")?;
                is_warned = true;
                continue;
            }
            Typed::Discarded => {
                is_warned = false;
                continue;
            }
        };
        is_warned = false;
        desk.remember(&line);
        if runtime.block_on(talk.enter(&line, &mut audience))? == Next::Leave {
            break;
        }
    }
    if let Some(text) = runtime.block_on(talk.farewell()) {
        audience.note(&text)?;
    }
    Ok(Outcome::Ok)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn lines(desk: &Desk) -> Vec<String> {
        let text = std::fs::read_to_string(&desk.history).unwrap_or_default();
        // The first line says in which form the others are.
        text.lines().skip(1).map(str::to_owned).collect()
    }

    #[test]
    fn so_many_lines_are_remembered_and_none_that_is_longer() {
        let home = tempfile::tempdir().unwrap();
        let mut desk = Desk::open(home.path()).unwrap();
        desk.remember("");
        desk.remember(" not this");
        desk.remember(&"x".repeat(HISTORY_LINE_BYTES + 1));
        assert!(lines(&desk).is_empty());
        desk.remember(&"x".repeat(HISTORY_LINE_BYTES));
        desk.remember("twice");
        desk.remember("twice");
        assert_eq!(lines(&desk).len(), 2);
        for at in 0..HISTORY_LINES {
            desk.remember(&format!("line {at}"));
        }
        let all = lines(&desk);
        assert_eq!((all.len(), all[0].as_str()), (HISTORY_LINES, "line 0"));
        let again = Desk::open(home.path()).unwrap();
        assert_eq!(again.editor.history().iter().count(), HISTORY_LINES);
    }
}
