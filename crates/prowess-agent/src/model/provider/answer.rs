//! Answers in the words of genai, read as events.

use std::collections::VecDeque;

use futures_util::StreamExt;
use genai::chat::{
    ChatResponse, ChatStream, ChatStreamEvent, ContentPart, MessageContent, StopReason, StreamEnd,
    ToolCall, Usage as Tokens,
};
use prowess_runtime::Usage;
use serde_json::Value;
use uuid::Uuid;

use super::ask::{is_redacted, signed};
use super::failure::Failure;
use super::name::Provider;
use super::openai;
use super::quiet::Quiet;
use crate::model::{FinishReason, Fold, ModelError, ModelEvent, ModelResponse};
use crate::spans;

/// An answer that came at once.
pub(super) fn response_of(
    provider: Provider,
    answer: genai::Result<ChatResponse>,
    failure: &Failure<'_>,
) -> Result<ModelResponse, ModelError> {
    let mut events = Events::new(provider);
    // genai trims what OpenAI says, and gives up on arguments that are no JSON.
    let body = match (&answer, provider) {
        (Ok(answer), Provider::OpenAi) => answer.captured_raw_body.as_ref(),
        (Err(genai::Error::ChatResponseGeneration { response_body, .. }), Provider::OpenAi) => {
            Some(&**response_body)
        }
        _ => None,
    };
    match body {
        Some(body) => openai::read(body, &mut events)?,
        None => events.response(answer.map_err(|error| failure.of(error))?),
    }
    let mut fold = Fold::new();
    events.ready.iter().for_each(|event| fold.push(event));
    fold.finish()
}

/// An answer that comes bit by bit.
pub(super) struct Answer {
    stream: Option<Quiet<ChatStream>>,
    failed: Option<ModelError>,
    events: Events,
}

impl Answer {
    pub(super) fn new(provider: Provider, stream: ChatStream) -> Self {
        Self { stream: Some(Quiet(stream)), failed: None, events: Events::new(provider) }
    }

    pub(super) fn failed(error: ModelError) -> Self {
        Self { stream: None, failed: Some(error), events: Events::new(Provider::OpenAi) }
    }

    /// Whether nothing more can come.
    pub(super) fn is_over(&self) -> bool {
        self.stream.is_none() && self.failed.is_none() && self.events.ready.is_empty()
    }

    /// Hangs up.
    pub(super) fn end(&mut self) {
        self.stream = None;
        self.failed = None;
        self.events.ready.clear();
    }

    /// The next event; after an error or the end, nothing.
    pub(super) async fn next(
        &mut self,
        failure: &Failure<'_>,
    ) -> Option<Result<ModelEvent, ModelError>> {
        loop {
            if let Some(event) = self.events.ready.pop_front() {
                return Some(Ok(event));
            }
            if let Some(error) = self.failed.take() {
                self.stream = None;
                return Some(Err(error));
            }
            match self.stream.as_mut()?.next().await {
                Some(Ok(ChatStreamEvent::End(end))) => {
                    self.stream = None;
                    self.failed = self.events.end(end).err();
                }
                Some(Ok(event)) => self.events.push(event),
                Some(Err(error)) => self.failed = Some(failure.of(error)),
                None => self.failed = Some(cut()),
            }
        }
    }
}

fn cut() -> ModelError {
    ModelError::CutStream { message: "the provider hung up before the answer was whole".to_owned() }
}

/// Events that are read and not given yet.
pub(super) struct Events {
    provider: Provider,
    ready: VecDeque<ModelEvent>,
    /// The calls so far: the provider's id, and how much of the arguments is known.
    calls: Vec<(String, usize)>,
    /// A signature that may go on.
    signature: String,
}

impl Events {
    fn new(provider: Provider) -> Self {
        Self { provider, ready: VecDeque::new(), calls: Vec::new(), signature: String::new() }
    }

    fn push(&mut self, event: ChatStreamEvent) {
        match event {
            ChatStreamEvent::Chunk(chunk) => self.text(chunk.content),
            ChatStreamEvent::ReasoningChunk(chunk) => self.reasoning(chunk.content),
            ChatStreamEvent::ThoughtSignatureChunk(chunk) => {
                self.signature.push_str(&chunk.content);
                // Only Anthropic sends signatures in bits.
                if self.provider != Provider::Anthropic {
                    self.sign();
                }
            }
            ChatStreamEvent::ToolCallChunk(chunk) => self.call(chunk.tool_call),
            ChatStreamEvent::Start | ChatStreamEvent::Heartbeat | ChatStreamEvent::End(_) => {}
        }
    }

    fn response(&mut self, answer: ChatResponse) {
        let parts = answer.content.into_parts();
        let among_parts = |part: &ContentPart| matches!(part, ContentPart::ReasoningContent(_));
        if !parts.iter().any(among_parts) {
            self.reasoning(answer.reasoning_content.unwrap_or_default());
        }
        let mut signature = None;
        for part in parts {
            match part {
                ContentPart::Text(text) => self.text(text),
                // Anthropic's stand before their thought; in a stream they end it.
                ContentPart::ThoughtSignature(own) if self.provider == Provider::Anthropic => {
                    signature = Some(own);
                }
                ContentPart::ThoughtSignature(own) => {
                    self.signature.push_str(&own);
                    self.sign();
                }
                ContentPart::ReasoningContent(text) => {
                    self.reasoning(text);
                    self.signature.push_str(&signature.take().unwrap_or_default());
                    self.sign();
                }
                ContentPart::ToolCall(call) => self.call(call),
                ContentPart::Custom(part) => self.custom(&part.data),
                ContentPart::Binary(_) | ContentPart::ToolResponse(_) => {}
            }
        }
        spans::told(
            answer.response_id.as_deref(),
            Some(answer.provider_model_iden.model_name.as_str()),
        );
        let finish = answer.stop_reason.map_or(FinishReason::Stop, finish_of);
        self.finish(finish, usage_of(&answer.usage));
    }

