//! Whether what is sent arrives, and how metrics are sent from a thread without a runtime.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::metrics::Temporality;
use opentelemetry_sdk::metrics::data::ResourceMetrics;
use opentelemetry_sdk::metrics::exporter::PushMetricExporter;
use tokio::runtime::Handle;

/// Counts what is lost, and tells of it once, until it goes well again.
#[derive(Debug, Default)]
pub(super) struct Health {
    dropped: AtomicU64,
    is_failing: AtomicBool,
    has_overflown: AtomicBool,
}

impl Health {
    pub(super) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// There is no place for a span.
    pub(super) fn overflown(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
        if !self.has_overflown.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                target: "prowess::telemetry",
                "spans come faster than they are sent, and are dropped: raise queue_spans in \
                 [telemetry], or lower sample_ratio"
            );
        }
    }

    /// What came of an attempt to send, and how many spans it was about.
    pub(super) fn sent(&self, result: &OTelSdkResult, spans: u64) {
        match result {
            Ok(()) => {
                if self.is_failing.swap(false, Ordering::Relaxed) {
                    let dropped = self.dropped();
                    tracing::warn!(
                        target: "prowess::telemetry",
                        "telemetry is delivered again; {dropped} spans were dropped so far"
                    );
                }
            }
            Err(error) => {
                self.dropped.fetch_add(spans, Ordering::Relaxed);
                if !self.is_failing.swap(true, Ordering::Relaxed) {
                    tracing::warn!(
                        target: "prowess::telemetry",
                        "telemetry cannot be delivered, and is dropped until it can: {error}"
                    );
                }
            }
        }
    }
}

/// Sends metrics with the help of a runtime, from wherever it is asked to.
pub(super) struct Delivering<E> {
    exporter: E,
    handle: Handle,
    health: Arc<Health>,
}

impl<E> Delivering<E> {
    pub(super) fn new(exporter: E, handle: Handle, health: Arc<Health>) -> Self {
        Self { exporter, handle, health }
    }
}

impl<E: PushMetricExporter> PushMetricExporter for Delivering<E> {
    async fn export(&self, metrics: &ResourceMetrics) -> OTelSdkResult {
        let mut sending = pin!(self.exporter.export(metrics));
        let sent = poll_fn(|context| {
            let _inside = self.handle.enter();
            sending.as_mut().poll(context)
        });
        let sent = sent.await;
        self.health.sent(&sent, 0);
        sent
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn temporality(&self) -> Temporality {
        self.exporter.temporality()
    }
}
