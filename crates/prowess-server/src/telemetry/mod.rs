//! Traces and metrics to whoever collects them: OpenTelemetry, by OTLP over HTTP.
//!
//! The engine knows nothing of it. It makes spans of `tracing` and commits events; a [`Telemetry`]
//! is a layer of a subscriber that hears the ones, and a sink that hears the others. What models
//! say, what tools are given and what they answer is in neither.

mod deliver;
mod measure;
mod queue;
mod sampling;
mod settings;
mod usage;

use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::metrics::MeterProvider;
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{
    MetricExporter, Protocol, SpanExporter, WithExportConfig, WithHttpConfig,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::{PeriodicReader, SdkMeterProvider};
use opentelemetry_sdk::trace::{SdkTracerProvider, SpanExporter as _};
use prowess_runtime::EventSink;
use tokio::runtime::Runtime;
use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::FilterFn;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;

pub use settings::{InvalidTelemetrySettings, TelemetrySettings};

use deliver::{Delivering, Health};
use measure::Measures;
use queue::Queue;
use usage::Usage;

/// Who made it, in the words of OpenTelemetry.
const SCOPE: &str = "prowess";

/// Sends spans and metrics, on a thread of its own. Nobody waits for it: what cannot be sent is
/// dropped, counted and told of once.
///
/// ```
/// use prowess_server::telemetry::{Telemetry, TelemetrySettings};
///
/// // Nothing is sent unless somebody says where to.
/// assert!(Telemetry::start(&TelemetrySettings::default()).unwrap().is_none());
/// ```
pub struct Telemetry {
    tracer: Option<SdkTracerProvider>,
    meter: Option<SdkMeterProvider>,
    queue: Option<Queue>,
    measures: Option<Measures>,
    sink: Arc<dyn EventSink>,
    health: Arc<Health>,
    runtime: Runtime,
    patience: Duration,
}

/// What became of spans and metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Delivered {
    /// Spans that were not sent: the queue was full, the collector did not take them, or the time
    /// was over.
    pub dropped_spans: u64,
    /// Whether the last attempt to send metrics failed, or was not over in time.
    pub lost_metrics: bool,
}

