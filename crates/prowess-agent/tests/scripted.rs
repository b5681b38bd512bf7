//! The scripted model.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use prowess_agent::{
    CancellationToken, ChatModel, FinishReason, Fold, ModelError, ModelEvent, ModelRequest,
    ModelResponse, Reply, ScriptedModel,
};
use prowess_runtime::{Message, Part, Role, ToolCall, Usage};
use serde_json::json;

fn asking(text: &str) -> ModelRequest {
    ModelRequest::new([Message::user(text)])
}

async fn folded(
    model: &dyn ChatModel,
    request: &ModelRequest,
) -> Result<ModelResponse, ModelError> {
    let mut fold = Fold::new();
    let mut events = model.stream(request);
    while let Some(event) = events.next().await {
        fold.push(&event?);
    }
    fold.finish()
}

fn replies() -> Vec<Reply> {
    let mut usage = Usage::default();
    usage.input_tokens = 7;
    let parts = vec![
        Part::Reasoning { text: "Hm.".into(), signature: Some("s1".into()) },
        Part::Reasoning { text: "Well.".into(), signature: None },
        Part::Text { text: "I look.".into() },
        Part::ToolCall(ToolCall::new("1", "ls", json!({"path": "/"}))),
        Part::ToolCall(ToolCall::new("2", "ls", json!("{\"path\": "))),
        Part::ToolCall(ToolCall::new("3", "now", json!({}))),
    ];
    vec![
        Reply::text("Hello"),
        Reply::text(""),
        Reply::calls([ToolCall::new("1", "ls", json!({})), ToolCall::new("2", "now", json!({}))]),
        Reply::text_and_calls("Wait.", [ToolCall::new("1", "ls", json!({"a": [1, 2]}))]),
        Reply::response(ModelResponse::new(Message::new(Role::Assistant, parts))).with_usage(usage),
        Reply::response(
            ModelResponse::new(Message::assistant("cut")).with_finish(FinishReason::Length),
        ),
        Reply::chunks(["Hel", "lo"]).with_usage(usage),
        Reply::error(ModelError::RateLimited {
            message: "slow down".into(),
            retry_after: Some(Duration::from_secs(3)),
        }),
        Reply::events([ModelEvent::Text { text: "Hel".into() }]),
        Reply::decide(|request| Reply::text(format!("{}", request.messages.len()))),
    ]
}

#[tokio::test]
async fn both_ways_answer_alike() {
    let (at_once, by_bits) = (ScriptedModel::new(replies()), ScriptedModel::new(replies()));
    let request = asking("?");
    for at in 0..replies().len() + 1 {
        let whole = at_once.complete(&request).await;
        assert_eq!(whole, folded(&by_bits, &request).await, "reply {at}");
    }
}

#[tokio::test]
async fn a_response_is_played_as_it_was_given() {
    for reply in [2, 3, 4, 5] {
        let Some(given) = replies().into_iter().nth(reply) else { panic!("no reply {reply}") };
        let model = ScriptedModel::new([given.clone()]);
        let played = model.complete(&asking("?")).await.unwrap();
        assert!(format!("{given:?}").contains(&format!("{played:?}")), "{given:?}\n{played:?}");
    }
}

#[tokio::test]
async fn replies_come_in_their_order_and_then_end() {
    let model = Arc::new(ScriptedModel::new([Reply::text("one"), Reply::text("two")]).named("two"));
    assert_eq!(model.name(), "two");
    assert_eq!(model.complete(&asking("1")).await.unwrap().message.text(), "one");
    assert_eq!(model.remaining(), 1);
    assert_eq!(folded(&model, &asking("2")).await.unwrap().message.text(), "two");
    let error = model.complete(&asking("3")).await.unwrap_err();
    assert_eq!(error.code(), "unscripted");
    assert!(error.to_string().contains("request 3"), "{error}");
    let asked: Vec<String> = model.requests().iter().map(|it| it.messages[0].text()).collect();
    assert_eq!(asked, ["1", "2", "3"]);
}

#[tokio::test]
async fn a_deciding_model_never_ends_and_may_forget() {
    let model =
        ScriptedModel::deciding(|request| Reply::text(request.messages[0].text().to_uppercase()));
    let model = model.forgetting();
    for _ in 0..5 {
        assert_eq!(model.complete(&asking("a")).await.unwrap().message.text(), "A");
    }
    assert!(model.requests().is_empty());
}

#[tokio::test]
async fn a_broken_stream_gives_what_came_and_then_the_error() {
    let error = ModelError::Server { status: 200, message: "overloaded".into(), retry_after: None };
    let model = ScriptedModel::new([Reply::broken(
        [ModelEvent::Text { text: "Hel".into() }],
        error.clone(),
    )]);
    let request = asking("?");
    let events: Vec<_> = model.stream(&request).collect().await;
    assert_eq!(events, [Ok(ModelEvent::Text { text: "Hel".into() }), Err(error)]);
}

#[tokio::test]
async fn a_delay_ends_when_it_is_cancelled() {
    let cancel = CancellationToken::new();
    let model = ScriptedModel::new([Reply::text("late").after(Duration::from_secs(3600))]);
    let request = asking("?").with_cancel(cancel.clone());
    let (answer, ()) = tokio::join!(model.complete(&request), async { cancel.cancel() });
    assert_eq!(answer, Err(ModelError::Cancelled));
}

#[tokio::test]
async fn a_stream_that_is_cancelled_between_events_says_so_once() {
    let cancel = CancellationToken::new();
    let model = ScriptedModel::new([Reply::chunks(["a", "b", "c"])]);
    let request = asking("?").with_cancel(cancel.clone());
    let mut events = model.stream(&request);
    assert!(matches!(events.next().await, Some(Ok(ModelEvent::Text { .. }))));
    cancel.cancel();
    assert_eq!(events.next().await, Some(Err(ModelError::Cancelled)));
    assert_eq!(events.next().await, None);
}
