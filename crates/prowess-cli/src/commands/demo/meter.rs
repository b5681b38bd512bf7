//! What the requests of the demo cost.

use prowess_agent::{ModelError, ModelRequest};
use prowess_runtime::{Message, Usage};

use crate::commands::prompt::message_text;
use crate::replay::{Encoder, cached};
use crate::tokens;

/// Counts what is sent and what comes back.
#[derive(Default)]
pub(super) struct Meter {
    encoder: Encoder,
    requests: Vec<Vec<u32>>,
}

impl Meter {
    pub(super) fn usage(
        &mut self,
        request: &ModelRequest,
        reply: &Message,
    ) -> Result<Usage, ModelError> {
        let tools = serde_json::to_string(&request.tools)
            .map_err(|error| ModelError::InvalidRequest { message: error.to_string() })?;
        let sent =
            self.encoder.request(tokens::encode(&tools), request.system.clone(), &request.messages);
        self.requests.push(sent);
        let last = cached(&self.requests).pop().unwrap_or_default();
        let mut usage = Usage::default();
        usage.input_tokens = (last.cached + last.uncached) as u64;
        usage.cached_input_tokens = last.cached as u64;
        usage.output_tokens = tokens::count(&message_text(reply)) as u64;
        Ok(usage)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_is_that_of_the_requests() -> Result<(), ModelError> {
        let mut meter = Meter::default();
        let reply = Message::assistant("Yes.");
        let first = vec![Message::user("word ".repeat(2_000))];
        let second = [first.clone(), vec![Message::user("more")]].concat();
        let mut usage = |messages: &[Message]| {
            let request = ModelRequest::new(messages.iter().cloned()).with_system("Be brief.");
            meter.usage(&request, &reply)
        };
        let sent = |messages: &[Message]| -> usize {
            let messages: usize =
                messages.iter().map(|message| tokens::count(&message_text(message))).sum();
            tokens::count("[]") + tokens::count("Be brief.") + messages
        };
        let one = usage(&first)?;
        assert_eq!((one.input_tokens, one.cached_input_tokens), (sent(&first) as u64, 0));
        let two = usage(&second)?;
        assert_eq!(two.input_tokens, sent(&second) as u64);
        let shared = sent(&first) as u64;
        assert!(two.cached_input_tokens <= shared && two.cached_input_tokens + 128 > shared);
        assert_eq!(two.output_tokens, tokens::count(&message_text(&reply)) as u64);
        Ok(())
    }
}
