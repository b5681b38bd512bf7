//! Which tools are there, and which of them wait for a skill.

use std::collections::HashMap;
use std::sync::Arc;

use prowess_catalog::{CatalogSkill, Snapshot, Trust};

use crate::session::SessionState;
use crate::tool::Tool;
use crate::tools::is_load_tool;

/// The tools of a runtime, by name.
#[derive(Clone, Default)]
pub(crate) struct ToolTable {
    tools: HashMap<String, Registered>,
}

/// A tool, and the skill that a host ties it to.
#[derive(Clone)]
pub(crate) struct Registered {
    pub(crate) tool: Arc<dyn Tool>,
    pub(crate) skill: Option<String>,
}

impl ToolTable {
    pub(crate) fn insert(&mut self, tool: Arc<dyn Tool>, skill: Option<String>) {
        let name = tool.declaration().name.clone();
        self.tools.insert(name, Registered { tool, skill });
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Registered> {
        self.tools.get(name)
    }

    /// The names, sorted.
    pub(crate) fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.tools.keys().map(String::as_str).collect();
        names.sort_unstable();
        names
    }
}

/// Which skills declare which tools, in one snapshot.
#[derive(Clone, Debug, Default)]
pub(crate) struct Declared {
    /// For each tool: the skills that declare it and want to be loaded first. Who is hidden shuts
    /// a tool, but cannot open it.
    tools: HashMap<String, Vec<String>>,
}

impl Declared {
    /// What the skills of a snapshot declare, for somebody who sees some of them.
    pub(crate) fn of(snapshot: &Snapshot, seen: &Snapshot) -> Self {
        let mut tools: HashMap<String, Vec<String>> = HashMap::new();
        // Who is not trusted does not shut a tool of the host.
        let trusted = |skill: &&CatalogSkill| skill.trust() == Trust::Trusted;
        let is_seen = |skill: &CatalogSkill| {
            snapshot.is_same(seen)
                || seen.get(skill.name()).is_ok_and(|it| {
                    it.source_id() == skill.source_id() && it.found() == skill.found()
                })
        };
        for skill in snapshot.skills().iter().filter(trusted) {
            for (tool, requires_loaded) in declarations(skill) {
                // No skill can lock the tools by which skills are loaded.
                if requires_loaded && !is_load_tool(&tool) {
                    let opens = tools.entry(tool).or_default();
                    opens.extend(is_seen(skill).then(|| skill.name().to_owned()));
                }
            }
        }
        Self { tools }
    }
}

/// The tools that a skill declares, and whether they wait for it.
fn declarations(skill: &CatalogSkill) -> Vec<(String, bool)> {
    let frontmatter = &skill.found().frontmatter;
    if !frontmatter
        .raw()
        .iter()
        .any(|entry| matches!(entry.key.as_str(), "tool_configs" | "metadata"))
    {
        return Vec::new();
    }
    let configured = frontmatter.tool_configs().into_iter();
    let configured = configured.map(|config| (config.name, config.requires_skill_loaded));
    configured.chain(frontmatter.include_tools().into_iter().map(|tool| (tool, true))).collect()
}

/// Whether a tool may be called now; if not, the skill to load, if there is one to be seen.
///
/// A tool that a host ties to a skill waits for that skill. A tool that skills declare waits for
/// one of those that want to be loaded first: a skill that does not mind opens nothing that
/// another one keeps shut. Every other tool is free, and the load tools always are.
pub(crate) fn gate<'a>(
    name: &str,
    registered: &'a Registered,
    declared: &'a Declared,
    state: &SessionState,
) -> Result<(), Option<&'a str>> {
    if let Some(skill) = &registered.skill {
        return if state.is_loaded(skill) { Ok(()) } else { Err(Some(skill)) };
    }
    let Some(skills) = declared.tools.get(name) else { return Ok(()) };
    match skills.iter().any(|skill| state.is_loaded(skill)) {
        true => Ok(()),
        false => Err(skills.first().map(String::as_str)),
    }
}
