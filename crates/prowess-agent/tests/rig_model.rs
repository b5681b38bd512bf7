//! Models of rig for agents of ours (feature `rig`): nothing is lost on the way.
#![cfg(feature = "rig")]

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use proptest::prelude::*;
use prowess_agent::rig::RigModel;
use prowess_agent::{
    Agent, CancellationToken, ChatModel, FinishReason, Fold, ModelError, ModelOptions,
    ModelRequest, ModelResponse, ReasoningEffort, RunRequest, ToolChoice,
};
use prowess_runtime::{
    Message, Part, Role, ToolCall, ToolDeclaration, ToolOutcome, ToolResult, tool_fn,
};
use rig_core::completion::{FinishReason as Finish, Message as RigMessage, Reasoning, Usage};
use rig_core::message::{
    AssistantContent, CallId, ToolChoice as Choice, ToolFunction, UserContent,
};
use rig_core::test_utils::{MockCompletionModel, MockStreamEvent, MockTurn};
use serde_json::{Value, json};

fn asked(request: &ModelRequest) -> rig_core::completion::CompletionRequest {
    let model = MockCompletionModel::text("Yes.");
    run(RigModel::new(model.clone()).complete(request)).unwrap();
    model.requests().remove(0)
}

fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(work)
}

fn complete(turn: MockTurn) -> Result<ModelResponse, ModelError> {
    let model = RigModel::new(MockCompletionModel::from_turns([turn]));
    run(model.complete(&ModelRequest::new([Message::user("Go.")])))
}

fn streamed(events: Vec<MockStreamEvent>) -> Result<ModelResponse, ModelError> {
    let model = RigModel::new(MockCompletionModel::from_stream_turns([events]));
    let request = ModelRequest::new([Message::user("Go.")]);
    run(async {
        let mut fold = Fold::new();
        let mut stream = model.stream(&request);
        while let Some(event) = stream.next().await {
            fold.push(&event?);
        }
        fold.finish()
    })
}

fn tool() -> ToolDeclaration {
    ToolDeclaration::new("one", "Does it.", json!({"type": "object"}))
}

/// The parts that say something: without what is kept for the provider.
fn said(message: &Message) -> Vec<Part> {
    let mut parts = message.parts.clone();
    for part in &mut parts {
        if let Part::Reasoning { signature, .. } = part {
            *signature = None;
        }
    }
    parts.retain(|part| !matches!(part, Part::Reasoning { text, .. } if text.is_empty()));
    parts
}

/// The turn that a message becomes when its calls are answered.
fn sent(message: &Message) -> Vec<AssistantContent> {
    let results = message.tool_calls().map(|call| ToolResult::new(&call.id, &call.name, "yes"));
    let results: Vec<Message> = results.map(Message::answering).collect();
    let messages = [vec![Message::user("Go."), message.clone()], results].concat();
    let mut asked = asked(&ModelRequest::new(messages).with_tools([tool()]));
    match asked.chat_history.remove(1) {
        RigMessage::Assistant(turn) => turn.content,
        other => panic!("{other:?}"),
    }
}

fn calling(id: &str, name: &str, arguments: Value) -> AssistantContent {
    let function = ToolFunction::new(name.try_into().unwrap(), arguments);
    AssistantContent::ToolCall(rig_core::message::ToolCall::from_wire(id, function))
}

#[test]
fn a_request_keeps_everything_that_is_said() {
    let mut failed = ToolResult::new("b", "two", "no");
    failed.is_error = true;
    let said = Message::new(
        Role::Assistant,
        vec![
            Part::Reasoning { text: "Hm.".into(), signature: None },
            Part::Text { text: "Both.".into() },
            Part::ToolCall(ToolCall::new("a", "one", json!({"x": [1, {"y": null}]}))),
            Part::ToolCall(ToolCall::new("b", "two", json!("{not json"))),
        ],
    );
    let messages = [
        Message::user("Go."),
        said,
        Message::answering(ToolResult::new("a", "one", "yes")),
        Message::answering(failed),
        Message::system("Skills have changed."),
        Message::user("On."),
    ];
    let request = ModelRequest::new(messages).with_system("Be brief.");
    let asked = asked(&request.with_tools([tool()]));
    assert_eq!(asked.system_instructions(), Some("Be brief."));
    let [_, _, RigMessage::Assistant(turn), RigMessage::User { content }] =
        asked.chat_history.as_slice()
    else {
        panic!("{:?}", asked.chat_history)
    };
    // Thoughts that came from somebody else stay with us.
    assert!(matches!(&turn.content[0], AssistantContent::Text(it) if it.text == "Both."));
    let calls: Vec<_> = turn.tool_calls().collect();
    assert_eq!(calls[0].function.arguments_value(), json!({"x": [1, {"y": null}]}));
    assert_eq!(calls[1].function.invalid_arguments.as_deref(), Some("{not json"));
    // rig puts together what one side says; nothing changes its place.
    let told = content.iter().map(|content| match content {
        UserContent::ToolResult(result) => format!("{}, {}", result.call, result.is_error),
        UserContent::Text(text) => text.text.clone(),
        other => panic!("{other:?}"),
    });
    assert_eq!(told.collect::<Vec<_>>(), ["a, false", "b, true", "Skills have changed.", "On."]);
}

