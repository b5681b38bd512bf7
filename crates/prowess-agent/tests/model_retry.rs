//! When a request is made again.

use std::time::Duration;

use futures_util::StreamExt;
use prowess_agent::{
    CancellationToken, ChatModel, ModelError, ModelEvent, ModelRequest, Reply, RetryPolicy,
    RetryingModel, ScriptedModel,
};
use prowess_runtime::Message;

fn network() -> ModelError {
    ModelError::Network { message: "refused".into() }
}

fn limited(seconds: u64) -> ModelError {
    let retry_after = Some(Duration::from_secs(seconds));
    ModelError::RateLimited { message: "slow down".into(), retry_after }
}

fn all() -> Vec<(ModelError, &'static str, bool)> {
    let message = || "m".to_owned();
    vec![
        (ModelError::Auth { message: message() }, "auth", false),
        (limited(1), "rate_limited", true),
        (ModelError::ContextOverflow { message: message() }, "context_overflow", false),
        (ModelError::InvalidRequest { message: message() }, "invalid_request", false),
        (ModelError::Server { status: 500, message: message(), retry_after: None }, "server", true),
        (ModelError::Timeout { message: message() }, "timeout", true),
        (network(), "network", true),
        (ModelError::CutStream { message: message() }, "cut_stream", true),
        (ModelError::MalformedResponse { message: message() }, "malformed_response", false),
        (ModelError::Cancelled, "cancelled", false),
        (ModelError::Unscripted { message: message() }, "unscripted", false),
    ]
}

#[test]
fn codes_are_stable_and_errors_can_be_kept() {
    for (error, code, retryable) in all() {
        assert_eq!((error.code(), error.is_retryable()), (code, retryable));
        let kept = serde_json::to_value(&error).unwrap();
        assert_eq!(kept["code"], code);
        assert_eq!(serde_json::from_value::<ModelError>(kept).unwrap(), error);
    }
}

#[test]
fn delays_double_up_to_a_limit_and_end_with_the_attempts_and_the_deadline() {
    let policy = RetryPolicy::default()
        .with_max_attempts(5)
        .with_first_delay_ms(100)
        .with_max_delay_ms(300)
        .with_deadline_ms(10_000);
    let millis = |ms| Some(Duration::from_millis(ms));
    let at = |ms| Duration::from_millis(ms);
    for (attempts, error, elapsed, jitter, expected) in [
        (1, network(), at(0), 0.0, millis(50)),
        (1, network(), at(0), 1.0, millis(100)),
        (2, network(), at(0), 1.0, millis(200)),
        (3, network(), at(0), 1.0, millis(300)),
        (4, network(), at(0), 1.0, millis(300)),
        (5, network(), at(0), 1.0, None),
        (1, network(), at(9_900), 1.0, millis(100)),
        (1, network(), at(9_901), 1.0, None),
        (1, limited(2), at(0), 0.0, millis(2_050)),
        (1, limited(9), at(900), 1.0, millis(9_100)),
        (1, limited(9), at(901), 1.0, None),
        (1, limited(u64::MAX), at(0), 1.0, None),
        (1, ModelError::Cancelled, at(0), 0.0, None),
    ] {
        let delay = policy.delay(attempts, &error, elapsed, jitter);
        assert_eq!(delay, expected, "{attempts} {error} {elapsed:?} {jitter}");
    }
    let endless = RetryPolicy::default().with_max_attempts(u32::MAX).with_deadline_ms(u64::MAX);
    assert_eq!(endless.delay(1_000, &network(), at(0), 1.0), millis(30_000));
}

#[test]
fn a_policy_has_a_form_in_a_configuration() {
    let policy: RetryPolicy = serde_json::from_str(r#"{"max_attempts": 2}"#).unwrap();
    assert_eq!(policy, RetryPolicy::default().with_max_attempts(2));
    assert!(serde_json::from_str::<RetryPolicy>(r#"{"attempts": 2}"#).is_err());
}

fn request() -> ModelRequest {
    ModelRequest::new([Message::user("?")])
}

#[tokio::test]
async fn a_stream_is_begun_again_only_while_nothing_has_come_of_it() {
    let policy = RetryPolicy::default().with_first_delay_ms(1);
    let said = ModelEvent::Text { text: "Hel".into() };
    let replies = [Reply::error(network()), Reply::broken([said.clone()], network())];
    let model = RetryingModel::new(ScriptedModel::new(replies), policy);
    let request = request();
    let events: Vec<_> = model.stream(&request).collect().await;
    assert_eq!(events, [Ok(said), Err(network())]);
}

#[tokio::test]
async fn a_wait_ends_when_it_is_cancelled() {
    let model = ScriptedModel::new([Reply::error(limited(100)), Reply::text("late")]);
    let model = RetryingModel::new(model, RetryPolicy::default());
    let cancel = CancellationToken::new();
    let request = request().with_cancel(cancel.clone());
    let (answer, ()) = tokio::join!(model.complete(&request), async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        cancel.cancel();
    });
    assert_eq!(answer, Err(ModelError::Cancelled));
}
