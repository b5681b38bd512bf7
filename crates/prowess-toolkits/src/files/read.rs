//! `read_file`

use prowess_runtime::{Invocation, ToolOutcome};
use prowess_workspace::{ArtifactRef, ArtifactStore, WorkspaceError, WorkspacePath};
use serde_json::json;

use super::arguments::ReadArguments;
use super::target::{InvalidTarget, Target};
use super::{Files, not_found};
use crate::invalid::InvalidArguments;
use crate::session::{artifact_failure, blocking, scope_of, workspace_failure, workspace_of};

/// What was found behind a path.
struct Found {
    /// A name that leads to it again.
    reference: String,
    bytes: Vec<u8>,
    size_bytes: u64,
    mime_type: String,
}

impl Files {
    /// Gives some lines of a file.
    pub(crate) async fn read(
        &self,
        invocation: Invocation<'_>,
    ) -> Result<ToolOutcome, ToolOutcome> {
        let invalid = |why: InvalidArguments| why.outcome(invocation);
        let arguments = ReadArguments::parse(&invocation.call.arguments).map_err(invalid)?;
        let workspace = workspace_of(&self.workspaces, invocation.session).await?;
        let target = Target::parse(&arguments.path, workspace.path()).map_err(invalid)?;
        let limit = self.settings.max_file_bytes;
        let found = match target {
            Target::Artifact(artifact) => self.artifact(invocation, artifact).await?,
            Target::Artifacts => return Err(invalid(InvalidTarget::NoArtifact.into())),
            Target::Places(places) => {
                let read = move || first(&places, |place| workspace.read(place, limit));
                let file = blocking(read).await?.map_err(|error| match error {
                    WorkspaceError::NotFound { .. } => not_found(&arguments.path),
                    error => workspace_failure(&error),
                })?;
                Found {
                    reference: format!("workspace://{}", file.name),
                    size_bytes: file.size_bytes,
                    mime_type: file.mime_type,
                    bytes: file.bytes,
                }
            }
        };
        self.give(&arguments, found)
    }

    async fn artifact(
        &self,
        invocation: Invocation<'_>,
        artifact: ArtifactRef,
    ) -> Result<Found, ToolOutcome> {
        let store = self.store()?;
        let scope = scope_of(invocation.session);
        let loaded = store.load(&scope, &artifact.name, artifact.version).await;
        let loaded = loaded.map_err(|error| artifact_failure(&error))?;
        let loaded = loaded.ok_or_else(|| not_found(&artifact.to_string()))?;
        let most = usize::try_from(self.settings.max_file_bytes).unwrap_or(usize::MAX);
        Ok(Found {
            reference: format!("artifact://{}@{}", loaded.name, loaded.version),
            size_bytes: loaded.bytes.len() as u64,
            mime_type: loaded.mime_type.clone(),
            bytes: loaded.bytes[..loaded.bytes.len().min(most)].to_vec(),
        })
    }

    pub(crate) fn store(&self) -> Result<&dyn ArtifactStore, ToolOutcome> {
        self.artifacts.as_deref().ok_or_else(|| {
            ToolOutcome::error("no_artifact_store", "Error: no artifact store is configured")
        })
    }

    /// The lines that are wanted, and a note if there is more.
    fn give(&self, arguments: &ReadArguments, found: Found) -> Result<ToolOutcome, ToolOutcome> {
        let Found { reference, bytes, size_bytes, mime_type } = found;
        let Some(text) = text_of(&bytes, size_bytes) else {
            let message =
                format!("Error: {reference} is not text ({mime_type}, {size_bytes} bytes)");
            return Err(ToolOutcome::error("not_text", message)
                .with_hint("Use a command that works on the file."));
        };
        let most = arguments.take.unwrap_or(u64::MAX).min(self.settings.max_lines);
        let window = Window::of(text, arguments.skip, most, self.settings.max_bytes);
        let is_cut = (text.len() as u64) < size_bytes;
        let Window { shown, lines, total, is_line_cut } = window;
        let (first, last) = (arguments.skip + 1, arguments.skip + lines);
        let mut content = shown.to_owned();
        let is_rest_wanted = arguments.take.is_none_or(|take| lines < take);
        let of = if is_cut { format!("the first {total}") } else { total.to_string() };
        let note = if lines == 0 && arguments.skip > 0 {
            Some(format!("[there is no line {first}: the file has {of} lines]"))
        } else if last < total && is_rest_wanted {
            let next = last + 1;
            Some(format!("[lines {first}-{last} of {of}; go on with start_line={next}]"))
        } else if is_cut && last >= total {
            let read = text.len();
            Some(format!("[the first {read} of {size_bytes} bytes can be read]"))
        } else {
            None
        };
        let cut_line =
            is_line_cut.then(|| format!("[line {first} is cut after {} bytes]", shown.len()));
        let notes: Vec<String> = cut_line.into_iter().chain(note).collect();
        if !notes.is_empty() {
            if !content.is_empty() && !content.ends_with('\n') {
                content.push('\n');
            }
            content.push_str(&notes.join("\n"));
        }
        let mut outcome = ToolOutcome::text(content);
        outcome.data = json!({
            "ref": reference,
            "mime_type": mime_type,
            "size_bytes": size_bytes,
            "first_line": first,
            "lines": lines,
            "total_lines": total,
            "truncated": is_cut || !notes.is_empty(),
            "text": shown,
        });
        Ok(outcome)
    }
}

