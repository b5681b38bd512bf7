//! Metrics of spans: how long requests and models take, and how many tokens. They count every span,
//! whether its trace is sent or not.

use std::fmt::Debug;
use std::time::Instant;

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Histogram, Meter};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

use crate::trace::REQUEST;

/// The span of a question to a model.
const CHAT: &str = "prowess.chat";
/// Where the conventions say that one class of durations ends and the next begins: of models.
const MODEL_SECONDS: [f64; 14] =
    [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
/// Of tokens.
const TOKENS: [f64; 14] = [
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1024.0,
    4096.0,
    16384.0,
    65536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];
/// Of requests.
const REQUEST_SECONDS: [f64; 14] =
    [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0];

/// What tells the questions to models apart, and what tells requests apart. None of it grows with
/// sessions or users.
const OF_CHAT: [&str; 4] =
    ["gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model", "error.type"];
const OF_REQUEST: [&str; 5] =
    ["http.request.method", "http.route", "http.response.status_code", "url.scheme", "error.type"];

/// Measures spans.
#[derive(Clone)]
pub(super) struct Measures {
    tokens: Histogram<u64>,
    model: Histogram<f64>,
    requests: Histogram<f64>,
}

impl Measures {
    pub(super) fn new(meter: &Meter) -> Self {
        Self {
            tokens: meter
                .u64_histogram("gen_ai.client.token.usage")
                .with_unit("{token}")
                .with_description("Number of input and output tokens used.")
                .with_boundaries(TOKENS.into())
                .build(),
            model: meter
                .f64_histogram("gen_ai.client.operation.duration")
                .with_unit("s")
                .with_description("GenAI operation duration.")
                .with_boundaries(MODEL_SECONDS.into())
                .build(),
            requests: meter
                .f64_histogram("http.server.request.duration")
                .with_unit("s")
                .with_description("Duration of HTTP server requests.")
                .with_boundaries(REQUEST_SECONDS.into())
                .build(),
        }
    }
}

/// What is known of a span that is under way.
struct Measured {
    started: Instant,
    wanted: &'static [&'static str],
    attributes: Vec<KeyValue>,
    /// Sent and received.
    tokens: [Option<u64>; 2],
}

impl Visit for Measured {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if self.wanted.contains(&field.name()) {
            self.attributes.push(KeyValue::new(field.name(), format!("{value:?}")));
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if self.wanted.contains(&field.name()) {
            self.attributes.push(KeyValue::new(field.name(), value.to_owned()));
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        match field.name() {
            "gen_ai.usage.input_tokens" => self.tokens[0] = u64::try_from(value).ok(),
            "gen_ai.usage.output_tokens" => self.tokens[1] = u64::try_from(value).ok(),
            name if self.wanted.contains(&name) => {
                self.attributes.push(KeyValue::new(name, value));
            }
            _ => {}
        }
    }
}

fn wanted(metadata: &Metadata<'_>) -> Option<&'static [&'static str]> {
    match metadata.name() {
        CHAT => Some(&OF_CHAT),
        REQUEST => Some(&OF_REQUEST),
        _ => None,
    }
}

impl<S: Subscriber + for<'span> LookupSpan<'span>> Layer<S> for Measures {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(wanted) = wanted(attributes.metadata()) else { return };
        let Some(span) = context.span(id) else { return };
        let (started, tokens) = (Instant::now(), [None; 2]);
        let mut measured = Measured { started, wanted, attributes: Vec::new(), tokens };
        attributes.record(&mut measured);
        span.extensions_mut().insert(measured);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(measured) = span.extensions_mut().get_mut::<Measured>() {
            values.record(measured);
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(span) = context.span(&id) else { return };
        let Some(measured) = span.extensions_mut().remove::<Measured>() else { return };
        let seconds = measured.started.elapsed().as_secs_f64();
        let mut attributes = measured.attributes;
        if span.name() == REQUEST {
            self.requests.record(seconds, &attributes);
            return;
        }
        self.model.record(seconds, &attributes);
        attributes.retain(|attribute| attribute.key.as_str() != "error.type");
        for (kind, tokens) in ["input", "output"].into_iter().zip(measured.tokens) {
            let Some(tokens) = tokens else { continue };
            attributes.push(KeyValue::new("gen_ai.token.type", kind));
            self.tokens.record(tokens, &attributes);
            attributes.pop();
        }
    }
}
