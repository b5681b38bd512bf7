//! What providers answer, at once and bit by bit.

#![cfg(feature = "providers")]

mod model_support;

use model_support::{Answer, MODELS, Server, asking, folded, folder};
use prowess_agent::{ChatModel, FinishReason, ModelResponse};
use prowess_runtime::{Part, ToolCall, Usage};
use serde_json::{Value, json};

/// Both ways to the same answer.
async fn both(model: &str, fixture: &str) -> [ModelResponse; 2] {
    let at_once = Answer::fixture(&format!("{}/{fixture}", folder(model)));
    let by_bits = Answer::fixture(&format!("{}/{fixture}_stream", folder(model)));
    let server = Server::answering([at_once, by_bits]).await;
    let (provider, request) = (server.model(model), asking("How is the weather?"));
    let whole =
        provider.complete(&request).await.unwrap_or_else(|error| panic!("{model}: {error}"));
    let came = folded(&provider, &request).await.unwrap_or_else(|error| panic!("{model}: {error}"));
    assert_eq!(server.came().len(), 2);
    [whole, came]
}

fn usage() -> Usage {
    let mut usage = Usage::default();
    usage.input_tokens = 2006;
    usage.output_tokens = 300;
    usage.cached_input_tokens = 1900;
    usage
}

#[tokio::test]
async fn a_text_comes_with_what_it_cost() {
    for model in MODELS {
        for response in both(model, "text").await {
            assert_eq!(response.message.text(), "Hello! How can I assist you today?\n", "{model}");
            assert_eq!(response.finish, FinishReason::Stop, "{model}");
            let mut expected = usage();
            if model.starts_with("openai") {
                expected.cached_input_tokens = 1920;
            }
            if model.starts_with("openai") || model.starts_with("gemini") {
                expected.reasoning_tokens = 64;
            }
            assert_eq!(response.usage(), expected, "{model}");
        }
    }
}

/// The answer without ids that differ from time to time.
fn without_ids(mut response: ModelResponse) -> ModelResponse {
    for part in &mut response.message.parts {
        if let Part::ToolCall(call) = part {
            call.id.clear();
        }
    }
    response
}

#[tokio::test]
async fn both_ways_answer_alike() {
    for model in MODELS {
        for fixture in ["text", "calls"] {
            let [whole, came] = both(model, fixture).await.map(without_ids);
            assert_eq!(whole, came, "{model}, {fixture}");
        }
    }
}

#[tokio::test]
async fn parallel_calls_come_whole_and_in_order() {
    for model in MODELS {
        for response in both(model, "calls").await {
            let calls: Vec<&ToolCall> = response.message.tool_calls().collect();
            let arguments: Vec<&Value> = calls.iter().map(|call| &call.arguments).collect();
            let expected =
                [&json!({"location": "Paris, France"}), &json!({"location": "Bogotá, Colombia"})];
            assert_eq!(arguments, expected, "{model}");
            assert!(calls.iter().all(|call| call.name == "get_weather"), "{model}");
            assert_eq!(response.finish, FinishReason::ToolCalls, "{model}");
            if !model.starts_with("openai") {
                assert_eq!(response.message.text(), "I'll check both.", "{model}");
            }
        }
    }
}

#[tokio::test]
async fn every_call_has_an_id_of_its_own_in_every_answer() {
    for model in MODELS {
        let mut ids = std::collections::BTreeSet::new();
        let given = model.starts_with("openai") || model.starts_with("anthropic");
        for _ in 0..2 {
            for response in both(model, "calls").await {
                let fresh: Vec<String> =
                    response.message.tool_calls().map(|call| call.id.clone()).collect();
                assert_eq!(fresh.len(), 2);
                assert_ne!(fresh[0], fresh[1], "{model}");
                assert!(fresh.iter().all(|id| !id.is_empty()));
                ids.extend(fresh);
            }
        }
        // What the provider gives is kept; what it does not give is made up anew.
        assert_eq!(ids.len(), if given { 2 } else { 8 }, "{model}: {ids:?}");
    }
}

#[tokio::test]
async fn thoughts_come_with_their_signature() {
    for response in both("anthropic:claude-sonnet-4-5", "calls").await {
        let Part::Reasoning { text, signature } = &response.message.parts[0] else {
            panic!("{response:?}");
        };
        assert_eq!(text, "Two cities, two calls.");
        let signature = signature.as_deref().unwrap();
        assert!(signature.starts_with("anthropic:EqQBCgIYAhIM1gbcDa9"), "{signature}");
    }
    for response in both("gemini:gemini-2.5-flash", "calls").await {
        let Part::Reasoning { text, signature } = &response.message.parts[1] else {
            panic!("{response:?}");
        };
        assert_eq!(text, "");
        assert!(signature.as_deref().unwrap().starts_with("gemini:CtwFAVSoXO4WSz0"));
    }
    for response in both("ollama:qwen3", "calls").await {
        let thought = Part::Reasoning { text: "Two cities, two calls.".into(), signature: None };
        assert_eq!(response.message.parts[0], thought);
    }
}

#[tokio::test]
async fn arguments_that_are_no_json_come_through_as_text() {
    for response in both("openai:gpt-5", "malformed_call").await {
        let calls: Vec<&ToolCall> = response.message.tool_calls().collect();
        assert_eq!(calls[0].arguments, json!("{\"location\": \"Paris, "));
        assert_eq!(calls[1].arguments, json!({"location": "Bogotá, Colombia"}));
    }
    let server = Server::answering([Answer::fixture("anthropic/malformed_call_stream")]).await;
    let response =
        folded(&server.model("anthropic:claude-sonnet-4-5"), &asking("?")).await.unwrap();
    let calls: Vec<&ToolCall> = response.message.tool_calls().collect();
    assert_eq!(calls[0].arguments, json!("{\"location\": \"Paris, "));
    assert_eq!(response.finish, FinishReason::Length);
}

#[tokio::test]
async fn a_server_that_speaks_like_openai_needs_no_key() {
    let server = Server::answering([Answer::fixture("openai/text")]).await;
    let settings =
        prowess_agent::ProviderSettings::default().with_base_url(format!("{}v1", server.url));
    let model = prowess_agent::ProviderModel::new("openai:qwen3", settings, None).unwrap();
    model.complete(&asking("?")).await.unwrap();
    assert_eq!(server.came()[0].path, "/v1/chat/completions");
    assert_eq!(server.came()[0].body["model"], "qwen3");
}
