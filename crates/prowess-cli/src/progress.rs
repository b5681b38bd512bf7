//! Signs of life for work that takes long.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use prowess_catalog::{Progress, ProgressSink, Stage};

/// Work that takes longer than this shows that it goes on.
const PATIENCE: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(100);

/// How far fetching has come, for whoever shows it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Latest(Arc<Mutex<Option<Progress>>>);

impl Latest {
    /// Whom a source tells.
    pub(crate) fn sink(&self) -> ProgressSink {
        let latest = self.clone();
        Arc::new(move |progress| {
            *latest.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(*progress);
        })
    }

    fn get(&self) -> Option<Progress> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Does some work. If it takes long and somebody watches, a spinner says what is being done.
pub(crate) fn while_showing<T>(what: &'static str, work: impl FnOnce() -> T) -> T {
    while_fetching(what, &Latest::default(), work)
}

/// Does some work. If it takes long and somebody watches, a spinner says what is being done, until
/// the work says something itself.
pub(crate) fn while_showing_unless<T>(
    what: &'static str,
    is_heard: &AtomicBool,
    work: impl FnOnce() -> T,
) -> T {
    showing(what, &Latest::default(), Some(is_heard), work)
}

/// Does some work. If it takes long and somebody watches, a spinner says what is being done, and a
/// bar how much of it, as far as that is known.
pub(crate) fn while_fetching<T>(
    what: &'static str,
    latest: &Latest,
    work: impl FnOnce() -> T,
) -> T {
    showing(what, latest, None, work)
}

fn showing<T>(
    what: &'static str,
    latest: &Latest,
    is_heard: Option<&AtomicBool>,
    work: impl FnOnce() -> T,
) -> T {
    if !std::io::stderr().is_terminal() {
        return work();
    }
    let (done, is_done) = channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            if is_done.recv_timeout(PATIENCE) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            let is_silent = || is_heard.is_none_or(|it| !it.load(Ordering::Relaxed));
            if !is_silent() {
                return;
            }
            let bar = ProgressBar::new_spinner().with_message(what);
            // Ends when the work is done and the sender is gone.
            while is_done.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) && is_silent() {
                if let Some(progress) = latest.get() {
                    show(&bar, &progress);
                }
                bar.tick();
            }
            bar.finish_and_clear();
        });
        let result = work();
        drop(done);
        result
    })
}

fn show(bar: &ProgressBar, progress: &Progress) {
    let (word, template) = match (progress.stage, progress.total) {
        (Stage::Download, Some(_)) => {
            ("Fetching", "{spinner} {msg} [{bar:30}] {bytes}/{total_bytes} {eta}")
        }
        (Stage::Download, None) => ("Fetching", "{spinner} {msg} {bytes} {bytes_per_sec}"),
        _ => ("Unpacking", "{spinner} {msg} {bytes}"),
    };
    if bar.message() != word {
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(word);
    }
    match progress.total {
        Some(total) => bar.set_length(total),
        None => bar.unset_length(),
    }
    bar.set_position(progress.done);
}
