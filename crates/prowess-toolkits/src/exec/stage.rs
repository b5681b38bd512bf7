//! A skill in the workspace: what runs is what was hashed.

use std::borrow::Cow;

use prowess_catalog::{CatalogSkill, ReadError, TreeDigest};
use prowess_format::Digest;
use prowess_runtime::{Invocation, ToolOutcome};
use prowess_workspace::{SkillFile, StagedSkill, Workspace};
use serde_json::json;

use crate::session::{blocking, workspace_failure};

/// A skill that is in the workspace as the session has pinned it.
pub(crate) struct Ready<'a> {
    /// As the catalog has it.
    pub(crate) skill: Cow<'a, CatalogSkill>,
    /// The name that the session knows it by.
    pub(crate) name: String,
    /// The name of its folder below `skills/`.
    pub(crate) folder: String,
    pub(crate) staged: StagedSkill,
}

/// Whether a skill must be loaded before anything of it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loading {
    Required,
    Optional,
}

/// Puts a skill into the workspace, if its files are those that the session has pinned.
pub(crate) async fn stage<'a>(
    invocation: Invocation<'a>,
    workspace: &Workspace,
    name: &str,
    loading: Loading,
    limit: u64,
) -> Result<Ready<'a>, ToolOutcome> {
    let loaded = match invocation.loaded_skill(name) {
        Ok(loaded) => Some(loaded),
        Err(_) if loading == Loading::Optional => None,
        Err(refusal) => return Err(refusal),
    };
    let gone = |failure: ToolOutcome| match loaded {
        Some(_) => failure.with_data("was_loaded", true),
        None => failure,
    };
    let skill = invocation.skill(loaded.map_or(name, |it| &it.name)).map_err(gone)?;
    let name = loaded.map_or_else(|| invocation.name_of(skill), |it| it.name.clone());
    let pinned = loaded.and_then(|loaded| loaded.tree_digest);
    let has_changed = loaded.is_some_and(|loaded| loaded.digest != skill.found().digest);
    let put_now = async |skill: &CatalogSkill| put(skill, &name, workspace, pinned, limit).await;
    let current = match has_changed {
        true => Err(content_changed(&name)),
        false => put_now(skill).await,
    };
    let (skill, (folder, staged)) = match current {
        // The source may have kept the files that the session has.
        Err(refusal) if refusal.code == "content_changed" => {
            let Some(pinned) = pinned else { return Err(refusal) };
            let Some(earlier) = skill.earlier(pinned).await else { return Err(refusal) };
            let put = put_now(&earlier).await?;
            (Cow::Owned(earlier), put)
        }
        current => (Cow::Borrowed(skill), current?),
    };
    Ok(Ready { skill, name, folder, staged })
}

/// Puts the files of a skill into the workspace, if they are those that are pinned. Their folder
/// below `skills/`, and what is there.
pub(crate) async fn put(
    skill: &CatalogSkill,
    name: &str,
    workspace: &Workspace,
    pinned: Option<TreeDigest>,
    limit: u64,
) -> Result<(String, StagedSkill), ToolOutcome> {
    let changed = || content_changed(name);
    let folder = folder_name(name);
    // Before anything is read: what changes afterwards changes the stamp.
    let stamp = skill.stamp().await;
    let known = match (pinned, &stamp) {
        (Some(pinned), Some(stamp)) => look(workspace, &folder, pinned, stamp).await?,
        _ => None,
    };
    if let Some(staged) = known {
        return Ok((folder, staged));
    }
    let contents = skill.contents(limit).await.map_err(|error| match error {
        ReadError::ContentChanged { .. } | ReadError::Replaced => changed(),
        error => unreadable(name, skill, &error),
    })?;
    if pinned.is_some_and(|pinned| pinned != contents.tree_digest) {
        return Err(changed());
    }
    let (workspace, to) = (workspace.clone(), folder.clone());
    let copy = move || {
        let files = contents.files.iter().map(|file| SkillFile {
            path: file.path.as_str(),
            executable: file.executable,
            bytes: Cow::Borrowed(file.bytes.as_slice()),
        });
        let (files, digest) = (files.collect::<Vec<_>>(), contents.tree_digest.to_string());
        workspace.stage(&to, &digest, stamp.as_deref(), &files)
    };
    let staged = blocking(copy).await?;
    Ok((folder, staged.map_err(|error| workspace_failure(&error).about(name))?))
}

fn content_changed(name: &str) -> ToolOutcome {
    ToolOutcome::failed("content_changed", json!({"skill": name})).about(name)
}

/// Whether it is there already, from a source that looks the same, and nobody touched it.
async fn look(
    workspace: &Workspace,
    folder: &str,
    pinned: TreeDigest,
    stamp: &str,
) -> Result<Option<StagedSkill>, ToolOutcome> {
    let (workspace, folder, stamp) = (workspace.clone(), folder.to_owned(), stamp.to_owned());
    let look = move || workspace.staged(&folder, &pinned.to_string(), Some(&stamp));
    blocking(look).await?.map_err(|error| workspace_failure(&error))
}

fn unreadable(name: &str, skill: &CatalogSkill, error: &ReadError) -> ToolOutcome {
    let path = skill.path();
    let path = path.parent().unwrap_or(&path).display().to_string();
    let data = json!({"skill": name, "path": path, "cause": error.to_string()});
    ToolOutcome::failed("skill_unreadable", data).about(name)
}

/// The most bytes of the name of a folder below `skills/`.
const MOST_BYTES: usize = 64;

/// The name of a skill's folder below `skills/`: its own name where that is plain, else what can be
/// kept of it and a hash, so that no two skills of a session share a folder.
pub(crate) fn folder_name(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let is_usable = name.len() <= MOST_BYTES && !name.starts_with('.') && !name.is_empty();
    if is_usable && name.chars().all(is_plain) {
        return name.to_owned();
    }
    let readable = name.chars().map(|c| if is_plain(c) { c } else { '-' }).take(40);
    let readable: String = readable.collect();
    let hash = Digest::of(name.as_bytes()).hex();
    // No plain name has an `@`.
    format!("{}@{}", readable.trim_start_matches('.'), &hash[..16])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_named_after_its_skill_and_no_two_share_one() {
        for name in ["demo", "python-math", "a_b.c", "X1"] {
            assert_eq!(folder_name(name), name);
        }
        let long = "x".repeat(65);
        let odd = ["demo@web", "demo@web/a", "demo@web-a", "my skill", "my-skill ", "größe", &long];
        let mut folders: Vec<String> = odd.iter().map(|name| folder_name(name)).collect();
        for folder in &folders {
            assert!(folder.contains('@') && folder.len() <= MOST_BYTES, "{folder}");
            assert!(!folder.contains(['/', '\\', ' ']) && !folder.starts_with('.'), "{folder}");
        }
        folders.sort_unstable();
        folders.dedup();
        assert_eq!(folders.len(), odd.len());
    }

    #[test]
    fn a_hostile_name_is_a_harmless_folder() {
        for name in ["..", "../../x", ".hidden", "/etc", "a\\b", "a\nb", ""] {
            let folder = folder_name(name);
            let is_harmless = |c: char| c.is_ascii_alphanumeric() || "-_.@".contains(c);
            assert!(folder.chars().all(is_harmless), "{name:?}: {folder}");
            assert!(!folder.starts_with('.') && folder != "..", "{name:?}: {folder}");
        }
    }
}
