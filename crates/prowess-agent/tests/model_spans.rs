//! What the span of a question is told of the answer (S12, 4).
#![cfg(feature = "providers")]

mod model_support;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use model_support::{Answer, Server, asking};
use prowess_agent::ChatModel;
use tracing::field::{Empty, Field, Visit};
use tracing::span::{Id, Record};
use tracing::{Instrument, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

#[derive(Clone, Default)]
struct Told(Arc<Mutex<BTreeMap<&'static str, String>>>);

impl Visit for &Told {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.lock().unwrap().insert(field.name(), format!("{value:?}"));
    }
}

impl<S: Subscriber> Layer<S> for Told {
    fn on_record(&self, _: &Id, values: &Record<'_>, _: Context<'_, S>) {
        values.record(&mut &*self);
    }
}

#[tokio::test]
async fn an_answer_at_once_names_itself_and_its_model() {
    for model in ["openai:gpt-4o", "anthropic:claude-sonnet-4-5"] {
        let told = Told::default();
        let subscriber = tracing_subscriber::registry().with(told.clone());
        let _listening = tracing::subscriber::set_default(subscriber);
        let folder = model_support::folder(model);
        let server = Server::answering([Answer::fixture(&format!("{folder}/text"))]).await;
        let span = tracing::info_span!(
            "question",
            gen_ai.response.id = Empty,
            gen_ai.response.model = Empty
        );
        let request = asking("?");
        server.model(model).complete(&request).instrument(span).await.unwrap();
        let told = told.0.lock().unwrap().clone();
        assert!(told.contains_key("gen_ai.response.model"), "{model}: {told:?}");
        if model.starts_with("openai") {
            assert!(told.contains_key("gen_ai.response.id"), "{model}: {told:?}");
        }
    }
}
