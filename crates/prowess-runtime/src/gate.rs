//! Which tools are there, and which of them wait for a skill.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use prowess_catalog::{CatalogSkill, Gates, Snapshot, Trust};
use prowess_format::Digest;

use crate::dialect::{Dialect, ToolWords};
use crate::disclose::session_name;
use crate::session::{LoadedSkill, SessionState};
use crate::tool::{Tool, ToolDeclaration};
use crate::tools::{GENERIC, load_tools};

/// The tools of a runtime, by name.
#[derive(Clone)]
pub(crate) struct ToolTable {
    tools: HashMap<String, Registered>,
    /// The tools by which skills are managed.
    managing: HashSet<String>,
    /// The one tool through which the tools of all skills can be called, where that is the way.
    generic: Option<(ToolWords, ToolDeclaration)>,
    /// The only tools that there are beside those; none means all.
    only: Option<Arc<BTreeSet<String>>>,
}

/// A tool, whose it is, and the skill that a host ties it to.
#[derive(Clone)]
pub(crate) struct Registered {
    pub(crate) tool: Arc<dyn Tool>,
    pub(crate) by: BroughtBy,
    pub(crate) skill: Option<String>,
}

/// Whose a tool is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BroughtBy {
    /// The host has it for everybody.
    Host,
    /// A skill declares what carries it out.
    Skill,
}

impl Registered {
    /// A tool of the host.
    pub(crate) fn host(tool: Arc<dyn Tool>) -> Self {
        Self { tool, by: BroughtBy::Host, skill: None }
    }

    /// A tool of the host that can be called only while this skill is loaded.
    pub(crate) fn tied(tool: Arc<dyn Tool>, skill: String) -> Self {
        Self { tool, by: BroughtBy::Host, skill: Some(skill) }
    }

    /// A tool that a skill brings.
    pub(crate) fn brought(tool: Arc<dyn Tool>) -> Self {
        Self { tool, by: BroughtBy::Skill, skill: None }
    }
}

impl ToolTable {
    /// The load tools of a dialect, and those of a host; the latter take the place of the former.
    pub(crate) fn new(dialect: &Dialect, has_generic: bool, host: Vec<Registered>) -> Self {
        let loading = load_tools(dialect).into_iter();
        let mut table =
            Self { tools: HashMap::new(), managing: HashSet::new(), generic: None, only: None };
        for tool in loading.map(Registered::host) {
            table.managing.insert(tool.tool.declaration().name.clone());
            table.insert(tool);
        }
        for tool in host {
            table.insert(tool);
        }
        let generic = dialect.words(GENERIC.name).filter(|_| has_generic);
        if let Some(words) = generic.filter(|words| table.get(&words.name).is_none()) {
            table.managing.insert(words.name.clone());
            table.generic = Some((words.clone(), GENERIC.declaration(words)));
        }
        table
    }

    /// The same without the tools of the host that are not among these.
    pub(crate) fn narrowed(&self, left: &BTreeSet<String>) -> Self {
        let mut narrowed = self.clone();
        narrowed.tools.retain(|name, _| left.contains(name) || self.managing.contains(name));
        let is_left = |name: &&String| self.admits(name);
        narrowed.only = Some(Arc::new(left.iter().filter(is_left).cloned().collect()));
        narrowed
    }

    /// The same with more tools of the host.
    pub(crate) fn widened(&self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        let mut widened = self.clone();
        for tool in tools {
            widened.insert(Registered::host(tool));
        }
        widened
    }

    fn insert(&mut self, registered: Registered) {
        self.tools.insert(registered.tool.declaration().name.clone(), registered);
    }

    /// Whether a tool may be there that a skill brings.
    pub(crate) fn admits(&self, name: &str) -> bool {
        self.only.as_ref().is_none_or(|only| only.contains(name))
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Registered> {
        self.tools.get(name)
    }

    /// What the one tool for all tools of skills is called, if there is one.
    pub(crate) fn generic(&self) -> Option<&(ToolWords, ToolDeclaration)> {
        self.generic.as_ref()
    }

    /// Whether skills are managed with this tool.
    pub(crate) fn manages(&self, name: &str) -> bool {
        self.managing.contains(name)
    }

    /// All tools, by name.
    pub(crate) fn all(&self) -> Vec<(&str, &Registered)> {
        let mut all: Vec<(&str, &Registered)> =
            self.tools.iter().map(|(name, tool)| (name.as_str(), tool)).collect();
        all.sort_unstable_by_key(|(name, _)| *name);
        all
    }
}

/// Which tools wait for which skills, in one snapshot.
#[derive(Clone, Debug, Default)]
pub(crate) struct Declared {
    /// For each tool that waits: the skills that open it. Who is hidden shuts a tool, but cannot
    /// open it.
    tools: HashMap<String, Vec<Opener>>,
}

/// A skill that opens a tool.
#[derive(Clone, Debug)]
struct Opener {
    skill: String,
    /// The text that says so; none if the host does.
    digest: Option<Digest>,
}

impl Declared {
    /// What the skills of a snapshot declare, for somebody who sees some of them, and what a host
    /// ties to skills.
    pub(crate) fn of(snapshot: &Snapshot, seen: &Snapshot, table: &ToolTable) -> Self {
        let mut tools: HashMap<String, Vec<Opener>> = HashMap::new();
        // No skill can lock the tools by which skills are loaded, nor, unless its source may, those
        // that the host has for everybody.
        let may_gate = |skill: &CatalogSkill, tool: &str| match skill.gates() {
            Gates::AllTools => !table.manages(tool),
            Gates::OwnTools => table.get(tool).is_none() && !table.manages(tool),
        };
        for skill in everybody(snapshot) {
            for tool in brought_by(skill).filter(|tool| may_gate(skill, tool)) {
                tools.entry(tool).or_default();
            }
        }
        // Who is seen may stand where a hidden one would.
        for skill in everybody(seen) {
            for tool in brought_by(skill).filter(|tool| may_gate(skill, tool)) {
                let (name, digest) = (session_name(seen, skill), Some(skill.found().digest));
                tools.entry(tool).or_default().push(Opener { skill: name, digest });
            }
        }
        for (tool, registered) in &table.tools {
            if let Some(skill) = &registered.skill {
                let opener = || Opener { skill: skill.clone(), digest: None };
                let is_seen = seen.get(skill).is_ok();
                tools.insert(tool.clone(), is_seen.then(opener).into_iter().collect());
            }
        }
        Self { tools }
    }