/// What the first place yields at which something is; else what the last one says.
pub(super) fn first<T>(
    places: &[WorkspacePath],
    look: impl Fn(&WorkspacePath) -> Result<T, WorkspaceError>,
) -> Result<T, WorkspaceError> {
    let mut last = WorkspaceError::NotFound { path: String::new() };
    for place in places {
        match look(place) {
            Err(missing @ WorkspaceError::NotFound { .. }) => last = missing,
            found => return found,
        }
    }
    Err(last)
}

/// Bytes as text: none if they are not. Of a file that was cut, a character that was cut in two is
/// left out.
fn text_of(bytes: &[u8], size_bytes: u64) -> Option<&str> {
    if bytes.contains(&0) {
        return None;
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Some(text),
        Err(error) if (bytes.len() as u64) < size_bytes && error.error_len().is_none() => {
            std::str::from_utf8(&bytes[..error.valid_up_to()]).ok()
        }
        Err(_) => None,
    }
}

/// Some lines of a text.
#[derive(Debug, PartialEq, Eq)]
struct Window<'a> {
    shown: &'a str,
    /// How many lines these are.
    lines: u64,
    /// How many there are.
    total: u64,
    /// Whether only the beginning of a line is shown.
    is_line_cut: bool,
}

impl<'a> Window<'a> {
    /// At most so many lines and bytes, from a line on. Of a line that is too long by itself, the
    /// beginning is shown.
    fn of(text: &'a str, skip: u64, most: u64, bytes: usize) -> Self {
        let total = text.split_inclusive('\n').count() as u64;
        let before = usize::try_from(skip).unwrap_or(usize::MAX);
        let begin: usize = text.split_inclusive('\n').take(before).map(str::len).sum();
        let rest = &text[begin..];
        let (mut end, mut lines) = (0, 0);
        for line in rest.split_inclusive('\n') {
            if lines >= most || end + line.len() > bytes {
                break;
            }
            end += line.len();
            lines += 1;
        }
        let is_line_cut = lines == 0 && most > 0 && !rest.is_empty();
        if is_line_cut {
            end = bytes.min(rest.len());
            while !rest.is_char_boundary(end) {
                end -= 1;
            }
            lines = 1;
        }
        Self { shown: &rest[..end], lines, total, is_line_cut }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_shows_whole_lines_within_both_limits() {
        let text = "one\ntwo\nthree\n";
        let table = [
            // Skipped, most lines, most bytes, shown, lines.
            (0, 9, 99, "one\ntwo\nthree\n", 3),
            (0, 2, 99, "one\ntwo\n", 2),
            (1, 1, 99, "two\n", 1),
            (0, 9, 8, "one\ntwo\n", 2),
            (0, 9, 7, "one\n", 1),
            (0, 9, 2, "on", 1),
            (3, 9, 99, "", 0),
            (u64::MAX, 9, 99, "", 0),
        ];
        for (skip, most, bytes, shown, lines) in table {
            let expected = Window { shown, lines, total: 3, is_line_cut: bytes == 2 };
            assert_eq!(Window::of(text, skip, most, bytes), expected, "{skip} {most} {bytes}");
        }
        let empty = Window { shown: "", lines: 0, total: 0, is_line_cut: false };
        assert_eq!(Window::of("", 0, 9, 99), empty);
        let cut = Window { shown: "ä", lines: 1, total: 1, is_line_cut: true };
        assert_eq!(Window::of("äöü", 0, 9, 3), cut);
    }

    #[test]
    fn only_text_is_text_and_a_cut_is_no_fault() {
        assert_eq!(text_of("äb".as_bytes(), 3), Some("äb"));
        assert_eq!(text_of(&"bä".as_bytes()[..2], 3), Some("b"));
        assert_eq!(text_of(&"bä".as_bytes()[..2], 2), None);
        assert_eq!(text_of(b"a\0b", 3), None);
        assert_eq!(text_of(&[0xff, 0x61], 9), None);
        assert_eq!(text_of(b"", 0), Some(""));
    }
}
