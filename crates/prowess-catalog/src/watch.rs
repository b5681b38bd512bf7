//! New snapshots as folders change.

use std::path::{Path, PathBuf};
use std::time::Duration;

use notify::{EventKind, RecommendedWatcher, RecursiveMode};
use notify_debouncer_full::{DebounceEventResult, Debouncer, RecommendedCache, new_debouncer};

use crate::catalog::Catalog;

/// Changes that follow each other within this time are one change.
pub const DEBOUNCE: Duration = Duration::from_millis(200);

/// Keeps a catalog fresh as long as it lives.
#[derive(Debug)]
#[must_use = "watching ends when this is dropped"]
pub struct Watch {
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Catalog {
    /// Refreshes whenever something changes in the folders of the sources, new folders included,
    /// also those of sources that do not exist yet. Subscribers see each new snapshot. Needs a
    /// running tokio runtime.
    pub fn watch(&self, debounce: Duration) -> notify::Result<Watch> {
        let (changed, mut changes) = tokio::sync::mpsc::channel::<()>(1);
        let debouncer = new_debouncer(debounce, None, move |result: DebounceEventResult| {
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
        let folders = self.sources().iter().filter_map(|source| source.watched_folder());
        let mut watched = Watched { debouncer, missing: folders.map(Path::to_owned).collect() };
        watched.look()?;
        let catalog = self.clone();
        let task = tokio::spawn(async move {
            while changes.recv().await.is_some() {
                // A folder that cannot be watched any more is still looked at with the others.
                let _ = watched.look();
                catalog.refresh().await;
            }
        });
        Ok(Watch { task })
    }
}

/// The folders that are watched, and those that are waited for.
struct Watched {
    debouncer: Debouncer<RecommendedWatcher, RecommendedCache>,
    missing: Vec<PathBuf>,
}

impl Watched {
    /// Watches what is there. A folder that is not there announces itself in the nearest one above
    /// that is.
    fn look(&mut self) -> notify::Result<()> {
        let missing = std::mem::take(&mut self.missing);
        for folder in missing {
            if folder.is_dir() {
                self.debouncer.watch(&folder, RecursiveMode::Recursive)?;
                continue;
            }
            let above = folder.ancestors().skip(1).find(|above| above.is_dir());
            let above = above.unwrap_or(Path::new("."));
            self.debouncer.watch(above, RecursiveMode::NonRecursive)?;
            self.missing.push(folder);
        }
        Ok(())
    }
}
