//! Spans that wait to be sent: so many at most, and nobody waits for a place.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc as blocking;
use std::time::Duration;

use opentelemetry::{Array, Context, StringValue, Value};
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{Span, SpanData, SpanExporter, SpanProcessor};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::deliver::Health;
use super::settings::TelemetrySettings;

/// What the conventions say is a list, and a field of `tracing` cannot be.
const LISTS: [&str; 1] = ["gen_ai.response.finish_reasons"];

/// Takes spans that have ended, and sends them later.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    sender: mpsc::Sender<SpanData>,
    ending: CancellationToken,
    ended: Arc<Mutex<Option<blocking::Receiver<()>>>>,
    /// Taken, and not sent yet.
    left: Arc<AtomicU64>,
    health: Arc<Health>,
}

impl Queue {
    /// Begins to send what comes.
    pub(super) fn start(
        handle: &Handle,
        exporter: impl SpanExporter + 'static,
        settings: &TelemetrySettings,
        health: Arc<Health>,
    ) -> Self {
        let (sender, receiver) = mpsc::channel(settings.queue_spans);
        let (done, is_done) = blocking::sync_channel(1);
        let (ending, left) = (CancellationToken::new(), Arc::new(AtomicU64::new(0)));
        let worker = Worker {
            receiver,
            exporter,
            most: settings.batch_spans,
            delay: settings.span_delay(),
            ending: ending.clone(),
            left: Arc::clone(&left),
            health: Arc::clone(&health),
        };
        handle.spawn(async move {
            worker.run().await;
            let _ = done.send(());
        });
        Self { sender, ending, ended: Arc::new(Mutex::new(Some(is_done))), left, health }
    }

    /// Takes no more, and sends what is there; says when that is done.
    pub(super) fn end(&self) -> blocking::Receiver<()> {
        self.ending.cancel();
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner).take();
        ended.unwrap_or_else(|| blocking::sync_channel(1).1)
    }

    /// How many were taken and not sent.
    pub(super) fn left(&self) -> u64 {
        self.left.load(Ordering::Relaxed)
    }
}

impl SpanProcessor for Queue {
    fn on_start(&self, _: &mut Span, _: &Context) {}

    fn on_end(&self, span: SpanData) {
        if !span.span_context.is_sampled() {
            return;
        }
        self.left.fetch_add(1, Ordering::Relaxed);
        if self.sender.try_send(span).is_err() {
            self.left.fetch_sub(1, Ordering::Relaxed);
            self.health.overflown();
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        self.ending.cancel();
        Ok(())
    }
}

struct Worker<E> {
    receiver: mpsc::Receiver<SpanData>,
    exporter: E,
    most: usize,
    delay: Duration,
    ending: CancellationToken,
    left: Arc<AtomicU64>,
    health: Arc<Health>,
}

impl<E: SpanExporter> Worker<E> {
    async fn run(mut self) {
        let mut batch = Vec::new();
        loop {
            let is_over = self.fill(&mut batch).await;
            self.send(&mut batch).await;
            if is_over {
                break;
            }
        }
        self.receiver.close();
        while let Ok(span) = self.receiver.try_recv() {
            batch.push(span);
            if batch.len() >= self.most {
                self.send(&mut batch).await;
            }
        }
        self.send(&mut batch).await;
    }

    /// Waits until there is enough, or long enough; says whether it is over.
    async fn fill(&mut self, batch: &mut Vec<SpanData>) -> bool {
        let until = Instant::now() + self.delay;
        while batch.len() < self.most {
            tokio::select! {
                biased;
                () = self.ending.cancelled() => return true,
                span = self.receiver.recv() => match span {
                    Some(span) => batch.push(span),
                    None => return true,
                },
                () = sleep_until(until) => break,
            }
        }
        false
    }

    async fn send(&self, batch: &mut Vec<SpanData>) {
        if batch.is_empty() {
            return;
        }
        let mut spans = std::mem::take(batch);
        let count = spans.len() as u64;
        spans.iter_mut().for_each(complete);
        let sent = self.exporter.export(spans).await;
        self.left.fetch_sub(count, Ordering::Relaxed);
        self.health.sent(&sent, count);
    }
}

/// Makes lists of what should be one.
fn complete(span: &mut SpanData) {
    for attribute in &mut span.attributes {
        if LISTS.contains(&attribute.key.as_str()) && !matches!(attribute.value, Value::Array(_)) {
            let word = StringValue::from(attribute.value.as_str().into_owned());
            attribute.value = Value::Array(Array::String(vec![word]));
        }
    }
}
