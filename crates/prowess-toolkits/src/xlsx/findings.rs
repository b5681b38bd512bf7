//! What a check finds.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use super::error::shown;
use super::render::{DATA_BEGINS, DATA_ENDS, capped, inline};

/// How much a finding matters.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    Error,
    Warning,
    Info,
}

impl Level {
    fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Info => "info",
        }
    }
}

struct Finding {
    kind: &'static str,
    level: Level,
    at: String,
    detail: String,
}

/// What was found, at most so many of it in words.
pub(super) struct Findings {
    listed: Vec<Finding>,
    counts: BTreeMap<&'static str, u64>,
    levels: [u64; 3],
    most: usize,
}

impl Findings {
    pub(super) fn new(most: usize) -> Self {
        Self { listed: Vec::new(), counts: BTreeMap::new(), levels: [0; 3], most }
    }

    pub(super) fn add(
        &mut self,
        kind: &'static str,
        level: Level,
        at: impl Into<String>,
        detail: &str,
    ) {
        let count = self.counts.entry(kind).or_default();
        *count += 1;
        self.levels[level as usize] += 1;
        // No kind takes the place of all others.
        let share = (self.most / 4).max(1) as u64;
        if self.listed.len() < self.most && *count <= share {
            let at = capped(&at.into());
            self.listed.push(Finding { kind, level, at, detail: shown(detail) });
        }
    }

    fn total(&self) -> u64 {
        self.counts.values().sum()
    }

    pub(super) fn json(&self) -> Json {
        let listed = self.listed.iter().map(|it| {
            json!({"kind": it.kind, "level": it.level.as_str(), "at": it.at, "detail": it.detail})
        });
        let [errors, warnings, infos] = self.levels;
        json!({
            "findings": listed.collect::<Vec<_>>(),
            "counts": self.counts,
            "errors": errors,
            "warnings": warnings,
            "infos": infos,
            "truncated": self.total() > self.listed.len() as u64,
            "untrusted": true,
        })
    }

    pub(super) fn told(&self) -> String {
        let [errors, warnings, infos] = self.levels;
        if self.total() == 0 {
            return "Nothing was found.".to_owned();
        }
        let mut lines = vec![
            format!("{errors} errors, {warnings} warnings, {infos} notes"),
            DATA_BEGINS.to_owned(),
        ];
        for finding in &self.listed {
            let (level, kind) = (finding.level.as_str(), finding.kind);
            lines.push(format!(
                "{level} {kind} at {}: {}",
                inline(&finding.at),
                inline(&finding.detail)
            ));
        }
        lines.push(DATA_ENDS.to_owned());
        let more = self.total() - self.listed.len() as u64;
        if more > 0 {
            let counts = self.counts.iter().map(|(kind, count)| format!("{kind} {count}"));
            let counts: Vec<String> = counts.collect();
            lines.push(format!("[{more} more, cut by `max_findings`; all: {}]", counts.join(", ")));
        }
        lines.join("\n")
    }
}
