//! Answers about skills that are kept ready as long as the skill does not change.

use std::sync::Arc;

use axum::http::HeaderValue;
use bytes::Bytes;
use moka::sync::Cache;
use prowess_catalog::{SkillContents, TreeDigest};
use prowess_runtime::estimate_tokens;
use prowess_store::{Shelved, SkillDocument, SkillId, VersionStore, VersionedSkill};
use serde_json::json;

use crate::heavy::heavy;
use crate::problem::Problem;
use crate::routes::skills::SkillInfo;

/// What is answered about a skill, as it is at one revision.
#[derive(Debug)]
pub(crate) struct Prepared {
    revision: u64,
    /// What identifies it.
    pub(crate) etag: HeaderValue,
    /// The answer to whoever reads it.
    pub(crate) info: Bytes,
    /// The answer to whoever loads it.
    pub(crate) load: Bytes,
    /// What a model is given by that: bytes, and tokens, estimated.
    pub(crate) content: (u64, u64),
    /// The version that it is of.
    pub(crate) version: u64,
}

/// Answers that are kept ready, as far as there is room.
#[derive(Debug)]
pub(crate) struct Shelf {
    ready: Cache<SkillId, Arc<Prepared>>,
}

impl Shelf {
    /// Keeps answers of so many bytes.
    pub(crate) fn new(bytes: u64) -> Self {
        let weigh = |_: &SkillId, it: &Arc<Prepared>| {
            u32::try_from(it.info.len() + it.load.len() + 256).unwrap_or(u32::MAX)
        };
        Self { ready: Cache::builder().max_capacity(bytes).weigher(weigh).build() }
    }

    /// What is answered about a skill as it is now.
    pub(crate) async fn get(
        &self,
        store: &dyn VersionStore,
        shelved: &Shelved,
    ) -> Result<Arc<Prepared>, Problem> {
        let skill = &shelved.skill;
        if let Some(ready) = self.ready.get(&skill.id)
            && ready.revision == skill.revision
        {
            return Ok(ready);
        }
        let contents = store.contents(&skill.active).await?;
        let (bytes, owned) = (contents.bytes(), skill.clone());
        let prepared = Arc::new(heavy(bytes, move || prepare(&owned, &contents)).await??);
        self.ready.insert(skill.id.clone(), Arc::clone(&prepared));
        Ok(prepared)
    }
}

fn prepare(skill: &VersionedSkill, contents: &SkillContents) -> Result<Prepared, Problem> {
    let document = SkillDocument::of(contents)?;
    let content = document.core_content.clone();
    let load = json!({
        "skill_id": skill.id, "name": document.name, "content": content,
        "version_number": skill.active.number, "semantic_version": skill.active.about.semantic_version,
        "tree_digest": skill.active.tree_digest, "tokens": estimate_tokens(&content),
    });
    let info = serde_json::to_vec(&SkillInfo::active(skill, document)).map_err(Problem::broken)?;
    Ok(Prepared {
        revision: skill.revision,
        etag: etag_of(skill),
        info: info.into(),
        load: load.to_string().into(),
        content: (content.len() as u64, estimate_tokens(&content) as u64),
        version: skill.active.number,
    })
}

/// What identifies a skill as it is now: its revision, and the beginning of its digest, so that
/// another database cannot be meant.
pub(crate) fn etag(revision: u64, tree_digest: TreeDigest) -> HeaderValue {
    let digest = tree_digest.to_string();
    let digest = digest.get(3..19).unwrap_or_default();
    let text = format!("\"{revision}-{digest}\"");
    HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("\"\""))
}

/// What identifies a skill with an active version.
pub(crate) fn etag_of(skill: &VersionedSkill) -> HeaderValue {
    etag(skill.revision, skill.active.tree_digest)
}
