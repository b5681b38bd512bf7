//! `list_loaded_skills`

use serde_json::{Value, json};

use super::declaration;
use crate::outcome::ToolOutcome;
use crate::tool::{Effect, Invocation, Tool, ToolDeclaration, ToolFuture};

pub(crate) struct ListLoadedSkills {
    declaration: ToolDeclaration,
}

impl ListLoadedSkills {
    pub(crate) fn new() -> Self {
        let description = "List the skills that are loaded.";
        Self { declaration: declaration("list_loaded_skills", description, &[], 0) }
    }
}

impl Tool for ListLoadedSkills {
    fn declaration(&self) -> &ToolDeclaration {
        &self.declaration
    }

    // It must see what the calls before it have loaded.
    fn effect(&self) -> Effect {
        Effect::State
    }

    fn call<'a>(&'a self, invocation: Invocation<'a>) -> ToolFuture<'a> {
        let skills: Vec<Value> = invocation
            .state
            .loaded
            .iter()
            .map(|skill| {
                json!({
                    "name": skill.name,
                    "load_count": skill.load_count,
                    "version": skill.version,
                    "digest": skill.digest,
                    "docs": skill.docs.paths(),
                })
            })
            .collect();
        let outcome = ToolOutcome::coded("loaded_skills", json!({"skills": skills}));
        Box::pin(std::future::ready(outcome))
    }
}
