//! How a model comes to know of the tools that a skill brings.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::bind::BoundTools;
use crate::gate::{Registered, opens};
use crate::runtime::{Inner, Runtime, SkillView};
use crate::session::SessionState;
use crate::tool::ToolDeclaration;

/// How a model comes to know of the tools that a skill brings. Those that wait for no skill are
/// always declared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exposure {
    /// They are declared while the skill is loaded.
    #[default]
    OnLoad,
    /// They are always declared, and refuse until the skill is loaded.
    Declared,
    /// They are described in the text of the skill, and called through one tool that is always
    /// the same: `skill_tool {skill, tool, arguments}`.
    Generic,
}

impl Runtime {
    /// Every tool that a call can name, whatever is loaded, by name: for hosts that must know all
    /// of them beforehand.
    pub fn tools(&self) -> Vec<ToolDeclaration> {
        let seen = self.inner.shared.load_full();
        let (bound, nothing) = (seen.as_ref().map(|it| &it.bound), BoundTools::default());
        let all = self.inner.all_tools(bound.unwrap_or(&nothing), &SessionState::default());
        let all = all.into_values().map(|it| self.inner.declaration(&it));
        let generic = self.inner.tools.generic().map(|(_, generic)| generic.clone());
        let mut tools: Vec<ToolDeclaration> =
            all.chain(generic.map(|generic| self.inner.described(generic))).collect();
        tools.sort_by(|a, b| a.name.cmp(&b.name));
        tools
    }

    /// The tools of the host that wait for no skill, by name: what a model is told of that knows
    /// nothing of skills.
    pub fn host_tools(&self) -> Arc<[ToolDeclaration]> {
        let tools = &self.inner.tools;
        let is_host = |(name, it): &(&str, &Registered)| !tools.manages(name) && it.skill.is_none();
        let make = || {
            let host = tools.all().into_iter().filter(is_host);
            host.map(|(_, registered)| self.inner.declaration(registered)).collect()
        };
        Arc::clone(self.inner.host_tools.get_or_init(make))
    }
}

impl Inner {
    /// The tools that a model is told of: first those that are always there, by name; then those
    /// that loaded skills have brought, in the order of loading.
    pub(crate) fn declarations(
        &self,
        view: &SkillView,
        state: &SessionState,
    ) -> Arc<[ToolDeclaration]> {
        let always = view.declarations.get_or_init(|| self.always_declared(view));
        if self.settings.exposure != Exposure::OnLoad {
            return Arc::clone(always);
        }
        let brought: Vec<ToolDeclaration> = state
            .loaded
            .iter()
            .flat_map(|skill| self.brought(view, state, &skill.name))
            .map(|registered| self.declaration(&registered))
            .collect();
        match brought.is_empty() {
            true => Arc::clone(always),
            false => always.iter().cloned().chain(brought).collect(),
        }
    }

    fn always_declared(&self, view: &SkillView) -> Arc<[ToolDeclaration]> {
        let mut declared: Vec<ToolDeclaration> = Vec::new();
        for (name, registered) in self.all_tools(&view.bound, &SessionState::default()) {
            let mut declaration = self.declaration(&registered);
            if view.declared.waits(&name) {
                // Nothing is said of a tool whose skill is hidden.
                let Some(skill) = view.declared.skill(&name) else { continue };
                if self.settings.exposure != Exposure::Declared {
                    continue;
                }
                let data = json!({"description": declaration.description, "skill": skill});
                declaration.description = self.dialect.block("gated_tool", &data);
            }
            declared.push(declaration);
        }
        let generic = self.tools.generic().map(|(_, generic)| generic.clone());
        declared.extend(generic.map(|generic| self.described(generic)));
        declared.sort_by(|a, b| a.name.cmp(&b.name));
        declared.into()
    }

    fn declaration(&self, registered: &Registered) -> ToolDeclaration {
        self.described(registered.tool.declaration().clone())
    }

    /// With the description that the host wants.
    fn described(&self, mut declaration: ToolDeclaration) -> ToolDeclaration {
        if let Some(text) = self.settings.tool_descriptions.get(&declaration.name) {
            declaration.description.clone_from(text);
        }
        declaration
    }

    /// The tools that a loaded skill has brought, and no other skill before it.
    fn brought(&self, view: &SkillView, state: &SessionState, skill: &str) -> Vec<Registered> {
        let first = |name: &str, registered: &Registered| {
            let mut loaded = state.loaded.iter();
            let first = loaded.find(|it| opens(it, name, registered, &view.declared));
            let waits = view.declared.waits(name) || self.tools.get(name).is_none();
            waits && first.is_some_and(|it| it.name == skill)
        };
        let all = self.all_tools(&view.bound, state).into_iter();
        all.filter(|(name, registered)| first(name, registered)).map(|(_, it)| it).collect()
    }

    /// What is said of the tools of a skill in its text, where that is the way they are known.
    pub(crate) fn described_tools(
        &self,
        view: &SkillView,
        state: &SessionState,
        skill: &str,
    ) -> String {
        if self.settings.exposure != Exposure::Generic {
            return String::new();
        }
        let all = self.all_tools(&view.bound, state).into_iter();
        let all = all.filter(|(name, _)| view.declared.is_by(name, skill));
        let tools: Vec<Value> = all.map(|(_, it)| json!(self.declaration(&it))).collect();
        match tools.is_empty() {
            true => String::new(),
            false => self.dialect.block("skill_tools", &json!({"skill": skill, "tools": tools})),
        }
    }
}
