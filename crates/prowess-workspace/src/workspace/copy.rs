//! Copying what commands are given.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;

use super::inputs::{CopiedIn, InputFile};
use super::metadata::create;
use super::{WorkspaceError, WorkspaceOwner, shown};
use crate::beneath::{Folder, Stamp, give};
use crate::collect::{RefusedFile, RefusedReason, mime_type};
use crate::path::WorkspacePath;

/// How much of a file tells what it is.
const HEAD_BYTES: u64 = 8 << 10;

/// Whether files that have other names besides are copied.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum OtherNames {
    Allowed,
    Refused,
}

/// How much of an input there may be, and was.
pub(super) struct Budget {
    pub(super) what: String,
    pub(super) max_bytes: u64,
    pub(super) max_files: u64,
    pub(super) max_depth: u64,
    pub(super) bytes: u64,
    pub(super) files: u64,
}

impl Budget {
    pub(super) fn take_bytes(&mut self, bytes: u64) -> Result<(), WorkspaceError> {
        self.bytes = self.bytes.saturating_add(bytes);
        self.check(self.bytes, "max_input_bytes", self.max_bytes)
    }

    fn take_file(&mut self) -> Result<(), WorkspaceError> {
        self.files += 1;
        self.check(self.files, "max_input_files", self.max_files)
    }

    fn check(&self, is: u64, limit: &'static str, most: u64) -> Result<(), WorkspaceError> {
        let what = format!("the input '{}'", self.what);
        if is > most { Err(WorkspaceError::Limit { what, limit, most }) } else { Ok(()) }
    }
}

/// Copies folders.
pub(super) struct Copying<'a> {
    pub(super) owner: Option<WorkspaceOwner>,
    pub(super) other_names: OtherNames,
    /// Entries of the folder itself that are not copied.
    pub(super) left_out: &'a [&'a str],
    pub(super) to: &'a WorkspacePath,
}

impl Copying<'_> {
    pub(super) fn folder(
        &self,
        source: &Folder,
        target: &Folder,
        below: &str,
        budget: &mut Budget,
        copied: &mut CopiedIn,
    ) -> Result<(), WorkspaceError> {
        let failed = |cause: io::Error| WorkspaceError::Io {
            doing: format!("copy '{}' of the input '{}'", shown(below), self.to),
            cause,
        };
        let depth = below.split('/').filter(|name| !name.is_empty()).count() as u64;
        budget.check(depth, "max_input_depth", budget.max_depth)?;
        let mut entries: Vec<_> = source.entries().and_then(Iterator::collect).map_err(failed)?;
        entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        for entry in entries {
            if below.is_empty() && self.left_out.iter().any(|name| entry.name == **name) {
                continue;
            }
            budget.take_file()?;
            let shown_name = entry.name.to_string_lossy();
            let path = if below.is_empty() {
                shown_name.to_string()
            } else {
                format!("{below}/{shown_name}")
            };
            let mut refuse =
                |reason| copied.refused.push(RefusedFile { name: shown(&path), reason });
            let Some(name) = entry.name.to_str() else {
                refuse(RefusedReason::NotUtf8Name);
                continue;
            };
            let Ok(at) = WorkspacePath::parse(&format!("{}/{path}", self.to)) else {
                refuse(RefusedReason::Name);
                continue;
            };
            let Ok(stamp) = source.look(name.as_ref()) else { continue };
            if stamp.is_folder() {
                match source.enter(name.as_ref()) {
                    Ok(inner) => {
                        let made = target.make(name.as_ref(), 0o755, self.owner);
                        self.folder(&inner, &made.map_err(failed)?, &path, budget, copied)?;
                    }
                    Err(_) => refuse(RefusedReason::Unreadable),
                }
                continue;
            }
            // What it is, is decided once it is open.
            let opened = if stamp.is_file() {
                source.open_entry(name.as_ref())
            } else {
                refuse(if stamp.is_link() {
                    RefusedReason::Symlink
                } else {
                    RefusedReason::Special
                });
                continue;
            };
            let Ok((file, stamp)) = opened.and_then(|file| Stamp::of(&file).map(|it| (file, it)))
            else {
                refuse(RefusedReason::Unreadable);
                continue;
            };
            if !stamp.is_file() {
                refuse(RefusedReason::Special);
            } else if stamp.has_other_names() && self.other_names == OtherNames::Refused {
                refuse(RefusedReason::HardLinked);
            } else {
                let mut made = File::from(create(target, name, 0o600).map_err(failed)?);
                let (size_bytes, mime_type) = copy_file(file, &mut made, name, budget)?;
                let mode = if stamp.is_executable() { 0o755 } else { 0o644 };
                give(&made, mode, self.owner).map_err(failed)?;
                copied.files.push(InputFile { path: at, size_bytes, mime_type });
            }
        }
        Ok(())
    }
}

/// Copies an open file, as far as the budget allows, and says how large and what it is.
pub(super) fn copy_file(
    source: OwnedFd,
    target: &mut File,
    name: &str,
    budget: &mut Budget,
) -> Result<(u64, String), WorkspaceError> {
    let failed = || WorkspaceError::io(format!("copy the input '{}'", budget.what));
    let mut source = File::from(source);
    let size = source.metadata().map_err(failed())?.len();
    // Refused before anything is written, where that is possible.
    budget.check(budget.bytes.saturating_add(size), "max_input_bytes", budget.max_bytes)?;
    let mut head = Vec::new();
    Read::by_ref(&mut source).take(HEAD_BYTES).read_to_end(&mut head).map_err(failed())?;
    target.write_all(&head).map_err(failed())?;
    let left = budget.max_bytes.saturating_sub(budget.bytes).saturating_add(1);
    let left = left.saturating_sub(head.len() as u64);
    let rest = io::copy(&mut source.take(left), target).map_err(failed())?;
    let copied = head.len() as u64 + rest;
    budget.take_bytes(copied)?;
    Ok((copied, mime_type(name, &head, copied)))
}
