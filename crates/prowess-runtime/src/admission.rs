//! Which calls may run: tool there? → gate → policy.

use std::borrow::Cow;

use serde_json::{Value, json};

use crate::dispatch::Batch;
use crate::event::EventKind;
use crate::gate::{Open, Registered, gate};
use crate::message::ToolCall;
use crate::outcome::ToolOutcome;
use crate::policy::Refused;
use crate::session::SessionState;
use crate::tools::skill_tool::{self, Meant};

/// What a call asks for.
pub(crate) struct Asked<'c> {
    pub(crate) registered: &'c Registered,
    open: Open,
    /// The call itself, or the one that it stands for.
    pub(crate) call: Cow<'c, ToolCall>,
}

impl Batch<'_> {
    /// What a call asks for, if it may run: is the tool there, its skill loaded, and does the
    /// policy allow it?
    pub(crate) fn asked<'c>(
        &'c self,
        call: &'c ToolCall,
        state: &SessionState,
    ) -> Result<Asked<'c>, ToolOutcome> {
        let (tools, view) = (&self.inner.tools, self.view);
        let mut call = as_object(call)?;
        if let Some((words, _)) = tools.generic().filter(|(words, _)| words.name == call.name) {
            let Meant { skill, call: inner } = skill_tool::meant(words, &call)?;
            // Whose tool it is, is checked here; whether the skill is loaded, by the gate.
            let opens = view.declared.skills(&inner.name).unwrap_or_default();
            let schema = tools.get(&inner.name).filter(|_| opens.contains(&skill));
            let schema = schema.map(|registered| &registered.tool.declaration().parameters);
            let Some(schema) = schema else {
                let brings = |name: &&str| {
                    view.declared.skills(name).is_some_and(|skills| skills.contains(&skill))
                };
                let names: Vec<&str> =
                    tools.all().into_iter().map(|(name, _)| name).filter(brings).collect();
                return Err(unknown_tool(&inner.name, &names).about(skill));
            };
            if state.is_loaded(&skill) {
                skill_tool::check(&inner.name, schema, &inner.arguments)?;
            }
            call = Cow::Owned(inner);
        }
        let unknown = || {
            let declared = self.inner.declarations(view, state);
            let names = declared.iter().map(|it| it.name.as_str());
            let names: Vec<&str> = names.filter(|name| *name != call.name).collect();
            unknown_tool(&call.name, &names)
        };
        let registered = tools.get(&call.name).ok_or_else(unknown)?;
        let open = gate(&call.name, registered, &view.declared, state).map_err(|skill| {
            // It waits for a skill that is hidden: nothing of that is said.
            let Some(skill) = skill else { return unknown() };
            let data = json!({"tool": call.name, "skill": skill});
            let message = format!("Tool '{}' blocked: skill '{skill}' is not loaded", call.name);
            ToolOutcome::failed("skill_not_loaded", data)
                .about(skill)
                .with_note(EventKind::ToolBlocked, message)
        })?;
        let asked = Asked { registered, open, call };
        self.check_policy(&asked, &asked.call, state)?;
        Ok(asked)
    }

    /// Whether the policy allows a call with these arguments.
    pub(crate) fn check_policy(
        &self,
        asked: &Asked<'_>,
        call: &ToolCall,
        state: &SessionState,
    ) -> Result<(), ToolOutcome> {
        if asked.open == Open::BySkill || self.inner.tools.manages(&call.name) {
            return Ok(());
        }
        let policy = self.inner.settings.policy();
        policy.check(&call.name, &call.arguments, state).map_err(|refused| {
            let message = format!("Tool '{}' blocked by allowed-tools policy", call.name);
            let outcome = match refused {
                Refused::NotAllowed { allowed, skills } => {
                    let data = json!({"tool": call.name, "allowed": allowed, "skills": skills});
                    ToolOutcome::failed("tool_not_allowed", data)
                }
                Refused::Disallowed { entry, skill } => {
                    let data = json!({"tool": call.name, "entry": entry, "skill": skill});
                    ToolOutcome::failed("tool_disallowed", data).about(skill)
                }
            };
            outcome.with_note(EventKind::ToolBlocked, message)
        })
    }
}

/// A call whose arguments are an object; models also write it as text, or nothing at all.
fn as_object(call: &ToolCall) -> Result<Cow<'_, ToolCall>, ToolOutcome> {
    let arguments = match &call.arguments {
        Value::Object(_) => return Ok(Cow::Borrowed(call)),
        Value::Null => Some(json!({})),
        Value::String(text) if text.trim().is_empty() => Some(json!({})),
        Value::String(text) => serde_json::from_str(text).ok().filter(Value::is_object),
        _ => None,
    };
    let arguments = arguments.ok_or_else(|| {
        let data = json!({"tool": call.name, "cause": "they must be a JSON object"});
        ToolOutcome::failed("invalid_arguments", data)
    })?;
    Ok(Cow::Owned(ToolCall { arguments, ..call.clone() }))
}

/// There is no such tool, but there are these.
fn unknown_tool(tool: &str, names: &[&str]) -> ToolOutcome {
    let nearest = prowess_format::nearest_name(tool, names.iter().copied());
    let data = json!({"tool": tool, "available": names, "nearest": nearest});
    ToolOutcome::failed("unknown_tool", data)
}
