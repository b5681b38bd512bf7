//! What providers are sent.

#![cfg(feature = "providers")]

mod model_support;

use model_support::{Answer, MODELS, Server, asking, folder, result, weather};
use prowess_agent::{Cache, ChatModel, ModelOptions, ModelRequest, ReasoningEffort, ToolChoice};
use prowess_runtime::{Message, Part, Role, ToolCall};
use serde_json::{Value, json};

async fn sent(model: &str, request: &ModelRequest) -> Value {
    let server = Server::answering([Answer::fixture(&format!("{}/text", folder(model)))]).await;
    server.model(model).complete(request).await.unwrap_or_else(|error| panic!("{model}: {error}"));
    server.came()[0].body.clone()
}

fn conversation() -> ModelRequest {
    let thought = |text: &str, signature: &str| Part::Reasoning {
        text: text.into(),
        signature: Some(signature.into()),
    };
    let call =
        |id: &str, arguments: Value| Part::ToolCall(ToolCall::new(id, "get_weather", arguments));
    let parts = vec![
        thought("Two cities.", "anthropic:SIGNED"),
        thought("", "anthropic:{\"type\":\"redacted_thinking\",\"data\":\"HIDDEN\"}"),
        thought("", "gemini:SIGNED"),
        Part::Text { text: "I'll check.".into() },
        call("call_1", json!({"location": "Paris"})),
        call("call_2", json!("{\"location\": \"Bog")),
    ];
    ModelRequest::new([
        Message::user("How is the weather in Paris and Bogotá?"),
        Message::new(Role::Assistant, parts),
        result("call_1", "15 °C", false),
        result("call_2", "invalid arguments", true),
        Message::system("The skill 'sql' is gone."),
    ])
    .with_system("Be brief.")
    .with_tools(vec![weather()])
}

#[tokio::test]
async fn a_conversation_is_sent_as_each_provider_wants_it() {
    for model in MODELS {
        let body = sent(model, &conversation()).await;
        let name = format!("conversation_{}", folder(model));
        insta::assert_snapshot!(name, serde_json::to_string_pretty(&body).unwrap());
    }
}

/// Where the marks are.
fn marks(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(entries) => {
            for (key, value) in entries {
                match key.as_str() {
                    "cache_control" => found.push(path.to_owned()),
                    _ => marks(value, &format!("{path}/{key}"), found),
                }
            }
        }
        Value::Array(items) => {
            for (at, value) in items.iter().enumerate() {
                marks(value, &format!("{path}/{at}"), found);
            }
        }
        _ => {}
    }
}

#[tokio::test]
async fn anthropic_is_asked_to_keep_what_will_be_sent_again() {
    for (cache, system, expected) in [
        (Cache::Conversation, "Be brief.", vec!["/system/0", "/messages/0/content/0"]),
        (Cache::Conversation, "", vec!["/tools/0", "/messages/0/content/0"]),
        (Cache::Prefix, "Be brief.", vec!["/system/0"]),
        (Cache::Prefix, "", vec!["/tools/0"]),
        (Cache::Off, "Be brief.", vec![]),
    ] {
        let options = ModelOptions::default().with_cache(cache);
        let request = asking("?").with_system(system).with_options(options);
        for model in MODELS {
            let mut found = Vec::new();
            marks(&sent(model, &request).await, "", &mut found);
            let expected = if model.starts_with("anthropic") { expected.clone() } else { vec![] };
            assert_eq!(found, expected, "{model}, {cache:?}, {system}");
        }
    }
}

#[tokio::test]
async fn options_are_sent_where_they_are_known() {
    let options = ModelOptions::default()
        .with_max_tokens(77)
        .with_temperature(0.5)
        .with_reasoning(ReasoningEffort::High)
        .with_tool_choice(ToolChoice::Tool("get_weather".into()));
    let request = asking("?").with_options(options);
    let body = sent("openai:gpt-5", &request).await;
    assert_eq!(body["max_completion_tokens"], 77);
    assert_eq!(body["temperature"], 0.5);
    assert_eq!(body["reasoning_effort"], "high");
    assert_eq!(body["tool_choice"]["function"]["name"], "get_weather");
    let body = sent("anthropic:claude-sonnet-4-5", &request).await;
    assert_eq!(body["max_tokens"], 77);
    assert_eq!(body["tool_choice"], json!({"type": "tool", "name": "get_weather"}));
    let body = sent("gemini:gemini-2.5-flash", &request).await;
    assert_eq!(body["generationConfig"]["maxOutputTokens"], 77);
    let allowed = &body["toolConfig"]["functionCallingConfig"]["allowedFunctionNames"];
    assert_eq!(allowed, &json!(["get_weather"]));
    let body = sent("ollama:qwen3", &request).await;
    assert_eq!(body["options"]["num_predict"], 77);
    assert_eq!(body["think"], "high");
}

#[tokio::test]
async fn who_may_call_nothing_is_told_so() {
    let options = ModelOptions::default().with_tool_choice(ToolChoice::None);
    let request = asking("?").with_options(options);
    assert_eq!(sent("openai:gpt-5", &request).await["tool_choice"], "none");
    assert_eq!(sent("ollama:qwen3", &request).await.get("tools"), None);
    // A choice among no tools is none.
    let request = ModelRequest::new([Message::user("?")]).with_options(request.options);
    for model in MODELS {
        let body = sent(model, &request).await;
        assert_eq!((body.get("tool_choice"), body.get("toolConfig")), (None, None), "{model}");
    }
}

#[tokio::test]
async fn a_request_extends_the_one_before_it() {
    for model in MODELS {
        let first = conversation().with_options(ModelOptions::default().with_cache(Cache::Off));
        let mut second = first.clone();
        std::sync::Arc::make_mut(&mut second.messages).push(Message::user("And tomorrow?"));
        let [first, second] = [sent(model, &first).await, sent(model, &second).await];
        let key = if model.starts_with("gemini") { "contents" } else { "messages" };
        let (one, two) = (first[key].as_array().unwrap(), second[key].as_array().unwrap());
        assert_eq!(two[..one.len()], one[..], "{model}");
        for (key, value) in first.as_object().unwrap() {
            if !["contents", "messages"].contains(&key.as_str()) {
                assert_eq!(&second[key], value, "{model}: {key}");
            }
        }
    }
}
