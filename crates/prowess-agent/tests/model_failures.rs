//! How providers fail, and what comes of it.

#![cfg(feature = "providers")]

mod model_support;

use std::time::{Duration, Instant};

use futures_util::StreamExt;
use model_support::{Answer, KEY, MODELS, Server, asking, folded, folder};
use prowess_agent::{
    CancellationToken, ChatModel, ModelError, ModelEvent, ProviderModel, ProviderSettings,
    RetryPolicy,
};

fn fixture(model: &str, name: &str) -> Answer {
    Answer::fixture(&format!("{}/{name}", folder(model)))
}

/// The error of both ways, each against a server of its own.
async fn errors(model: &str, answers: &[Answer]) -> Vec<(ModelError, usize)> {
    let mut errors = Vec::new();
    let server = Server::answering(answers.to_vec()).await;
    let error = server.model(model).complete(&asking("?")).await.unwrap_err();
    errors.push((error, server.came().len()));
    let server = Server::answering(answers.to_vec()).await;
    let error = folded(&server.model(model), &asking("?")).await.unwrap_err();
    errors.push((error, server.came().len()));
    errors
}

#[tokio::test]
async fn a_key_that_is_not_taken_is_not_tried_again() {
    for model in MODELS {
        for (error, requests) in errors(model, &[fixture(model, "unauthorized")]).await {
            assert_eq!((error.code(), requests), ("auth", 1), "{model}: {error}");
        }
    }
}

#[tokio::test]
async fn a_conversation_that_is_too_long_is_called_so() {
    for model in MODELS {
        for (error, requests) in errors(model, &[fixture(model, "too_long")]).await {
            assert_eq!((error.code(), requests), ("context_overflow", 1), "{model}: {error}");
        }
    }
}

#[tokio::test]
async fn who_fails_forever_is_asked_so_often_and_no_more() {
    for model in MODELS {
        for (error, requests) in errors(model, &[fixture(model, "failed")]).await {
            assert_eq!((error.code(), requests), ("server", 3), "{model}: {error}");
            assert!(matches!(error, ModelError::Server { status: 500, .. }), "{error:?}");
        }
    }
}

#[tokio::test]
async fn who_fails_once_is_asked_again() {
    for model in MODELS {
        let server = Server::answering([fixture(model, "failed"), fixture(model, "text")]).await;
        assert!(server.model(model).complete(&asking("?")).await.is_ok(), "{model}");
        assert_eq!(server.came().len(), 2);
        let server =
            Server::answering([fixture(model, "failed"), fixture(model, "text_stream")]).await;
        assert!(folded(&server.model(model), &asking("?")).await.is_ok(), "{model}");
        assert_eq!(server.came().len(), 2);
    }
}

#[tokio::test]
async fn who_wants_to_be_left_alone_is_left_alone() {
    for model in MODELS {
        let limited = fixture(model, "rate_limited").with_header("retry-after", "1");
        let server = Server::answering([limited, fixture(model, "text")]).await;
        let began = Instant::now();
        server.model(model).complete(&asking("?")).await.unwrap();
        assert!(began.elapsed() >= Duration::from_secs(1), "{model}: {:?}", began.elapsed());
        assert_eq!(server.came().len(), 2);
    }
}

#[tokio::test]
async fn who_wants_more_time_than_there_is_is_not_asked_again() {
    let limited = fixture("openai:gpt-5", "rate_limited");
    for (header, value, expected) in [
        ("retry-after", "3600", Some(Duration::from_secs(3600))),
        ("retry-after-ms", "900000", Some(Duration::from_secs(900))),
        ("retry-after", "Fri, 31 Dec 1999 23:59:59 GMT", Some(Duration::ZERO)),
        ("retry-after", "soon", None),
    ] {
        let answer = limited.clone().with_header(header, value);
        for (error, requests) in errors("openai:gpt-5", &[answer]).await {
            assert_eq!(error.retry_after(), expected, "{value}");
            let tries =
                if expected.is_some_and(|it| it > Duration::from_secs(300)) { 1 } else { 3 };
            assert_eq!(requests, tries, "{value}");
        }
    }
    let later = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(2);
    let date = later.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
    for (error, _) in errors("openai:gpt-5", &[limited.with_header("retry-after", &date)]).await {
        let wait = error.retry_after().unwrap().as_secs();
        assert!((7000..=7200).contains(&wait), "{date}: {wait}");
    }
}

