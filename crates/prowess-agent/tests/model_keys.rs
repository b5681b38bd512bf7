//! A key is seen by its provider and by nobody else.

#![cfg(feature = "providers")]

mod model_support;

use std::io::Write;
use std::sync::{Arc, Mutex};

use futures_util::StreamExt;
use model_support::{Answer, KEY, MODELS, Server, asking, folded, folder};
use prowess_agent::{
    ApiKey, Cassette, ChatModel, ProviderModel, ProviderSettings, RecordingModel, RetryPolicy,
};
use tracing_subscriber::fmt::MakeWriter;

/// What was logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// A provider that repeats the key in what it says about its failures.
async fn repeating(model: &str) -> Server {
    let told = |name: &str| Answer::fixture(&format!("{}/{name}", folder(model)));
    let failed = told("failed").replacing("error", &format!("{KEY} error"));
    let unauthorized = match folder(model) {
        "ollama" => told("unauthorized").replacing("unauthorized", &format!("unauthorized {KEY}")),
        _ => told("unauthorized").replacing("KEY", KEY),
    };
    Server::answering([failed, unauthorized]).await
}

#[tokio::test]
async fn a_key_that_the_provider_repeats_is_in_no_error_and_in_no_log() {
    for model in MODELS {
        // Everything that anybody logs is heard.
        let log = Log::default();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::TRACE)
            .with_writer(log.clone())
            .finish();
        let heard = tracing::subscriber::set_default(subscriber);

        // The control: the library below says it in its error and logs it.
        if folder(model) != "ollama" {
            let server = repeating(model).await;
            let error = control(&server, model).await;
            assert!(error.contains(KEY), "{model}: {error}");
            assert!(log.text().contains(KEY), "{model}: the control logs nothing");
        }
        log.0.lock().unwrap().clear();

        let server = repeating(model).await;
        let provider = server.model(model);
        let mut seen = vec![format!("{provider:?}")];
        for _ in 0..2 {
            let error = provider.complete(&asking("?")).await.unwrap_err();
            seen.extend([format!("{error:?}"), error.to_string()]);
        }
        let server = repeating(model).await;
        let error = folded(&server.model(model), &asking("?")).await.unwrap_err();
        seen.extend([format!("{error:?}"), error.to_string()]);
        for text in &seen {
            assert!(!text.contains(KEY), "{model}: {text}");
        }
        assert!(seen.iter().any(|text| text.contains("[key]")), "{model}: {seen:?}");
        assert!(log.text().contains("asked again"), "{model}: we are heard");
        assert!(!log.text().contains(KEY), "{model}: {}", log.text());
        if folder(model) != "ollama" {
            assert!(server.came()[0].head.contains(KEY), "{model}: the provider has it");
        }
        drop(heard);
    }
}

/// What genai itself says.
async fn control(server: &Server, model: &str) -> String {
    use genai::adapter::AdapterKind;
    use genai::chat::ChatRequest;
    use genai::resolver::{AuthData, Endpoint};
    let kind = match folder(model) {
        "openai" => AdapterKind::OpenAI,
        "anthropic" => AdapterKind::Anthropic,
        _ => AdapterKind::Gemini,
    };
    let target = genai::ServiceTarget {
        endpoint: Endpoint::from_owned(server.url.as_str()),
        auth: AuthData::from_single(KEY),
        model: genai::ModelIden::new(kind, "m"),
    };
    // The provider of cryptography is chosen with the first model.
    drop(ProviderModel::new("ollama:any", ProviderSettings::default(), None));
    let client = genai::Client::new().unwrap();
    let chat = ChatRequest::from_user("?");
    let mut stream = client.exec_chat_stream(target, chat, None).await.unwrap().stream;
    while let Some(event) = stream.next().await {
        if let Err(error) = event {
            return error.to_string();
        }
    }
    String::new()
}

#[tokio::test]
async fn a_key_is_in_no_cassette() {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("cassette.json");
    let server =
        Server::answering([Answer::fixture("openai/unauthorized").replacing("KEY", KEY)]).await;
    let model = RecordingModel::new(server.model("openai:gpt-5"), &path).unwrap();
    let error = model.complete(&asking("?")).await.unwrap_err();
    assert_eq!(error.code(), "auth");
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(!text.contains(KEY), "{text}");
    assert_eq!(Cassette::read(&path).unwrap().len(), 1);
}

#[test]
fn a_key_shows_itself_to_nobody() {
    let key = ApiKey::new(format!(" {KEY}\n"));
    assert_eq!(format!("{key:?} {key:#?}"), "[key] [key]");
    let settings = ProviderSettings::default()
        .with_base_url(format!("http://user:{KEY}@localhost/v1"))
        .with_retry(RetryPolicy::never());
    let error = ProviderModel::new("openai:m", settings, None).unwrap_err();
    assert_eq!(error.code(), "invalid_request");
    assert!(!format!("{error:?}").contains(KEY), "{error:?}");
}

#[test]
fn keys_come_from_the_usual_variables() {
    use prowess_agent::Provider;
    let variables = Provider::ALL.map(|provider| provider.key_variables().join(" "));
    let expected = ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY GOOGLE_API_KEY", ""];
    assert_eq!(variables, expected);
    for provider in Provider::ALL {
        let set = provider.key_variables().iter().any(|name| std::env::var(name).is_ok());
        assert_eq!(ApiKey::of(provider).is_some(), set);
        let built = ProviderModel::from_env(&format!("{}:m", provider.name()));
        match provider {
            Provider::Ollama => assert!(built.is_ok()),
            _ if set => assert!(built.is_ok()),
            _ => {
                let error = built.unwrap_err();
                assert_eq!(error.code(), "auth");
                assert!(error.to_string().contains(provider.key_variables()[0]), "{error}");
            }
        }
    }
}
