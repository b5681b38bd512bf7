//! What the user and the model say in the demo.
//!
//! The words are written beforehand. What the model does is not quite: like any model it looks at
//! what it is sent, and where the text of the skill is gone it loads the skill again.

use std::sync::{Mutex, PoisonError};

use prowess_agent::{ModelError, ModelRequest, ModelResponse, Reply, ScriptedModel};
use prowess_runtime::{Dialect, Message, Part, Role, ToolCall, Usage};
use serde_json::{Map, Value, json};

use super::shop::{DOC, SKILL, telltale};
use crate::commands::prompt::message_text;
use crate::replay::{Encoder, cached};
use crate::tokens;

/// What the user says, a turn each.
pub(super) const TURNS: [&str; 2] = [
    "Order 1042 came in pieces. Please pay it back.",
    "1057 as well: its lid is missing. That was the last refund for today.",
];

/// What the model is told first.
pub(super) const SYSTEM: &str = "You help the staff of a small kitchenware shop.";

/// What the model does in one step.
#[derive(Clone, Copy)]
enum Act {
    Find(u64),
    ReadDoc,
    Pay(u64),
    Propose(u64, &'static str),
    /// If there is something to unload.
    Unload,
    /// Its last word of a turn.
    Answer,
}

/// The steps of all turns.
const STEPS: [(&str, Act); 9] = [
    ("A refund: there is a skill for that.", Act::Find(1042)),
    ("The skill points to a doc. I read only that one.", Act::ReadDoc),
    ("It is not much money. I simply pay it.", Act::Pay(1042)),
    ("Not allowed. Then I propose it, as the skill says.", Act::Propose(1042, "broken")),
    ("Order 1042 is proposed. The shift lead has to agree.", Act::Answer),
    ("The same for the next one.", Act::Find(1057)),
    ("It was paid, so it can be paid back.", Act::Propose(1057, "missing")),
    ("No more refunds: the skill can go.", Act::Unload),
    ("Both are proposed, and nothing is paid yet.", Act::Answer),
];

const LOAD_AGAIN: &str = "The skill's text is gone, so I load it again.";

/// The model of the demo. It tells what a request costs, as a provider does: tokens are counted,
/// and taken from an ideal prefix cache.
pub(super) fn model(dialect: Dialect) -> ScriptedModel {
    let player = Mutex::new(Player { dialect, at: 0, calls: 0, meter: Meter::default() });
    ScriptedModel::deciding(move |request| {
        let mut player = player.lock().unwrap_or_else(PoisonError::into_inner);
        player.reply(request).unwrap_or_else(Reply::error)
    })
}

struct Player {
    dialect: Dialect,
    /// Which step comes next.
    at: usize,
    /// How many calls were made.
    calls: usize,
    meter: Meter,
}

impl Player {
    fn reply(&mut self, request: &ModelRequest) -> Result<Reply, ModelError> {
        let is_there = holds_skill(request);
        let (said, act) = self.next_step(is_there)?;
        let mut parts = Vec::new();
        let mut calls = Vec::new();
        let needs_skill = matches!(act, Act::Find(_) | Act::Pay(_) | Act::Propose(..));
        if needs_skill && !is_there {
            let again = self.calls > 0;
            if again {
                parts.push(Part::Text { text: format!("{LOAD_AGAIN} ") });
            }
            calls.push(self.load(again));
        }
        parts.push(Part::Text { text: said.to_owned() });
        match act {
            Act::Find(order) => calls.push(("find_order".to_owned(), json!({"order": order}))),
            Act::Pay(order) => calls.push(("pay_refund".to_owned(), json!({"order": order}))),
            Act::Propose(order, cause) => {
                let arguments = json!({"order": order, "cause": cause});
                calls.push(("propose_refund".to_owned(), arguments));
            }
            Act::ReadDoc => calls.push(self.read_doc()),
            Act::Unload => calls.extend(self.own("unload_skill", &json!({"skill": SKILL}))),
            Act::Answer => {}
        }
        for (tool, arguments) in calls {
            self.calls += 1;
            let call = ToolCall::new(format!("call-{}", self.calls), tool, arguments);
            parts.push(Part::ToolCall(call));
        }
        let message = Message::new(Role::Assistant, parts);
        let usage = self.meter.usage(request, &message)?;
        Ok(Reply::response(ModelResponse::new(message).with_usage(usage)))
    }

    /// The next step that has something to do.
    fn next_step(&mut self, is_there: bool) -> Result<(&'static str, Act), ModelError> {
        let can_unload = is_there && self.dialect.tool("unload_skill").is_some();
        while let Some(step) = STEPS.get(self.at) {
            self.at += 1;
            if can_unload || !matches!(step.1, Act::Unload) {
                return Ok(*step);
            }
        }
        let message = "the demo has no more steps".to_owned();
        Err(ModelError::Unscripted { message })
    }

    /// A call of a load tool in the words of the dialect; what it has no word for is left out.
    fn own(&self, tool: &str, arguments: &Value) -> Option<(String, Value)> {
        let name = self.dialect.tool(tool)?.to_owned();
        let mut renamed = Map::new();
        for (own, value) in arguments.as_object().into_iter().flatten() {
            if let Some(parameter) = self.dialect.parameter(tool, own) {
                renamed.insert(parameter.to_owned(), value.clone());
            }
        }
        Some((name, Value::Object(renamed)))
    }

    fn load(&self, again: bool) -> (String, Value) {
        let arguments = match again {
            true => json!({"skill": SKILL, "docs": [DOC]}),
            false => json!({"skill": SKILL}),
        };
        // Every dialect has this tool.
        self.own("load_skill", &arguments).unwrap_or_default()
    }

    /// Reads the doc: with the tool for docs, with that for any resource, or with the host's own.
    fn read_doc(&self) -> (String, Value) {
        self.own("skill_select_docs", &json!({"skill": SKILL, "docs": [DOC]}))
            .or_else(|| self.own("load_skill_detail", &json!({"skill": SKILL, "resource": DOC})))
            .unwrap_or_else(|| {
                ("read_file".to_owned(), json!({"file_path": format!("{SKILL}/{DOC}")}))
            })
    }
}

/// Whether the text of the skill is in a request, wherever it stands.
fn holds_skill(request: &ModelRequest) -> bool {
    let mut results = request.messages.iter().flat_map(Message::tool_results);
    request.system.contains(telltale())
        || results.any(|result| result.content.contains(telltale()))
        || request.messages.iter().any(|message| message.text().contains(telltale()))
}

/// Counts what is sent and what comes back.
#[derive(Default)]
struct Meter {
    encoder: Encoder,
    requests: Vec<Vec<u32>>,
}

impl Meter {
    fn usage(&mut self, request: &ModelRequest, reply: &Message) -> Result<Usage, ModelError> {
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

    #[test]
    fn a_skill_is_known_by_a_line_of_its_body() {
        let request = |system: &str| ModelRequest::new([]).with_system(system);
        assert!(telltale().len() > 20, "{}", telltale());
        assert!(holds_skill(&request(&format!("# Refunds\n{}\n", telltale()))));
        assert!(!holds_skill(&request("loaded: refunds")));
    }
}
