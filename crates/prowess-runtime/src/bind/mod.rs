//! Tools that skills declare in their frontmatter, bound to what carries them out.

mod check;
mod tool;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use prowess_catalog::{CatalogSkill, ResourceScope, Snapshot, Trust};
use prowess_format::{Diagnostic, Digest, Frontmatter};

use crate::gate::{Registered, ToolTable};
use crate::handlers::HandlerTable;
use crate::runtime::Inner;
use crate::session::{LoadedSkill, SessionState};
use check::{Fault, Files, faults, idle};
use tool::BoundTool;

/// So many texts of skills are kept bound at hand, beyond those of the snapshot.
const BOUND_AT_HAND: usize = 1024;

/// A skill that is not used, because something that it declares cannot be bound.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Quarantined {
    /// The skill.
    pub skill: CatalogSkill,
    /// Why, with the file and the line of each cause. At least one.
    pub diagnostics: Vec<Diagnostic>,
}

impl Quarantined {
    /// The causes as one text: `PATH:LINE: cause`, joined.
    pub fn cause(&self) -> String {
        let line = |it: &Diagnostic| match (&it.path, it.span) {
            (Some(path), Some(span)) => format!("{path}:{}: {}", span.line, it.message),
            (Some(path), None) => format!("{path}: {}", it.message),
            _ => it.message.clone(),
        };
        self.diagnostics.iter().map(line).collect::<Vec<_>>().join("; ")
    }
}

/// The tools of one text of a skill.
pub(crate) type BoundSkill = BTreeMap<String, Registered>;

/// Texts that were bound, by their digests.
#[derive(Default)]
pub(crate) struct Bindings {
    known: Mutex<HashMap<(String, Digest), Arc<BoundSkill>>>,
}

impl Bindings {
    fn get(&self, skill: &str, digest: Digest) -> Option<Arc<BoundSkill>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&(skill.to_owned(), digest)).cloned()
    }

    fn keep(&self, skill: &str, digest: Digest, bound: &Arc<BoundSkill>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= BOUND_AT_HAND {
            known.clear();
        }
        known.insert((skill.to_owned(), digest), Arc::clone(bound));
    }
}

/// The bound tools of the skills that somebody sees, by their names: first those of the skill that
/// comes first.
#[derive(Clone, Default)]
pub(crate) struct BoundTools {
    tools: BTreeMap<String, Vec<BoundBy>>,
}

/// A tool, and the text that declares it.
#[derive(Clone)]
struct BoundBy {
    digest: Digest,
    registered: Registered,
}

/// What of a snapshot can be used.
pub(crate) struct Bound {
    pub(crate) tools: BoundTools,
    pub(crate) quarantined: Vec<Quarantined>,
}

impl Inner {
    /// Binds what the skills of a snapshot declare. Only those that are trusted bring tools.
    pub(crate) async fn bind(&self, snapshot: &Snapshot) -> Bound {
        let mut bound = Bound { tools: BoundTools::default(), quarantined: Vec::new() };
        let everybody = snapshot.skills().iter().chain(snapshot.ambiguous());
        for skill in everybody.filter(|skill| declares(&skill.found().frontmatter)) {
            if skill.trust() != Trust::Trusted {
                continue;
            }
            let digest = skill.found().digest;
            match self.bind_skill(skill).await {
                Ok(tools) => {
                    for (tool, registered) in tools.iter() {
                        let by = bound.tools.tools.entry(tool.clone()).or_default();
                        let registered = registered.clone();
                        by.push(BoundBy { digest, registered });
                    }
                }
                Err(diagnostics) => {
                    let quarantined = Quarantined { skill: skill.clone(), diagnostics };
                    tracing::warn!(
                        target: "prowess::runtime", skill = skill.name(),
                        "the skill is not used: {}", quarantined.cause()
                    );
                    bound.quarantined.push(quarantined);
                }
            }
        }
        bound
    }

    /// Whether what a skill declares can be bound, as far as it is trusted to bring something; else
    /// why not.
    pub(crate) async fn bound(&self, skill: &CatalogSkill) -> Result<(), Vec<Diagnostic>> {
        match skill.trust() == Trust::Trusted && declares(&skill.found().frontmatter) {
            true => self.bind_skill(skill).await.map(drop),
            false => Ok(()),
        }
    }

    /// What keeps a skill from being used, and what of its declarations does not count.
    pub(crate) async fn findings(&self, skill: &CatalogSkill) -> Vec<Diagnostic> {
        let mut findings = self.bound(skill).await.err().unwrap_or_default();
        let idle = idle(skill, &self.tools);
        if !idle.is_empty() {
            findings.extend(located(skill, idle).await);
        }
        findings
    }

