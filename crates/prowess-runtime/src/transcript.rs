//! What a stored transcript knows of calls.

use crate::message::{Message, ToolCall, ToolResult};

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
