//! `prowess skills pull`

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use prowess_catalog::SkillContents;
use serde_json::json;

use super::desk::{Desk, DeskError};
use crate::Outcome;
use crate::cli::PullArgs;
use crate::report;
use crate::terminal::safe_line;

/// Open to others, as skills are.
const FOLDER_MODE: u32 = 0o755;

pub(super) async fn run(desk: &Desk, arguments: &PullArgs) -> anyhow::Result<Outcome> {
    let skill = super::id(&arguments.name)?;
    let target = match arguments.to.as_os_str() == "." {
        true => PathBuf::from(skill.as_str()),
        false => arguments.to.join(skill.as_str()),
    };
    let shown = target.display().to_string();
    // What is refused later is refused before anything is fetched.
    if fs::symlink_metadata(&target).is_ok() && !arguments.force {
        return Err(DeskError::Exists(shown).into());
    }
    let (version, contents) = desk.contents(&skill, arguments.version).await?;
    let placed = place(&arguments.to, &target, &contents, arguments.force);
    if !placed.with_context(|| format!("cannot write {shown}"))? {
        return Err(DeskError::Exists(shown).into());
    }
    let files: Vec<&str> = contents.files.iter().map(|file| file.path.as_str()).collect();
    if arguments.json {
        report::print_json(&json!({
            "skill_id": skill, "version_number": version, "path": shown, "files": files,
            "tree_digest": contents.tree_digest.to_string(),
        }))?;
    } else {
        let files = report::counted(files.len(), "file");
        anstream::println!("{}  version {version}, {files}", safe_line(&shown));
    }
    Ok(Outcome::Ok)
}

/// Writes files beside their place and moves them there: all are there, or none. Whether they are;
/// they are not if something has their place and is not to be replaced.
fn place(parent: &Path, target: &Path, contents: &SkillContents, force: bool) -> io::Result<bool> {
    fs::create_dir_all(parent)?;
    let staging = tempfile::Builder::new().prefix(".prowess-pull-").tempdir_in(parent)?;
    let (new, old) = (staging.path().join("new"), staging.path().join("old"));
    write(&new, contents)?;
    let is_there = fs::symlink_metadata(target).is_ok();
    if is_there && !force {
        return Ok(false);
    }
    if is_there {
        fs::rename(target, &old)?;
    }
    if let Err(error) = fs::rename(&new, target) {
        if is_there {
            // What was there comes back; else it is lost with the folder that it was put into.
            if let Err(stuck) = fs::rename(&old, target) {
                let kept = staging.keep().join("old");
                let message = format!("{error}; what was there is now {}: {stuck}", kept.display());
                return Err(io::Error::other(message));
            }
        }
        return Err(error);
    }
    Ok(true)
}

/// Paths of contents stay below the folder, and have no links among them: it is new.
fn write(root: &Path, contents: &SkillContents) -> io::Result<()> {
    make_folder(root)?;
    for file in &contents.files {
        let path = file.path.as_str();
        let mut folder = root.to_owned();
        let mut steps: Vec<&str> = path.split('/').collect();
        let name = steps.pop().unwrap_or_default();
        for step in steps {
            folder.push(step);
            make_folder(&folder)?;
        }
        let place = folder.join(name);
        fs::write(&place, &file.bytes)?;
        let mode = if file.executable { 0o755 } else { 0o644 };
        fs::set_permissions(&place, Permissions::from_mode(mode))?;
    }
    Ok(())
}

fn make_folder(folder: &Path) -> io::Result<()> {
    match fs::create_dir(folder) {
        Ok(()) => fs::set_permissions(folder, Permissions::from_mode(FOLDER_MODE)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}
