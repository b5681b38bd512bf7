//! `read_file`

use prowess_runtime::{Invocation, ToolOutcome};
use prowess_workspace::{ArtifactRef, ArtifactStore};
use serde_json::json;

use super::arguments::ReadArguments;
use super::ground::Meant;
use super::target::InvalidTarget;
use super::text::{Window, text_of};
use super::{Files, not_found};
use crate::invalid::InvalidArguments;
use crate::session::{artifact_failure, scope_of};

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
        let limit = self.settings.max_file_bytes;
        let found = match self.meant(invocation, &arguments.path).await? {
            Meant::Artifact(artifact) => self.artifact(invocation, artifact).await?,
            Meant::Artifacts => return Err(invalid(InvalidTarget::NoArtifact.into())),
            Meant::Files(spot) => {
                let (file, _) = spot.first(|backend, place| backend.read(place, limit)).await?;
                Found {
                    reference: self.ground.reference(&file.name),
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
