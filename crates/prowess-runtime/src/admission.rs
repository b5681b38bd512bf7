//! Which calls may run: tool there? → gate → policy.

use std::borrow::Cow;

use serde_json::{Value, json};

use crate::bind::BoundTools;
use crate::dispatch::Batch;
use crate::event::{EventKind, shown};
use crate::gate::{Declared, Open, Registered, gate, opens};
use crate::message::ToolCall;
use crate::outcome::ToolOutcome;
use crate::policy::{Called, Refused};
use crate::runtime::{Blocked, Inner};
use crate::session::SessionState;
use crate::tools::skill_tool::{self, Meant};

/// What a call asks for.
pub(crate) struct Asked<'c> {
    pub(crate) registered: Registered,
    open: Open,
    /// The call itself, or the one that it stands for.
    pub(crate) call: Cow<'c, ToolCall>,
}

/// Why a call may not run, and which tool it asks for.
pub(crate) enum Shut {
    /// There is no such tool.
    Unknown { tool: String },
    /// The skill does not bring it, but these.
    NotOfSkill { tool: String, skill: String, names: Vec<String> },
    /// Its skill is not loaded.
    NotLoaded { tool: String, skill: String },
    /// Its arguments do not fit.
    Invalid(Box<ToolOutcome>),
    /// The policy does not allow it.
    Refused { tool: String, why: Refused },
}

impl From<Shut> for Blocked {
    fn from(shut: Shut) -> Self {
        match shut {
            Shut::Unknown { .. } | Shut::NotOfSkill { .. } => Self::UnknownTool,
            Shut::NotLoaded { skill, .. } => Self::SkillNotLoaded(skill),
            Shut::Invalid(_) => Self::InvalidArguments,
            Shut::Refused { .. } => Self::NotAllowed,
        }
    }
}

impl Inner {
    /// What a call asks for, if it may run: is the tool there, its skill loaded, and does the
    /// policy allow it?
    pub(crate) fn asked<'a>(
        &'a self,
        call: &'a ToolCall,
        declared: &Declared,
        bound: &BoundTools,
        state: &SessionState,
    ) -> Result<Asked<'a>, Shut> {
        let invalid = |outcome| Shut::Invalid(Box::new(outcome));
        let mut call = as_object(call).map_err(invalid)?;
        if let Some((words, _)) = self.tools.generic().filter(|(it, _)| it.name == call.name) {
            let meant = skill_tool::meant(words, &call).map_err(invalid)?;
            call = Cow::Owned(self.meant(meant, declared, bound, state)?);
        }
        let tool = || call.name.clone();
        let registered = self.tool(bound, state, &call.name);
        let registered = registered.ok_or_else(|| Shut::Unknown { tool: tool() })?;
        let open = gate(&call.name, &registered, declared, state).map_err(|skill| match skill {
            Some(skill) => Shut::NotLoaded { tool: tool(), skill: skill.to_owned() },
            // It waits for a skill that is hidden: nothing of that is said.
            None => Shut::Unknown { tool: tool() },
        })?;
        let asked = Asked { registered, open, call };
        self.check_policy(&asked, &asked.call, state)?;
        Ok(asked)
    }

    /// The call that another one stands for: of a tool that this very skill brings, while it is
    /// loaded, with arguments that fit. Another skill may bring the tool too.
    fn meant(
        &self,
        meant: Meant,
        declared: &Declared,
        bound: &BoundTools,
        state: &SessionState,
    ) -> Result<ToolCall, Shut> {
        let Meant { skill, call } = meant;
        let loaded = state.loaded(&skill);
        let brings = |name: &str, it: &Registered| {
            let opens = || loaded.is_some_and(|loaded| opens(loaded, name, it, declared));
            declared.is_by(name, &skill) || opens()
        };
        let tool = call.name.clone();
        let registered = self.tool(bound, state, &tool).filter(|it| brings(&tool, it));
        let Some(registered) = registered else {
            let all = self.all_tools(bound, state).into_iter();
            let names = all.filter(|(name, it)| brings(name, it)).map(|(name, _)| name).collect();
            return Err(Shut::NotOfSkill { tool, skill, names });
        };
        if loaded.is_none() {
            return Err(Shut::NotLoaded { tool, skill });
        }
        let schema = &registered.tool.declaration().parameters;
        skill_tool::check(&tool, schema, &call.arguments)
            .map_err(|outcome| Shut::Invalid(Box::new(outcome)))?;
        Ok(call)
    }

    /// Whether the policy allows a call with these arguments.
    fn check_policy(
        &self,
        asked: &Asked<'_>,
        call: &ToolCall,
        state: &SessionState,
    ) -> Result<(), Shut> {
        if asked.open == Open::BySkill || self.tools.manages(&call.name) {
            return Ok(());
        }
        let schema = &asked.registered.tool.declaration().parameters;
        let called = Called { tool: &call.name, arguments: &call.arguments, schema };
        let checked = self.settings.policy().check(called, state);
        checked.map_err(|why| Shut::Refused { tool: call.name.clone(), why })
    }
}

impl Batch<'_> {
    /// What a call asks for, if it may run; else what is said of that.
    pub(crate) fn asked<'c>(
        &'c self,
        call: &'c ToolCall,
        state: &SessionState,
    ) -> Result<Asked<'c>, ToolOutcome> {
        let asked = self.inner.asked(call, &self.view.declared, &self.view.bound, state);
        asked.map_err(|shut| self.said(shut, state))
    }

    /// Whether the policy allows other arguments than those that were asked for.
    pub(crate) fn check_again(
        &self,
        asked: &Asked<'_>,
        call: &ToolCall,
        state: &SessionState,
    ) -> Result<(), ToolOutcome> {
        let checked = self.inner.check_policy(asked, call, state);
        checked.map_err(|shut| self.said(shut, state))
    }

    fn said(&self, shut: Shut, state: &SessionState) -> ToolOutcome {
        match shut {
            Shut::Unknown { tool } => {
                let declared = self.inner.declarations(self.view, state);
                let names = declared.iter().map(|it| it.name.as_str());
                let names: Vec<&str> = names.filter(|name| *name != tool).collect();
                unknown_tool(&tool, &names)
            }
            Shut::NotOfSkill { tool, skill, names } => {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                unknown_tool(&tool, &names).about(skill)
            }
            Shut::NotLoaded { tool, skill } => {
                let names = (shown(&tool), shown(&skill));
                let message =
                    format!("Tool '{}' blocked: skill '{}' is not loaded", names.0, names.1);
                let data = json!({"tool": tool, "skill": skill});
                ToolOutcome::failed("skill_not_loaded", data)
                    .about(skill)
                    .with_note(EventKind::ToolBlocked, message)
            }
            Shut::Invalid(outcome) => *outcome,
            Shut::Refused { tool, why } => {
                let message = format!("Tool '{}' blocked by allowed-tools policy", shown(&tool));
                let outcome = match why {
                    Refused::NotAllowed { allowed, skills } => {
                        let data = json!({"tool": tool, "allowed": allowed, "skills": skills});
                        ToolOutcome::failed("tool_not_allowed", data)
                    }
                    Refused::Disallowed { entry, skill } => {
                        let data = json!({"tool": tool, "entry": entry, "skill": skill});
                        ToolOutcome::failed("tool_disallowed", data).about(skill)
                    }
                };
                outcome.with_note(EventKind::ToolBlocked, message)
            }
        }
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
