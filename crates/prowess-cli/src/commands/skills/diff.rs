//! `prowess skills diff`

use std::io::{IsTerminal, Write};

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use prowess_store::{FileDiff, FileStatus, SkillId};
use serde_json::json;

use super::desk::{Desk, DeskError};
use crate::Outcome;
use crate::cli::DiffArgs;
use crate::report;
use crate::terminal::safe;

const HEAD: Style = Style::new().bold();
const PLACE: Style = AnsiColor::Cyan.on_default();
const NEW: Style = AnsiColor::Green.on_default();
const GONE: Style = AnsiColor::Red.on_default();

pub(super) async fn run(desk: &Desk, arguments: &DiffArgs) -> anyhow::Result<Outcome> {
    let skill = super::id(&arguments.name)?;
    let (from, to) = meant(desk, &skill, arguments.from, arguments.to).await?;
    let files = desk.diff(&skill, from, to).await?;
    if arguments.json {
        report::print_json(&json!({
            "skill_id": skill, "from_version": from, "to_version": to, "files": files,
        }))?;
        return Ok(Outcome::Ok);
    }
    if files.is_empty() {
        anstream::eprintln!("Versions {from} and {to} of '{skill}' hold the same.");
        return Ok(Outcome::Ok);
    }
    let stdout = std::io::stdout();
    let is_coloured = AutoStream::choice(&stdout) != ColorChoice::Never;
    let mut out = String::new();
    for file in &files {
        render(file, is_coloured, stdout.is_terminal() || is_coloured, &mut out);
    }
    // Colours are decided here; for a patch program every byte counts.
    stdout.lock().write_all(out.as_bytes())?;
    Ok(Outcome::Ok)
}

/// Which versions are compared.
async fn meant(
    desk: &Desk,
    skill: &SkillId,
    from: Option<u64>,
    to: Option<u64>,
) -> Result<(u64, u64), DeskError> {
    if let (Some(from), Some(to)) = (from, to) {
        return Ok((from, to));
    }
    let versions = desk.versions(skill).await?;
    let active = versions.iter().find(|it| it.is_active).map(|it| it.version_number);
    // Where none is used, the newest one waits.
    let newest = versions.first().map(|it| it.version_number);
    let to = to.or(active).or(newest).unwrap_or_default();
    let earlier = versions.iter().map(|it| it.version_number).filter(|number| *number < to).max();
    let none = DeskError::NoEarlier { skill: skill.clone(), number: to };
    Ok((from.or(earlier).ok_or(none)?, to))
}

/// A file that differs, as a patch program reads it.
fn render(file: &FileDiff, is_coloured: bool, is_shown: bool, out: &mut String) {
    let mut line = |style: Option<Style>, text: &str| {
        // A carriage return belongs to its line; shown, it would hide it.
        let text = if is_shown { safe(text) } else { text.into() };
        match style.filter(|_| is_coloured) {
            Some(style) => out.push_str(&format!("{style}{text}{style:#}\n")),
            None => out.push_str(&format!("{text}\n")),
        }
    };
    let path = &file.path;
    if let (Some(from), Some(to)) = (file.from_executable, file.to_executable)
        && from != to
    {
        let mode = |executable: bool| if executable { "100755" } else { "100644" };
        line(Some(HEAD), &format!("diff --git a/{path} b/{path}"));
        line(Some(HEAD), &format!("old mode {}", mode(from)));
        line(Some(HEAD), &format!("new mode {}", mode(to)));
    }
    let before = match file.status {
        FileStatus::Added => "/dev/null".to_owned(),
        _ => format!("a/{path}"),
    };
    let after = match file.status {
        FileStatus::Removed => "/dev/null".to_owned(),
        _ => format!("b/{path}"),
    };
    if file.is_binary && file.status != FileStatus::Mode {
        line(Some(HEAD), &format!("Binary files {before} and {after} differ"));
        return;
    }
    if file.hunks.is_empty() {
        // An empty file has no lines, and is there or not all the same.
        if file.status != FileStatus::Mode {
            line(Some(HEAD), &format!("Empty files {before} and {after} differ"));
        }
        return;
    }
    line(Some(HEAD), &format!("--- {before}"));
    line(Some(HEAD), &format!("+++ {after}"));
    for text in file.hunks.strip_suffix('\n').unwrap_or(&file.hunks).split('\n') {
        let style = match text.as_bytes().first() {
            Some(b'@') => Some(PLACE),
            Some(b'+') => Some(NEW),
            Some(b'-') => Some(GONE),
            _ => None,
        };
        line(style, text);
    }
}
