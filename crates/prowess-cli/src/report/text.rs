//! Findings for people: `path:line:column: level[code]: message`, the line, and what to do.

use std::io::Write;

use annotate_snippets::{AnnotationKind, Level as Title, Renderer, Snippet};
use anstream::AutoStream;
use prowess_format::{Diagnostic, Level};

use super::{Report, counted};
use crate::terminal::{safe, safe_line};

/// How many characters of a line are shown before and behind the start of a place.
const SHOWN_BEFORE: usize = 40;
const SHOWN_BEHIND: usize = 80;

pub(super) fn print(report: &Report) -> anyhow::Result<()> {
    let mut out = AutoStream::auto(std::io::stdout().lock());
    let renderer = Renderer::styled();
    for section in &report.sections {
        for diagnostic in &section.diagnostics {
            let text = render(&renderer, diagnostic, &section.source);
            writeln!(out, "{text}\n")?;
        }
    }
    writeln!(out, "{}", summary(report))?;
    Ok(())
}

fn render(renderer: &Renderer, diagnostic: &Diagnostic, source: &str) -> String {
    let level = match diagnostic.level {
        Level::Error => Title::ERROR,
        Level::Warning => Title::WARNING,
        Level::Info => Title::INFO,
    };
    let mut name = diagnostic.path.as_deref().map(safe_line).unwrap_or_default();
    if let Some(span) = diagnostic.span {
        name.push_str(&format!(":{}:{}", span.line, span.column));
    }
    if !name.is_empty() {
        name.push_str(": ");
    }
    name.push_str(diagnostic.level.as_str());
    let message = safe_line(&diagnostic.message);
    let title = level.with_name(name).primary_title(message).id(diagnostic.code.as_str());
    let mut group = title.elements(Vec::<Snippet<'_, annotate_snippets::Annotation<'_>>>::new());
    // The window of lines that the place is in, with harmful characters made visible.
    let window = diagnostic
        .span
        .filter(|_| !source.is_empty())
        .map(|span| Window::new(source, span.start, span.end));
    if let (Some(window), Some(span)) = (&window, diagnostic.span) {
        group = group.element(
            Snippet::source(window.text.as_str())
                .line_start(span.line as usize)
                .annotation(AnnotationKind::Primary.span(window.start..window.end)),
        );
    }
    if let Some(help) = &diagnostic.help {
        group = group.element(Title::HELP.message(safe_line(help)));
    }
    renderer.render(&[group])
}

/// The lines around a place, safe to show.
struct Window {
    text: String,
    start: usize,
    end: usize,
}

impl Window {
    fn new(source: &str, start: u32, end: u32) -> Self {
        let clamp = |at: u32| {
            let mut at = (at as usize).min(source.len());
            while !source.is_char_boundary(at) {
                at -= 1;
            }
            at
        };
        let start = clamp(start);
        // Of a place that spans lines, the first is enough.
        let line_end = source[start..].find('\n').map_or(source.len(), |at| start + at);
        let end = clamp(end).min(line_end).max(start);
        let line_start = source[..start].rfind('\n').map_or(0, |at| at + 1);
        let before = last_characters(&source[line_start..start], SHOWN_BEFORE);
        let marked = first_characters(&source[start..end], SHOWN_BEHIND);
        let rest = SHOWN_BEHIND.saturating_sub(marked.chars().count());
        let after = match marked.ends_with('…') {
            true => String::new(),
            false => first_characters(source[end..line_end].trim_end(), rest),
        };
        Self {
            start: before.len(),
            end: before.len() + marked.len(),
            text: format!("{before}{marked}{after}"),
        }
    }
}

/// The first characters of a line, safe to show, with a mark where it was cut.
fn first_characters(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", safe(&text[..end])),
        None => safe(text).into_owned(),
    }
}

/// The last characters of a line, safe to show, with a mark where it was cut.
fn last_characters(text: &str, most: usize) -> String {
    match text.char_indices().rev().nth(most) {
        Some((start, character)) => format!("…{}", safe(&text[start + character.len_utf8()..])),
        None => safe(text).into_owned(),
    }
}

fn summary(report: &Report) -> String {
    let skills = counted(report.skills, "skill");
    let errors = report.count(Level::Error);
    let warnings = report.count(Level::Warning);
    let infos = report.count(Level::Info);
    if errors + warnings + infos == 0 {
        return format!("No findings in {skills}.");
    }
    let mut counts = vec![counted(errors, "error"), counted(warnings, "warning")];
    if infos > 0 {
        counts.push(counted(infos, "remark"));
    }
    format!("{} in {skills}.", counts.join(", "))
}
