//! A collector of OpenTelemetry on the loopback interface: OTLP over HTTP, as protobuf.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::metrics::v1::{Metric, metric::Data};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;

/// Nobody waits longer for what is to come.
const PATIENCE: Duration = Duration::from_secs(30);

/// What it does with those who come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// It takes what they bring.
    Taking,
    /// It reads, and never answers.
    Hanging,
    /// It says that it cannot.
    Refusing,
}

#[derive(Default)]
struct Taken {
    spans: Vec<Span>,
    metrics: Vec<Metric>,
    /// Attributes of those who sent.
    resources: Vec<Vec<KeyValue>>,
    /// The heads of requests.
    heads: Vec<String>,
}

/// The collector; it goes with the test.
pub(crate) struct Collector {
    pub(crate) url: String,
    taken: Arc<Mutex<Taken>>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Collector {
    pub(crate) fn start(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (taken, is_over) = (Arc::<Mutex<Taken>>::default(), Arc::new(AtomicBool::new(false)));
        let (all, over) = (Arc::clone(&taken), Arc::clone(&is_over));
        let thread = std::thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                let Ok((socket, _)) = listener.accept() else {
                    std::thread::sleep(Duration::from_millis(5));
                    continue;
                };
                let (all, over) = (Arc::clone(&all), Arc::clone(&over));
                // Who hangs up has said enough.
                std::thread::spawn(move || serve(&socket, manner, &all, &over));
            }
        });
        Self { url, taken, is_over, thread: Some(thread) }
    }

    /// All spans so far.
    pub(crate) fn spans(&self) -> Vec<Span> {
        self.taken.lock().unwrap().spans.clone()
    }

    /// The heads of all requests so far.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.taken.lock().unwrap().heads.clone()
    }

    /// An attribute of whoever sent last.
    pub(crate) fn resource(&self, key: &str) -> Option<String> {
        let taken = self.taken.lock().unwrap();
        taken.resources.last().and_then(|attributes| text(attributes, key))
    }

    /// The points of a metric, of all reports: attributes, and how many or how much.
    pub(crate) fn points(&self, name: &str) -> Vec<(Vec<KeyValue>, f64)> {
        let taken = self.taken.lock().unwrap();
        let metrics = taken.metrics.iter().filter(|metric| metric.name == name);
        let mut points = Vec::new();
        for metric in metrics {
            match metric.data.as_ref().unwrap() {
                Data::Sum(sum) => points.extend(sum.data_points.iter().map(|point| {
                    use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value;
                    let value = match point.value.unwrap() {
                        Value::AsInt(value) => value as f64,
                        Value::AsDouble(value) => value,
                    };
                    (point.attributes.clone(), value)
                })),
                Data::Histogram(histogram) => {
                    points.extend(
                        histogram
                            .data_points
                            .iter()
                            .map(|point| (point.attributes.clone(), point.sum.unwrap_or_default())),
                    );
                }
                other => panic!("{other:?}"),
            }
        }
        points
    }

    /// The names of all metrics that came.
    pub(crate) fn metrics(&self) -> Vec<String> {
        let taken = self.taken.lock().unwrap();
        let mut names: Vec<String> = taken.metrics.iter().map(|it| it.name.clone()).collect();
        names.sort();
        names.dedup();
        names
    }

    /// Waits until this holds.
    pub(crate) fn until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        let started = Instant::now();
        while !holds(self) {
            let names: Vec<String> = self.spans().into_iter().map(|it| it.name).collect();
            assert!(started.elapsed() < PATIENCE, "{what}: {names:?} {:?}", self.metrics());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// An attribute as a text.
pub(crate) fn text(attributes: &[KeyValue], key: &str) -> Option<String> {
    let found = attributes.iter().find(|attribute| attribute.key == key)?;
    found.value.as_ref().map(shown)
}

fn shown(value: &AnyValue) -> String {
    match value.value.as_ref() {
        Some(Value::StringValue(text)) => text.clone(),
        Some(Value::IntValue(number)) => number.to_string(),
        Some(Value::DoubleValue(number)) => number.to_string(),
        Some(Value::BoolValue(value)) => value.to_string(),
        Some(Value::ArrayValue(all)) => {
            let all: Vec<String> = all.values.iter().map(shown).collect();
            format!("[{}]", all.join(","))
        }
        other => format!("{other:?}"),
    }
}

fn serve(
    socket: &TcpStream,
    manner: Manner,
    all: &Mutex<Taken>,
    is_over: &AtomicBool,
) -> std::io::Result<()> {
    socket.set_nonblocking(false)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    let mut from = BufReader::new(socket.try_clone()?);
    let mut to = socket.try_clone()?;
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if from.read_line(&mut head)? == 0 {
                return Ok(());
            }
        }
        let lines = head.lines().filter_map(|line| line.split_once(':'));
        let mut lengths = lines.filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
        let length = lengths.next().and_then(|(_, length)| length.trim().parse().ok());
        let mut body = vec![0; length.unwrap_or(0)];
        from.read_exact(&mut body)?;
        all.lock().unwrap().heads.push(head.clone());
        match manner {
            Manner::Taking => {
                take(&head, &body, &mut all.lock().unwrap());
                let answer = "HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\n";
                write!(to, "{answer}content-length: 0\r\n\r\n")?;
            }
            Manner::Refusing => {
                write!(to, "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")?;
            }
            Manner::Hanging => {
                while !is_over.load(Ordering::Relaxed) {
                    std::thread::sleep(Duration::from_millis(10));
                }
                return Ok(());
            }
        }
    }
}

fn take(head: &str, body: &[u8], taken: &mut Taken) {
    if head.starts_with("POST /v1/traces ") {
        let request = ExportTraceServiceRequest::decode(body).unwrap();
        for resource in request.resource_spans {
            taken.resources.extend(resource.resource.map(|it| it.attributes));
            taken.spans.extend(resource.scope_spans.into_iter().flat_map(|scope| scope.spans));
        }
    } else if head.starts_with("POST /v1/metrics ") {
        let request = ExportMetricsServiceRequest::decode(body).unwrap();
        for resource in request.resource_metrics {
            let metrics = resource.scope_metrics.into_iter().flat_map(|scope| scope.metrics);
            taken.metrics.extend(metrics);
        }
    }
}
