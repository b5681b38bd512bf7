//! `prowess skills list` and `prowess skills versions`

use std::io::Write;

use jiff::Timestamp;
use prowess_store::SkillId;
use serde_json::json;

use super::desk::{Desk, SkillRow, VersionRow};
use crate::Outcome;
use crate::finder::Form;
use crate::report;
use crate::terminal::safe_line;

pub(super) async fn skills(desk: &Desk, form: Form) -> anyhow::Result<Outcome> {
    let rows = desk.list().await?;
    if form == Form::Json {
        report::print_json(&json!({"skills": rows}))?;
        return Ok(Outcome::Ok);
    }
    if rows.is_empty() {
        anstream::eprintln!("No skills in the registry. `prowess skills push PATH` brings some.");
        return Ok(Outcome::Ok);
    }
    let heads = ["ID", "ACTIVE", "WAITS", "VERSION", "VERSIONS", "UPDATED", "TITLE"];
    let number = |number: Option<u64>| number.map_or("-".to_owned(), |it| it.to_string());
    let cells = |row: &SkillRow| {
        [
            safe_line(&row.id),
            number(row.active_version),
            number(row.pending_version),
            safe_line(&row.version),
            row.version_count.to_string(),
            minute(row.updated_at),
            safe_line(&row.name),
        ]
    };
    print_table(heads, &rows.iter().map(cells).collect::<Vec<_>>())
}

pub(super) async fn versions(desk: &Desk, skill: &SkillId, form: Form) -> anyhow::Result<Outcome> {
    let rows = desk.versions(skill).await?;
    if form == Form::Json {
        report::print_json(&json!({"skill_id": skill, "versions": rows}))?;
        return Ok(Outcome::Ok);
    }
    let heads = ["NUMBER", "VERSION", "MADE", "BY", "WHY"];
    let cells = |row: &VersionRow| {
        let mark = match row {
            VersionRow { is_active: true, .. } => "*",
            VersionRow { is_pending: true, .. } => " waits",
            _ => "",
        };
        [
            format!("{}{mark}", row.version_number),
            safe_line(&row.semantic_version),
            minute(row.created_at),
            safe_line(&row.created_by),
            safe_line(row.change_summary.as_deref().unwrap_or_default()),
        ]
    };
    print_table(heads, &rows.iter().map(cells).collect::<Vec<_>>())
}

fn minute(time: Timestamp) -> String {
    time.strftime("%Y-%m-%d %H:%M UTC").to_string()
}

/// Columns as wide as their widest cell.
fn print_table<const N: usize>(heads: [&str; N], rows: &[[String; N]]) -> anyhow::Result<Outcome> {
    let mut widths = heads.map(str::len);
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut out = String::new();
    for row in std::iter::once(&heads.map(str::to_owned)).chain(rows) {
        let mut line = String::new();
        for (width, cell) in widths.iter().zip(row) {
            line.push_str(&format!("{cell:width$}  "));
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    // Every cell is safe and has no colour: nothing to adapt to the terminal.
    std::io::stdout().write_all(out.as_bytes())?;
    Ok(Outcome::Ok)
}
