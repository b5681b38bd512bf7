//! From what came of a run to an answer.

use prowess_runtime::{ArtifactRef, Change, SessionKey, SessionState, ToolOutcome};
use prowess_workspace::{RunOutcome, StagedSkill};
use serde_json::{Value, json};

use super::outputs::{Wanted, save};
use super::plan::{Plan, Runner};
use super::result::{Answer, Written, without_empty};
use crate::session::blocking;

/// What is to be done when a run of a skill has ended.
pub(crate) struct After {
    pub(super) name: String,
    /// No other version takes its place while it runs.
    pub(super) staged: Option<StagedSkill>,
    pub(super) warnings: Vec<String>,
    pub(super) wanted: Wanted,
    pub(super) omit_content: bool,
}

/// What there is to tell of a run of a skill that has ended.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) skill: String,
    pub(crate) written: Written,
    pub(crate) code: &'static str,
    pub(crate) artifacts: Vec<ArtifactRef>,
}

impl After {
    /// The command has ended: another version of its skill may take its place.
    pub(crate) fn release(&mut self) {
        self.staged = None;
    }

    /// Collects, keeps and writes down what came of a run.
    pub(crate) async fn tell(
        self,
        runner: &Runner,
        session: &SessionKey,
        plan: Plan,
        outcome: RunOutcome,
    ) -> Result<Told, ToolOutcome> {
        let Self { name, mut warnings, wanted, omit_content, staged: _staged } = self;
        let collecting = wanted.clone();
        let collect = move || collecting.collect(&plan.workspace, &plan.run_folder);
        let collected = blocking(collect).await?;
        // The command has run: what went wrong afterwards is said beside its result.
        let mut collected = collected.unwrap_or_else(|error| {
            warnings.push(format!("outputs were not collected: {error}"));
            Default::default()
        });
        let exit_code = outcome.exit_code;
        let has_failed = exit_code != 0 || outcome.timed_out;
        if has_failed {
            without_empty(&mut collected.files, &mut warnings);
        }
        let artifacts = match &wanted.save {
            Some(wanted) => {
                let store = runner.artifacts.as_deref();
                save(store, session, wanted, &collected.files, &mut warnings).await
            }
            None => Vec::new(),
        };
        let more = collected.refused_count.saturating_sub(collected.refused.len() as u64);
        if wanted.listed && more > 0 {
            warnings.push(format!("{more} more files were refused"));
        }
        let mut limits_hit: Vec<Value> = outcome.limits_hit.iter().map(|it| json!(it)).collect();
        limits_hit.extend(collected.limits_hit.iter().map(|it| json!(it)));
        let answer = Answer {
            exit_code,
            timed_out: outcome.timed_out,
            duration_ms: u64::try_from(outcome.duration.as_millis()).unwrap_or(u64::MAX),
            stdout: &outcome.stdout,
            stderr: &outcome.stderr,
            isolation: &outcome.isolation,
            limits_hit,
            files: &collected.files,
            listed: wanted.listed,
            inline: wanted.inline,
            omit_content,
            refused: &collected.refused,
            artifacts: &artifacts,
            warnings,
        };
        let written = answer.write(&runner.settings);
        let code = code_of(outcome.timed_out, exit_code);
        Ok(Told { skill: name, written, code, artifacts })
    }
}

impl Told {
    /// What a call comes to that tells this, as the session is now.
    pub(crate) fn outcome(&self, shown: Value, data: Value, state: &SessionState) -> ToolOutcome {
        let mut told = ToolOutcome::json(shown).about(&self.skill);
        told.data = data;
        told.code = self.code.into();
        if state.is_loaded(&self.skill) {
            told = told.with_change(Change::Touch { skill: self.skill.clone() });
        }
        told
    }
}

/// The stable name of how a command ended.
pub(crate) fn code_of(timed_out: bool, exit_code: i32) -> &'static str {
    match (timed_out, exit_code) {
        (true, _) => "timed_out",
        (false, 0) => "ok",
        (false, _) => "command_failed",
    }
}
