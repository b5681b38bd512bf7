//! Stored transcripts keep stubs; what the model sees is expanded from them.

use std::borrow::Cow;

use prowess_catalog::{ContentError, ContentStore};

use crate::message::{Message, Part, ToolCall, ToolResult};

/// What came of expanding a transcript.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Expanded<'a> {
    /// The messages, those with a stub replaced by a copy.
    pub messages: Vec<Cow<'a, Message>>,
    /// The calls whose text is not in the content store any more; their stubs stay.
    pub missing: Vec<String>,
}

/// Replaces stubs by the text that they stand for, where `wanted` says so. The transcript itself
/// stays as it is.
pub fn expand<'a>(
    transcript: &'a [Message],
    content: &dyn ContentStore,
    wanted: impl Fn(&ToolResult) -> bool,
) -> Result<Expanded<'a>, ContentError> {
    let mut missing = Vec::new();
    let mut messages = Vec::with_capacity(transcript.len());
    for message in transcript {
        let is_stub = |result: &ToolResult| result.expansion.is_some() && wanted(result);
        if !message.tool_results().any(is_stub) {
            messages.push(Cow::Borrowed(message));
            continue;
        }
        let mut copy = message.clone();
        for part in &mut copy.parts {
            let Part::ToolResult(result) = part else { continue };
            if !wanted(result) {
                continue;
            }
            let Some(expansion) = &result.expansion else { continue };
            match content.get(&expansion.digest)? {
                Some(bytes) => result.content = String::from_utf8_lossy(&bytes).into_owned(),
                None => missing.push(result.call_id.clone()),
            }
        }
        messages.push(Cow::Owned(copy));
    }
    Ok(Expanded { messages, missing })
}

/// The result of a call, if the transcript has one.
pub fn result_of<'a>(transcript: &'a [Message], call_id: &str) -> Option<&'a ToolResult> {
    transcript.iter().rev().flat_map(Message::tool_results).find(|result| result.call_id == call_id)
}

/// The result of exactly this call: its id, its tool and its arguments.
pub(crate) fn answer_to<'a>(transcript: &'a [Message], call: &ToolCall) -> Option<&'a ToolResult> {
    // Which of the calls with this id it is; all but the first one were refused.
    let place = |message: &Message| {
        let mut same_id = message.tool_calls().filter(|known| known.id == call.id);
        same_id.position(|known| known == call)
    };
    let (asked, place) =
        transcript.iter().enumerate().find_map(|(at, message)| Some((at, place(message)?)))?;
    let results = transcript[asked..].iter().flat_map(Message::tool_results);
    results.filter(|result| result.call_id == call.id).nth(place)
}
