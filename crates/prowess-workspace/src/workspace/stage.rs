//! Staging skills: read-only copies of bytes that somebody has hashed.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, RenameFlags, renameat, renameat_with};
use rustix::io::Errno;

use super::all::lock_for_change;
use super::metadata::{SkillRecord, now};
use super::tree::{Tree, copy_stamp};
use super::{Workspace, WorkspaceError, shown};
use crate::beneath::{Folder, give};
use crate::locks::{Held, lock};
use crate::path::WorkspacePath;
use crate::remove::remove;

/// The folder of all skills.
pub(super) const SKILLS: &str = "skills";
/// The folder of a skill that its commands may write.
pub(super) const VENV: &str = ".venv";
/// The links that every staged skill has.
pub(super) const LINKS: [(&str, &str); 3] =
    [("out", "../../out"), ("work", "../../work"), ("inputs", "../../work/inputs")];
/// The most bytes in the name of a skill.
const MAX_NAME_BYTES: usize = 64;

/// Where a skill's link of this name leads.
pub(super) fn link_target(name: &str) -> Option<&'static str> {
    LINKS.iter().find(|(link, _)| *link == name).map(|(_, target)| *target)
}

/// A file of a skill.
#[derive(Clone, Debug)]
pub struct SkillFile<'a> {
    /// Where, below the skill's folder.
    pub path: &'a str,
    /// Whether it can be executed.
    pub executable: bool,
    /// What it holds.
    pub bytes: Cow<'a, [u8]>,
}

/// A skill in a workspace. As long as somebody has this, no other version takes its place.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StagedSkill {
    /// Where: `skills/<name>`.
    pub path: WorkspacePath,
    /// What a user of the skill should know.
    pub warnings: Vec<String>,
    /// Whether it was already there.
    pub was_staged: bool,
    _held: Arc<Held>,
}

impl StagedSkill {
    fn new(path: WorkspacePath, own: &[String], was_staged: bool, held: Held) -> Self {
        Self { path, warnings: warnings(own), was_staged, _held: Arc::new(held) }
    }
}

/// After this time it is tried again.
const PAUSE: Duration = Duration::from_millis(20);

impl Workspace {
    /// Whether a skill is staged with this tree digest from an unchanged source (`None`: no matter
    /// which), and nobody touched the copy. Looks at every file, and reads none.
    pub fn staged(
        &self,
        name: &str,
        digest: &str,
        source_stamp: Option<&str>,
    ) -> Result<Option<StagedSkill>, WorkspaceError> {
        let path = path_of(name)?;
        // Before it is looked at: what is right now stays right.
        let held = self.hold_skill(name, FlockOperation::LockShared)?;
        let metadata = self.metadata()?;
        let is_same = |record: &&SkillRecord| {
            record.digest == digest
                && source_stamp.is_none_or(|stamp| record.source_stamp.as_deref() == Some(stamp))
        };
        // What is not the same is staged, and has its span then.
        let Some(record) = metadata.skills.get(name).filter(is_same) else { return Ok(None) };
        let span = self.stage_span(name, digest).entered();
        let is_untouched = self.is_untouched(name, record);
        span.record("was_staged", is_untouched);
        if !is_untouched {
            return Ok(None);
        }
        Ok(Some(StagedSkill::new(path, &record.own, true, held)))
    }