impl Telemetry {
    /// Begins to send, if the settings say where to.
    pub fn start(settings: &TelemetrySettings) -> Result<Option<Self>, InvalidTelemetrySettings> {
        let (traces, metrics) = (settings.traces_endpoint()?, settings.metrics_endpoint()?);
        if traces.is_none() && metrics.is_none() {
            return Ok(None);
        }
        if rustls::crypto::CryptoProvider::get_default().is_none() {
            drop(rustls::crypto::ring::default_provider().install_default());
        }
        let failed = |cause: String| InvalidTelemetrySettings::new("otlp_endpoint", cause);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("prowess-telemetry")
            .enable_all()
            .build()
            .map_err(|error| failed(error.to_string()))?;
        // Secrets go where they were meant to go, and no further.
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(settings.timeout())
            .user_agent(concat!("prowess/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|_| failed("the HTTP client cannot be set up".to_owned()))?;
        let (resource, health) = (resource(settings), Arc::new(Health::default()));
        let (mut tracer, mut queue) = (None, None);
        if let Some(endpoint) = traces {
            let mut exporter = SpanExporter::builder()
                .with_http()
                .with_http_client(client.clone())
                .with_endpoint(endpoint)
                .with_protocol(Protocol::HttpBinary)
                .with_timeout(settings.timeout())
                .build()
                .map_err(|error| failed(error.to_string()))?;
            exporter.set_resource(&resource);
            let waiting = Queue::start(runtime.handle(), exporter, settings, Arc::clone(&health));
            let provider = SdkTracerProvider::builder()
                .with_resource(resource.clone())
                .with_sampler(settings.sampler()?)
                .with_span_processor(waiting.clone())
                .build();
            (tracer, queue) = (Some(provider), Some(waiting));
        }
        let mut meter = None;
        if let Some(endpoint) = metrics {
            let exporter = MetricExporter::builder()
                .with_http()
                .with_http_client(client)
                .with_endpoint(endpoint)
                .with_protocol(Protocol::HttpBinary)
                .with_timeout(settings.timeout())
                .build()
                .map_err(|error| failed(error.to_string()))?;
            let handle = runtime.handle().clone();
            let exporter = Delivering::new(exporter, handle, Arc::clone(&health));
            let reader =
                PeriodicReader::builder(exporter).with_interval(settings.metric_interval()).build();
            let provider = SdkMeterProvider::builder().with_resource(resource).with_reader(reader);
            meter = Some(provider.build());
        }
        let measured = meter.as_ref().map(|meter| meter.meter(SCOPE));
        let sink: Arc<dyn EventSink> = match &measured {
            Some(meter) => Arc::new(Usage::new(meter)),
            None => Arc::new(|_: &prowess_runtime::SessionKey, _: &prowess_runtime::Event| ()),
        };
        Ok(Some(Self {
            tracer,
            meter,
            queue,
            measures: measured.as_ref().map(Measures::new),
            sink,
            health,
            runtime,
            patience: settings.shutdown_time(),
        }))
    }

    /// Hears the spans of Prowess, for a subscriber. Events of the log are not sent.
    pub fn layer<S>(&self) -> impl Layer<S> + use<S>
    where
        S: Subscriber + for<'span> LookupSpan<'span> + Send + Sync,
    {
        let spans = self.tracer.as_ref().map(|provider| {
            tracing_opentelemetry::layer()
                .with_tracer(provider.tracer(SCOPE))
                .with_location(false)
                .with_threads(false)
                .with_target(false)
                .with_level(false)
                .with_tracked_inactivity(false)
        });
        Layer::and_then(spans, self.measures.clone()).with_filter(of_prowess())
    }

    /// Becomes the subscriber of this process, beside a log. That there is one already is said.
    pub fn install<L>(&self, log: L) -> Result<(), tracing_subscriber::util::TryInitError>
    where
        L: Layer<tracing_subscriber::Registry> + Send + Sync,
    {
        tracing_subscriber::registry().with(log).with(self.layer()).try_init()
    }

    /// Hears what the engine commits: give it to an engine.
    pub fn sink(&self) -> Arc<dyn EventSink> {
        Arc::clone(&self.sink)
    }

    /// Sends what is left, as long as that does not take longer than it may.
    pub fn end(self) -> Delivered {
        let Self { tracer, meter, queue, health, runtime, patience, .. } = self;
        let (done, is_done) = sync_channel(1);
        let waiting = queue.clone();
        // The last metrics are sent by whoever asks for them, however long that takes.
        let sending = std::thread::Builder::new().name("prowess-telemetry-end".to_owned());
        let sending = sending.spawn(move || {
            let spans = waiting.map(|queue| queue.end());
            let metrics = meter.map(|meter| meter.shutdown());
            if let Some(spans) = spans {
                // Whoever was to answer is gone: so are the spans.
                let _ = spans.recv();
            }
            let _ = done.send(metrics.is_none_or(|sent| sent.is_ok()));
        });
        let sent = sending.ok().and_then(|_| is_done.recv_timeout(patience).ok());
        runtime.shutdown_background();
        drop(tracer);
        let dropped_spans = health.dropped() + queue.map_or(0, |queue| queue.left());
        Delivered { dropped_spans, lost_metrics: sent != Some(true) }
    }
}

impl std::fmt::Debug for Telemetry {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Telemetry").finish_non_exhaustive()
    }
}

/// Only spans, and only ours: what others write down was not written for others.
fn of_prowess() -> FilterFn {
    let is_ours = |metadata: &tracing::Metadata<'_>| {
        metadata.is_span() && metadata.target().starts_with("prowess")
    };
    FilterFn::new(is_ours as fn(&tracing::Metadata<'_>) -> bool)
        .with_max_level_hint(LevelFilter::DEBUG)
}

/// Which of several instances sends.
const INSTANCE: &str = "service.instance.id";

/// Who sends: what the environment says, or else the settings. Every process has an id of its own,
/// unless the environment gives it one.
fn resource(settings: &TelemetrySettings) -> Resource {
    let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
    let mut builder = Resource::builder().with_attribute(version);
    if Resource::builder().build().get(&INSTANCE.into()).is_none() {
        let id = uuid::Uuid::now_v7().to_string();
        builder = builder.with_attribute(KeyValue::new(INSTANCE, id));
    }
    match &settings.service_name {
        Some(name) => builder.with_service_name(name.clone()).build(),
        None => builder.build(),
    }
}
