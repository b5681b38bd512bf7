//! Running queries, and writes that were approved.

use std::io;
use std::time::Instant;

use prowess_runtime::{ArtifactRef, Invocation, SessionKey, ToolOutcome};
use prowess_workspace::ArtifactError;

use super::argument;
use super::guard::SqlRefusal;
use super::hidden::Asked;
use super::layers::Layer;
use super::render;
use super::result::Collector;
use super::toolkit::{Connection, Inner};
use super::write::{Permission, SqlApprover};
use crate::session::scope_of;

/// What can be approved. Everything else that is not a query is beyond what this is for.
pub(super) const APPROVABLE: &[&str] =
    &["INSERT", "UPDATE", "DELETE", "REPLACE", "MERGE", "CREATE", "ALTER", "DROP", "TRUNCATE"];

/// Why what is not shown of a result is not an artifact.
#[derive(Debug, thiserror::Error)]
enum NotKept {
    #[error("there is no artifact store")]
    NoStore,
    #[error("the first row alone is longer than max_artifact_bytes")]
    TooLong,
    #[error("{0}")]
    File(#[from] io::Error),
    #[error("{0}")]
    Store(#[from] ArtifactError),
}

impl NotKept {
    /// The stable name.
    fn code(&self) -> &'static str {
        match self {
            Self::NoStore => "no_artifact_store",
            Self::TooLong => "result_too_long",
            Self::File(_) => "result_not_kept",
            Self::Store(error) => error.code(),
        }
    }
}

/// What is to become of a statement.
enum Way {
    Read(Asked),
    Write(String),
}

impl Inner {
    /// `execute_query`: runs a query, and shows what it gives.
    pub(super) async fn execute_query(
        &self,
        invocation: Invocation<'_>,
    ) -> Result<ToolOutcome, ToolOutcome> {
        let connection = self.connection(invocation)?;
        let query = argument(invocation, "query")?;
        match way(connection, query)? {
            Way::Read(asked) => self.read(invocation, connection, asked).await,
            Way::Write(text) => self.write(invocation, connection, text).await,
        }
    }

    async fn read(
        &self,
        invocation: Invocation<'_>,
        connection: &Connection,
        asked: Asked,
    ) -> Result<ToolOutcome, ToolOutcome> {
        let failed = |error| connection.failure("Query error: ", &error);
        connection.check_role().await.map_err(|error| connection.failure("Error: ", &error))?;
        let began = Instant::now();
        let collector = connection.collector(self.rest());
        let collector = connection.database.read(asked, collector).await.map_err(failed)?;
        let elapsed = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        Ok(self.show(invocation.session, connection, collector, elapsed).await)
    }

    /// A result as the model sees it, with what is not shown kept and said.
    async fn show(
        &self,
        session: &SessionKey,
        connection: &Connection,
        mut collector: Collector,
        elapsed_ms: u64,
    ) -> ToolOutcome {
        let mut text = render::table(&collector.header, &collector.rows);
        let shown = collector.rows.len() as u64;
        let is_cut = shown < collector.count || collector.is_open;
        if is_cut {
            let count = render::count(collector.count);
            // The last row that was read is counted where it was to be kept.
            let more = match (collector.is_open, &collector.spool) {
                (false, _) => "",
                (true, None) => "more than ",
                (true, Some(_)) => "at least ",
            };
            text.push_str(&format!("Showing the first {shown} of {more}{count}."));
        } else {
            text.push_str(&render::count(collector.count));
        }
        if collector.truncated && !is_cut {
            text.push_str(". Long values are cut.");
        }
        let mut outcome = ToolOutcome::text("");
        let mut data = collector.data(elapsed_ms);
        let mut not_kept = None;
        if let Some(spool) = collector.spool.take() {
            let kept = spool.rows();
            match self.keep(session, connection, spool).await {
                Ok(artifact) => {
                    let whole = match collector.is_open {
                        false => "The whole result is".to_owned(),
                        true => {
                            let kept = render::count(kept);
                            format!("Its first part ({kept}, up to max_artifact_bytes) is")
                        }
                    };
                    text.push_str(&format!(
                        " {whole} the artifact {} (version {}).",
                        artifact.name, artifact.version
                    ));
                    outcome = outcome.with_artifact(artifact);
                }
                Err(why) => not_kept = Some(why),
            }
        } else if collector.truncated {
            not_kept = Some(NotKept::NoStore);
        }
        if let Some(why) = not_kept {
            text.push_str(&format!(" The rest was not kept: {why}."));
            data["not_kept"] = why.code().into();
        }
        outcome.content = text;
        outcome.data = data;
        outcome.about(super::toolkit::SKILL)
    }