#[test]
fn options_and_tools_are_asked_for() {
    let options = ModelOptions::default()
        .with_max_tokens(7)
        .with_temperature(0.5)
        .with_reasoning(ReasoningEffort::High)
        .with_tool_choice(ToolChoice::Tool("one".into()));
    let request = ModelRequest::new([Message::user("Go.")]).with_options(options);
    let with_tools = asked(&request.clone().with_tools([tool()]));
    assert_eq!((with_tools.max_tokens, with_tools.temperature), (Some(7), Some(0.5)));
    assert!(matches!(with_tools.options.reasoning, Some(Reasoning::Effort(_))));
    assert!(matches!(with_tools.tool_choice, Some(Choice::Specific { function_names })
        if function_names == ["one"]));
    assert_eq!(with_tools.tools[0].description, "Does it.");
    // Providers refuse a choice among no tools.
    assert_eq!(asked(&request).tool_choice, None);
}

#[test]
fn an_answer_keeps_its_parts_its_cost_and_its_end() {
    let usage =
        Usage::new().input_tokens(9).output_tokens(5).cached_input_tokens(4).reasoning_tokens(2);
    let turn = MockTurn::from_contents([
        AssistantContent::reasoning("Hm."),
        AssistantContent::text("Both."),
        calling("a", "one", json!({"x": 1})),
        calling("b", "two", json!("{not json")),
    ]);
    let response = complete(turn.with_usage(usage).with_finish_reason(Finish::ToolCalls)).unwrap();
    assert_eq!(response.finish, FinishReason::ToolCalls);
    let usage = response.usage();
    let counted = (
        usage.input_tokens,
        usage.output_tokens,
        usage.cached_input_tokens,
        usage.reasoning_tokens,
    );
    assert_eq!(counted, (9, 5, 4, 2));
    assert_eq!(
        said(&response.message),
        [
            Part::Reasoning { text: "Hm.".into(), signature: None },
            Part::Text { text: "Both.".into() },
            Part::ToolCall(ToolCall::new("a", "one", json!({"x": 1}))),
            Part::ToolCall(ToolCall::new("b", "two", json!("{not json"))),
        ]
    );
}

#[test]
fn ends_are_told_by_their_names() {
    for (finish, expected) in [
        (Finish::Stop, FinishReason::Stop),
        (Finish::Length, FinishReason::Length),
        (Finish::ContentFilter, FinishReason::ContentFilter),
        (Finish::Other("pause".into()), FinishReason::Other("pause".into())),
    ] {
        let turn = MockTurn::text("So.").with_finish_reason(finish);
        assert_eq!(complete(turn).unwrap().finish, expected);
    }
}

