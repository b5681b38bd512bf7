//! `glob` and `grep`

use prowess_runtime::{Invocation, ToolOutcome};
use serde_json::{Value, json};

use super::Files;
use super::arguments::{GlobArguments, GrepArguments};
use super::backend::{GlobQuery, GrepMode, GrepQuery, PathGlob, SearchCut};
use crate::invalid::InvalidArguments;

impl Files {
    /// Finds files by their paths.
    pub(crate) async fn glob(
        &self,
        invocation: Invocation<'_>,
    ) -> Result<ToolOutcome, ToolOutcome> {
        let invalid = |why: InvalidArguments| why.outcome(invocation);
        let arguments = GlobArguments::parse(&invocation.call.arguments).map_err(invalid)?;
        let spot = self.spot(invocation, &arguments.path).await?;
        let glob = PathGlob::parse(&arguments.pattern).map_err(|error| spot.failure(&error))?;
        let limits = self.settings.search_limits();
        let (found, _) = spot
            .first(|backend, place| {
                let (folder, glob, limits) = (place.clone(), glob.clone(), limits.clone());
                let query = GlobQuery { folder, glob, limits };
                Box::pin(async move { backend.glob(&query).await })
            })
            .await?;
        let paths: Vec<String> = found.files.iter().map(|path| self.ground.shown(path)).collect();
        let notes = notes(&[(found.unreadable, "could not be read")], found.cut);
        Ok(self.told(&paths, &notes, &json!(paths), found.cut))
    }

    /// Finds files by what they hold.
    pub(crate) async fn grep(
        &self,
        invocation: Invocation<'_>,
    ) -> Result<ToolOutcome, ToolOutcome> {
        let invalid = |why: InvalidArguments| why.outcome(invocation);
        let arguments = GrepArguments::parse(&invocation.call.arguments).map_err(invalid)?;
        let spot = self.spot(invocation, &arguments.path).await?;
        let glob = arguments.glob.as_deref().map(PathGlob::parse_filter).transpose();
        let glob = glob.map_err(|error| spot.failure(&error))?;
        let limits = self.settings.search_limits();
        let (text, mode) = (arguments.pattern, arguments.mode);
        let (found, _) = spot
            .first(|backend, place| {
                let (folder, text, glob) = (place.clone(), text.clone(), glob.clone());
                let query = GrepQuery { folder, text, glob, mode, limits: limits.clone() };
                Box::pin(async move { backend.grep(&query).await })
            })
            .await?;
        let mut lines = Vec::new();
        let mut data = Vec::new();
        for file in &found.files {
            let path = self.ground.shown(&file.path);
            match mode {
                GrepMode::Files => lines.push(path.clone()),
                GrepMode::Count => lines.push(format!("{path}:{}", file.count)),
                GrepMode::Lines => lines.extend(
                    file.lines.iter().map(|line| format!("{path}:{}:{}", line.number, line.text)),
                ),
            }
            let numbers: Vec<u64> = file.lines.iter().map(|line| line.number).collect();
            data.push(match mode {
                GrepMode::Files => json!({"path": path}),
                GrepMode::Count => json!({"path": path, "count": file.count}),
                GrepMode::Lines => json!({"path": path, "lines": numbers}),
            });
        }
        let skipped = [
            (found.skipped.not_text, "are not text"),
            (found.skipped.too_large, "were searched only at their beginning"),
            (found.skipped.unreadable, "could not be read"),
        ];
        Ok(self.told(&lines, &notes(&skipped, found.cut), &json!(data), found.cut))
    }

    /// Lines as far as there is room for them, and notes on what is missing.
    fn told(
        &self,
        lines: &[String],
        notes: &[String],
        matches: &Value,
        cut: Option<SearchCut>,
    ) -> ToolOutcome {
        let most = self.settings.max_bytes;
        let (mut content, shown) = within(lines, most);
        let omitted = lines.len() - shown;
        let mut tail = notes.to_vec();
        if omitted > 0 {
            tail.push(format!("[and {omitted} more, beyond max_bytes = {most}]"));
        }
        if lines.is_empty() {
            "(nothing found)".clone_into(&mut content);
        }
        for note in tail {
            content.push('\n');
            content.push_str(&note);
        }
        let mut outcome = ToolOutcome::text(content);
        outcome.data = json!({"matches": matches, "truncated": cut.is_some() || omitted > 0});
        outcome
    }
}

/// What a search did not look at.
fn notes(skipped: &[(u64, &str)], cut: Option<SearchCut>) -> Vec<String> {
    let skipped = skipped.iter().filter(|(count, _)| *count > 0);
    let skipped = skipped.map(|(count, why)| format!("[{count} files or folders {why}]"));
    skipped.chain(cut.map(|cut| format!("[{cut}; search for less]"))).collect()
}

/// The first lines that have at most so many bytes together, and how many these are. Of a first
/// line that is too long by itself, there is the beginning.
fn within(lines: &[String], most: usize) -> (String, usize) {
    let mut content = String::new();
    for (shown, line) in lines.iter().enumerate() {
        let needed = line.len() + usize::from(shown > 0);
        if content.len() + needed > most {
            if shown == 0 {
                let end = (0..=most).rev().find(|at| line.is_char_boundary(*at));
                content.push_str(&line[..end.unwrap_or(0)]);
            }
            return (content, shown);
        }
        if shown > 0 {
            content.push('\n');
        }
        content.push_str(line);
    }
    (content, lines.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_shown_as_far_as_there_is_room() {
        let lines = ["one", "two", "dreißig"].map(str::to_owned);
        let table = [
            (99, "one\ntwo\ndreißig", 3),
            (16, "one\ntwo\ndreißig", 3),
            (15, "one\ntwo", 2),
            (7, "one\ntwo", 2),
            (6, "one", 1),
            (2, "on", 0),
            (0, "", 0),
        ];
        for (most, content, shown) in table {
            assert_eq!(within(&lines, most), (content.to_owned(), shown), "{most}");
        }
        assert_eq!(within(&["äö".to_owned()], 3), ("ä".to_owned(), 0));
        assert_eq!(within(&[], 3), (String::new(), 0));
    }
}
