//! Requests as cassettes know them.

use std::fmt::Write;

use prowess_format::Digest;
use prowess_runtime::{Message, Part};
use serde_json::{Map, Value, json};

use crate::model::ModelRequest;

/// How much of a value a difference shows, in characters.
const MAX_SHOWN: usize = 80;

/// What a request says, and nothing about it, with sorted keys.
pub(crate) fn asked(request: &ModelRequest) -> Value {
    canonical(json!({
        "system": request.system,
        "messages": request.messages.iter().map(message).collect::<Vec<_>>(),
        "tools": &request.tools[..],
        "options": request.options,
    }))
}

/// A message as it is sent: what it has cost and what it stands for is not sent.
fn message(message: &Message) -> Value {
    let parts = message.parts.iter().map(|part| match part {
        Part::ToolResult(result) => json!({
            "type": "tool_result",
            "call_id": result.call_id,
            "name": result.name,
            "content": result.content,
            "is_error": result.is_error,
        }),
        other => json!(other),
    });
    json!({"role": message.role, "parts": parts.collect::<Vec<_>>()})
}

/// The digest of a canonical value.
pub(crate) fn digest_of(value: &Value) -> Digest {
    Digest::of(canonical(value.clone()).to_string().as_bytes())
}

/// The same value, its keys sorted.
fn canonical(value: Value) -> Value {
    match value {
        Value::Object(entries) => {
            let mut entries: Vec<(String, Value)> =
                entries.into_iter().map(|(key, value)| (key, canonical(value))).collect();
            entries.sort_by(|one, other| one.0.cmp(&other.0));
            Value::Object(Map::from_iter(entries))
        }
        Value::Array(items) => Value::Array(items.into_iter().map(canonical).collect()),
        other => other,
    }
}

/// Where two values begin to differ, and how.
pub(crate) fn first_difference(recorded: &Value, asked: &Value) -> String {
    let mut path = String::new();
    let (recorded, asked) = descend(Some(recorded), Some(asked), &mut path);
    format!("{path} was {}, and is {}", shown(recorded), shown(asked))
}

fn descend<'a>(
    recorded: Option<&'a Value>,
    asked: Option<&'a Value>,
    path: &mut String,
) -> (Option<&'a Value>, Option<&'a Value>) {
    match (recorded, asked) {
        (Some(Value::Object(old)), Some(Value::Object(new))) => {
            let mut keys: Vec<&String> = old.keys().chain(new.keys()).collect();
            keys.sort();
            for key in keys {
                if old.get(key) != new.get(key) {
                    // Writing into a text does not fail.
                    let _ = write!(path, "/{key}");
                    return descend(old.get(key), new.get(key), path);
                }
            }
        }
        (Some(Value::Array(old)), Some(Value::Array(new))) => {
            for at in 0..old.len().max(new.len()) {
                if old.get(at) != new.get(at) {
                    let _ = write!(path, "/{at}");
                    return descend(old.get(at), new.get(at), path);
                }
            }
        }
        _ => {}
    }
    (recorded, asked)
}

fn shown(value: Option<&Value>) -> String {
    let Some(value) = value else { return "not there".to_owned() };
    let text = value.to_string();
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