#[tokio::test]
async fn a_quota_that_is_used_up_does_not_come_back_by_waiting() {
    for (error, requests) in errors("openai:gpt-5", &[fixture("openai:x", "quota")]).await {
        assert_eq!((error.code(), requests), ("invalid_request", 1));
    }
}

#[tokio::test]
async fn a_stream_that_breaks_is_no_answer() {
    for model in MODELS {
        for answer in [
            fixture(model, "text_stream").broken_after(2),
            fixture(model, "text_stream").ended_after(2),
        ] {
            let server = Server::answering([answer]).await;
            let error = folded(&server.model(model), &asking("?")).await.unwrap_err();
            assert_eq!(error.code(), "cut_stream", "{model}: {error}");
            // Something was said already: it is not begun again.
            let said = if model.starts_with("anthropic") { 3 } else { 1 };
            assert_eq!(server.came().len(), said, "{model}");
        }
    }
}

#[tokio::test]
async fn an_answer_that_breaks_is_asked_for_again() {
    let broken = fixture("openai:gpt-5", "text").broken_after(0);
    for (error, requests) in errors("openai:gpt-5", &[broken]).await {
        assert_eq!((error.code(), requests), ("cut_stream", 3), "{error}");
    }
}

#[tokio::test]
async fn an_error_in_a_stream_is_called_by_its_name() {
    let server = Server::answering([fixture("anthropic:x", "overloaded_stream")]).await;
    let model = server.model("anthropic:claude-sonnet-4-5");
    let error = folded(&model, &asking("?")).await.unwrap_err();
    assert_eq!(error.code(), "server");
    assert!(error.to_string().contains("Overloaded"), "{error}");
    assert_eq!(server.came().len(), 3, "nothing was said yet: it is asked again");
}

#[tokio::test]
async fn what_is_no_answer_is_called_so() {
    for (kind, body) in [
        ("text/html", "<html>Welcome to the hotel's network</html>"),
        ("application/json", "{\"choices\": "),
        ("application/json", "{\"choices\": []}"),
        ("application/json", "[]"),
    ] {
        let server = Server::answering([Answer::body(200, kind, body)]).await;
        let error = server.model("openai:gpt-5").complete(&asking("?")).await.unwrap_err();
        assert_eq!(error.code(), "malformed_response", "{body}: {error}");
        assert_eq!(server.came().len(), 1);
    }
    for model in ["anthropic:claude-sonnet-4-5", "gemini:gemini-2.5-flash", "ollama:qwen3"] {
        let server = Server::answering([Answer::body(200, "application/json", "{}")]).await;
        let error = server.model(model).complete(&asking("?")).await.unwrap_err();
        assert_eq!(error.code(), "malformed_response", "{model}: {error}");
    }
}

#[tokio::test]
async fn nobody_waits_longer_than_is_set() {
    let impatient = |settings: ProviderSettings| {
        settings
            .with_response_timeout_ms(100)
            .with_idle_timeout_ms(100)
            .with_retry(RetryPolicy::never())
    };
    for model in MODELS {
        let server = Server::answering([Answer::silence()]).await;
        let provider = server.model_with(model, impatient);
        let began = Instant::now();
        let error = provider.complete(&asking("?")).await.unwrap_err();
        assert_eq!(error.code(), "timeout", "{model}: {error}");
        let error = folded(&provider, &asking("?")).await.unwrap_err();
        assert_eq!(error.code(), "timeout", "{model}: {error}");
        let server = Server::answering([fixture(model, "text_stream").hanging_after(2)]).await;
        let error = folded(&server.model_with(model, impatient), &asking("?")).await.unwrap_err();
        assert_eq!(error.code(), "timeout", "{model}: {error}");
        assert!(began.elapsed() < Duration::from_secs(5));
    }
}

