//! Tools on both sides of the dispatcher: rig calls ours, and ours calls rig's.

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

use prowess_runtime::{
    AgentName, CallLayer, Invocation, Message, NextCall, SessionKey, Step, Tool, ToolCall,
    ToolDeclaration, ToolFuture, ToolOutcome,
};
use rig_agent::tool::RegisteredTool;
use rig_core::effect::{
    EffectKind, FamilyDescriptor, HandlerDescriptor, Outcome, family, tool_key,
};
use rig_core::error::{ErrorKind, ErrorReport};
use rig_core::serve::{Dispatch, ErasedHandler, Reply, Serve, serve_inline_with};
use rig_core::tool::{ToolExecutionError, ToolOutput, ToolResult};

use super::skills::Shared;
use crate::model::arguments_of;

/// What a call was refused for by gate, policy or an interceptor.
const REFUSALS: [&str; 4] =
    ["skill_not_loaded", "tool_not_allowed", "tool_disallowed", "call_denied"];

/// The conversation of a run as the engine knows it, as far as its model sees it.
pub(super) type Seen = Arc<Mutex<Vec<Message>>>;

/// A call that is on its way, and whose it is.
pub(super) struct Ticket {
    pub(super) session: SessionKey,
    pub(super) agent: AgentName,
    /// What rig calls it.
    pub(super) call_id: String,
    pub(super) seen: Seen,
}

/// A tool as rig serves it: every call of a session goes to the dispatcher.
pub(super) struct ServedTool {
    pub(super) declaration: ToolDeclaration,
    pub(super) shared: Arc<Shared>,
    /// The agent had it before it had skills.
    pub(super) own: Option<RegisteredTool>,
}

impl Serve for ServedTool {
    type Family = family::Tool;

    fn descriptor(&self) -> HandlerDescriptor {
        let ToolDeclaration { name, description, parameters, .. } = self.declaration.clone();
        let embedding = self.own.as_ref().and_then(|own| own.embedding().cloned());
        HandlerDescriptor {
            key: tool_key(&name),
            family: FamilyDescriptor::Tool { name, description, parameters, embedding },
            layers: Vec::new(),
        }
    }

    async fn serve(&self, kind: EffectKind, dispatch: Dispatch) -> Reply {
        let ticket = self.shared.take(dispatch.id());
        let EffectKind::ToolCall { name, args } = kind else {
            let message = format!("'{}' is a tool", self.declaration.name);
            return Reply::Outcome(Err(ErrorReport::new(ErrorKind::HandlerUnavailable, message)));
        };
        let result = match (ticket, &self.own) {
            (Some(ticket), _) => self.dispatched(ticket, &args, dispatch.scopes()).await,
            // A run without skills, in which the agent is what it was.
            (None, Some(own)) => {
                let kind = EffectKind::ToolCall { name, args };
                result_of(serve_inline_with(own.handler(), kind, dispatch.scopes()).await)
            }
            (None, None) => ToolResult::failed(ToolExecutionError::refused(format!(
                "Error: Tool '{name}' needs a session, and this run has none."
            ))),
        };
        Reply::Outcome(Ok(Outcome::ToolResult { result }))
    }
}

impl ServedTool {
    async fn dispatched(&self, ticket: Ticket, args: &str, scopes: Vec<Scope>) -> ToolResult {
        let Ticket { session, agent, call_id, seen } = ticket;
        let runtime = &self.shared.runtime;
        let id = match runtime.state(&session, &agent).await {
            // An id names a call once in a session; some models count from zero again.
            Ok(state) => new_id(&call_id, |id| state.has_call(id)),
            Err(error) => return failed(error.code(), &format!("Error: {error}")),
        };
        let call = ToolCall::new(id, &self.declaration.name, arguments_of(args));
        let errand = Errand { scopes, answer: Mutex::default() };
        let transcript = seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let step = Step::new(vec![call]).with_transcript(transcript);
        let layer = ErrandLayer(errand);
        let result = match runtime.dispatch_layered(&session, &agent, step, Some(&layer)).await {
            Ok(result) => result,
            Err(error) => return failed(error.code(), &format!("Error: {error}")),
        };
        seen.lock().unwrap_or_else(PoisonError::into_inner).extend(result.messages.clone());
        let said = result.messages.iter().flat_map(Message::tool_results).next();
        let content = said.map(|said| said.content.as_str()).unwrap_or_default();
        let Some(outcome) = result.outcomes.first() else { return failed("no_call", content) };
        let answer = layer.0.answer.into_inner().unwrap_or_else(PoisonError::into_inner);
        match answer {
            // Nobody has changed it: pictures and data stay what they are.
            Some(answer) if is_same(&answer, outcome, content) => answer,
            _ if outcome.is_error => failed(&outcome.code, content),
            _ => ToolResult::success(ToolOutput::text(content)),
        }
    }
}

