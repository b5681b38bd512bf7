//! New snapshots as folders change.

use std::path::{Path, PathBuf};
use std::time::Duration;

use notify::{EventKind, RecursiveMode};
use notify_debouncer_full::{DebounceEventResult, new_debouncer};

use crate::catalog::Catalog;

/// Changes that follow each other within this time are one change.
pub const DEBOUNCE: Duration = Duration::from_millis(200);

/// Keeps a catalog fresh as long as it lives.
#[must_use = "watching ends when this is dropped"]
pub struct Watch {
    task: tokio::task::JoinHandle<()>,
    _debouncer: Box<dyn std::any::Any + Send>,
    not_watched: Vec<PathBuf>,
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Watch")
            .field("not_watched", &self.not_watched)
            .finish_non_exhaustive()
    }
}

impl Watch {
    /// Folders that cannot be watched, because neither they nor the folder above exist.
    pub fn not_watched(&self) -> &[PathBuf] {
        &self.not_watched
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Catalog {
    /// Refreshes whenever something changes in the folders of the sources, new folders included.
    /// Subscribers see each new snapshot. Needs a running tokio runtime.
    pub fn watch(&self, debounce: Duration) -> notify::Result<Watch> {
        let (changed, mut changes) = tokio::sync::mpsc::channel::<()>(1);
        let mut debouncer = new_debouncer(debounce, None, move |result: DebounceEventResult| {
            let relevant = match result {
                Ok(events) => {
                    events.iter().any(|event| !matches!(event.kind, EventKind::Access(_)))
                }
                // Something was missed: look.
                Err(_) => true,
            };
            if relevant {
                // A full channel means that a refresh is due anyway.
                let _ = changed.try_send(());
            }
        })?;
        let mut not_watched = Vec::new();
        for folder in self.sources().iter().filter_map(|source| source.watched_folder()) {
            let (target, mode) = match folder.is_dir() {
                true => (folder, RecursiveMode::Recursive),
                // A folder that is not there yet announces itself in the one above.
                false => (existing_ancestor(folder), RecursiveMode::Recursive),
            };
            if debouncer.watch(target, mode).is_err() {
                not_watched.push(folder.to_owned());
            }
        }
        let catalog = self.clone();
        let task = tokio::spawn(async move {
            while changes.recv().await.is_some() {
                catalog.refresh().await;
            }
        });
        Ok(Watch { task, _debouncer: Box::new(debouncer), not_watched })
    }
}

fn existing_ancestor(folder: &Path) -> &Path {
    folder.parent().filter(|parent| parent.is_dir()).unwrap_or(folder)
}
