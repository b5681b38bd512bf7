//! The spans of agents and models, in the words of OpenTelemetry's conventions for generative AI.
//! What is asked and answered is not in them.

use prowess_runtime::Usage;
use tracing::field::Empty;
use tracing::{Instrument, Span};

use crate::error::AgentError;
use crate::model::{ChatModel, FinishReason, ModelError, ModelResponse};
use crate::outcome::RunOutcome;
use crate::run::Run;

/// A run of an agent.
pub(crate) fn run(run: &Run) -> Span {
    let name = || kind_of(&run.agent.to_string());
    tracing::info_span!(
        "prowess.run",
        otel.name = format!("invoke_agent {}", name()),
        otel.kind = "internal",
        otel.status_code = Empty,
        gen_ai.operation.name = "invoke_agent",
        gen_ai.provider.name = provider_of(run.inner.model.name()),
        gen_ai.request.model = model_of(run.inner.model.name()),
        gen_ai.agent.name = name(),
        gen_ai.agent.id = %run.agent,
        gen_ai.conversation.id = run.session.session(),
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        "error.type" = Empty,
    )
}

/// How a run ended.
pub(crate) fn ran(span: &Span, outcome: &Result<RunOutcome, AgentError>) {
    match outcome {
        Ok(outcome) => used(span, outcome.usage),
        Err(error) => failed(span, error.code()),
    }
}

/// Asks a model, in a span of its own.
pub(crate) async fn asking(
    run: &Run,
    model: &dyn ChatModel,
    work: impl Future<Output = Result<ModelResponse, ModelError>>,
) -> Result<ModelResponse, ModelError> {
    let span = chat(run, model.name());
    let response = work.instrument(span.clone()).await;
    match &response {
        Ok(response) => {
            if let Some(usage) = response.message.usage {
                used(&span, usage);
            }
            span.record("gen_ai.response.finish_reasons", word(&response.finish));
        }
        Err(error) => failed(&span, error.code()),
    }
    response
}

fn chat(run: &Run, model: &str) -> Span {
    tracing::info_span!(
        "prowess.chat",
        otel.name = format!("chat {}", model_of(model)),
        otel.kind = "client",
        otel.status_code = Empty,
        gen_ai.operation.name = "chat",
        gen_ai.provider.name = provider_of(model),
        gen_ai.request.model = model_of(model),
        gen_ai.conversation.id = run.session.session(),
        gen_ai.response.finish_reasons = Empty,
        gen_ai.response.id = Empty,
        gen_ai.response.model = Empty,
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        "error.type" = Empty,
    )
}

fn used(span: &Span, usage: Usage) {
    let number = |tokens: u64| i64::try_from(tokens).unwrap_or(i64::MAX);
    span.record("gen_ai.usage.input_tokens", number(usage.input_tokens));
    span.record("gen_ai.usage.output_tokens", number(usage.output_tokens));
}

fn failed(span: &Span, code: &str) {
    span.record("otel.status_code", "ERROR");
    span.record("error.type", code);
}

/// What a provider calls its answer and its model, if it tells: for the span of the question.
#[cfg(feature = "providers")]
pub(crate) fn told(id: Option<&str>, model: Option<&str>) {
    let span = Span::current();
    if let Some(id) = id {
        span.record("gen_ai.response.id", id);
    }
    if let Some(model) = model {
        span.record("gen_ai.response.model", model);
    }
}

/// Why a model stopped, as the conventions say it.
fn word(finish: &FinishReason) -> &str {
    match finish {
        FinishReason::Stop => "stop",
        FinishReason::ToolCalls => "tool_calls",
        FinishReason::Length => "length",
        FinishReason::ContentFilter => "content_filter",
        FinishReason::Other(word) => word,
    }
}

/// Whose model it is, as the conventions say it.
fn provider_of(model: &str) -> &str {
    match model.split_once(':') {
        Some(("gemini", _)) => "gcp.gemini",
        Some((provider, _)) => provider,
        None => "_OTHER",
    }
}

/// The model, without whose it is.
fn model_of(model: &str) -> &str {
    model.split_once(':').map_or(model, |(_, model)| model)
}

/// What kind of agent it is: its name without what tells sub-agents of one kind apart.
fn kind_of(agent: &str) -> String {
    let parts = agent.split('>').map(|part| part.split_once('~').map_or(part, |(kind, _)| kind));
    parts.collect::<Vec<_>>().join(">")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_apart() {
        for (name, provider, model) in [
            ("openai:gpt-5", "openai", "gpt-5"),
            ("gemini:gemini-3", "gcp.gemini", "gemini-3"),
            ("ollama:qwen3:8b", "ollama", "qwen3:8b"),
            ("scripted", "_OTHER", "scripted"),
        ] {
            assert_eq!((provider_of(name), model_of(name)), (provider, model), "{name}");
        }
    }

    #[test]
    fn sub_agents_of_one_kind_have_one_name() {
        for (name, kind) in [
            ("main", "main"),
            ("main>report~0123abcd", "main>report"),
            ("main>a~0123abcd-2>b~1", "main>a>b"),
        ] {
            assert_eq!(kind_of(name), kind);
        }
    }
}