/// How the id of a call that was made again ends.
const AGAIN: &str = "~again-";

/// An id that the session does not know.
fn new_id(id: &str, is_known: impl Fn(&str) -> bool) -> String {
    let mut new = id.to_owned();
    let mut number = 1;
    while is_known(&new) {
        number += 1;
        new = format!("{id}{AGAIN}{number}");
    }
    new
}

/// What rig calls a call of the engine.
pub(super) fn rig_id(id: &str) -> &str {
    id.split_once(AGAIN).map_or(id, |(id, _)| id)
}

fn is_same(answer: &ToolResult, outcome: &ToolOutcome, content: &str) -> bool {
    let is_error = answer.is_error() || answer.is_refused();
    is_error == outcome.is_error && answer.output().render() == content
}

fn failed(code: &str, content: &str) -> ToolResult {
    let error = match REFUSALS.contains(&code) {
        true => ToolExecutionError::refused(content),
        false => ToolExecutionError::other(content),
    };
    ToolResult::failed(error.with_code(code))
}

/// What rig brings to a call.
type Scope = Arc<dyn Any + Send + Sync>;

/// What a tool of rig gets of the call that it is made for, and what it answers.
struct Errand {
    scopes: Vec<Scope>,
    answer: Mutex<Option<ToolResult>>,
}

struct ErrandLayer(Errand);

impl CallLayer for ErrandLayer {
    fn call<'a>(&'a self, call: ToolCall, next: NextCall<'a>) -> ToolFuture<'a> {
        next.run(call)
    }

    fn caller(&self) -> Option<&(dyn Any + Send + Sync)> {
        Some(&self.0)
    }
}

/// A tool of rig as one of the engine's host.
struct RigTool {
    declaration: ToolDeclaration,
    handler: ErasedHandler,
}

impl Tool for RigTool {
    fn declaration(&self) -> &ToolDeclaration {
        &self.declaration
    }

    fn call<'a>(&'a self, invocation: Invocation<'a>) -> ToolFuture<'a> {
        Box::pin(async move {
            let errand = invocation.caller::<Errand>();
            let scopes = errand.map(|errand| errand.scopes.clone()).unwrap_or_default();
            let name = self.declaration.name.clone();
            let args = invocation.call.arguments.to_string();
            let kind = EffectKind::ToolCall { name, args };
            let answer = result_of(serve_inline_with(&self.handler, kind, scopes).await);
            let text = answer.output().render();
            let outcome = match answer.error().or(answer.refusal()) {
                None => ToolOutcome::text(text),
                Some(error) => {
                    let code = error.code().unwrap_or(error.kind().as_str()).to_owned();
                    ToolOutcome::error(code, text)
                }
            };
            if let Some(errand) = errand {
                let answers = errand.answer.lock();
                *answers.unwrap_or_else(PoisonError::into_inner) = Some(answer);
            }
            outcome
        })
    }
}

/// A tool of rig as a tool of the engine: so that skills can bring it
/// ([`prowess_runtime::RuntimeBuilder::skill_tool`]), or for any other agent.
///
/// ```
/// use prowess_agent::rig::rig_tool;
/// use rig_core::tool::{DynamicTool, ToolOutput};
/// use serde_json::json;
///
/// let echo = DynamicTool::new("echo".try_into()?, "Says it again.", json!({"type": "object"}), |it| {
///     Box::pin(async move { Ok(ToolOutput::json(it)) })
/// });
/// assert_eq!(rig_tool(echo).declaration().name, "echo");
/// # Ok::<(), rig_core::message::EmptyToolName>(())
/// ```
pub fn rig_tool(tool: rig_core::tool::DynamicTool) -> Arc<dyn Tool> {
    let definition = tool.definition();
    let (_, handler, _) = tool.into_parts();
    let name = definition.name.to_string();
    let declaration = ToolDeclaration::new(name, definition.description, definition.parameters);
    Arc::new(RigTool { declaration, handler })
}

/// A tool that an agent of rig has as a tool of the engine.
pub(super) fn registered_tool(tool: &RegisteredTool) -> Option<Arc<dyn Tool>> {
    let FamilyDescriptor::Tool { name, description, parameters, .. } = tool.descriptor() else {
        return None;
    };
    let declaration = ToolDeclaration::new(name, description, parameters);
    Some(Arc::new(RigTool { declaration, handler: tool.handler().clone() }))
}

fn result_of(outcome: Result<Outcome, ErrorReport>) -> ToolResult {
    match outcome {
        Ok(Outcome::ToolResult { result }) => result,
        Ok(other) => ToolResult::failed(ToolExecutionError::other(format!(
            "the tool answered with a {} outcome",
            other.family()
        ))),
        Err(report) => ToolResult::failed(report.into()),
    }
}
