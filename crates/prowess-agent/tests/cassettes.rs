//! Recording and playing.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use prowess_agent::{
    CancellationToken, Cassette, CassetteModel, ChatModel, FinishReason, Fold, ModelError,
    ModelEvent, ModelOptions, ModelRequest, ModelResponse, RecordingModel, Reply, ScriptedModel,
};
use prowess_runtime::{Message, ToolCall, ToolDeclaration, Usage};
use serde_json::json;
use tempfile::TempDir;

fn asking(text: &str) -> ModelRequest {
    let tool = ToolDeclaration::new("ls", "Lists files.", json!({"type": "object"}));
    ModelRequest::new([Message::user(text)]).with_system("Be brief.").with_tools(vec![tool])
}

async fn streamed(
    model: &dyn ChatModel,
    request: &ModelRequest,
) -> Vec<Result<ModelEvent, ModelError>> {
    model.stream(request).collect().await
}

fn limited() -> ModelError {
    let retry_after = Some(Duration::from_millis(1500));
    ModelError::RateLimited { message: "slow down".into(), retry_after }
}

fn replies() -> Vec<Reply> {
    let mut usage = Usage::default();
    usage.input_tokens = 12;
    usage.cached_input_tokens = 8;
    vec![
        Reply::text_and_calls(
            "I look.",
            [
                ToolCall::new("1", "ls", json!({"path": "/"})),
                ToolCall::new("2", "ls", json!("{\"path\":")),
            ],
        )
        .with_usage(usage),
        Reply::chunks(["Hel", "lo"]),
        Reply::error(limited()),
        Reply::broken([ModelEvent::Text { text: "Hel".into() }], limited()),
    ]
}

#[tokio::test]
async fn what_was_recorded_is_said_again_both_ways() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("cassette.json");
    let recording = RecordingModel::new(ScriptedModel::new(replies()), &path).unwrap();
    let first = recording.complete(&asking("0")).await;
    let second = streamed(&recording, &asking("1")).await;
    let third = recording.complete(&asking("2")).await;
    let fourth = streamed(&recording, &asking("3")).await;
    assert_eq!(recording.cassette().len(), 4);
    assert_eq!(Cassette::read(&path).unwrap(), recording.cassette());

    let model = CassetteModel::open(&path).unwrap();
    assert_eq!(model.name(), "scripted");
    assert_eq!(model.complete(&asking("0")).await, first);
    assert_eq!(streamed(&model, &asking("1")).await, second);
    assert_eq!(model.complete(&asking("2")).await, third);
    assert_eq!(streamed(&model, &asking("3")).await, fourth);

    // In any order, and the other way.
    let model = CassetteModel::open(&path).unwrap();
    assert_eq!(model.complete(&asking("3")).await, Err(limited()));
    assert_eq!(model.complete(&asking("1")).await.unwrap().message.text(), "Hello");
    let mut fold = Fold::new();
    for event in streamed(&model, &asking("0")).await {
        fold.push(&event.unwrap());
    }
    assert_eq!(fold.finish(), first);
}

#[tokio::test]
async fn the_form_of_a_cassette_is_stable() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("cassette.json");
    let recording = RecordingModel::new(ScriptedModel::new(replies()), &path).unwrap();
    recording.complete(&asking("0")).await.unwrap();
    streamed(&recording, &asking("3")).await;
    insta::assert_snapshot!(fs::read_to_string(&path).unwrap());
    let files: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(files.len(), 1, "nothing is left beside it");
}

#[tokio::test]
async fn what_was_asked_twice_is_answered_twice() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("cassette.json");
    let script = ScriptedModel::new([Reply::text("one"), Reply::text("two")]);
    let recording = RecordingModel::new(script, &path).unwrap();
    for _ in 0..2 {
        recording.complete(&asking("?")).await.unwrap();
    }
    let model = CassetteModel::open(&path).unwrap();
    assert_eq!(model.complete(&asking("?")).await.unwrap().message.text(), "one");
    assert_eq!(model.complete(&asking("?")).await.unwrap().message.text(), "two");
    let error = model.complete(&asking("?")).await.unwrap_err();
    assert_eq!(error.code(), "unscripted");
    insta::assert_snapshot!(error);
}