    pub(super) fn text(&mut self, text: String) {
        self.sign();
        if !text.is_empty() {
            self.ready.push_back(ModelEvent::Text { text });
        }
    }

    pub(super) fn reasoning(&mut self, text: String) {
        self.sign();
        if !text.is_empty() {
            self.ready.push_back(ModelEvent::Reasoning { text, signature: None });
        }
    }

    fn custom(&mut self, block: &Value) {
        if is_redacted(block) {
            self.sign();
            self.signature = block.to_string();
            self.sign();
        }
    }

    /// Gives the signature, which is whole now.
    fn sign(&mut self) {
        let own = std::mem::take(&mut self.signature);
        if !own.is_empty() {
            let signature = Some(signed(self.provider, &own));
            self.ready.push_back(ModelEvent::Reasoning { text: String::new(), signature });
        }
    }

    fn call(&mut self, call: ToolCall) {
        match call.fn_arguments {
            // As much of the text as there is.
            Value::String(all) => {
                let known = self.calls.iter().position(|(id, _)| *id == call.call_id);
                match known {
                    Some(index) => {
                        let from = std::mem::replace(&mut self.calls[index].1, all.len());
                        let more = all.get(from..).unwrap_or_default();
                        self.call_bit(index, String::new(), String::new(), more.to_owned());
                    }
                    None => self.new_call(&call.call_id, call.fn_name, all),
                }
            }
            Value::Null => self.new_call(&call.call_id, call.fn_name, "{}".to_owned()),
            whole => self.new_call(&call.call_id, call.fn_name, whole.to_string()),
        }
    }

    pub(super) fn new_call(&mut self, id: &str, name: String, arguments: String) {
        self.calls.push((id.to_owned(), arguments.len()));
        let id = unique(id, &name);
        self.call_bit(self.calls.len() - 1, id, name, arguments);
    }

    fn call_bit(&mut self, index: usize, id: String, name: String, arguments: String) {
        self.sign();
        self.ready.push_back(ModelEvent::ToolCall { index, id, name, arguments });
    }

    /// The end of a stream, as genai tells it; it also tells of one where there was none.
    fn end(&mut self, end: StreamEnd) -> Result<(), ModelError> {
        let untold = match self.provider {
            Provider::Gemini => end.captured_stop_reason.is_none(),
            Provider::Ollama => end.captured_stop_reason.is_none() && end.captured_usage.is_none(),
            Provider::OpenAi | Provider::Anthropic => false,
        };
        if untold {
            return Err(cut());
        }
        for part in end.captured_content.map(MessageContent::into_parts).unwrap_or_default() {
            if let ContentPart::Custom(part) = part {
                self.custom(&part.data);
            }
        }
        spans::told(end.captured_response_id.as_deref(), None);
        let finish = end.captured_stop_reason.map_or(FinishReason::Stop, finish_of);
        self.finish(finish, end.captured_usage.as_ref().and_then(usage_of));
        Ok(())
    }

    pub(super) fn finish(&mut self, finish: FinishReason, usage: Option<Usage>) {
        self.sign();
        // Some say that they have just stopped.
        let finish = match finish {
            FinishReason::Stop if !self.calls.is_empty() => FinishReason::ToolCalls,
            other => other,
        };
        self.ready.push_back(ModelEvent::Finished { finish, usage });
    }
}

/// An id that no other call of the session has. Some providers give none, and genai counts from
/// zero in every answer then.
fn unique(id: &str, name: &str) -> String {
    let counted = |rest: &str| rest.bytes().all(|byte| byte.is_ascii_digit());
    if id.starts_with("call#") {
        // genai knows by these first letters that Gemini has not given it.
        format!("call#{name}#{}", Uuid::now_v7().simple())
    } else if id.is_empty() || id.strip_prefix("call_").is_some_and(counted) {
        format!("call_{}", Uuid::now_v7().simple())
    } else {
        id.to_owned()
    }
}

pub(super) fn finish_of(reason: StopReason) -> FinishReason {
    match reason {
        StopReason::Completed(_) | StopReason::StopSequence(_) => FinishReason::Stop,
        StopReason::ToolCall(_) => FinishReason::ToolCalls,
        StopReason::MaxTokens(_) => FinishReason::Length,
        StopReason::ContentFilter(_) => FinishReason::ContentFilter,
        StopReason::Other(other) => FinishReason::Other(other),
    }
}

pub(super) fn usage_of(tokens: &Tokens) -> Option<Usage> {
    if tokens.prompt_tokens.is_none() && tokens.completion_tokens.is_none() {
        return None;
    }
    let count = |tokens: Option<i32>| u64::try_from(tokens.unwrap_or_default()).unwrap_or_default();
    let mut usage = Usage::default();
    usage.input_tokens = count(tokens.prompt_tokens);
    usage.output_tokens = count(tokens.completion_tokens);
    let sent = tokens.prompt_tokens_details.as_ref();
    usage.cached_input_tokens = count(sent.and_then(|sent| sent.cached_tokens));
    let came = tokens.completion_tokens_details.as_ref();
    usage.reasoning_tokens = count(came.and_then(|came| came.reasoning_tokens));
    Some(usage)
}
