//! What can be set for telemetry: in `prowess.toml`, and by the variables that OpenTelemetry has.

use std::time::Duration;

use opentelemetry_sdk::trace::Sampler;
use serde::{Deserialize, Serialize};
use url::Url;

use super::sampling::{self, Sampling};

/// The section `[telemetry]` of `prowess.toml`. Without an endpoint nothing is sent.
///
/// ```toml
/// [telemetry]
/// # otlp_endpoint = "http://127.0.0.1:4318"  # OTLP over HTTP; /v1/traces and /v1/metrics are below it
/// # service_name = "prowess"
/// sample_ratio = 1.0           # of traces that begin here; who calls decides for its own
/// queue_spans = 2048           # that wait to be sent; what comes then is dropped and counted
/// batch_spans = 512            # in one request to the collector
/// span_delay_ms = 5000         # how long spans wait for others
/// metric_interval_ms = 60000
/// timeout_ms = 10000           # of one request to the collector, with all its attempts
/// shutdown_ms = 5000           # how long the end waits for what is left
/// ```
///
/// Variables count more than the file: see [`TelemetrySettings::with_environment`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct TelemetrySettings {
    /// Where the collector is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub otlp_endpoint: Option<String>,
    /// Who sends; `prowess` if nobody says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_name: Option<String>,
    /// How many of the traces that begin here are sent, from 0 to 1.
    pub sample_ratio: f64,
    /// How many spans wait at most.
    pub queue_spans: usize,
    /// How many spans are sent at once.
    pub batch_spans: usize,
    /// How long spans wait for others.
    pub span_delay_ms: u64,
    /// How often metrics are sent.
    pub metric_interval_ms: u64,
    /// How long sending may take.
    pub timeout_ms: u64,
    /// How long the end may take.
    pub shutdown_ms: u64,
    #[serde(skip)]
    from_environment: FromEnvironment,
}

/// What only variables say.
#[derive(Clone, Debug, Default, PartialEq)]
struct FromEnvironment {
    is_disabled: bool,
    sampling: Option<Sampling>,
    traces: Signal,
    metrics: Signal,
}

/// Where one kind of data is sent.
#[derive(Clone, Debug, Default, PartialEq)]
enum Signal {
    /// Where all of it is.
    #[default]
    AsTheRest,
    /// Exactly there.
    At(String),
    Off,
}

impl Default for TelemetrySettings {
    fn default() -> Self {
        Self {
            otlp_endpoint: None,
            service_name: None,
            sample_ratio: 1.0,
            queue_spans: 2048,
            batch_spans: 512,
            span_delay_ms: 5000,
            metric_interval_ms: 60_000,
            timeout_ms: 10_000,
            shutdown_ms: 5000,
            from_environment: FromEnvironment::default(),
        }
    }
}

/// Why telemetry cannot begin. It holds no headers.
#[derive(Debug, thiserror::Error)]
#[error("[telemetry]: {key}: {cause}")]
pub struct InvalidTelemetrySettings {
    key: String,
    cause: String,
}

impl InvalidTelemetrySettings {
    pub(super) fn new(key: impl Into<String>, cause: impl Into<String>) -> Self {
        Self { key: key.into(), cause: cause.into() }
    }

    /// The stable name of the error.
    pub fn code(&self) -> &'static str {
        "invalid_telemetry_settings"
    }
}

type Result<T> = std::result::Result<T, InvalidTelemetrySettings>;

/// What variables begin with that say where to send to, and what.
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

impl TelemetrySettings {
    /// The section as it is written in a file. Unknown keys are errors, and so are limits that
    /// leave nothing.
    pub fn from_table(table: toml::Table) -> Result<Self> {
        let settings: Self = table.try_into().map_err(|error: toml::de::Error| {
            InvalidTelemetrySettings::new("prowess.toml", error.to_string())
        })?;
        settings.check()?;
        Ok(settings)
    }