#[tokio::test]
async fn who_is_not_there_cannot_be_reached() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    drop(listener);
    let settings = ProviderSettings::default().with_base_url(url).with_retry(RetryPolicy::never());
    let model = ProviderModel::new("ollama:qwen3", settings, None).unwrap();
    assert_eq!(model.complete(&asking("?")).await.unwrap_err().code(), "network");
    assert_eq!(folded(&model, &asking("?")).await.unwrap_err().code(), "network");
}

#[tokio::test]
async fn who_cancels_hangs_up() {
    for model in MODELS {
        let said = if model.starts_with("anthropic") { 4 } else { 2 };
        let server = Server::answering([fixture(model, "text_stream").hanging_after(said)]).await;
        let provider = server.model(model);
        let cancel = CancellationToken::new();
        let request = asking("?").with_cancel(cancel.clone());
        let mut events = provider.stream(&request);
        let first = events.next().await;
        assert!(matches!(first, Some(Ok(ModelEvent::Text { .. }))), "{model}: {first:?}");
        cancel.cancel();
        let rest: Vec<_> = events.collect().await;
        assert_eq!(rest.last(), Some(&Err(ModelError::Cancelled)), "{model}: {rest:?}");
        server.sees_hang_up().await;

        let server = Server::answering([Answer::silence()]).await;
        let provider = server.model(model);
        let cancel = CancellationToken::new();
        let request = asking("?").with_cancel(cancel.clone());
        let soon = async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            cancel.cancel();
        };
        let (answer, ()) = tokio::join!(provider.complete(&request), soon);
        assert_eq!(answer, Err(ModelError::Cancelled), "{model}");
        server.sees_hang_up().await;
        assert_eq!(provider.complete(&request).await, Err(ModelError::Cancelled));
        assert_eq!(server.came().len(), 1, "who has cancelled does not ask");
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    for model in MODELS {
        let elsewhere = Server::answering([fixture(model, "text")]).await;
        let away = Answer::body(307, "text/plain", "").with_header("location", &elsewhere.url);
        let server = Server::answering([away]).await;
        // The control: a client that follows comes there, with the key.
        let control = reqwest::Client::new();
        let request = control.post(&server.url).header("x-api-key", KEY).body("{}");
        drop(request.send().await);
        assert!(elsewhere.came()[0].head.contains(KEY));
        let error = server.model(model).complete(&asking("?")).await.unwrap_err();
        assert_eq!(error.code(), "invalid_request", "{model}: {error}");
        assert_eq!(elsewhere.came().len(), 1, "{model}");
    }
}

#[tokio::test]
async fn connecting_takes_no_longer_than_is_set() {
    // It takes the connection, and never answers the greeting of TLS.
    let server = Server::answering([fixture("openai:x", "text")]).await;
    let settings = ProviderSettings::default()
        .with_base_url(server.url.replace("http://", "https://"))
        .with_connect_timeout_ms(100)
        .with_retry(RetryPolicy::never());
    let model = ProviderModel::new("openai:gpt-5", settings, None).unwrap();
    let error = model.complete(&asking("?")).await.unwrap_err();
    assert_eq!(error, ModelError::Timeout { message: "nothing came for 100 ms".into() });
    assert_eq!(folded(&model, &asking("?")).await, Err(error));
}

#[tokio::test]
async fn so_much_of_what_a_provider_says_is_kept_and_no_more() {
    for (said, kept) in [(999, 999), (1000, 1000), (1001, 1001), (100_000, 1001)] {
        let answer = Answer::body(400, "text/plain", "é".repeat(said));
        for (error, _) in errors("openai:gpt-5", &[answer]).await {
            let ModelError::InvalidRequest { message } = &error else { panic!("{error:?}") };
            // The last character says that something is cut.
            assert_eq!(message.chars().count(), kept);
            assert_eq!(message.ends_with('…'), said > 1000);
        }
    }
}
