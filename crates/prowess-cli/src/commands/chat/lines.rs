//! A conversation with whoever writes to standard input, or says one thing.

use std::io::BufRead;

use anyhow::Context;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use super::audience::Audience;
use super::line::{is_open, joined};
use super::talk::{Next, Talk};
use crate::Outcome;

/// Somebody has ended it, as shells say it.
const INTERRUPTED: u8 = 130;

/// One thing to say.
pub(super) enum Said {
    /// Somebody has typed it: a message, a command, or a skill.
    Typed(String),
    /// It was read somewhere: a message.
    Read(String),
}

impl Said {
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Typed(text) | Self::Read(text) => text,
        }
    }
}

/// Says one thing.
pub(super) async fn one(
    talk: &mut Talk,
    said: Said,
    audience: &mut Audience,
) -> anyhow::Result<Outcome> {
    Ok(outcome(match said {
        Said::Typed(line) => talk.enter(&line, audience).await?,
        Said::Read(text) => talk.say(text, None, audience).await?,
    }))
}

/// Says line after line, until one fails.
pub(super) async fn all(talk: &mut Talk, audience: &mut Audience) -> anyhow::Result<Outcome> {
    let mut lines = read();
    loop {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let line = tokio::select! {
            _ = interrupt.recv() => return Ok(outcome(Next::Interrupted)),
            line = lines.recv() => line,
        };
        let Some(line) = line else { return Ok(Outcome::Ok) };
        match talk.enter(&line.context("standard input")?, audience).await? {
            Next::On => {}
            next => return Ok(outcome(next)),
        }
    }
}

fn outcome(next: Next) -> Outcome {
    match next {
        Next::On | Next::Leave => Outcome::Ok,
        Next::Failed => Outcome::Findings,
        Next::Interrupted => Outcome::Exit(INTERRUPTED),
    }
}

/// The lines of standard input, as they come. Nobody waits for the thread that reads them.
fn read() -> mpsc::Receiver<std::io::Result<String>> {
    let (sender, receiver) = mpsc::channel(1);
    std::thread::spawn(move || {
        let mut open = String::new();
        for line in std::io::stdin().lock().lines() {
            let line = match line {
                Ok(line) => open.clone() + &line,
                Err(error) => {
                    let _ = sender.blocking_send(Err(error));
                    return;
                }
            };
            if is_open(&line) {
                open = line + "\n";
                continue;
            }
            open.clear();
            if sender.blocking_send(Ok(joined(&line))).is_err() {
                return;
            }
        }
        if !open.is_empty() {
            let _ = sender.blocking_send(Ok(joined(&open)));
        }
    });
    receiver
}