    /// With what variables say, which counts more: `OTEL_SDK_DISABLED`,
    /// `OTEL_EXPORTER_OTLP_ENDPOINT` and `…_TRACES_ENDPOINT`, `…_METRICS_ENDPOINT`,
    /// `OTEL_EXPORTER_OTLP_PROTOCOL` (only `http/protobuf` where something is sent), `OTEL_EXPORTER_OTLP_TIMEOUT`,
    /// `OTEL_TRACES_EXPORTER` and `OTEL_METRICS_EXPORTER` (`otlp` or `none`),
    /// `OTEL_TRACES_SAMPLER` and `OTEL_TRACES_SAMPLER_ARG`, `OTEL_BSP_MAX_QUEUE_SIZE`,
    /// `OTEL_BSP_MAX_EXPORT_BATCH_SIZE`, `OTEL_BSP_SCHEDULE_DELAY`,
    /// `OTEL_METRIC_EXPORT_INTERVAL`, `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES`, and
    /// `OTEL_EXPORTER_OTLP_HEADERS`, which is checked here and read when data is sent.
    pub fn with_environment(mut self, variable: impl Fn(&str) -> Option<String>) -> Result<Self> {
        let variable = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        if let Some(word) = variable("OTEL_SDK_DISABLED") {
            self.from_environment.is_disabled = word.eq_ignore_ascii_case("true");
        }
        if let Some(endpoint) = variable(ENDPOINT) {
            check_url(ENDPOINT, &endpoint)?;
            self.otlp_endpoint = Some(endpoint);
        }
        for signal in ["TRACES", "METRICS"] {
            let key = format!("OTEL_EXPORTER_OTLP_{signal}_ENDPOINT");
            let own = match variable(&key) {
                Some(endpoint) => {
                    check_url(&key, &endpoint)?;
                    Signal::At(endpoint)
                }
                None => Signal::AsTheRest,
            };
            let key = format!("OTEL_{signal}_EXPORTER");
            let own = match variable(&key).as_deref() {
                None | Some("otlp") => own,
                Some("none") => Signal::Off,
                Some(_) => return Err(invalid(key, "only otlp and none are known")),
            };
            match signal {
                "TRACES" => self.from_environment.traces = own,
                _ => self.from_environment.metrics = own,
            }
        }
        for (signal, endpoint) in
            [("TRACES", self.traces_endpoint()?), ("METRICS", self.metrics_endpoint()?)]
        {
            // The signal's own one counts more, and none counts where nothing is sent.
            let own = format!("OTEL_EXPORTER_OTLP_{signal}_PROTOCOL");
            let key = match variable(&own) {
                Some(_) => own,
                None => "OTEL_EXPORTER_OTLP_PROTOCOL".to_owned(),
            };
            let is_other = variable(&key).is_some_and(|word| word.trim() != "http/protobuf");
            if endpoint.is_some() && is_other {
                return Err(invalid(key, "only http/protobuf is spoken; leave it out"));
            }
        }
        for part in ["", "TRACES_", "METRICS_"] {
            let key = format!("OTEL_EXPORTER_OTLP_{part}HEADERS");
            if let Some(headers) = variable(&key) {
                check_headers(&key, &headers)?;
            }
        }
        let sampler = variable("OTEL_TRACES_SAMPLER");
        self.from_environment.sampling =
            sampling::named(sampler.as_deref(), variable("OTEL_TRACES_SAMPLER_ARG").as_deref())?;
        let number = |key: &str, to: &mut u64| -> Result<()> {
            if let Some(text) = variable(key) {
                let read = text.trim().parse().map_err(|_| invalid(key, "it must be a number"));
                *to = read?;
            }
            Ok(())
        };
        number("OTEL_EXPORTER_OTLP_TIMEOUT", &mut self.timeout_ms)?;
        number("OTEL_BSP_SCHEDULE_DELAY", &mut self.span_delay_ms)?;
        number("OTEL_METRIC_EXPORT_INTERVAL", &mut self.metric_interval_ms)?;
        let mut counts = [self.queue_spans as u64, self.batch_spans as u64];
        number("OTEL_BSP_MAX_QUEUE_SIZE", &mut counts[0])?;
        number("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", &mut counts[1])?;
        let [queue, batch] = counts.map(|count| usize::try_from(count).unwrap_or(usize::MAX));
        (self.queue_spans, self.batch_spans) = (queue, batch);
        let resource = variable("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default();
        let is_named = resource.split(',').any(|pair| pair.trim().starts_with("service.name="));
        self.service_name = match variable("OTEL_SERVICE_NAME") {
            Some(name) => Some(name),
            // Whoever makes the resource reads it there.
            None if is_named => None,
            None => self.service_name.or_else(|| Some("prowess".to_owned())),
        };
        self.check()?;
        Ok(self)
    }

    fn check(&self) -> Result<()> {
        /// More spans than that are no queue but a leak.
        const MOST_SPANS: usize = 1 << 20;
        let limits = [
            ("queue_spans", self.queue_spans as u64),
            ("batch_spans", self.batch_spans as u64),
            ("span_delay_ms", self.span_delay_ms),
            ("metric_interval_ms", self.metric_interval_ms),
            ("timeout_ms", self.timeout_ms),
            ("shutdown_ms", self.shutdown_ms),
        ];
        for (key, limit) in limits {
            if limit == 0 {
                return Err(invalid(key, "it must be at least 1; leave it out for its default"));
            }
        }
        if self.queue_spans > MOST_SPANS {
            return Err(invalid("queue_spans", format!("it is at most {MOST_SPANS}")));
        }
        if self.batch_spans > self.queue_spans {
            return Err(invalid("batch_spans", "it is at most queue_spans"));
        }
        if !(0.0..=1.0).contains(&self.sample_ratio) {
            return Err(invalid("sample_ratio", "it must be from 0 to 1"));
        }
        match &self.otlp_endpoint {
            Some(endpoint) => check_url("otlp_endpoint", endpoint),
            None => Ok(()),
        }
    }

    pub(super) fn traces_endpoint(&self) -> Result<Option<String>> {
        self.endpoint(&self.from_environment.traces, "v1/traces")
    }

    pub(super) fn metrics_endpoint(&self) -> Result<Option<String>> {
        self.endpoint(&self.from_environment.metrics, "v1/metrics")
    }

    fn endpoint(&self, signal: &Signal, path: &str) -> Result<Option<String>> {
        if self.from_environment.is_disabled {
            return Ok(None);
        }
        Ok(match signal {
            Signal::Off => None,
            Signal::At(endpoint) => Some(endpoint.clone()),
            Signal::AsTheRest => self
                .otlp_endpoint
                .as_ref()
                .map(|endpoint| format!("{}/{path}", endpoint.trim_end_matches('/'))),
        })
    }

    pub(super) fn sampler(&self) -> Result<Sampler> {
        let ratio = Sampling::Ratio { ratio: self.sample_ratio, heeds_parent: true };
        Ok(self.from_environment.sampling.unwrap_or(ratio).sampler())
    }

    pub(super) fn timeout(&self) -> Duration {
        Duration::from_millis(self.timeout_ms)
    }

    pub(super) fn span_delay(&self) -> Duration {
        Duration::from_millis(self.span_delay_ms)
    }

    pub(super) fn metric_interval(&self) -> Duration {
        Duration::from_millis(self.metric_interval_ms)
    }

    pub(super) fn shutdown_time(&self) -> Duration {
        Duration::from_millis(self.shutdown_ms)
    }
}

pub(super) fn invalid(
    key: impl Into<String>,
    cause: impl Into<String>,
) -> InvalidTelemetrySettings {
    InvalidTelemetrySettings::new(key, cause)
}

/// What is wrong is said without the address: there may be a password in it.
fn check_url(key: &str, text: &str) -> Result<()> {
    let url = Url::parse(text.trim());
    match url {
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => {
            match url.password() {
                None => Ok(()),
                Some(_) => {
                    Err(invalid(key, "it holds a password; put it into OTEL_EXPORTER_OTLP_HEADERS"))
                }
            }
        }
        _ => Err(invalid(key, "it must be a URL such as http://127.0.0.1:4318")),
    }
}

/// What is wrong is said without the headers: they are secrets.
fn check_headers(key: &str, text: &str) -> Result<()> {
    for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
        let name = pair.split_once('=').map(|(name, _)| name.trim());
        let is_name = |name: &str| axum::http::HeaderName::from_bytes(name.as_bytes()).is_ok();
        if !name.is_some_and(is_name) {
            return Err(invalid(key, "it must be a list such as authorization=Bearer%20abc,x-a=b"));
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