    async fn keep(
        &self,
        session: &SessionKey,
        connection: &Connection,
        spool: super::spool::Spool,
    ) -> Result<ArtifactRef, NotKept> {
        let store = self.artifacts.as_ref().ok_or(NotKept::NoStore)?;
        let is_plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '-');
        let plain = |it: char| if is_plain(it) { it } else { '_' };
        let connection: String = connection.name.chars().map(plain).take(64).collect();
        let name = format!("sql_result_{connection}.csv");
        if spool.rows() == 0 {
            return Err(NotKept::TooLong);
        }
        let file = spool.into_file()?;
        let version = store.save_file(&scope_of(session), &name, "text/csv", file).await?;
        Ok(ArtifactRef { name, version })
    }

    async fn write(
        &self,
        invocation: Invocation<'_>,
        connection: &Connection,
        text: String,
    ) -> Result<ToolOutcome, ToolOutcome> {
        match self.approvals.ask(invocation.session, &connection.name, &text) {
            Permission::Run => {
                let began = Instant::now();
                let failed = |error| connection.failure("Query error: ", &error);
                let rows = connection.database.write(text).await.map_err(failed)?;
                let elapsed = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
                let text = format!("The statement was run. {} affected.", render::count(rows));
                Ok(ToolOutcome::text(text)
                    .with_data("rows_affected", rows)
                    .with_data("elapsed_ms", elapsed))
            }
            Permission::Wanted(write) => {
                let text = "Error: This statement writes, and has to be approved by the host before \
                            it is run.";
                let hint = match self.approver {
                    SqlApprover::Host => {
                        "Wait for the approval, then make the same call again, to the letter."
                    }
                    SqlApprover::Nobody => {
                        "Nobody approves writes here, and waiting is in vain. Give the user the \
                         statement: whoever may write runs it with a program of their own."
                    }
                };
                Err(ToolOutcome::error("approval_required", text)
                    .with_hint(hint)
                    .with_data("approval_id", write.id)
                    .with_data("statement_hash", write.hash)
                    .with_data("statement", write.statement)
                    .with_data("connection", write.connection)
                    .with_data("expires_seconds", self.settings.approval_seconds))
            }
            Permission::Full => {
                let text = "Error: Too many writes wait for an approval (max_pending_approvals).";
                Err(ToolOutcome::error("too_many_approvals", text))
            }
        }
    }
}

/// Whether a statement is read, is a write that can be approved, or neither.
fn way(connection: &Connection, query: &str) -> Result<Way, ToolOutcome> {
    if connection.layers.guard == Layer::Off {
        return Ok(Way::Read(Asked::ours(query)));
    }
    let refusal = match connection.guard.check(query) {
        Ok(reading) => return Ok(Way::Read(reading.into())),
        Err(refusal) => refusal,
    };
    let most = connection.settings.max_cell_bytes;
    match &refusal {
        _ if connection.is_read_only() => return Err(refused(&refusal, most)),
        SqlRefusal::Write { .. } => {}
        SqlRefusal::Unread { message, .. } => {
            let refusal = SqlRefusal::Syntax { message: message.clone() };
            return Err(refused(&refusal, most));
        }
        other => return Err(refused(other, most)),
    }
    let kind = connection.guard.check_write(query).map_err(|refusal| refused(&refusal, most))?;
    match APPROVABLE.contains(&kind.keyword.as_str()) {
        true => Ok(Way::Write(kind.text)),
        false => {
            let text = format!("Error: {} statements are never run here.", kind.keyword);
            let hint = format!("These can be approved: {}", APPROVABLE.join(", "));
            Err(ToolOutcome::error("write_not_allowed", text).with_hint(hint))
        }
    }
}

/// A statement is not run.
pub(super) fn refused(refusal: &SqlRefusal, most: usize) -> ToolOutcome {
    let reason = render::brief(&refusal.to_string(), most);
    let text = match refusal {
        SqlRefusal::Syntax { .. } | SqlRefusal::Empty => format!("Query error: {reason}"),
        SqlRefusal::Write { .. } | SqlRefusal::Unread { .. } => format!("Error: {reason}"),
        _ => {
            let mut text = reason.clone();
            if let Some(first) = text.get_mut(..1) {
                first.make_ascii_uppercase();
            }
            format!("Error: {text}. Only SELECT queries are permitted.")
        }
    };
    let outcome = ToolOutcome::error(refusal.code(), text).with_data("reason", reason);
    match refusal.hint() {
        Some(hint) => outcome.with_hint(hint),
        None => outcome,
    }
}
