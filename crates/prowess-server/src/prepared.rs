//! Answers about skills that are kept ready as long as the skill does not change.

use std::sync::Arc;

use axum::http::HeaderValue;
use bytes::Bytes;
use moka::sync::Cache;
use prowess_catalog::{CatalogSkill, SkillContents, TreeDigest};
use prowess_format::{Diagnostic, Level};
use prowess_runtime::Runtime;
use prowess_store::{Shelved, SkillDocument, SkillId, VersionSource, VersionStore, VersionedSkill};

use crate::heavy::heavy;
use crate::problem::Problem;
use crate::routes::skills::{LoadedText, SkillInfo};

/// What is answered about a skill, as it is at one revision.
#[derive(Debug)]
pub(crate) struct Prepared {
    revision: u64,
    /// What identifies it.
    pub(crate) etag: HeaderValue,
    /// The answer to whoever reads it.
    pub(crate) info: Bytes,
    /// The answer to whoever loads it.
    pub(crate) load: Load,
    /// The version that it is of.
    pub(crate) version: u64,
}

/// The answer to whoever loads a skill.
#[derive(Debug)]
pub(crate) enum Load {
    /// It is the same for everybody.
    Ready(LoadAnswer),
    /// The engine makes it every time, or says why this skill cannot be loaded.
    Asked(CatalogSkill),
}

/// An answer with the text of a skill.
#[derive(Debug)]
pub(crate) struct LoadAnswer {
    /// What is sent.
    pub(crate) sent: Bytes,
    /// What a model is given by that: bytes, and tokens, estimated.
    pub(crate) content: (u64, u64),
}

impl LoadAnswer {
    /// The answer with this text of a skill.
    pub(crate) fn new(skill: &VersionedSkill, text: String) -> Result<Self, Problem> {
        let text = LoadedText::new(skill, text);
        let sent = serde_json::to_vec(&text).map_err(Problem::broken)?;
        Ok(Self { sent: sent.into(), content: (text.content.len() as u64, text.tokens) })
    }
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
            // A skill that the engine is asked about holds what the document shows.
            let load = match &it.load {
                Load::Ready(answer) => answer.sent.len(),
                Load::Asked(_) => it.info.len(),
            };
            u32::try_from(it.info.len() + load + 256).unwrap_or(u32::MAX)
        };
        Self { ready: Cache::builder().max_capacity(bytes).weigher(weigh).build() }
    }

    /// What is answered about a skill as it is now.
    pub(crate) async fn get(
        &self,
        store: &dyn VersionStore,
        runtime: &Runtime,
        shelved: &Shelved,
    ) -> Result<Arc<Prepared>, Problem> {
        let skill = &shelved.skill;
        if let Some(ready) = self.ready.get(&skill.id)
            && ready.revision == skill.revision
        {
            return Ok(ready);
        }
        let contents = Arc::new(store.contents(&skill.active).await?);
        let (bytes, owned, files) = (contents.bytes(), skill.clone(), Arc::clone(&contents));
        let found = heavy(bytes, move || VersionSource::skill_of(&owned.id, &files)).await?;
        let (asked, owned) = (asked(runtime, found).await, skill.clone());
        let prepared = heavy(bytes, move || prepare(&owned, &contents, asked)).await??;
        let prepared = Arc::new(prepared);
        self.ready.insert(skill.id.clone(), Arc::clone(&prepared));
        Ok(prepared)
    }
}

/// The skill, if the engine must be asked by whoever loads it.
async fn asked(runtime: &Runtime, skill: Option<CatalogSkill>) -> Option<CatalogSkill> {
    let skill = skill?;
    let is_error = |it: &Diagnostic| it.level == Level::Error;
    let is_asked =
        runtime.has_opening(&skill) || runtime.findings(&skill).await.iter().any(is_error);
    is_asked.then_some(skill)
}

fn prepare(
    skill: &VersionedSkill,
    contents: &SkillContents,
    asked: Option<CatalogSkill>,
) -> Result<Prepared, Problem> {
    let document = SkillDocument::of(contents)?;
    let load = match asked {
        Some(skill) => Load::Asked(skill),
        None => Load::Ready(LoadAnswer::new(skill, document.core_content.clone())?),
    };
    let info = serde_json::to_vec(&SkillInfo::active(skill, document)).map_err(Problem::broken)?;
    Ok(Prepared {
        revision: skill.revision,
        etag: etag_of(skill),
        info: info.into(),
        load,
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
