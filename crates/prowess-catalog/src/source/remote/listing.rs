//! What a fetched tree holds, as a source lists it.

use std::path::Path;
use std::sync::Arc;

use prowess_format::{Code, Diagnostic, Level};

use super::cache::OpenTree;
use super::error::RemoteError;
use super::location::Location;
use super::record::Record;
use crate::found::SourceListing;
use crate::limits::ScanLimits;
use crate::scan::{Nested, Scanner};
use crate::source::Trust;

/// The tree that is current, and what was listed of it.
#[derive(Default)]
pub(super) struct State {
    tree: Option<Arc<OpenTree>>,
    scanner: Option<Scanner>,
    /// What the scanner gave, and what it became.
    scanned: Option<Arc<SourceListing>>,
    notes: Vec<Diagnostic>,
    listed: Arc<SourceListing>,
}

impl State {
    pub(super) fn tree(&self) -> Option<Arc<OpenTree>> {
        self.tree.clone()
    }

    /// Makes a tree the current one.
    pub(super) fn replace(&mut self, tree: OpenTree) {
        let is_same = self.tree.as_ref().is_some_and(|current| current.id == tree.id);
        if !is_same {
            self.scanner = None;
        }
        // Even if it is the same one, its files may have been mended.
        self.scanned = None;
        self.tree = Some(Arc::new(tree));
    }

    /// What there is now. If nothing has changed, this is the listing of the last time itself.
    pub(super) fn list(
        &mut self,
        location: &Location,
        brought: Result<(Record, OpenTree), RemoteError>,
        limits: ScanLimits,
        trust: Trust,
    ) -> Arc<SourceListing> {
        let shown = location.shown();
        let mut notes = Vec::new();
        match brought {
            Ok((record, tree)) => {
                if self.tree.as_ref().is_none_or(|current| current.id != tree.id) {
                    self.replace(tree);
                }
                notes.extend(notes_of(&record, location));
            }
            Err(error) => {
                let message = format!("The source cannot be used: {error} [{}]", error.code());
                let finding = note(Code::SourceUnavailable, Level::Error, message, &shown);
                notes.push(finding.with_help(error.help()));
                *self = Self { listed: Arc::clone(&self.listed), ..Self::default() };
            }
        }
        let Some(tree) = self.tree.clone() else {
            return self.publish(SourceListing { skills: Vec::new(), diagnostics: notes });
        };
        let new = || Scanner::new(tree.files.clone(), limits, Nested::default(), trust);
        let scanned = self.scanner.get_or_insert_with(new).scan();
        let is_same = self.scanned.as_ref().is_some_and(|last| Arc::ptr_eq(last, &scanned));
        if is_same && self.notes == notes {
            return Arc::clone(&self.listed);
        }
        let listing = as_fetched(&tree, &scanned, &shown, &notes);
        self.scanned = Some(scanned);
        self.notes = notes;
        self.publish(listing)
    }

    fn publish(&mut self, listing: SourceListing) -> Arc<SourceListing> {
        if *self.listed != listing {
            self.listed = Arc::new(listing);
        }
        Arc::clone(&self.listed)
    }
}

fn note(code: Code, level: Level, message: String, path: &str) -> Diagnostic {
    Diagnostic::new(code, level, message).with_path(path)
}

/// What there is to say about a source that can be used.
fn notes_of(record: &Record, location: &Location) -> Vec<Diagnostic> {
    let shown = location.shown();
    let mut notes = Vec::new();
    if let Some(failure) = &record.failed {
        let (code, message) = (&failure.code, &failure.message);
        let message = format!("What was fetched before is used: {message} [{code}]");
        let finding = note(Code::SourceOffline, Level::Warning, message, &shown);
        notes.push(finding.with_help("`prowess source refresh` asks again"));
    }
    for problem in &record.problems {
        let message = format!("In the index of skills, {problem}");
        let finding = note(Code::IndexEntry, Level::Warning, message, &shown);
        notes.push(finding.with_help("tell whoever publishes the index"));
    }
    if location.is_open() {
        let message = "The source is fetched without encryption, and is not pinned";
        let finding = note(Code::SourceNotEncrypted, Level::Warning, message.to_owned(), &shown);
        notes.push(finding.with_help("use https, or pin it with `#sha256=`"));
    }
    notes
}

/// A listing of the cache as one of the source: only what is as it was fetched, and paths as the
/// source has them.
fn as_fetched(
    tree: &OpenTree,
    scanned: &SourceListing,
    location: &str,
    notes: &[Diagnostic],
) -> SourceListing {
    let mut listing = SourceListing::default();
    let damaged = |path: &Path| {
        let path = Path::new(location).join(path).display().to_string();
        let message = "The file in the cache is not the one that was fetched; it is not used";
        let finding = Diagnostic::new(Code::UnreadableFile, Level::Error, message);
        finding.with_path(path).with_help("`prowess source refresh` fetches it again")
    };
    for skill in &scanned.skills {
        let path = skill.path();
        match tree.manifest.is_text_of(&path.to_string_lossy(), &skill.digest) {
            true => listing.skills.push(Arc::clone(skill)),
            false => listing.diagnostics.push(damaged(&path)),
        }
    }
    // Only if some are not there it is asked which ones.
    if tree.manifest.texts().len() > listing.skills.len() {
        for path in tree.manifest.texts() {
            if std::fs::symlink_metadata(tree.files.join(path)).is_err() {
                listing.diagnostics.push(damaged(Path::new(path)));
            }
        }
    }
    let root = tree.files.display().to_string();
    let own_texts = ["SKILL.md", "skill.md"].map(|name| format!("{root}/{name}"));
    for diagnostic in &scanned.diagnostics {
        let mut diagnostic = diagnostic.clone();
        // The folder in the cache was not named by the author of the skill.
        let is_own =
            diagnostic.path.as_deref().is_some_and(|path| own_texts.iter().any(|own| own == path));
        if is_own && diagnostic.code == Code::NameFolderMismatch {
            continue;
        }
        if let Some(path) = &diagnostic.path {
            diagnostic.path = Some(path.replacen(&root, location, 1).into());
        }
        diagnostic.message = diagnostic.message.replace(&root, location);
        listing.diagnostics.push(diagnostic);
    }
    listing.diagnostics.extend(notes.iter().cloned());
    listing
}