    async fn bind_skill(&self, skill: &CatalogSkill) -> Result<Arc<BoundSkill>, Vec<Diagnostic>> {
        let found = skill.found();
        let names_files = names_files(&found.frontmatter);
        // The text says nothing about the files: these are looked for every time.
        if !names_files && let Some(bound) = self.bindings.get(skill.name(), found.digest) {
            return Ok(bound);
        }
        let files = match names_files {
            false => Files::Unneeded,
            true => match skill.resources(ResourceScope::Recursive).await {
                Ok(listing) => Files::Known(listing.resources),
                Err(error) => Files::Unreadable(error.to_string()),
            },
        };
        let (handlers, name) = (&self.handlers, skill.name());
        let faults = faults(name, &found.frontmatter, handlers, &self.tools, &files);
        if faults.is_empty() {
            let bound =
                Arc::new(tools_of(name, found.digest, &found.frontmatter, handlers, &self.tools));
            self.bindings.keep(name, found.digest, &bound);
            return Ok(bound);
        }
        Err(located(skill, faults).await)
    }

    /// Binds what loaded skills have pinned, where it is not what the snapshot has.
    pub(crate) async fn bind_loaded(&self, tools: &BoundTools, state: &SessionState) {
        for loaded in &state.loaded {
            let is_known = loaded.tools.brings.iter().all(|tool| {
                self.tools.get(tool).is_some() || self.pinned_tool(tools, loaded, tool).is_some()
            });
            if is_known {
                continue;
            }
            let Ok(Some(bytes)) = self.kept_or_lost(loaded.digest).await else { continue };
            let parsed = prowess_format::Skill::parse_bytes(&bytes, &Default::default());
            let Some(skill) = parsed.skill else { continue };
            let (name, frontmatter) = (skill.skill_name().as_str(), &skill.frontmatter);
            let bound = tools_of(name, loaded.digest, frontmatter, &self.handlers, &self.tools);
            self.bindings.keep(plain_name(&loaded.name), loaded.digest, &Arc::new(bound));
        }
    }

    /// A tool that the text brings which a session has loaded.
    fn pinned_tool(
        &self,
        tools: &BoundTools,
        loaded: &LoadedSkill,
        name: &str,
    ) -> Option<Registered> {
        if !loaded.tools.brings.iter().any(|tool| tool == name) {
            return None;
        }
        let by = tools.tools.get(name).into_iter().flatten();
        let mut by = by.filter(|it| it.digest == loaded.digest);
        if let Some(bound) = by.next() {
            return Some(bound.registered.clone());
        }
        self.bindings.get(plain_name(&loaded.name), loaded.digest)?.get(name).cloned()
    }

    /// The tool of this name: of the host, of the first loaded skill that brings it, or of the
    /// first skill that declares it.
    pub(crate) fn tool(
        &self,
        tools: &BoundTools,
        state: &SessionState,
        name: &str,
    ) -> Option<Registered> {
        if let Some(registered) = self.tools.get(name) {
            return Some(registered.clone());
        }
        if !self.tools.admits(name) {
            return None;
        }
        let pinned = state.loaded.iter().find_map(|it| self.pinned_tool(tools, it, name));
        pinned.or_else(|| Some(tools.tools.get(name)?.first()?.registered.clone()))
    }

    /// All tools that there are for a state, by name.
    pub(crate) fn all_tools(
        &self,
        tools: &BoundTools,
        state: &SessionState,
    ) -> BTreeMap<String, Registered> {
        let host = self.tools.all().into_iter().map(|(name, it)| (name.to_owned(), it.clone()));
        let mut all: BTreeMap<String, Registered> = host.collect();
        let pinned = state.loaded.iter().flat_map(|it| it.tools.brings.iter());
        for name in tools.tools.keys().chain(pinned) {
            if !all.contains_key(name)
                && let Some(registered) = self.tool(tools, state, name)
            {
                all.insert(name.clone(), registered);
            }
        }
        all
    }
}

/// Faults of a skill with their places in its text, which is needed only for that.
async fn located(skill: &CatalogSkill, faults: Vec<Fault>) -> Vec<Diagnostic> {
    let text = skill.read().await.ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let path = skill.path().display().to_string();
    faults.into_iter().map(|fault| fault.diagnostic(text.as_deref(), &path)).collect()
}

/// Without the source of a qualified name.
fn plain_name(name: &str) -> &str {
    name.split_once('@').map_or(name, |(name, _)| name)
}

/// Whether a skill declares something that can be bound.
fn declares(frontmatter: &Frontmatter) -> bool {
    let is_it = |key: &str| matches!(key, "tool_configs" | "resource_configs");
    frontmatter.raw().iter().any(|entry| is_it(entry.key.as_str()))
}

/// Whether it names files of the skill.
fn names_files(frontmatter: &Frontmatter) -> bool {
    frontmatter.tool_configs().iter().any(|it| it.script.is_some())
        || frontmatter.resource_configs().iter().any(|it| it.file.is_some())
}

/// The tools of a text that is without fault.
fn tools_of(
    skill: &str,
    digest: Digest,
    frontmatter: &Frontmatter,
    handlers: &HandlerTable,
    table: &ToolTable,
) -> BoundSkill {
    let configs = frontmatter.tool_configs().into_iter();
    // A tool of the host is not bound to anything else.
    let configs = configs.filter(|config| table.get(&config.name).is_none());
    let tool = |config| {
        let tool = BoundTool::new(skill, digest, config, handlers)?;
        let registered = Registered::brought(Arc::new(tool));
        Some((registered.tool.declaration().name.clone(), registered))
    };
    configs.filter_map(tool).collect()
}