#[test]
fn failures_are_told_by_their_names() {
    let status = |code: u16, body: &str| {
        MockTurn::provider_response_error(code.try_into().unwrap(), body, "r-1")
    };
    for (turn, code) in [
        (status(401, "no"), "auth"),
        (status(429, r#"{"error": {"message": "slow down"}}"#), "rate_limited"),
        (status(400, "maximum context length is 8"), "context_overflow"),
        (status(404, "no such model"), "invalid_request"),
        (status(503, "later"), "server"),
        (MockTurn::error("broken"), "server"),
        (MockTurn::request_error("not like this"), "invalid_request"),
    ] {
        let error = complete(turn).unwrap_err();
        assert_eq!(error.code(), code, "{error}");
    }
    let error = complete(status(429, r#"{"error": {"message": "slow down"}}"#)).unwrap_err();
    assert_eq!(error.to_string(), "rate limited: slow down");
}

#[test]
fn a_stream_says_the_same_as_a_whole_answer() {
    let usage = Usage::new().input_tokens(3).output_tokens(2);
    let whole = MockTurn::from_contents([
        AssistantContent::reasoning("Hm, so."),
        AssistantContent::text("Forty-two."),
        calling("a", "one", json!({"x": 1})),
        calling("b", "two", json!({})),
    ]);
    let response = streamed(vec![
        MockStreamEvent::reasoning_delta("Hm, "),
        MockStreamEvent::reasoning_delta("so."),
        MockStreamEvent::text("Forty-"),
        MockStreamEvent::text("two."),
        MockStreamEvent::tool_call("a", "one", json!({"x": 1})),
        MockStreamEvent::tool_call("b", "two", json!({})),
        MockStreamEvent::final_response(usage),
    ]);
    assert_eq!(response.unwrap(), complete(whole.with_usage(usage)).unwrap());
}

#[test]
fn a_stream_that_is_cut_or_fails_is_no_answer() {
    let cut = streamed(vec![MockStreamEvent::text("Forty-")]).unwrap_err();
    assert_eq!(cut.code(), "cut_stream");
    let failed = streamed(vec![MockStreamEvent::text("Forty-"), MockStreamEvent::error("broken")]);
    assert_eq!(failed.unwrap_err().code(), "server");
}

#[test]
fn what_is_cancelled_ends() {
    let cancel = CancellationToken::new();
    cancel.cancel();
    let request = ModelRequest::new([Message::user("Go.")]).with_cancel(cancel);
    let model = RigModel::new(MockCompletionModel::text("Yes."));
    let within = |work| run(async { tokio::time::timeout(Duration::from_secs(5), work).await });
    assert_eq!(within(model.complete(&request)).unwrap(), Err(ModelError::Cancelled));
    let first = run(async { model.stream(&request).next().await });
    assert_eq!(first, Some(Err(ModelError::Cancelled)));
}

#[test]
fn what_a_provider_wants_to_see_again_goes_back_as_long_as_nobody_has_changed_it() {
    let thought = AssistantContent::reasoning("Hm.").with_native(json!({"signature": "abc"}));
    let call = calling("a", "one", json!({})).with_native(json!({"thought_signature": "def"}));
    let given = [thought, call];
    let response = complete(MockTurn::from_contents(given.clone())).unwrap();
    // It is still there after the message was stored and read.
    let stored = serde_json::to_string(&response.message).unwrap();
    let message: Message = serde_json::from_str(&stored).unwrap();
    assert_eq!(sent(&message), given);
    let mut changed = message;
    for part in &mut changed.parts {
        if let Part::ToolCall(call) = part {
            call.id = "z".to_owned();
        }
    }
    let [AssistantContent::ToolCall(call)] = &sent(&changed)[..] else { panic!() };
    assert_eq!((call.id.to_string().as_str(), &call.native), ("z", &None));
}

#[test]
fn a_model_of_rig_drives_the_loop() {
    let end = MockStreamEvent::final_response_with_default_usage;
    let model = MockCompletionModel::from_stream_turns([
        vec![MockStreamEvent::tool_call("1", "now", json!({})), end()],
        vec![MockStreamEvent::text("Half past nine."), end()],
    ]);
    let now = ToolDeclaration::new("now", "The time.", json!({"type": "object"}));
    let agent = Agent::builder(Arc::new(RigModel::new(model.clone())))
        .tool(tool_fn(now, |_| async { ToolOutcome::text("9:30") }))
        .build()
        .unwrap();
    let outcome = run(agent.run(RunRequest::new("a".parse().unwrap(), "When?"))).unwrap();
    assert_eq!(outcome.text(), "Half past nine.");
    let said = serde_json::to_string(&model.requests()[1].chat_history).unwrap();
    assert!(said.contains("9:30"));
}

fn arguments() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!({})),
        any::<i64>().prop_map(|number| json!({"number": number})),
        ".{0,12}".prop_map(|text| json!({"text": text, "more": [text, null, {"a": true}]})),
    ]
}

fn block() -> impl Strategy<Value = AssistantContent> {
    let call = ("[a-z0-9]{1,8}", "[a-z_]{1,8}", arguments());
    prop_oneof![
        "[a-z]\\PC{0,12}".prop_map(AssistantContent::text),
        "[a-z]\\PC{0,12}".prop_map(AssistantContent::reasoning),
        call.prop_map(|(id, name, arguments)| calling(&id, &name, arguments)),
    ]
}

fn turn() -> impl Strategy<Value = Vec<AssistantContent>> {
    prop::collection::vec(block(), 1..6).prop_map(|mut blocks| {
        for (at, block) in blocks.iter_mut().enumerate() {
            if let AssistantContent::ToolCall(call) = block {
                call.id = CallId::from_wire(format!("{}-{at}", call.id));
            }
        }
        blocks
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..Default::default() })]

    /// What a model of rig has said goes back to it as it was said, and is said again the same.
    #[test]
    fn what_is_said_goes_back(turn in turn()) {
        let first = complete(MockTurn::from_contents(turn.clone())).unwrap().message;
        let back = sent(&first);
        if turn.iter().any(|block| matches!(block, AssistantContent::Reasoning(_))) {
            prop_assert_eq!(&back, &turn);
        }
        let second = complete(MockTurn::from_contents(back)).unwrap().message;
        prop_assert_eq!(said(&second), said(&first));
    }
}
