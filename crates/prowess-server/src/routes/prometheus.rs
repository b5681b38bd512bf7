//! Numbers for Prometheus, from what was committed.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use prowess_store::{UsageKind, UsageRow};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(metrics))
}

/// What skills are used for, in the text format of Prometheus.
#[utoipa::path(
    get, path = "/metrics", tag = "metrics", operation_id = "prometheus_metrics",
    responses((status = 200, description = "Numbers", body = String, content_type = "text/plain"))
)]
async fn metrics(State(app): State<App>) -> Result<Response, Problem> {
    let rows = app.usage().totals().await?;
    let text = render(&rows, app.registry().len(), app.started().elapsed().as_secs_f64());
    Ok(([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response())
}

/// So many characters of a label are shown.
const LONGEST_LABEL: usize = 100;

/// A family of numbers.
struct Family {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    /// By their labels.
    values: BTreeMap<String, f64>,
}

impl Family {
    fn new(name: &'static str, kind: &'static str, help: &'static str) -> Self {
        Self { name, kind, help, values: BTreeMap::new() }
    }

    fn add(&mut self, labels: &[(&str, &str)], value: f64) {
        let labels: Vec<String> =
            labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        *self.values.entry(labels.join(",")).or_default() += value;
    }

    fn write(&self, text: &mut String) {
        let Self { name, kind, help, values } = self;
        // Writing to a string cannot fail.
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for (labels, value) in values {
            let _ = match labels.is_empty() {
                true => writeln!(text, "{name} {value}"),
                false => writeln!(text, "{name}{{{labels}}} {value}"),
            };
        }
    }
}

fn escaped(value: &str) -> String {
    let value: String = value.chars().take(LONGEST_LABEL).collect();
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn render(rows: &[UsageRow], skills: usize, uptime: f64) -> String {
    let mut loads =
        Family::new("prowess_skill_loads_total", "counter", "Texts of skills that were given.");
    let mut details = Family::new(
        "prowess_skill_details_total",
        "counter",
        "Docs and resources that were given.",
    );
    let mut calls = Family::new(
        "prowess_tool_calls_total",
        "counter",
        "Calls of the tools of skills, by what came of them.",
    );
    let mut seconds =
        Family::new("prowess_tool_call_seconds_total", "counter", "How long calls of tools took.");
    let mut denials =
        Family::new("prowess_denials_total", "counter", "Calls and loads that were refused.");
    let mut tokens = Family::new(
        "prowess_tokens_disclosed_total",
        "counter",
        "Tokens that models were given, estimated.",
    );
    for row in rows {
        let version = row.version.map_or("unknown".to_owned(), |number| number.to_string());
        let code = row.code.as_deref().unwrap_or("ok");
        let of_version = [("skill", row.skill.as_str()), ("version", &version)];
        let with_code = [of_version[0], of_version[1], ("code", code)];
        match row.kind {
            UsageKind::Load => loads.add(&of_version, row.count as f64),
            UsageKind::Detail => details.add(&of_version, row.count as f64),
            UsageKind::Denial => denials.add(&with_code, row.count as f64),
            _ => {
                calls.add(&with_code, row.count as f64);
                seconds.add(&with_code, row.elapsed_us as f64 / 1e6);
            }
        }
        if row.kind != UsageKind::Denial {
            tokens.add(&of_version, row.tokens as f64);
        }
    }
    let mut registered = Family::new("prowess_skills", "gauge", "Skills in the registry.");
    registered.add(&[], skills as f64);
    let mut up = Family::new("prowess_uptime_seconds", "gauge", "How long the server runs.");
    up.add(&[], uptime);
    let mut text = String::new();
    for family in [registered, up, loads, details, calls, seconds, denials, tokens] {
        family.write(&mut text);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_cut_where_they_are_too_long() {
        let at_the_edge = "\u{e4}".repeat(LONGEST_LABEL);
        assert_eq!(escaped(&at_the_edge), at_the_edge);
        assert_eq!(escaped(&format!("{at_the_edge}b")), at_the_edge);
    }

    #[test]
    fn labels_cannot_break_out() {
        let mut family = Family::new("x", "counter", "X.");
        family.add(&[("skill", "a\"} 1\nx{b=\"\\")], 2.0);
        let mut text = String::new();
        family.write(&mut text);
        assert_eq!(text, "# HELP x X.\n# TYPE x counter\nx{skill=\"a\\\"} 1\\nx{b=\\\"\\\\\"} 2\n");
    }
}
