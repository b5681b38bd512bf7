//! Copies that take the place of others, and leave them beside.

use std::io;

use rustix::fs::{RenameFlags, renameat_with};
use rustix::io::Errno;

use super::inputs::{Place, split};
use super::read::failed;
use super::stage::StagedSkill;
use super::{Workspace, WorkspaceError};
use crate::path::WorkspacePath;

/// So many things can lie beside one of that name.
const MOST_ASIDE: u32 = 10_000;

impl Workspace {
    /// Copies a staged skill as [`Workspace::copy_skill`] does. What is in its place is moved to the
    /// first free name beside it (`demo~1`), which is returned; if the copy cannot be made, it is
    /// moved back.
    pub fn copy_skill_anew(
        &self,
        skill: &StagedSkill,
        to: &WorkspacePath,
    ) -> Result<WorkspacePath, WorkspaceError> {
        let place = self.place_for(to)?;
        let aside = set_aside(&place)?;
        if let Err(error) = self.copy_skill(skill, to) {
            // What cannot be moved back is still there, under the other name.
            let _ = rename(&place, &aside, &place.name);
            return Err(error);
        }
        let (parent, _) = split(&place.path);
        // A name that was given to a file is one.
        Ok(parent.join(&WorkspacePath::parse(&aside).unwrap_or_default()))
    }
}

/// Moves what is there out of the way, and says what it is called now.
fn set_aside(place: &Place) -> Result<String, WorkspaceError> {
    for number in 1..=MOST_ASIDE {
        let aside = format!("{}~{number}", place.name);
        match rename(place, &place.name, &aside) {
            Ok(()) => return Ok(aside),
            Err(Errno::EXIST) => {}
            Err(cause) => return Err(failed(&place.path, cause.into())),
        }
    }
    Err(failed(&place.path, io::ErrorKind::AlreadyExists.into()))
}

/// Gives something in a folder another name, if that is free.
fn rename(place: &Place, from: &str, to: &str) -> rustix::io::Result<()> {
    renameat_with(&place.folder, from, &place.folder, to, RenameFlags::NOREPLACE)
}
