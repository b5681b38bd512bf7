//! `unload_skill`

use serde_json::json;

use super::arguments::CallArguments;
use super::{declaration, skill_parameter};
use crate::outcome::ToolOutcome;
use crate::session::Change;
use crate::tool::{Effect, Invocation, Tool, ToolDeclaration, ToolFuture};

const NAME: &str = "unload_skill";

pub(crate) struct UnloadSkill {
    declaration: ToolDeclaration,
}

impl UnloadSkill {
    pub(crate) fn new() -> Self {
        let description = "Unload a skill that is not needed any more.";
        Self { declaration: declaration(NAME, description, &[skill_parameter()], 1) }
    }
}

impl Tool for UnloadSkill {
    fn declaration(&self) -> &ToolDeclaration {
        &self.declaration
    }

    fn effect(&self) -> Effect {
        Effect::State
    }

    fn call<'a>(&'a self, invocation: Invocation<'a>) -> ToolFuture<'a> {
        let outcome = unload(invocation).unwrap_or_else(|failure| failure);
        Box::pin(std::future::ready(outcome))
    }
}

fn unload(invocation: Invocation<'_>) -> Result<ToolOutcome, ToolOutcome> {
    let mut arguments = CallArguments::new(NAME, &invocation.call.arguments)?;
    let loaded = invocation.loaded(&arguments.skill()?)?;
    let data = json!({"skill": loaded.name});
    if loaded.pinned {
        return Err(ToolOutcome::failed("skill_pinned", data).about(&loaded.name));
    }
    Ok(ToolOutcome::coded("unloaded", data)
        .with_change(Change::Unload { skill: loaded.name.clone() })
        .about(&loaded.name))
}
