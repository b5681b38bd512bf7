//! New snapshots as folders change.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use notify::event::ModifyKind;
use notify::{EventKind, RecommendedWatcher, RecursiveMode};
use notify_debouncer_full::{DebounceEventResult, Debouncer, RecommendedCache, new_debouncer};

use crate::catalog::Catalog;
use crate::snapshot::Snapshot;

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
    /// Refreshes whenever something changes in the folders of the sources: new folders, what links
    /// lead to, and sources that do not exist yet or come back. Subscribers see each new snapshot.
    /// Needs a running tokio runtime.
    pub fn watch(&self, debounce: Duration) -> notify::Result<Watch> {
        let (changed, mut changes) = tokio::sync::mpsc::channel::<()>(1);
        let gone = Arc::new(Mutex::new(HashSet::new()));
        let seen_to_go = Arc::clone(&gone);
        let debouncer = new_debouncer(debounce, None, move |result: DebounceEventResult| {
            let relevant = match result {
                Ok(events) => {
                    let mut gone = seen_to_go.lock().unwrap_or_else(PoisonError::into_inner);
                    for event in &events {
                        if is_departure(event.kind) {
                            gone.extend(event.paths.iter().cloned());
                        }
                    }
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
        let roots = self.sources().iter().filter_map(|source| source.watched_folder());
        let roots = roots.map(Path::to_owned).collect();
        let mut watched = Watched { debouncer, roots, gone, folders: HashMap::new() };
        watched.look(&self.snapshot());
        let catalog = self.clone();
        let task = tokio::spawn(async move {
            let mut watched = Some(watched);
            while changes.recv().await.is_some() {
                let snapshot = catalog.refresh().await;
                let Some(mut moved) = watched.take() else { return };
                let look = move || {
                    let is_new = moved.look(&snapshot);
                    (moved, is_new)
                };
                let Ok((back, is_new)) = tokio::task::spawn_blocking(look).await else { return };
                watched = Some(back);
                // Between the refresh and the new watch something may have happened.
                if is_new {
                    catalog.refresh().await;
                }
            }
        });
        Ok(Watch { task })
    }
}

/// Whether something may have gone from where it was.
fn is_departure(kind: EventKind) -> bool {
    matches!(kind, EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_)))
}

/// What identifies a folder: another folder in its place is another one. Numbers are used again
/// soon, so that its time of birth counts too.
type Identity = (u64, u64, Option<SystemTime>);

/// The folders that are watched.
struct Watched {
    debouncer: Debouncer<RecommendedWatcher, RecommendedCache>,
    roots: Vec<PathBuf>,
    /// What was seen to go. If it is there again, it is not what was watched.
    gone: Arc<Mutex<HashSet<PathBuf>>>,
    folders: HashMap<PathBuf, Identity>,
}

impl Watched {
    /// Watches what has to be watched now, and says whether something new is among it. Blocks.
    ///
    /// A root is watched with everything below it, and the folders above it for its coming, going
    /// and being replaced. What links lead to is watched where it is.
    fn look(&mut self, snapshot: &Snapshot) -> bool {
        let mut wanted: Vec<(PathBuf, RecursiveMode)> = Vec::new();
        let mut real_roots = Vec::new();
        for root in &self.roots {
            let above = root.ancestors().skip(1).find(|above| above.is_dir());
            let above = above.filter(|above| !above.as_os_str().is_empty());
            wanted.push((above.unwrap_or(Path::new(".")).to_owned(), RecursiveMode::NonRecursive));
            if let Ok(real) = root.canonicalize() {
                wanted.push((root.clone(), RecursiveMode::Recursive));
                real_roots.push(real);
            }
        }
        let everyone = snapshot.skills().iter().chain(snapshot.ambiguous());
        for skill in everyone.flat_map(|skill| std::iter::once(skill).chain(skill.shadows())) {
            let file = skill.path();
            let places = [file.parent().and_then(|folder| folder.canonicalize().ok()), {
                file.canonicalize().ok().and_then(|real| real.parent().map(Path::to_owned))
            }];
            for place in places.into_iter().flatten() {
                if !real_roots.iter().any(|root| place.starts_with(root)) {
                    wanted.push((place, RecursiveMode::NonRecursive));
                }
            }
        }
        // Where a folder is wanted in both ways, the one that sees more counts.
        wanted.sort_by_key(|(_, mode)| *mode != RecursiveMode::Recursive);
        let mut is_new = false;
        let gone = std::mem::take(&mut *self.gone.lock().unwrap_or_else(PoisonError::into_inner));
        self.folders.retain(|folder, identity| {
            identity_of(folder) == Some(*identity)
                && !gone.iter().any(|gone| folder.starts_with(gone))
        });
        for (folder, mode) in wanted {
            let Some(identity) = identity_of(&folder) else { continue };
            if self.folders.get(&folder) == Some(&identity) {
                continue;
            }
            // One that cannot be watched is still looked at when another one changes.
            let _ = self.debouncer.unwatch(&folder);
            if self.debouncer.watch(&folder, mode).is_ok() {
                self.folders.insert(folder, identity);
                is_new = true;
            }
        }
        is_new
    }
}

fn identity_of(folder: &Path) -> Option<Identity> {
    use std::os::unix::fs::MetadataExt;
    let metadata = std::fs::metadata(folder).ok()?;
    Some((metadata.dev(), metadata.ino(), metadata.created().ok()))
}
