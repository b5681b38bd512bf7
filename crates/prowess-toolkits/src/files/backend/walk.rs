//! Searching by listing and reading.

use prowess_workspace::{EntryKind, WorkspacePath};

use super::search::{
    GlobQuery, Globbed, GrepFile, GrepLine, GrepMode, GrepQuery, Grepped, SearchCut, SearchLimits,
};
use super::{Backend, FileError};
use crate::files::text::text_of;

/// What is left to be looked at, nearest last: a folder's entries come in the order of their names.
struct Walk<'b, B: Backend + ?Sized> {
    backend: &'b B,
    base: &'b WorkspacePath,
    limits: &'b SearchLimits,
    waiting: Vec<(WorkspacePath, EntryKind)>,
    walked: u64,
    unreadable: u64,
    cut: Option<SearchCut>,
}

impl<'b, B: Backend + ?Sized> Walk<'b, B> {
    /// Begins at a folder, or at the one file.
    async fn begin(
        backend: &'b B,
        base: &'b WorkspacePath,
        limits: &'b SearchLimits,
    ) -> Result<Self, FileError> {
        let (waiting, walked, unreadable, cut) = (Vec::new(), 0, 0, None);
        let mut walk = Self { backend, base, limits, waiting, walked, unreadable, cut };
        match walk.enter(base).await {
            Err(FileError::NotAFolder { .. }) => {
                walk.waiting.push((base.clone(), EntryKind::File));
            }
            entered => entered?,
        }
        Ok(walk)
    }

    /// Puts the entries of a folder on the list.
    async fn enter(&mut self, folder: &WorkspacePath) -> Result<(), FileError> {
        let room = self.limits.walked.saturating_sub(self.walked);
        let listed = self.backend.list(folder, room).await?;
        self.walked += listed.entries.len() as u64;
        if listed.omitted > 0 {
            self.cut = Some(SearchCut::Walked(self.limits.walked));
        }
        for entry in listed.entries.into_iter().rev() {
            let is_wanted = matches!(entry.kind, EntryKind::File | EntryKind::Folder);
            match WorkspacePath::parse(&entry.name).map(|name| folder.join(&name)) {
                Ok(path) if is_wanted => self.waiting.push((path, entry.kind)),
                Ok(_) => {}
                Err(_) => self.unreadable += 1,
            }
        }
        Ok(())
    }

    /// The next file.
    async fn next(&mut self) -> Option<WorkspacePath> {
        loop {
            let (path, kind) = self.waiting.pop()?;
            if kind == EntryKind::File {
                return Some(path);
            }
            if self.enter(&path).await.is_err() {
                self.unreadable += 1;
            }
        }
    }

    /// A path as it is seen from where the search began.
    fn below<'p>(&self, path: &'p WorkspacePath) -> &'p str {
        let below = path.as_str().strip_prefix(self.base.as_str()).unwrap_or(path.as_str());
        match below.trim_start_matches('/') {
            "" => path.as_str(),
            below => below,
        }
    }
}

pub(super) async fn glob<B: Backend + ?Sized>(
    backend: &B,
    query: &GlobQuery,
) -> Result<Globbed, FileError> {
    let mut walk = Walk::begin(backend, &query.folder, &query.limits).await?;
    let mut found = Globbed::default();
    while let Some(path) = walk.next().await {
        if !query.glob.matches(walk.below(&path)) {
            continue;
        }
        if found.files.len() as u64 >= query.limits.matches {
            walk.cut = Some(SearchCut::Matches(query.limits.matches));
            break;
        }
        found.files.push(path);
    }
    (found.unreadable, found.cut) = (walk.unreadable, walk.cut);
    Ok(found)
}

pub(super) async fn grep<B: Backend + ?Sized>(
    backend: &B,
    query: &GrepQuery,
) -> Result<Grepped, FileError> {
    let limits = &query.limits;
    let mut walk = Walk::begin(backend, &query.folder, limits).await?;
    let mut found = Grepped::default();
    let mut room_for_bytes = limits.searched_bytes;
    let mut matches = 0;
    while let Some(path) = walk.next().await {
        if query.glob.as_ref().is_some_and(|glob| !glob.matches(walk.below(&path))) {
            continue;
        }
        let Ok(file) = backend.read(&path, limits.file_bytes.min(room_for_bytes)).await else {
            walk.unreadable += 1;
            continue;
        };
        room_for_bytes -= (file.bytes.len() as u64).min(room_for_bytes);
        match text_of(&file.bytes, file.size_bytes) {
            None => found.skipped.not_text += 1,
            Some(text) => {
                let room = limits.matches - matches;
                let (file, is_more) = search(&path, text, query, room);
                if is_more {
                    walk.cut = Some(SearchCut::Matches(limits.matches));
                }
                if let Some(file) = file {
                    matches += match query.mode {
                        GrepMode::Lines => file.count,
                        GrepMode::Files | GrepMode::Count => 1,
                    };
                    found.files.push(file);
                }
            }
        }
        if file.truncated {
            match room_for_bytes {
                0 => walk.cut = Some(SearchCut::SearchedBytes(limits.searched_bytes)),
                _ => found.skipped.too_large += 1,
            }
        }
        let is_over = !matches!(walk.cut, None | Some(SearchCut::Walked(_)));
        if is_over {
            break;
        }
    }
    (found.skipped.unreadable, found.cut) = (walk.unreadable, walk.cut);
    Ok(found)
}

/// What a file holds of a text, and whether there is more than there is room for.
fn search(
    path: &WorkspacePath,
    text: &str,
    query: &GrepQuery,
    room: u64,
) -> (Option<GrepFile>, bool) {
    let mut hits = (1..).zip(text.lines()).filter(|(_, line)| line.contains(&query.text));
    let file = |count, lines| GrepFile { path: path.clone(), count, lines };
    let none = |count: u64| (None, count > 0);
    match query.mode {
        GrepMode::Lines => {
            let most = usize::try_from(room).unwrap_or(usize::MAX);
            let line = |(number, text): (u64, &str)| GrepLine { number, text: text.to_owned() };
            let lines: Vec<GrepLine> = hits.by_ref().take(most).map(line).collect();
            let is_more = hits.next().is_some();
            match lines.is_empty() {
                true => (None, is_more),
                false => (Some(file(lines.len() as u64, lines)), is_more),
            }
        }
        GrepMode::Files | GrepMode::Count => {
            let count = match query.mode {
                GrepMode::Count => hits.count() as u64,
                _ => u64::from(hits.next().is_some()),
            };
            match room == 0 || count == 0 {
                true => none(count),
                false => (Some(file(count, Vec::new())), false),
            }
        }
    }
}
