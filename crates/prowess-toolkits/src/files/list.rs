//! `ls`

use prowess_runtime::{Invocation, ToolOutcome};
use prowess_workspace::EntryKind;
use serde_json::{Value, json};

use super::Files;
use super::arguments::listed_path;
use super::ground::Meant;
use super::target::InvalidTarget;
use crate::invalid::InvalidArguments;
use crate::session::{artifact_failure, scope_of};

impl Files {
    /// Lists a folder, or the artifacts.
    pub(crate) async fn list(
        &self,
        invocation: Invocation<'_>,
    ) -> Result<ToolOutcome, ToolOutcome> {
        let invalid = |why: InvalidArguments| why.outcome(invocation);
        let path = listed_path(&invocation.call.arguments).map_err(invalid)?;
        match self.meant(invocation, &path).await? {
            Meant::Artifacts => self.artifacts(invocation).await,
            Meant::Artifact(_) => Err(invalid(InvalidTarget::NoFolder.into())),
            Meant::Files(spot) => {
                let most = self.settings.max_entries as u64;
                let (found, _) = spot.first(|backend, place| backend.list(place, most)).await?;
                let lines = found.entries.iter().map(|entry| match entry.kind {
                    EntryKind::Folder => format!("{}/", entry.name),
                    EntryKind::File => format!("{} ({} bytes)", entry.name, entry.size_bytes),
                    EntryKind::Link => format!("{} (link)", entry.name),
                    EntryKind::Special => format!("{} (special)", entry.name),
                });
                let lines = self.some(lines.collect(), found.omitted);
                let entries = found.entries.iter().map(|entry| {
                    json!({"name": entry.name, "kind": entry.kind, "size_bytes": entry.size_bytes})
                });
                Ok(told(&lines, &entries.collect::<Vec<_>>(), found.omitted))
            }
        }
    }

    async fn artifacts(&self, invocation: Invocation<'_>) -> Result<ToolOutcome, ToolOutcome> {
        let scope = scope_of(invocation.session);
        let names = self.store()?.list(&scope).await.map_err(|error| artifact_failure(&error))?;
        let lines = names.iter().map(|name| format!("artifact://{name}")).collect();
        let entries = names.iter().map(|name| json!({"name": name, "kind": "artifact"}));
        Ok(told(&self.some(lines, 0), &entries.collect::<Vec<_>>(), 0))
    }

    /// As many lines as may be, and how many more there are.
    fn some(&self, mut lines: Vec<String>, omitted: u64) -> Vec<String> {
        let most = self.settings.max_entries;
        let more = lines.len().saturating_sub(most) as u64 + omitted;
        lines.truncate(most);
        if more > 0 {
            lines.push(format!("[and {more} more]"));
        }
        lines
    }
}

fn told(lines: &[String], entries: &[Value], omitted: u64) -> ToolOutcome {
    let content = match lines.is_empty() {
        true => "(empty)".to_owned(),
        false => lines.join("\n"),
    };
    let mut outcome = ToolOutcome::text(content);
    outcome.data = json!({"entries": entries, "omitted": omitted});
    outcome
}
