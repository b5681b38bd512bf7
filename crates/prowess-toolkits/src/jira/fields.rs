//! Fields of what Jira gives.

use serde_json::{Value, json};

use super::adf::{AdfLimits, to_markdown};
use super::settings::JiraSettings;
use super::text::{Most, cell, cut, datum, line, quoted};

/// A text written by people, as Markdown.
pub(super) struct Rich {
    pub(super) markdown: String,
    note: Option<String>,
}

impl Rich {
    pub(super) fn read(value: &Value, most: Most, settings: &JiraSettings) -> Self {
        // A whole text knows how long it is.
        if let Value::String(text) = value {
            let (kept, note) = cut(text, most);
            return Self { markdown: kept.to_owned(), note };
        }
        let limits = AdfLimits { bytes: most.bytes, depth: settings.max_adf_depth };
        let written = to_markdown(value, limits);
        let (kept, note) = cut(&written.text, most);
        let more = format!("[cut: {} bytes shown, there is more; {}]", kept.len(), most.name);
        let mut notes: Vec<String> = Vec::new();
        notes.extend(if written.is_cut { Some(more) } else { note });
        if written.is_too_deep {
            notes.push(format!("[deeper than {} levels; max_adf_depth]", limits.depth));
        }
        let note = (!notes.is_empty()).then(|| notes.join(" "));
        Self { markdown: kept.to_owned(), note }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.markdown.trim().is_empty() && self.note.is_none()
    }

    /// Every line behind `> `.
    pub(super) fn quoted(&self) -> String {
        quoted(&self.markdown, self.note.as_deref())
    }

    pub(super) fn data(&self) -> Value {
        json!({"markdown": self.markdown, "is_cut": self.note.is_some()})
    }
}

/// The text at a place.
pub(super) fn text<'a>(value: &'a Value, pointer: &str) -> Option<&'a str> {
    value.pointer(pointer).and_then(Value::as_str).filter(|text| !text.trim().is_empty())
}

/// What somebody is called.
pub(super) fn person<'a>(value: &'a Value, pointer: &str) -> Option<&'a str> {
    let names = ["displayName", "name", "emailAddress", "accountId"];
    let person = value.pointer(pointer)?;
    names.into_iter().find_map(|name| text(person, &format!("/{name}")))
}

/// An id, which is a number in some answers and a text in others.
pub(super) fn id(value: &Value) -> Option<u64> {
    value["id"].as_u64().or_else(|| value["id"].as_str()?.parse().ok())
}

/// An issue in a list.
pub(super) fn listed_issue(issue: &Value, settings: &JiraSettings) -> (String, Value) {
    let most = settings.field();
    let key = text(issue, "/key").unwrap_or("?");
    let summary = text(issue, "/fields/summary").unwrap_or("(no summary)");
    let kind = text(issue, "/fields/issuetype/name").unwrap_or("Unknown");
    let status = text(issue, "/fields/status/name").unwrap_or("Unknown");
    let priority = text(issue, "/fields/priority/name").unwrap_or("None");
    let assignee = person(issue, "/fields/assignee").unwrap_or("Unassigned");
    let shown = format!(
        "\n**{}** [{}] - {}\n  Status: {} | Priority: {} | Assignee: {}",
        line(key, most),
        line(kind, most),
        line(summary, most),
        cell(status, most),
        cell(priority, most),
        cell(assignee, most),
    );
    let short = |text: &str| datum(text, most);
    let data = json!({
        "key": short(key), "type": short(kind), "summary": short(summary), "status": short(status),
        "priority": text(issue, "/fields/priority/name").map(short),
        "assignee": person(issue, "/fields/assignee").map(short),
    });
    (shown, data)
}