#[tokio::test]
async fn a_request_that_differs_is_told_where() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("cassette.json");
    let recording = RecordingModel::new(ScriptedModel::new([Reply::text("!")]), &path).unwrap();
    recording.complete(&asking("?")).await.unwrap();
    let mut longer = asking("?");
    Arc::make_mut(&mut longer.messages).push(Message::assistant("!"));
    let told = ToolDeclaration::new("ls", "Lists all files.", json!({"type": "object"}));
    let mut lines = Vec::new();
    for request in [
        asking("What?"),
        asking("?").with_system("Be verbose."),
        asking("?").with_tools(vec![told]),
        asking("?").with_options(ModelOptions::default().with_max_tokens(5)),
        longer,
        asking(&"long ".repeat(100)),
    ] {
        let model = CassetteModel::open(&path).unwrap();
        let error = model.complete(&request).await.unwrap_err();
        assert_eq!(
            streamed(&CassetteModel::open(&path).unwrap(), &request).await,
            [Err(error.clone())]
        );
        lines.push(error.to_string());
    }
    let model = CassetteModel::open(&path).unwrap();
    model.complete(&asking("?")).await.unwrap();
    lines.push(model.complete(&asking("More?")).await.unwrap_err().to_string());
    insta::assert_snapshot!(lines.join("\n"));
}

#[tokio::test]
async fn what_is_not_sent_makes_no_difference() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("cassette.json");
    let recording = RecordingModel::new(ScriptedModel::new([Reply::text("!")]), &path).unwrap();
    recording.complete(&asking("?")).await.unwrap();
    let mut request = asking("?").with_cancel(CancellationToken::new());
    Arc::make_mut(&mut request.messages)[0].usage = Some(Usage::default());
    // Another order of keys in a schema is the same schema.
    let one = json!({"type": "object", "properties": {}});
    let other = json!({"properties": {}, "type": "object"});
    let of = |schema| vec![ToolDeclaration::new("ls", "Lists files.", schema)];
    let model = CassetteModel::open(&path).unwrap();
    assert!(model.complete(&request).await.is_ok());

    let recording = RecordingModel::new(ScriptedModel::new([Reply::text("!")]), &path).unwrap();
    recording.complete(&asking("?").with_tools(of(one))).await.unwrap();
    let model = CassetteModel::open(&path).unwrap();
    assert!(model.complete(&asking("?").with_tools(of(other))).await.is_ok());
}

#[tokio::test]
async fn what_was_cancelled_is_not_recorded_and_cancelling_is_heard() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("cassette.json");
    let script = ScriptedModel::deciding(|_| Reply::chunks(["a", "b"]));
    let recording = RecordingModel::new(script, &path).unwrap();
    let cancel = CancellationToken::new();
    cancel.cancel();
    let cancelled = asking("?").with_cancel(cancel);
    assert_eq!(recording.complete(&cancelled).await, Err(ModelError::Cancelled));
    assert_eq!(streamed(&recording, &cancelled).await, [Err(ModelError::Cancelled)]);
    assert!(recording.cassette().is_empty());
    recording.complete(&asking("?")).await.unwrap();
    let model = CassetteModel::open(&path).unwrap();
    assert_eq!(model.complete(&cancelled).await, Err(ModelError::Cancelled));
    assert!(model.complete(&asking("?")).await.is_ok(), "it is still there");
}

#[test]
fn what_is_no_cassette_is_refused_by_name() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("cassette.json");
    assert_eq!(Cassette::read(&path).unwrap_err().code(), "cassette_unavailable");
    for (text, code) in [
        ("", "cassette_malformed"),
        ("{\"version\": 2, \"reels\": []}", "cassette_version"),
        ("{\"version\": 1}", "cassette_malformed"),
        ("{\"version\": 1, \"model\": \"m\", \"takes\": [], \"more\": 1}", "cassette_malformed"),
    ] {
        fs::write(&path, text).unwrap();
        assert_eq!(Cassette::read(&path).unwrap_err().code(), code, "{text}");
    }
}

#[tokio::test]
async fn a_request_that_was_changed_in_the_file_is_noticed() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("cassette.json");
    let recording = RecordingModel::new(ScriptedModel::new([Reply::text("!")]), &path).unwrap();
    recording.complete(&asking("?")).await.unwrap();
    let text = fs::read_to_string(&path).unwrap().replace("Be brief.", "Be verbose.");
    fs::write(&path, text).unwrap();
    let error = Cassette::read(&path).unwrap_err();
    assert_eq!(error.code(), "cassette_malformed");
    assert!(error.to_string().contains("request 1"), "{error}");
}

#[test]
fn a_response_has_a_form() {
    let response = ModelResponse::new(Message::assistant("!")).with_finish(FinishReason::Length);
    let kept = serde_json::to_value(&response).unwrap();
    assert_eq!(kept["finish"], "length");
    assert_eq!(serde_json::from_value::<ModelResponse>(kept).unwrap(), response);
}
