//! Metrics of what the engine commits: loads, calls, refusals, tokens.

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Histogram, Meter};
use prowess_runtime::{Event, EventKind, EventSink, SessionKey};

/// Calls that take longer than an hour are in the last class.
const SECONDS: [f64; 14] =
    [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 600.0, 3600.0];
/// A tool that is not there has whatever name a model gives it.
const OTHER: &str = "_OTHER";

/// Counts events.
pub(super) struct Usage {
    loads: Counter<u64>,
    details: Counter<u64>,
    calls: Counter<u64>,
    seconds: Histogram<f64>,
    denials: Counter<u64>,
    tokens: Counter<u64>,
}

impl Usage {
    pub(super) fn new(meter: &Meter) -> Self {
        let counter = |name: &'static str, unit: &'static str, what: &'static str| {
            meter.u64_counter(name).with_unit(unit).with_description(what).build()
        };
        Self {
            loads: counter("prowess.skill.loads", "{load}", "How often skills were loaded."),
            details: counter(
                "prowess.skill.details",
                "{resource}",
                "How often docs and resources of skills were given.",
            ),
            calls: counter("prowess.tool.calls", "{call}", "Calls of tools, by what came of them."),
            seconds: meter
                .f64_histogram("prowess.tool.duration")
                .with_unit("s")
                .with_description("How long calls of tools took.")
                .with_boundaries(SECONDS.into())
                .build(),
            denials: counter("prowess.tool.denials", "{call}", "Calls that a rule refused."),
            tokens: counter(
                "prowess.tokens.disclosed",
                "{token}",
                "Tokens that models were given, estimated.",
            ),
        }
    }
}

impl EventSink for Usage {
    fn event(&self, _: &SessionKey, event: &Event) {
        // Only what was there is named: a skill or a tool that was asked for may have any name.
        let is_known = matches!(
            event.kind,
            EventKind::SkillLoaded | EventKind::DocsSelected | EventKind::DetailGiven
        );
        let skill = event.skill.as_ref().filter(|_| is_known);
        let of_skill: Vec<KeyValue> = skill
            .map(|skill| KeyValue::new("prowess.skill.name", skill.clone()))
            .into_iter()
            .collect();
        match event.kind {
            EventKind::SkillLoaded => self.loads.add(1, &of_skill),
            EventKind::DocsSelected | EventKind::DetailGiven => self.details.add(1, &of_skill),
            _ => {}
        }
        if let Some(tokens) = event.tokens {
            self.tokens.add(tokens, &of_skill);
        }
        let (Some(tool), Some(elapsed)) = (&event.tool, event.elapsed_us) else { return };
        let code = event.code.clone().unwrap_or_else(|| "ok".to_owned());
        let tool = if code == "unknown_tool" { OTHER.to_owned() } else { tool.clone() };
        let of_call =
            [KeyValue::new("gen_ai.tool.name", tool), KeyValue::new("prowess.outcome", code)];
        self.calls.add(1, &of_call);
        self.seconds.record(elapsed as f64 / 1e6, &of_call);
        if event.kind == EventKind::ToolBlocked {
            self.denials.add(1, &of_call);
        }
    }
}
