//! What skills are used for, and who changed what.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use jiff::Timestamp;
use prowess_store::{AuditEntry, Role, SkillUsage, UsageKind, UsageRow};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::skills::seen;
use crate::app::App;
use crate::extract::{Path, Query, Whole};
use crate::identity::Identity;
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(of_skill)).routes(routes!(audit))
}

/// Numbers of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
struct Counts {
    loads: u64,
    details: u64,
    tool_calls: u64,
    tool_errors: u64,
    denials: u64,
    /// How many tokens models were given, estimated.
    tokens_disclosed: u64,
    /// How many bytes that is.
    bytes_disclosed: u64,
}

impl Counts {
    fn add(&mut self, row: &UsageRow) {
        match row.kind {
            UsageKind::Load => self.loads += row.count,
            UsageKind::Detail => self.details += row.count,
            UsageKind::Denial => self.denials += row.count,
            _ => {
                self.tool_calls += row.count;
                self.tool_errors += row.errors;
            }
        }
        if row.kind != UsageKind::Denial {
            self.tokens_disclosed += row.tokens;
            self.bytes_disclosed += row.bytes;
        }
    }
}

/// Calls of tools that came to the same.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
struct Calls {
    count: u64,
    errors: u64,
    /// How long they took on average, in milliseconds.
    mean_ms: f64,
    #[serde(skip)]
    elapsed_us: u64,
}

/// What a skill was used for.
#[derive(Debug, Serialize, ToSchema)]
struct SkillMetrics {
    skill_id: String,
    total_loads: u64,
    /// In how many sessions it was used, exactly.
    unique_sessions: u64,
    #[schema(value_type = Option<String>, format = DateTime)]
    last_loaded_at: Option<Timestamp>,
    /// By the number of the version.
    loads_by_version: BTreeMap<String, u64>,
    /// All together.
    totals: Counts,
    by_version: BTreeMap<String, Counts>,
    by_agent: BTreeMap<String, Counts>,
    /// By the day, in UTC.
    by_day: BTreeMap<String, Counts>,
    sessions_by_day: BTreeMap<String, u64>,
    /// Calls of its tools by what came of them.
    tool_calls_by_outcome: BTreeMap<String, Calls>,
    denials_by_code: BTreeMap<String, u64>,
}

impl SkillMetrics {
    fn new(skill_id: String, usage: &SkillUsage) -> Self {
        let mut metrics = Self {
            skill_id,
            total_loads: 0,
            unique_sessions: usage.unique_sessions,
            last_loaded_at: None,
            loads_by_version: BTreeMap::new(),
            totals: Counts::default(),
            by_version: BTreeMap::new(),
            by_agent: BTreeMap::new(),
            by_day: BTreeMap::new(),
            sessions_by_day: BTreeMap::new(),
            tool_calls_by_outcome: BTreeMap::new(),
            denials_by_code: BTreeMap::new(),
        };
        for row in &usage.rows {
            metrics.add(row);
        }
        for calls in metrics.tool_calls_by_outcome.values_mut() {
            calls.mean_ms = calls.elapsed_us as f64 / 1000.0 / calls.count.max(1) as f64;
        }
        let days = usage.sessions_by_day.iter();
        metrics.sessions_by_day = days.map(|(day, count)| (day.to_string(), *count)).collect();
        metrics
    }

    fn add(&mut self, row: &UsageRow) {
        let version = row.version.map_or("unknown".to_owned(), |number| number.to_string());
        let code = row.code.clone().unwrap_or_else(|| "ok".to_owned());
        self.totals.add(row);
        self.by_version.entry(version.clone()).or_default().add(row);
        self.by_agent.entry(row.agent.clone().unwrap_or_default()).or_default().add(row);
        self.by_day.entry(row.day.to_string()).or_default().add(row);
        match row.kind {
            UsageKind::Load => {
                self.total_loads += row.count;
                *self.loads_by_version.entry(version).or_default() += row.count;
                self.last_loaded_at = self.last_loaded_at.max(Some(row.last));
            }
            UsageKind::ToolCall => {
                let calls = self.tool_calls_by_outcome.entry(code).or_default();
                calls.count += row.count;
                calls.errors += row.errors;
                calls.elapsed_us += row.elapsed_us;
            }
            UsageKind::Denial => *self.denials_by_code.entry(code).or_default() += row.count,
            _ => {}
        }
    }
}

/// What a skill was used for: loads, details, tool calls, denials, tokens; by version, agent and day.
#[utoipa::path(
    get, path = "/skills/{skill_id}/metrics", tag = "metrics", operation_id = "skill_metrics",
    params(("skill_id" = String, Path, description = "The id of the skill")),
    responses((status = 200, body = SkillMetrics))
)]
async fn of_skill(
    State(app): State<App>,
    identity: Identity,
    Path(id): Path<String>,
) -> Result<Json<SkillMetrics>, Problem> {
    seen(&app, &id, &identity).await?;
    let usage = app.usage().usage(&id).await?;
    Ok(Json(SkillMetrics::new(id, &usage)))
}

/// Which part of the log.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct WhichEntries {
    /// At most so many: 1 to 500, 100 without it.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<usize>,
    /// `next_cursor` of the part before.
    cursor: Option<Whole>,
}

/// A change that was made.
#[derive(Debug, Serialize, ToSchema)]
struct Entry {
    /// Its place in the log.
    place: u64,
    #[schema(value_type = String, format = DateTime)]
    time: Timestamp,
    /// Who: `local`, `key:NAME`, `built-in`.
    actor: String,
    /// What was done, such as `skill.update`.
    action: String,
    /// To what.
    subject: String,
    #[schema(value_type = Object)]
    detail: serde_json::Value,
}

impl From<AuditEntry> for Entry {
    fn from(entry: AuditEntry) -> Self {
        let AuditEntry { place, time, actor, action, subject, detail, .. } = entry;
        Self { place, time, actor: actor.to_string(), action, subject, detail }
    }
}

/// A part of the log.
#[derive(Debug, Serialize, ToSchema)]
struct AuditLog {
    /// The newest first.
    entries: Vec<Entry>,
    /// What to ask for the next part with; none if this is the last one.
    next_cursor: Option<u64>,
}

/// Who changed what, the newest first. The role admin is needed.
#[utoipa::path(
    get, path = "/audit", tag = "metrics", operation_id = "audit_log", params(WhichEntries),
    responses((status = 200, body = AuditLog))
)]
async fn audit(
    State(app): State<App>,
    identity: Identity,
    Query(which): Query<WhichEntries>,
) -> Result<Json<AuditLog>, Problem> {
    identity.require(Role::Admin)?;
    let limit = which.limit.unwrap_or(100);
    if !(1..=500).contains(&limit) {
        return Err(Problem::invalid(&["query", "limit"], "it must be 1 to 500"));
    }
    let mut found =
        app.registry().store().audit(which.cursor.map(|Whole(place)| place), limit + 1).await?;
    let has_more = found.len() > limit;
    found.truncate(limit);
    let next_cursor = found.last().filter(|_| has_more).map(|entry| entry.place);
    Ok(Json(AuditLog { entries: found.into_iter().map(Entry::from).collect(), next_cursor }))
}
