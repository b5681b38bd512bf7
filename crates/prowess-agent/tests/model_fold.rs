//! Putting the bits of an answer together.

use proptest::prelude::*;
use prowess_agent::{FinishReason, Fold, ModelEvent, ModelResponse, arguments_of};
use prowess_runtime::{Message, Part, Role, ToolCall, Usage};
use serde_json::{Value, json};

fn part() -> impl Strategy<Value = Part> {
    let text = "[a-zé\"{} ]{1,12}";
    let arguments = prop_oneof![
        Just(json!({})),
        text.prop_map(|text| json!({"path": text, "deep": [1, {"a": null}]})),
        // What is no JSON stays as it is.
        "[a-z]{2,8} \\{".prop_map(Value::String),
    ];
    prop_oneof![
        text.prop_map(|text| Part::Text { text }),
        (text, "[a-z]{1,4}")
            .prop_map(|(text, signature)| Part::Reasoning { text, signature: Some(signature) }),
        ("[a-z]{1,4}", "[a-z]{1,4}", arguments)
            .prop_map(|(id, name, arguments)| Part::ToolCall(ToolCall::new(id, name, arguments))),
    ]
}

/// Two texts in a row are one in a stream.
fn joined(parts: Vec<Part>) -> Vec<Part> {
    let mut joined: Vec<Part> = Vec::new();
    for part in parts {
        match (joined.last_mut(), part) {
            (Some(Part::Text { text: all }), Part::Text { text }) => all.push_str(&text),
            (_, part) => joined.push(part),
        }
    }
    joined
}

/// The same events in smaller bits, cut at characters.
fn in_bits(events: Vec<ModelEvent>) -> Vec<ModelEvent> {
    let mut bits = Vec::new();
    for event in events {
        match event {
            ModelEvent::Text { text } => {
                bits.extend(text.chars().map(|it| ModelEvent::Text { text: it.into() }));
            }
            ModelEvent::Reasoning { text, signature } => {
                let bit = |it: char| ModelEvent::Reasoning { text: it.into(), signature: None };
                bits.extend(text.chars().map(bit));
                bits.push(ModelEvent::Reasoning { text: String::new(), signature });
            }
            ModelEvent::ToolCall { index, id, name, arguments } => {
                let empty = String::new;
                bits.push(ModelEvent::ToolCall { index, id, name, arguments: empty() });
                bits.extend(arguments.chars().map(|it| ModelEvent::ToolCall {
                    index,
                    id: empty(),
                    name: empty(),
                    arguments: it.into(),
                }));
            }
            other => bits.push(other),
        }
    }
    bits
}

proptest! {
    #[test]
    fn whatever_the_bits_are_the_answer_is_the_same(
        parts in prop::collection::vec(part(), 0..8), tokens in 0..1000_u64,
    ) {
        let mut usage = Usage::default();
        usage.output_tokens = tokens;
        let message = Message::new(Role::Assistant, joined(parts));
        let response = ModelResponse::new(message).with_usage(usage);
        for events in [response.clone().into_events(), in_bits(response.clone().into_events())] {
            let mut fold = Fold::new();
            events.iter().for_each(|event| fold.push(event));
            prop_assert_eq!(fold.finish().unwrap(), response.clone());
        }
    }
}

#[test]
fn an_answer_without_an_end_is_none_and_nothing_counts_after_the_end() {
    let mut fold = Fold::new();
    assert!(fold.is_empty());
    fold.push(&ModelEvent::Text { text: "Hel".into() });
    assert_eq!(fold.text(), "Hel");
    assert_eq!(fold.clone().finish().unwrap_err().code(), "cut_stream");
    fold.push(&ModelEvent::Finished { finish: FinishReason::Stop, usage: None });
    fold.push(&ModelEvent::Text { text: "lo".into() });
    assert_eq!(fold.finish().unwrap().message.text(), "Hel");
}

#[test]
fn arguments_are_json_or_the_text_itself() {
    for (text, expected) in [
        ("", json!({})),
        (" \n", json!({})),
        ("{\"a\": 1}", json!({"a": 1})),
        ("[1]", json!([1])),
        ("{\"a\": ", json!("{\"a\": ")),
        ("{\"a\": 1} and more", json!("{\"a\": 1} and more")),
    ] {
        assert_eq!(arguments_of(text), expected, "{text}");
    }
    let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
    assert_eq!(arguments_of(&deep), Value::String(deep.clone()), "too deep to be read");
}