    /// Whether a tool waits for a skill.
    pub(crate) fn waits(&self, tool: &str) -> bool {
        self.tools.contains_key(tool)
    }

    /// The skill to load for a tool that waits, if there is one to be seen.
    pub(crate) fn skill(&self, tool: &str) -> Option<&str> {
        self.tools.get(tool)?.first().map(|opener| opener.skill.as_str())
    }

    /// Whether a skill of this name opens a tool.
    pub(crate) fn is_by(&self, tool: &str, skill: &str) -> bool {
        self.tools.get(tool).is_some_and(|opens| opens.iter().any(|it| it.skill == skill))
    }
}

/// The skills of a snapshot, also those of which only the qualified name means one.
fn everybody(snapshot: &Snapshot) -> impl Iterator<Item = &CatalogSkill> {
    snapshot.skills().iter().chain(snapshot.ambiguous())
}

/// The tools that wait for a skill because it declares them. Who is not trusted does not shut a
/// tool of the host, nor open it; who gates only its own has said what carries them out.
pub(crate) fn brought_by(skill: &CatalogSkill) -> impl Iterator<Item = String> {
    let is_trusted = skill.trust() == Trust::Trusted;
    let declared = if is_trusted { declarations(skill) } else { Vec::new() };
    let gates = skill.gates();
    let waits = move |it: &Declaration| {
        it.requires_loaded && (it.is_carried_out || gates == Gates::AllTools)
    };
    declared.into_iter().filter(waits).map(|it| it.tool)
}

/// A tool that a skill declares.
struct Declaration {
    tool: String,
    /// Whether it waits for the skill.
    requires_loaded: bool,
    /// Whether the skill says what carries it out.
    is_carried_out: bool,
}

/// The tools that a skill declares.
fn declarations(skill: &CatalogSkill) -> Vec<Declaration> {
    let frontmatter = &skill.found().frontmatter;
    if !frontmatter
        .raw()
        .iter()
        .any(|entry| matches!(entry.key.as_str(), "tool_configs" | "metadata"))
    {
        return Vec::new();
    }
    let configured = frontmatter.tool_configs().into_iter().map(|config| Declaration {
        is_carried_out: config.script.is_some() || !config.method.is_empty(),
        requires_loaded: config.requires_skill_loaded,
        tool: config.name,
    });
    let included = frontmatter.include_tools().into_iter();
    let included =
        included.map(|tool| Declaration { tool, requires_loaded: true, is_carried_out: false });
    configured.chain(included).collect()
}

/// Why a tool can be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Open {
    /// It waits for nobody.
    ToAll,
    /// The skill is loaded that brings it.
    BySkill,
}

/// Whether a tool may be called now; if not, the skill to load, if there is one to be seen.
///
/// A tool that a host ties to a skill waits for that skill. A tool that skills declare waits for
/// one of those that want to be loaded first: a skill that does not mind opens nothing that
/// another one keeps shut. Every other tool is free, and the load tools always are.
pub(crate) fn gate<'a>(
    name: &str,
    registered: &Registered,
    declared: &'a Declared,
    state: &SessionState,
) -> Result<Open, Option<&'a str>> {
    match state.loaded.iter().any(|skill| opens(skill, name, registered, declared)) {
        true => Ok(Open::BySkill),
        false if declared.waits(name) => Err(declared.skill(name)),
        false => Ok(Open::ToAll),
    }
}

/// Whether a loaded skill opens a tool: the host says so, or the text that was loaded does. What
/// another text of the same name declares by now opens nothing; what a session has loaded stays,
/// even if nobody else can find it any more.
pub(crate) fn opens(
    loaded: &LoadedSkill,
    tool: &str,
    registered: &Registered,
    declared: &Declared,
) -> bool {
    match &registered.skill {
        Some(skill) => *skill == loaded.name,
        None if registered.by == BroughtBy::Host && loaded.tools.gates == Gates::OwnTools => false,
        None => {
            let openers = declared.tools.get(tool).into_iter().flatten();
            let mut texts = openers.filter(|opener| opener.skill == loaded.name);
            loaded.tools.brings.iter().any(|brought| brought == tool)
                || texts.any(|opener| opener.digest == Some(loaded.digest))
        }
    }
}