    /// Stages a skill from bytes: a read-only copy that appears at once or not at all. What is
    /// already staged and untouched stays; a `.venv/` is kept. The skill's folder has links `out`,
    /// `work` and `inputs` and a writable `.venv/`; a skill that has such an entry itself keeps
    /// its own, with a warning. Whether the bytes have the digest is the caller's knowledge. While
    /// somebody uses another version, nothing is staged.
    pub fn stage(
        &self,
        name: &str,
        digest: &str,
        source_stamp: Option<&str>,
        files: &[SkillFile<'_>],
    ) -> Result<StagedSkill, WorkspaceError> {
        let span = self.stage_span(name, digest).entered();
        let path = path_of(name)?;
        let tree = Tree::of(files)?;
        let begun = Instant::now();
        loop {
            let staged = self.try_stage(&path, name, digest, source_stamp, &tree)?;
            if let Some(staged) = staged {
                span.record("was_staged", staged.was_staged);
                return Ok(staged);
            }
            if begun.elapsed() >= Duration::from_millis(self.inner.limits.max_skill_wait_ms) {
                return Err(WorkspaceError::SkillInUse { name: shown(name) });
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn stage_span(&self, name: &str, digest: &str) -> tracing::Span {
        tracing::info_span!(
            "workspace.stage.skill",
            workspace = self.id().as_str(),
            skill = %shown(name),
            digest,
            was_staged = tracing::field::Empty
        )
    }

    /// Stages a skill, unless somebody uses another version of it.
    fn try_stage(
        &self,
        path: &WorkspacePath,
        name: &str,
        digest: &str,
        source_stamp: Option<&str>,
        tree: &Tree<'_>,
    ) -> Result<Option<StagedSkill>, WorkspaceError> {
        // Whoever replaces a skill has this lock too: nobody comes between.
        let _changing = lock_for_change(&self.inner.change_lock)?;
        let mut metadata = self.metadata()?;
        if let Some(record) = metadata.skills.get_mut(name)
            && record.digest == digest
            && self.is_untouched(name, record)
        {
            let held = self.hold_skill(name, FlockOperation::LockShared)?;
            let staged = StagedSkill::new(path.clone(), &record.own, true, held);
            // The same bytes from a source that only looks different.
            if record.source_stamp.as_deref() != source_stamp {
                record.source_stamp = source_stamp.map(str::to_owned);
                self.write_metadata(&metadata)?;
            }
            return Ok(Some(staged));
        }
        let held = match self.hold_skill(name, FlockOperation::NonBlockingLockExclusive) {
            Err(WorkspaceError::Io { cause, .. }) if cause.kind() == io::ErrorKind::WouldBlock => {
                return Ok(None);
            }
            held => held?,
        };
        let keeps_venv = !tree.own.contains(VENV)
            && metadata.skills.get(name).is_none_or(|old| !old.own.iter().any(|it| it == VENV));
        let copy_stamp = self
            .replace(name, tree, keeps_venv)
            .map_err(WorkspaceError::io(format!("stage the skill '{name}'")))?;
        let own: Vec<String> = tree.own.iter().map(|name| (*name).to_owned()).collect();
        let record = SkillRecord {
            digest: digest.to_owned(),
            source_stamp: source_stamp.map(str::to_owned),
            copy_stamp,
            own: own.clone(),
            at: now(),
        };
        metadata.skills.insert(name.to_owned(), record);
        self.write_metadata(&metadata)?;
        drop(held);
        let held = self.hold_skill(name, FlockOperation::LockShared)?;
        Ok(Some(StagedSkill::new(path.clone(), &own, false, held)))
    }

    /// Holds the lock of a skill: together with others who use it, or alone to replace it.
    fn hold_skill(&self, name: &str, how: FlockOperation) -> Result<Held, WorkspaceError> {
        let mut path = self.inner.change_lock.with_extension("").into_os_string();
        path.push(format!(".skill-{name}"));
        lock(Path::new(&path), how).map_err(WorkspaceError::io(format!("lock the skill '{name}'")))
    }

    /// Puts a tree in the place of what is there, and returns how it looks.
    fn replace(&self, name: &str, tree: &Tree<'_>, keeps_venv: bool) -> io::Result<String> {
        let bin = &self.inner.bin;
        let skills = self.inner.folder.enter(SKILLS.as_ref())?;
        let (new, old) = (format!(".new-{name}"), format!(".old-{name}"));
        // What a crash has left: the copy before, whose `.venv` may not have been moved yet.
        for left in [&old, &new] {
            if skills.look(name.as_ref()).is_err() && left == &old {
                let _ = renameat(&skills, left.as_str(), &skills, name);
            }
            self.rescue_venv(&skills, left, name, keeps_venv);
            remove(&skills, left.as_ref(), bin)?;
        }

        let draft = skills.make(new.as_ref(), 0o755, None)?;
        let stamp = tree.write(&draft).and_then(|()| copy_stamp(&draft, &tree.own));
        let stamp = match stamp {
            Ok(stamp) => stamp,
            Err(error) => {
                let _ = remove(&skills, new.as_ref(), bin);
                return Err(error);
            }
        };
        exchange(&skills, &new, name, &old)?;
        for left in [&old, &new] {
            self.rescue_venv(&skills, left, name, keeps_venv);
        }
        if !tree.own.contains(VENV) {
            draft.make(VENV.as_ref(), 0o700, self.inner.owner)?;
        }
        give(&draft, 0o555, None)?;
        for left in [&old, &new] {
            remove(&skills, left.as_ref(), bin)?;
        }
        Ok(stamp)
    }

    /// Moves the `.venv` of an earlier copy to the present one, if that has none.
    fn rescue_venv(&self, skills: &Folder, from: &str, to: &str, keeps_venv: bool) {
        let rescue = || -> io::Result<()> {
            let source = skills.enter(from.as_ref())?;
            if !keeps_venv || !source.look(VENV.as_ref())?.is_folder() {
                return Ok(());
            }
            let target = skills.enter(to.as_ref())?;
            if target.look(VENV.as_ref()).is_ok() {
                return Ok(());
            }
            skills.unlock_entry(from.as_ref())?;
            give(&target, 0o755, None)?;
            if self.inner.owner.is_none() {
                source.unlock_entry(VENV.as_ref())?;
            }
            Ok(renameat(&source, VENV, &target, VENV)?)
        };
        match rescue() {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(%error, skill = to, "the .venv of the skill is lost");
            }
            _ => {}
        }
    }

    /// Whether a copy looks as it was left.
    fn is_untouched(&self, name: &str, record: &SkillRecord) -> bool {
        let own: BTreeSet<_> = record.own.iter().map(String::as_str).collect();
        let look = || -> io::Result<bool> {
            let skills = self.inner.folder.enter(SKILLS.as_ref())?;
            let top = skills.look(name.as_ref())?;
            let skill = skills.enter(name.as_ref())?;
            let has_venv = own.contains(VENV) || skill.look(VENV.as_ref())?.is_folder();
            Ok(has_venv
                && top.mode & 0o7777 == 0o555
                && copy_stamp(&skill, &own)? == record.copy_stamp)
        };
        // What cannot be looked at is not as it was.
        look().unwrap_or(false)
    }
}

/// Where a skill is staged, if it can be.
fn path_of(name: &str) -> Result<WorkspacePath, WorkspaceError> {
    let cause = if name.is_empty() {
        "the name is empty"
    } else if name.len() > MAX_NAME_BYTES {
        "the name is too long"
    } else if name.starts_with('.') {
        "the name begins with a dot"
    } else if name.chars().any(|c| c.is_control() || c == '/' || c == '\\') {
        "the name has a slash, a backslash or a control character"
    } else {
        match WorkspacePath::parse(&format!("{SKILLS}/{name}")) {
            Ok(path) => return Ok(path),
            Err(_) => "the name is no name of a folder",
        }
    };
    Err(WorkspaceError::SkillName { name: shown(name), cause })
}

fn warnings(own: &[String]) -> Vec<String> {
    own.iter()
        .map(|name| match link_target(name) {
            Some(target) => format!(
                "the skill has its own '{name}', which is kept and is read-only; the workspace's \
                 folder is {target}"
            ),
            None => format!("the skill has its own '{name}', which is kept and is read-only"),
        })
        .collect()
}

/// Makes `new` be called `name`; what was called so is called `new` or `old` then.
fn exchange(skills: &Folder, new: &str, name: &str, old: &str) -> io::Result<()> {
    match renameat_with(skills, new, skills, name, RenameFlags::NOREPLACE) {
        Ok(()) => return Ok(()),
        Err(Errno::EXIST | Errno::INVAL | Errno::NOSYS) => {}
        Err(error) => return Err(error.into()),
    }
    match renameat_with(skills, new, skills, name, RenameFlags::EXCHANGE) {
        Ok(()) => return Ok(()),
        Err(Errno::NOENT | Errno::INVAL | Errno::NOSYS) => {}
        Err(error) => return Err(error.into()),
    }
    // A file system that cannot exchange: the skill is missing for a moment.
    match renameat(skills, name, skills, old) {
        Ok(()) | Err(Errno::NOENT) => Ok(renameat(skills, new, skills, name)?),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::path_of;

    #[test]
    fn names_of_skills_are_names_of_folders() {
        let long = "x".repeat(65);
        for name in
            ["", ".", "..", ".x", "a/b", "/a", "../../x", "a\\b", "a\0", "a\nb", "\u{7f}", &long]
        {
            assert_eq!(path_of(name).unwrap_err().code(), "invalid_skill_name", "{name:?}");
        }
        for name in ["a", "python-math", "a.b", "a b", "ä", "a*[b]?", "a..", &"x".repeat(64)] {
            assert_eq!(path_of(name).unwrap().as_str(), format!("skills/{name}"));
        }
    }
}
