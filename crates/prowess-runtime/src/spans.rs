//! The spans of the engine, in the words of OpenTelemetry's conventions for generative AI. They say
//! who did what, and how that ended; what was said, and what tools were given, they do not.
//!
//! Nothing of a span is computed unless somebody listens.

use tracing::Span;
use tracing::field::Empty;

use crate::event::shown;
use crate::message::ToolCall;
use crate::outcome::ToolOutcome;
use crate::session::{AgentName, SessionKey};

/// The calls of one message.
pub(crate) fn step(session: &SessionKey, agent: &AgentName, calls: usize) -> Span {
    tracing::info_span!(
        "prowess.step",
        gen_ai.conversation.id = session.session(),
        gen_ai.agent.name = %agent,
        prowess.step.calls = calls as i64,
    )
}

/// The beginning of a turn.
pub(crate) fn turn(session: &SessionKey, agent: &AgentName) -> Span {
    tracing::info_span!(
        "prowess.turn",
        gen_ai.conversation.id = session.session(),
        gen_ai.agent.name = %agent,
    )
}

/// One call of a tool.
pub(crate) fn call(tool: &str, call: &ToolCall) -> Span {
    tracing::info_span!(
        "prowess.call",
        otel.name = format!("execute_tool {}", shown(tool)),
        otel.kind = "internal",
        otel.status_code = Empty,
        gen_ai.operation.name = "execute_tool",
        gen_ai.tool.name = &*shown(tool),
        gen_ai.tool.call.id = &*shown(&call.id),
        "gen_ai.tool.type" = "function",
        "error.type" = Empty,
    )
}

/// How a call ended.
pub(crate) fn ended(span: &Span, outcome: &ToolOutcome) {
    if outcome.is_error {
        span.record("otel.status_code", "ERROR");
        span.record("error.type", &*outcome.code);
    }
}
