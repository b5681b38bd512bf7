//! What a tool may ask about skills.

use prowess_catalog::CatalogSkill;
use serde_json::json;

use crate::disclose::session_name;
use crate::event::{EventKind, shown};
use crate::outcome::ToolOutcome;
use crate::session::LoadedSkill;
use crate::tool::Invocation;
use crate::visibility::Visibility;

impl<'a> Invocation<'a> {
    /// The loaded skill that a model means: what the session has pinned of it. If it is not
    /// loaded, or there is none, the outcome that says so, in the words of the dialect.
    pub fn loaded_skill(&self, name: &str) -> Result<&'a LoadedSkill, ToolOutcome> {
        self.loaded(name).or_else(|_| {
            self.engine.find(self.snapshot, name).map_err(|failure| failure.about(name))?;
            let tool = &self.call.name;
            let (shown_tool, skill) = (shown(tool), shown(name));
            let message = format!("Tool '{shown_tool}' blocked: skill '{skill}' is not loaded");
            let data = json!({"tool": tool, "skill": name});
            let outcome = ToolOutcome::failed("skill_not_loaded", data).about(name);
            Err(outcome.with_note(EventKind::ToolBlocked, message))
        })
    }

    /// The skill of this name as the catalog has it now. One that is hidden is not there; one that
    /// only people can load is there once it is loaded.
    pub fn skill(&self, name: &str) -> Result<&'a CatalogSkill, ToolOutcome> {
        let about = |failure: ToolOutcome| failure.about(name);
        let skill = self.engine.find(self.snapshot, name).map_err(about)?;
        let is_manual = self.engine.visibility(skill) == Visibility::ManualOnly;
        if is_manual && self.loaded(name).is_err() {
            return Err(about(ToolOutcome::failed("manual_only", json!({"skill": name}))));
        }
        Ok(skill)
    }

    /// The name that the session knows a skill by: its own, or the qualified one if another skill
    /// answers to its own.
    pub fn name_of(&self, skill: &CatalogSkill) -> String {
        session_name(self.snapshot, skill)
    }

    /// The call has arguments that do not fit, for this reason.
    pub fn invalid_arguments(&self, cause: impl Into<String>) -> ToolOutcome {
        let data = json!({"tool": self.call.name, "cause": cause.into()});
        ToolOutcome::failed("invalid_arguments", data)
    }
}
